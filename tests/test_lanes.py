"""Many problems at once: in each lane, and in each search, what one finds alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from problems import KINDS, problem
from scipy.special import logsumexp
from seeds import generator
from worlds import maze, random_mdp, ring

from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL
from messirl.data.trajectories import Trajectories
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.objective import Objective, evaluate_batch
from messirl.optim.fixed_steps import paper
from messirl.optim.lbfgs import lbfgs
from messirl.optim.lbfgs_memory import Secants
from messirl.optim.lockstep import MAX_CONCURRENT, run_searches
from messirl.paper.domains import gridworld, highway, pit
from messirl.planning import Planner, batched
from messirl.planning.batched import batched_expectations, can_batch
from messirl.planning.kernels.batched_bellman import L


def uniform(n):
    return np.full(n, 1.0 / n)


def with_dead_ends():
    """A state without actions, and one that can only risk it; neither is ever entered."""
    mdp = random_mdp(5, n_states=9, discount=0.9)
    moves = mdp.transitions.toarray().reshape(9, 3, 9).copy()
    moves[7] = 0.0
    moves[8] = np.eye(9)[7]
    moves[:7, :2, 7:] = 0.0
    moves[:7, :2] /= moves[:7, :2].sum(axis=2, keepdims=True)
    return MDP(moves, mdp.features, discount=0.9, start=np.r_[uniform(7), 0.0, 0.0])


def based(mdp):
    policy = generator(3).dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
    return mdp.with_prior_policy(policy)


WORLDS = {
    "one state": lambda: random_mdp(1, n_states=1, n_actions=2, discount=0.9, start=[1.0]),
    "129 states": lambda: random_mdp(2, n_states=129, discount=0.95, start=uniform(129)),
    "terminal states": lambda: random_mdp(
        3, n_states=7, discount=0.9, start=uniform(7), terminal=np.arange(7) % 3 == 1
    ),
    "dead ends": with_dead_ends,
    "gamma close to one": lambda: random_mdp(4, n_states=12, discount=0.9999, start=uniform(12)),
    "hardly any discount": lambda: random_mdp(4, n_states=12, discount=0.01, start=uniform(12)),
    "steady moves": lambda: ring(5, discount=0.9, start=uniform(5)),
    "forbidden actions": lambda: maze(discount=0.9, start=uniform(9)),
    "base policy": lambda: based(random_mdp(6, n_states=6, discount=0.9, start=uniform(6))),
    "sparse features": lambda: random_mdp(7, discount=0.9, start=uniform(5)).replace(
        features=sp.csr_array(np.eye(5)[:, :3])
    ),
    "traffic": lambda: highway().mdp,
    "grid": lambda: gridworld(side=8).mdp,
    "pit": lambda: pit().mdp,
}


def planners(mdp, n, signed=()):
    """Several, each with a start of its own where the MDP's is positive; those `signed` with a source of both signs."""
    rng, where = generator(11), mdp.start > 0
    starts = [np.where(where, rng.dirichlet(np.ones(mdp.n_states)), 0.0) for _ in range(n)]
    made = [Planner(mdp, "causal", start / start.sum()) for start in starts]
    for k in signed:
        made[k].source = np.where(where, rng.normal(size=mdp.n_states), 0.0)
    return made


def thetas_for(mdp, n, size=3.0):
    return list(size * generator(12).normal(size=(n, mdp.n_features)))


@pytest.fixture(params=WORLDS, ids=list(WORLDS))
def world(request):
    return WORLDS[request.param]()


# ------------------------------------------------------------ lanes


@pytest.mark.parametrize(
    ("n", "signed"),
    [(1, 0), (1, 1), (L, 0), (5, 1), (L + 3, 2)],
    ids=["one start", "one source of both signs", "starts", "sources of both signs", "both beside each other"],
)
def test_a_lane_finds_what_a_problem_finds_alone(world, n, signed):
    which = range(0, n, signed) if signed else ()
    lanes, alone, rng = planners(world, n, which), planners(world, n, which), generator(13)
    thetas = thetas_for(world, n)
    for _ in range(4):  # from nothing, then from what was found last
        for found, planner, theta in zip(batched_expectations(lanes, thetas), alone, thetas, strict=True):
            assert can_batch(planner)
            wanted = planner(world.reward(theta))
            scale = 1.0 + abs(wanted.log_partition)
            assert found is not None
            assert found[0] == pytest.approx(wanted.log_partition, rel=1e-10, abs=1e-10)
            mass = np.abs(planner.active_source).sum() / (1.0 - world.discount)
            np.testing.assert_allclose(found[2].states, wanted.visits.states, rtol=1e-8, atol=1e-11 * mass * scale)
            np.testing.assert_allclose(found[1], wanted.visits.counts(world), rtol=1e-8, atol=1e-11 * mass * scale)
        thetas = [theta + 0.3 * rng.normal(size=theta.size) for theta in thetas]


def test_a_lane_solves_the_equations_it_stands_for(world):
    """The soft Bellman equation and the balance of the visits, both as dense sums."""
    n, base = world.n_states, 0.0 if world.log_reference is None else world.log_reference
    moves = world.transitions.toarray().reshape(n, world.n_actions, n)
    (planner,), (theta,) = planners(world, 1), thetas_for(world, 1)
    (found,) = batched_expectations([planner], [theta])
    values, reward = planner.model._values, world.reward(theta)
    live, alive = planner.model.live, np.isfinite(values)
    q = np.where(live, world.discount * moves @ np.where(alive, values, 0.0) + base, -np.inf)
    moving = alive & ~world.terminal
    best = np.where(world.terminal, reward, np.where(moving, reward + logsumexp(q[:], axis=1, b=1.0), -np.inf))
    size = 1.0 + np.abs(values[alive]).max()
    np.testing.assert_allclose(values[alive], best[alive], rtol=0.0, atol=1e-12 * size)
    policy = np.where(moving[:, None], np.exp(q - logsumexp(np.where(moving[:, None], q, 0.0), axis=1)[:, None]), 0.0)
    chain = np.einsum("sa,sat->st", policy, moves)
    visits = np.linalg.solve(np.eye(n) - world.discount * chain.T, planner.start)
    np.testing.assert_allclose(found[2].states, visits, rtol=1e-7, atol=1e-10 * visits.sum())


def test_a_lane_does_not_depend_on_its_neighbours(world):
    """To the last bit: the rows of a table are the same whatever is done beside them."""
    n, signed = 2 * L, range(0, L, 5)
    thetas = thetas_for(world, n)
    among = batched_expectations(planners(world, n, signed), thetas)
    for number in (0, 1, 5, n - 1):
        (alone,) = batched_expectations([planners(world, n, signed)[number]], [thetas[number]])
        assert alone[0] == among[number][0]
        assert np.array_equal(alone[1], among[number][1])
        assert np.array_equal(alone[2].states, among[number][2].states)


def test_moves_in_two_stages_are_the_moves():
    for mdp, two_stages in ((highway().mdp, True), (gridworld(side=6).mdp, False), (with_dead_ends(), False)):
        pointer, place, chance, slot, slot_ptr, slot_place, land_ptr, land, share = batched._dynamics(mdp)[0]
        places = land_ptr.size - 1 if two_stages else mdp.n_states
        assert (land_ptr.size > 1) == two_stages
        to = sp.csr_array((chance, place, pointer), shape=(mdp.n_states * mdp.n_actions, places))
        on = sp.csr_array((share, land, land_ptr), shape=(places, mdp.n_states)) if two_stages else sp.eye_array(places)
        assert abs(to @ on - mdp.transitions).max() < 1e-15
        assert np.array_equal(slot_place[slot], place)
        assert np.array_equal(np.repeat(np.arange(mdp.n_states), np.diff(slot_ptr))[slot], _state_of(mdp, pointer))


def _state_of(mdp, pointer):
    return np.repeat(np.arange(mdp.n_states * mdp.n_actions) // mdp.n_actions, np.diff(pointer))


def test_a_lane_has_the_base_policy_of_its_own_problem():
    """Problems that differ in their base policy alone share what was found once for their moves."""
    mdp = random_mdp(6, n_states=6, discount=0.9, start=uniform(6))
    (theta,) = thetas_for(mdp, 1)
    for world in (mdp, based(mdp), mdp.with_prior_policy(np.full((6, 3), 1 / 3)), mdp):
        (planner,) = planners(world, 1)
        (found,) = batched_expectations([planner], [theta])
        wanted = planners(world, 1)[0](world.reward(theta))
        assert found[0] == pytest.approx(wanted.log_partition, rel=1e-10)


@pytest.mark.parametrize("likely", ["counts", "choices"])
def test_what_no_lane_holds_is_evaluated_alone(likely):
    for kind in KINDS:
        mdp, expert, _ = problem(kind)
        objectives = [Objective.from_trajectories(mdp, expert, objective=likely) for _ in range(2)]
        assert (objectives[0].batch_mdp is mdp) == (kind == "endless")
        theta = np.full(mdp.n_features, -1.0)
        for found in evaluate_batch(objectives, [theta, theta]):
            wanted = Objective.from_trajectories(mdp, expert, objective=likely)(theta)
            assert found.value == pytest.approx(wanted.value)
            np.testing.assert_allclose(found.gradient, wanted.gradient, atol=1e-9)


def test_choices_whose_actions_are_not_known_have_no_lane():
    mdp, expert, _ = problem("endless")
    seen = Trajectories(expert.states, expert.offsets)
    assert Objective.from_trajectories(mdp, seen, objective="choices").batch_mdp is None


def test_a_reward_too_large_for_a_lane_is_refused_as_alone():
    mdp = random_mdp(1, discount=0.9, start=uniform(5))
    (planner,) = planners(mdp, 1)
    assert batched_expectations([planner], [np.full(3, 1e260)]) == [None]
    objective = Objective(mdp, planner, np.zeros(3))
    assert evaluate_batch([objective], [np.full(3, 1e260)])[0].value == -np.inf


def test_a_start_in_a_dead_end_is_refused_as_alone():
    mdp = with_dead_ends()
    objective = Objective(mdp, Planner(mdp, "causal", np.eye(9)[7]), np.zeros(mdp.n_features))
    with pytest.raises(ValueError, match="cannot start in state 7"):
        evaluate_batch([objective], [np.zeros(mdp.n_features)])


# ------------------------------------------------------------ searches


def search_together(fits):
    """The result of each search."""
    searches = (model._prepare(*data).steps() for model, data in fits)
    return {number: found[-1] for number, found in run_searches(searches, evaluate_batch)}


def fits(kind):
    mdp, expert, unlabelled = problem(kind)
    common = {"objective": "counts", "theta_max": 20.0, "tol": 1e-7}
    both = (mdp, expert, unlabelled)
    steps = {**common, "solver": "paper", "max_iter": 12, "step_size": 0.05}
    yield from ((MESSI(lambda0=strength, **common), both) for strength in (0.0, 0.1, 1.0))
    yield from ((MESSI(lambda0=strength, **steps), both) for strength in (0.0, 0.1, 1.0))
    yield MaxEntIRL(ridge=0.1, **common), (mdp, expert)
    yield MaxEntIRL(ridge=0.1, theta_max=20.0), (mdp, expert)
    yield EMMaxEnt(steps_per_round=5, **steps), both
    yield MESSI(lambda0=0.1, **{**common, "max_iter": 0}), both


@pytest.mark.parametrize("kind", KINDS)
def test_searches_side_by_side_find_what_each_finds_alone(kind):
    with ignore_convergence_warnings():
        together = search_together(fits(kind))
        alone = [model.fit(*data) for model, data in fits(kind)]
    assert sorted(together) == list(range(len(alone)))
    for number, model in enumerate(alone):
        result = together[number]
        exact = model.solver == "lbfgs"
        np.testing.assert_allclose(
            result.theta, model.theta_, rtol=1e-5 if exact else 1e-9, atol=1e-6 if exact else 1e-9
        )
        assert result.history.objective[-1] == pytest.approx(model.objective_, rel=1e-9)
        assert result.converged == model.converged_
        assert result.reason == model.termination_ or exact


def test_more_searches_than_go_side_by_side_all_end():
    mdp, expert, unlabelled = problem("endless")
    n = MAX_CONCURRENT + 5
    steps = {"objective": "counts", "solver": "paper", "step_size": 0.05}
    models = [MESSI(lambda0=0.1, max_iter=k % 7, **steps) for k in range(n)]
    found = search_together((model, (mdp, expert, unlabelled)) for model in models)
    assert sorted(found) == list(range(n))
    assert all(result.history.iteration[-1] == k % 7 for k, result in found.items())


def test_searches_of_several_problems_go_side_by_side():
    every = [next(fits(kind)) for kind in KINDS]
    with ignore_convergence_warnings():
        found = search_together(every)
        for number, (model, data) in enumerate(every):
            alone = type(model)(**model.get_params(deep=False)).fit(*data)
            np.testing.assert_allclose(found[number].theta, alone.theta_, rtol=1e-5, atol=1e-6)


def test_a_callback_stops_its_own_search_alone():
    mdp, expert, unlabelled = problem("endless")
    steps = {"objective": "counts", "solver": "paper", "step_size": 0.05, "max_iter": 6}
    stopping = MESSI(callback=lambda state: state["iteration"] == 2, **steps)
    found = search_together((model, (mdp, expert, unlabelled)) for model in (stopping, MESSI(**steps)))
    assert found[0].stopped
    assert [int(found[k].history.iteration[-1]) for k in (0, 1)] == [2, 6]


def test_an_error_of_one_search_is_an_error():
    mdp, expert, _ = problem("endless")
    nowhere = Trajectories.from_lists([[0, 99]])
    with pytest.raises(ValueError, match="99"):
        search_together([(MaxEntIRL(), (mdp, expert)), (MaxEntIRL(), (mdp, nowhere))])


def test_solvers_answered_by_a_function_are_the_searches():
    mdp, expert, _ = problem("endless")
    objective = Objective.from_trajectories(mdp, expert)
    model = MaxEntIRL(objective="counts", ridge=0.0, theta_max=20.0).fit(mdp, expert)
    options = {"bound": 20.0, "max_iter": model.max_iter, "tol": model.tol, "unit": objective.unit}
    found = lbfgs(objective, np.zeros(3), scale=objective.scale, **options)
    np.testing.assert_allclose(found.theta, model.theta_, rtol=1e-8)
    taken = paper(objective, np.zeros(3), step_size=0.1, **{**options, "max_iter": 2})
    first = 0.1 * objective(np.zeros(3)).gradient
    np.testing.assert_allclose(taken.theta, first + 0.1 * objective(first).gradient, rtol=1e-10)


# ------------------------------------------------------------ the recursion of L-BFGS


def two_loops(steps, falls, gradient):
    """Nocedal & Wright, Alg. 7.4, as printed."""
    q, alpha = gradient.copy(), []
    for s, y in zip(steps[::-1], falls[::-1], strict=True):
        alpha.append(s @ q / (s @ y))
        q = q - alpha[-1] * y
    r = q * (steps[-1] @ falls[-1]) / (falls[-1] @ falls[-1])
    for s, y, a in zip(steps, falls, alpha[::-1], strict=True):
        r = r + s * (a - y @ r / (s @ y))
    return r


@pytest.mark.parametrize("n", [1, 2, 7, 130])
@pytest.mark.parametrize("held", [0, 3])
def test_two_triangular_systems_are_the_two_loops(n, held):
    d, rng = 12, generator(21)
    root = rng.normal(size=(d, d))
    bend = root @ root.T + np.eye(d)
    secants, pairs = Secants(d), []
    for _ in range(n):
        step = rng.normal(size=d)
        secants.add(step, bend @ step)
        pairs.append((step, bend @ step))
    pairs = pairs[-100:]  # all that is remembered
    free = np.arange(d) >= held
    gradient = rng.normal(size=d)
    steps, falls = (np.array([pair[k] for pair in pairs])[:, free] for k in (0, 1))
    good = (steps * falls).sum(axis=1) > 1e-14 * np.linalg.norm(steps, axis=1) * np.linalg.norm(falls, axis=1)
    wanted = two_loops(steps[good], falls[good], gradient[free]) if good.any() else gradient[free]
    found = secants.solve(gradient, free)
    assert not found[:held].any()
    np.testing.assert_allclose(found[free], wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("n", [0, 1, 7, 130])
def test_secants_added_at_once_are_those_added_in_turn(n):
    d, rng = 12, generator(22)
    root = rng.normal(size=(d, d))
    steps = rng.normal(size=(n, d))
    falls = steps @ (root @ root.T)
    falls[1::5] *= -1.0  # along these it does not bend
    in_turn, at_once = Secants(d), Secants(d)
    for step, fall in zip(steps, falls, strict=True):
        in_turn.add(step, fall)
    at_once.relearn(steps, falls)
    assert at_once.n == in_turn.n
    gradient, free = rng.normal(size=d), np.arange(d) != 4
    wanted = in_turn.solve(gradient, free)
    np.testing.assert_allclose(at_once.solve(gradient, free), wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())


def test_rows_of_a_run_do_not_depend_on_the_figures_done_beside():
    from messirl.paper.experiments.paper_settings import Setting
    from messirl.paper.experiments.runner import Task, run_task, run_tasks

    sweeps = {"unlabelled": (0, 2), "nu": (0.0, 1.0), "lambda": (0.0, 0.5), "em": (1, 2)}
    setting = Setting("pit", lambda0=0.5, iterations=4, u=3, arguments={"pool": 4}, sweeps=sweeps)
    task = Task("pit", setting, "nu", 0, 7)
    every = [replace(task, figure=figure) for figure in setting.figures]
    for one, rows in zip(every, run_tasks(every), strict=True):
        assert run_task(one) == rows
