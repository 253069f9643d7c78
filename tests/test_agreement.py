"""Agreement with the expert policy, shrunk by length: its formulas, what it recovers, and rankings of trajectories."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from scipy.stats import norm, spearmanr
from seeds import generator, shifted
from test_streamed import spread, table_of

from messirl import MDP, Trajectories, sample, soft_policy
from messirl.app.workflow.record import DiagnosisRecord
from messirl.inference.paired_gain import Gain
from messirl.io import StreamedTrajectories
from messirl.selection.diagnostics import Diagnosis
from messirl.selection.expert_agreement import ExpertAgreement, measure_agreement, shrink_means

NO_LEAN = Gain(0.0, 0.0, 0.0)
short_ones = pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning")


def simulated(seed, n=100, mean=0.1, between=0.3, within=1.0, longest=200):
    """True agreements, the number of steps of each trajectory, from 2 to `longest`, and the values of all steps."""
    rng = generator(seed)
    steps = np.exp(rng.uniform(np.log(2), np.log(longest + 1), n)).astype(int)
    truth = rng.normal(mean, between, n)
    return truth, steps, rng.normal(np.repeat(truth, steps), within)


def summed(steps, values):
    """The mean of the steps of each trajectory, and the variance of the steps within, pooled."""
    parts = np.split(values, np.cumsum(steps)[:-1])
    within = sum(((part - part.mean()) ** 2).sum() for part in parts) / sum(part.size - 1 for part in parts)
    return np.array([part.mean() for part in parts]), float(within)


def found_of(x, steps, variance):
    return ExpertAgreement(x, 0.3, 1.0, NO_LEAN, steps, variance)


def record_of(found):
    u = found.unlabelled.size
    some = Diagnosis("unclear", [], np.zeros(u), np.full(u, 1 / u), found, None, [], 1.0, 1)
    return DiagnosisRecord(some, [str(j) for j in range(u)], ["x"])


# ------------------------------------------------------------ formulas


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_between_trajectories_is_that_of_dersimonian_and_laird(seed):
    _, steps, values = simulated(seed, n=30)
    x, variance = summed(steps, values)
    w = steps / variance
    q = (w * (x - np.average(x, weights=w)) ** 2).sum()
    tau2 = max(0.0, (q - (x.size - 1)) / (w.sum() - (w**2).sum() / w.sum()))
    found = shrink_means(x, steps, variance)
    assert tau2 > 0
    assert found.between**2 == pytest.approx(tau2, rel=1e-9)
    assert found.within**2 == pytest.approx(variance)


@pytest.mark.parametrize("seed", range(4))
def test_estimates_and_errors_are_those_of_hendersons_mixed_model_equations(seed):
    """x = μ + b + e with b ~ N(0, τ²I) and e ~ N(0, R): the inverse of their matrix holds all errors of prediction."""
    _, steps, values = simulated(seed, n=25)
    x, variance = summed(steps, values)
    found = shrink_means(x, steps, variance)
    precision, n = steps / variance, x.size
    matrix = np.zeros((n + 1, n + 1))
    matrix[0, 0], matrix[0, 1:], matrix[1:, 0] = precision.sum(), precision, precision
    matrix[1:, 1:] = np.diag(precision + 1 / found.between**2)
    errors = np.linalg.inv(matrix)
    solved = errors @ np.concatenate([[precision @ x], precision * x])
    error = np.sqrt(errors[0, 0] + 2 * errors[0, 1:] + np.diag(errors)[1:])
    assert_allclose(found.mean, solved[0])
    assert_allclose(found.values, solved[0] + solved[1:])
    assert_allclose(found.high - found.values, norm.ppf(0.975) * error)
    assert_allclose(found.values - found.low, norm.ppf(0.975) * error)


@short_ones
def test_the_variance_within_is_that_of_single_steps():
    """Of an endless problem the policy is stationary, so that every step is a trajectory with the same value."""
    mdp, expert, own = problem("endless")
    own = own[:3] + Trajectories.from_lists(
        [one.states[: 2 + k].tolist() for k, one in enumerate(own[3:])],
        actions=[one.actions[: 1 + k].tolist() for k, one in enumerate(own[3:])],
    )
    found = measure_agreement(mdp, expert, own, random_state=0)
    left = np.flatnonzero(own.leaves)
    pieces = Trajectories.from_lists(
        np.stack([own.states[left], own.states[left + 1]], axis=1).tolist(), actions=own.actions[:, None].tolist()
    )
    single = measure_agreement(mdp, expert, pieces, random_state=0)
    x, variance = summed(own.lengths - 1, single.unlabelled)
    assert_array_equal(found.steps, own.lengths - 1)
    assert_allclose(found.unlabelled, x, rtol=1e-6)
    assert found.variance == pytest.approx(variance, rel=1e-6)
    assert np.isnan(single.variance), "of single steps it is not known"


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic"])
def test_files_give_the_same_agreement_as_memory(tmp_path, kind):
    mdp, expert, walks = problem(kind)
    streamed = StreamedTrajectories(spread(table_of(walks), tmp_path / "w"), chunk_rows=9)
    one, other = (measure_agreement(mdp, expert[:4], some, random_state=0) for some in (walks, streamed))
    assert other.variance == pytest.approx(one.variance, rel=1e-9)
    for name in ("values", "low", "high"):
        assert_allclose(getattr(other.agreement, name), getattr(one.agreement, name), rtol=1e-9)


# ------------------------------------------------------------ what it recovers


def test_intervals_hold_the_true_agreement_of_short_and_of_long_trajectories():
    held, short = [], []
    for seed in range(60):
        truth, steps, values = simulated(seed)
        found = shrink_means(*_means(steps, values))
        held += ((found.low < truth) & (truth < found.high)).tolist()
        short += (steps < 6).tolist()
    held, short = np.array(held), np.array(short)
    for some in (short, ~short):  # about 0.94, as τ is estimated too
        assert 0.92 < np.mean(held[some]) < 0.97


def test_shrunken_values_recover_a_ranking_better_than_raw_ones():
    raw, shrunk = [], []
    for seed in range(40):
        truth, steps, values = simulated(seed)
        x, variance = summed(steps, values)
        found = shrink_means(x, steps, variance)
        raw.append((spearmanr(x, truth).statistic, ((x - truth) ** 2).mean()))
        shrunk.append((spearmanr(found.values, truth).statistic, ((found.values - truth) ** 2).mean()))
    (rank, error), (better, smaller) = np.mean(raw, axis=0), np.mean(shrunk, axis=0)
    assert better > rank + 0.05
    assert smaller < 0.5 * error


def test_the_first_of_a_ranking_are_better_than_the_first_by_raw_values():
    raw, ranked = [], []
    for seed in range(40):
        truth, steps, values = simulated(seed)
        x, variance = summed(steps, values)
        most, least = found_of(x, steps, variance).extremes(5)
        order = np.argsort(-x)
        raw.append(truth[order[:5]].mean() - truth[order[-5:]].mean())
        ranked.append(truth[most].mean() - truth[least].mean())
    assert np.mean(ranked) > 1.3 * np.mean(raw)


def corridor(seed):
    """Ten places in a row: experts go right; 60 others walk at random, two steps each; of 12 long ones half go left."""
    right, left = np.minimum(np.arange(10) + 1, 9), np.maximum(np.arange(10) - 1, 0)
    moves = np.stack([np.eye(10)[left], np.eye(10)[right]], axis=1)
    mdp = MDP(moves, np.linspace(0, 1, 10)[:, None], discount=0.9)

    def walks(theta, n, length, number):
        policy = soft_policy(mdp, mdp.reward([theta]))
        return sample(mdp, policy, n, length, start=np.ones(10), random_state=shifted(10 * seed + number))

    return mdp, walks(3.0, 8, 40, 1), walks(0.0, 60, 3, 2) + walks(3.0, 6, 201, 3) + walks(-3.0, 6, 201, 4)


@short_ones
@pytest.mark.parametrize("seed", range(5))
def test_trips_of_two_steps_are_neither_first_nor_last_by_luck(seed):
    """By raw values two steps to the right, or the left, are ahead of 200 steps of an expert, or of its opposite."""
    mdp, expert, every = corridor(seed)
    found = measure_agreement(mdp, expert, every, random_state=0)
    steps = every.lengths - 1
    assert steps[found.unlabelled.argmax()] == steps[found.unlabelled.argmin()] == 2, "what they say by themselves"
    most, least = record_of(found).extremes(5)
    assert set(most) < set(range(60, 66))
    assert set(least) < set(range(66, 72))
    summary = record_of(found).summary()
    for key, order in (("most_alike", most), ("least_alike", least)):
        assert [row["trajectory_id"] for row in summary[key]] == [str(j) for j in order]
        assert all(row["agreement_low"] < row["agreement"] < row["agreement_high"] for row in summary[key])


# ------------------------------------------------------------ what must not change the ranking


@pytest.mark.parametrize("between", [0.0, 0.001, 0.5])
@pytest.mark.parametrize("length", [2, 50])
def test_equal_lengths_are_ranked_by_their_raw_values(between, length):
    for seed in range(5):
        rng = generator(seed)
        steps = np.full(40, length)
        x, variance = summed(steps, rng.normal(np.repeat(rng.normal(0.0, between, 40), steps), 1.0))
        most, least = found_of(x, steps, variance).extremes(20)
        assert_array_equal(most, np.argsort(-x)[:20])
        assert_array_equal(least, np.argsort(x)[:20])


def test_the_order_of_trajectories_does_not_matter():
    _, steps, values = simulated(3)
    x, variance = summed(steps, values)
    one, turn = found_of(x, steps, variance), generator(4).permutation(x.size)
    other = found_of(x[turn], steps[turn], variance)
    for name in ("values", "low", "high"):
        assert_allclose(getattr(other.agreement, name), getattr(one.agreement, name)[turn], rtol=1e-12)
    for before, after in zip(one.extremes(10), other.extremes(10), strict=True):
        assert_array_equal(turn[after], before)


def test_opposite_signs_turn_the_ranking_around():
    _, steps, values = simulated(5)
    x, variance = summed(steps, values)
    most, least = found_of(x, steps, variance).extremes(10)
    turned = found_of(-x, steps, variance).extremes(10)
    assert_array_equal(turned[0], least)
    assert_array_equal(turned[1], most)


def test_nobody_is_among_the_highest_and_the_lowest():
    for u in range(2, 9):
        _, steps, values = simulated(u, n=u)
        most, least = found_of(*_means(steps, values)).extremes(5)
        assert most.size == least.size == min(u // 2, 5)
        assert not set(most) & set(least)


# ------------------------------------------------------------ edges


def test_where_trajectories_do_not_differ_longer_ones_count_for_more():
    """All values are the common mean then, and the order is that in which they would leave it."""
    x, steps = np.array([0.1, -0.1, 0.05, -0.05]), np.array([2, 2, 100, 100])
    found = found_of(x, steps, 5.0)
    assert found.agreement.between == 0.0
    assert_allclose(found.agreement.values, found.agreement.mean)
    most, least = found.extremes(2)
    assert (most.tolist(), least.tolist()) == ([2, 0], [3, 1])


def test_a_trajectory_without_a_step_is_taken_for_the_mean():
    _, steps, values = simulated(6, n=20)
    x, variance = summed(steps, values)
    rest = shrink_means(x, steps, variance)
    found = shrink_means(np.append(x, 0.0), np.append(steps, 0), variance)
    assert_allclose(found.values, np.append(rest.values, rest.mean))
    assert (found.high - found.low).argmax() == 20


def test_what_is_ruled_out_comes_last_and_counts_for_no_other():
    _, steps, values = simulated(7, n=20)
    x, variance = summed(steps, values)
    rest = shrink_means(x, steps, variance)
    found = found_of(np.append(x, -np.inf), np.append(steps, 3), variance)
    assert_allclose(found.agreement.values[:20], rest.values)
    assert found.agreement.values[20] == -np.inf
    assert found.extremes(3)[1][0] == 20


@pytest.mark.parametrize("variance", [np.nan, 0.0])
def test_without_noise_and_where_it_is_not_known_nothing_is_shrunk(variance):
    x = np.array([0.3, -0.2, 0.1])
    found = found_of(x, np.array([1, 1, 1]), variance)
    assert_array_equal(found.agreement.values, x)
    assert np.isnan(found.agreement.low).all() == np.isnan(variance)
    most, least = found.extremes(1)
    assert (most.tolist(), least.tolist()) == ([0], [1])
    assert_array_equal(ExpertAgreement(x, 0.3, 1.0, NO_LEAN).agreement.values, x)


def test_a_single_trajectory_is_its_own_mean():
    found = shrink_means(np.array([0.4]), np.array([25]), 1.0)
    assert_allclose([found.values[0], found.mean], 0.4)
    assert_allclose(found.high - 0.4, norm.ppf(0.975) / 5)


def _means(steps, values):
    x, variance = summed(steps, values)
    return x, steps, variance
