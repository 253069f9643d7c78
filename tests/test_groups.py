"""Group by group: means, intervals and tests against plain calculations; what each group of others is worth."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy import stats
from seeds import generator

from messirl.app.report.common.axes import ADDS, BLUE
from messirl.app.report.common.interval_plot import OPEN
from messirl.app.report.fit.group_section import groups_figure, groups_section
from messirl.app.workflow.group_by import Grouping, agreement_by_group, named_groups
from messirl.inference import by_group
from messirl.inference.group_breakdown import Breakdown, Group, holm, paired_groups
from messirl.inference.paired_gain import Gain, paired_gain
from messirl.paper.synthetic import museum
from messirl.selection import cross_validate, gain_by_group
from messirl.selection.candidates import CandidateFitter
from messirl.selection.cross_validation import folds, make_splits
from messirl.selection.expert_agreement import measure_agreement
from messirl.selection.group_value import EXPERT_ONLY_CANDIDATE, USING
from messirl.similarity import CompleteGraph


def drawn(seed, n=40, **shift):
    """Totals and steps of trajectories of the groups a and b, some of them longer than others."""
    rng = generator(seed)
    labels = rng.permuted(np.repeat(["a", "b"], n // 2))
    steps = rng.integers(3, 20, n)
    level = np.array([shift.get(name, 0.0) for name in labels])
    return (rng.normal(-1.0, 0.3, n) + level) * steps, steps, labels


# ------------------------------------------------------------ means and tests


def test_a_group_has_its_own_score_and_the_interval_of_its_trajectories():
    totals, steps, labels = drawn(1)
    for group in by_group(totals, steps, labels):
        own = labels == group.name
        assert (group.trajectories, group.steps) == (own.sum(), steps[own].sum())
        assert_allclose(group.value.mean, totals[own].sum() / steps[own].sum())
        assert group.value == paired_gain(totals[own], np.zeros(own.sum()), steps[own])


def test_equal_steps_give_welchs_test_and_its_interval():
    totals, _, labels = drawn(2, b=0.1)
    one, other = (totals[labels == name] for name in "ab")
    direct = stats.ttest_ind(one, other, equal_var=False)
    first, second = by_group(totals, np.ones(totals.size, dtype=int), labels)
    assert_allclose(first.p, direct.pvalue, rtol=1e-9)
    ends = direct.confidence_interval(0.95)
    assert_allclose([first.difference.low, first.difference.high], [ends.low, ends.high], rtol=1e-9)
    assert_allclose(second.p, first.p)
    assert_allclose(second.difference.mean, -first.difference.mean)


def test_individuals_in_both_groups_give_the_paired_test():
    rng = generator(3)
    who, hard = np.tile(np.arange(12), 2), np.tile(rng.normal(size=12), 2)
    labels, totals = np.repeat(["a", "b"], 12), hard + rng.normal(0.0, 0.1, 24)
    direct = stats.ttest_rel(totals[:12], totals[12:])
    first, _ = by_group(totals, np.ones(24, dtype=int), labels, cluster=who)
    assert_allclose(first.p, direct.pvalue, rtol=1e-9)
    ends = direct.confidence_interval(0.95)
    assert_allclose([first.difference.low, first.difference.high], [ends.low, ends.high], rtol=1e-9)


def test_what_an_individual_does_twice_is_no_news():
    totals, steps, labels = drawn(4)
    once = by_group(totals, steps, labels)
    who = np.tile(np.arange(totals.size), 2)
    twice = by_group(np.tile(totals, 2), np.tile(steps, 2), np.tile(labels, 2), cluster=who)
    for one, other in zip(once, twice, strict=True):
        assert_allclose([one.value.low, one.value.high, one.p], [other.value.low, other.value.high, other.p])
    gain = paired_gain(totals, 0.9 * totals, steps)
    again = paired_gain(np.tile(totals, 2), 0.9 * np.tile(totals, 2), np.tile(steps, 2), cluster=who)
    assert_allclose([gain.low, gain.high], [again.low, again.high])


def test_holm_multiplies_the_smallest_by_all_and_the_next_by_one_less():
    assert_allclose(holm([0.01, 0.04, np.nan, 0.03]), [0.03, 0.06, np.nan, 0.06])
    assert_allclose(holm([0.6, 0.7]), [1.0, 1.0])
    assert holm([]).size == 0


def test_groups_that_do_not_differ_are_seldom_said_to_differ():
    """A claim about any of four groups in at most a twentieth of the draws; 600 draws tell it to a hundredth."""
    rng, wrong = generator(5), 0
    for _ in range(600):
        steps = rng.integers(3, 12, 60)
        totals = rng.normal(-1.0, 0.3, 60) * steps
        wrong += any(group.apart for group in by_group(totals, steps, np.repeat(list("abcd"), 15).tolist()))
    assert wrong / 600 < 0.08


def test_a_claim_is_carried_by_its_interval():
    rng, claims = generator(6), 0
    for _ in range(200):
        steps = rng.integers(3, 12, 45)
        level = np.repeat([0.0, 0.1, 0.25], 15)
        groups = by_group((rng.normal(0.0, 0.3, 45) + level) * steps, steps, np.repeat(list("abc"), 15), zero=True)
        for group in groups:
            claims += group.apart
            assert not group.apart or group.difference.low * group.difference.high > 0
            assert group.sign == 0 or group.value.low * group.value.high > 0
    assert claims > 20, "differences of this size are found"


def test_a_single_trajectory_and_what_is_ruled_out_have_no_interval_and_no_claim():
    one, rest = by_group(np.array([-1.0, -2.0, -3.0]), np.array([1, 1, 1]), ["a", "b", "b"])
    assert np.isnan([one.value.low, one.p, rest.p]).all()
    assert not one.apart
    assert np.isfinite(rest.value.low)
    never, rest = by_group(np.array([-np.inf, -2.0, -1.0, -3.0]), np.ones(4, dtype=int), ["a", "a", "b", "b"])
    assert never.value.mean == -np.inf
    assert not never.apart
    assert not rest.apart
    [alone] = by_group(np.array([-1.0, -2.0]), np.array([1, 2]), ["a", "a"])
    assert alone.difference is None


def test_trajectories_without_a_step_and_groups_without_a_trajectory_do_not_count():
    groups = by_group(np.array([-1.0, 0.0, -3.0]), np.array([1, 0, 2]), ["a", "a", "b"], order=["c", "b", "a"])
    assert [(group.name, group.trajectories) for group in groups] == [("b", 1), ("a", 1)]


def test_what_groups_gain_is_paired_by_what_was_held_out():
    rng = generator(7)
    base, steps = rng.normal(-5.0, 2.0, 30), rng.integers(2, 9, 30)
    logs = base + rng.normal([[0.0], [0.5], [-0.2]], 0.3, (3, 30))
    groups = paired_groups(["x", "y", "z"], [(1, 1)] * 3, logs, base, steps)
    for k, group in enumerate(groups):
        assert group.value == paired_gain(logs[k], base, steps)
        others = np.delete(logs, k, axis=0).mean(axis=0)
        assert group.difference == paired_gain(logs[k], others, steps)


def test_the_sentence_names_what_is_clear_and_says_what_is_not():
    up, down, flat = Gain(0.2, 0.1, 0.3), Gain(-0.2, -0.3, -0.1), Gain(0.1, -0.1, 0.3)
    groups = [
        Group("tourist", 5, 9, up, up, 0.01, 0.01),
        Group("class", 5, 9, down, down, 0.01, 0.01),
        Group("press", 5, 9, flat, flat, 0.4, 0.4),
        Group("guard", 5, 9, up, up, 0.4, 0.4),
    ]
    said = Breakdown("use", "who", "Using each group alone", "", groups).sentence
    assert "tourist (+0.2000 nats per step [0.1000, 0.3000]) helps" in said
    assert "class (-0.2000 nats per step [-0.3000, -0.1000]) hurts" in said
    assert "and guard (+0.2000 nats per step [0.1000, 0.3000]) make no clear difference" in said, "p says so"
    told = Breakdown("score", "who", "Score", "", groups).sentence
    assert told.endswith("class (-0.2000 nats per step [-0.3000, -0.1000]) is clearly below the other groups")
    assert "no clear difference between the 2 groups" in Breakdown("score", "who", "Score", "", groups[2:]).sentence


# ------------------------------------------------------------ the figure


def dots_of(found):
    """Colour of every dot, or "hollow", from the top."""
    marks = [line for line in groups_figure(found).axes[0].lines if line.get_marker() in ("o", "D")]
    hollow = [line.get_markerfacecolor() == "white" for line in marks]
    assert all(line.get_color() == OPEN for line, empty in zip(marks, hollow, strict=True) if empty)
    return ["hollow" if empty else line.get_color() for line, empty in zip(marks, hollow, strict=True)]


def caption_of(found, tmp_path):
    return "".join(str(part) for part in groups_section([found], tmp_path))


UP, DOWN, FLAT = Gain(0.2, 0.1, 0.3), Gain(-0.2, -0.3, -0.1), Gain(0.1, -0.1, 0.3)


@pytest.mark.parametrize("measure", ["likeness", "use", "gain"])
def test_dots_beside_a_line_at_zero_are_coloured_by_the_test_against_zero(measure, tmp_path):
    """Whatever differs from the other groups: a group may be below them and above zero."""
    groups = [
        Group("above zero, and below the others", 5, 9, UP, DOWN, 0.01, 0.01),
        Group("above zero, and like the others", 5, 9, UP, FLAT, 0.4, 0.01),
        Group("below zero, and above the others", 5, 9, DOWN, UP, 0.01, 0.01),
        Group("above the others alone", 5, 9, FLAT, UP, 0.01, 0.4),
        Group("above zero before the correction", 5, 9, UP, UP, 0.01, 0.06),
    ]
    found = Breakdown(measure, "who", "Agreement", "What it is.", groups)
    assert dots_of(found) == [BLUE, BLUE, ADDS, "hollow", "hollow"]
    assert "significantly above zero" in caption_of(found, tmp_path)


def test_dots_of_scores_are_coloured_by_the_test_against_the_other_groups(tmp_path):
    """No score is zero."""
    groups = [
        Group("below", 5, 9, DOWN, DOWN, 0.01),
        Group("above", 5, 9, DOWN, UP, 0.01),
        Group("not clear", 5, 9, DOWN, FLAT, 0.4),
        Group("above before the correction", 5, 9, DOWN, UP, 0.06),
    ]
    found = Breakdown("score", "who", "Score", "What it is.", groups)
    assert dots_of(found) == [ADDS, BLUE, "hollow", "hollow"]
    assert "significantly above the mean of the other groups" in caption_of(found, tmp_path)


def test_a_dot_has_a_colour_where_the_corrected_p_of_its_table_is_below_five_per_cent():
    rng, several = generator(9), 0
    for _ in range(50):
        steps, labels = rng.integers(3, 12, 60), np.repeat(list("abcd"), 15).tolist()
        totals = (rng.normal(0.0, 0.3, 60) + np.repeat(rng.normal(0.0, 0.15, 4), 15)) * steps
        groups = by_group(totals, steps, labels, zero=True)
        expected = [(BLUE if g.value.mean > 0 else ADDS) if g.value_p < 0.05 else "hollow" for g in groups]
        assert dots_of(Breakdown("likeness", "who", "Agreement", "", groups)) == expected
        several += any((g.value_p < 0.05) != (g.p < 0.05) for g in groups)
    assert several > 10, "the two tests differ"


def test_agreement_of_groups_is_tested_against_zero():
    made = museum().problem
    few, others = made.select("who = guide and day <= 2"), made.select("who != guide")
    rows = {"expert": np.arange(0), "unlabelled": np.arange(len(others.trajectories))}
    parts = SimpleNamespace(unlabelled=others.trajectories, rows=rows, groups=lambda *_: None)
    found = measure_agreement(made.mdp, few.trajectories, others.trajectories, random_state=0)
    by = Grouping("who", others.meta["who"].tolist(), ["class", "tourist"])
    groups = agreement_by_group(by, parts, found)
    own = [found.unlabelled[others.meta["who"] == group.name] for group in groups.groups]
    p = holm([stats.ttest_1samp(values, 0.0).pvalue for values in own])
    assert_allclose([group.value_p for group in groups.groups], p)
    assert dots_of(groups) == [BLUE if values.mean() > 0 else ADDS for values in own]


# ------------------------------------------------------------ what each group is worth


def test_tourists_help_and_classes_hurt():
    """The example's own draw, whose truth is known: tourists have the guides' taste, classes the opposite."""
    made = museum().problem
    few, others = made.select("who = guide and day <= 2"), made.select("who != guide")
    who = others.meta["who"].tolist()
    days = [str(day) for day in few.meta["day"]]
    asked = {"column": "who", "expert_labels": days, "random_state": 0}
    use, score, gain = gain_by_group(made.mdp, few.trajectories, others.trajectories, who, **asked)
    assert {group.name: group.sign for group in use.groups} == {"tourist": 1, "class": -1}
    assert all(group.apart for group in use.groups)
    assert [group.trajectories for group in use.groups] == [who.count("class"), who.count("tourist")]
    assert use.whole.trajectories == len(who)
    assert [group.name for group in score.groups] == [group.name for group in gain.groups] == ["1", "2"]
    assert sum(group.steps for group in score.groups) == (few.trajectories.lengths - 1).sum()


def test_using_all_is_what_cross_validation_says():
    mdp, expert, unlabelled = problem("finite")
    expert = expert[:12]
    labels = ["a"] * 3 + ["b"] * (len(unlabelled) - 3)
    found = gain_by_group(mdp, expert, unlabelled, labels, random_state=0)[0]
    pairs = make_splits(mdp, expert, random_state=0)
    direct = cross_validate(
        mdp, [EXPERT_ONLY_CANDIDATE, USING], pairs, unlabelled, expert=expert, yardstick=CompleteGraph(), tol=1e-4
    ).gain(1, 0)
    assert_allclose([found.whole.value.mean, found.whole.value.low], [direct.mean, direct.low], rtol=1e-6)
    whole = gain_by_group(mdp, expert, unlabelled, ["all"] * len(unlabelled), random_state=0)[0]
    assert_allclose(whole.groups[0].value.mean, direct.mean, atol=1e-6)
    assert whole.groups[0].difference is None


def test_pooling_nobody_is_the_experts_alone():
    mdp, expert, unlabelled = problem("episodic")
    nobody = np.zeros(len(unlabelled), dtype=bool)
    options = {"yardstick": CompleteGraph(), "tol": 1e-8}
    fits = [
        CandidateFitter(mdp, expert, unlabelled, pooled=nobody, **options).fit(way)
        for way in (USING, EXPERT_ONLY_CANDIDATE)
    ]
    assert_allclose(*fits, atol=1e-6)
    everybody = CandidateFitter(mdp, expert, unlabelled, pooled=~nobody, **options).fit(USING)
    assert_allclose(everybody, CandidateFitter(mdp, expert, unlabelled, **options).fit(USING), atol=1e-6)


def test_whole_groups_of_experts_that_are_held_out_are_one_unit():
    mdp, expert, unlabelled = problem("finite")
    expert, animal = expert[:12], np.repeat(list("wxyz"), 3)
    labels = ["a", "b"] * (len(unlabelled) // 2)
    by_animal = gain_by_group(mdp, expert, unlabelled, labels, groups=animal)[0]
    assert "split" in by_animal.told
    pairs = make_splits(mdp, expert, groups=animal)
    both = cross_validate(
        mdp,
        [EXPERT_ONLY_CANDIDATE, USING],
        pairs,
        unlabelled,
        expert=expert,
        together=True,
        yardstick=CompleteGraph(),
        tol=1e-4,
    )
    assert both.steps.size == 4
    assert_allclose(by_animal.whole.value.high, both.gain(1, 0).high, rtol=1e-6)


def test_labels_must_go_with_the_trajectories():
    mdp, expert, unlabelled = problem("finite")
    with pytest.raises(ValueError, match=r"labels has shape \(2,\): give one for each of the 8 trajectories"):
        gain_by_group(mdp, expert, unlabelled, ["a", "b"])


def test_folds_are_the_rows_of_the_splits():
    mdp, expert, _ = problem("finite")
    for groups in (None, np.arange(len(expert)) % 7):
        rows = folds(len(expert), 5, groups, 3)
        for (train, test), (learnt, held) in zip(rows, make_splits(mdp, expert, 5, groups, 3), strict=True):
            assert learnt == expert[train]
            assert held == expert[test]


# ------------------------------------------------------------ columns


def test_words_numbers_and_truth_values_make_a_group_each_in_their_order():
    assert named_groups("day", np.array([10, 2, 10])) == (["10", "2", "10"], ["2", "10"], False)
    assert named_groups("dry", np.array([True, False]))[1] == ["False", "True"]
    mixed = np.array(["b", None, "a"], dtype=object)
    assert named_groups("who", mixed) == (["b", "(empty)", "a"], ["a", "b", "(empty)"], False)
    assert named_groups("x", np.array([0.5, np.nan]))[1] == ["0.5", "(empty)"]


def test_many_numbers_are_cut_into_quarters_and_many_words_are_refused():
    numbers = generator(8).permutation(np.arange(100))
    names, order, cut = named_groups("minutes", numbers)
    assert cut
    assert order == ["0 to 24", "25 to 49", "50 to 74", "75 to 99"]
    assert_array_equal([order.index(name) for name in names], numbers // 25)
    ties = np.concatenate([np.zeros(90), np.arange(1, 31)])
    assert named_groups("tied", ties)[1][0] == "0 to 0"
    with pytest.raises(ValueError, match="`by` name has 21 different values, but at most 20 can be compared"):
        named_groups("name", np.array([f"n{i}" for i in range(21)], dtype=object))


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0000001, 1.0000002, 1.0000003]),
        1e9 + np.arange(40.0),
        np.array(["", None, "(empty)", "x"], dtype=object),
    ],
)
def test_no_two_groups_of_a_column_are_called_alike(values):
    names, order, _ = named_groups("c", values)
    assert len(set(order)) == len(order) == min(len(set(values.tolist())), 4)
    assert set(names) == set(order)
