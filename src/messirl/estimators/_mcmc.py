"""Markov chains that draw from a density, and whether they have mixed.

Metropolis' rule with a normal proposal: a draw x' = x + L z is taken with probability min(1, p(x')/p(x)), else x
stays. While chains warm up, L is learnt from what all of them have seen (Haario, Saksman and Tamminen 2001; Craiu,
Rosenthal and Yang 2009) and its length so that about a third of the proposals are taken; then both are held, and the
draws are those of chains with the density p.

R-hat and the effective sample size are those of Gelman et al., Bayesian Data Analysis, third edition, section 11.4:
each chain is cut into halves, and correlations are summed in pairs while the sum of a pair is positive (Geyer 1992).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from messirl._types import Floats

Density = Callable[[Floats], float]

TAKEN = 0.3  # share of the proposals that should be taken
RELEARNT = 50  # draws between two times that the shape of the proposals is learnt anew


def metropolis_step(
    density: Density, at: Floats, log_p: float, root: Floats, random: np.random.RandomState
) -> tuple[Floats, float, float]:
    """The next point (d,) of a chain, its log-density, and the probability that the proposal had to be taken."""
    proposal = at + root @ random.standard_normal(at.size)
    ahead = density(proposal)
    chance = float(np.exp(min(0.0, ahead - log_p)))
    if random.random_sample() < chance:
        return proposal, ahead, chance
    return at, log_p, chance


def draw_chains(
    density: Density, at: Floats, spread: Floats, warm_up: int, draws: int, random: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Draws (m, n, d) of chains that begin at points (m, d) of finite density, and the shares of proposals taken (m,).

    spread : (d,) the sizes of the first steps

    The chains warm up together: the shape and the length of the proposals are learnt from all of them.
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
            if (t + 1) % RELEARNT == 0:  # the first half of what was seen only leads there
                recent = seen[:, (t + 1) // 2 : t + 1].reshape(-1, d)
                covariance = np.cov(recent.T).reshape(d, d) + 1e-6 * np.diag(spread**2)
                shape = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    return seen[:, warm_up:], taken[:, warm_up:].mean(axis=1)


def split(samples: Floats) -> Floats:
    """Chains (m, n, d) cut into halves, (2m, n/2, d); of an odd number of draws the first is left out."""
    half = samples.shape[1] // 2
    return np.concatenate([samples[:, -2 * half : -half], samples[:, -half:]])


def r_hat(samples: Floats) -> Floats:
    """√((W (n − 1)/n + B/n)/W), (d,), of chains (m, n, d), halved: near 1 where they mixed, inf where nothing moved."""
    within, total = _variances(split(samples))
    moved = within > 0.0
    return np.where(moved, np.sqrt(total / np.where(moved, within, 1.0)), np.inf)


def effective_sample_size(samples: Floats) -> Floats:
    """m n / (1 + 2 Σ_t ρ_t), (d,), of chains (m, n, d), halved: as many independent draws would tell as much."""
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
    """The variance within chains W, and W (n − 1)/n + B/n of all together, (d,)."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (n - 1) / n + halves.mean(axis=1).var(axis=0, ddof=1)
