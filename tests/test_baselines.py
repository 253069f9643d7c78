"""The baselines a sceptic asks for: ridge, standardised ridge, the complete graph, pooling, no penalty."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem

from messirl import MESSI, MaxEntIRL, feature_counts
from messirl.objective import Objective
from messirl.similarity import RBF, CompleteGraph, Precomputed

every = pytest.mark.parametrize("kind", KINDS)
EXACT = {"objective": "counts", "max_iter": 1000, "tol": 1e-7}


@every
def test_ridge_pulls_with_rho_theta(kind):
    mdp, expert, _ = problem(kind)
    model = MaxEntIRL(ridge=0.3, **EXACT).fit(mdp, expert)
    target = feature_counts(mdp, expert).mean(axis=0)
    assert_allclose(target - model.feature_counts_, 0.3 * model.theta_, atol=1e-5)
    plain = Objective.from_trajectories(mdp, expert)(model.theta_).value
    assert_allclose(model.objective_, plain - 0.15 * model.theta_ @ model.theta_, rtol=1e-12)


@every
def test_standardised_ridge_pulls_with_the_variance_of_the_counts_over_all_trajectories(kind):
    mdp, expert, unlabelled = problem(kind)
    model = MaxEntIRL(ridge=0.3, standardise=True, **EXACT).fit(mdp, expert, unlabelled)
    variance = feature_counts(mdp, expert + unlabelled).var(axis=0)
    target = feature_counts(mdp, expert).mean(axis=0)
    assert_allclose(target - model.feature_counts_, 0.3 * variance * model.theta_, atol=1e-5)


def test_standardised_ridge_does_not_depend_on_the_units_of_features():
    mdp, expert, unlabelled = problem("finite")
    units = np.array([1.0, 20.0, 0.1])
    other = mdp.replace(features=mdp.features * units)
    arguments = {"ridge": 0.3, "theta_max": None, **EXACT}
    standard, rescaled = (
        MaxEntIRL(standardise=True, **arguments).fit(problem_, expert, unlabelled) for problem_ in (mdp, other)
    )
    assert_allclose(rescaled.theta_ * units, standard.theta_, rtol=1e-4)
    assert_allclose(rescaled.policy_, standard.policy_, atol=1e-6)
    plain = MaxEntIRL(**arguments).fit(other, expert)
    assert np.abs(plain.policy_ - MaxEntIRL(**arguments).fit(mdp, expert).policy_).max() > 1e-3


def test_without_standardise_unlabelled_trajectories_do_not_matter():
    mdp, expert, unlabelled = problem("finite")
    assert_array_equal(
        MaxEntIRL(ridge=0.3).fit(mdp, expert, unlabelled).theta_, MaxEntIRL(ridge=0.3).fit(mdp, expert).theta_
    )


def test_counts_that_do_not_vary_cannot_be_standardised():
    mdp, expert, _ = problem("finite")
    with pytest.raises(ValueError, match="standardise=True, but the counts do not vary"):
        MaxEntIRL(ridge=1.0, standardise=True).fit(mdp, expert[[0]])


def test_a_huge_ridge_leaves_theta_near_zero():
    model = MaxEntIRL(ridge=1e6).fit(*problem("finite")[:2])
    assert np.abs(model.theta_).max() < 1e-5


def test_more_ridge_gives_smaller_theta():
    sizes = [np.linalg.norm(MaxEntIRL(ridge=r, **EXACT).fit(*problem("finite")[:2]).theta_) for r in (0.01, 0.1, 1.0)]
    assert sizes[0] > sizes[1] > sizes[2]


@every
def test_pooling_treats_the_unlabelled_as_expert(kind):
    mdp, expert, unlabelled = problem(kind)
    pooled = MaxEntIRL(ridge=0.05, **EXACT).fit(mdp, expert + unlabelled)
    target = feature_counts(mdp, expert + unlabelled).mean(axis=0)
    assert_allclose(target - pooled.feature_counts_, 0.05 * pooled.theta_, atol=1e-5)
    assert np.abs(pooled.theta_ - MaxEntIRL(ridge=0.05, **EXACT).fit(mdp, expert).theta_).max() > 1e-3


def test_no_lambda_is_maxent_to_the_last_bit():
    mdp, expert, unlabelled = problem("finite")
    assert_array_equal(
        MESSI(RBF(1.0), lambda0=0.0).fit(mdp, expert, unlabelled).theta_, MaxEntIRL().fit(mdp, expert).theta_
    )


def test_the_complete_graph_is_a_ridge_on_the_covariance_of_the_counts():
    mdp, expert, unlabelled = problem("finite")
    counts = feature_counts(mdp, expert + unlabelled)
    model = MESSI(CompleteGraph(), lambda0=40.0, **EXACT).fit(mdp, expert, unlabelled)
    assert_allclose(model.penalty_matrix_, 2 * len(counts) * np.cov(counts.T, bias=True), rtol=1e-10)
    target = counts[: len(expert)].mean(axis=0)
    assert_allclose(target - model.feature_counts_, 40.0 / 500.0 * model.penalty_matrix_ @ model.theta_, atol=1e-5)


def test_the_complete_graph_is_the_matrix_of_ones():
    mdp, expert, unlabelled = problem("finite")
    ones = Precomputed(np.ones((len(expert) + len(unlabelled),) * 2))
    a, b = (MESSI(s, lambda0=40.0, **EXACT).fit(mdp, expert, unlabelled) for s in (CompleteGraph(), ones))
    assert_allclose(a.theta_, b.theta_, rtol=1e-5)


def test_a_similarity_of_zero_is_no_penalty():
    mdp, expert, unlabelled = problem("finite")
    nothing = Precomputed(np.zeros((len(expert) + len(unlabelled),) * 2))
    model = MESSI(nothing, lambda0=40.0, **EXACT).fit(mdp, expert, unlabelled)
    assert_allclose(model.theta_, MaxEntIRL(**EXACT).fit(mdp, expert).theta_, rtol=1e-6)
