"""Bayesian IRL: the density by plain loops, the draws against quadrature, R-hat and sample sizes against theory."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from seeds import generator, shifted
from worlds import drawn, random_mdp, without_actions

from messirl.data.feature_scale import feature_spread
from messirl.estimators import BayesianIRL
from messirl.estimators._mcmc import draw_chains, effective_sample_size, metropolis_step, r_hat
from messirl.estimators.bayesian import Posterior, log_boltzmann


def source(seed: int) -> np.random.RandomState:
    return np.random.RandomState(shifted(seed))


def best_by_sweeps(mdp, reward, beta):
    """log π(a|s) ∝ β Q*, by value iteration in plain loops: (S, A), or (H − 1, S, A)."""
    p = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    r = np.broadcast_to(reward[:, None] if reward.ndim == 1 else reward, (mdp.n_states, mdp.n_actions))
    last = reward if reward.ndim == 1 else np.zeros(mdp.n_states)
    values, tables = np.array(last), []
    for _ in range(400 if mdp.horizon is None else mdp.horizon - 1):
        q = np.empty(r.shape)
        for s in range(mdp.n_states):
            for a in range(mdp.n_actions):
                q[s, a] = r[s, a] + mdp.discount * p[s, a] @ values
        values = q.max(axis=1)
        tables.insert(0, beta * q - np.log(np.exp(beta * q).sum(axis=1, keepdims=True)))
    return tables[0] if mdp.horizon is None else np.array(tables)


@pytest.mark.parametrize("kind", ["finite", "endless", "steps"])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_the_policy_is_the_softmax_of_the_best_values(kind, beta):
    mdp = problem(kind).mdp
    reward = mdp.reward([1.0, -2.0, 0.5])
    assert_allclose(log_boltzmann(mdp, reward, beta), best_by_sweeps(mdp, reward, beta), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("prior", ["normal", "uniform"])
@pytest.mark.parametrize("kind", ["finite", "endless"])
def test_the_density_is_prior_times_likelihood_step_by_step(kind, prior):
    mdp, expert, _ = problem(kind)
    x, unit = np.array([0.4, -0.7, 0.2]), feature_spread(mdp)
    logs = best_by_sweeps(mdp, mdp.reward(x / unit), 1.5)
    total = 0.0
    for t in expert:
        for step, (s, a) in enumerate(zip(t.states[:-1], t.actions, strict=True)):
            total += logs[(step, s, a) if mdp.horizon is not None else (s, a)]
    wanted = total - (0.5 * x @ x / 9.0 if prior == "normal" else 0.0)
    assert_allclose(Posterior(mdp, expert, 1.5, prior, 3.0)(x), wanted, rtol=1e-8)
    if prior == "uniform":
        assert Posterior(mdp, expert, 1.5, prior, 0.5)(x) == -np.inf


def test_without_actions_a_step_is_as_likely_as_all_that_make_it():
    mdp, expert, _ = problem("endless")
    x, unit = np.array([0.4, -0.7, 0.2]), feature_spread(mdp)
    policy = np.exp(best_by_sweeps(mdp, mdp.reward(x / unit), 1.0))
    p = mdp.transitions.toarray().reshape(5, 3, 5)
    total = sum(
        np.log(policy[s] @ p[s, :, entered])
        for t in expert
        for s, entered in zip(t.states[:-1], t.states[1:], strict=True)
    )
    found = Posterior(mdp, without_actions(expert), 1.0, "normal", 10.0)(x) + 0.5 * x @ x / 100.0
    assert_allclose(found, total, rtol=1e-8)


def quadrature(density, reach):
    """Points (n, 2) of a grid over what matters of a square, the mass at each, and the sides of its cells (2,)."""
    low, high = np.full(2, -reach), np.full(2, reach)
    for cells in (20, 20, 45):
        cell = (high - low) / cells
        axes = [low[j] + (np.arange(cells) + 0.5) * cell[j] for j in range(2)]
        grid = np.array([[a, b] for a in axes[0] for b in axes[1]])
        logs = np.array([density(x) for x in grid])
        matters = grid[logs >= logs.max() - 20.0]
        low = np.maximum(matters.min(axis=0) - 1.5 * cell, -reach)
        high = np.minimum(matters.max(axis=0) + 1.5 * cell, reach)
    mass = np.exp(logs - logs.max())
    return grid, mass / mass.sum(), cell


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "kind"), [("normal", "finite"), ("uniform", "finite"), ("normal", "endless")])
def test_two_weights_have_the_moments_of_quadrature(prior, kind):
    more = {"horizon": 5} if kind == "finite" else {}
    mdp = random_mdp(3, 4, 2, 2, discount=0.8, start=np.full(4, 0.25), **more)
    expert = drawn(mdp, [2.0, -1.0], 8, 3, **({} if kind == "finite" else {"length": 12}))
    scale = 2.0
    model = BayesianIRL(prior=prior, prior_scale=scale, n_samples=800, random_state=shifted(1)).fit(mdp, expert)
    unit, posterior = feature_spread(mdp), Posterior(mdp, expert, 1.0, prior, scale)
    reach = scale if prior == "uniform" else 4.0 * scale
    grid, mass, cell = quadrature(posterior, reach)
    mean = mass @ grid
    spread = np.sqrt(mass @ (grid - mean) ** 2)
    error = spread / np.sqrt(model.ess_)  # of a mean of so many independent draws
    assert model.converged_
    assert (np.abs(model.theta_ * unit - mean) <= 5.0 * error + 0.1 * cell).all()
    draws = model.samples_.reshape(-1, 2) * unit
    assert_allclose(draws.std(axis=0), spread, rtol=0.2)
    assert_allclose(model.theta_, model.samples_.mean(axis=(0, 1)))


@pytest.mark.filterwarnings("ignore:BayesianIRL did not converge")  # where the box cuts off what the experts show
def test_with_a_uniform_prior_no_draw_leaves_the_box():
    mdp, expert, _ = problem("finite")
    model = BayesianIRL(prior="uniform", prior_scale=0.5, random_state=shifted(0)).fit(mdp, expert)
    assert np.abs(model.samples_ * feature_spread(mdp)).max() <= 0.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_seed_gives_the_same_draws_again():
    mdp, expert, _ = problem("finite")
    few = {"n_warm_up": 30, "n_samples": 20}
    a, b = (BayesianIRL(random_state=3, **few).fit(mdp, expert) for _ in range(2))
    assert_array_equal(a.samples_, b.samples_)
    assert not np.array_equal(a.samples_, BayesianIRL(random_state=4, **few).fit(mdp, expert).samples_)


def test_chains_that_have_not_mixed_are_warned_of():
    mdp, expert, _ = problem("endless")
    with pytest.warns(UserWarning, match="BayesianIRL did not converge: R-hat of the weight of . is"):
        model = BayesianIRL(n_warm_up=0, n_samples=4, random_state=0).fit(mdp, expert)
    assert not model.converged_


# ------------------------------------------------------------ chains


def test_draws_have_the_moments_of_a_normal_density():
    mean, covariance = np.array([1.0, -2.0]), np.array([[4.0, 1.8], [1.8, 1.0]])
    precision = np.linalg.inv(covariance)

    def density(x):
        return float(-0.5 * (x - mean) @ precision @ (x - mean))

    begin = 10.0 * source(1).standard_normal((4, 2))
    seen, taken = draw_chains(density, begin, np.ones(2), 500, 4000, source(2))
    assert seen.shape == (4, 4000, 2)
    assert ((taken > 0.1) & (taken < 0.6)).all()
    assert r_hat(seen).max() < 1.05
    error = np.sqrt(np.diag(covariance) / effective_sample_size(seen))
    assert (np.abs(seen.mean(axis=(0, 1)) - mean) <= 5.0 * error).all()
    assert_allclose(np.cov(seen.reshape(-1, 2).T), covariance, rtol=0.25, atol=0.1)


def test_a_step_upwards_is_always_taken_and_one_to_nowhere_never():
    random = source(0)
    for _ in range(20):
        at, log_p, chance = metropolis_step(lambda x: 0.0, np.zeros(1), -5.0, np.eye(1), random)
        assert (chance, log_p) == (1.0, 0.0)
        assert abs(at[0]) > 0.0
        assert metropolis_step(lambda x: -np.inf, np.zeros(1), -5.0, np.eye(1), random)[1:] == (-5.0, 0.0)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_correlated_draws_are_worth_as_many_independent_ones_as_theory_says(correlation):
    """An autoregressive chain: n (1 − φ)/(1 + φ)."""
    noise = generator(7).normal(size=(4, 20_000, 1))
    x = np.empty_like(noise)
    x[:, 0] = noise[:, 0] / np.sqrt(1.0 - correlation**2)
    for t in range(1, x.shape[1]):
        x[:, t] = correlation * x[:, t - 1] + noise[:, t]
    wanted = 80_000 * (1.0 - correlation) / (1.0 + correlation)
    assert_allclose(effective_sample_size(x), wanted, rtol=0.15)
    assert_allclose(r_hat(x), 1.0, atol=0.01)


def test_chains_in_different_places_have_a_large_r_hat_and_small_size():
    x = generator(3).normal(size=(4, 500, 1)) + np.array([0.0, 0.0, 0.0, 5.0])[:, None, None]
    assert r_hat(x)[0] > 1.5
    assert effective_sample_size(x)[0] < 20.0


def test_a_drift_within_chains_shows_in_r_hat():
    """Halves of one chain disagree, though the chains agree."""
    x = generator(3).normal(size=(4, 500, 1)) + np.linspace(0.0, 5.0, 500)[None, :, None]
    assert r_hat(x)[0] > 1.3


def test_r_hat_by_hand():
    x = np.array([[[0.0], [2.0], [1.0], [3.0]], [[2.0], [4.0], [3.0], [5.0]]])  # halves: means 1, 2, 3, 4, variance 2
    assert_allclose(r_hat(x), np.sqrt((2.0 * 0.5 + np.var([1.0, 2.0, 3.0, 4.0], ddof=1)) / 2.0))


def test_chains_that_never_moved_are_not_mixed():
    assert np.isinf(r_hat(np.zeros((2, 10, 1)))).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": "flat"}, "prior='flat': choose 'normal' or 'uniform'"),
        ({"beta": 0.0}, "beta=0.0: it must be finite and > 0"),
        ({"prior_scale": -1.0}, "prior_scale=-1.0"),
        ({"n_chains": 1}, "n_chains=1: it must be a whole number >= 2"),
        ({"n_samples": 3}, "n_samples=3"),
        ({"n_warm_up": -1}, "n_warm_up=-1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    mdp, expert, _ = problem("finite")
    with pytest.raises(ValueError, match=message):
        BayesianIRL(**arguments).fit(mdp, expert)
