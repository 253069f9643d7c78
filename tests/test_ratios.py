"""Ratios of weights: the delta method against differences and against resampling, and Fieller's interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, t as student
from seeds import generator

from messirl import MaxEntIRL, Trajectories, estimation_table, sample, soft_policy, weight_ratio
from messirl.inference import EstimationTable
from tests.roads import TRUTH, network, trips


@pytest.fixture(scope="module")
def table():
    mdp = network()
    expert = trips(mdp, 300, 0)
    return estimation_table(MaxEntIRL(theta_max=None).fit(mdp, expert), expert)


def made(estimate, covariance) -> EstimationTable:
    """A table of two weights, all of whose covariances are the same."""
    theta, square = np.array(estimate, dtype=float), np.array(covariance, dtype=float)
    error = np.sqrt(np.diag(square))
    return EstimationTable(("a", "b"), theta, error, error, square, square, -1.0, 10, 100, 2, error, square)


@pytest.mark.parametrize(("one", "other"), [("time", "turn"), ("turn", "time"), ("const", "time")])
def test_the_delta_method_is_the_slope_of_the_ratio(table, one, other):
    found, step = weight_ratio(table, one, other), 1e-6
    i, j = table.names.index(one), table.names.index(other)

    def ratio(theta):
        return theta[i] / theta[j]

    slope = [(ratio(table.estimate + step * e) - ratio(table.estimate - step * e)) / (2 * step) for e in np.eye(3)]
    assert found.value == pytest.approx(ratio(table.estimate))
    for error, covariance in (
        (found.std_error, table.covariance),
        (found.robust_std_error, table.robust_covariance),
        (found.outer_std_error, table.outer_covariance),
    ):
        assert error == pytest.approx(np.sqrt(slope @ covariance @ slope), rel=1e-6)
    freedom = table.degrees_of_freedom[[i, j]].min()
    half = student.ppf(0.975, freedom) * found.robust_std_error
    assert found.degrees_of_freedom == freedom
    assert_allclose([found.low, found.high], [found.value - half, found.value + half])


@pytest.mark.slow
def test_the_delta_method_is_what_refits_to_drawn_trips_vary_by():
    mdp, n = network(), 400
    expert = trips(mdp, n, 0)
    model = MaxEntIRL(theta_max=None).fit(mdp, expert)
    found = weight_ratio(estimation_table(model, expert), "time", "turn")
    random, values = generator(7), []
    policies = {int(g): soft_policy(mdp, mdp.reward(model.theta_), goal=int(g)) for g in np.unique(expert.goals)}
    for _ in range(300):
        drawn = Trajectories.from_lists([], goals=[])
        for goal, policy in policies.items():
            begins = np.bincount(expert[np.flatnonzero(expert.goals == goal)].first, minlength=mdp.n_states)
            drawn += sample(mdp, policy, int(begins.sum()), random_state=random, goal=goal, start=begins / begins.sum())
        theta = MaxEntIRL(theta_max=None, theta_init=model.theta_).fit(mdp, drawn).theta_
        values.append(theta[0] / theta[1])
    assert found.std_error == pytest.approx(np.std(values), rel=0.15)
    assert_allclose(np.quantile(values, [0.025, 0.975]), [found.fieller_low, found.fieller_high], rtol=0.15)


def test_the_truth_is_in_the_interval_of_many_trips():
    mdp = network()
    expert = trips(mdp, 4000, 3)
    found = weight_ratio(
        estimation_table(MaxEntIRL(theta_max=None).fit(mdp, expert), expert), "time", "turn", level=0.9999
    )
    assert found.low < TRUTH[0] / TRUTH[1] < found.high
    assert found.level == 0.9999


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.8])
def test_fieller_s_ends_are_where_the_numerator_is_at_the_edge_of_its_error(correlation):
    square = np.array([[0.09, 0.06 * correlation], [0.06 * correlation, 0.04]])
    found = weight_ratio(made([1.0, -1.5], square), "a", "b")
    for end in (found.fieller_low, found.fieller_high):
        turned = np.array([1.0, -end])
        assert (1.0 + 1.5 * end) ** 2 == pytest.approx(norm.ppf(0.975) ** 2 * turned @ square @ turned)
    assert found.fieller_low < found.value < found.fieller_high


def test_far_from_zero_both_intervals_agree_and_near_it_fieller_s_is_endless():
    far = weight_ratio(made([1.0, 2.0], 1e-6 * np.eye(2)), "a", "b")
    assert_allclose([far.low, far.high], [far.fieller_low, far.fieller_high], rtol=1e-5)
    near = weight_ratio(made([1.0, 0.1], 0.01 * np.eye(2)), "a", "b")
    assert (near.fieller_low, near.fieller_high) == (-np.inf, np.inf)
    assert np.isfinite([near.low, near.high]).all()


def test_a_ratio_does_not_know_the_scale_of_the_weights(table):
    found = weight_ratio(table, "time", "turn")
    larger = replace(table, estimate=7 * table.estimate, robust_covariance=49 * table.robust_covariance)
    again = weight_ratio(larger, "time", "turn")
    assert_allclose([again.value, again.low, again.fieller_high], [found.value, found.low, found.fieller_high])


def test_what_has_no_standard_error_has_no_interval(table):
    unknown = replace(table, robust_std_error=np.array([np.nan, 0.1, 0.1]))
    found = weight_ratio(unknown, "time", "turn")
    assert np.isfinite(found.std_error)
    assert np.isnan([found.robust_std_error, found.low, found.high, found.fieller_low]).all()


def test_of_counts_there_is_no_outer_product(table):
    assert (
        weight_ratio(replace(table, outer_std_error=None, outer_covariance=None), "time", "turn").outer_std_error
        is None
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tme", "turn"), "there is no feature 'tme'; there are time, turn, const; did you mean 'time'?"),
        (("time", "time"), "the ratio of 'time' to itself is 1: name two features"),
    ],
)
def test_a_ratio_of_nothing_is_refused(table, words, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        weight_ratio(table, *words)


def test_a_level_and_a_denominator_are_checked(table):
    with pytest.raises(ValueError, match=r"level=95: .*must be between 0 and 1"):
        weight_ratio(table, "time", "turn", level=95)
    with pytest.raises(ValueError, match=r"the weight of 'b' is 0: it cannot be the denominator"):
        weight_ratio(made([1.0, 0.0], np.eye(2)), "a", "b")
