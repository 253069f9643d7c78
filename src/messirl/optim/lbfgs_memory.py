"""How a function bends, as far as the steps of a search have shown: the memory of L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

from messirl._blas import few_threads
from messirl._types import Flags, Floats

MEMORY = 100  # secants kept; with as many as there are weights, the last steps are nearly Newton's
MEMORY_SIZE = 4_000_000  # numbers that the secants may take up in memory
EIGEN = 10.0  # multiplications that the eigenvectors of a matrix take, over those of a product
FLAT = 1e-12  # curvature, relative to the largest, that a search counts on where there is hardly any
NO_BEND = 1e-14  # of a step's length and the fall's: along it the function does not bend
TINY = 1e-290  # squares of lengths: smaller ones underflow
FORESEEN = 0.9  # share of a step by which the curvature known before it may err


class Secants:
    """The curvature seen along the steps taken: pairs of a step s and the fall y of the gradient along it.

    curvature : (d, d) what is said of it before the first step, or None
    """

    def __init__(self, d: int, curvature: Floats | None = None) -> None:
        most = max(20, min(MEMORY, MEMORY_SIZE // max(d, 1)))
        self._steps, self._falls = np.empty((most, d)), np.empty((most, d))
        self._cross = np.empty((most, most))  # s_iᵀ y_j for j ≥ i, all that is used
        self.forget(curvature)

    @property
    def capacity(self) -> int:
        """How many secants are kept at most."""
        return len(self._steps)

    @property
    def known(self) -> bool:
        """Whether anything is known of the curvature."""
        return self.n > 0 or self.told

    @property
    def told(self) -> bool:
        """Whether what was said of the curvature is still believed."""
        return self._said is not None

    def forget(self, curvature: Floats | None = None) -> None:
        """Know nothing any more, or only what is said now."""
        self.n, self._said = 0, curvature
        self._whole = None if curvature is None else _inverse(curvature)

    def foresee(self, step: Floats, fall: Floats) -> bool:
        """Whether H⁻¹ y is about s; if H is far too large, a steep fall is foreseen, and after it no move."""
        gap = step - self.solve(fall, step != 0.0)
        return self.known and bool(gap @ gap <= FORESEEN**2 * (step @ step))

    def add(self, step: Floats, fall: Floats) -> None:
        """Remember a step and the fall of the gradient along it, unless the function does not bend along it."""
        if not _curved(step @ fall, step @ step, fall @ fall):
            return
        if self.n == self.capacity:
            for kept in (self._steps, self._falls):
                kept[:-1] = kept[1:]
            self._cross[:-1, :-1] = self._cross[1:, 1:]
            self.n -= 1
        self._steps[self.n], self._falls[self.n] = step, fall
        self.n += 1
        self._cross[: self.n, self.n - 1] = self._steps[: self.n] @ fall

    def relearn(self, steps: Floats, falls: Floats) -> None:
        """Know what these steps and falls (n, d) say, added in their order, and nothing else."""
        products = (np.einsum("ij,ij->i", *pair) for pair in ((steps, falls), (steps, steps), (falls, falls)))
        good = np.flatnonzero(_curved(*products))[-self.capacity :]
        self.n = good.size
        self._steps[: self.n], self._falls[: self.n] = steps[good], falls[good]
        self._cross[: self.n, : self.n] = steps[good] @ falls[good].T

    @property
    def weakest(self) -> float:
        """The smallest curvature along any of the steps."""
        steps, falls = self._steps[: self.n], self._falls[: self.n]
        return float(((steps * falls).sum(axis=1) / (steps * steps).sum(axis=1)).min(initial=np.inf))

    def solve(self, gradient: Floats, free: Flags) -> Floats:
        """H⁻¹ g on the free coordinates, H the curvature: the two-loop recursion (Nocedal & Wright, Alg. 7.4).

        Each loop is a triangular system, with S and Y the steps and falls as rows, R the upper triangle of S Yᵀ and D
        its diagonal (Byrd, Nocedal & Schnabel 1994):

            R α = S g,     r = H₀⁻¹ (g − Yᵀ α),     Rᵀ β = D α − Y r,     H⁻¹ g = r + Sᵀ β
        """
        q = np.where(free, gradient, 0.0)
        steps, falls, cross = self._steps[: self.n], self._falls[: self.n], self._cross[: self.n, : self.n]
        if not free.all():
            steps, falls = steps * free, falls * free
            good = _curved((steps * falls).sum(axis=1), (steps * steps).sum(axis=1), (falls * falls).sum(axis=1))
            steps, falls = steps[good], falls[good]
            cross = steps @ falls.T
        if not len(steps):
            return self._first(q, free)
        curvature, last = cross.diagonal(), falls[-1]
        alpha = dtrsv(cross.T, steps @ q, lower=1, trans=1)
        # H₀ to the scale of the last step
        scale = float(curvature[-1]) / float(last @ self._first(last, free))
        r = self._first(q - alpha @ falls, free) * scale
        return np.asarray(r + dtrsv(cross.T, curvature * alpha - falls @ r, lower=1) @ steps)

    def _first(self, q: Floats, free: Flags) -> Floats:
        """H₀⁻¹ q on the free coordinates, H₀ what was said before the first step, or else the identity."""
        if self._said is None or self._whole is None:
            return q
        if free.all():
            return self._whole @ q
        out = np.zeros_like(q)
        out[free] = _inverse(self._said[np.ix_(free, free)]) @ q[free]
        return out


def _curved(bent: Any, step: Any, fall: Any) -> Any:
    """Return whether sᵀy says more than rounding of the curvature, given sᵀs and yᵀy; neither may underflow."""
    return (bent > NO_BEND * np.sqrt(step * fall)) & (np.minimum(step, fall) > TINY)


def _inverse(curvature: Floats) -> Floats:
    """The inverse of a curvature, made positive: where it bends upwards, or hardly at all, a step goes up, and far."""
    with few_threads(EIGEN * len(curvature) ** 3):
        values, vectors = np.linalg.eigh(curvature)
    size = np.abs(values)
    return np.asarray((vectors / np.maximum(size, FLAT * max(size.max(initial=0.0), 1e-300))) @ vectors.T)
