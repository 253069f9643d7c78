"""Two methods on the same trajectories: the difference, its interval, and the sentence that says which is better."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from scipy.stats import t as student
from seeds import generator

from messirl import MESSI, MaxEntIRL
from messirl.app.workflow.verdict import Verdict, compare_scores
from messirl.inference.baselines import compare
from messirl.inference.paired_gain import NOTHING, Gain, paired_gain

STEPS = np.array([3, 5, 2, 8, 4, 6, 3, 7])


def drawn_pair(rng, n, gain):
    """Steps, and what two methods give them: trajectories are hard or easy for both, and one gains `gain` a step."""
    steps = rng.integers(2, 40, n)
    hard = rng.normal(-1.0, 0.3, n)
    one, other = ((hard + rng.normal(shift, 0.05, n)) * steps for shift in (gain, 0.0))
    return one, other, steps


def test_the_gain_is_the_difference_of_the_scores():
    mdp, expert, unlabelled = problem("finite")
    rows = compare(MESSI(), mdp, expert[:3], unlabelled, expert[3:])
    one, other = rows[0], rows[1]
    gain = paired_gain(one.logs, other.logs, expert[3:].lengths - 1)
    assert_allclose(gain.mean, one.held_out - other.held_out, atol=1e-12)
    assert gain.low <= gain.mean <= gain.high


def test_nineteen_of_twenty_intervals_hold_the_truth():
    """Nearly: of 100 trajectories 94.8 %, of 25 as uneven ones 94.1 %; 2000 pairs tell it to half a per cent."""
    rng, held = generator(1), []
    for _ in range(2000):
        gain = paired_gain(*drawn_pair(rng, 100, 0.02))
        held.append(gain.low <= 0.02 <= gain.high)
    assert 0.93 < np.mean(held) < 0.97


def test_pairing_cancels_what_is_hard_for_both():
    one, other, steps = drawn_pair(generator(2), 200, 0.05)
    paired = paired_gain(one, other, steps)
    apart = paired_gain(one, other[::-1] * steps / steps[::-1], steps)
    assert paired.high - paired.low < 0.5 * (apart.high - apart.low)


def test_the_interval_does_not_depend_on_the_order_and_turns_with_the_sign():
    one, other, steps = drawn_pair(generator(3), 12, 0.0)
    there, back = paired_gain(one, other, steps), paired_gain(other, one, steps)
    assert_allclose([there.mean, there.low, there.high], [-back.mean, -back.high, -back.low])
    turn = np.arange(12)[::-1]
    again = paired_gain(one[turn], other[turn], steps[turn])
    assert_allclose([again.low, again.high], [there.low, there.high])


def test_trajectories_without_a_step_say_nothing():
    one, other, steps = drawn_pair(generator(4), 6, 0.1)
    more = paired_gain(np.append(one, 0.0), np.append(other, 0.0), np.append(steps, 0))
    assert_allclose([more.mean, more.low], [(g := paired_gain(one, other, steps)).mean, g.low])


def test_one_trajectory_has_no_interval_and_what_is_ruled_out_is_clearly_worse():
    lone = paired_gain(np.array([-2.0]), np.array([-3.0]), np.array([4]))
    assert lone.mean == 0.25
    assert np.isnan([lone.low, lone.high]).all()
    assert not lone.significant
    assert str(lone) == "+0.2500 nats per step"
    ruled_out = paired_gain(np.array([-2.0, -1.0]), np.array([-3.0, -np.inf]), np.array([4, 2]))
    assert ruled_out.mean == np.inf
    assert ruled_out.significant
    assert not paired_gain(np.full(2, -np.inf), np.full(2, -np.inf), np.array([4, 2])).significant


def test_what_the_tolerance_of_a_fit_leaves_open_is_no_difference():
    assert not Gain(NOTHING / 2, NOTHING / 4, NOTHING).significant
    assert Gain(0.01, 0.001, 0.019).significant
    assert Gain(-0.01, -0.02, -0.001).significant
    assert not Gain(0.01, -0.001, 0.021).significant


# ------------------------------------------------------------ which is best


def verdict_of(*gains, alone=0):
    """The verdict on methods that gain so much over the first, each trajectory a little more or less."""
    wave = 0.01 * np.where(np.arange(STEPS.size) % 2, 1.0, -1.0)
    logs = [(-1.0 + gain + (wave if gain else 0.0)) * STEPS for gain in gains]
    names = [f"method {i}" for i in range(len(gains))]
    return compare_scores(names, logs, STEPS, alone)


def test_the_best_is_named_with_its_interval_over_the_experts_alone():
    verdict, gains = verdict_of(0.0, 0.5, 0.2)
    assert (verdict.best, verdict.alone, verdict.alike) == ("method 1", "method 0", [])
    assert verdict.gain == gains[1]
    assert verdict.sentence == (
        f"method 1 predicts the 8 held-out trajectories best, {gains[1]} over method 0 on "
        "the experts only; every other method is clearly behind."
    )
    assert gains[0].mean == 0.0


def test_where_an_interval_includes_zero_there_is_no_clear_difference():
    verdict, gains = verdict_of(0.0, 0.002, -0.5, 0.002)
    assert verdict.alike == ["method 0", "method 3"]
    assert not gains[1].significant
    assert verdict.sentence.endswith("; no clear difference from method 0 and method 3.")


def test_of_many_that_are_alike_the_number_is_said():
    verdict, _ = verdict_of(0.0, 0.002, 0.002, 0.002, 0.002, -0.5)
    assert verdict.sentence.endswith("; no clear difference from 4 of the 5 other methods.")


def test_the_experts_alone_may_be_best():
    verdict, _ = verdict_of(0.0, -0.4)
    assert verdict.gain is None
    assert verdict.sentence == (
        "method 0 predicts the 8 held-out trajectories best; every other method is clearly behind."
    )


def test_one_held_out_trajectory_decides_nothing():
    verdict, _ = compare_scores(["a", "b"], [np.array([-1.0]), np.array([-9.0])], np.array([3]), 1)
    assert verdict.sentence == "a predicts the one held-out trajectory best; one trajectory allows no interval."


def test_a_method_that_rules_out_what_was_seen_is_never_best():
    verdict, _ = compare_scores(["a", "b"], [np.full(2, -np.inf), np.array([-9.0, -4.0])], np.array([3, 2]), 0)
    assert verdict.best == "b"
    assert verdict.alike == []


def test_a_verdict_is_plain_data():
    verdict = Verdict("a", "b", Gain(0.1, 0.05, 0.15), ["c, d", "e"], 5, 7)
    assert verdict.summary() == {
        "best": "a",
        "alone": "b",
        "gain": {"mean": 0.1, "low": 0.05, "high": 0.15},
        "alike": ["c, d", "e"],
        "methods": 5,
        "trajectories": 7,
        "without": {},
        "sentence": "a predicts the 7 held-out trajectories best, +0.1000 nats per step [0.0500, 0.1500] over b on the "
        'experts only; no clear difference from "c, d" and e.',
    }


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # no detour, no finite price of a step
@pytest.mark.parametrize("kind", ["finite", "goals"])
def test_a_comparison_has_the_methods_that_use_unlabelled_trajectories_only_with_them(kind):
    mdp, expert, unlabelled = problem(kind)
    names = [row.name for row in compare(MESSI(), mdp, expert, unlabelled, None)]
    assert names[0] == "MaxEnt"
    assert {"Reference", "ReferenceStd", "LightPooling", "Pooling"} <= set(names)
    alone, uniform = compare(MESSI(), mdp, expert, None, expert)
    assert (alone.name, uniform.name) == ("MaxEnt", "uniform")
    model = MaxEntIRL().fit(mdp, expert)
    assert alone.converged == model.converged_
    assert alone.expert == alone.held_out == pytest.approx(model.score(expert), rel=1e-12)


# ------------------------------------------------------------ few units


def test_identical_units_are_one_observation_and_have_no_interval():
    for n in (2, 5, 50):
        gain = paired_gain(np.full(n, -2.0), np.full(n, -3.7), np.full(n, 5))
        assert gain.mean == pytest.approx(0.34)
        assert np.isnan([gain.low, gain.high]).all()
        assert not gain.significant


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 12, 100])
def test_units_that_agree_by_chance_leave_room_for_one_that_does_not(n):
    """The error is at least that of a coin that contradicts the gain with probability 1/(n + 2)."""
    steps, jitter = np.full(n, 5), 1e-6 * np.arange(n)
    gain, p = paired_gain(1.0 + jitter, np.zeros(n), steps), 1.0 / (n + 2)
    half = student.ppf(0.975, n - 1) * 2.0 * np.sqrt(p * (1.0 - p) / (n - 1)) * gain.mean
    assert_allclose(gain.high - gain.mean, half, rtol=1e-4)
    assert gain.significant == (n > 4)


def test_the_floor_of_the_error_changes_nothing_where_units_differ():
    one, other, steps = drawn_pair(generator(5), 30, 0.01)
    gain = paired_gain(one, other, steps)
    rest = (one - other) - gain.mean * steps
    half = student.ppf(0.975, 29) * np.sqrt(30 / 29 * (rest @ rest)) / steps.sum()
    assert_allclose(gain.high - gain.mean, half)


def test_an_effect_is_negligible_only_if_its_whole_interval_is():
    assert Gain(0.001, -0.004, 0.006).negligible
    assert not Gain(0.001, -0.004, 0.02).negligible
    assert not Gain(0.005, 0.002, 0.008).negligible, "it is clear, if small"
    assert not Gain(0.0, np.nan, np.nan).negligible
