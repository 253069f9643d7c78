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
from messirl import MESSI, MaxEntIRL, Trajectories, plot
from messirl.estimators.methods import baseline
from messirl.estimators.uniform import uniform_policy
from messirl.objective import Objective
from messirl.planning import sample
from messirl.selection import (
    LAMBDAS,
    MESSICV,
    Bench,
    Candidate,
    Likeness,
    Validation,
    best_gain,
    bootstrap,
    candidates,
    choose,
    choose_best,
    cross_validate,
    likeness,
    nested_score,
    splits,
    stability,
)
from messirl.selection.choice import verdict
from messirl.similarity import RBF, Exponential, Precomputed

SIMILARITY = RBF("median", standardise=True)
WORLDS = ["endless", "finite", "episodic", "goals", "steps"]
FEW = {"lambdas": (0.1, 10.0), "cv": 3, "random_state": 0}


def grid_world(n_expert=4, n_unlabelled=10):
    """4 × 4 tiles; experts go right and up."""
    at = plot.grid(4, 4)
    mdp = maze(4, 4, at / 3, discount=0.9)
    anywhere = {"length": 30, "start": np.full(16, 1 / 16)}
    return mdp, drawn(mdp, [3.0, 2.0], n_expert, 1, **anywhere), drawn(mdp, [3.0, 2.0], n_unlabelled, 2, **anywhere)


def validation(gains, candidate_list, base=-1.0):
    """A Validation whose candidates gain, split by split, what each row says over the first."""
    scores = base + np.array(gains, dtype=float)
    return Validation(list(candidate_list), scores, scores, np.ones(len(scores)))


# ------------------------------------------------------------ candidates


@pytest.mark.parametrize("lambdas", [LAMBDAS, (0.1,), (0.0, 0.1), ()])
def test_no_penalty_is_always_first_and_the_baselines_are_always_there(lambdas):
    every = candidates([SIMILARITY], lambdas)
    assert every[0] == Candidate("MaxEnt")
    assert sum(c.lambda0 == 0.0 and c.method == "MaxEnt" for c in every) == 1
    positive = {x for x in lambdas if x > 0}
    for method in ("MESSI", "Ridge", "RidgeStd", "Complete"):
        assert {c.lambda0 for c in every if c.method == method} == positive
    assert every[-1] == Candidate("Pooling")


def test_paths_go_from_strong_to_weak():
    strengths = [c.lambda0 for c in candidates([SIMILARITY], LAMBDAS) if c.method == "MESSI"]
    assert strengths == sorted(LAMBDAS, reverse=True)


def test_without_unlabelled_trajectories_only_what_needs_none_is_a_candidate():
    every = candidates([SIMILARITY], (0.1,), unlabelled=False)
    assert [c.method for c in every] == ["MaxEnt", "Ridge", "RidgeStd"]


@pytest.mark.parametrize("wrong", [-0.1, np.nan, np.inf])
def test_a_strength_that_is_none_raises(wrong):
    with pytest.raises(ValueError, match=r"lambdas holds .*: give numbers from 0 on"):
        candidates([SIMILARITY], (0.1, wrong))


def test_strengths_may_come_from_a_generator():
    every = candidates([SIMILARITY], (x for x in (0.1, 1.0)))
    assert [c.lambda0 for c in every if c.method == "MESSI"] == [1.0, 0.1]


def bench_of(kind, **options):
    mdp, expert, unlabelled = problem(kind)
    return Bench(mdp, expert, unlabelled, yardstick=SIMILARITY, **{"tol": 1e-8, "max_iter": 2000, **options})


@pytest.mark.parametrize("kind", WORLDS)
def test_the_bench_fits_what_the_estimators_fit(kind):
    mdp, expert, unlabelled = problem(kind)
    bench = bench_of(kind)
    for candidate, theta in bench.path(candidates([SIMILARITY], (0.3, 30.0))):
        if candidate.method == "Screened":
            continue
        model = MESSI(SIMILARITY, lambda0=candidate.lambda0, tol=1e-8, max_iter=2000)
        data = (expert, unlabelled)
        if candidate.method != "MESSI":
            model, data = baseline(candidate.method, model, mdp, expert, unlabelled)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(mdp, *data)
        objective = Objective.from_trajectories(mdp, data[0], quadratic=model.quadratic_, objective=model.likelihood_)
        assert objective(theta).value == pytest.approx(model.objective_, rel=1e-6, abs=1e-6), candidate
        for goal in (None,) if expert.goals is None else (2, 8):
            ours = messirl.soft_policy(mdp, mdp.reward(theta), goal=goal)
            own = messirl.soft_policy(mdp, model.reward_, goal=goal)
            # Where the penalty is weak and the data say little, two ways to the same height end a little apart.
            assert_allclose(ours, own, atol=1e-4 if candidate.method in ("MaxEnt", "Pooling") else 1e-5)


@to_rounding
@pytest.mark.parametrize("objective", ["counts", "choices"])
def test_the_bench_pools_lightly_and_on_a_base_policy_as_messi_does(objective):
    mdp, expert, unlabelled = problem("endless")
    shared = {"objective": objective, "unlabelled_weight": 0.1, "tol": 1e-8, "max_iter": 2000}
    own = MESSI(SIMILARITY, lambda0=3.0, reference="unlabelled", **shared).fit(mdp, expert, unlabelled)
    bench = Bench(own.mdp_, expert, unlabelled, yardstick=SIMILARITY, **shared)
    found = bench.fit(Candidate("MESSI", 3.0, SIMILARITY), bench.begin())
    assert_allclose(found, own.theta_, atol=1e-6)
    assert bench.score(found, unlabelled) == pytest.approx(own.score(unlabelled) * (unlabelled.lengths - 1).sum())
    alone = Bench(own.mdp_, expert, unlabelled, yardstick=SIMILARITY, **{**shared, "unlabelled_weight": 0.0})
    assert np.abs(alone.fit(Candidate("MESSI", 3.0, SIMILARITY), alone.begin()) - found).max() > 1e-3


@to_rounding
def test_screened_is_messi_among_the_trajectories_that_look_like_the_expert_s():
    mdp, expert, unlabelled = problem("endless")
    alike = np.arange(len(unlabelled)) % 2 == 0
    bench = bench_of("endless", alike=alike)
    whole = SIMILARITY(None, bench.counts)
    rows = np.concatenate([np.arange(len(expert)), len(expert) + np.flatnonzero(alike)])
    own = MESSI(Precomputed(whole[np.ix_(rows, rows)]), lambda0=3.0, tol=1e-8, max_iter=2000)
    own.fit(mdp, expert, unlabelled[alike])
    assert_allclose(bench.fit(Candidate("Screened", 3.0, SIMILARITY), bench.begin()), own.theta_, atol=1e-6)


def test_screened_without_any_that_look_like_the_expert_s_is_no_penalty():
    bench = bench_of("endless", alike=np.zeros(8, dtype=bool))
    assert bench.penalty(Candidate("Screened", 3.0, SIMILARITY)) is None


@pytest.mark.parametrize("kind", ["endless", "episodic"])
def test_warm_starts_change_nothing(kind):
    bench = bench_of(kind)
    for candidate, theta in bench.path(candidates([SIMILARITY], (0.3, 3.0, 30.0))):
        cold = bench.fit(candidate, bench.begin())
        ours, own = (messirl.soft_policy(bench.mdp, bench.mdp.reward(t)) for t in (theta, cold))
        assert_allclose(ours, own, atol=1e-5)


def test_two_large_matrices_that_print_alike_are_two_similarities():
    bench = bench_of("endless")
    n = len(bench.everyone)
    a = np.ones((n, n))
    b = a.copy()
    b[10, 12] = b[12, 10] = 0.0
    one, other = (bench.penalty(Candidate("MESSI", 1.0, Precomputed(m))) for m in (a, b))
    assert np.abs(one - other).max() > 1e-6


def test_scores_are_the_estimators_own():
    for kind in WORLDS:
        mdp, expert, unlabelled = problem(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MESSI(SIMILARITY, lambda0=1.0).fit(mdp, expert, unlabelled)
        steps = (unlabelled.lengths - 1).sum()
        assert bench_of(kind).score(model.theta_, unlabelled) / steps == pytest.approx(model.score(unlabelled), 1e-9)


def test_a_theta_without_finite_values_scores_minus_infinity():
    bench = bench_of("episodic")
    assert bench.score(np.array([1.0, 0.0]), bench.expert) == -np.inf


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
    pairs = splits(mdp, expert, cv=3)
    assert [len(test) for _, test in pairs] == [1] * 6
    held_out_once(expert, pairs)


def test_many_trajectories_are_held_out_in_folds_and_the_seed_decides_which():
    mdp, expert, _ = grid_world(11)
    pairs = splits(mdp, expert, cv=3, random_state=0)
    assert len(pairs) == 3
    held_out_once(expert, pairs)
    again, other = (splits(mdp, expert, cv=3, random_state=seed) for seed in (0, 1))
    assert all(a == b for a, b in zip(pairs, again, strict=True))
    assert any(a != b for a, b in zip(pairs, other, strict=True))


def test_no_group_is_on_both_sides():
    mdp, expert, _ = grid_world(12)
    groups = np.array(["B1", "B2", "C1", "C2"] * 3)
    who = {tuple(one.states): group for one, group in zip(expert, groups, strict=True)}
    assert len(who) == 12
    pairs = splits(mdp, expert, cv=5, groups=groups)
    assert len(pairs) == 4
    held_out_once(expert, pairs)
    for train, test in pairs:
        assert not {who[tuple(one.states)] for one in train} & {who[tuple(one.states)] for one in test}


def test_one_trajectory_of_an_endless_problem_is_divided_in_time():
    mdp, expert, _ = grid_world(1)
    states, actions = expert.states, expert.actions
    pairs = splits(mdp, expert)
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
        ("episodic", "it ends where it should"),
        ("goals", "it ends where it should"),
        ("finite", "a trajectory has 6 states"),
    ],
)
def test_one_trajectory_that_ends_raises_and_says_what_cannot_be_chosen_and_why(kind, why):
    mdp, expert, unlabelled = problem(kind)
    with pytest.raises(ValueError, match=f"since {why}.*neither lambda0 nor the similarity can be chosen"):
        splits(mdp, expert[[0]])
    with pytest.raises(ValueError, match="one expert trajectory: nothing can be held out"):
        MESSICV().fit(mdp, expert[[0]], unlabelled)


def test_one_short_trajectory_cannot_be_divided():
    mdp, expert, _ = grid_world(1)
    short = Trajectories(expert.states[:5], [0, 5])
    with pytest.raises(ValueError, match="since it has only 5 states"):
        splits(mdp, short)


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
        splits(mdp, expert, **options)


def test_a_held_out_trajectory_without_a_step_raises():
    mdp, expert, unlabelled = grid_world(3)
    still = Trajectories([0], [0, 1], np.zeros(0, dtype=int))
    with pytest.raises(ValueError, match="a held-out trajectory makes no step"):
        cross_validate(mdp, [Candidate("MaxEnt")], [(expert, still)], unlabelled, yardstick=SIMILARITY)


# ------------------------------------------------------------ validation


@to_rounding
def test_validation_is_the_score_of_refits_without_the_held_out_trajectories():
    mdp, expert, unlabelled = grid_world(3)
    pairs = splits(mdp, expert)
    every = [Candidate("MaxEnt"), Candidate("MESSI", 3.0, SIMILARITY)]
    found = cross_validate(
        mdp, every, pairs, unlabelled, scales=(0.5, 1.0), yardstick=SIMILARITY, tol=1e-8, max_iter=2000
    )
    own = []
    for c in every:
        model = MESSI(SIMILARITY, lambda0=c.lambda0, tol=1e-8, max_iter=2000)
        own.append([clone(model).fit(mdp, train, unlabelled) for train, _ in pairs])
    plain = [[model.score(test) for model, (_, test) in zip(row, pairs, strict=True)] for row in own]
    assert_allclose(found.plain, plain, atol=1e-6)
    half = []
    for row in own:
        half.append([])
        for model, (_, test) in zip(row, pairs, strict=True):
            policy = messirl.soft_policy(mdp, 0.5 * model.reward_)
            half[-1].append(messirl.planning.log_likelihood(mdp, policy, test).sum() / (test.lengths - 1).sum())
    better = np.array(half).mean(axis=1) > np.array(plain).mean(axis=1)
    assert_array_equal(found.scale, np.where(better, 0.5, 1.0))
    assert_allclose(found.scores, np.where(better[:, None], half, plain), atol=1e-6)


def test_splits_that_leave_the_same_trajectories_are_fitted_once_and_scored_each(monkeypatch):
    mdp, expert, unlabelled = grid_world(3)
    twice = expert[[0, 1, 1, 2]]
    every, fits = [Candidate("MaxEnt"), Candidate("MESSI", 3.0, SIMILARITY)], []
    own = Bench.fit
    monkeypatch.setattr(Bench, "fit", lambda *given: fits.append(given[1]) or own(*given))
    told = []
    options = {"scales": (1.0,), "yardstick": SIMILARITY}
    pairs = splits(mdp, twice)
    found = cross_validate(mdp, every, pairs, unlabelled, progress=lambda *now: told.append(now), **options)
    assert len(fits) == 3 * 2
    assert told == [(i + 1, 8) for i in range(8)]
    one_by_one = [cross_validate(mdp, every, [pair], unlabelled, **options).scores for pair in pairs]
    assert_array_equal(found.scores, np.concatenate(one_by_one, axis=1))


def test_rows_hold_gains_over_no_penalty_with_standard_errors():
    gains = [[0.0, 0.0, 0.0], [0.1, 0.2, 0.6]]
    row = validation(gains, [Candidate("MaxEnt"), Candidate("MESSI", 0.1, SIMILARITY)]).rows()[1]
    assert row["gain"] == pytest.approx(0.3)
    assert row["gain_se"] == pytest.approx(np.std([0.1, 0.2, 0.6], ddof=1) / np.sqrt(3))
    assert row["score"] == pytest.approx(-0.7)
    assert (row["method"], row["lambda0"]) == ("MESSI", 0.1)


def test_a_candidate_without_finite_scores_loses_without_a_warning():
    every = [Candidate("MaxEnt"), Candidate("Ridge", 1.0), Candidate("Ridge", 0.1)]
    found = validation([[0.0, 0.0], [-np.inf, 0.2], [0.1, 0.1001]], every)
    assert found.rows()[1]["gain"] == -np.inf
    assert choose(found).candidate == every[2]
    assert choose_best(found).candidate == every[2]
    assert choose_best(validation([[-np.inf, 0.0], [-np.inf, 0.2]], every[:2])).index in (0, 1)


# ------------------------------------------------------------ the choice


NONE, WEAK, STRONG = Candidate("MaxEnt"), Candidate("MESSI", 0.1, SIMILARITY), Candidate("MESSI", 3.0, SIMILARITY)
LIGHT, RIDGE = Candidate("Screened", 0.03, SIMILARITY), Candidate("Ridge", 1.0)
GOOD, BAD = (Likeness(np.array([x, x]), 0.2, NONE, 1.0) for x in (0.1, -0.1))
ZERO = [0.0, 0.0, 0.0]


def test_of_several_clearly_better_candidates_the_one_that_gains_most_is_chosen():
    gains = [ZERO, [0.10, 0.11, 0.12], [0.20, 0.21, 0.22], [0.5, -0.6, 0.9]]
    found = choose(validation(gains, [NONE, WEAK, STRONG, RIDGE]), GOOD)
    assert found.candidate == STRONG
    assert found.reason.startswith("clearly better than λ0 = 0; gain +0.2100 ±")


def test_a_clearly_better_baseline_is_chosen_as_well():
    assert choose(validation([ZERO, ZERO, [0.2, 0.2, 0.21]], [NONE, WEAK, RIDGE]), GOOD).candidate == RIDGE


def test_unlabelled_trajectories_like_the_expert_s_are_used_lightly_where_that_loses_nothing():
    gains = [ZERO, ZERO, [-0.002, 0.003, -0.003]]
    assert choose(validation(gains, [NONE, WEAK, LIGHT]), GOOD).candidate == LIGHT
    assert "look like the expert's (+0.100" in choose(validation(gains, [NONE, WEAK, LIGHT]), GOOD).reason
    assert choose(validation(gains, [NONE, WEAK, LIGHT]), BAD).candidate == NONE, "a tie, and they look otherwise"
    assert choose(validation(gains, [NONE, WEAK, LIGHT]), None).candidate == WEAK
    losing = [ZERO, [0.3, -0.3, 0.0], [-0.02, -0.03, 0.0]]
    assert choose(validation(losing, [NONE, WEAK, LIGHT]), GOOD).candidate == NONE


def test_what_cannot_be_told_apart_from_no_penalty_is_chosen_as_strong_as_it_comes():
    gains = [ZERO, [0.001, -0.001, 0.0], [0.002, 0.001, 0.0015], ZERO]
    found = choose(validation(gains, [NONE, WEAK, STRONG, RIDGE]))
    assert found.candidate == STRONG
    assert "cannot tell it from λ0 = 0" in found.reason


def test_what_may_lose_is_not_chosen():
    gains = [ZERO, [0.1, -0.1, 0.05], [-0.2, -0.2, -0.2]]
    found = choose(validation(gains, [NONE, WEAK, STRONG]), GOOD)
    assert found.candidate == NONE
    assert found.reason == "nothing can be shown to be better than λ0 = 0"


def test_the_margin_says_what_counts_as_no_difference():
    gains = validation([ZERO, [-0.02, -0.021, -0.019]], [NONE, WEAK])
    assert choose(gains).candidate == NONE
    assert choose(gains, margin=0.05).candidate == WEAK


def test_the_simplest_within_one_standard_error_of_the_best_is_chosen_to_predict():
    gains = [ZERO, [0.29, 0.28, 0.33], [0.20, 0.45, 0.22], [0.30, 0.32, 0.29]]
    every = [NONE, WEAK, STRONG, RIDGE]
    found = choose_best(validation(gains, every))
    assert found.candidate == STRONG  # MESSI before the baselines, then the strongest
    assert found.reason.startswith(f"within 1 standard error(s) of the best, {RIDGE}")
    assert choose_best(validation(gains, every), se=0.0).candidate == RIDGE
    assert choose_best(validation([ZERO, [-0.3, -0.31, -0.3]], [NONE, WEAK])).candidate == NONE


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
    total = len(model.validation_.candidates) * 4
    assert told == [(i + 1, total) for i in range(total)]


def test_the_seed_decides_everything(chosen):
    mdp, expert, unlabelled = grid_world(8)
    a, b = (MESSICV(**FEW).fit(mdp, expert, unlabelled) for _ in range(2))
    assert_array_equal(a.validation_.scores, b.validation_.scores)
    assert_array_equal(a.theta_, b.theta_)
    assert a.reason_ == b.reason_


def test_prediction_scores_the_candidates_as_they_are():
    mdp, expert, unlabelled = grid_world()
    model = MESSICV(**FEW, aim="prediction").fit(mdp, expert, unlabelled)
    assert_array_equal(model.validation_.scores, model.validation_.plain)
    assert model.likeness_ is None
    assert all(c.method != "Screened" for c in model.validation_.candidates)
    assert model.reason_.startswith(("within 1 standard error(s) of the best", "the best held-out score"))


@pytest.mark.parametrize("kind", ["finite", "goals", "episodic", "steps"])
def test_every_kind_of_problem_is_chosen_for(kind):
    mdp, expert, unlabelled = problem(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = expert[expert.lengths > 1][:6]  # of one that begins in its end there is nothing to predict
        model = MESSICV(lambdas=(1.0,), cv=2, random_state=0).fit(mdp, some, unlabelled)
    assert np.isfinite(model.score(expert))
    assert len(model.validation_.rows()) == 1 + 1 + 2 + 3 + 1


def test_the_noncausal_model_is_chosen_for_without_screening():
    mdp, expert, unlabelled = problem("finite")
    model = MESSICV(lambdas=(1.0,), entropy="noncausal", cv=2, random_state=0).fit(mdp, expert, unlabelled)
    assert model.likeness_ is None
    assert np.isfinite(model.validation_.scores).all()


@pytest.mark.parametrize("method", ["Ridge", "RidgeStd"])
def test_a_ridge_chosen_without_unlabelled_trajectories_is_the_ridge_that_was_validated(method, monkeypatch):
    mdp, expert, _ = grid_world(5)
    wanted = Candidate(method, 10.0)

    def only(found, **_):
        index = found.candidates.index(wanted)
        return messirl.selection.Choice(index, wanted, "it was asked for")

    monkeypatch.setattr("messirl.selection.choice.choose_best", only)
    model = MESSICV(**FEW, aim="prediction", tol=1e-6).fit(mdp, expert)
    bench = Bench(mdp, expert, None, yardstick=SIMILARITY, tol=1e-6)
    assert_allclose(model.theta_, bench.fit(wanted, bench.begin()), rtol=1e-4)
    assert np.abs(model.theta_ - MaxEntIRL(tol=1e-6).fit(mdp, expert).theta_).max() > 1e-3


def test_too_few_experts_without_any_others_raise():
    mdp, expert, _ = grid_world(2)
    with pytest.raises(ValueError, match="a split must leave two of the expert's"):
        MESSICV(**FEW).fit(mdp, expert)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aim": "both"}, "aim='both': choose 'imitation' or 'prediction'"),
        ({"similarities": []}, "similarities is empty"),
        ({"lambdas": (-1.0,)}, "lambdas holds -1.0"),
        ({"theta_max": -1.0}, "theta_max=-1.0"),
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


def test_no_penalty_is_no_yardstick_where_it_predicts_worse_than_chance():
    every = [Candidate("MaxEnt"), Candidate("MESSI", 0.1, SIMILARITY), Candidate("Ridge", 0.1)]
    scores = np.array([[-0.1, -0.1, -60.0], [-0.5, -0.6, -0.7], [-0.9, -0.9, -0.9]])
    lost = Validation(every, scores, scores, np.ones(3), chance=-1.0)
    assert choose(lost).index == 1
    assert "worse than chance" in choose(lost).reason
    sane = Validation(every, scores, scores, np.ones(3), chance=-30.0)
    assert choose(sane).index == 0


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
    found = likeness(mdp, expert, own + random, cv=3, random_state=0)
    assert found.unlabelled.shape == (20,)
    assert found.unlabelled[:10].min() > found.unlabelled[10:].max()
    assert found.alike[:10].all()
    assert found.unlabelled[10:].mean() < 0 < found.expert
    assert found.mean == pytest.approx(found.unlabelled.mean())


def test_what_one_set_of_experts_teaches_is_not_taken_for_another_s():
    mdp, expert, own = grid_world(4)
    others = drawn(mdp, [-3.0, -2.0], 4, 5, length=30, start=np.full(16, 1 / 16))
    first = likeness(mdp, expert, own, random_state=0)
    second = likeness(mdp, others, own, random_state=0)
    again = likeness(mdp, expert, own, random_state=0)
    assert first.mean > 0 > second.mean
    assert_array_equal(first.unlabelled, again.unlabelled)
    fresh = likeness(mdp.replace(), others, own, random_state=0)
    assert_array_equal(second.unlabelled, fresh.unlabelled)


def test_what_the_experts_teach_is_learnt_once(monkeypatch):
    mdp, expert, own = grid_world(4)
    likeness(mdp, expert, own, random_state=0)
    monkeypatch.setattr(sys.modules["messirl.selection.likeness"], "cross_validate", None)
    likeness(mdp, expert, own[:3], random_state=0)
    with pytest.raises(TypeError):
        likeness(mdp, expert, own, random_state=0, max_iter=7)


def test_only_so_many_sets_of_experts_are_remembered(monkeypatch):
    mdp, expert, own = grid_world(4)
    monkeypatch.setattr(sys.modules["messirl.selection.likeness"], "LESSONS", 2)
    for max_iter in (2, 3, 4):
        likeness(mdp, expert, own, random_state=0, max_iter=max_iter)
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
    found = likeness(mdp, here, here + there, random_state=0)
    assert np.isfinite(found.unlabelled[:6]).all()
    assert (found.unlabelled[6:] == -np.inf).all()
    assert not found.alike[6:].any()


def test_a_world_of_random_moves_is_judged_too():
    mdp = random_mdp(3, discount=0.8, start=np.full(5, 0.2))
    expert, own = drawn(mdp, [9.0, -9.0, 3.0], 6, 1, length=30), drawn(mdp, [9.0, -9.0, 3.0], 5, 2, length=30)
    assert likeness(mdp, expert, own, random_state=0).mean > 0


def test_a_similarity_that_the_trajectories_do_not_have_is_left_out():
    mdp, expert, _ = grid_world()
    alike = expert[[0, 0, 0, 0, 0, 0]]
    with pytest.warns(UserWarning, match="is left out: sigma='median' is 0"):
        model = MESSICV(**FEW, aim="prediction").fit(mdp, alike[:3], alike[3:])
    assert all(c.method != "MESSI" for c in model.validation_.candidates)


# ------------------------------------------------------------ the verdict on the unlabelled trajectories


@pytest.mark.parametrize(
    ("gains", "like", "said"),
    [
        ([ZERO, [0.10, 0.11, 0.12], ZERO], BAD, "help"),
        ([ZERO, ZERO, ZERO], BAD, "hurt"),
        ([ZERO, [-0.2, -0.21, -0.2], [0.2, 0.2, 0.21]], GOOD, "hurt"),
        ([ZERO, [0.3, -0.3, 0.0], [0.2, 0.2, 0.21]], GOOD, "do not matter"),
        ([ZERO, ZERO, ZERO], None, "help"),
    ],
)
def test_the_verdict_follows_from_the_choice(gains, like, said):
    found = validation(gains, [NONE, WEAK, RIDGE])
    assert verdict(found, choose(found, like), like) == said


def test_the_gain_of_the_best_messi_is_told():
    found = validation([ZERO, [0.1, 0.2, 0.3], [0.0, 0.1, 0.2], [0.5, 0.5, 0.5]], [NONE, WEAK, STRONG, RIDGE])
    candidate, gain, spread = best_gain(found)
    assert candidate == WEAK
    assert gain == pytest.approx(0.2)
    assert spread == pytest.approx(0.1 / np.sqrt(3))
    assert best_gain(validation([ZERO, ZERO], [NONE, RIDGE])) is None
