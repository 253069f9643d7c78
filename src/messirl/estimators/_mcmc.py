"""Markov chain Monte Carlo: Metropolis chains with a given density, and their convergence diagnostics.

Metropolis' rule with a normal proposal: a draw x' = x + L z is accepted with probability min(1, p(x')/p(x)), else x
stays. During warm-up, L is adapted to the draws of all chains (Haario, Saksman and Tamminen 2001; Craiu, Rosenthal and
Yang 2009) and its length so that about a third of the proposals are accepted. Then both are fixed, and the chains have
the stationary density p.

R-hat and the effective sample size are those of Gelman et al., Bayesian Data Analysis, third edition, section 11.4:
each chain is split into halves, and autocorrelations are summed in pairs while a pair is positive (Geyer 1992).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from messirl._types import Floats

Density = Callable[[Floats], float]

TAKEN = 0.3  # target acceptance rate
RELEARNT = 50  # draws between two updates of the proposal covariance


def metropolis_step(
    density: Density, at: Floats, log_p: float, root: Floats, random: np.random.RandomState
) -> tuple[Floats, float, float]:
    """Return the next point (d,) of a chain, its log-density, and the acceptance probability of the proposal."""
    proposal = at + root @ random.standard_normal(at.size)
    ahead = density(proposal)
    chance = float(np.exp(min(0.0, ahead - log_p)))
    if random.random_sample() < chance:
        return proposal, ahead, chance
    return at, log_p, chance


def draw_chains(
    density: Density, at: Floats, spread: Floats, warm_up: int, draws: int, random: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Return draws (m, n, d) of chains from points (m, d) of finite density, and their acceptance rates (m,).

    spread : (d,) the sizes of the first steps

    The chains warm up together: covariance and length of the proposals are adapted to all of them.
    """
    m, d = at.shape
    now, log_p = list(at), [density(x) for x in at]
    shape: Floats = np.diag(spread)
    length = 2.38 / np.sqrt(d)
    seen, taken = np.empty((m, warm_up + draws, d)), np.zeros((m, warm_up + draws))
    for t in range(warm_up + draws):
        for i in range(m):
            now[i], log_p[i], taken[i, t] = metropolis_step(density, now[i], log_p[i], length * shape, random)
            seen[i, t] = now[i]
        if t < warm_up:
            length *= float(np.exp((taken[:, t].mean() - TAKEN) / np.sqrt(1.0 + t / 10.0)))
            if (t + 1) % RELEARNT == 0:  # the first half is burn-in
                recent = seen[:, (t + 1) // 2 : t + 1].reshape(-1, d)
                covariance = np.cov(recent.T).reshape(d, d) + 1e-6 * np.diag(spread**2)
                shape = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return seen[:, warm_up:], taken[:, warm_up:].mean(axis=1)


def split(samples: Floats) -> Floats:
    """Split chains (m, n, d) into halves, (2m, n/2, d), without the first of an odd number of draws."""
    half = samples.shape[1] // 2
    return np.concatenate([samples[:, -2 * half : -half], samples[:, -half:]])


def r_hat(samples: Floats) -> Floats:
    """Return √((W (n − 1)/n + B/n)/W), (d,), of split chains (m, n, d): near 1 if they mixed, inf if none moved."""
    within, total = _variances(split(samples))
    moved = within > 0.0
    return np.where(moved, np.sqrt(total / np.where(moved, within, 1.0)), np.inf)


def effective_sample_size(samples: Floats) -> Floats:
    """Return m n / (1 + 2 Σ_t ρ_t), (d,), of split chains (m, n, d): the equivalent number of independent draws."""
    halves = split(samples)
    m, n, d = halves.shape
    _, total = _variances(halves)
    centred = halves - halves.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    power = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    products = np.fft.irfft(power, size, axis=1)[:, :n]  # Σ_i x_i x_{i+t}
    # V_t = mean of (x_i − x_{i−t})² over i and chains
    squares = np.cumsum(centred**2, axis=1)
    lag = np.arange(n)
    ends = squares[:, n - 1 - lag]  # of the first n − t
    begins = squares[:, -1:] - np.concatenate([np.zeros((m, 1, d)), squares[:, :-1]], axis=1)  # of the last n − t
    variogram = ((ends + begins - 2.0 * products) / (n - lag)[None, :, None]).mean(axis=0)
    rho = 1.0 - variogram / np.where(total > 0.0, 2.0 * total, 1.0)
    pairs = rho[: n - n % 2].reshape(-1, 2, d).sum(axis=1)
    positive = np.cumprod(pairs > 0.0, axis=0)
    return np.asarray(m * n / np.maximum(2.0 * (pairs * positive).sum(axis=0) - 1.0, 1.0 / np.log10(m * n)))


def _variances(halves: Floats) -> tuple[Floats, Floats]:
    """Return the variance within chains W, and the pooled estimate W (n − 1)/n + B/n, (d,)."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (n - 1) / n + halves.mean(axis=1).var(axis=0, ddof=1)
