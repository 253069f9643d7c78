"""A search that begins at a fit nearby: it takes less time, and finds the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem

from messirl import MESSI, MaxEntIRL
from messirl.estimators._convergence_report import IdentifiabilityWarning
from messirl.estimators._initialization import WarmStart, initial_theta, likelihood_curvature_at
from messirl.estimators.registry import COMPARED, METHODS
from messirl.inference.baselines import WarmStarts, compare
from messirl.objective import Objective

every = pytest.mark.parametrize("kind", KINDS)
PENALISED = {"objective": "counts", "max_iter": 1000}


def nearby(kind, **options):
    """A problem, its experts, and a fit to them that others may begin at."""
    mdp, expert, _ = problem(kind)
    model = MaxEntIRL(ridge=0.2, **(PENALISED | options)).fit(mdp, expert)
    likelihood = Objective.from_trajectories(mdp, expert, objective=model.likelihood_)
    return mdp, expert, WarmStart(model.theta_, likelihood_curvature_at(likelihood, model.theta_))


@every
def test_a_fit_that_begins_nearby_finds_what_it_finds_otherwise(kind):
    mdp, expert, near = nearby(kind)
    one, other = (MaxEntIRL(ridge=0.3, theta_init=begin, **PENALISED).fit(mdp, expert) for begin in (None, near))
    assert one.converged_
    assert other.converged_
    assert_array_equal(other.theta_init_, near.theta)
    assert_allclose(other.theta_, one.theta_, rtol=1e-4, atol=1e-5)
    assert_allclose(other.objective_, one.objective_, rtol=1e-10)


@every
def test_a_wrong_curvature_costs_steps_and_no_more(kind):
    mdp, expert, near = nearby(kind)
    d = mdp.n_features
    for wrong in (1e3 * np.eye(d), 1e-3 * np.eye(d)):
        model = MaxEntIRL(ridge=0.3, theta_init=WarmStart(near.theta, wrong), **PENALISED).fit(mdp, expert)
        plain = MaxEntIRL(ridge=0.3, **PENALISED).fit(mdp, expert)
        assert_allclose(model.theta_, plain.theta_, rtol=1e-4, atol=1e-5)


def test_where_the_objective_need_not_be_concave_the_search_begins_as_ever():
    mdp, expert, near = nearby("endless")
    assert not Objective.from_trajectories(mdp, expert[:1], objective="choices").concave
    model = MaxEntIRL(objective="choices", ridge=0.3, theta_init=near).fit(mdp, expert[:1])
    assert_array_equal(model.theta_init_, np.zeros(mdp.n_features))


def test_where_values_are_not_finite_the_search_begins_as_ever():
    mdp, expert, _ = nearby("goals")
    objective = Objective.from_trajectories(mdp, expert)
    lost = WarmStart(np.full(mdp.n_features, 10.0), np.eye(mdp.n_features))
    assert not np.isfinite(objective(lost.theta).value)
    assert_array_equal(initial_theta(mdp, objective, 500.0, lost), initial_theta(mdp, objective, 500.0))


def test_beyond_the_box_the_search_begins_as_ever():
    mdp, expert, near = nearby("finite")
    objective = Objective.from_trajectories(mdp, expert)
    bound = 0.5 * float(np.abs(near.theta).max())
    assert_array_equal(initial_theta(mdp, objective, bound, near), np.zeros(mdp.n_features))


def test_fits_at_the_bound_are_nobodys_neighbours():
    mdp, expert, _ = problem("finite")
    close = float(np.abs(MaxEntIRL(ridge=0.2, **PENALISED).fit(mdp, expert).theta_).max()) / 2
    held = MaxEntIRL(ridge=0.2, theta_max=close, **PENALISED).fit(mdp, expert)
    assert held.standing_.box
    near = WarmStarts(expert)
    near.add(held)
    other = MaxEntIRL(ridge=0.2, **PENALISED)
    near.fit(other, mdp, (expert,))
    assert_array_equal(other.theta_init_, np.zeros(mdp.n_features))


def test_fits_whose_likelihood_is_flat_in_a_direction_are_nobodys_neighbours():
    mdp, expert, _ = problem("finite")
    twice = mdp.replace(features=np.hstack([mdp.features, mdp.features[:, :1]]))
    near, other = WarmStarts(expert), MaxEntIRL(ridge=0.2, **PENALISED)
    with pytest.warns(IdentifiabilityWarning):
        one = MaxEntIRL(ridge=0.2, **PENALISED).fit(twice, expert)
    near.add(one)
    with pytest.warns(IdentifiabilityWarning):
        near.fit(other, twice, (expert,))
    assert_array_equal(other.theta_init_, np.zeros(twice.n_features))


def test_a_start_of_the_users_own_is_kept():
    mdp, expert, _ = nearby("finite")
    own = np.full(mdp.n_features, 0.1)
    others, model = WarmStarts(expert), MaxEntIRL(ridge=0.2, theta_init=own, **PENALISED)
    others.add(MaxEntIRL(ridge=0.2, **PENALISED).fit(mdp, expert))
    others.fit(model, mdp, (expert,))
    assert_array_equal(model.theta_init_, own)


def test_em_begins_as_ever_since_its_start_decides_where_it_ends():
    mdp, expert, unlabelled = problem("finite")
    settings = MESSI(lambda0=5.0, objective="counts", max_iter=30)
    alone, after = (
        compare(settings, mdp, expert[:6], unlabelled, None, [METHODS[name] for name in names])[-1]
        for names in (["EM"], ["MaxEnt", "EM"])
    )
    assert alone.expert == after.expert


def test_what_a_penalty_holds_is_not_asked_of_a_fit_that_began_nearby():
    mdp, expert, near = nearby("goals")
    assert MaxEntIRL(ridge=0.2, theta_init=near, **PENALISED).fit(mdp, expert).standing_.penalty == ()
    assert near in {near}


def test_fixed_steps_begin_as_ever():
    mdp, expert, _ = problem("finite")
    near, model = WarmStarts(expert), MaxEntIRL(solver="paper", max_iter=5)
    near.add(MaxEntIRL(ridge=0.2, **PENALISED).fit(mdp, expert))
    with pytest.warns(match="did not converge"):
        near.fit(model, mdp, (expert,))
    assert_array_equal(model.theta_init_, np.zeros(mdp.n_features))


@every
def test_baselines_beside_a_fit_score_as_they_do_alone(kind):
    mdp, expert, unlabelled = problem(kind)
    settings = MESSI(lambda0=5.0, objective="counts", max_iter=1000)
    fitted = MESSI(lambda0=5.0, objective="counts", max_iter=1000).fit(mdp, expert[:6], unlabelled)
    rows = compare(settings, mdp, expert[:6], unlabelled, expert[6:], COMPARED, fitted)
    for row in rows:
        model, data = METHODS[row.name].make(settings, mdp, expert[:6], unlabelled)
        model.fit(mdp, *data)
        if row.converged and model.converged_:
            assert_allclose([row.expert, row.held_out], [model.score(expert[:6]), model.score(expert[6:])], atol=1e-4)
    assert {row.name for row in rows} == {method.name for method in COMPARED}
