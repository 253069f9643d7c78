"""The likelihood of choices against plain code, differences and SciPy's optimiser, on tiny problems of every kind."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import oracle
import oracle_choices as plain
import pytest
from cases import CASES, NAMES, SAME_AS_COUNTS, case, mdp_of, trajectories_of
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem as problem_of
from scipy.special import softmax
from seeds import generator, pinned
from worlds import ROUNDING, ring, to_rounding, without_actions

import messirl
from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL, Trajectories
from messirl.objective import Objective, UncertainChoices
from messirl.similarity import RBF

pytestmark = [pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning")]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
recorded = pytest.mark.parametrize("actions", [True, False], ids=["actions", "moves"])
FITS = [i for i, (_, by_state, seed) in enumerate(CASES) if seed == by_state]  # half of them: fits take time
each_fit = pytest.mark.parametrize("number", FITS, ids=[NAMES[i] for i in FITS])
EXACT = {"rtol": 1e-9, "atol": 1e-9}
BOX = 6.0


def objective_of(number: int, actions: bool = True, **arguments) -> Objective:
    problem, _, expert, _, weights = case(*CASES[number])
    arguments = {"sample_weight": weights, "objective": "choices"} | arguments
    return Objective.from_trajectories(mdp_of(problem), trajectories_of(expert, actions), **arguments)


def quadratic(d: int = 2) -> np.ndarray:
    a = generator(d).normal(size=(d, d))
    return 0.2 * a @ a.T


# ------------------------------------------------------------ the plain code itself


@each
def test_plain_values_are_those_of_enumeration_or_of_sweeps(number):
    problem, theta, expert, _, _ = case(*CASES[number])
    for goal in {goal for _, _, goal in expert}:
        towards = problem.towards(goal)
        first = sorted({x[0][0] for x in expert if x[2] == goal})
        values = plain.soft_values(towards, theta, first)
        known = np.isfinite(values)
        if problem.horizon is None:
            truth = oracle.iterate(towards, problem.reward(theta))
        else:
            truth = oracle.enumerate_causal(problem, theta).values
            assert_array_equal(known, np.isfinite(truth))
        assert known[..., first].any()
        assert_allclose(values[known], truth[known], **EXACT)


# ------------------------------------------------------------ value, gradient, curvature


@recorded
@each
def test_value_and_gradient_are_those_of_what_was_chosen(number, actions):
    problem, theta, expert, _, weights = case(*CASES[number])
    truth = plain.evaluate(problem, theta, expert, weights=weights, actions=actions, quadratic=quadratic())
    objective = objective_of(number, actions, quadratic=quadratic())
    got = objective(theta)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)
    numeric = oracle.finite_difference(lambda x: objective(x).value, theta)
    assert_allclose(got.gradient, numeric, rtol=1e-6, atol=1e-6)
    again = objective(theta)  # begun at what was found elsewhere
    assert again.value == pytest.approx(got.value, rel=1e-10, abs=1e-10)
    assert_allclose(again.gradient, got.gradient, **EXACT)


@recorded
@each_fit
def test_hessian_is_that_of_differences(number, actions):
    problem, theta, expert, _, weights = case(*CASES[number])
    table = np.zeros((2, 2))
    for j, e in enumerate(np.eye(2)):
        for k, factor in ((-2, 1), (-1, -8), (1, 8), (2, -1)):
            at = theta + 1e-3 * k * e
            slope = plain.evaluate(problem, at, expert, weights=weights, actions=actions).gradient
            table[j] += factor * slope / 12e-3
    got = objective_of(number, actions, quadratic=quadratic()).hessian(theta)
    assert_allclose(got, table - quadratic(), rtol=1e-6, atol=1e-6)


@each
def test_moves_that_one_action_makes_tell_the_action(number):
    problem, theta, expert, _, _ = case(*CASES[number])
    objective = objective_of(number, actions=False)
    ambiguous = any(
        (problem.transitions[s, :, j] * problem.allowed[s] > 0).sum() > 1
        for states, _, _ in expert
        for s, j in pairwise(states)
    )
    assert isinstance(objective, UncertainChoices) == ambiguous
    if not ambiguous:  # the chance of the move is all that differs
        known = objective_of(number)(theta)
        assert_allclose(objective(theta).gradient, known.gradient, **EXACT)


@recorded
@each_fit
def test_a_trajectory_that_weighs_nothing_says_nothing(number, actions):
    problem, theta, expert, others, weights = case(*CASES[number])
    mdp, both = mdp_of(replace(problem, start=None)), trajectories_of([*expert, others[0]], actions)
    got = Objective.from_trajectories(mdp, both, sample_weight=[*weights, 0.0], objective="choices")(theta)
    truth = plain.evaluate(problem, theta, expert, weights=weights, actions=actions)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)


def test_what_weighs_nothing_may_be_where_nothing_else_gets_to():
    """Two parts that do not meet, γ = 1; of the second no value is asked for. Two actions make the first move."""
    transitions = np.zeros((6, 3, 6))
    for s in (0, 3):
        transitions[s, 0, s + 1] = transitions[s, 1, s + 2] = transitions[s, 2, s + 1] = 1.0
        transitions[s + 1, 0, s] = transitions[s + 1, 1, s + 2] = 1.0
    features = np.column_stack([np.ones(6), np.arange(6) % 3 == 1])
    mdp = MDP(transitions, features, discount=1.0, terminal=np.arange(6) % 3 == 2)
    moves = Trajectories.from_lists([[0, 1, 2], [0, 2], [3, 4, 5]])
    one = Objective.from_trajectories(mdp, moves, sample_weight=[1.0, 2.0, 0.0], objective="choices")
    two = Objective.from_trajectories(mdp, moves[:2], sample_weight=[1.0, 2.0], objective="choices")
    assert isinstance(one, UncertainChoices)
    at = np.array([-2.0, -1.0])
    assert one(at).value == pytest.approx(two(at).value, rel=1e-12)
    assert_allclose(one(at).gradient, two(at).gradient, rtol=1e-12)


# ------------------------------------------------------------ equal to counts, and where it is not

SAME = [i for i, (kind, _, _) in enumerate(CASES) if kind in SAME_AS_COUNTS]
each_same = pytest.mark.parametrize("number", SAME, ids=[NAMES[i] for i in SAME])


def parallel(problem: oracle.Problem, expert: list) -> np.ndarray | None:
    """Σ log of how many actions make each move, for each trajectory; None where these differ in their features."""
    total = []
    for states, _, _ in expert:
        pairs = list(pairwise(states))
        ways = [np.flatnonzero(problem.transitions[s, :, j] * problem.allowed[s]) for s, j in pairs]
        total.append(sum(np.log(len(w)) for w in ways))
        if not problem.by_state and any(
            np.ptp(problem.features[s, w], axis=0).any() for (s, _), w in zip(pairs, ways, strict=True)
        ):
            return None
    return np.array(total)


@each_same
def test_deterministic_moves_without_discount_are_counts(number):
    problem, theta, expert, _, weights = case(*CASES[number])
    problem = replace(problem, start=None)
    mdp, known = mdp_of(problem), trajectories_of(expert)
    for at in (theta, 1.2 * theta):
        counts, choices = (
            Objective.from_trajectories(mdp, known, sample_weight=weights, objective=name)
            for name in ("counts", "choices")
        )
        assert choices(at).value == pytest.approx(counts(at).value, rel=1e-9, abs=1e-9)
        assert_allclose(choices(at).gradient, counts(at).gradient, **EXACT)
        assert_allclose(choices.hessian(at), counts.hessian(at), rtol=1e-6, atol=1e-6)
        assert choices.concave


@each_same
def test_parallel_moves_without_actions_are_counts_but_for_a_constant(number):
    problem, theta, expert, _, weights = case(*CASES[number])
    constant = parallel(problem, expert)
    mdp, moves = mdp_of(replace(problem, start=None)), trajectories_of(expert, actions=False)
    if constant is None:  # counts cannot be had, choices can
        with pytest.raises(ValueError, match="several actions with different features"):
            Objective.from_trajectories(mdp, moves)
        assert np.isfinite(Objective.from_trajectories(mdp, moves, objective="choices")(theta).value)
        return
    counts, choices = (
        Objective.from_trajectories(mdp, moves, sample_weight=weights, objective=name)(theta)
        for name in ("counts", "choices")
    )
    more = float(weights @ constant / weights.sum())
    assert choices.value == pytest.approx(counts.value + more, rel=1e-9, abs=1e-9)
    assert_allclose(choices.gradient, counts.gradient, **EXACT)


@to_rounding
@recorded
@each_same
def test_the_fit_to_counts_is_the_fit_to_choices_there(number, actions):
    problem, _, expert, _, weights = case(*CASES[number])
    constant = np.zeros(len(expert)) if actions else parallel(problem, expert)
    if constant is None:
        return  # counts cannot be had
    mdp, some = mdp_of(replace(problem, start=None)), trajectories_of(expert, actions)
    counts, choices = (
        MaxEntIRL(ridge=0.3, theta_max=BOX, tol=1e-10, objective=name).fit(mdp, some, sample_weight=weights)
        for name in ("counts", "choices")
    )
    assert_allclose(choices.theta_, counts.theta_, **EXACT)
    more = float(weights @ constant / weights.sum())
    assert choices.objective_ == pytest.approx(counts.objective_ + more, rel=1e-9, abs=1e-9)
    assert_allclose(choices.feature_counts_, counts.feature_counts_, **EXACT)
    assert_allclose(choices.visitation_, counts.visitation_, **EXACT)


@pytest.mark.parametrize("by_state", [True, False])
@pytest.mark.parametrize("discount", [1.0, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_of_every_trajectory_weighted_by_its_probability_the_truth_is_the_top_of_both(seed, discount, by_state):
    """With random moves, few trajectories tell different things by counts and by choices; all of them do not."""
    problem = oracle.random_problem(
        300 + seed, stochastic=True, terminal=True, by_state=by_state, horizon=4, discount=discount, n_features=2
    )
    theta = generator(seed).normal(size=2)
    listed = oracle.enumerate_causal(problem, theta).trajectories
    every = trajectories_of([(states, actions, None) for states, actions, _ in listed])
    chance = np.array([p for _, _, p in listed])
    counts, choices = (
        Objective.from_trajectories(mdp_of(problem), every, sample_weight=chance, objective=name)
        for name in ("counts", "choices")
    )
    assert_allclose(counts(theta).gradient, 0.0, atol=1e-9)
    assert_allclose(choices(theta).gradient, 0.0, atol=1e-9)
    if discount == 1.0:  # then a penalty holds both back as much, whatever the moves
        assert_allclose(choices.hessian(theta), counts.hessian(theta), rtol=1e-8, atol=1e-8)


@each
def test_a_choice_weighs_what_it_weighs_in_the_counts(number):
    """c = Σ w M / Σ w T: known from the value at θ, since Σ log π is known."""
    problem, theta, expert, _, weights = case(*CASES[number])
    objective, mdp = objective_of(number), mdp_of(problem)
    logs, _ = plain.log_likelihoods(problem, theta, expert)
    made = np.array([len(x[1]) for x in expert], dtype=float)
    gamma = problem.discount
    cut = problem.horizon is None and gamma < 1 and expert[0][2] is None
    held = np.array([made[i] if gamma == 1 else (1 - gamma ** made[i]) / (1 - gamma) for i in range(5)])
    if cut:
        held[[not problem.terminal[x[0][-1]] for x in expert]] = 1 / (1 - gamma)
    assert objective(theta).value * (weights @ made) == pytest.approx(
        (weights @ held) * (weights @ logs) / weights.sum(), rel=1e-9, abs=1e-9
    )
    twice = Objective.from_trajectories(
        mdp, trajectories_of(expert + expert), sample_weight=np.tile(7 * weights, 2), objective="choices"
    )
    assert twice(theta).value == pytest.approx(objective(theta).value, rel=1e-12, abs=1e-12)


# ------------------------------------------------------------ the optimum


def theta_first(number: int) -> np.ndarray:
    return np.full(2, -2.0) if case(*CASES[number]).problem.discount == 1.0 else np.zeros(2)


@cache
def fitted(number: int, actions: bool, own: bool) -> MaxEntIRL:
    """A fit with a ridge, from the start given or from the experts' own."""
    problem, _, expert, _, weights = case(*CASES[number])
    problem = replace(problem, start=None) if own else problem
    model = MaxEntIRL(objective="choices", ridge=0.1, theta_max=BOX, tol=1e-8, theta_init=theta_first(number))
    return model.fit(mdp_of(problem), trajectories_of(expert, actions), sample_weight=weights)


def assert_best(number: int, model, actions: bool, q: np.ndarray) -> None:
    """What SciPy finds from the same place; if it climbs to another top, it is not led away from this one either.

    All tops of a concave objective are as high: where the data say nothing and the penalty has a direction without
    a price, they are a line. Where hardly anything bends the objective, rounding of its value leaves θ undecided.
    """
    problem, _, expert, _, weights = case(*CASES[number])

    def at(theta):
        return plain.evaluate(problem, theta, expert, weights=weights, actions=actions, quadratic=q)

    assert model.objective_ == pytest.approx(at(model.theta_).value, rel=1e-9, abs=1e-9)
    theta, value = plain.maximise(at, model.theta_init_, BOX)
    if np.abs(theta - model.theta_).max() > 1e-4:
        one = Objective.from_trajectories(mdp_of(problem), trajectories_of(expert, actions), objective="choices")
        assert not one.concave or model.objective_ == pytest.approx(value, rel=1e-8, abs=1e-8)
        theta, value = plain.maximise(at, model.theta_, BOX)
    assert model.objective_ == pytest.approx(value, rel=1e-8, abs=1e-8)
    curvature = -np.array([(at(theta + e).gradient - at(theta - e).gradient) / 2e-4 for e in 1e-4 * np.eye(2)])
    free = np.abs(theta) < BOX - 1e-3
    least = np.linalg.eigvalsh((curvature + curvature.T)[free][:, free] / 2).min(initial=1.0)
    assert_allclose(model.theta_, theta, atol=max(1e-5, np.sqrt(1e-12 * (1 + abs(value)) / max(least, 1e-12))))


@to_rounding
@recorded
@each_fit
def test_with_a_ridge_it_finds_what_scipy_finds(number, actions):
    model = fitted(number, actions, own=False)
    assert_best(number, model, actions, 0.1 * np.eye(2))
    problem = case(*CASES[number]).problem
    assert_allclose(model.reward_, problem.reward(model.theta_), rtol=1e-12, atol=1e-12)


@to_rounding
@pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning")  # the penalty looks at counts
@pytest.mark.filterwarnings("ignore:.*the objective hardly rises any more:sklearn.exceptions.ConvergenceWarning")
@each_fit
def test_messi_finds_what_scipy_finds_with_the_penalty_pair_by_pair(number):
    problem, _, expert, others, weights = case(*CASES[number])
    sigma, lambda0, actions = 4.0, 1.5, bool(not problem.by_state or number % 4)
    theta, mdp = theta_first(number), mdp_of(problem)
    model = MESSI(RBF(sigma), lambda0=lambda0, theta_max=BOX, objective="choices", tol=1e-8, theta_init=theta)
    model.fit(mdp, trajectories_of(expert, actions), trajectories_of(others, actions), weights)
    f = np.array([oracle.data_counts(problem, x) for x in expert + others])
    similarity = np.exp(-((f[:, None] - f[None]) ** 2).sum(-1) / (2 * sigma))
    q = lambda0 / BOX * oracle.pair_matrix(f, similarity)
    assert_allclose(model.quadratic_, q, **EXACT)
    assert_best(number, model, actions, q)


@to_rounding
@pytest.mark.parametrize("own", [True, False], ids=["own", "given"])
@each_fit
def test_what_the_model_expects_is_from_its_start_not_from_the_signed_source(number, own):
    problem, _, expert, _, weights = case(*CASES[number])
    problem = replace(problem, start=None) if own else problem
    model = fitted(number, own, own)  # with actions in one case, without in the other
    visitation = np.zeros(problem.n_states)
    start = np.zeros(problem.n_states)
    for goal, begin in plain.beginnings(problem, expert, weights / weights.sum()).items():
        towards = problem.towards(goal)
        policy = np.exp(plain.tables(towards, model.theta_, np.flatnonzero(begin).tolist())[0])
        if problem.horizon is None:
            visitation += oracle.visits(towards, policy[0], begin)
        else:
            visitation += oracle.enumerate_causal(replace(problem, start=begin), model.theta_).visitation
        start += begin
    assert_allclose(model.start_, start, rtol=1e-12, atol=1e-12)
    assert (model.visitation_ >= 0).all()
    assert_allclose(model.visitation_, visitation, **EXACT)
    counts = plain.evaluate_counts(problem, model.theta_, expert, weights=weights).expected_counts
    assert_allclose(model.feature_counts_, counts, **EXACT)


@to_rounding
@recorded
@each_fit
def test_score_is_the_likelihood_of_choices_unscaled(number, actions):
    problem, _, expert, others, _ = case(*CASES[number])
    model = fitted(number, actions, own=not actions)
    known = {(s, goal) for states, _, goal in expert for s in states}  # elsewhere a price of zero may be no price
    seen = [x for x in others if problem.discount < 1.0 or (x[0][0], x[2]) in known]
    for some in filter(None, (expert, seen)):
        logs, _ = plain.log_likelihoods(problem, model.theta_, some, actions=actions)
        steps = sum(len(x[1]) for x in some)
        assert model.score(trajectories_of(some, actions)) == pytest.approx(logs.sum() / steps, rel=1e-9, abs=1e-9)


# ------------------------------------------------------------ EM


@quiet
@recorded
@each_fit
def test_em_weighs_by_the_probability_of_what_was_chosen(number, actions):
    problem, theta, expert, others, _ = case(*CASES[number])
    everyone = expert + others
    for start in (None, problem.start):
        at = replace(problem, start=start)
        model = EMMaxEnt(objective="choices", solver="lbfgs", max_iter=0, theta_init=theta)
        model.fit(mdp_of(at), trajectories_of(expert, actions), trajectories_of(others, actions))
        logs, _ = plain.log_likelihoods(at, theta, everyone, actions=actions)
        assert_allclose(model.weights_, softmax(logs), rtol=1e-8, atol=1e-12)
        assert model.effective_sample_size_ == pytest.approx(1.0 / (softmax(logs) ** 2).sum(), rel=1e-8)
        value = plain.evaluate(at, theta, everyone, weights=softmax(logs), actions=actions).value
        assert model.objective_ == pytest.approx(value, rel=1e-8, abs=1e-9)
        if start is None:
            begin = np.zeros(problem.n_states)
            np.add.at(begin, [x[0][0] for x in everyone], softmax(logs))
            assert_allclose(model.start_, begin, rtol=1e-8, atol=1e-12)


# ------------------------------------------------------------ what is refused, and what no longer is


def test_it_goes_with_the_causal_model_and_the_exact_solver_only():
    problem, _, expert, _, _ = case("finite", True, 0)
    given = mdp_of(problem), trajectories_of(expert)
    for method in (MaxEntIRL, MESSI, EMMaxEnt):
        lbfgs = {"solver": "lbfgs"}
        with pytest.raises(ValueError, match="objective='choices' cannot be combined with entropy='noncausal'"):
            method(objective="choices", entropy="noncausal", **lbfgs).fit(*given)
        with pytest.raises(ValueError, match="objective='choices' cannot be combined with solver='paper'"):
            method(objective="choices", solver="paper").fit(*given)
    with pytest.raises(ValueError, match="objective='chosen': choose 'choices' or 'counts'"):
        MaxEntIRL(objective="chosen").fit(*given)


def test_where_nothing_was_chosen_there_is_nothing_to_learn():
    problem = case("endless", True, 0).problem
    first = [([int(s)], [], None) for s in np.flatnonzero(problem.start)]
    with pytest.raises(ValueError, match="no trajectory makes a step, so there is no choice to learn from"):
        MaxEntIRL(objective="choices").fit(mdp_of(problem), trajectories_of(first))
    there, _, _ = first[0]
    goal = Trajectories.from_lists([there], actions=[[]], goals=there)
    with pytest.raises(ValueError, match="no trajectory makes a step"):
        MaxEntIRL(objective="choices").fit(mdp_of(replace(problem, start=None)), goal)


@recorded
def test_a_trajectory_without_a_step_adds_a_beginning_and_no_choice(actions):
    problem, theta, expert, _, _ = case("endless", False, 0)
    both = [*expert, ([expert[0][0][0]], [], None)]
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(both, actions), objective="choices")(theta)
    truth = plain.evaluate(problem, theta, both, actions=actions)
    assert got.value == pytest.approx(truth.value, rel=1e-9, abs=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)


@recorded
def test_a_choice_weighs_the_same_where_most_trajectories_make_none(actions):
    problem, theta, expert, _, _ = case("endless", False, 0)
    problem, ((one, two, *_), taken, _) = replace(problem, start=None), expert[0]
    few = [([one, two], taken[:1], None), ([one], [], None), ([two], [], None)]
    got = Objective.from_trajectories(mdp_of(problem), trajectories_of(few, actions), objective="choices")(theta)
    truth = plain.evaluate(problem, theta, few, actions=actions)
    assert got.value == pytest.approx(truth.value, rel=1e-9)
    assert_allclose(got.gradient, truth.gradient, **EXACT)


@recorded
@pytest.mark.parametrize("idle", [0, 3, 40])
def test_however_many_make_no_step_a_choice_weighs_what_it_weighs_in_the_counts(idle, actions):
    """Moves are certain and γ = 1: counts and choices are equal, also where there is less than one choice each."""
    transitions = np.zeros((3, 2, 3))
    transitions[[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 2]] = 1.0  # 0: stay or go on; 1: back or to the end
    mdp = MDP(transitions, [[-1.0], [-2.0], [0.5]], discount=1.0, terminal=[False, False, True])
    walks = [[0, 0, 1, 2], [1, 2], *[[2]] * idle]
    expert = Trajectories.from_lists(walks, [[0, 1, 1], [1], *[[]] * idle] if actions else None)
    counts, choices = (
        Objective.from_trajectories(mdp, expert, objective=name)([1.3]) for name in ("counts", "choices")
    )
    assert choices.value == pytest.approx(counts.value, rel=1e-12)
    assert_allclose(choices.gradient, counts.gradient, rtol=1e-9)


@recorded
@pytest.mark.parametrize("horizon", [None, 3])
def test_a_move_that_risks_a_dead_end_is_refused(horizon, actions):
    transitions = np.zeros((4, 2, 4))
    transitions[0, 0, 1] = transitions[1, 0, 0] = transitions[1, 1, 1] = 1.0
    transitions[0, 1, [1, 2]] = 0.5  # 2 has no action: a dead end; 3 is where it ends
    transitions[1, 1] = 0.0
    transitions[1, 1, 3] = 1.0
    mdp = MDP(transitions, np.eye(4)[:, :2], discount=0.9, horizon=horizon, terminal=[False, False, False, True])
    risky = Trajectories.from_lists([[0, 1, 3]], actions=[[1, 1]])
    safe = Trajectories.from_lists([[0, 1, 3]], actions=[[0, 1]])
    model = MaxEntIRL(objective="choices", ridge=0.1)
    with pytest.raises(ValueError, match=r"trajectory 0 of expert, step 0: .* from state 0 can run into the dead end"):
        model.fit(mdp, risky)
    assert model.fit(mdp, safe if actions else without_actions(risky)).converged_


def test_short_cut_trajectories_are_no_reason_to_warn():
    mdp = ring(4, discount=0.9)
    short = Trajectories.from_lists([[0, 1], [1, 1, 2], [3, 0, 0]], actions=[[1], [0, 1], [1, 0]])
    with pytest.warns(UserWarning, match=r"discount\*\*T is still"):
        MaxEntIRL(objective="counts", ridge=0.1).fit(mdp, short)
    assert MaxEntIRL(objective="choices", ridge=0.1).fit(mdp, short).converged_  # here a warning is an error
    assert (
        EMMaxEnt(objective="choices", solver="lbfgs", theta_max=2.0, max_iter=500).fit(mdp, short, short).weights_.any()
    )
    with pytest.warns(UserWarning, match=r"discount\*\*T is still"):  # a penalty looks at counts
        MaxEntIRL(objective="choices", ridge=0.1, standardise=True).fit(mdp, short)
    with pytest.warns(UserWarning, match=r"discount\*\*T is still"):
        MESSI(objective="choices", lambda0=0.1).fit(mdp, short, short)
    assert MESSI(objective="choices", lambda0=0.0, theta_max=2.0).fit(mdp, short, short).penalty_matrix_ is None


def test_ambiguous_actions_are_no_error_unless_a_penalty_asks_for_counts():
    transitions = np.zeros((3, 3, 3))
    transitions[0, 0, 1] = transitions[0, 1, 1] = transitions[0, 2, 2] = 1.0
    transitions[1, :, 0] = transitions[2, :, 0] = 1.0
    features = generator(5).normal(size=(3, 3, 2))
    mdp = MDP(transitions, features, discount=0.8)
    moves = Trajectories.from_lists([[0, 1, 0, 1, 0, 2, 0, 1], [0, 2, 0, 1, 0]])
    for model in (MaxEntIRL(), MESSI()):
        with pytest.raises(ValueError, match="several actions with different features lead from state 0"):
            model.set_params(objective="counts").fit(mdp, moves)
    model = MaxEntIRL(objective="choices", ridge=0.1).fit(mdp, moves)
    assert model.converged_
    with pytest.raises(ValueError, match="several actions with different features"):
        MESSI(objective="choices", lambda0=1.0).fit(mdp, moves, moves)
    with pytest.raises(ValueError, match="several actions with different features"):
        MaxEntIRL(objective="choices", ridge=0.1, standardise=True).fit(mdp, moves)
    without = MESSI(objective="choices", lambda0=0.0).fit(mdp, moves, moves)
    assert without.penalty_matrix_ is None


# ------------------------------------------------------------ files and units


@to_rounding
@pytest.mark.parametrize("number", FITS[::3], ids=[NAMES[i] for i in FITS[::3]])
def test_a_fit_to_choices_is_saved_and_read_back(number, tmp_path):
    model, some = fitted(number, False, own=False), trajectories_of(case(*CASES[number]).expert, actions=False)
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert again.objective == "choices"
    assert again.objective_ == model.objective_
    for name in ("theta_", "feature_counts_", "visitation_", "start_"):
        assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.score(some) == pytest.approx(model.score(some), rel=ROUNDING)


@recorded
@each_fit
def test_the_unit_of_a_feature_changes_its_weight_and_nothing_else(number, actions):
    problem, theta, expert, _, _ = case(*CASES[number])
    factor = 10.0 ** generator(number).integers(-6, 7, size=2)
    other, data = replace(problem, features=problem.features * factor), trajectories_of(expert, actions)
    one = Objective.from_trajectories(mdp_of(problem), data, objective="choices")(theta)
    two = Objective.from_trajectories(mdp_of(other), data, objective="choices")(theta / factor)
    assert two.value == pytest.approx(one.value, rel=1e-9, abs=1e-9)
    assert_allclose(two.gradient / factor, one.gradient, rtol=1e-7, atol=1e-8)
    assert_allclose(two.visitation, one.visitation, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("powers", [(-6, 6), (4, 0), (-9, -9)])
@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "goals"])
def test_a_fit_to_choices_is_the_same_in_every_unit(kind, powers):
    """With a penalty that is measured in the spread of the counts: of experts who count alike there would be none."""
    with pinned():
        mdp, expert, _ = problem_of.__wrapped__(kind)
    factor = 10.0 ** np.resize(powers, mdp.n_features)
    other = mdp.replace(features=mdp.features * factor)
    one, two = (
        MaxEntIRL(objective="choices", ridge=0.01, standardise=True, theta_max=None).fit(some, expert)
        for some in (mdp, other)
    )
    assert one.converged_
    assert two.converged_
    assert_allclose(two.theta_ * factor, one.theta_, atol=1e-5 * np.abs(one.theta_).max())
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-8)
    assert two.score(expert) == pytest.approx(one.score(expert), rel=1e-8)
