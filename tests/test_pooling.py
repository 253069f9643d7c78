"""Weighted pooling: unlabelled trajectories among those that are made likely, at a weight of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle_choices as plain
import pytest
from cases import CASES, NAMES, case, mdp_of, some_reference, trajectories_of
from numpy.testing import assert_allclose, assert_array_equal
from seeds import pinned
from worlds import to_rounding

import messirl
from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL, Trajectories
from messirl.similarity import RBF, CompleteGraph

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning"),  # counts of a cut trajectory are a guess
]
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FITS = [i for i, (_, by_state, seed) in enumerate(CASES) if seed == by_state]  # half of them: fits take time
each = pytest.mark.parametrize("number", FITS, ids=[NAMES[i] for i in FITS])
both = pytest.mark.parametrize("objective", ["counts", "choices"])
BOX = 6.0
METHODS = {
    "MaxEntIRL": lambda **more: MaxEntIRL(ridge=0.1, **more),
    "standardised": lambda **more: MaxEntIRL(ridge=0.1, standardise=True, **more),
    "MESSI": lambda **more: MESSI(RBF(4.0), lambda0=1.5, **more),
    "complete graph": lambda **more: MESSI(CompleteGraph(), lambda0=0.5, **more),
}
methods = pytest.mark.parametrize("method", list(METHODS))


def given(number: int, own: bool):
    """Problem, MDP, expert and unlabelled trajectories; with actions in every other case where moves can do without."""
    problem, _, expert, others, _ = case(*CASES[number])
    problem = replace(problem, start=None) if own else problem
    actions = not problem.by_state or number % 4 < 2
    return problem, mdp_of(problem), trajectories_of(expert, actions), trajectories_of(others, actions)


def model_for(number: int, method: str, **more):
    theta = case(*CASES[number]).theta
    return METHODS[method](**{"theta_max": BOX, "theta_init": theta, "tol": 1e-4} | more)


def assert_same_fit(one, two) -> None:
    """To the last digit: the same sums in the same order."""
    for name in ("theta_", "feature_counts_", "visitation_", "start_"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.objective_ == two.objective_
    assert one.n_iter_ == two.n_iter_


def varied(number: int) -> bool:
    """Whether some two trajectories, expert or unlabelled, have different counts."""
    _, mdp, expert, others = given(number, own=False)
    return bool(np.ptp(messirl.feature_counts(mdp, expert + others), axis=0).max() > 1e-9)


def settings(number: int) -> tuple[str, str, bool]:
    """Method, objective and start take turns over the cases."""
    turn = FITS.index(number)
    method = list(METHODS)[(turn + turn // 8) % 4]
    if method == "standardised" and not varied(number):  # which is an error, told elsewhere
        method = "MaxEntIRL"
    return (
        method,
        ("counts", "choices")[(turn // 2 + turn // 8) % 2],
        bool(turn // 4 % 2),
    )


@quiet
@each
def test_a_weight_of_zero_is_no_pooling(number):
    method, objective, own = settings(number)
    _, mdp, expert, others = given(number, own)
    one = model_for(number, method, objective=objective).fit(mdp, expert, others)
    two = model_for(number, method, objective=objective, unlabelled_weight=0.0).fit(mdp, expert, others)
    assert_same_fit(one, two)
    if method == "MaxEntIRL":  # which sees the others no other way
        assert_same_fit(one, model_for(number, method, objective=objective).fit(mdp, expert))


@quiet
@each
def test_a_weight_of_one_takes_them_for_experts(number):
    method, objective, own = settings(number)
    _, mdp, expert, others = given(number, own)
    one = model_for(number, method, objective=objective, unlabelled_weight=1.0).fit(mdp, expert, others)
    two = model_for(number, method, objective=objective).fit(mdp, expert + others)
    assert_same_fit(one, two)


@quiet
@each
def test_in_between_it_is_a_sample_weight_on_all_of_them(number):
    method, objective, own = settings(number)
    _, mdp, expert, others = given(number, own)
    light, weights = (0.03, 0.4, 2.5)[number % 3], case(*CASES[number]).weights if number % 8 < 4 else None
    one = model_for(number, method, objective=objective, unlabelled_weight=light).fit(mdp, expert, others, weights)
    experts = np.ones(len(expert)) if weights is None else weights
    union = np.concatenate([experts, np.full(len(others), light)])
    two = model_for(number, method, objective=objective).fit(mdp, expert + others, None, union)
    assert_same_fit(one, two)


@to_rounding
@each
def test_the_optimum_is_that_of_plain_code_on_all_of_them(number):
    _, objective, own = settings(number)
    problem, mdp, expert, others = given(number, own)
    _, theta, experts, more, _ = case(*CASES[number])
    light = (0.03, 0.4, 2.5)[number % 3]
    model = model_for(number, "MaxEntIRL", objective=objective, unlabelled_weight=light, tol=1e-8)
    model.fit(mdp, expert, others)
    weights = np.concatenate([np.ones(len(expert)), np.full(len(others), light)])
    evaluate = plain.evaluate if objective == "choices" else plain.evaluate_counts
    options = {"weights": weights, "quadratic": 0.1 * np.eye(2)}
    if objective == "choices":
        options["actions"] = expert.actions is not None

    def at(x):
        return evaluate(problem, x, experts + more, **options)

    assert model.objective_ == pytest.approx(at(model.theta_).value, rel=1e-9, abs=1e-9)
    best, value = plain.maximise(at, theta, BOX)
    if objective == "choices" and np.abs(best - model.theta_).max() > 1e-4:  # another top
        best, value = plain.maximise(at, model.theta_, BOX)
    assert model.objective_ == pytest.approx(value, rel=1e-8, abs=1e-8)
    assert_allclose(model.theta_, best, atol=1e-5)
    begins = sum(plain.beginnings(problem, experts + more, weights / weights.sum()).values())
    assert_allclose(model.start_, begins, rtol=1e-12, atol=1e-12)


@quiet
@pytest.mark.parametrize("number", FITS[::2], ids=[NAMES[i] for i in FITS[::2]])
def test_a_base_policy_of_the_unlabelled_goes_with_pooling_them(number):
    _, objective, own = settings(number)
    _, mdp, expert, others = given(number, own)
    model = model_for(number, "MaxEntIRL", objective=objective, reference="unlabelled", unlabelled_weight=0.3)
    one = model.fit(mdp, expert, others)
    union = np.concatenate([np.ones(len(expert)), np.full(len(others), 0.3)])
    two = model_for(number, "MaxEntIRL", objective=objective, reference=one.reference_)
    two.fit(mdp, expert + others, None, union)
    assert_same_fit(one, two)


@quiet
@both
@methods
def test_others_without_actions_leave_the_experts_theirs(method, objective):
    """Features are of states: what the others did is no part of the penalty; experts are fitted by what they chose."""
    problem, theta, expert, others, _ = case("endless", True, 0)
    known, unknown = (
        METHODS[method](objective=objective, theta_init=theta).fit(
            mdp_of(problem), trajectories_of(expert), trajectories_of(others, actions)
        )
        for actions in (True, False)
    )
    assert_same_fit(known, unknown)


@both
def test_others_that_serve_nothing_may_be_ambiguous(objective):
    """Several actions with features of their own make the same move: of others that are not looked at, no matter."""
    with pinned():  # a problem with such moves
        problem, theta, expert, others, _ = case("endless", False, 2)
    alone, beside = (
        MaxEntIRL(ridge=0.1, objective=objective, theta_init=theta).fit(mdp_of(problem), trajectories_of(expert), more)
        for more in (None, trajectories_of(others, False))
    )
    assert_same_fit(alone, beside)
    with pytest.raises(ValueError, match="several actions with different features"):
        METHODS["standardised"](objective=objective).fit(
            mdp_of(problem), trajectories_of(expert), trajectories_of(others, False)
        )


@quiet
@methods
@both
def test_without_unlabelled_trajectories_the_weight_changes_nothing(method, objective):
    _, mdp, expert, _ = given(FITS[0], own=True)
    one = model_for(FITS[0], method, objective=objective, unlabelled_weight=0.7).fit(mdp, expert)
    two = model_for(FITS[0], method, objective=objective).fit(mdp, expert)
    assert_same_fit(one, two)


@quiet
@both
def test_the_weight_is_saved(objective, tmp_path):
    _, mdp, expert, others = given(FITS[0], own=False)
    usual = some_reference(case(*CASES[FITS[0]]).problem, 0)
    model = model_for(FITS[0], "MESSI", objective=objective, unlabelled_weight=0.25, reference=usual)
    model.fit(mdp, expert, others).save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert again.unlabelled_weight == 0.25
    assert_same_fit(again, model)
    assert_same_fit(again.fit(mdp, expert, others), model)


@pytest.mark.parametrize("weight", [-0.1, np.nan, np.inf])
@pytest.mark.parametrize("method", [MaxEntIRL, MESSI])
def test_a_weight_is_a_number_from_zero_on(method, weight):
    _, mdp, expert, others = given(FITS[0], own=False)
    with pytest.raises(ValueError, match="unlabelled_weight"):
        method(unlabelled_weight=weight).fit(mdp, expert, others)
    with pytest.raises(TypeError, match="unlabelled_weight"):
        method(unlabelled_weight="little").fit(mdp, expert, others)


@both
def test_an_impossible_trajectory_is_named_as_the_unlabelled_one_that_it_is(objective):
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 0] = transitions[1, :, 0] = 1.0
    transitions[0, 1, [1, 2]] = 0.5  # 2 has no action: a dead end
    mdp = MDP(transitions, np.eye(3)[:, :2], discount=0.5)
    safe = Trajectories.from_lists([[1, 0, 0, 0, 0]], actions=[[0, 0, 0, 0]])
    risky = Trajectories.from_lists([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]], actions=[[1, 0, 0, 0], [1, 0, 0, 0]])
    model = {"objective": objective, "ridge": 0.1}
    MaxEntIRL(**model).fit(mdp, safe, risky)
    for method in (MaxEntIRL(**model, unlabelled_weight=0.1), EMMaxEnt(objective=objective, solver="lbfgs")):
        with pytest.raises(ValueError, match=r"trajectory 1 of unlabelled, step 0: .*can run into the dead end"):
            method.fit(mdp, safe, risky)
        with pytest.raises(ValueError, match=r"trajectory 1 of expert, step 0: .*can run into the dead end"):
            method.fit(mdp, risky, safe)


@both
def test_weights_whose_sum_is_no_float_are_weights_all_the_same(objective):
    _, mdp, expert, others = given(FITS[0], own=False)
    huge, large = (MaxEntIRL(ridge=0.1, objective=objective, unlabelled_weight=w) for w in (1e308, 1e200))
    assert_allclose(huge.fit(mdp, expert, others).theta_, large.fit(mdp, expert, others).theta_, rtol=1e-6)


def test_em_has_weights_of_its_own():
    assert "unlabelled_weight" not in EMMaxEnt().get_params()
