"""DemoDICE at its optimum: the flow, the multipliers, the duality gap, and another solver on tiny problems."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.special import logsumexp
from seeds import generator, pinned
from worlds import drawn, maze, random_mdp, ring, without_actions

from messirl import MDP, Trajectories, sample, state_visitation
from messirl.estimators import BehaviourCloning, DemoDICE
from messirl.estimators._occupancy_flow import OccupancyFlow, discounted
from messirl.estimators.demodice import nearest_occupancy
from messirl.paper.domains import slippery
from messirl.planning import visits

CASES = ["endless", "ending", "horizon", "horizon ending"]
each = pytest.mark.parametrize("case", CASES)


@cache
def world(case: str) -> tuple[MDP, Trajectories, Trajectories]:
    """Four states and two actions; with an end in the last state, with a horizon of four, with both, with neither."""
    arguments = {"horizon": 4} if "horizon" in case else {}
    mdp = random_mdp(3, 4, 2, 2, discount=0.8, start=np.array([0.5, 0.3, 0.2, 0.0]), **arguments)
    if "ending" in case:
        moves = mdp.transitions.toarray().reshape(4, 2, 4)
        moves[3] = 0.0
        mdp = mdp.replace(transitions=moves, terminal=np.arange(4) == 3, allowed=None)
    length = {} if "horizon" in case else {"length": 12}
    return mdp, drawn(mdp, [3.0, -1.0], 6, 1, **length), drawn(mdp, [-1.0, 1.0], 12, 2, **length)


@cache
def densities(case: str):
    mdp, expert, unlabelled = world(case)
    flow = OccupancyFlow.of(mdp, mdp.start)
    return flow, flow.density(expert, 0.05, 0.5), flow.density(expert + unlabelled, 0.05, 0.5)


def kl(p, q):
    return float(p @ np.log(p / q))


@each
def test_a_density_sums_to_one_and_has_no_zero(case):
    for density in densities(case)[1:]:
        assert_allclose(density.sum(), 1.0)
        assert (density > 0).all()


@each
@pytest.mark.parametrize("alpha", [0.0, 0.05, 2.0])
def test_the_optimum_obeys_its_conditions(case, alpha):
    """Primal feasibility, stationarity in d with ν as multipliers, and no gap between the two values."""
    flow, own, usual = densities(case)
    found = nearest_occupancy(flow, own, usual, alpha, 1e-11, 100)
    d, dense = found.occupancy, flow.rows.toarray()
    assert_allclose(flow.source + dense.T @ d, 0.0, atol=1e-10)
    assert_allclose(d.sum(), 1.0, rtol=1e-9)
    slope = np.log(d / own) + alpha * np.log(d / usual) - dense @ found.values
    assert_allclose(slope, slope.mean(), atol=1e-8)  # what is left is the multiplier of the sum
    exponent = np.log(usual) + (np.log(own / usual) + dense @ found.values) / (1 + alpha)
    dual = flow.source @ found.values + (1 + alpha) * logsumexp(exponent)
    assert_allclose(found.objective, kl(d, own) + alpha * kl(d, usual), rtol=1e-9, atol=1e-12)
    assert_allclose(found.objective, -dual, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of the other solver
@each
def test_another_solver_of_the_primal_problem_ends_there_too(case):
    flow, own, usual = densities(case)
    found = nearest_occupancy(flow, own, usual, 0.3, 1e-11, 100)
    flows = LinearConstraint(flow.rows.toarray().T, -flow.source, -flow.source)

    def objective(d):
        return kl(d, own) + 0.3 * kl(d, usual), np.log(d / own) + 1.0 + 0.3 * (np.log(d / usual) + 1.0)

    primal = minimize(
        objective,
        nearest_occupancy(flow, usual, usual, 1.0, 1e-11, 100).occupancy,  # another occupancy
        jac=True,
        method="SLSQP",
        bounds=Bounds(1e-9, 1.0),
        constraints=[flows],
        options={"ftol": 1e-13, "maxiter": 2000},
    )
    assert_allclose(found.objective, primal.fun, atol=1e-6)
    assert_allclose(found.occupancy, primal.x, atol=1e-3)


@each
def test_what_is_an_occupancy_already_stays(case):
    """Of data without end the densities are occupancies, and the experts' policy is found, whatever α."""
    mdp, _, _ = world(case)
    flow = OccupancyFlow.of(mdp, mdp.start)
    policy = generator(5).dirichlet(np.ones(2), size=mdp.policy_shape[:-1]) * mdp.allowed
    policy = policy / np.maximum(policy.sum(axis=-1, keepdims=True), 1e-300)
    step, state = np.divmod(flow.place[flow.at], mdp.n_states)
    chance = np.where(flow.action < 0, 1.0, policy[(*mdp.at(step, state), np.maximum(flow.action, 0))])
    dense = flow.rows.toarray()
    leave = np.zeros(dense.shape)
    leave[np.arange(len(leave)), flow.at] = 1.0
    # d = π(x) m at the places, with m the solution of the flow
    m = np.linalg.solve(-(dense.T @ (chance[:, None] * leave)), flow.source)
    d = chance * m[flow.at]
    found = nearest_occupancy(flow, d, d, 0.5, 1e-10, 100)
    assert_allclose(found.objective, 0.0, atol=1e-9)
    assert_allclose(found.occupancy, d, atol=1e-9)


@each
def test_an_occupancy_is_that_of_its_policy(case):
    """By the visits that the planners find, which know nothing of flows and duals."""
    mdp, expert, unlabelled = world(case)
    model = DemoDICE(alpha=0.2).fit(mdp, expert, unlabelled)
    assert model.converged_
    found = visits(mdp, model.policy_)
    mass = 5.0 if mdp.horizon is None else 1 + 0.8 + 0.64
    occupancy = model.occupancy_ if mdp.horizon is None else model.occupancy_.sum(axis=0)
    assert_allclose(occupancy * mass, found.steps, rtol=1e-6, atol=1e-9)
    assert_allclose(model.policy_.sum(axis=-1), np.broadcast_to(~mdp.terminal, mdp.policy_shape[:-1]), atol=1e-12)


def test_discounted_choices_are_counted_one_by_one():
    mdp = ring(3, discount=0.5).replace(terminal=[False, False, True])
    some = Trajectories.from_lists([[0, 1, 1], [1, 2]], actions=[[1, 0], [1]])
    acted, ended = discounted(mdp, some)
    cut = 2.0 / 1.5  # the first is cut after two choices: as if it went on as it did, its mass is 2
    assert_allclose(acted[0], [[0, cut], [0.5 * cut, 1.0], [0, 0]])
    assert_allclose(ended[0], [0, 0, 0.5 / 0.5])
    until = mdp.replace(horizon=3)
    acted, ended = discounted(until, some)
    assert_allclose(acted, [[[0, 1], [0, 1], [0, 0]], [[0, 0], [0.5, 0], [0, 0]]])
    assert_allclose(ended, [[0, 0, 0], [0, 0, 0.5]])


def test_many_experts_are_followed():
    mdp = random_mdp(6, discount=0.9, start=np.full(5, 0.2))
    truth = generator(7).dirichlet(2 * np.ones(3), size=5)
    expert = sample(mdp, truth, 800, 60, random_state=1)
    model = DemoDICE(alpha=0.0, smoothing=1e-3).fit(mdp, expert, drawn(mdp, [0, 0, 0], 100, 2, length=60))
    # of some 8,000 discounted choices each pair has 100 or more: five standard errors are below 0.12
    assert_allclose(model.policy_, truth, atol=0.12)


def test_far_held_back_the_policy_is_everyones():
    mdp, expert, unlabelled = world("endless")
    strong, none = (DemoDICE(alpha=a).fit(mdp, expert, unlabelled) for a in (1e4, 0.0))
    flow, _, usual = densities("endless")
    usual = flow.density(expert + unlabelled, strong.smoothing, 0.5)
    limit = nearest_occupancy(flow, usual, usual, 0.0, 1e-10, 100)
    assert_allclose(strong.occupancy_, flow.table(limit.occupancy), atol=1e-3)
    assert np.abs(none.occupancy_ - strong.occupancy_).max() > 0.01


def test_actions_may_be_missing():
    mdp, expert, unlabelled = problem("endless")
    bare = DemoDICE().fit(mdp, without_actions(expert), without_actions(unlabelled))
    known = DemoDICE().fit(mdp, expert, unlabelled)
    assert bare.converged_
    assert_allclose(bare.policy_.sum(axis=1), 1.0)
    assert known.score(expert) > bare.score(expert) - 0.5


def test_where_the_flow_does_not_get_to_the_policy_is_what_was_usual():
    mdp = maze(discount=0.9).replace(start=np.eye(9)[0])
    moves = mdp.transitions.toarray().reshape(9, 4, 9)
    moves[:8, :, 8] = 0.0  # nothing leads to the last place
    closed = MDP(moves, mdp.features, discount=0.9)
    policy = np.where(closed.allowed, 1.0, 0.0) / np.maximum(closed.allowed.sum(axis=1, keepdims=True), 1)
    expert = sample(closed, policy, 5, 8, random_state=1, start=np.eye(9)[0])
    others = Trajectories.from_lists([[8, 5, 4], [8, 7, 4]], actions=[[0, 3], [3, 0]])
    model = DemoDICE().fit(closed, expert, others)
    assert_allclose(model.values_[8], 0.0, atol=1e-300)
    assert_allclose(model.policy_[8], [1.5 / 3, 0, 0, 1.5 / 3])
    assert_array_equal(model.occupancy_[8], 0.0)


def test_a_way_into_a_dead_end_is_not_taken():
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1, 0, 0] = moves[1, 1, 1] = 1.0
    mdp = MDP(moves, np.eye(4)[:, :2], discount=0.9, terminal=[False, False, False, True])
    some = Trajectories.from_lists([[0, 1, 0, 1]], actions=[[0, 0, 0]])
    model = DemoDICE().fit(mdp, some, some)
    assert_allclose(model.policy_[0], [1.0, 0.0])


def test_few_experts_are_followed_further_than_by_cloning_and_predicted_worse():
    """Visits are matched, not choices: docs/imitation.md has these figures."""
    with pinned():  # by how much is a matter of the draw
        rng = generator(0)
        mdp = MDP(slippery(16, 0.7), rng.normal(size=(256, 8)), discount=0.9, start=np.full(256, 1 / 256))
        theta = rng.normal(size=8)
        expert, test = drawn(mdp, theta, 5, 0, length=40), drawn(mdp, theta, 200, 2, length=40)
        others = drawn(mdp, theta, 50, 1, length=40) + drawn(mdp, -theta, 50, 3, length=40)
    dice, clone = DemoDICE().fit(mdp, expert, others), BehaviourCloning().fit(mdp, expert)
    collected = [float(state_visitation(mdp, one.policy_) @ mdp.reward(theta)) for one in (dice, clone)]
    assert collected[0] > 2.0 * collected[1] > 0.0
    assert dice.score(test) < np.log(0.25) < clone.score(test)


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (DemoDICE(), "episodic", "DemoDICE needs a discount below 1 or a horizon"),
        (DemoDICE(alpha=-1.0), "endless", "alpha=-1.0: it must be finite and >= 0"),
        (DemoDICE(smoothing=1.0), "endless", "smoothing=1.0: it must be finite and > 0 and < 1"),
        (DemoDICE(smoothing=0.0), "endless", "smoothing=0.0: it must be finite and > 0"),
        (DemoDICE(max_iter=0), "endless", "max_iter=0: it must be a whole number >= 1"),
    ],
)
def test_what_cannot_be_is_said_at_once(model, kind, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*problem(kind))


def test_a_search_that_was_cut_short_says_so():
    with pytest.warns(UserWarning, match="DemoDICE did not converge in 1 steps: .* violation of the flow"):
        model = DemoDICE(max_iter=1).fit(*problem("endless"))
    assert not model.converged_
