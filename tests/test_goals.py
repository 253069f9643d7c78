"""Route choice: one absorbing goal per trajectory, solved for all goals together and for one at a time."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from seeds import generator
from worlds import never_falls, to_rounding

from messirl import MDP, MaxEntIRL, Trajectories, soft_policy, state_visitation
from messirl.objective import Objective
from messirl.planning import log_likelihood, optimal_values, soft_values

pytestmark = pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning")

EXACT = {"rtol": 1e-9, "atol": 1e-9}
SEEDS = range(8)


def mdp_of(problem: oracle.Problem) -> MDP:
    positional, keywords = problem.arguments()
    return MDP(*positional, **keywords)


def trajectories_of(data, actions: bool = True) -> Trajectories:
    states, taken, goals = oracle.columns(data)
    return Trajectories.from_lists(states, actions=taken if actions else None, goals=goals)


def random_graph(
    seed: int,
    *,
    by_state: bool,
    discount: float = 1.0,
    stochastic: bool = False,
    sinks: int = 2,
    n: int | None = None,
) -> oracle.Problem:
    """A ring with random chords; a few sinks hang off it, without moves of their own: goals, or else dead ends."""
    rng = generator(seed)
    n = n or int(rng.integers(8, 20))
    ring, n_actions = n - sinks, 4
    p = np.zeros((n, n_actions, n))
    for s in range(ring):
        targets = [(s + 1) % ring, int(rng.integers(ring)), int(rng.integers(n))]
        for a, j in enumerate(targets[: 2 + int(rng.integers(2))]):
            if stochastic and j < ring:
                slip = float(rng.uniform(0.05, 0.4))
                p[s, a, j] += 1 - slip
                p[s, a, (s + 1) % ring] += slip
            else:
                p[s, a, j] = 1.0
    for k in range(sinks):
        p[k, 3, ring + k] = 1.0
    shape = (n, 2) if by_state else (n, n_actions, 2)
    features = rng.uniform(0.5, 1.5, size=shape)
    nothing = np.zeros(n, dtype=bool)
    return oracle.Problem(p, features, None, discount, None, nothing, np.ones((n, n_actions), dtype=bool))


THETA = np.array([-1.6, -1.2])  # every reward below -log 4: the sum over paths is finite


@cache
def graph_and_routes(seed: int, by_state: bool, discount: float = 1.0, stochastic: bool = False):
    """A graph and ten routes to five goals: sinks (no moves of their own) and states of the ring (with moves)."""
    problem = random_graph(seed, by_state=by_state, discount=discount, stochastic=stochastic)
    rng = generator(seed + 1)
    n, ring = problem.n_states, problem.n_states - 2
    goals = [n - 1, n - 2, *(int(g) for g in rng.choice(ring, size=3, replace=False))]
    routes = []
    for i in range(10):
        goal = goals[i % 5]
        towards = problem.towards(goal)
        policy = oracle.policy_of(towards, towards.reward(THETA), oracle.iterate(towards, towards.reward(THETA)))
        start = int(rng.choice([s for s in range(ring) if s != goal]))
        routes.append(oracle.draw(problem, policy, start, 100_000, rng, goal))
    return problem, goals, routes


graphs = pytest.mark.parametrize("by_state", [True, False], ids=["state", "state-action"])
seeds = pytest.mark.parametrize("seed", SEEDS)


@graphs
@seeds
def test_values_and_policy_of_every_goal_match_path_sums_in_many_digits(seed, by_state):
    problem, goals, _ = graph_and_routes(seed, by_state)
    mdp, reward = mdp_of(problem), problem.reward(THETA)
    for goal in goals:
        truth, policy = oracle.mp_path_sums(problem, reward, goal)
        assert_allclose(soft_values(mdp, reward, goal=goal), truth, **EXACT)
        got = soft_policy(mdp, reward, goal=goal)
        known = np.isfinite(truth)
        assert_allclose(got[known], policy[known], **EXACT)
        assert not np.isnan(got).any()
        assert_array_equal(got[goal], 0.0)


@graphs
@seeds
def test_all_goals_at_once_agree_with_one_at_a_time_and_with_plain_iteration(seed, by_state):
    problem, goals, routes = graph_and_routes(seed, by_state)
    mdp = mdp_of(problem)
    weights = generator(seed).uniform(0.5, 2.0, size=len(routes))
    together = Objective.from_trajectories(mdp, trajectories_of(routes), sample_weight=weights)(THETA)
    value, gradient, expected, visitation = 0.0, np.zeros(2), np.zeros(2), np.zeros(problem.n_states)
    for goal in goals:
        chosen = [i for i, x in enumerate(routes) if x[2] == goal]
        share = weights[chosen].sum() / weights.sum()
        alone = Objective.from_trajectories(
            mdp, trajectories_of([routes[i] for i in chosen]), sample_weight=weights[chosen]
        )(THETA)
        value += share * alone.value
        gradient += share * alone.gradient
        expected += share * alone.expected_counts
        visitation += share * alone.visitation
    assert together.value == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert_allclose(together.gradient, gradient, **EXACT)
    assert_allclose(together.expected_counts, expected, **EXACT)
    assert_allclose(together.visitation, visitation, **EXACT)
    truth = oracle.evaluate(problem, THETA, routes, weights=weights)
    assert together.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(together.gradient, truth.gradient, **EXACT)
    assert_allclose(together.expected_counts, truth.expected_counts, **EXACT)


@pytest.mark.parametrize(("discount", "stochastic"), [(1.0, False), (1.0, True), (0.9, False), (0.9, True)])
@graphs
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_gradient_with_goals_matches_plain_iteration_and_differences(seed, by_state, discount, stochastic):
    problem, _, routes = graph_and_routes(seed, by_state, discount, stochastic)
    quadratic = np.array([[0.5, 0.1], [0.1, 0.3]])
    objective = Objective.from_trajectories(mdp_of(problem), trajectories_of(routes), quadratic=quadratic)
    got = objective(THETA)
    truth = oracle.evaluate(problem, THETA, routes, quadratic=quadratic)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)
    numeric = oracle.finite_difference(lambda x: objective(x).value, THETA)
    assert_allclose(got.gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("discount", "stochastic"), [(1.0, True), (0.9, False), (0.9, True), (0.5, True)])
@graphs
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_values_with_goals_match_plain_iteration(seed, by_state, discount, stochastic):
    problem, goals, _ = graph_and_routes(seed, by_state, discount, stochastic)
    mdp, reward = mdp_of(problem), problem.reward(THETA)
    for goal in goals:
        towards = problem.towards(goal)
        truth = oracle.iterate(towards, reward)
        assert_allclose(soft_values(mdp, reward, goal=goal), truth, **EXACT)
        policy, known = oracle.policy_of(towards, reward, truth), np.isfinite(truth)
        assert_allclose(soft_policy(mdp, reward, goal=goal)[known], policy[known], **EXACT)
        assert_allclose(optimal_values(mdp, reward, goal=goal), oracle.iterate(towards, reward, hard=True), **EXACT)


@pytest.mark.parametrize("seed", [0, 3])
def test_mixed_goals_are_separate_problems_whatever_their_order(seed):
    problem, _, routes = graph_and_routes(seed, False)
    mdp = mdp_of(problem)
    a = Objective.from_trajectories(mdp, trajectories_of(routes))(THETA)
    order = generator(seed).permutation(len(routes))
    b = Objective.from_trajectories(mdp, trajectories_of([routes[i] for i in order]))(THETA)
    assert a.value == pytest.approx(b.value, rel=1e-12)
    assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------ far states


def long_chain(n: int, *, by_state: bool, loops: bool) -> oracle.Problem:
    """A street of n houses, forwards and backwards, with loops at every house or without."""
    p = np.zeros((n, 3, n))
    for s in range(n):
        if s + 1 < n:
            p[s, 0, s + 1] = 1.0
        if s > 0:
            p[s, 1, s - 1] = 1.0
        if loops and s % 3 == 0:
            p[s, 2, s] = 1.0
    rng = generator(n)
    shape = (n, 2) if by_state else (n, 3, 2)
    features = np.stack([np.ones(shape[:-1]), rng.uniform(-1, 1, size=shape[:-1])], axis=-1)
    return oracle.Problem(p, features, None, 1.0, None, np.zeros(n, bool), np.ones((n, 3), bool))


@graphs
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("n", "step"), [(20, -50.0), (40, -50.0), (60, -50.0), (60, -14.0), (25, -700.0)])
def test_states_so_far_that_z_underflows_have_the_right_values(n, step, loops, by_state):
    problem = long_chain(n, by_state=by_state, loops=loops)
    theta = np.array([step, 1.0])
    mdp, reward = mdp_of(problem), problem.reward(theta)
    for goal in (0, n // 2, n - 1):
        truth, policy = oracle.mp_path_sums(problem, reward, goal)
        assert truth.min() < -690 or goal == n // 2  # exp(-690) is 1e-300
        assert_allclose(soft_values(mdp, reward, goal=goal), truth, rtol=1e-9)
        assert_allclose(soft_policy(mdp, reward, goal=goal), policy, **EXACT)


@graphs
@pytest.mark.parametrize("step", [-50.0, -3.0])
def test_near_and_far_goals_together_agree_with_one_at_a_time(step, by_state):
    n = 60
    problem = long_chain(n, by_state=by_state, loops=True)
    theta = np.array([step, 0.5])
    mdp = mdp_of(problem)
    routes = [
        (list(range(0, n)), [0] * (n - 1), n - 1),
        (list(range(n - 1, -1, -1)), [1] * (n - 1), 0),
        ([3, 4, 5], [0, 0], 5),
        ([8, 7, 6, 5], [1, 1, 1], 5),
        ([20, 21], [0], 21),
    ]
    together = Objective.from_trajectories(mdp, trajectories_of(routes))(theta)
    alone = [Objective.from_trajectories(mdp, trajectories_of([route]))(theta) for route in routes]
    assert np.isfinite(together.value)
    assert together.value == pytest.approx(np.mean([x.value for x in alone]), rel=1e-9, abs=1e-9)
    assert_allclose(together.gradient, np.mean([x.gradient for x in alone], axis=0), **EXACT)
    value = np.mean(
        [
            oracle.data_counts(problem, route) @ theta
            - oracle.mp_path_sums(problem, problem.reward(theta), route[2])[0][route[0][0]]
            for route in routes
        ]
    )
    assert together.value == pytest.approx(value, rel=1e-9, abs=1e-9)
    truth = oracle.evaluate(problem, theta, routes)
    assert_allclose(together.gradient, truth.gradient, **EXACT)


def test_a_far_goal_underflows_beside_a_reward_that_does_not():
    """Two ways to the goal, one through rewards of -800 a step: its share is e-800, its value still finite."""
    p = np.zeros((5, 2, 5))
    p[0, 0, 1] = p[0, 1, 2] = p[1, 0, 4] = p[2, 0, 3] = p[3, 0, 4] = p[4, 0, 0] = 1.0
    problem = oracle.Problem(p, np.eye(5), None, 1.0, None, np.zeros(5, bool), np.ones((5, 2), bool))
    reward = np.array([-1.0, -2.0, -800.0, -800.0, -1.0])
    truth, policy = oracle.mp_path_sums(problem, reward, 4)
    assert_allclose(soft_values(mdp_of(problem), reward, goal=4), truth, rtol=1e-12)
    assert_allclose(soft_policy(mdp_of(problem), reward, goal=4), policy, atol=1e-12)


@graphs
@pytest.mark.parametrize("lap", [0.0, 1.0, 10.0, 20.0, 30.0, 40.0, 100.0, 800.0, -800.0])
def test_a_cycle_through_the_goal_is_cut_whatever_it_is_worth(lap, by_state):
    """One way round a ring: each goal has one path, of probability one, though a whole lap may be worth e800."""
    n = 4
    p = np.zeros((n, 1, n))
    p[np.arange(n), 0, (np.arange(n) + 1) % n] = 1.0
    mdp = MDP(p, np.ones((n, 1) if by_state else (n, 1, 1)), discount=1.0)
    routes = trajectories_of([([0, 1, 2, 3], [0, 0, 0], 3), ([2, 3, 0, 1], [0, 0, 0], 1), ([1, 2], [0], 2)])
    got = Objective.from_trajectories(mdp, routes)(np.array([lap / n]))
    assert got.value == pytest.approx(0.0, abs=1e-9 * max(1.0, abs(lap)))
    assert_allclose(got.gradient, 0.0, atol=1e-9)
    assert_allclose(got.visitation, np.array([2, 3, 3, 2]) / 3, rtol=1e-9)


@graphs
@pytest.mark.parametrize("lap", [-2.0, 0.5, 5.0, 25.0])
def test_goals_on_a_ring_of_paying_steps_agree_with_path_sums(lap, by_state):
    """Two parallel streets between neighbours and a costly way to wait: cycles pay, except that the goal cuts them."""
    n = 6
    p = np.zeros((n, 3, n))
    p[np.arange(n), 0, (np.arange(n) + 1) % n] = p[np.arange(n), 1, (np.arange(n) + 1) % n] = 1.0
    p[np.arange(n), 2, np.arange(n)] = 1.0
    features = np.zeros((n, 3, 2))
    features[:, 0] = [1.0, 0.3]
    features[:, 1] = [1.0, -0.2]
    features[:, 2, 1] = -3.0
    if by_state:  # waiting is then worth what moving is: leave it out
        p[:, 2] = 0.0
        features = np.stack([np.ones(n), np.linspace(-0.5, 0.5, n)], axis=1)
    problem = oracle.Problem(p, features, None, 1.0, None, np.zeros(n, bool), np.ones((n, 3), bool))
    theta = np.array([lap / n, 1.0])
    routes = [([0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 0], 5), ([4, 5, 0], [1, 1], 0), ([3, 4, 5, 0, 1], [0] * 4, 1)]
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(routes))(theta)
    value, expected = 0.0, np.zeros(2)
    for route in routes:
        values, policy = oracle.mp_path_sums(problem, problem.reward(theta), route[2])
        start = np.eye(n)[route[0][0]]
        value += (oracle.data_counts(problem, route) @ theta - values[route[0][0]]) / 3
        towards = problem.towards(route[2])
        expected += oracle.features_of(towards, policy, oracle.visits(towards, policy, start)) / 3
    assert got.value == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert_allclose(got.expected_counts, expected, **EXACT)


def test_values_so_high_that_z_overflows_are_right():
    """A ladder without cycles, two rungs a step, 300 to 500 a step: z reaches e6000."""
    n = 16
    p = np.zeros((n, 2, n))
    for s in range(n - 1):
        p[s, 0, s + 1] = p[s, 1, min(s + 2, n - 1)] = 1.0
    features = generator(3).uniform(300, 500, size=(n, 1))
    problem = oracle.Problem(p, features, None, 1.0, None, np.zeros(n, bool), np.ones((n, 2), bool))
    mdp, theta = mdp_of(problem), np.ones(1)
    truth, _ = oracle.mp_path_sums(problem, problem.reward(theta), n - 1)
    assert_allclose(soft_values(mdp, problem.reward(theta), goal=n - 1), truth, rtol=1e-12)
    routes = [(list(range(n)), [0] * (n - 1), n - 1), ([4, 6, 7], [1, 0], 7)]
    got = Objective.from_trajectories(mdp, trajectories_of(routes))(theta)
    expected = oracle.evaluate(problem, theta, routes)
    assert got.value == pytest.approx(expected.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, expected.gradient, rtol=1e-9, atol=1e-8)


# ------------------------------------------------------------ conventions


def test_a_goal_counts_once_whether_or_not_it_has_moves():
    for moves in (True, False):
        p = np.zeros((3, 2, 3))
        p[0, 0, 1] = p[0, 1, 2] = p[1, 0, 2] = 1.0
        if moves:
            p[2, 0, 0] = p[2, 1, 1] = 1.0
        reward = np.array([-1.0, -2.0, -3.0])
        mdp = MDP(p, np.eye(3), discount=1.0)
        values = soft_values(mdp, reward, goal=2)
        assert_allclose(values, [np.logaddexp(-1 - 2 - 3, -1 - 3), -5.0, -3.0], rtol=1e-12)
        edge = np.repeat(reward[:, None], 2, axis=1)
        by_action = MDP(p, np.repeat(np.eye(3)[:, None], 2, axis=1), discount=1.0)
        assert_allclose(soft_values(by_action, edge, goal=2), [np.logaddexp(-1 - 2, -1), -2.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_terminal_states_other_than_the_goal_are_dead_ends(discount):
    problem = random_graph(5, by_state=True, sinks=2, n=10, discount=discount)
    terminal = np.zeros(10, dtype=bool)
    terminal[[3, 9]] = True
    problem = replace(problem, terminal=terminal)
    mdp, reward = mdp_of(problem), problem.reward(THETA)
    for goal in (9, 5, 3):
        truth = oracle.iterate(problem.towards(goal), reward)
        values = soft_values(mdp, reward, goal=goal)
        assert_allclose(values, truth, **EXACT)
        assert all(values[s] == -np.inf for s in (3, 9) if s != goal)


def test_goals_with_a_horizon_are_an_error():
    problem = replace(long_chain(5, by_state=True, loops=False), horizon=5)
    mdp = mdp_of(problem)
    with pytest.raises(ValueError, match=r"(?i)goal|horizon"):
        soft_policy(mdp, np.zeros(5), goal=4)
    with pytest.raises(ValueError, match=r"(?i)goal|horizon"):
        Objective.from_trajectories(mdp, trajectories_of([([0, 1, 2, 3, 4], [0] * 4, 4)]))


@pytest.mark.parametrize(
    "states", [[0, 1, 2, 3, 2], [0, 1, 2], [0, 1, 2, 3, 4, 3]], ids=["goes on", "stops short", "passes"]
)
def test_a_route_ends_where_it_first_meets_its_goal(states):
    goal = 3
    mdp = mdp_of(long_chain(6, by_state=True, loops=False))
    with pytest.raises(ValueError, match=r"(?i)goal"):
        Objective.from_trajectories(mdp, Trajectories.from_lists([states], goals=[goal]))


def test_a_goal_no_start_can_reach_leaves_no_finite_objective():
    p = np.zeros((3, 1, 3))
    p[0, 0, 1] = p[1, 0, 0] = p[2, 0, 0] = 1.0
    mdp = MDP(p, np.eye(3), discount=1.0)
    values = soft_values(mdp, np.array([-1.0, -1.0, -1.0]), goal=2)
    assert_array_equal(values, [-np.inf, -np.inf, -1.0])


@graphs
def test_log_likelihood_with_a_policy_for_each_goal(by_state):
    problem, goals, routes = graph_and_routes(4, by_state)
    mdp, reward = mdp_of(problem), problem.reward(THETA)
    policies = {goal: soft_policy(mdp, reward, goal=goal) for goal in goals}
    got = log_likelihood(mdp, policies, trajectories_of(routes))
    # Deterministic moves, no discount: the log-probability is theta' f - V.
    exact = [
        oracle.data_counts(problem, x) @ THETA - oracle.mp_path_sums(problem, reward, x[2])[0][x[0][0]] for x in routes
    ]
    assert_allclose(got, exact, **EXACT)
    without = log_likelihood(mdp, policies, trajectories_of(routes, actions=False))
    exact = [
        sum(np.log(policies[g][s] @ problem.transitions[s, :, j]) for s, j in itertools.pairwise(x))
        for x, _, g in routes
    ]
    assert_allclose(without, exact, **EXACT)


@graphs
def test_state_visitation_towards_a_goal_matches_a_dense_solve(by_state):
    for discount in (1.0, 0.9):
        problem, goals, _ = graph_and_routes(2, by_state, discount, discount < 1)
        start = np.zeros(problem.n_states)
        start[:3] = 1 / 3
        problem = replace(problem, start=start)
        mdp, reward = mdp_of(problem), problem.reward(THETA)
        for goal in goals:
            policy = soft_policy(mdp, reward, goal=goal)
            got = state_visitation(mdp, policy, goal=goal)
            assert_allclose(got, oracle.visits(problem.towards(goal), policy, start), **EXACT)


# ------------------------------------------------------------ fitting


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("discount", "stochastic"), [(1.0, False), (1.0, True), (0.9, False)])
@graphs
def test_fitting_routes_finds_what_scipy_finds(by_state, discount, stochastic):
    problem, goals, routes = graph_and_routes(6, by_state, discount, stochastic)
    quadratic = 0.05 * np.eye(2)
    est = MaxEntIRL(objective="counts", ridge=0.05, theta_max=8.0, tol=1e-8, max_iter=2000, theta_init=THETA)
    est.fit(mdp_of(problem), trajectories_of(routes))
    assert never_falls(est.history_["objective"])

    def minus(theta):
        try:
            e = oracle.evaluate(problem, theta, routes, quadratic=quadratic)
        except ArithmeticError:
            return 1e6, np.zeros(2)
        return -e.value, -e.gradient

    theta = THETA
    for _ in range(2):
        found = minimize(
            minus,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-8.0, 8.0)] * 2,
            options={"ftol": 0.0, "gtol": 1e-10},
        )
        theta = found.x
    assert est.objective_ == pytest.approx(-found.fun, rel=1e-8, abs=1e-8)
    assert_allclose(est.theta_, theta, atol=1e-5)
    # What the estimator holds for each goal, and the visits it averages over starts and goals.
    mdp, reward = mdp_of(problem), est.reward_
    for goal in goals:
        assert_allclose(est.policy_[goal], soft_policy(mdp, reward, goal=goal), **EXACT)
    visitation = np.zeros(problem.n_states)
    for states, _, goal in routes:
        start = np.zeros(problem.n_states)
        start[states[0]] = 1.0
        visitation += oracle.solve_endless(problem, est.theta_, start, goal).visitation / len(routes)
    assert_allclose(est.visitation_, visitation, rtol=1e-8, atol=1e-8)


@to_rounding
def test_the_goals_own_moves_do_not_hinder_the_search_for_a_start():
    """Zero is no start (waiting at 0 is free); any theta below it is, though it makes waiting at the goal pay."""
    p = np.zeros((2, 2, 2))
    p[0, 0, 0] = p[0, 1, 1] = p[1, 0, 1] = 1.0
    features = np.array([[[1.0], [0.0]], [[-1.0], [0.0]]])
    mdp = MDP(p, features, discount=1.0)
    routes = trajectories_of([([0, 0, 1], [0, 1], 1), ([0, 1], [1], 1)])
    est = MaxEntIRL(theta_max=10.0, tol=1e-9, max_iter=500).fit(mdp, routes)
    # One wait in three choices: the policy waits with probability exp(theta).
    assert est.theta_[0] == pytest.approx(np.log(1 / 3), abs=1e-6)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(seed=st.integers(100, 1000), by_state=st.booleans())
def test_permuted_labels_of_states_give_permuted_values(seed, by_state):
    problem = random_graph(seed, by_state=by_state)
    n = problem.n_states
    order = generator(seed).permutation(n)
    other = replace(
        problem,
        transitions=problem.transitions[np.ix_(order, range(4), order)],
        features=problem.features[order],
    )
    goal = int(np.flatnonzero(order == n - 1)[0])
    a = soft_values(mdp_of(problem), problem.reward(THETA), goal=n - 1)
    b = soft_values(mdp_of(other), other.reward(THETA), goal=goal)
    assert_allclose(b, a[order], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize("stochastic", [False, True])
def test_what_lies_beyond_a_goal_need_have_no_finite_value(stochastic, objective):
    """Behind the goal 1 there is a place, 2, where one may go round and round; no trip to 1 gets there."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[0, 1, 3] = transitions[3, 0, 1] = transitions[1, 0, 2] = 1.0
    transitions[2, 0, 2] = transitions[2, 1, 1] = 1.0
    if stochastic:
        transitions[0, 1] = [0.0, 0.5, 0.0, 0.5]
    features = np.zeros((4, 2, 2))
    features[[0, 3], :, 0] = features[2, 0, 1] = 1.0
    mdp = MDP(transitions, features, discount=1.0)
    trips = Trajectories.from_lists([[0, 1], [0, 3, 1]], actions=[[0], [1, 0]], goals=[1, 1])
    here = Objective.from_trajectories(mdp, trips, objective=objective)
    costly, free, paid = (here(np.array([-1.0, price])) for price in (-1.0, 0.0, 5.0))
    assert np.isfinite(costly.value)
    assert free.value == pytest.approx(costly.value, rel=1e-12)
    assert paid.value == pytest.approx(costly.value, rel=1e-12)
    assert_allclose(paid.gradient, costly.gradient, rtol=1e-12, atol=1e-12)
    assert_allclose(paid.gradient[1], 0.0, atol=1e-12)
