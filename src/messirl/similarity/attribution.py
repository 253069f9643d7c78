"""Contribution of each trajectory to the penalty of Eq. 5, at given values v = F θ:  Σ_k s_jk (v_j − v_k)².

For few trajectories, and for given matrices, it is exact. For a kernel and very many, W [1, v, v²] is that of Nyström's
matrix (approximate_penalty.py), with as many landmarks as a small error needs; the error is measured at other
trajectories, whose rows of W are computed exactly.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.chunked_reduce import pieces
from messirl.similarity.approximate_penalty import RANKS, SEED, ApproximationWarning, solve
from messirl.similarity.kernel_base import Kernel
from messirl.similarity.penalty_blocks import Block, exceeds_exact_limit, tiles
from messirl.similarity.standardize import ROUNDING

TOL = 0.01  # relative error of the sums of many trajectories
SAMPLE = 256  # trajectories at which the error is measured


def pair_sums(block: Block, values: Floats) -> Floats:
    """Return Σ_k s_jk (v_j − v_k)² of every trajectory j, (n,)."""
    values = values - values.mean()  # only differences matter; centring avoids cancellation
    if isinstance(block, Kernel) and exceeds_exact_limit(len(values)):
        found, error = estimated_sums(block, values)
        if error > TOL:
            warnings.warn(
                f"the shares of {len(values)} trajectories in the penalty have a relative error of about {error:.1g}: "
                "the kernel is narrow; use a wider one",
                ApproximationWarning,
                stacklevel=3,
            )
        return found
    found = np.zeros(len(values))
    for rows, columns in tiles(len(values)):
        found[rows] += _squares(values[rows], np.asarray(block(rows, columns) @ _powers(values[columns])))
    return np.maximum(found, 0.0)


def estimated_sums(kernel: Kernel, values: Floats) -> tuple[Floats, float]:
    """Return the sums (n,) from landmarks, and an estimate of their error, relative to their mean."""
    n, rng = len(values), np.random.default_rng(SEED)
    order = rng.choice(n, size=min(RANKS[-1] + SAMPLE, n), replace=False)
    some, order = order[:SAMPLE], order[SAMPLE:]
    aside = kernel.points[some]
    sums_aside = _against(kernel, aside, values)
    exact = _squares(values[some], sums_aside)
    something = ROUNDING * float(sums_aside[:, 2].sum())  # smaller sums are rounding errors
    sums = np.zeros((0, 3))
    for rank in RANKS:
        sums = np.vstack([sums, _against(kernel, kernel.points[order[len(sums) : rank]], values)])
        near = kernel.points[order[: len(sums)]]
        solved = solve(kernel.between(near, near), sums)
        gap = np.abs(_squares(values[some], kernel.between(aside, near) @ solved) - exact)
        error = float(gap.sum() / exact.sum()) if exact.sum() > something else 0.0
        if error <= TOL:
            break
    found = np.empty(n)
    for part in pieces(n, len(near)):
        found[part] = _squares(values[part], kernel.between(kernel.points[part], near) @ solved)
    return np.maximum(found, 0.0), error


def pair_pulls(block: Block, which: Ints, counts: Any, values: Floats) -> Floats:
    """Return Σ_k s_jk (f_j − f_k)(v_j − v_k) of some trajectories j, (m, d): G_j θ, where M = (1/n) Σ_j G_j."""
    d = counts.shape[1]
    sums = np.zeros((len(which), 2 + 2 * d))
    for part in pieces(*counts.shape):
        f, v = counts[part], values[part, None]
        sums += np.asarray(block(which, part) @ np.hstack([np.ones_like(v), v, f, v * f]))
    row, first, f, v = sums[:, :1], sums[:, 1:2], counts[which], values[which, None]
    return np.asarray((v * row - first) * f - v * sums[:, 2 : d + 2] + sums[:, d + 2 :])


def _against(kernel: Kernel, near: Floats, values: Floats) -> Floats:
    """Return W [1, v, v²] (k, 3) for the rows of W that belong to these points."""
    sums = np.zeros((len(near), 3))
    for part in pieces(len(values), len(near)):
        sums += kernel.between(near, kernel.points[part]) @ _powers(values[part])
    return sums


def _powers(values: Floats) -> Floats:
    return np.stack([np.ones_like(values), values, values**2], axis=1)


def _squares(values: Floats, sums: Floats) -> Floats:
    """Return Σ_k s_jk (v_j − v_k)², from Σ_k s_jk (1, v_k, v_k²)."""
    row, first, second = sums.T
    return np.asarray(row * values**2 - 2.0 * values * first + second)
