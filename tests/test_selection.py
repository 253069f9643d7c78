"""Choosing λ0 and the similarity: candidates, splits, the rules of choice, and how sure the outcome is."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from seeds import shifted
from sklearn.base import clone
from worlds import drawn, maze, random_mdp, to_rounding

import messirl
from messirl import MESSI, EMMaxEnt, MaxEntIRL, Trajectories, plot
from messirl.estimators.uniform import uniform_policy
from messirl.planning import sample
from messirl.selection import MESSICV, Candidate, Validation, bootstrap, cross_validate, nested_score, resampling
from messirl.selection.candidates import LAMBDAS, CandidateFitter, make_candidates
from messirl.selection.cross_validation import make_splits
from messirl.selection.decision_rule import Choice, choose_candidate, default_index, units_needed, unlabelled_gain
from messirl.selection.expert_agreement import ExpertAgreement, measure_agreement
from messirl.selection.resampling import stability
from messirl.similarity import RBF, Exponential, Precomputed

SIMILARITY = RBF("median", standardise=True)
WORLDS = ["endless", "finite", "episodic", "goals", "steps"]
EM = EMMaxEnt(solver="lbfgs")
FEW = {"lambdas": (0.1, 10.0), "cv": 3, "random_state": 0}


def grid_world(n_expert=4, n_unlabelled=10):
    """4 × 4 tiles; experts go right and up."""
    at = plot.grid(4, 4)
    mdp = maze(4, 4, at / 3, discount=0.9)
    anywhere = {"length": 30, "start": np.full(16, 1 / 16)}
    return mdp, drawn(mdp, [3.0, 2.0], n_expert, 1, **anywhere), drawn(mdp, [3.0, 2.0], n_unlabelled, 2, **anywhere)


def validation(gains, candidate_list, base=-1.0, steps=10):
    """A Validation whose candidates gain, unit by unit and step by step, what each row says over −1 nat."""
    scores = base + np.array(gains, dtype=float)
    return Validation(list(candidate_list), steps * scores, np.full(scores.shape[1], steps))


# ------------------------------------------------------------ candidates


@pytest.mark.parametrize("lambdas", [LAMBDAS, (0.1,), (0.0, 0.1), ()])
def test_the_experts_alone_come_first_and_the_defaults_are_always_there(lambdas):
    every = make_candidates([SIMILARITY], lambdas)
    assert every[0] == Candidate("MaxEnt")
    positive = {x for x in lambdas if x > 0}
    for method in ("MESSI", "Complete"):
        assert {c.lambda0 for c in every if c.method == method} == positive
    assert {c.lambda0 for c in every if c.method == "ReferenceStd" and c.strength == 10.0} == positive
    assert every[default_index(every, unlabelled=True)] == Candidate("LightPoolingStd", 0.01, weight=0.01)
    assert every[default_index(every, unlabelled=False)] == Candidate("RidgeStd", 0.01)
    assert len(set(every)) == len(every)


def test_pooling_goes_from_little_to_all():
    weights = [c.weight for c in make_candidates([SIMILARITY], LAMBDAS) if c.method == "LightPoolingStd"]
    assert weights == sorted(weights)
    assert weights[-1] == 1.0


def test_no_base_policy_is_a_candidate_where_none_is_possible():
    assert all(c.strength is None for c in make_candidates([SIMILARITY], LAMBDAS, based=False))


def test_paths_go_from_strong_to_weak():
    strengths = [c.lambda0 for c in make_candidates([SIMILARITY], LAMBDAS) if c.method == "MESSI"]
    assert strengths == sorted(LAMBDAS, reverse=True)


def test_without_unlabelled_trajectories_only_what_needs_none_is_a_candidate():
    every = make_candidates([SIMILARITY], (0.1,), unlabelled=False)
    assert every == [Candidate("MaxEnt"), Candidate("RidgeStd", 0.1), Candidate("RidgeStd", 0.01)]
    assert not any(c.unlabelled for c in every)


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_a_strength_that_is_none_raises(wrong):
    with pytest.raises(ValueError, match=r"lambdas holds .*: give finite numbers"):
        make_candidates([SIMILARITY], (0.1, wrong))


def test_strengths_may_come_from_a_generator():
    every = make_candidates([SIMILARITY], (x for x in (0.1, 1.0)))
    assert [c.lambda0 for c in every if c.method == "MESSI"] == [1.0, 0.1]


def bench_of(kind, **options):
    mdp, expert, unlabelled = problem(kind)
    return CandidateFitter(mdp, expert, unlabelled, yardstick=SIMILARITY, **{"tol": 1e-8, "max_iter": 2000, **options})


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize("kind", WORLDS)
def test_the_bench_fits_what_the_estimators_fit(kind, objective):
    mdp, expert, unlabelled = problem(kind)
    shared = {"objective": objective, "tol": 1e-8, "max_iter": 2000}
    bench = bench_of(kind, objective=objective)
    for fit in bench.path(make_candidates([SIMILARITY], (0.3, 30.0))):
        candidate, theta = fit.candidate, fit.theta
        if candidate.method == "MaxEnt":  # of which two ways to the same height may end apart
            continue
        model, data = candidate.estimator(
            MESSI(SIMILARITY, lambda0=candidate.lambda0, **shared), mdp, expert, unlabelled
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(mdp, *data)
        found = bench.likelihood(candidate).penalised(bench.penalty(candidate))(theta)
        assert found.value == pytest.approx(model.objective_, rel=1e-6, abs=1e-6), candidate
        steps = (unlabelled.lengths - 1).sum()
        own = bench.score(candidate, model.theta_, unlabelled) / steps
        assert own == pytest.approx(model.score(unlabelled), rel=1e-9, abs=1e-9), candidate
        assert bench.score(candidate, theta, unlabelled) / steps == pytest.approx(own, abs=1e-4), candidate


@pytest.mark.parametrize("kind", ["endless", "episodic"])
def test_warm_starts_change_nothing(kind):
    bench = bench_of(kind)
    for fit in bench.path(make_candidates([SIMILARITY], (0.3, 3.0, 30.0))):
        candidate, theta = fit.candidate, fit.theta
        cold, based = bench.fit(candidate), bench.based(candidate)
        ours, own = (messirl.soft_policy(based, based.reward(t)) for t in (theta, cold))
        assert_allclose(ours, own, atol=1e-5)


def test_a_bench_refuses_trajectories_that_the_problem_does_not_have():
    mdp, expert, unlabelled = problem("endless")
    wrong = Trajectories.from_lists([[0, mdp.n_states]])
    for sets, name in (((wrong, unlabelled), "expert"), ((expert, wrong), "unlabelled")):
        with pytest.raises(ValueError, match=f"{name}: trajectory 0, step 1: state {mdp.n_states} is not one of"):
            CandidateFitter(mdp, *sets, yardstick=SIMILARITY)


def test_two_large_matrices_that_print_alike_are_two_similarities():
    bench = bench_of("endless")
    n = len(bench.data)
    a = np.ones((n, n))
    b = a.copy()
    b[10, 12] = b[12, 10] = 0.0
    one, other = (bench.penalty(Candidate("MESSI", 1.0, Precomputed(m))) for m in (a, b))
    assert np.abs(one - other).max() > 1e-9


def test_a_theta_without_finite_values_scores_minus_infinity():
    bench = bench_of("episodic")
    assert bench.score(Candidate("MaxEnt"), np.array([1.0, 0.0]), bench.expert) == -np.inf


# ------------------------------------------------------------ splits


def held_out_once(expert, pairs):
    """Every trajectory is held out once, and is nowhere in the training part of that split."""
    seen = sorted(tuple(one.states) for _, test in pairs for one in test)
    assert seen == sorted(tuple(one.states) for one in expert)
    for train, test in pairs:
        assert not {tuple(one.states) for one in train} & {tuple(one.states) for one in test}
        assert len(train) + len(test) == len(expert)


def test_few_trajectories_are_held_out_one_by_one():
    mdp, expert, _ = grid_world(6)
    pairs = make_splits(mdp, expert, cv=3)
    assert [len(test) for _, test in pairs] == [1] * 6
    held_out_once(expert, pairs)


def test_many_trajectories_are_held_out_in_folds_and_the_seed_decides_which():
    mdp, expert, _ = grid_world(13)
    pairs = make_splits(mdp, expert, cv=3, random_state=0)
    assert len(pairs) == 3
    held_out_once(expert, pairs)
    again, other = (make_splits(mdp, expert, cv=3, random_state=seed) for seed in (0, 1))
    assert all(a == b for a, b in zip(pairs, again, strict=True))
    assert any(a != b for a, b in zip(pairs, other, strict=True))


def test_no_group_is_on_both_sides():
    mdp, expert, _ = grid_world(12)
    groups = np.array(["B1", "B2", "C1", "C2"] * 3)
    who = {tuple(one.states): group for one, group in zip(expert, groups, strict=True)}
    assert len(who) == 12
    pairs = make_splits(mdp, expert, cv=5, groups=groups)
    assert len(pairs) == 4
    held_out_once(expert, pairs)
    for train, test in pairs:
        assert not {who[tuple(one.states)] for one in train} & {who[tuple(one.states)] for one in test}


def test_one_trajectory_of_an_endless_problem_is_divided_in_time():
    mdp, expert, _ = grid_world(1)
    states, actions = expert.states, expert.actions
    pairs = make_splits(mdp, expert)
    assert len(pairs) == 3
    for train, test in pairs:
        cut = len(train.states) - 1
        assert_array_equal(train.states, states[: cut + 1])
        assert_array_equal(train.actions, actions[:cut])
        assert_array_equal(test.states, states[cut : cut + len(test.states)])
        assert_array_equal(test.actions, actions[cut : cut + len(test.states) - 1])
    assert pairs[-1][1].states[-1] == states[-1]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("episodic", "it ends at a goal or terminal state"),
        ("goals", "it ends at a goal or terminal state"),
        ("finite", "a trajectory has 6 states"),
    ],
)
def test_where_one_trajectory_ends_nothing_can_be_chosen_and_the_default_is_taken(kind, why):
    mdp, expert, unlabelled = problem(kind)
    one = expert[[int(np.argmax(expert.lengths))]]
    with pytest.raises(ValueError, match=f"nothing can be held out, and it cannot be divided either, since {why}"):
        make_splits(mdp, one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MESSICV().fit(mdp, one, unlabelled)
    assert model.candidate_ == Candidate("LightPoolingStd", 0.01, weight=0.01)
    assert "one expert trajectory" in model.reason_
    assert model.reason_.endswith("so the fixed default is used")
    assert (model.validation_, model.use_, model.verdict_) == (None, None, None)
    assert np.isfinite(model.score(one))


def test_one_short_trajectory_cannot_be_divided():
    mdp, expert, _ = grid_world(1)
    short = Trajectories(expert.states[:5], [0, 5])
    with pytest.raises(ValueError, match="since it has only 5 states"):
        make_splits(mdp, short)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv=1: at least two folds are needed"),
        ({"groups": [1, 2]}, r"groups has shape \(2,\): give one label for each of the 4 expert"),
        ({"groups": [1, 1, 1, 1]}, "groups names one group only"),
    ],
)
def test_splits_that_cannot_be_made_raise(options, message):
    mdp, expert, _ = grid_world(4)
    with pytest.raises(ValueError, match=message):
        make_splits(mdp, expert, **options)


def test_a_held_out_trajectory_without_a_step_is_passed_over():
    mdp, expert, unlabelled = grid_world(3)
    still = Trajectories([0], [0, 1], np.zeros(0, dtype=int))
    one, pairs = [Candidate("MaxEnt", 0.0)], make_splits(mdp, expert, random_state=0)
    found = cross_validate(mdp, one, [(expert, still), *pairs], unlabelled, yardstick=SIMILARITY)
    assert_array_equal(found.logs, cross_validate(mdp, one, pairs, unlabelled, yardstick=SIMILARITY).logs)
    with pytest.raises(ValueError, match="no held-out trajectory makes a step"):
        cross_validate(mdp, one, [(expert, still)], unlabelled, yardstick=SIMILARITY)


# ------------------------------------------------------------ validation


@to_rounding
def test_validation_is_the_log_probability_under_refits_without_the_held_out_trajectories():
    mdp, expert, unlabelled = grid_world(9)
    pairs = make_splits(mdp, expert, cv=2, random_state=0)  # several trajectories are held out at once
    every = [Candidate("MaxEnt"), Candidate("MESSI", 3.0, SIMILARITY)]
    found = cross_validate(mdp, every, pairs, unlabelled, yardstick=SIMILARITY, tol=1e-8, max_iter=2000)
    for i, c in enumerate(every):
        model = MESSI(SIMILARITY, lambda0=c.lambda0, tol=1e-8, max_iter=2000)
        own = [clone(model).fit(mdp, train, unlabelled)._log_likelihood(test) for train, test in pairs]
        assert_allclose(found.logs[i], np.concatenate(own), atol=1e-5)
        assert found.scores[i] == pytest.approx(np.concatenate(own).sum() / (expert.lengths - 1).sum())
    assert_array_equal(found.steps, np.concatenate([test.lengths - 1 for _, test in pairs]))
    together = cross_validate(mdp, every, pairs, unlabelled, together=True, yardstick=SIMILARITY)
    assert together.logs.shape == (2, 2)
    assert_array_equal(together.steps, [(test.lengths - 1).sum() for _, test in pairs])


def test_splits_that_leave_the_same_trajectories_are_fitted_once_and_scored_each(monkeypatch):
    mdp, expert, unlabelled = grid_world(3)
    twice = expert[[0, 1, 1, 2]]
    every, fits = [Candidate("MaxEnt"), Candidate("MESSI", 3.0, SIMILARITY)], []
    own = CandidateFitter.fitted
    monkeypatch.setattr(CandidateFitter, "fitted", lambda *given: fits.append(given[1]) or own(*given))
    told = []
    options = {"yardstick": SIMILARITY}
    pairs = make_splits(mdp, twice)
    found = cross_validate(mdp, every, pairs, unlabelled, progress=lambda *now: told.append(now), **options)
    assert len(fits) == 3 * 2
    assert told == [(i + 1, 6) for i in range(6)]
    one_by_one = [cross_validate(mdp, every, [pair], unlabelled, **options).logs for pair in pairs]
    assert_array_equal(found.logs, np.concatenate(one_by_one, axis=1))


@pytest.mark.parametrize("kind", ["endless", "episodic", "goals", "finite"])
def test_fits_on_splits_that_begin_at_those_to_all_end_where_the_others_do(kind):
    mdp, expert, unlabelled = problem(kind)
    every, pairs = make_candidates([SIMILARITY], (0.3, 3.0)), make_splits(mdp, expert, cv=2, random_state=0)
    options = {"yardstick": SIMILARITY, "tol": 1e-7, "max_iter": 2000, "theta_prior": 3.0}
    told = []
    cold = cross_validate(mdp, every, pairs, unlabelled, **options)
    near = cross_validate(mdp, every, pairs, unlabelled, expert=expert, progress=lambda *x: told.append(x), **options)
    assert_allclose(near.scores, cold.scores, atol=2e-4)
    assert told[-1] == (len(told), len(told))
    assert len(told) == (len(pairs) + 1) * len(every)


def test_rows_hold_gains_over_any_candidate_with_their_intervals():
    gains = [[0.0, 0.0, 0.0], [-0.3, 0.1, 1.1]]
    found = validation(gains, [Candidate("MaxEnt"), Candidate("MESSI", 0.1, SIMILARITY)])
    row = found.rows()[1]
    assert row["gain"] == pytest.approx(0.3)
    half = 4.302653 * np.std([-0.3, 0.1, 1.1], ddof=1) / np.sqrt(3)  # Student's t with two degrees of freedom
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((0.3 - half, 0.3 + half))
    assert row["score"] == pytest.approx(-0.7)
    assert (row["method"], row["lambda0"]) == ("MESSI", 0.1)
    assert found.rows(1)[0]["gain"] == pytest.approx(-0.3)


# ------------------------------------------------------------ the choice


NONE, WEAK, STRONG = Candidate("MaxEnt"), Candidate("MESSI", 0.1, SIMILARITY), Candidate("MESSI", 3.0, SIMILARITY)
ALONE, DEFAULT = Candidate("RidgeStd", 0.01), Candidate("LightPoolingStd", 0.01, weight=0.01)
UNITS = 40
ZERO = [0.0] * UNITS
CLOSE = np.linspace(-0.01, 0.01, UNITS)


def test_of_several_clearly_better_candidates_the_one_with_the_highest_lower_end_is_chosen():
    gains = [ZERO, ZERO, 0.1 + CLOSE, 0.2 + CLOSE, 0.5 + 100 * CLOSE, ZERO]
    found = choose_candidate(validation(gains, [NONE, ALONE, WEAK, STRONG, Candidate("Complete", 1.0), DEFAULT]))
    assert found.candidate == STRONG
    assert found.reason.startswith(
        f"significantly better than the fixed default at 99.9 %, {DEFAULT}: +0.2000 nats per step ["
    )
    assert (found.default, found.rival) == (5, 4)


def test_on_a_tie_the_default_is_kept_and_what_would_settle_it_is_said():
    gains = [ZERO, ZERO, 0.05 + 20 * CLOSE, ZERO]
    found = choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT]))
    assert found.candidate == DEFAULT
    assert found.reason.startswith(
        f"the fixed default; {WEAK} does best, but not significantly at 99.9 %: +0.0500 nats per step ["
    )
    assert found.rival == 2
    assert found.needed > UNITS


def test_where_nothing_does_better_the_default_is_kept():
    found = choose_candidate(validation([ZERO, ZERO, -0.1 + CLOSE, ZERO], [NONE, ALONE, WEAK, DEFAULT]))
    assert (found.candidate, found.needed) == (DEFAULT, None)
    assert found.reason == "the fixed default, and no candidate does better"


def test_where_the_unlabelled_trajectories_hurt_the_choice_does_without_them():
    gains = [-1.0 + CLOSE, 0.03 + 2 * CLOSE, 0.02 + CLOSE, ZERO]
    found = choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT]))
    assert found.candidate == ALONE
    assert found.reason.startswith("the unlabelled trajectories hurt: without them +0.0300 nats per step [")
    assert unlabelled_gain(validation(gains, [NONE, ALONE, WEAK, DEFAULT]), found).verdict == "hurt"
    better = choose_candidate(validation([*gains[:2], 0.5 + CLOSE, ZERO], [NONE, ALONE, WEAK, DEFAULT]))
    assert better.candidate == WEAK
    assert better.reason.startswith(f"significantly better than the experts only at 99.9 %, {ALONE}")


def test_on_a_tie_trajectories_that_do_not_lean_towards_the_experts_are_left_out():
    found = validation([ZERO, ZERO, 0.05 + 20 * CLOSE, ZERO], [NONE, ALONE, WEAK, DEFAULT])
    strange, leaning, unsure = (
        ExpertAgreement(np.zeros(20), expert, 1.0, messirl.inference.paired_gain.Gain(lean, lean - 0.1, lean + 0.1))
        for lean, expert in ((0.05, 0.2), (0.15, 0.2), (0.05, -0.2))
    )
    told = choose_candidate(found, strange)
    assert told.candidate == ALONE
    assert told.reason.startswith(
        "nothing shows that the unlabelled trajectories lean towards the experts, so only the experts are used; "
    )
    assert choose_candidate(found, leaning).candidate == choose_candidate(found, unsure).candidate == DEFAULT
    clear = validation([ZERO, ZERO, 0.5 + CLOSE, ZERO], [NONE, ALONE, WEAK, DEFAULT])
    assert choose_candidate(clear, strange).candidate == WEAK


@pytest.mark.parametrize("n", [1, 2, 3])
def test_too_few_units_choose_nothing(n):
    found = choose_candidate(validation([[0.0] * n, [0.0] * n, [5.0] * n, [0.0] * n], [NONE, ALONE, WEAK, DEFAULT]))
    assert found.candidate == DEFAULT
    assert f"{n} held-out expert trajectories, groups or parts are too few to choose by" in found.reason
    strange = ExpertAgreement(np.zeros(20), 0.2, 1.0, messirl.inference.paired_gain.Gain(-0.5, -0.6, -0.4))
    without = choose_candidate(validation([[0.0] * n] * 4, [NONE, ALONE, WEAK, DEFAULT]), strange)
    assert without.candidate == ALONE
    assert without.default == 3
    assert "and nothing shows that the unlabelled trajectories lean towards the experts, so" in without.reason


def test_a_default_that_rules_out_what_was_seen_is_left():
    gains = [ZERO, ZERO, 0.1 + CLOSE, [-np.inf, *ZERO[1:]]]
    assert choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT])).candidate != DEFAULT


def test_a_candidate_without_finite_scores_is_never_chosen():
    gains = [ZERO, ZERO, [-np.inf, *(5.0 + CLOSE[1:])], ZERO]
    assert choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT])).candidate == DEFAULT


def test_without_unlabelled_trajectories_the_choice_is_among_the_experts_alone():
    gains = [-1.0 + CLOSE, ZERO, 0.5 + CLOSE, 0.5 + CLOSE]
    assert choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT]), unlabelled=False).candidate == ALONE
    assert (
        choose_candidate(validation([0.5 + CLOSE, *gains[1:]], [NONE, ALONE, WEAK, DEFAULT]), unlabelled=False).index
        == 0
    )


def test_as_many_units_as_needed_make_a_difference_clear():
    noise = np.linspace(-1, 1, 8)
    gains = [ZERO[:8], ZERO[:8], 0.3 + noise, ZERO[:8]]
    few = choose_candidate(validation(gains, [NONE, ALONE, WEAK, DEFAULT]))
    assert few.candidate == DEFAULT
    for units, clear in ((int(0.8 * few.needed), False), (int(1.3 * few.needed), True)):
        many = [np.resize(row, units // 8 * 8) for row in gains]
        assert (choose_candidate(validation(many, [NONE, ALONE, WEAK, DEFAULT])).candidate == WEAK) == clear
    assert units_needed(messirl.inference.paired_gain.Gain(-0.1, -0.2, 0.0), 8) is None


def test_unlabelled_trajectories_without_a_step_lean_nowhere():
    mdp, expert, _ = problem("episodic")
    still = Trajectories.from_lists([[int(s)] for s in np.flatnonzero(mdp.terminal)[:1]] * 3)
    found = measure_agreement(mdp, Trajectories(expert.states, expert.offsets), still)
    assert found.relative_likelihood.mean == 0.0
    assert not found.is_significant


# ------------------------------------------------------------ leaning


def corridor():
    """Ten places in a row; experts go right."""
    right, left = np.minimum(np.arange(10) + 1, 9), np.maximum(np.arange(10) - 1, 0)
    moves = np.stack([np.eye(10)[left], np.eye(10)[right]], axis=1)
    mdp = messirl.MDP(moves, np.linspace(0, 1, 10)[:, None], discount=0.9)
    policy = messirl.soft_policy(mdp, mdp.reward([3.0]))
    return mdp, messirl.sample(mdp, policy, 8, 12, start=np.ones(10), random_state=0)


@pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning")
def test_whoever_takes_every_move_equally_often_does_not_lean():
    mdp, expert = corridor()
    steps = [([s, t], [a]) for s in range(10) for a, t in enumerate((max(s - 1, 0), min(s + 1, 9)))]
    every = Trajectories.from_lists([s for s, _ in steps], actions=[a for _, a in steps])
    found = measure_agreement(mdp, expert, every)
    assert found.relative_likelihood.mean == pytest.approx(0.0, abs=1e-12)
    assert found.is_significant is False
    assert found.mean < 0


@pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning")
def test_whoever_does_half_of_what_the_expert_does_leans_though_the_likeness_may_be_low():
    mdp, expert = corridor()
    policy = 0.5 * messirl.soft_policy(mdp, mdp.reward([3.0])) + 0.25
    wrong_way = messirl.soft_policy(mdp, mdp.reward([-3.0]))
    others, contrary = (
        messirl.sample(mdp, some, 40, 12, start=np.ones(10), random_state=1) for some in (policy, wrong_way)
    )
    assert measure_agreement(mdp, expert, others).is_significant
    against = measure_agreement(mdp, expert, contrary)
    assert against.is_significant is False
    assert against.relative_likelihood.high < 0
    without = Trajectories(others.states, others.offsets)  # the moves say what was done
    assert measure_agreement(mdp, Trajectories(expert.states, expert.offsets), without).relative_likelihood.mean > 0.1


# ------------------------------------------------------------ what the unlabelled trajectories are worth


@pytest.mark.parametrize(
    ("alone", "using", "said"),
    [(ZERO, 0.1 + CLOSE, "help"), (0.1 + CLOSE, ZERO, "hurt"), (10 * CLOSE, ZERO, "unclear")],
)
def test_the_verdict_is_what_using_them_gains_over_the_experts_alone(alone, using, said):
    found = validation([np.full(UNITS, -3.0) + CLOSE, alone, using], [NONE, ALONE, DEFAULT])
    use = unlabelled_gain(found, choose_candidate(found))
    assert use.verdict == said
    assert (use.using, use.alone) == (DEFAULT, ALONE)
    assert use.gain.mean == pytest.approx(np.mean(using) - np.mean(alone))
    assert {"help": "helps", "hurt": "hurts", "unclear": "no clear difference"}[said] in use.sentence
    assert set(use.summary()) == {"gain", "low", "high", "using", "alone"}


def test_a_choice_that_does_not_use_them_is_compared_with_the_default_that_does():
    found = validation([0.3 + CLOSE, ZERO, ZERO], [NONE, ALONE, DEFAULT])
    choice = choose_candidate(found)
    assert choice.candidate == NONE
    use = unlabelled_gain(found, choice)
    assert (use.using, use.alone, use.verdict) == (DEFAULT, NONE, "hurt")


# ------------------------------------------------------------ MESSICV


@pytest.fixture(scope="module")
def chosen():
    mdp, expert, unlabelled = grid_world()
    told = []
    model = MESSICV(**FEW, progress=lambda done, total: told.append((done, total))).fit(mdp, expert, unlabelled)
    return model, told


def test_it_is_an_estimator_like_the_others(chosen, tmp_path):
    model, _ = chosen
    again = clone(model)
    assert again.get_params()["lambdas"] == (0.1, 10.0)
    assert not hasattr(again, "theta_")
    assert "MESSICV(" in repr(again)
    assert "random_state=0" in repr(again)
    _, expert, _ = grid_world()
    best = model.best_estimator_
    assert model.score(expert) == best.score(expert)
    assert_array_equal(model.predict_proba([0, 5]), best.predict_proba([0, 5]))
    assert model.sample(3, 8, random_state=1) == best.sample(3, 8, random_state=1)
    model.save(tmp_path / "model.npz")
    read = messirl.load(tmp_path / "model.npz")
    assert type(read) is type(best)
    assert_array_equal(read.theta_, model.theta_)


def test_the_chosen_candidate_is_fitted_to_everything(chosen):
    model, _ = chosen
    mdp, *_ = grid_world()
    assert model.candidate_ == model.validation_.candidates[model.choice_.index]
    again = clone(model.best_estimator_).fit(mdp, *model.fitted_to_)
    assert_array_equal(again.theta_, model.theta_)


def test_progress_counts_every_candidate_on_every_split(chosen):
    model, told = chosen
    total = len(model.validation_.candidates) * 5  # four splits, and all experts
    assert told == [(i + 1, total) for i in range(total)]


def test_the_seed_decides_everything(chosen):
    mdp, expert, unlabelled = grid_world(8)
    a, b = (MESSICV(**FEW).fit(mdp, expert, unlabelled) for _ in range(2))
    assert_array_equal(a.validation_.scores, b.validation_.scores)
    assert_array_equal(a.theta_, b.theta_)
    assert a.reason_ == b.reason_


@pytest.mark.parametrize("kind", ["finite", "goals", "episodic", "steps"])
def test_every_kind_of_problem_is_chosen_for(kind):
    mdp, expert, unlabelled = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = expert[expert.lengths > 1][:6]  # of one that begins in its end there is nothing to predict
        model = MESSICV(lambdas=(1.0,), cv=2, random_state=0).fit(mdp, some, unlabelled)
    assert np.isfinite(model.score(expert))
    assert len(model.validation_.rows()) == len(make_candidates([SIMILARITY], (1.0,)))
    assert model.verdict_ in ("help", "hurt", "no effect", "unclear")


def test_the_noncausal_model_is_chosen_for_without_base_policies():
    mdp, expert, unlabelled = problem("finite")
    model = MESSICV(lambdas=(1.0,), entropy="noncausal", cv=2, random_state=0).fit(mdp, expert, unlabelled)
    assert all(c.strength is None for c in model.validation_.candidates)
    assert np.isfinite(model.validation_.scores).all()


@pytest.mark.parametrize("wanted", [Candidate("RidgeStd", 10.0), Candidate("MaxEnt")])
def test_what_is_chosen_without_unlabelled_trajectories_is_what_was_validated(wanted, monkeypatch):
    mdp, expert, _ = grid_world(5)

    def only(found, *_, **__):
        return Choice(found.candidates.index(wanted), wanted, "it was asked for", 0)

    monkeypatch.setattr("messirl.selection.messicv.choose_candidate", only)
    model = MESSICV(**FEW, tol=1e-6).fit(mdp, expert)
    bench = CandidateFitter(mdp, expert, None, yardstick=SIMILARITY, tol=1e-6, theta_prior=model.theta_prior)
    assert_allclose(model.theta_, bench.fit(wanted), rtol=1e-4)
    assert model.use_ is None


def test_two_experts_and_no_others_take_the_default():
    mdp, expert, _ = grid_world(2)
    model = MESSICV(**FEW).fit(mdp, expert)
    assert model.candidate_ == Candidate("RidgeStd", 0.01)
    assert "too few to choose by" in model.reason_


def test_groups_are_units_of_the_choice():
    mdp, expert, unlabelled = grid_world(8)
    model = MESSICV(**FEW).fit(mdp, expert, unlabelled, groups=np.arange(8) // 2)
    assert model.validation_.steps.size == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarities": []}, "similarities is empty"),
        ({"lambdas": (-1.0,)}, "lambdas holds -1.0"),
        ({"theta_max": -1.0}, "theta_max=-1.0"),
        ({"theta_max": None}, "theta_max=None"),
        ({"entropy": "wrong"}, "entropy"),
        ({"lambdas": 0.1}, "lambdas=0.1: give a sequence of numbers"),
        ({"lambdas": "0.1"}, "lambdas must be numbers"),
        ({"cv": 0}, "cv=0: at least two folds"),
        ({"cv": 2.5}, "cv=2.5: give a whole number of folds"),
    ],
)
def test_arguments_that_mean_nothing_raise(options, message):
    mdp, expert, unlabelled = grid_world()
    with pytest.raises((ValueError, TypeError), match=message):
        MESSICV(**options).fit(mdp, expert, unlabelled)


def test_several_similarities_are_candidates_each():
    mdp, expert, unlabelled = grid_world()
    model = MESSICV([SIMILARITY, Exponential(2.0)], lambdas=(1.0,), cv=2).fit(mdp, expert, unlabelled)
    assert {c.similarity for c in model.validation_.candidates if c.method == "MESSI"} == {SIMILARITY, Exponential(2.0)}


# ------------------------------------------------------------ nested


def test_no_choice_has_seen_what_it_is_scored_on(monkeypatch):
    mdp, expert, unlabelled = grid_world(5)
    groups = np.array([0, 0, 1, 2, 3])
    seen, scored = [], []
    own_fit, own_score = MESSICV.fit, MESSICV.score

    def fit(self, mdp, some, others, groups):
        seen.append({tuple(one.states) for one in some})
        return own_fit(self, mdp, some, others, groups)

    def score(self, some):
        scored.append({tuple(one.states) for one in some})
        return own_score(self, some)

    monkeypatch.setattr(MESSICV, "fit", fit)
    monkeypatch.setattr(MESSICV, "score", score)
    found = nested_score(MESSICV(lambdas=(1.0,), cv=4, random_state=0), mdp, expert, unlabelled, groups)
    assert len(seen) == len(scored) == len(found.chosen) == 4
    for learnt, held_out in zip(seen, scored, strict=True):
        assert not learnt & held_out
    together = {tuple(expert[0].states), tuple(expert[1].states)}
    assert all(together <= held_out or not together & held_out for held_out in scored)
    assert sum(map(len, scored)) == 5
    assert found.mean == pytest.approx(found.scores.mean())
    assert found.standard_error == pytest.approx(found.scores.std(ddof=1) / 2)


def test_nested_validation_of_three_leaves_two_to_choose_on():
    mdp, expert, unlabelled = grid_world(3)
    assert nested_score(MESSICV(lambdas=(1.0,), cv=2), mdp, expert, unlabelled).scores.shape == (3,)
    with pytest.raises(ValueError, match="needs at least three expert trajectories"):
        nested_score(MESSICV(), mdp, expert[:2], unlabelled)


# ------------------------------------------------------------ how sure


def test_bootstrap_intervals_contain_the_estimate_and_widen_with_the_level():
    mdp, expert, unlabelled = grid_world(12)
    model = MESSI(SIMILARITY, lambda0=1.0).fit(mdp, expert, unlabelled)
    found = bootstrap(model, mdp, expert, unlabelled, n=30, random_state=0)
    assert found.theta.shape == (30, 2)
    assert found.reward.shape == (30, 16)
    assert found.policy.shape == (30, *model.policy_.shape)
    low, high = found.interval(found.theta, 0.95)
    assert low.shape == (2,)
    assert ((low <= model.theta_) & (model.theta_ <= high)).all()
    narrow = found.interval(found.theta, 0.5)
    assert (low <= narrow[0]).all()
    assert (narrow[1] <= high).all()
    assert (narrow[1] - narrow[0] < high - low).all()
    assert_array_equal(found.theta, bootstrap(model, mdp, expert, unlabelled, n=30, random_state=0).theta)


@to_rounding
@pytest.mark.parametrize("estimator", [MESSI(SIMILARITY, lambda0=30.0), EM], ids=["MESSI", "EM"])
@pytest.mark.parametrize("likely", ["choices", "counts"])
def test_resamples_side_by_side_are_those_one_by_one(estimator, likely, monkeypatch):
    """Eighteen fill the lanes once, and some of them again."""
    mdp, expert, unlabelled = grid_world(8)
    model = clone(estimator).set_params(objective=likely)
    told, n = [], 18
    options = {"n": n, "random_state": 0}
    together = bootstrap(model, mdp, expert, unlabelled, progress=lambda *now: told.append(now), **options)
    assert told == [(16, n), (n, n)]
    monkeypatch.setattr(resampling, "_batch_size", lambda *_: 1)
    alone = bootstrap(model, mdp, expert, unlabelled, **options)
    assert_allclose(together.theta, alone.theta, atol=1e-4)
    assert_allclose(together.policy, alone.policy, atol=1e-5)


def test_resamples_without_lanes_are_fitted_one_by_one():
    told = []
    models = [MaxEntIRL(ridge=0.1), MaxEntIRL(ridge=0.1), MaxEntIRL(ridge=0.1, reference="unlabelled")]
    for model, kind in zip(models, ("finite", "goals", "endless"), strict=True):
        bootstrap(model, *problem(kind), n=2, random_state=0, progress=lambda *now: told.append(now))
    assert told == [(1, 2), (2, 2)] * 3


@to_rounding
def test_a_given_matrix_is_resampled_with_the_trajectories():
    mdp, expert, unlabelled = grid_world(5)
    counts = messirl.feature_counts(mdp, expert + unlabelled)
    fixed = RBF(3.0)
    a, b = (
        bootstrap(MESSI(s, lambda0=30.0, tol=1e-8), mdp, expert, unlabelled, n=4, random_state=0).theta
        for s in (fixed, Precomputed(fixed(None, counts)))
    )
    assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, lambda m: m.tolist()])
def test_a_part_of_a_given_matrix_is_dense_or_sparse_as_it_was(store):
    matrix = np.arange(9.0).reshape(3, 3)
    part = Precomputed(store(matrix)).part([2, 0]).matrix
    assert_array_equal(part.toarray() if sp.issparse(part) else part, [[8.0, 6.0], [2.0, 0.0]])
    assert SIMILARITY.part([0]) is SIMILARITY


def test_with_goals_there_are_intervals_of_theta_alone():
    mdp, expert, _ = problem("goals")
    found = bootstrap(MaxEntIRL(), mdp, expert, n=3, random_state=0)
    assert found.policy is None
    assert found.theta.shape == (3, 2)


def test_one_trajectory_cannot_be_resampled():
    mdp, expert, _ = grid_world(1)
    with pytest.raises(ValueError, match="one expert trajectory cannot be resampled"):
        bootstrap(MaxEntIRL(), mdp, expert)


def test_the_policy_is_stable_where_all_unlabelled_trajectories_are_alike():
    mdp, expert, unlabelled = grid_world()
    model = MESSI(RBF(3.0))
    same = unlabelled[np.zeros(10, dtype=int)]
    mixed, alike = (stability(model, mdp, expert, some, (0.0, 3.0), n=4, random_state=0) for some in (unlabelled, same))
    assert [row["lambda0"] for row in mixed] == [0.0, 3.0]
    assert alike[1]["spread"] < 1e-6 < 0.01 * mixed[1]["spread"]
    assert mixed[0]["spread"] < 1e-9  # without the penalty they do not matter


def test_stability_towards_goals_is_that_of_the_ways_there():
    mdp, expert, unlabelled = problem("goals")
    one = expert[[int(np.argmax(expert.lengths))]]  # another may begin in its goal
    rows = stability(MESSI(SIMILARITY), mdp, one, unlabelled, (10.0,), n=3, random_state=0)
    assert rows[0]["spread"] > 1e-4


# ------------------------------------------------------------ likeness


def walks(mdp, n, seed, start):
    return sample(mdp, uniform_policy(mdp, None), n, 30, random_state=shifted(seed), start=start)


def test_the_experts_own_kind_looks_more_like_them_than_random_walks():
    mdp, expert, own = grid_world(6)
    random = walks(mdp, 10, 3, np.full(16, 1 / 16))
    found = measure_agreement(mdp, expert, own + random, cv=3, random_state=0)
    assert found.unlabelled.shape == (20,)
    assert found.unlabelled[:10].min() > found.unlabelled[10:].max()
    assert found.alike[:10].all()
    assert found.unlabelled[10:].mean() < 0 < found.expert
    assert found.mean == pytest.approx(found.unlabelled.mean())


def test_what_one_set_of_experts_teaches_is_not_taken_for_another_s():
    mdp, expert, own = grid_world(4)
    others = drawn(mdp, [-3.0, -2.0], 4, 5, length=30, start=np.full(16, 1 / 16))
    first = measure_agreement(mdp, expert, own, random_state=0)
    second = measure_agreement(mdp, others, own, random_state=0)
    again = measure_agreement(mdp, expert, own, random_state=0)
    assert first.mean > 0 > second.mean
    assert_array_equal(first.unlabelled, again.unlabelled)
    fresh = measure_agreement(mdp.replace(), others, own, random_state=0)
    assert_array_equal(second.unlabelled, fresh.unlabelled)


def test_what_the_experts_teach_is_learnt_once(monkeypatch):
    mdp, expert, own = grid_world(4)
    measure_agreement(mdp, expert, own, random_state=0)
    monkeypatch.setattr(sys.modules["messirl.selection.expert_agreement"], "CandidateFitter", None)
    measure_agreement(mdp, expert, own[:3], random_state=0)
    with pytest.raises(TypeError):
        measure_agreement(mdp, expert, own, random_state=0, max_iter=7)


def test_only_so_many_sets_of_experts_are_remembered(monkeypatch):
    mdp, expert, own = grid_world(4)
    monkeypatch.setattr(sys.modules["messirl.selection.expert_agreement"], "LESSONS", 2)
    for max_iter in (2, 3, 4):
        measure_agreement(mdp, expert, own, random_state=0, max_iter=max_iter)
    assert len(mdp.memo("what experts alone teach", dict)) == 2


def test_trajectories_where_the_experts_reward_has_no_finite_value_look_like_nothing():
    """γ = 1 and two mazes that do not touch: of the second one, the experts of the first say nothing."""
    one = maze(2, 2, discount=1.0)
    transitions = sp.block_diag([one.transitions, one.transitions])
    features = np.kron(np.eye(2), np.ones((4, 1)))
    mdp = messirl.MDP(sp.csr_array(transitions), features, discount=1.0, terminal=np.arange(8) % 4 == 3)
    here = drawn(
        maze(2, 2, np.ones((4, 1)), discount=1.0, terminal=np.arange(4) == 3), [-1.5], 6, 0, start=np.eye(4)[0]
    )
    there = Trajectories(here.states + 4, here.offsets, here.actions)
    found = measure_agreement(mdp, here, here + there, random_state=0)
    assert np.isfinite(found.unlabelled[:6]).all()
    assert (found.unlabelled[6:] == -np.inf).all()
    assert not found.alike[6:].any()


def test_a_world_of_random_moves_is_judged_too():
    mdp = random_mdp(3, discount=0.8, start=np.full(5, 0.2))
    expert, own = drawn(mdp, [9.0, -9.0, 3.0], 6, 1, length=30), drawn(mdp, [9.0, -9.0, 3.0], 5, 2, length=30)
    assert measure_agreement(mdp, expert, own, random_state=0).mean > 0


def test_a_similarity_that_the_trajectories_do_not_have_is_left_out():
    mdp, expert, _ = grid_world()
    alike = expert[[0, 0, 0, 0, 0, 0]]
    with pytest.warns(UserWarning, match="is left out: sigma='median' is 0"):
        model = MESSICV(**FEW).fit(mdp, alike[:3], alike[3:])
    assert all(c.method != "MESSI" for c in model.validation_.candidates)


def test_experts_that_are_all_among_the_unlabelled_are_told_of():
    mdp, expert, unlabelled = grid_world()
    with pytest.warns(UserWarning, match="all 4 expert trajectories are among the unlabelled ones"):
        MESSICV(lambdas=(1.0,), cv=2).fit(mdp, expert, unlabelled + expert)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MESSICV(lambdas=(1.0,), cv=2).fit(mdp, expert, unlabelled + expert[1:])


def test_fits_that_are_known_are_not_made_again():
    mdp, expert, unlabelled = grid_world()
    every, shared = [Candidate("RidgeStd", 0.01), Candidate("Complete", 1.0)], {"yardstick": SIMILARITY, "tol": 1e-6}
    pairs, told = make_splits(mdp, expert, 2), []
    first = cross_validate(mdp, every, pairs, unlabelled, expert=expert, **shared)
    known = list(CandidateFitter(mdp, expert, unlabelled, **shared).path(every))
    again = cross_validate(
        mdp, every, pairs, unlabelled, known=known, progress=lambda done, total: told.append(total), **shared
    )
    assert_array_equal(first.logs, again.logs)
    assert told == [len(pairs) * len(every)] * len(told)


def test_equal_experts_decide_nothing():
    """Five copies of one trip are one observation: no interval, no verdict, and the fixed default is fitted."""
    mdp, expert, unlabelled = problem("finite")
    copies = expert[np.zeros(5, dtype=int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MESSICV(lambdas=[0.1]).fit(mdp, copies, unlabelled)
    assert np.isnan([model.use_.gain.low, model.use_.gain.high]).all()
    assert model.verdict_ == "unclear"
    assert model.choice_.index == model.choice_.default or "lean" in model.reason_


def test_two_runs_without_a_seed_choose_by_the_same_splits():
    mdp, expert, unlabelled = problem("finite")
    many = expert[np.arange(30) % len(expert)]
    scores = [MESSICV(lambdas=[0.1], cv=3).fit(mdp, many, unlabelled).validation_.scores for _ in range(2)]
    assert_array_equal(*scores)
    other = MESSICV(lambdas=[0.1], cv=3, random_state=5).fit(mdp, many, unlabelled)
    assert not np.array_equal(other.validation_.scores, scores[0])
