"""EM-MaxEnt: the weights of the E-step, when it happens, and the whole against a loop written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem
from scipy.special import logsumexp

from messirl import EMMaxEnt, MaxEntIRL, feature_counts, soft_policy, soft_values, state_visitation
from messirl.estimators import em
from messirl.objective import Objective

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def weights_by_hand(mdp, theta, trajectories, entropy="causal"):
    """P(ζ|θ) over Σ, one trajectory after the other."""
    reward, counts = mdp.reward(theta), feature_counts(mdp, trajectories)
    log = np.empty(len(trajectories))
    for i, row in enumerate(trajectories):
        values = soft_values(mdp, reward, entropy, row.goal)
        values = values[0] if mdp.horizon is not None else values
        log[i] = counts[i] @ theta - values[row.states[0]]
    return np.exp(log - logsumexp(log))


# ------------------------------------------------------------ the E-step


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_probabilities_normalised_over_all_trajectories(kind):
    mdp, expert, unlabelled = problem(kind)
    both = expert + unlabelled
    theta = np.array([-2.0, -1.0, 0.5])[: mdp.n_features]
    weights = em.e_step(mdp, theta, "causal", both, feature_counts(mdp, both))
    assert_allclose(weights, weights_by_hand(mdp, theta, both), rtol=1e-9)
    assert_allclose(weights.sum(), 1.0, rtol=1e-12)


def test_weights_of_the_noncausal_model_use_its_own_normaliser():
    mdp, expert, unlabelled = problem("finite")
    both, theta = expert + unlabelled, np.array([1.0, -1.0, 0.5])
    weights = em.e_step(mdp, theta, "noncausal", both, feature_counts(mdp, both))
    assert_allclose(weights, weights_by_hand(mdp, theta, both, "noncausal"), rtol=1e-9)


@pytest.mark.parametrize("size", [1e3, 1e5])
def test_weights_are_finite_for_huge_theta(size):
    mdp, expert, unlabelled = problem("finite")
    both = expert + unlabelled
    weights = em.e_step(mdp, size * np.array([1.0, -1.0, 1.0]), "causal", both, feature_counts(mdp, both))
    assert np.isfinite(weights).all()
    assert_allclose(weights.sum(), 1.0, rtol=1e-12)


def test_equal_trajectories_share_their_weight():
    mdp, expert, _ = problem("finite")
    theta = np.array([1.0, -1.0, 0.5])
    twice = expert + expert
    weights = em.e_step(mdp, theta, "causal", twice, feature_counts(mdp, twice))
    assert_allclose(weights[:30], weights[30:], rtol=1e-12)


# ------------------------------------------------------------ when it happens


@pytest.mark.parametrize(("eta", "steps", "rounds"), [(1, 6, 6), (2, 6, 3), (5, 12, 3), (20, 7, 1)])
def test_an_e_step_comes_every_steps_per_round(monkeypatch, eta, steps, rounds):
    seen, real = [], em.e_step

    def counted(mdp, theta, *rest):
        seen.append(theta.copy())
        return real(mdp, theta, *rest)

    monkeypatch.setattr(em, "e_step", counted)
    path = []
    model = EMMaxEnt(
        steps_per_round=eta, max_iter=steps, step_size=0.05, callback=lambda state: path.append(state["theta"])
    ).fit(*problem("finite"))
    assert model.n_iter_ == steps
    assert len(seen) == rounds
    for r, theta in enumerate(seen):
        assert_array_equal(theta, path[r * eta])


@pytest.mark.parametrize("eta", [1, 3, 4])
def test_the_whole_is_the_loop_written_out(eta):
    mdp, expert, unlabelled = problem("finite")
    both, step, theta_max = expert + unlabelled, 0.15, 0.6
    counts = feature_counts(mdp, both)
    theta = np.zeros(3)
    for t in range(12):
        if t % eta == 0:
            weights = weights_by_hand(mdp, theta, both)
        expected = state_visitation(mdp, soft_policy(mdp, mdp.features @ theta)) @ mdp.features
        theta = theta + step * (weights @ counts - expected)
        if np.abs(theta).max() > theta_max:
            theta = theta * theta_max / np.abs(theta).max()
    model = EMMaxEnt(steps_per_round=eta, max_iter=12, step_size=step, theta_max=theta_max)
    model.fit(mdp, expert, unlabelled)
    assert_allclose(model.theta_, theta, rtol=1e-9)
    assert_allclose(model.weights_, weights, rtol=1e-9)


def test_without_a_start_of_its_own_the_problem_starts_as_the_weights_say():
    mdp, expert, unlabelled = problem("finite")
    both = expert + unlabelled
    model = EMMaxEnt(max_iter=4, step_size=0.2).fit(mdp.replace(start=None), expert, unlabelled)
    assert_allclose(model.start_, np.bincount(both.first, model.weights_, 5), rtol=1e-12)


# ------------------------------------------------------------ what it leaves behind


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_kept_and_sum_to_one(kind):
    mdp, expert, unlabelled = problem(kind)
    model = EMMaxEnt(max_iter=5, step_size=0.01, steps_per_round=2).fit(mdp, expert, unlabelled)
    assert model.weights_.shape == (len(expert) + len(unlabelled),)
    assert (model.weights_ >= 0).all()
    assert_allclose(model.weights_.sum(), 1.0, rtol=1e-12)
    assert_allclose(model.effective_sample_size_, 1 / (model.weights_**2).sum(), rtol=1e-12)


def test_history_tells_the_effective_sample_size_of_every_round():
    model = EMMaxEnt(max_iter=6, step_size=0.2, steps_per_round=3).fit(*problem("finite"))
    sizes = model.history_.effective_sample_size
    assert model.history_.iteration.tolist() == list(range(7))
    assert len(set(sizes[:4])) == 1
    assert len(set(sizes[4:])) == 1
    assert sizes[0] != sizes[-1]
    assert sizes[-1] == model.effective_sample_size_


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_and_history_end_with_the_last_weights(kind, objective):
    """Also where the last round only finds that nothing is left to do."""
    mdp, expert, unlabelled = problem(kind)
    model = EMMaxEnt(objective=objective, solver="lbfgs", steps_per_round=50, max_iter=1000, theta_max=2.0)
    model.fit(mdp, expert, unlabelled)
    likely = Objective.from_trajectories(
        mdp, expert + unlabelled, sample_weight=model.weights_, objective=objective, quadratic=model.quadratic_
    )
    assert model.objective_ == pytest.approx(likely(model.theta_).value, rel=1e-12)
    assert model.history_.iteration.tolist() == list(range(model.n_iter_ + 1))
    assert (np.diff(model.history_.evaluations) > 0).all()
    last = model.history_[-1]
    assert last.objective == model.objective_
    assert (last.gradient_norm, last.effective_sample_size) == (model.gradient_norm_, model.effective_sample_size_)


def test_one_round_from_zero_is_maxent_on_everyone():
    # At θ = 0 every trajectory with as many choices is as likely, so the first weights are equal.
    mdp, expert, unlabelled = problem("finite")
    one = EMMaxEnt(max_iter=9, step_size=0.2, steps_per_round=9).fit(mdp, expert, unlabelled)
    pooled = MaxEntIRL(solver="paper", max_iter=9, step_size=0.2).fit(mdp, expert + unlabelled)
    assert_allclose(one.theta_, pooled.theta_, rtol=1e-10)


def test_the_exact_solver_goes_on_until_weights_and_theta_agree():
    mdp, expert, unlabelled = problem("finite")
    model = EMMaxEnt(objective="counts", solver="lbfgs", steps_per_round=50, max_iter=1000, theta_max=2.0)
    model.fit(mdp, expert, unlabelled)
    both = expert + unlabelled
    assert model.converged_
    again = em.e_step(mdp, model.theta_, "causal", both, feature_counts(mdp, both))
    assert_allclose(model.weights_, again, atol=1e-4)


def test_the_reason_for_ending_speaks_of_all_steps_and_not_of_one_round():
    model = EMMaxEnt(max_iter=7, steps_per_round=2, step_size=0.01).fit(*problem("finite"))
    assert "7" in model.termination_


def test_it_fits_without_unlabelled_trajectories():
    mdp, expert, _ = problem("finite")
    model = EMMaxEnt(max_iter=3, step_size=0.1).fit(mdp, expert)
    assert model.weights_.shape == (30,)


@pytest.mark.parametrize("eta", [0, -1, 1.5, True, "all", None])
def test_steps_per_round_is_a_whole_number_from_one_on(eta):
    with pytest.raises((ValueError, TypeError), match=f"steps_per_round={eta!r}: it must be a whole number"):
        EMMaxEnt(steps_per_round=eta).fit(*problem("finite"))
