"""The sentences that pages and terminals begin with: none claims what its own interval does not carry."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from problems import KINDS, problem
from seeds import generator, pinned, shifted
from worlds import drawn, maze

from messirl import MDP, MaxEntIRL, Trajectories, sample
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.model_evaluation import evaluate
from messirl.app.workflow.narrative import (
    HELPED,
    HURT,
    MIXED,
    NO_EFFECT,
    UNCLEAR,
    _of_candidates,
    difference,
    feature_names,
    use_of,
    use_sentence,
)
from messirl.app.workflow.preferences import Preferences, contributions, refit_without_penalty, sort_by_sign
from messirl.app.workflow.record import FitRecord
from messirl.app.workflow.split import Split
from messirl.app.workflow.verdict import Verdict
from messirl.estimators.uniform import uniform_policy
from messirl.inference import EstimationTable
from messirl.inference.paired_gain import NOTHING, Gain
from messirl.io import Problem
from messirl.selection import Candidate
from messirl.selection.decision_rule import UnlabelledGain
from studies import sentences

NUMBERS = st.floats(-3.0, 3.0, allow_nan=False)
DIRECTION = re.compile(r"^(better|worse) than")
SPLIT = Split("role = expert", "role = other", "role = test")


@st.composite
def gains(draw):
    """A difference inside its interval; now and then a tiny one, one without an interval, or an infinite one."""
    mean, below, above = draw(NUMBERS), abs(draw(NUMBERS)), abs(draw(NUMBERS))
    scale = draw(st.sampled_from([1.0, 1.0, 1e-3, 1e-7]))
    odd = draw(st.sampled_from(["", "", "", "no interval", "inf", "-inf", "nan"]))
    if odd == "no interval":
        return Gain(scale * mean, np.nan, np.nan)
    if odd:
        return Gain(float(odd), np.nan, np.nan)
    return Gain(scale * mean, scale * (mean - below), scale * (mean + above))


def says(gain: Gain) -> int:
    """What an interval carries: 1 better, −1 worse, 0 neither. Written anew, not by `Gain.clear`."""
    if np.isnan(gain.mean):
        return 0
    if np.isinf(gain.mean):
        return int(np.sign(gain.mean))
    if abs(gain.mean) <= NOTHING or np.isnan(gain.low):
        return 0
    return 1 if gain.low > 0.0 else -1 if gain.high < 0.0 else 0


# ------------------------------------------------------------ differences


@given(gains())
@settings(max_examples=300, deadline=None)
def test_a_sentence_claims_a_direction_only_where_the_interval_leaves_out_zero(gain):
    words = difference(gain, "without them")
    claimed = DIRECTION.search(words)
    found = 0 if claimed is None else 1 if "better" in claimed[0] else -1
    assert found == says(gain)


@given(st.dictionaries(st.sampled_from(["MaxEnt-IRL", "L2", "L2, standardised"]), gains(), min_size=1))
@settings(max_examples=300, deadline=None)
def test_others_helped_only_if_they_did_against_every_method_without_them(found):
    words = use_sentence("9 others", "the trips", found)
    claims = {says(gain) for gain in found.values()}
    verdict, named = use_of(found)
    assert (verdict == HELPED) == (claims == {1})
    assert (verdict == HURT) == (claims == {-1})
    assert (verdict == MIXED) == (claims == {1, -1})
    assert re.match(f"Using the 9 others {verdict} (to|on|the)[a-z ]* the trips: ", words)
    assert {says(found[name]) for name in named} == ({0} if verdict == UNCLEAR else claims)


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Gain(0.0523, 0.031, 0.0736), "better than chance: +0.052 nats per step [0.031, 0.074]"),
        (Gain(-0.0523, -0.0736, -0.031), "worse than chance: -0.052 nats per step [-0.074, -0.031]"),
        (Gain(0.5, 0.00041, 0.9996), "better than chance: +0.5000 nats per step [0.0004, 0.9996]"),
        (Gain(np.inf, np.nan, np.nan), "better than chance, which gives some trajectories zero probability"),
        (Gain(-np.inf, np.nan, np.nan), "worse than chance, which gives no trajectory zero probability"),
    ],
)
def test_a_clear_difference_is_said_with_its_interval(gain, words):
    assert difference(gain, "chance") == words


def test_an_unclear_difference_is_a_signed_number_with_its_interval():
    words = difference(Gain(-0.006, -0.014, 0.002), "without them")
    assert words == (
        "neither clearly better nor clearly worse than without them: -0.0060 nats per step [-0.0140, +0.0020]"
    )
    assert "too few trajectories for an interval" in difference(Gain(0.2, np.nan, np.nan), "chance")


# ------------------------------------------------------------ what experts want


@given(st.lists(st.tuples(NUMBERS, st.floats(0.0, 2.0) | st.just(np.nan)), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_feature_is_preferred_or_avoided_only_if_its_interval_says_so(weights):
    theta, half = (np.array(column) for column in zip(*weights, strict=True))
    names = [str(j) for j in range(theta.size)]
    found = sort_by_sign(names, theta - half, theta + half, np.abs(theta))
    every = [*found.preferred, *found.avoided, *found.unclear, *found.unknown]
    assert found.tested == bool(np.isfinite(half).any())
    assert sorted(every) == sorted(names)
    assert {int(j) for j in found.preferred} == set(np.flatnonzero(theta - half > 0.0))
    assert {int(j) for j in found.avoided} == set(np.flatnonzero(theta + half < 0.0))


def units(mdp, factor):
    """The same problem with its first feature in other units."""
    rows = mdp.features.copy()
    rows[..., 0] *= factor
    return mdp.replace(features=rows)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sparse"])
def test_contributions_do_not_depend_on_the_units_of_a_feature(kind):
    mdp, expert, _ = problem(kind)
    model = MaxEntIRL(ridge=0.1).fit(mdp, expert)
    before = contributions(model)
    model.mdp_, model.theta_ = units(mdp, 100.0), model.theta_ * np.where(np.arange(mdp.n_features) == 0, 0.01, 1.0)
    assert_allclose(contributions(model), before, rtol=1e-9)


def test_sparse_features_contribute_as_dense_ones_do():
    dense, sparse = (MaxEntIRL(ridge=0.1).fit(*problem(kind)[:2]) for kind in ("steps", "sparse"))
    assert_allclose(contributions(sparse), contributions(dense), rtol=1e-6)


def test_what_is_the_same_everywhere_contributes_where_trajectories_end_only():
    mdp = maze(discount=0.9, horizon=6, features=np.column_stack([np.ones(9), np.arange(9.0)]))
    with pytest.warns(UserWarning, match="determined only up to"):
        model = MaxEntIRL(ridge=0.1).fit(mdp, drawn(mdp, [0.0, 0.2], 8, 1, start=np.full(9, 1 / 9)))
    model.theta_ = np.array([-1.0, 0.5])
    assert_allclose(contributions(model)[0], 0.0, atol=1e-6)
    model.mdp_ = mdp.replace(terminal=np.arange(9) == 8)
    assert_allclose(contributions(model)[0], 1.0)


def test_names_of_features_lose_the_mark_of_their_column_unless_two_become_one():
    mdp = maze(discount=0.9, feature_names=["f_green", "g_time"])
    assert feature_names(mdp) == ["green", "time"]
    assert feature_names(maze(discount=0.9, feature_names=["f_time", "g_time"])) == ["f_time", "g_time"]
    assert feature_names(maze(discount=0.9)) == ["feature 0", "feature 1"]


def test_long_names_of_features_that_begin_alike_are_told_apart():
    long = "f_" + "how far it is to the " * 10
    names = feature_names(maze(discount=0.9, feature_names=[f"{long}lake", f"{long}wood"]))
    assert [name.rpartition("… ")[2] for name in names] == ["(feature 0)", "(feature 1)"]


def preferences(model, rows, **changes):
    """Preferences with these estimates and errors."""
    theta, error = (np.array(column) for column in zip(*rows, strict=True))
    square = np.diag(error**2)
    table = EstimationTable(model.mdp_.feature_ids, theta, error, error, square, square, -1.0, 30, 100, 3)
    model.theta_ = theta
    return Preferences(model, table, **changes)


def test_a_fit_says_which_preferences_are_significant_and_which_are_not():
    mdp, expert, _ = problem("finite")
    model = MaxEntIRL(ridge=0.0, theta_prior=None).fit(mdp, expert)
    found = preferences(model, [(3.0, 1.0), (-2.0, 0.5), (1.0, 0.8)], refitted=False)
    counts, filters = {"expert": 30}, {"expert": "who = guide"}
    [words] = FitRecord("a", model, preferences=found, counts=counts, filters=filters).in_words
    assert words == (
        "The experts (30 trajectories, who = guide) prefer feature 0 and avoid feature 1 (95 % intervals). No clear "
        "preference: feature 2."
    )
    [words] = FitRecord("a", model, preferences=replace(found, refitted=True)).in_words
    assert "(95 % intervals of a fit to the experts only, without penalty)" in words
    found = preferences(model, [(3.0, 2.0), (-0.2, 0.5), (1.0, 0.8)], refitted=False)
    [words] = FitRecord("a", model, preferences=found).in_words
    assert words.startswith("No preference of the experts is significant at 5 % (95 % intervals).")
    found = replace(found, table=None)
    [words] = FitRecord("a", model, preferences=found).in_words
    assert words.startswith("No preference of the experts can be claimed: their weights have no intervals")


@pytest.mark.parametrize("ridge", [1e-3, 0.05, 1.0])
def test_no_preference_is_claimed_from_a_penalised_estimate(ridge):
    """However strong the penalty, the sentence and its intervals are those of a fit to the experts without it."""
    mdp, expert, unlabelled = problem("finite")
    model = MaxEntIRL(ridge=ridge, unlabelled_weight=0.1).fit(mdp, expert, unlabelled)
    found = refit_without_penalty(model, mdp, expert)
    plain = MaxEntIRL(theta_prior=10.0, theta_max=None).fit(mdp, expert)
    assert_allclose(found.model.theta_, plain.theta_, rtol=1e-5)
    assert found.table.degrees_of_freedom is not None
    record = fit(Problem(mdp, expert), Split(), FitSettings(method="maxent", ridge=ridge, baselines=False))
    assert_allclose(record.preferences.model.theta_, plain.theta_, rtol=1e-5)
    assert record.preferences.refitted
    assert np.isnan(record.half_widths()).all()
    assert len(record.summary()["preferences"]["estimates"]) == mdp.n_features


def test_no_preference_is_claimed_while_a_weight_is_at_its_bound():
    """The intervals of the other weights would take it as known; a nearly collinear feature shows how wrong that is."""
    mdp, expert, _ = problem("finite")
    features = np.column_stack([mdp.features[:, 0], mdp.features[:, 0] * (1.0 + 1e-3) + 1e-3 * mdp.features[:, 1]])
    near = mdp.replace(features=features, feature_names=["a", "b"])
    record = fit(Problem(near, expert), Split(), FitSettings(method="maxent", theta_max=5.0, baselines=False))
    assert record.model.standing_.box
    assert record.preferences.refitted
    assert (np.abs(record.preferences.model.theta_) > 5.0).any()
    low, high = record.preferences.ends
    assert ((low < 0.0) & (high > 0.0)).all()


def test_no_preference_is_claimed_from_a_model_that_is_worse_than_chance():
    """Five tracks zigzag towards +x; with no cost per step, weights of x and y only keep values finite."""
    wide, high = 12, 6
    x, y = (one.ravel() for one in np.meshgrid(np.arange(wide), np.arange(high)))
    moves = np.zeros((wide * high, 4, wide * high))
    for s, (a, b) in enumerate(zip(x, y, strict=True)):
        for action, (u, v) in enumerate(((a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1))):
            if 0 <= u < wide and 0 <= v < high:
                moves[s, action, u + wide * v] = 1.0
    mdp = MDP(moves, np.column_stack([x, y]), discount=1.0, feature_names=["x", "y"])
    tracks = []
    for row in range(5):
        steps = [(t, row + k % 2) for t in range(wide) for k in ((t, t + 1) if t < wide - 1 else (t,))]
        tracks.append([a + wide * b for a, b in steps])
    expert = Trajectories.from_lists(tracks, goals=[track[-1] for track in tracks])
    record = fit(Problem(mdp, expert), Split(), FitSettings(method="maxent", baselines=False))
    assert record.preferences.below_chance
    assert np.isnan(record.preferences.ends).all()
    assert "can be claimed" in record.in_words[0]
    assert "chance" in record.in_words[0]


# ------------------------------------------------------------ problems where the others help, hurt, do not matter

ANYWHERE = np.full(9, 1 / 9)


def known(kind, seed):
    """Few experts and a set that is known to help, or more and one that hurts or does not matter; 300 held-out ones."""
    mdp = maze(discount=0.9, horizon=7, features=generator(5).normal(size=(9, 4)), feature_names=["a", "b", "c", "d"])
    theta = np.array([1.2, -1.0, 0.8, 0.0])
    expert, test = (
        drawn(mdp, theta, n, 100 * seed + k, start=ANYWHERE) for k, n in enumerate((3 if kind == "help" else 25, 300))
    )
    others = {
        "help": lambda: drawn(mdp, theta, 300, 100 * seed + 2, start=ANYWHERE),
        "hurt": lambda: drawn(mdp, -theta, 300, 100 * seed + 3, start=ANYWHERE),
        "do not matter": lambda: sample(
            mdp, uniform_policy(mdp, None), 1, start=ANYWHERE, random_state=shifted(100 * seed + 4)
        ),
    }[kind]()
    role = np.repeat(["expert", "other", "test"], [len(expert), len(others), len(test)])
    plain = (Trajectories(some.states, some.offsets) for some in (expert, others, test))
    first, second, third = plain
    return Problem(mdp, first + second + third, {"role": role})


@pytest.mark.parametrize("kind", ["help", "hurt", "do not matter"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_page_says_what_is_true_of_the_others(kind, seed):
    """Of draws that are clear; how often others are said to be unclear is the study's."""
    weight = 1e-6 if kind == "do not matter" else 1.0  # of one trajectory among many: nothing
    with pinned():
        given = known(kind, seed)
    record = fit(given, SPLIT, FitSettings(method="maxent", unlabelled_weight=weight, ridge=0.01))
    verdict, words = record.verdict, record.in_words[-1]
    assert verdict is not None
    assert set(verdict.without) == {"MaxEnt-IRL", "L2", "L2, standardised", "MaxEnt-IRL with ridge 0.01"}
    said, _ = use_of(verdict.without)
    assert words.startswith(f"Using the {record.counts['unlabelled']} unlabelled ")
    assert re.search(f"\\(role = other\\) {said} [a-z ]+ the 300 held-out trajectories: ", words)
    assert said in {"help": (HELPED,), "hurt": (HURT,), "do not matter": (UNCLEAR, NO_EFFECT)}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("way", sentences.WAYS)
def test_the_study_of_the_sentences_knows_what_was_said_and_what_is_true(way, monkeypatch):
    monkeypatch.setattr(sentences, "MANY", 200)
    rows = sentences.one(way, shifted(1) % 10**6)
    assert [row["set"] for row in rows] == list(sentences.KINDS)
    for row in rows:
        assert re.search(f" {row['said']} [a-z ]+ the 40 held-out trajectories: ", row["sentence"])
        assert row["low"] <= row["gain"] <= row["high"]
        assert row["wrong_claims"] <= row["claims"]


@pytest.mark.slow
def test_the_sentences_are_wrong_no_more_often_than_they_say():
    """Of 20 draws of each set (the study has 50); one is wrong with at most 2.5 %: three of twenty are too many."""
    rows = [row for seed in range(20) for row in sentences.one("light pooling", shifted(seed) % 10**6)]
    for kind in sentences.KINDS:
        assert sum(row["wrong"] for row in rows if row["set"] == kind) < 3


def test_others_that_were_not_used_or_not_tested_are_said_to_be():
    given = known("help", 0)
    record = fit(given, Split("role = expert", "role = other"), FitSettings(lambda0=0.1, baselines=False))
    assert "not known whether using the 300 unlabelled trajectories (role = other) helps" in record.in_words[-1]
    assert "no trajectories were held out" in record.in_words[-1]
    record = fit(given, SPLIT, FitSettings(lambda0=0.1, baselines=False))
    assert "no method that does without them was fitted" in record.in_words[-1]
    record = fit(given, SPLIT, FitSettings(method="maxent"))
    assert record.in_words[-1] == "The fit did not use the 300 unlabelled trajectories (role = other)."
    assert record.verdict is not None
    assert record.verdict.without == {}


def test_the_verdict_of_a_choice_is_that_of_its_use():
    for gain, said in ((Gain(0.1, 0.05, 0.15), HELPED), (Gain(0.1, -0.05, 0.25), UNCLEAR), (Gain(-1, -2, -0.5), HURT)):
        use = UnlabelledGain("", gain, Candidate("LightPooling", weight=0.1), Candidate("RidgeStd", 0.1))
        words = _of_candidates("5 unlabelled trajectories", use)
        assert words.startswith(f"Using the 5 unlabelled trajectories {said} ")
        assert difference(gain, "").partition(": ")[2] in words
        assert words.endswith('pooling weight=0.1, compared with "L2, standardised λ0=0.1" on the experts only.')


def test_an_evaluation_is_compared_with_chance_by_trajectory():
    given = known("help", 0)
    record = fit(given, SPLIT, FitSettings(method="maxent", baselines=False))
    found = evaluate(record.model, given, "role = test")
    assert found.gain.mean == pytest.approx(found.score - found.uniform, abs=1e-12)
    steps = given.trajectories[np.flatnonzero(given.meta["role"] == "test")].lengths - 1
    assert found.each @ steps / steps.sum() == pytest.approx(found.gain.mean, abs=1e-12)
    assert found.in_words[0].startswith("The 300 trajectories (role = test) are predicted ")
    assert "may be among them" in evaluate(record.model, given).in_words[-1]


def test_a_verdict_keeps_what_was_gained_over_each_method_without_the_others():
    verdict = Verdict("a", "b", None, [], 2, 9, {"b": Gain(0.1, 0.0, 0.2)})
    assert verdict.summary()["without"] == {"b": {"mean": 0.1, "low": 0.0, "high": 0.2}}
