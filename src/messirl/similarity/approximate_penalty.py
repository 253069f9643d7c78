"""Nyström approximation of the penalty of Eq. 5, for so many trajectories that n² similarities are too many.

A few trajectories, drawn at random, are landmarks L. With C = W[:, L] and A = W[L, L], Nyström's matrix W̃ = C A⁺ Cᵀ is
close to W for kernels that are not narrow, and its penalty M̃ = (2/n) Fᵀ (D̃ − W̃) F takes n·|L| similarities. The
remainder is estimated from as many other trajectories S, whose rows of W are computed exactly:

    M = (1/n) Σ_i G_i,   G_i = Σ_j w_ij Δ_ij Δ_ijᵀ,   Δ_ij = f_i − f_j
    M ≈ M̃ + mean over i in S of (G_i − G̃_i) / (n p_i),   p_i the probability that i is drawn

The estimator is unbiased, and its variance over S gives its standard error. On random sets of 5,000 its error equalled
that of M̃ for a wide kernel, and was a third to a tenth of it for a narrow one; as many exact rows alone err by 2 to
17 % for any kernel. S is drawn with p_i half uniform and half proportional to ‖f_i‖², so that the few trajectories far
from all others are not missed: the true error was then at most 1.7 times the estimated one, with uniform p_i 3.2 times.
Landmarks that are far from each other (as in k-means++) were better for wide kernels, which need no help, and worse for
narrow ones, so they are drawn uniformly. Their number is doubled until the error is small enough. Features are measured
in units of their spread, so that none of them hides the errors of others.

Where a few pairs decide, as for a kernel much narrower than the distances, a sample may miss them, and the error can be
several times the estimated one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import eigh

from messirl._types import Floats, Ints
from messirl.data.chunked_reduce import Found, run_pass
from messirl.similarity.kernel_base import Kernel, squared_distances
from messirl.similarity.penalty_blocks import exceeds_exact_limit, penalty_from
from messirl.similarity.standardize import Points, Units

RANKS = (256, 512, 1024, 2048)  # numbers of landmarks, and of exact rows beside them
PROBES = 32  # pairs of directions in which the variance of G is estimated
SINGULAR = 1e-12  # eigenvalues of A below this share of the largest are rounding
SEED = 0  # the same trajectories give the same penalty


class ApproximationWarning(UserWarning):
    """Warning that the penalty of many trajectories is less accurate than requested."""


def kernel_penalty(kernel: Kernel, counts: Floats, tol: float) -> Floats:
    """Return M (d, d) of Eq. 5 for a kernel: exact for few trajectories or tol = 0, else to a relative error of tol."""
    if tol > 0.0 and exceeds_exact_limit(len(counts)):
        matrix, error = estimated_penalty(kernel, counts, tol)
        if error > tol:
            warnings.warn(
                f"the penalty of {len(counts)} trajectories has a relative error of about {error:.1g}, more than "
                f"tol={tol:g}: the kernel is narrow; use a wider one, a larger tol, or tol=0 for the exact penalty, "
                "which is slow",
                ApproximationWarning,
                stacklevel=3,
            )
        return matrix
    return penalty_from(kernel, counts)


def estimated_penalty(kernel: Kernel, counts: Floats, tol: float) -> tuple[Floats, float]:
    """Return M (d, d) from as many landmarks as a relative error of tol needs, and an estimate of that error.

    The error is that of the Frobenius norm, features in units of their spread.
    """
    rng = np.random.default_rng(SEED)
    points = Points.of(counts, standardise=True)
    order = rng.choice(len(points), size=min(RANKS[-1], len(points)), replace=False)
    drawn, rare = draws(points, RANKS[-1], rng)
    unit = points.units.unit
    signs = rng.choice([-1.0, 1.0], size=(2, unit.size, PROBES))
    landmarks, sample = RowSums.none(kernel, points, signs), RowSums.none(kernel, points, signs, np.zeros(len(points)))
    matrix, error = np.zeros((unit.size,) * 2), np.inf
    for rank in RANKS:
        landmarks, sample = landmarks.grown(order[:rank]), sample.grown(drawn[:rank], rare[:rank])
        matrix, error = corrected(landmarks, sample)
        if error <= tol:
            break
    return without_negative(matrix) * np.outer(unit, unit), error


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over some rows of W, computed exactly.

    which   : (k,) the numbers of the rows
    rare    : (k,) 1 / (n p), p the probability that a trajectory is drawn
    f, x    : (k, d), (k, ·) their points, and those of the kernel
    sums    : (k, 1 + d + p) W [1, F, P], where P_j = (u·f_j)(v·f_j) for p pairs of directions u, v
    columns : (n,) the sum of the rows, weighted by `rare`; None if not needed
    """

    kernel: Kernel
    points: Points
    signs: Floats
    columns: Floats | None
    which: Ints
    rare: Floats
    f: Floats
    x: Floats
    sums: Floats

    @classmethod
    def none(cls, kernel: Kernel, points: Points, signs: Floats, columns: Floats | None = None) -> RowSums:
        """Return sums over no rows."""
        f, x = points[:0], kernel.points[:0]
        width = 1 + f.shape[1] + signs.shape[2]
        return cls(kernel, points, signs, columns, np.zeros(0, np.intp), np.zeros(0), f, x, np.zeros((0, width)))

    def grown(self, which: Ints, rare: Floats | None = None) -> RowSums:
        """Return sums over the rows `which`, of which the first are known."""
        rare = np.ones(len(which)) if rare is None else rare
        new, weight = which[len(self.which) :], rare[len(self.which) :]
        f, x = self.points[new], self.kernel.points[new]
        weighted = None if self.columns is None else weight
        work = partial(row_sums, KernelParameters.by(self.kernel, self.points), x, self.signs, weighted)
        sums, columns = run_pass(work, self.points.counts, len(new), self.along())
        return replace(
            self,
            columns=None if self.columns is None else self.columns + columns,
            which=which,
            rare=rare,
            f=np.vstack([self.f, f]),
            x=np.vstack([self.x, x]),
            sums=np.vstack([self.sums, sums]),
        )

    def along(self) -> list[Floats]:
        """Return the arrays that a pass needs besides counts: the kernel's points, unless computed from counts."""
        return [] if isinstance(self.kernel.points, Points) else [self.kernel.points]


@dataclass(frozen=True, eq=False)
class KernelParameters:
    """Parameters of a pass over counts: the kernel's profile, the units of points, and those of the kernel's points."""

    profile: Callable[[Floats], Floats]
    units: Units
    own: Units | None

    @classmethod
    def by(cls, kernel: Kernel, points: Points) -> KernelParameters:
        """Return the parameters for a kernel and points."""
        own = kernel.points.units if isinstance(kernel.points, Points) else None
        return cls(kernel.profile, points.units, own)

    def similarities(self, near: Floats, counts: Floats, *own: Floats) -> Floats:
        """Return the similarities of kernel points and these counts; `own` are the kernel's points, if separate."""
        return self.profile(squared_distances(near, *own if self.own is None else (self.own(counts),)))


def row_sums(
    kernel_parameters: KernelParameters, x: Floats, signs: Floats, weight: Floats | None, counts: Floats, *own: Floats
) -> Found:
    """Return the sums W [1, F, P] of the rows of W at the points x and, given weights, the sums of the columns."""
    weights, f = kernel_parameters.similarities(x, counts, *own), kernel_parameters.units(counts)
    terms = np.column_stack([np.ones(len(f)), f, products(signs, f, f)])
    return weights @ terms, None if weight is None else weight @ weights


def products(signs: Floats, a: Floats, b: Floats) -> Floats:
    """Return (u·a)(v·b) for each pair of directions, (k, p)."""
    u, v = signs
    return np.asarray((a @ u) * (b @ v))


def draws(points: Points, size: int, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Draw trajectories with p half uniform, half as the squared distance from the mean; return them and 1 / (n p).

    The squares of a feature that varies add up to n.
    """
    n, varied = len(points), int((points.units.unit > 0.0).sum())
    _, far = run_pass(partial(squares, points.units), points.counts, points.units.unit.size)
    p = (1.0 + (far / varied if varied else 1.0)) / (2 * n) * np.ones(n)
    upto = np.cumsum(p)
    upto[-1] = 1.0  # up to rounding it is 1
    which = np.searchsorted(upto, rng.random(size), side="right")
    return which, 1.0 / (n * p[which])


def squares(units: Units, counts: Floats) -> Found:
    """Return ‖f‖² of each point."""
    return None, (units(counts) ** 2).sum(axis=1)


def corrected(landmarks: RowSums, sample: RowSums) -> tuple[Floats, float]:
    """Return M (d, d) from the landmarks, corrected by the sample, and its relative standard error."""
    points, kernel, signs = landmarks.points, landmarks.kernel, landmarks.signs
    n, d, m = len(points), landmarks.f.shape[1], len(sample.which)
    assert sample.columns is not None
    rare, near = sample.rare, landmarks.x
    across = kernel.between(sample.x, near)
    solved = solve(kernel.between(near, near), np.column_stack([landmarks.sums, rare @ across]))
    missing = rare[:, None] * (sample.sums - across @ solved[:, :-1])
    f, degree, linear = sample.f, missing[:, :1], missing[:, 1 : d + 1]
    cross = f.T @ linear / m
    matrix = f.T @ (degree * f) / m - cross - cross.T
    matrix -= 2.0 / n * landmarks.sums[:, 1 : d + 1].T @ solved[:, 1 : d + 1]
    towards = 2.0 / n * solved[:, 0] - solved[:, -1] / m
    work = partial(weighted_scatter, KernelParameters.by(kernel, points), near, towards)
    matrix += run_pass(work, points.counts, len(near), [sample.columns / m, *landmarks.along()])[0]
    seen = degree * products(signs, f, f) - products(signs, f, linear) - products(signs, linear, f)
    variance = (seen + missing[:, d + 1 :]).var(axis=0, ddof=1).mean() / m  # of all entries of M, summed
    size = float(np.linalg.norm(matrix))
    return (matrix + matrix.T) / 2.0, float(np.sqrt(variance)) / size if size > 0.0 else 0.0


def weighted_scatter(
    kernel_parameters: KernelParameters, near: Floats, towards: Floats, counts: Floats, known: Floats, *own: Floats
) -> Found:
    """Return Σ_j w_j f_j f_jᵀ, where w_j adds the known part of column j and that from the landmarks."""
    weights, f = known + towards @ kernel_parameters.similarities(near, counts, *own), kernel_parameters.units(counts)
    return f.T @ (weights[:, None] * f), None


def solve(a: Floats, b: Floats) -> Floats:
    """Return A⁺ b for a matrix that is positive semidefinite up to rounding."""
    values, vectors = eigh(a)
    kept = values > SINGULAR * len(a) * values[-1]
    return np.asarray(vectors[:, kept] @ ((vectors[:, kept].T @ b) / values[kept, None]))


def without_negative(matrix: Floats) -> Floats:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0.0:
        return matrix
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ root.T)
