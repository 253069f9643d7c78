"""The library against enumeration of every trajectory, plain iteration, finite differences and SciPy's optimiser."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from seeds import generator
from worlds import never_falls

from messirl import (
    MDP,
    MESSI,
    EMMaxEnt,
    MaxEntIRL,
    Trajectories,
    feature_counts,
    soft_policy,
    state_visitation,
)
from messirl.objective import Objective
from messirl.planning import log_likelihood, optimal_policy, optimal_values, soft_values
from messirl.similarity import RBF

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
]
ignore_convergence = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

EXACT = {"rtol": 1e-9, "atol": 1e-9}
ENTROPIES = ["causal", "noncausal"]


def mdp_of(problem: oracle.Problem) -> MDP:
    positional, keywords = problem.arguments()
    return MDP(*positional, **keywords)


def trajectories_of(data, actions: bool = True) -> Trajectories:
    states, taken, goals = oracle.columns(data)
    return Trajectories.from_lists(states, actions=taken if actions else None, goals=goals)


# ------------------------------------------------------------ the problems


def _finite_cases() -> list[dict]:
    cases = []
    for stochastic, terminal, blocked, by_state, discount in product(*[(False, True)] * 4, (1.0, 0.9, 0.5)):
        cases.append(
            {
                "stochastic": stochastic,
                "terminal": terminal,
                "blocked": blocked,
                "by_state": by_state,
                "discount": discount,
                "dead_end": False,
            }
        )
    for stochastic, terminal, by_state, discount in product(*[(False, True)] * 3, (1.0, 0.9)):
        cases.append(
            {
                "stochastic": stochastic,
                "terminal": terminal,
                "blocked": True,
                "by_state": by_state,
                "discount": discount,
                "dead_end": True,
            }
        )
    return [case | {"seed": 1000 + i, "horizon": 2 + i % 4} for i, case in enumerate(cases)]


def _name(case: dict) -> str:
    words = [name for name in ("stochastic", "terminal", "blocked", "dead_end") if case[name]]
    words += ["state" if case["by_state"] else "state-action", f"gamma{case['discount']}"]
    return "-".join(words + ([f"H{case['horizon']}"] if case.get("horizon") else [])) + f"-{case['seed']}"


def _endless_cases() -> list[dict]:
    cases = []
    for i, (stochastic, terminal, blocked, by_state) in enumerate(product(*[(False, True)] * 4)):
        cases.append(
            {
                "stochastic": stochastic,
                "terminal": terminal,
                "blocked": blocked,
                "by_state": by_state,
                "dead_end": i % 4 == 3,
                "discount": (0.9, 0.5)[i % 2],
                "seed": 2000 + i,
            }
        )
    for i, (stochastic, blocked, by_state, dead_end) in enumerate(product(*[(False, True)] * 4)):
        cases.append(
            {
                "stochastic": stochastic,
                "terminal": True,
                "blocked": blocked,
                "by_state": by_state,
                "dead_end": dead_end,
                "discount": 1.0,
                "positive": True,
                "seed": 3000 + i,
            }
        )
    return cases


FINITE = _finite_cases()
ENDLESS = _endless_cases()  # discounted, then episodic with gamma = 1

each_finite = pytest.mark.parametrize("case", range(len(FINITE)), ids=[_name(c) for c in FINITE])
each_endless = pytest.mark.parametrize("case", range(len(ENDLESS)), ids=[_name(c) for c in ENDLESS])
each_entropy = pytest.mark.parametrize("entropy", ENTROPIES)


@cache
def finite(case: int) -> tuple[oracle.Problem, np.ndarray, list]:
    """Problem, a theta to look at, and three trajectories of another theta."""
    problem = oracle.random_problem(**FINITE[case])
    rng = generator(case)
    theta = rng.normal(size=problem.n_features)
    return problem, theta, oracle.draw_some(problem, rng.normal(size=problem.n_features), 3, case)


@cache
def enumerated(case: int, entropy: str) -> oracle.Solution:
    problem, theta, _ = finite(case)
    return (oracle.enumerate_causal if entropy == "causal" else oracle.enumerate_noncausal)(problem, theta)


@cache
def endless(case: int) -> tuple[oracle.Problem, np.ndarray, list]:
    problem = oracle.random_problem(**ENDLESS[case])
    rng = generator(case)
    if problem.discount == 1.0:  # every reward below -log 3: the value is finite
        theta = -rng.uniform(2.6, 3.5, size=problem.n_features) / problem.n_features
        length = 10_000
    else:
        theta, length = rng.normal(size=problem.n_features), 30
    return problem, theta, oracle.draw_some(problem, theta, 3, case, length)


def quadratic_for(d: int) -> np.ndarray:
    a = generator(d).normal(size=(d, d))
    return 0.3 * a @ a.T


# ------------------------------------------------------------ the oracle against itself


@each_entropy
@pytest.mark.parametrize("case", range(0, len(FINITE), 3))
def test_enumerated_probabilities_sum_to_one_and_agree_with_the_recursion_in_many_digits(case, entropy):
    problem, theta, _ = finite(case)
    solution = enumerated(case, entropy)
    assert sum(p for _, _, p in solution.trajectories) == pytest.approx(1.0, abs=1e-12)
    values, policy = oracle.mp_finite(problem, problem.reward(theta), entropy=entropy)
    assert_allclose(solution.values, values, rtol=1e-12, atol=1e-12)
    assert_allclose(solution.policy, policy, atol=1e-12)


@pytest.mark.parametrize("case", range(0, len(ENDLESS), 2))
def test_plain_iteration_agrees_with_many_digits_and_its_gradient_with_differences(case):
    problem, theta, expert = endless(case)
    solution = oracle.solve_endless(problem, theta, problem.start)
    if problem.discount < 1:
        values, policy = oracle.mp_endless(problem, problem.reward(theta))
    elif ENDLESS[case]["stochastic"]:
        values, policy = solution.values, solution.policy
    else:
        values, policy = oracle.mp_path_sums(problem, problem.reward(theta))
    assert_allclose(solution.values, values, rtol=1e-11, atol=1e-11)
    assert_allclose(solution.policy, policy, atol=1e-11)
    numeric = oracle.finite_difference(lambda x: oracle.evaluate(problem, x, expert).value, theta)
    assert_allclose(oracle.evaluate(problem, theta, expert).gradient, numeric, atol=1e-8)


# ------------------------------------------------------------ finite horizon


@each_entropy
@each_finite
def test_values_and_policy_match_enumeration(case, entropy):
    problem, theta, _ = finite(case)
    truth = enumerated(case, entropy)
    mdp, reward = mdp_of(problem), problem.reward(theta)
    values = soft_values(mdp, reward, entropy=entropy)
    policy = soft_policy(mdp, reward, entropy=entropy)
    assert values.shape == (problem.horizon, problem.n_states)
    assert policy.shape == (problem.horizon - 1, problem.n_states, problem.n_actions)
    assert_allclose(values, truth.values, **EXACT)
    assert not np.isnan(policy).any()
    known = np.isfinite(truth.values[:-1])
    assert_allclose(policy[known], truth.policy[known], **EXACT)
    assert_array_equal(policy[:, problem.terminal], 0.0)


@each_entropy
@each_finite
def test_trajectory_probabilities_match_enumeration(case, entropy):
    problem, theta, _ = finite(case)
    truth = enumerated(case, entropy)
    mdp, reward = mdp_of(problem), problem.reward(theta)
    listed = [(states, actions, None) for states, actions, _ in truth.trajectories]
    everything = trajectories_of(listed)
    moves = np.array(
        [
            np.log([problem.transitions[s, a, j] for s, a, j in zip(x[:-1], u, x[1:], strict=True)]).sum()
            for x, u, _ in listed
        ]
    )
    first = np.array([x[0] for x, _, _ in listed])
    if entropy == "causal":
        conditional = log_likelihood(mdp, soft_policy(mdp, reward), everything) + moves
    else:
        values = soft_values(mdp, reward, entropy="noncausal")[0]
        conditional = feature_counts(mdp, everything) @ theta + moves - values[first]
    probability = problem.start[first] * np.exp(conditional)
    assert_allclose(probability, [p for _, _, p in truth.trajectories], **EXACT)
    assert probability.sum() == pytest.approx(1.0, abs=1e-9)


@each_finite
def test_log_likelihood_without_actions_sums_over_them(case):
    problem, theta, _ = finite(case)
    truth = enumerated(case, "causal")
    mdp = mdp_of(problem)
    pooled: dict[tuple, float] = {}
    for states, _, probability in truth.trajectories:
        pooled[tuple(states)] = pooled.get(tuple(states), 0.0) + probability
    sequences = Trajectories.from_lists([list(states) for states in pooled])
    got = log_likelihood(mdp, soft_policy(mdp, problem.reward(theta)), sequences)
    first = [states[0] for states in pooled]
    assert_allclose(problem.start[first] * np.exp(got), list(pooled.values()), **EXACT)


@each_finite
def test_feature_counts_are_discounted_sums(case):
    problem, _, _ = finite(case)
    listed = [(states, actions, None) for states, actions, _ in enumerated(case, "causal").trajectories[:200]]
    got = feature_counts(mdp_of(problem), trajectories_of(listed))
    assert_allclose(got, [oracle.data_counts(problem, x) for x in listed], rtol=1e-12, atol=1e-12)
    if problem.by_state:
        got = feature_counts(mdp_of(problem), trajectories_of(listed, actions=False))
        assert_allclose(got, [oracle.data_counts(problem, x) for x in listed], rtol=1e-12, atol=1e-12)


@each_entropy
@each_finite
def test_dual_value_expected_counts_and_gradient_match_enumeration(case, entropy):
    problem, theta, expert = finite(case)
    quadratic = quadratic_for(problem.n_features)
    truth = oracle.evaluate(problem, theta, expert, entropy=entropy, quadratic=quadratic)
    objective = Objective.from_trajectories(
        mdp_of(problem), trajectories_of(expert), entropy=entropy, quadratic=quadratic
    )
    got = objective(theta)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.expected_counts, truth.expected_counts, **EXACT)
    assert_allclose(got.gradient, truth.gradient, **EXACT)
    assert_allclose(got.expected_counts, enumerated(case, entropy).expected_counts, **EXACT)
    if entropy == "causal":
        assert_allclose(got.visitation, enumerated(case, entropy).visitation, **EXACT)


@each_finite
def test_state_visitation_matches_enumeration(case):
    problem, theta, _ = finite(case)
    mdp = mdp_of(problem)
    got = state_visitation(mdp, soft_policy(mdp, problem.reward(theta)))
    assert_allclose(got, enumerated(case, "causal").visitation, **EXACT)


@each_entropy
@each_finite
def test_gradient_agrees_with_differences_of_the_value(case, entropy):
    problem, theta, expert = finite(case)
    objective = Objective.from_trajectories(
        mdp_of(problem), trajectories_of(expert), entropy=entropy, quadratic=quadratic_for(problem.n_features)
    )
    numeric = oracle.finite_difference(lambda x: objective(x).value, theta)
    assert_allclose(objective(theta).gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [i for i, c in enumerate(FINITE) if not c["stochastic"] and c["discount"] == 1.0])
def test_noncausal_equals_causal_on_deterministic_moves_without_discount(case):
    problem, theta, expert = finite(case)
    mdp, reward, data = mdp_of(problem), problem.reward(theta), trajectories_of(expert)
    causal, noncausal = (soft_values(mdp, reward, entropy=e) for e in ENTROPIES)
    assert_allclose(causal, noncausal, **EXACT)
    causal_policy, noncausal_policy = (soft_policy(mdp, reward, entropy=e) for e in ENTROPIES)
    assert_allclose(causal_policy, noncausal_policy, **EXACT)
    a, b = (Objective.from_trajectories(mdp, data, entropy=e)(theta) for e in ENTROPIES)
    assert a.value == pytest.approx(b.value, rel=1e-9, abs=1e-9)
    assert_allclose(a.gradient, b.gradient, **EXACT)
    # ... and then the dual is the log-likelihood itself.
    per_trajectory = feature_counts(mdp, data) @ theta - causal[0][[x[0][0] for x in expert]]
    assert_allclose(log_likelihood(mdp, causal_policy, data), per_trajectory, **EXACT)


@each_entropy
@pytest.mark.parametrize("case", range(0, len(FINITE), 5))
def test_without_a_start_the_experts_first_states_are_the_start(case, entropy):
    problem, theta, expert = finite(case)
    problem = replace(problem, start=None)
    weights = np.array([1.0, 2.0, 4.0])
    truth = oracle.evaluate(problem, theta, expert, entropy=entropy, weights=weights)
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert), entropy=entropy, sample_weight=weights)(
        theta
    )
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)


@pytest.mark.parametrize("case", range(1, len(FINITE), 7))
def test_sparse_input_is_the_same_problem(case):
    problem, theta, expert = finite(case)
    (transitions, features), keywords = problem.arguments()
    n, m = problem.n_states, problem.n_actions
    flat = features if problem.by_state else features.reshape(n * m, -1)
    other = MDP(sparse.csr_array(transitions.reshape(n * m, n)), sparse.csr_array(flat), **keywords)
    reward = problem.reward(theta)
    assert_allclose(soft_values(other, reward), soft_values(mdp_of(problem), reward), rtol=1e-13, atol=1e-13)
    a, b = (Objective.from_trajectories(x, trajectories_of(expert))(theta) for x in (other, mdp_of(problem)))
    assert_allclose(a.gradient, b.gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", range(0, len(FINITE), 2))
def test_optimal_values_and_policy_match_the_best_of_every_plan(case):
    problem, theta, _ = finite(case)
    reward = problem.reward(theta)
    mdp = mdp_of(problem)

    def best(s: int, t: int) -> tuple[float, int | None]:
        if problem.dead(s):
            return -np.inf, None
        if problem.terminal[s] or t == problem.horizon - 1:
            return (reward[s] if problem.by_state else 0.0), None
        found = []
        for a, successors in problem.moves(s):
            ahead = sum(p * best(j, t + 1)[0] for j, p in successors)
            found.append(((reward[s] if problem.by_state else reward[s, a]) + problem.discount * ahead, -a))
        value, a = max(found)
        return value, -a

    values = optimal_values(mdp, reward)
    policy = optimal_policy(mdp, reward)
    for t, s in product(range(problem.horizon), range(problem.n_states)):
        value, action = best(s, t)
        assert values[t, s] == pytest.approx(value, rel=1e-9, abs=1e-9)
        if action is not None and np.isfinite(value):
            assert_array_equal(np.sort(policy[t, s]), [0.0] * (problem.n_actions - 1) + [1.0])
            a = int(policy[t, s].argmax())
            chosen = [(a2, succ) for a2, succ in problem.moves(s) if a2 == a]
            assert chosen, "an action that is not allowed"
            ahead = sum(p * best(j, t + 1)[0] for j, p in chosen[0][1])
            worth = (reward[s] if problem.by_state else reward[s, a]) + problem.discount * ahead
            assert worth == pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("goal", [None, 3])
def test_at_discount_1_an_optimal_policy_ends_where_waiting_costs_nothing(goal):
    rng, n = generator(5), 12
    moves = np.zeros((n, 3, n))
    for s in range(n - 1):  # wait; go around; ahead or back, by chance
        moves[s, 0, s] = moves[s, 1, max(s - 1, 0)] = 1.0
        moves[s, 2, s + 1], moves[s, 2, max(s - 2, 0)] = 0.7, 0.3
    reward = np.where(np.arange(n) == (n - 1 if goal is None else goal), 1.0, 0.0)
    ends = np.arange(n) == n - 1 if goal is None else None
    mdp = MDP(moves, np.eye(n), discount=1.0, terminal=ends, start=rng.dirichlet(np.ones(n)))
    policy = optimal_policy(mdp, reward, goal=goal)
    inside = slice(0, n - 1) if goal is None else slice(0, goal)
    assert_allclose(optimal_values(mdp, reward, goal=goal)[inside], 1.0, rtol=1e-9)
    chain = np.einsum("sa,sat->st", policy, moves)[inside, inside]
    assert np.abs(np.linalg.eigvals(chain)).max() < 1.0
    if goal is None:
        assert state_visitation(mdp, policy)[-1] == pytest.approx(1.0)


def test_where_waiting_costs_nothing_the_way_out_is_one_that_costs_least():
    moves = np.zeros((2, 3, 2))
    moves[0, 0, 0] = moves[0, 1:, 1] = 1.0  # wait; leave at a cost; leave
    reward = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    mdp = MDP(moves, np.ones((2, 3, 1)), discount=1.0, terminal=[False, True], start=[1.0, 0.0])
    assert_array_equal(optimal_policy(mdp, reward)[0], [0.0, 0.0, 1.0])


def test_optimal_policy_breaks_exact_ties_towards_the_lowest_action():
    transitions = np.zeros((2, 3, 2))
    transitions[:, 0, 0] = transitions[:, 1, 1] = transitions[:, 2, 1] = 1.0
    features = np.array([[0.0], [1.0]])
    for horizon in (3, None):
        mdp = MDP(transitions, features, start=[1.0, 0.0], discount=0.5, horizon=horizon)
        policy = optimal_policy(mdp, features[:, 0])
        assert_array_equal(policy.reshape(-1, 3), np.tile([0.0, 1.0, 0.0], (policy.size // 3, 1)))


# ------------------------------------------------------------ endless: discounted and episodic


@each_endless
def test_endless_values_policy_and_visits_match_plain_iteration(case):
    problem, theta, _ = endless(case)
    truth = oracle.solve_endless(problem, theta, problem.start)
    mdp, reward = mdp_of(problem), problem.reward(theta)
    values, policy = soft_values(mdp, reward), soft_policy(mdp, reward)
    assert values.shape == (problem.n_states,)
    assert policy.shape == (problem.n_states, problem.n_actions)
    assert_allclose(values, truth.values, **EXACT)
    known = np.isfinite(truth.values)
    assert_allclose(policy[known], truth.policy[known], **EXACT)
    assert not np.isnan(policy).any()
    assert_allclose(state_visitation(mdp, policy), truth.visitation, **EXACT)


@each_endless
def test_endless_objective_and_gradient_match_plain_iteration_and_differences(case):
    problem, theta, expert = endless(case)
    quadratic = quadratic_for(problem.n_features)
    truth = oracle.evaluate(problem, theta, expert, quadratic=quadratic)
    objective = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert), quadratic=quadratic)
    got = objective(theta)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.expected_counts, truth.expected_counts, **EXACT)
    assert_allclose(got.gradient, truth.gradient, **EXACT)
    numeric = oracle.finite_difference(lambda x: objective(x).value, theta)
    assert_allclose(got.gradient, numeric, rtol=1e-6, atol=1e-6)


@each_endless
def test_endless_counts_of_a_cut_trajectory_stand_for_an_endless_one(case):
    problem, _, expert = endless(case)
    got = feature_counts(mdp_of(problem), trajectories_of(expert))
    assert_allclose(got, [oracle.data_counts(problem, x) for x in expert], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", range(0, len(ENDLESS), 2))
def test_endless_without_a_start_uses_the_experts_first_states(case):
    problem, theta, expert = endless(case)
    problem = replace(problem, start=None)
    truth = oracle.evaluate(problem, theta, expert)
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert))(theta)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)


@pytest.mark.parametrize("case", range(len(ENDLESS)))
def test_endless_optimal_values_match_plain_iteration(case):
    problem, theta, _ = endless(case)
    truth = oracle.iterate(problem, problem.reward(theta), hard=True)
    mdp, reward = mdp_of(problem), problem.reward(theta)
    assert_allclose(optimal_values(mdp, reward), truth, **EXACT)
    policy = optimal_policy(mdp, reward)
    going = np.isfinite(truth) & ~problem.terminal
    q = oracle.backup(problem, reward, truth)
    assert_allclose(policy[going].sum(axis=1), 1.0)
    assert_allclose(q[going, policy[going].argmax(axis=1)], truth[going], **EXACT)


# ------------------------------------------------------------ fitting

BOX = 5.0
FITS = {
    "finite stochastic": {"stochastic": True, "by_state": True, "horizon": 4, "discount": 0.9, "seed": 41},
    "finite terminal state-action": {
        "terminal": True,
        "blocked": True,
        "by_state": False,
        "horizon": 4,
        "seed": 42,
    },
    "finite dead end": {
        "stochastic": True,
        "terminal": True,
        "dead_end": True,
        "horizon": 4,
        "discount": 1.0,
        "seed": 43,
    },
    "endless": {"stochastic": True, "by_state": True, "discount": 0.9, "seed": 44, "n_states": 5},
    "endless terminal state-action": {
        "stochastic": True,
        "terminal": True,
        "by_state": False,
        "discount": 0.5,
        "seed": 45,
    },
    "episodic": {
        "stochastic": False,
        "terminal": True,
        "discount": 1.0,
        "positive": True,
        "seed": 46,
        "n_states": 5,
    },
    "episodic stochastic": {
        "stochastic": True,
        "terminal": True,
        "by_state": False,
        "discount": 1.0,
        "positive": True,
        "seed": 47,
    },
}
each_fit = pytest.mark.parametrize("name", list(FITS))


@cache
def fitting_problem(name: str) -> tuple[oracle.Problem, list, list]:
    """Problem, four expert trajectories and six others of a different theta."""
    problem = oracle.random_problem(**({"n_features": 2} | FITS[name]))
    rng = generator(FITS[name]["seed"])
    if FITS[name].get("positive"):  # met or not, every state must have a finite value for the oracle: let all be met
        worth = oracle.living(problem) & ~problem.terminal
        problem = replace(problem, start=worth / worth.sum())
        good = np.array([-1.5, -1.5])
        bad = np.array([-3.0, -1.0])
        length = 10_000
    else:
        good, bad, length = rng.normal(size=2), rng.normal(size=2), 40
    return (
        problem,
        oracle.draw_some(problem, good, 4, FITS[name]["seed"], length),
        oracle.draw_some(problem, bad, 6, FITS[name]["seed"] + 1, length),
    )


def best_theta(problem, expert, quadratic, entropy="causal", box=BOX, start=None) -> tuple[np.ndarray, float]:
    """SciPy on the oracle's own objective; a theta without a finite value is a wall."""

    def minus(theta):
        try:
            e = oracle.evaluate(problem, theta, expert, entropy=entropy, quadratic=quadratic)
        except ArithmeticError:
            return 1e6, np.zeros_like(theta)
        return -e.value, -e.gradient

    theta = np.zeros(problem.n_features) if start is None else np.array(start, dtype=float)
    for _ in range(3):  # restarts clear a curvature estimate spoilt by rounding
        found = minimize(
            minus,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-box, box)] * len(theta),
            options={"ftol": 0.0, "gtol": 1e-11, "maxiter": 1000, "maxcor": 20},
        )
        theta = found.x
    return theta, -found.fun


def start_for(name: str) -> np.ndarray:
    return np.array([-1.5, -1.5]) if FITS[name].get("positive") else np.zeros(2)


def policy_at(problem, theta, expert, entropy="causal") -> tuple[np.ndarray, np.ndarray]:
    """Policy and a mask of the rows that are visited with positive probability."""
    if problem.horizon is None:
        solution = oracle.solve_endless(problem, theta, problem.start)
        return solution.policy, (solution.visitation > 1e-12) & ~problem.terminal
    solver = oracle.enumerate_causal if entropy == "causal" else oracle.enumerate_noncausal
    solution = solver(problem, theta)
    seen = np.zeros(solution.policy.shape[:2], dtype=bool)
    for states, actions, _ in solution.trajectories:
        for t in range(len(actions)):
            seen[t, states[t]] = True
    return solution.policy, seen


def assert_best(est, problem, expert, quadratic, entropy, start, *, unique: bool) -> None:
    theta, value = best_theta(problem, expert, quadratic, entropy, start=start)
    assert est.objective_ == pytest.approx(value, abs=1e-8, rel=1e-8)
    truth = oracle.evaluate(problem, est.theta_, expert, entropy=entropy, quadratic=quadratic)
    assert est.objective_ == pytest.approx(truth.value, abs=1e-9, rel=1e-9)
    policy, seen = policy_at(problem, theta, expert, entropy)
    assert_allclose(est.policy_[seen], policy[seen], atol=1e-5)
    assert np.abs(est.theta_).max() <= BOX
    if unique:
        assert_allclose(est.theta_, theta, atol=1e-5)


def entropies_of(name: str) -> list[str]:
    return ENTROPIES if FITS[name].get("horizon") else ["causal"]


FIT_ENTROPY = [(name, entropy) for name in FITS for entropy in entropies_of(name)]


@ignore_convergence
@pytest.mark.parametrize(("name", "entropy"), FIT_ENTROPY)
def test_maxent_with_a_ridge_finds_what_scipy_finds(name, entropy):
    problem, expert, _ = fitting_problem(name)
    est = MaxEntIRL(
        objective="counts",
        ridge=0.1,
        theta_max=BOX,
        entropy=entropy,
        tol=1e-8,
        max_iter=5000,
        theta_init=start_for(name),
    )
    est.fit(mdp_of(problem), trajectories_of(expert))
    assert_best(est, problem, expert, 0.1 * np.eye(2), entropy, start_for(name), unique=True)
    assert_allclose(est.reward_, problem.reward(est.theta_), rtol=1e-12, atol=1e-12)


@ignore_convergence
@pytest.mark.parametrize(("name", "entropy"), FIT_ENTROPY)
def test_maxent_in_a_box_finds_what_scipy_finds(name, entropy):
    problem, expert, _ = fitting_problem(name)
    est = MaxEntIRL(
        objective="counts", theta_max=BOX, entropy=entropy, tol=1e-8, max_iter=5000, theta_init=start_for(name)
    )
    est.fit(mdp_of(problem), trajectories_of(expert))
    assert_best(est, problem, expert, None, entropy, start_for(name), unique=False)


@ignore_convergence
@pytest.mark.parametrize(("name", "entropy"), FIT_ENTROPY)
def test_messi_finds_what_scipy_finds_with_the_penalty_pair_by_pair(name, entropy):
    problem, expert, others = fitting_problem(name)
    sigma, lambda0 = 4.0, 2.0
    est = MESSI(
        objective="counts",
        similarity=RBF(sigma=sigma),
        lambda0=lambda0,
        theta_max=BOX,
        entropy=entropy,
        tol=1e-8,
        max_iter=5000,
        theta_init=start_for(name),
    )
    est.fit(mdp_of(problem), trajectories_of(expert), trajectories_of(others))
    f = np.array([oracle.data_counts(problem, x) for x in expert + others])
    similarity = np.exp(-((f[:, None] - f[None]) ** 2).sum(-1) / (2 * sigma))
    quadratic = lambda0 / BOX * oracle.pair_matrix(f, similarity)
    assert_best(est, problem, expert, quadratic, entropy, start_for(name), unique=False)
    penalty = lambda0 / BOX * oracle.double_sum(f, similarity, est.theta_)
    plain = oracle.evaluate(problem, est.theta_, expert, entropy=entropy).value
    assert est.objective_ == pytest.approx(plain - penalty, abs=1e-9, rel=1e-9)


@each_fit
def test_a_strongly_concave_fit_converges_and_says_so(name):
    problem, expert, _ = fitting_problem(name)
    est = MaxEntIRL(objective="counts", ridge=0.1, theta_max=BOX, tol=1e-6, max_iter=1000, theta_init=start_for(name))
    est.fit(mdp_of(problem), trajectories_of(expert))
    assert est.converged_


@ignore_convergence
@each_fit
@pytest.mark.parametrize("solver", ["lbfgs", "paper"])
def test_zero_lambda_is_maxent_bit_for_bit(name, solver):
    problem, expert, others = fitting_problem(name)
    mdp = mdp_of(problem)
    common = {
        "objective": "counts",
        "theta_max": BOX,
        "solver": solver,
        "max_iter": 30,
        "step_size": 0.05,
        "theta_init": start_for(name),
    }
    messi = MESSI(similarity=RBF(sigma=1.0), lambda0=0.0, **common)
    messi.fit(mdp, trajectories_of(expert), trajectories_of(others))
    maxent = MaxEntIRL(**common).fit(mdp, trajectories_of(expert))
    assert_array_equal(messi.theta_, maxent.theta_)
    assert messi.objective_ == maxent.objective_
    assert_array_equal(messi.history_["objective"], maxent.history_["objective"])


@ignore_convergence
@pytest.mark.parametrize(("name", "entropy"), FIT_ENTROPY)
def test_objective_never_falls_under_lbfgs(name, entropy):
    problem, expert, others = fitting_problem(name)
    est = MESSI(
        objective="counts",
        similarity=RBF(sigma=4.0),
        lambda0=1.0,
        theta_max=50.0,
        entropy=entropy,
        tol=1e-9,
        max_iter=500,
        theta_init=start_for(name),
    )
    est.fit(mdp_of(problem), trajectories_of(expert), trajectories_of(others))
    objective = est.history_["objective"]
    assert len(objective) >= 2 or est.converged_  # of some draws the start is the optimum
    assert never_falls(objective)
    assert objective[-1] == est.objective_
    assert_array_equal(est.history_["iteration"], np.arange(len(objective)))


@ignore_convergence
@each_fit
def test_permuting_trajectories_changes_the_fit_by_rounding_only(name):
    problem, expert, others = fitting_problem(name)
    mdp = mdp_of(problem)
    rng = generator(0)
    fits = []
    for shuffled in (False, True):
        e = [expert[i] for i in rng.permutation(len(expert))] if shuffled else expert
        u = [others[i] for i in rng.permutation(len(others))] if shuffled else others
        est = MESSI(
            objective="counts",
            similarity=RBF(sigma=4.0),
            lambda0=2.0,
            theta_max=BOX,
            tol=1e-8,
            max_iter=2000,
            theta_init=start_for(name),
        )
        fits.append(est.fit(mdp, trajectories_of(e), trajectories_of(u)))
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-9, abs=1e-9)
    assert_allclose(fits[0].policy_, fits[1].policy_, atol=1e-5)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(order=st.permutations(range(4)), case=st.sampled_from(list(FITS)))
def test_permuting_trajectories_changes_the_objective_by_rounding_only(order, case):
    problem, expert, _ = fitting_problem(case)
    mdp, theta = mdp_of(replace(problem, start=None)), start_for(case) + 0.1
    weights = np.arange(1.0, 5.0)
    a = Objective.from_trajectories(mdp, trajectories_of(expert), sample_weight=weights)(theta)
    mixed = trajectories_of([expert[i] for i in order])
    b = Objective.from_trajectories(mdp, mixed, sample_weight=weights[list(order)])(theta)
    assert a.value == pytest.approx(b.value, rel=1e-12, abs=1e-12)
    assert_allclose(a.gradient, b.gradient, rtol=1e-11, atol=1e-11)


@settings(deadline=None, derandomize=True, max_examples=20)
@given(case=st.sampled_from(list(FITS)), entropy=st.sampled_from(ENTROPIES), seed=st.integers(0, 10_000))
def test_the_objective_is_concave_along_every_segment(case, entropy, seed):
    if entropy not in entropies_of(case):
        entropy = "causal"
    problem, expert, _ = fitting_problem(case)
    objective = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert), entropy=entropy)
    rng = generator(seed)
    scale = 0.1 if FITS[case].get("positive") else 2.0
    a, b = (start_for(case) + scale * rng.normal(size=2) for _ in range(2))
    middle = objective((a + b) / 2).value
    ends = (objective(a).value + objective(b).value) / 2
    assert middle >= ends - 1e-9
    # ... and lies below each of its tangents.
    at = objective(a)
    assert objective(b).value <= at.value + at.gradient @ (b - a) + 1e-9


@ignore_convergence
@each_fit
def test_a_weight_of_two_is_a_trajectory_given_twice(name):
    problem, expert, _ = fitting_problem(name)
    mdp = mdp_of(replace(problem, start=None))
    common = {
        "objective": "counts",
        "ridge": 0.1,
        "theta_max": BOX,
        "tol": 1e-8,
        "max_iter": 2000,
        "theta_init": start_for(name),
    }
    once = MaxEntIRL(**common).fit(mdp, trajectories_of(expert), sample_weight=np.array([2.0, 1.0, 1.0, 1.0]))
    twice = MaxEntIRL(**common).fit(mdp, trajectories_of([expert[0], *expert]))
    assert once.objective_ == pytest.approx(twice.objective_, rel=1e-9, abs=1e-9)
    assert_allclose(once.theta_, twice.theta_, atol=1e-6)


@ignore_convergence
@each_fit
def test_score_is_the_pooled_log_probability_per_transition(name):
    problem, expert, others = fitting_problem(name)
    est = MaxEntIRL(objective="counts", ridge=0.5, theta_max=BOX, theta_init=start_for(name)).fit(
        mdp_of(problem), trajectories_of(expert)
    )
    policy, _ = policy_at(problem, est.theta_, expert)

    def row(t, s):
        return policy[t, s] if policy.ndim == 3 else policy[s]

    steps = sum(len(u) for _, u, _ in others)
    with_actions = sum(np.log(row(t, x[t])[u[t]]) for x, u, _ in others for t in range(len(u)))
    assert est.score(trajectories_of(others)) == pytest.approx(with_actions / steps, rel=1e-8)
    if problem.by_state:
        without = sum(
            np.log(row(t, x[t]) @ problem.transitions[x[t], :, x[t + 1]]) for x, u, _ in others for t in range(len(u))
        )
        assert est.score(trajectories_of(others, actions=False)) == pytest.approx(without / steps, rel=1e-8)


# ------------------------------------------------------------ Algorithm 1 and EM, step by step by hand


@ignore_convergence
@pytest.mark.parametrize("theta_max", [500.0, 0.4])
@pytest.mark.parametrize(
    ("name", "entropy"),
    # The noncausal policy may enter a dead end under the true dynamics: there Algorithm 1 has no meaning.
    [x for x in FIT_ENTROPY if not FITS[x[0]].get("positive") and x != ("finite dead end", "noncausal")],
)
def test_paper_solver_takes_the_steps_of_algorithm_1(name, entropy, theta_max):
    problem, expert, others = fitting_problem(name)
    step, lambda0, sigma = 0.2, 0.3, 4.0
    theta = np.array([0.3, -0.2])
    est = MESSI(
        objective="counts",
        similarity=RBF(sigma=sigma),
        lambda0=lambda0,
        theta_max=theta_max,
        entropy=entropy,
        solver="paper",
        step_size=step,
        max_iter=3,
        tol=0.0,
        theta_init=theta.copy(),
    )
    est.fit(mdp_of(problem), trajectories_of(expert), trajectories_of(others))
    f = np.array([oracle.data_counts(problem, x) for x in expert + others])
    similarity = np.exp(-((f[:, None] - f[None]) ** 2).sum(-1) / (2 * sigma))
    matrix = lambda0 / theta_max * oracle.pair_matrix(f, similarity)
    observed = f[: len(expert)].mean(axis=0)
    for _ in range(3):
        expected = forward_under_true_dynamics(problem, theta, entropy)
        theta = theta + step * (observed - expected - matrix @ theta)
        if np.abs(theta).max() > theta_max:
            theta = theta * theta_max / np.abs(theta).max()
    assert_allclose(est.theta_, theta, rtol=1e-9, atol=1e-9)


def forward_under_true_dynamics(problem: oracle.Problem, theta: np.ndarray, entropy: str) -> np.ndarray:
    """Expected counts of the policy of Eq. 3 rolled out under p itself, every trajectory listed."""
    if problem.horizon is None:
        return oracle.solve_endless(problem, theta, problem.start).expected_counts
    if entropy == "causal":
        return oracle.enumerate_causal(problem, theta).expected_counts
    policy = oracle.enumerate_noncausal(problem, theta).policy
    expected = np.zeros(problem.n_features)

    def walk(states, actions, probability):
        nonlocal expected
        s, t = states[-1], len(actions)
        if problem.terminal[s] or t == problem.horizon - 1:
            expected = expected + probability * oracle.counts(problem, states, actions)
            return
        for a, successors in problem.moves(s):
            for j, p in successors:
                if policy[t, s, a] > 0:
                    walk([*states, j], [*actions, a], probability * policy[t, s, a] * p)

    for s in np.flatnonzero(problem.start > 0):
        walk([int(s)], [], problem.start[s])
    return expected


@ignore_convergence
@pytest.mark.parametrize("own_start", [True, False])
@pytest.mark.parametrize("name", [x for x in FITS if not FITS[x].get("positive")])
def test_em_rounds_by_hand(name, own_start):
    problem, expert, others = fitting_problem(name)
    if not own_start:
        problem = replace(problem, start=None)
    everyone = expert + others
    f = np.array([oracle.data_counts(problem, x) for x in everyone])
    theta, step = np.array([0.4, -0.3]), 0.1
    est = EMMaxEnt(steps_per_round=2, max_iter=5, step_size=step, theta_max=500.0, theta_init=theta.copy(), tol=0.0)
    est.fit(mdp_of(problem), trajectories_of(expert), trajectories_of(others))
    first = [x[0][0] for x in everyone]
    for k in range(5):
        if k % 2 == 0:  # E-step: weights over all trajectories, in proportion to exp(theta' f - V(s_0))
            if problem.horizon is None:
                values = oracle.iterate(problem, problem.reward(theta))
            else:
                values = np.array([oracle.causal_value(problem, theta, s, 0)[0] for s in range(problem.n_states)])
            logs = f @ theta - values[first]
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
        gradient = oracle.evaluate(problem, theta, everyone, weights=weights).gradient
        theta = theta + step * gradient
    assert_allclose(est.theta_, theta, rtol=1e-9, atol=1e-9)
