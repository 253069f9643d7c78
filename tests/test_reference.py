"""A base policy: maximum relative entropy, against plain code that adds log π₀ to what a choice is worth."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import oracle
import oracle_choices as plain
import pytest
from cases import CASES, KINDS, NAMES, SAME_AS_COUNTS, case, mdp_of, some_reference, trajectories_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from seeds import generator
from worlds import ROUNDING, random_mdp, ring, to_rounding

import messirl
from messirl import (
    MDP,
    MESSI,
    MESSICV,
    EMMaxEnt,
    MaxEntIRL,
    Trajectories,
    estimation_table,
    expected_flows,
    next_state_accuracy,
    optimal_policy,
    optimal_values,
    sample,
    soft_policy,
    soft_values,
)
from messirl.objective import Objective
from messirl.planning.planner import solution_from_start
from messirl.selection.expert_agreement import measure_agreement
from messirl.similarity import RBF

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning"),  # counts of a cut trajectory are a guess
]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
FITS = [i for i, (_, by_state, seed) in enumerate(CASES) if seed != by_state]  # half of them: fits take time
each_fit = pytest.mark.parametrize("number", FITS, ids=[NAMES[i] for i in FITS])
both = pytest.mark.parametrize("objective", ["counts", "choices"])
EXACT = {"rtol": 1e-9, "atol": 1e-9}
BOX = 6.0


@cache
def based(number: int):
    """A case whose problem has a base policy of its own."""
    found = case(*CASES[number])
    return found._replace(problem=replace(found.problem, reference=some_reference(found.problem, number)))


def evaluate(objective: str):
    return plain.evaluate if objective == "choices" else plain.evaluate_counts


def goals_of(expert: list) -> list:
    return sorted({goal for _, _, goal in expert}, key=str)


# ------------------------------------------------------------ θ = 0


def ending_problem(kind: str, by_state: bool, seed: int) -> tuple[oracle.Problem, int | None]:
    """A problem of a kind, without dead ends: wherever one is, an end can be reached where there must be one."""
    options = {k: v for k, v in KINDS[kind].items() if k not in ("goals", "dead_end")}
    with_goals, discount = KINDS[kind].get("goals", False), options.pop("discount", 1.0)
    options["terminal"] = options.get("terminal", False) and not with_goals
    for attempt in range(200):
        at = 0.9 if with_goals else discount
        problem = oracle.random_problem(5000 + 997 * seed + attempt, by_state=by_state, discount=at, **options)
        problem = replace(problem, discount=discount)
        goal = int(generator(seed).integers(problem.n_states)) if with_goals else None
        if problem.horizon is not None or oracle.living(problem.towards(goal)).all():
            return replace(problem, reference=some_reference(problem, seed)), goal
    raise AssertionError("no such problem was drawn")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("by_state", [True, False], ids=["state", "step"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reward_of_zero_gives_the_base_policy(kind, by_state, seed):
    problem, goal = ending_problem(kind, by_state, seed)
    mdp = mdp_of(problem)
    nothing = problem.reward(np.zeros(problem.n_features))
    assert_allclose(soft_values(mdp, nothing, goal=goal), 0.0, atol=1e-12)
    policy = soft_policy(mdp, nothing, goal=goal)
    moving = ~problem.towards(goal).terminal
    assert_allclose(policy[..., moving, :], np.broadcast_to(problem.reference, policy.shape)[..., moving, :], **EXACT)


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize("kind", ["episodic", "goals"])
def test_zero_is_a_feasible_start_without_discount(kind, objective):
    """Without a base policy the sum over the paths of a network may have no end at θ = 0."""
    transitions = np.zeros((4, 3, 4))  # two states that all moves but one keep to
    transitions[0, :2, 1] = transitions[0, 2, 3] = transitions[1, :, 0] = transitions[2, :, 0] = 1.0
    ends = np.arange(4) == 3
    mdp = MDP(transitions, np.column_stack([np.ones(4), np.arange(4) == 1]), discount=1.0, terminal=ends)
    trips = Trajectories.from_lists([[0, 1, 0, 3], [0, 3]], actions=[[0, 2, 2], [2]])
    if kind == "goals":
        mdp, trips = mdp.replace(terminal=None), Trajectories(trips.states, trips.offsets, trips.actions, [3, 3])
    model = MaxEntIRL(ridge=0.1, objective=objective)
    assert model.fit(mdp, trips).theta_init_.any()
    usual = np.full((4, 3), 1 / 3)
    assert not model.set_params(reference=usual).fit(mdp, trips).theta_init_.any()


DEAD = [i for i, (kind, _, _) in enumerate(CASES) if KINDS[kind].get("dead_end") or kind == "goals stochastic"]


@pytest.mark.parametrize("number", DEAD, ids=[NAMES[i] for i in DEAD])
def test_where_there_are_dead_ends_the_base_policy_is_weighted_away_from_them(number):
    problem, _, expert, _, _ = based(number)
    mdp = mdp_of(problem)
    nothing = problem.reward(np.zeros(2))
    for goal in goals_of(expert):
        towards = problem.towards(goal)
        first = [x[0][0] for x in expert if x[2] == goal]
        log_policy, _, values, _ = plain.solved(towards, np.zeros(2), first)
        found = solution_from_start(mdp, nothing, np.bincount(first, minlength=problem.n_states).astype(float), goal)
        known = np.isfinite(values)
        assert (mdp.first(found.values)[known] <= 1e-12).all()
        assert_allclose(mdp.first(found.values)[known], values[known], **EXACT)
        going = np.isfinite(log_policy).any(axis=2)
        table = found.table.reshape(log_policy.shape)
        assert_allclose(table[going], np.exp(log_policy)[going], **EXACT)
        if problem.horizon is None:
            lost = np.isneginf(oracle.backup(towards, nothing, np.where(oracle.living(towards), 0.0, -np.inf)))
            assert_array_equal(table[0][going[0]][lost[going[0]]], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_of_certain_moves_it_is_the_base_policy_given_that_the_end_is_reached(seed):
    """z(s), the probability that π₀ gets to the end before a dead end; π = π₀ z(s')/z(s)."""
    rng = generator(900 + seed)
    target = rng.integers(0, 8, size=(8, 3))
    target[rng.integers(0, 6, size=2), 0] = 6  # where it ends; 7 is a dead end
    transitions = np.eye(8)[target]
    transitions[6:] = 0.0
    usual = rng.dirichlet(np.ones(3), size=8)
    mdp = MDP(transitions, rng.normal(size=(8, 2)), discount=1.0, terminal=np.arange(8) == 6).with_prior_policy(usual)
    moves = np.zeros((8, 8))
    np.add.at(moves, (np.repeat(np.arange(6), 3), target[:6].ravel()), usual[:6].ravel())
    z = np.zeros(8)
    z[6] = 1.0
    for _ in range(100_000):
        before, z = z, np.where(np.arange(8) == 6, 1.0, moves @ z)
        if np.abs(z - before).max() < 1e-17:
            break
    alive = np.flatnonzero(z[:6] > 0)
    policy = soft_policy(mdp, np.zeros(8))
    assert_allclose(policy[alive], (usual * z[target])[alive] / z[alive, None], rtol=1e-8, atol=1e-10)


# ------------------------------------------------------------ a uniform base policy


@both
@pytest.mark.parametrize("horizon", [5, None])
@pytest.mark.parametrize("by_state", [True, False], ids=["state", "step"])
@pytest.mark.parametrize("discount", [0.7, 1.0])
def test_where_nothing_ends_early_a_uniform_one_is_none(discount, by_state, horizon, objective):
    if horizon is None and discount == 1.0:
        discount = 0.95
    for seed in range(2):
        problem = oracle.random_problem(
            700 + seed, stochastic=True, by_state=by_state, horizon=horizon, discount=discount, n_features=2
        )
        rng = generator(seed)
        expert = oracle.draw_some(problem, rng.normal(size=2), 4, seed, length=30)
        without, data = mdp_of(problem), trajectories_of(expert)
        uniform = np.full((problem.n_states, problem.n_actions), 1 / problem.n_actions)
        theta = rng.normal(size=2)
        one, two = (
            Objective.from_trajectories(mdp, data, objective=objective)(theta)
            for mdp in (without, without.with_prior_policy(uniform))
        )
        assert_allclose(two.gradient, one.gradient, **EXACT)
        steps = sum(discount**t for t in range(horizon - 1)) if horizon else 1 / (1 - discount)
        more = 0.0 if objective == "choices" else np.log(problem.n_actions) * steps
        assert two.value == pytest.approx(one.value + more, rel=1e-9, abs=1e-9)
        reward = problem.reward(theta)
        assert_allclose(soft_policy(without.with_prior_policy(uniform), reward), soft_policy(without, reward), **EXACT)


@to_rounding
@both
@pytest.mark.parametrize("horizon", [5, None])
def test_where_nothing_ends_early_a_fit_with_a_uniform_one_is_the_fit_without(horizon, objective):
    mdp = random_mdp(31, horizon=horizon, discount=0.9)
    data = sample(mdp, soft_policy(mdp, mdp.reward([1.0, -1.0, 0.5])), 20, 20, 3, start=np.ones(5))
    model = MaxEntIRL(objective=objective, ridge=0.05, tol=1e-10)
    one = model.fit(mdp, data).theta_
    two = model.set_params(reference=np.full((5, 3), 1 / 3)).fit(mdp, data).theta_
    assert_allclose(two, one, **EXACT)


@pytest.mark.parametrize("number", [i for i, c in enumerate(CASES) if c[0].startswith(("episodic", "goals"))])
def test_elsewhere_a_uniform_one_costs_the_logarithm_of_how_many_actions_there_are(number):
    problem, theta, expert, _, _ = case(*CASES[number])
    allowed = np.array(
        [[a in dict(problem.moves(s)) for a in range(problem.n_actions)] for s in range(len(problem.features))]
    )
    degree = np.maximum(allowed.sum(axis=1), 1)
    mdp = mdp_of(problem)
    uniform = mdp.with_prior_policy(allowed / degree[:, None])
    cost = problem.reward(theta)[:, None] if problem.by_state else problem.reward(theta)
    dear = mdp.replace(features=np.zeros((problem.n_states, problem.n_actions, 1)))
    for goal in goals_of(expert):
        worth = np.broadcast_to(cost - np.log(degree)[:, None], allowed.shape).copy()
        ends = problem.towards(goal).terminal
        if problem.by_state:  # what it is worth to end is that of the last move
            worth += problem.discount * (problem.transitions @ np.where(ends, problem.reward(theta), 0.0))
        assert_allclose(
            soft_policy(uniform, problem.reward(theta), goal=goal), soft_policy(dear, worth, goal=goal), **EXACT
        )


# ------------------------------------------------------------ objective, gradient, curvature, optimum


@both
@each
def test_value_and_gradient_are_those_of_plain_code(number, objective):
    problem, theta, expert, _, weights = based(number)
    mdp, data = mdp_of(problem), trajectories_of(expert)
    truth = evaluate(objective)(problem, theta, expert, weights=weights)
    here = Objective.from_trajectories(mdp, data, sample_weight=weights, objective=objective)
    got = here(theta)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)
    numeric = oracle.finite_difference(lambda x: here(x).value, theta)
    assert_allclose(got.gradient, numeric, rtol=1e-6, atol=1e-6)
    if objective == "choices":
        moves = Objective.from_trajectories(
            mdp, trajectories_of(expert, actions=False), sample_weight=weights, objective=objective
        )(theta)
        truth = plain.evaluate(problem, theta, expert, weights=weights, actions=False)
        assert moves.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
        assert_allclose(moves.gradient, truth.gradient, **EXACT)


@pytest.mark.parametrize("number", range(0, len(CASES), 3), ids=NAMES[::3])
def test_plain_code_is_that_of_the_oracle(number):
    problem, theta, expert, _, weights = based(number)
    one = plain.evaluate_counts(problem, theta, expert, weights=weights)
    two = oracle.evaluate(problem, theta, expert, weights=weights)
    assert one.value == pytest.approx(two.value, rel=1e-9, abs=1e-9)
    assert_allclose(one.gradient, two.gradient, **EXACT)


@both
@each_fit
def test_hessian_is_that_of_differences(number, objective):
    problem, theta, expert, _, _ = based(number)
    table = np.zeros((2, 2))
    for j, e in enumerate(np.eye(2)):
        for k, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            table[j] += factor * evaluate(objective)(problem, theta + 1e-3 * k * e, expert).gradient / 12e-3
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert), objective=objective).hessian(theta)
    assert_allclose(got, table, rtol=1e-6, atol=1e-6)


SAME = [i for i, (kind, _, _) in enumerate(CASES) if kind in SAME_AS_COUNTS]


@pytest.mark.parametrize("number", SAME, ids=[NAMES[i] for i in SAME])
def test_where_counts_are_choices_they_are_with_a_base_policy_but_for_its_part(number):
    problem, theta, expert, _, weights = based(number)
    problem, data = replace(problem, start=None), trajectories_of(expert)
    counts, choices = (
        Objective.from_trajectories(mdp_of(problem), data, sample_weight=weights, objective=name)(theta)
        for name in ("counts", "choices")
    )
    usual = [sum(problem.usual(s, a) for s, a in zip(states, taken, strict=False)) for states, taken, _ in expert]
    more = float(weights @ usual / weights.sum())
    assert choices.value == pytest.approx(counts.value + more, rel=1e-9, abs=1e-9)
    assert_allclose(choices.gradient, counts.gradient, **EXACT)


@cache
def fitted(number: int, objective: str) -> MaxEntIRL:
    problem, theta, expert, _, weights = based(number)
    model = MaxEntIRL(
        objective=objective, ridge=0.1, theta_max=BOX, tol=1e-8, reference=problem.reference, theta_init=theta
    )
    return model.fit(mdp_of(replace(problem, reference=None)), trajectories_of(expert), sample_weight=weights)


@to_rounding
@both
@each_fit
def test_a_fit_finds_what_scipy_finds(number, objective):
    problem, theta, expert, _, weights = based(number)
    model, q = fitted(number, objective), 0.1 * np.eye(2)

    def at(x):
        return evaluate(objective)(problem, x, expert, weights=weights, quadratic=q)

    assert model.objective_ == pytest.approx(at(model.theta_).value, rel=1e-9, abs=1e-9)
    best, value = plain.maximise(at, theta, BOX)
    if value < model.objective_ - 1e-4 or (objective == "choices" and np.abs(best - model.theta_).max() > 1e-4):
        # it stopped at the edge of finite values, or at another top
        best, value = plain.maximise(at, model.theta_, BOX)
    assert model.objective_ == pytest.approx(value, rel=1e-8, abs=1e-8)
    assert_allclose(model.theta_, best, atol=1e-5)
    assert_allclose(model.reference_, mdp_of(problem).reference, rtol=1e-15)


# ------------------------------------------------------------ the dual of relative entropy


def relative_entropy(problem: oracle.Problem, policy: np.ndarray, start: np.ndarray) -> float:
    """Discounted, of a policy (N, S, A) against the base policy, from the start."""
    kept = policy > 0
    ratio = np.where(kept, policy, 1.0) / np.where(kept, problem.reference, 1.0)
    per_state = np.where(kept, policy * np.log(ratio), 0.0).sum(axis=2)
    if problem.horizon is None:
        return float(oracle.visits(problem, policy[0], start) @ per_state[0])
    total, here = 0.0, start
    for t, table in enumerate(policy):
        total += problem.discount**t * float(here @ per_state[t])
        here = np.einsum("s,sa,saj->j", here, table, problem.transitions)
    return total


def expected_counts(problem: oracle.Problem, policy: np.ndarray, start: np.ndarray) -> np.ndarray:
    if not problem.by_state:
        return np.einsum("sa,sad->d", plain.visits(problem, policy, start), problem.features)
    if problem.horizon is None:
        return oracle.visits(problem, policy[0], start) @ problem.features
    total, here = start @ problem.features, start
    for t, table in enumerate(policy):
        here = np.einsum("s,sa,saj->j", here, table, problem.transitions)
        total = total + problem.discount ** (t + 1) * (here @ problem.features)
    return total


@each
def test_the_dual_is_the_relative_entropy_of_the_policy_and_no_other_has_less(number):
    """θᵀf − V = KL(π_θ‖π₀) for the counts f of π_θ itself; for those of any other policy it is at most its own KL."""
    problem, theta, expert, _, _ = based(number)
    if expert[0][2] is not None:
        problem = replace(problem, start=None).towards(expert[0][2])
    start = np.zeros(problem.n_states)
    start[expert[0][0][0]] = 1.0
    log_policy, _ = plain.tables(problem, theta, [expert[0][0][0]])
    policy = np.exp(log_policy)
    mdp = mdp_of(problem)
    found = mdp.first(solution_from_start(mdp, mdp.reward(theta), start).values)[int(np.argmax(start))]
    own = relative_entropy(problem, policy, start)
    assert own >= -1e-12
    assert theta @ expected_counts(problem, policy, start) - found == pytest.approx(own, rel=1e-9, abs=1e-9)
    rng = generator(number)
    for _ in range(3):
        other = np.where(policy > 0, policy * rng.uniform(0.2, 1.0, size=policy.shape), 0.0)
        sums = other.sum(axis=2, keepdims=True)
        other = other / np.where(sums > 0, sums, 1.0)
        dual = theta @ expected_counts(problem, other, start) - found
        assert dual <= relative_entropy(problem, other, start) + 1e-10


# ------------------------------------------------------------ hard values


@each
def test_the_best_policy_is_the_same_whatever_is_usual(number):
    problem, theta, expert, _, _ = based(number)
    mdp = mdp_of(problem)
    bare, reward = mdp.with_prior_policy(None), mdp.reward(theta)
    assert bare.reference is None
    for goal in goals_of(expert):
        assert_array_equal(optimal_values(mdp, reward, goal=goal), optimal_values(bare, reward, goal=goal))
        assert_array_equal(optimal_policy(mdp, reward, goal=goal), optimal_policy(bare, reward, goal=goal))


# ------------------------------------------------------------ what is refused


def spoilt(usual: np.ndarray, allowed: np.ndarray, fault: str) -> tuple[np.ndarray, int]:
    table = usual.copy()
    s = int(np.flatnonzero(allowed.sum(axis=1) > 1)[-1])
    a = int(np.flatnonzero(allowed[s])[0])
    if fault == "sum":
        table[s, a] += 0.01
    elif fault == "forbidden":
        s = int(np.flatnonzero((~allowed).any(axis=1) & allowed.any(axis=1))[0])
        table[s, np.flatnonzero(~allowed[s])[0]] = 0.1
    elif fault == "zero":
        b = int(np.flatnonzero(allowed[s])[1])
        table[s, a], table[s, b] = 0.0, table[s, a] + table[s, b]
    else:
        table[s, a] = {"negative": -0.1, "nan": np.nan, "infinite": np.inf}[fault]
    return table, s


FAULTS = {
    "negative": "probabilities are finite and not negative",
    "nan": "probabilities are finite and not negative",
    "infinite": "probabilities are finite and not negative",
    "forbidden": "an action that is not allowed there must have probability 0",
    "zero": "an allowed action needs a probability above 0",
    "sum": "it must sum to 1",
}


@pytest.mark.parametrize("fault", list(FAULTS))
@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("ends", ["horizon", "endless", "terminal", "goals"])
def test_a_faulty_base_policy_is_refused_with_the_name_of_the_state(ends, by_step, fault):
    transitions = np.full((4, 3, 4), 0.25)
    allowed = np.ones((4, 3), dtype=bool)
    allowed[1, 2] = allowed[2, 1] = False
    names = [f"place {s}" for s in range(4)]
    terminal = np.arange(4) == 3 if ends == "terminal" else None
    features = generator(1).random((4, 3, 2) if by_step else (4, 2))
    horizon = 3 if ends == "horizon" else None
    mdp = MDP(
        transitions, features, discount=0.9, horizon=horizon, terminal=terminal, allowed=allowed, state_names=names
    )
    usual = allowed / allowed.sum(axis=1, keepdims=True)
    table, s = spoilt(
        usual, allowed & ~np.zeros((4, 1), bool) if terminal is None else allowed & ~terminal[:, None], fault
    )
    states = [0, 1, 2] if ends != "terminal" else [0, 1, 3]
    trips = Trajectories.from_lists([states], actions=[[0, 0]], goals=[states[-1]] if ends == "goals" else None)
    for model in (MaxEntIRL(ridge=0.1), MESSI(), EMMaxEnt(solver="lbfgs")):
        with pytest.raises(ValueError, match=f"reference of state 'place {s}' is .*: {FAULTS[fault]}"):
            model.set_params(reference=table).fit(mdp, trips)
    with pytest.raises(ValueError, match=f"reference of state 'place {s}'"):
        mdp.with_prior_policy(table)


@quiet
def test_rows_of_ends_do_not_count():
    problem, _, expert, _, _ = case("episodic stochastic", True, 0)
    usual = some_reference(problem, 0)
    mdp, data = mdp_of(problem), trajectories_of(expert)
    ends = ~mdp.allowed.any(axis=1)
    assert ends[problem.terminal].all()
    fits = []
    for row in (0.0, 1.0, -3.0, np.nan):
        usual[ends] = row
        fits.append(MaxEntIRL(ridge=0.5, reference=usual).fit(mdp, data))
        assert_array_equal(fits[-1].reference_[ends], 0.0)
        assert_array_equal(fits[-1].theta_, fits[0].theta_)


def test_what_is_no_table_or_goes_with_nothing_is_refused():
    problem, _, expert, _, _ = case("finite", True, 0)
    mdp, data = mdp_of(problem), trajectories_of(expert)
    usual = some_reference(problem, 0)
    with pytest.raises(ValueError, match=r"reference has shape \(2,\), not"):
        MaxEntIRL(reference=[0.5, 0.5]).fit(mdp, data)
    with pytest.raises(TypeError, match="reference must be numbers"):
        MaxEntIRL(reference=[["a"]]).fit(mdp, data)
    with pytest.raises(ValueError, match="reference='others': choose 'unlabelled' or an array"):
        MaxEntIRL(reference="others").fit(mdp, data)
    with pytest.raises(ValueError, match="reference='unlabelled' needs unlabelled trajectories"):
        MaxEntIRL(reference="unlabelled").fit(mdp, data)
    for strength in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="reference_strength"):
            MaxEntIRL(reference="unlabelled", reference_strength=strength).fit(mdp, data, data)
    for given in (usual, "unlabelled"):
        for method in (MaxEntIRL, MESSI, EMMaxEnt):
            with pytest.raises(ValueError, match="cannot be combined with entropy='noncausal': omit"):
                method(reference=given, entropy="noncausal", solver="lbfgs").fit(mdp, data, data)
            with pytest.raises(ValueError, match="`reference` cannot be combined with solver='paper': omit"):
                method(reference=given, solver="paper").fit(mdp, data, data)


# ------------------------------------------------------------ what is usual among the unlabelled


@quiet
@pytest.mark.parametrize("actions", [True, False], ids=["actions", "moves"])
@each_fit
def test_what_is_usual_is_counted(number, actions):
    problem, theta, expert, others, _ = case(*CASES[number])
    strength = (0.5, 2.0, 10.0)[number % 3]
    n = np.zeros((problem.n_states, problem.n_actions))
    for states, taken, _ in others:
        for t, (s, j) in enumerate(pairwise(states)):
            chance = problem.transitions[s, :, j] * problem.allowed[s]
            n[s] += np.eye(problem.n_actions)[taken[t]] if actions else chance / chance.sum()
    usual = np.zeros_like(n)
    for s in range(problem.n_states):
        can = [a for a, _ in problem.moves(s)]
        usual[s, can] = (n[s, can] + strength / max(len(can), 1)) / (n[s].sum() + strength)
    model = MaxEntIRL(
        objective="choices", reference="unlabelled", reference_strength=strength, max_iter=0, theta_init=theta
    )
    model.fit(mdp_of(problem), trajectories_of(expert, actions), trajectories_of(others, actions))
    assert_allclose(model.reference_, usual, rtol=1e-12, atol=1e-15)
    value = plain.evaluate(replace(problem, reference=usual), theta, expert, actions=actions).value
    assert model.objective_ == pytest.approx(value, rel=1e-9, abs=1e-9)


# ------------------------------------------------------------ every function of a fitted model takes it along


def with_values(problem, theta, data):
    """Those of which the model can say something: the θ of some experts need not have values on the way elsewhere."""
    found = []
    for one in data:
        with suppress(ArithmeticError):
            plain.log_likelihoods(problem, theta, [one])
            found.append(one)
    return found


@to_rounding
@both
@each_fit
def test_a_fitted_model_is_asked_with_its_base_policy(number, objective, tmp_path):
    problem, _, expert, others, weights = based(number)
    fit = fitted(number, objective)
    fit.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert_array_equal(again.reference_, fit.reference_)
    others = with_values(problem, fit.theta_, others) or expert
    data, trips = trajectories_of(others), plain.beginnings(replace(problem, start=None), others, np.ones(len(others)))
    logs, _ = plain.log_likelihoods(problem, fit.theta_, others)
    moves, _ = plain.log_likelihoods(problem, fit.theta_, others, actions=False)
    steps = sum(len(x[1]) for x in others)
    counts = plain.evaluate_counts(problem, fit.theta_, expert, weights=weights).expected_counts
    for model in (fit, again):
        assert model.score(data) == pytest.approx(logs.sum() / steps, rel=1e-9, abs=1e-9)
        bare = trajectories_of(others, actions=False)
        assert model.score(bare) == pytest.approx(moves.sum() / steps, rel=1e-9, abs=1e-9)
        assert_allclose(model.feature_counts_, counts, **EXACT)
        flows, hits = np.zeros((problem.n_states, problem.n_actions)), 0.0
        for goal, start in trips.items():
            towards = problem.towards(goal)
            some = [x for x in others if x[2] == goal]
            log_policy, _ = plain.tables(towards, fit.theta_, sorted({s for x in some for s in x[0]}))
            policy = np.exp(log_policy)
            flows += plain.visits(towards, policy, start)
            for states, taken, _ in some:
                for t in range(len(taken)):
                    table = policy[t if problem.horizon is not None else 0]
                    if problem.horizon is None or t == 0:
                        step = {"goal": goal} if goal is not None else {}
                        step |= {"step": 0} if problem.horizon is not None else {}
                        assert_allclose(model.predict_proba([states[t]], **step)[0], table[states[t]], **EXACT)
                    chance = table[states[t]] @ problem.transitions[states[t]]
                    tied = chance >= chance.max() - 1e-9
                    hits += tied[states[t + 1]] / tied.sum()
            if goal is not None:
                seen = np.isfinite(log_policy[0]).any(axis=1)
                assert_allclose(model.policy_[goal][seen], policy[0][seen], **EXACT)
        assert_allclose(expected_flows(model, data).steps, flows, **EXACT)
        assert next_state_accuracy(model, data) == pytest.approx(hits / steps, rel=1e-9)


@to_rounding
@pytest.mark.parametrize("number", FITS[::2], ids=[NAMES[i] for i in FITS[::2]])
def test_samples_are_of_the_policy_with_the_base_policy(number):
    problem, _, expert, _, _ = based(number)
    model = fitted(number, "choices")
    goal = expert[0][2]
    first = expert[0][0][0]
    start = np.eye(problem.n_states)[first]
    log_policy, _ = plain.tables(problem.towards(goal), model.theta_, [first])
    policy = np.exp(log_policy)
    table = policy if problem.horizon is not None else policy[0]
    length = None if problem.discount == 1.0 else 10  # with a discount the goal may be lost from sight for ever
    bare = mdp_of(replace(problem, reference=None))
    one = model.sample(50, length, goal=goal, start=start, random_state=3)
    two = sample(bare, table, 50, length, 3, goal=goal, start=start)
    assert_array_equal(one.states, two.states)
    assert_array_equal(one.actions, two.actions)


@to_rounding
def test_the_estimation_table_has_its_likelihood_and_curvature():
    number = CASES.index(("finite", True, 0))
    problem, _, expert, others, _ = based(number)
    everyone = expert + others
    mdp, data = mdp_of(replace(problem, reference=None, start=None)), trajectories_of(everyone)
    model = MaxEntIRL(objective="counts", ridge=0.2, reference=problem.reference, tol=1e-9).fit(mdp, data)
    found = estimation_table(model, data)
    logs, _ = plain.log_likelihoods(problem, model.theta_, everyone)
    assert found.log_likelihood == pytest.approx(logs.sum(), rel=1e-9)
    table = np.zeros((2, 2))
    here = replace(problem, start=None)
    for j, e in enumerate(np.eye(2)):
        for k, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            at = model.theta_ + 1e-3 * k * e
            table[j] += factor * plain.evaluate_counts(here, at, everyone, quadratic=0.2 * np.eye(2)).gradient / 12e-3
    assert_allclose(found.covariance, np.linalg.inv(-table) / len(everyone), rtol=1e-6)


@quiet
@both
@each_fit
def test_em_weighs_with_the_base_policy(number, objective):
    problem, theta, expert, others, _ = based(number)
    everyone = expert + others
    model = EMMaxEnt(
        objective=objective, solver="lbfgs", max_iter=0, theta_init=theta, reference=problem.reference
    ).fit(mdp_of(replace(problem, reference=None)), trajectories_of(expert), trajectories_of(others))
    if objective == "choices":
        logs, _ = plain.log_likelihoods(problem, theta, everyone)
    else:  # what is collected, log π₀ of every choice included, less the value at the start
        logs = np.array([theta @ oracle.data_counts(problem, x) + usual_counts(problem, x) for x in everyone])
        for goal in goals_of(everyone):
            which = [i for i, x in enumerate(everyone) if x[2] == goal]
            first = [everyone[i][0][0] for i in which]
            logs[which] -= plain.solved(problem.towards(goal), theta, first)[2][first]
    assert_allclose(model.weights_, softmax(logs), rtol=1e-8, atol=1e-12)


def usual_counts(problem: oracle.Problem, trajectory: oracle.Trajectory) -> float:
    """Σ γ^t log π₀(a_t|s_t); a cut trajectory stands for an endless one."""
    states, taken, goal = trajectory
    total = sum(problem.discount**t * problem.usual(states[t], a) for t, a in enumerate(taken))
    if problem.horizon is None and problem.discount < 1 and goal is None and not problem.terminal[states[-1]]:
        total /= 1 - problem.discount ** len(taken)
    return total


# ------------------------------------------------------------ choosing


def chain() -> tuple[MDP, Trajectories, Trajectories, np.ndarray]:
    mdp = ring(5, discount=0.9, horizon=7)
    expert = sample(mdp, soft_policy(mdp, mdp.reward([1.0, -1.0, 0.5, 0.0])), 6, None, 5, start=np.ones(5))
    usual = generator(6).dirichlet(3 * np.ones(2), size=5)
    others = sample(mdp, np.tile(usual, (6, 1, 1)), 12, None, 7, start=np.ones(5))
    return mdp, expert, others, usual


@quiet
@both
@pytest.mark.parametrize("given", ["array", "unlabelled"])
def test_a_selection_fits_and_scores_with_the_base_policy(given, objective):
    mdp, expert, others, usual = chain()
    reference = usual if given == "array" else "unlabelled"
    chosen = MESSICV([RBF(5.0)], lambdas=[0.3], objective=objective, reference=reference, theta_max=3.0)
    chosen.fit(mdp, expert, others)
    alone = MaxEntIRL(objective=objective, reference=reference, theta_max=3.0, tol=chosen.validation_tol)
    found = chosen.validation_
    assert found.candidates[0].method == "MaxEnt"
    assert not [c for c in found.candidates if c.strength is not None]  # one base policy is enough
    for k in range(len(expert)):
        rest = np.delete(np.arange(len(expert)), k)
        score = alone.fit(mdp, expert[rest], others).score(expert[[k]])
        assert found.logs[0, k] / found.steps[k] == pytest.approx(score, abs=0.02)
    if given == "array":
        assert_allclose(chosen.reference_, usual, rtol=1e-15)
    assert_array_equal(chosen.reference_, alone.reference_)
    assert_array_equal(chosen.best_estimator_.reference_, alone.reference_)
    values = soft_policy(mdp.with_prior_policy(alone.reference_), mdp.reward(chosen.theta_))
    assert_allclose(chosen.policy_, values, **EXACT)
    assert np.abs(chosen.policy_ - soft_policy(mdp, mdp.reward(chosen.theta_))).max() > 0.01


def test_likeness_is_learnt_for_each_base_policy():
    mdp, expert, others, usual = chain()
    fresh = measure_agreement(chain()[0].with_prior_policy(usual), expert, others, cv=3)
    plainly = measure_agreement(mdp, expert, others, cv=3)
    after = measure_agreement(mdp.with_prior_policy(usual), expert, others, cv=3)
    assert_array_equal(after.unlabelled, fresh.unlabelled)
    assert after.expert == fresh.expert
    assert after.expert != pytest.approx(plainly.expert, abs=1e-6)


@quiet
@pytest.mark.parametrize("method", [MaxEntIRL, MESSI])
def test_another_mdp_keeps_the_base_policy_until_it_is_given_another(method):
    mdp, expert, others, usual = chain()
    based_on = mdp.with_prior_policy(usual)
    moved = based_on.replace(discount=0.8)
    assert_allclose(moved.reference, usual, rtol=1e-15)
    model = method(theta_max=3.0)
    one = model.fit(based_on, expert, others).theta_
    two = method(theta_max=3.0, reference=usual).fit(mdp, expert, others).theta_
    assert_array_equal(one, two)
    with pytest.raises(ValueError, match="read-only"):
        based_on.reference[0, 0] = 1.0


@quiet
def test_a_model_read_back_scores_to_the_last_digit(tmp_path):
    mdp, expert, others, _ = chain()
    for model in (
        MESSI(RBF(5.0), lambda0=0.5, reference="unlabelled", reference_strength=3.0, objective="choices"),
        EMMaxEnt(solver="lbfgs", reference="unlabelled", objective="choices", max_iter=20, tol=1e-3),
    ):
        model.fit(mdp, expert, others).save(tmp_path / "model.npz")
        again = messirl.load(tmp_path / "model.npz")
        assert again.reference == "unlabelled"
        assert again.reference_strength == model.reference_strength
        assert again.score(others) == pytest.approx(model.score(others), rel=ROUNDING)
        assert_array_equal(again.reference_, model.reference_)
        assert_allclose(again.policy_, model.policy_, rtol=ROUNDING, atol=ROUNDING)
