"""Memory of L-BFGS: the curvature of a function along the steps of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsv

from messirl._blas import few_threads
from messirl._types import Flags, Floats

MEMORY = 100  # secants kept; with as many as there are weights, the last steps are nearly Newton's
MEMORY_SIZE = 4_000_000  # numbers that the secants may occupy
EIGEN = 10.0  # cost of an eigendecomposition over that of a matrix product
FLAT = 1e-12  # lower bound on curvatures, relative to the largest
NO_BEND = 1e-14  # sᵀy / (‖s‖ ‖y‖) below which a step shows no curvature
TINY = 1e-290  # squared lengths below this underflow
FORESEEN = 0.9  # largest relative error of the predicted step


class Secants:
    """Secant pairs: a step s and the decrease y of the gradient along it.

    curvature : (d, d) the initial H₀, or None for the identity
    """

    def __init__(self, d: int, curvature: Floats | None = None) -> None:
        most = max(20, min(MEMORY, MEMORY_SIZE // max(d, 1)))
        self._steps, self._falls = np.empty((most, d)), np.empty((most, d))
        self._cross = np.empty((most, most))  # s_iᵀ y_j for j ≥ i, the part that is used
        self.forget(curvature)

    @property
    def capacity(self) -> int:
        """The maximum number of secants."""
        return len(self._steps)

    @property
    def known(self) -> bool:
        """True if there is any information on the curvature."""
        return self.n > 0 or self.uses_given_curvature

    @property
    def uses_given_curvature(self) -> bool:
        """True if a given initial curvature is still in use."""
        return self._initial is not None

    def forget(self, curvature: Floats | None = None) -> None:
        """Reset the memory, with a new initial curvature or none."""
        self.n, self._initial = 0, curvature
        self._whole = None if curvature is None else _inverse(curvature)

    def predicts_step(self, step: Floats, fall: Floats) -> bool:
        """Return whether H predicted the step, H⁻¹ y ≈ s; if H is far too large, it predicts too small steps."""
        gap = step - self.solve(fall, step != 0.0)
        return self.known and bool(gap @ gap <= FORESEEN**2 * (step @ step))

    def add(self, step: Floats, fall: Floats) -> None:
        """Add a step and the decrease of the gradient along it, unless the curvature along it is zero or negative."""
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
        """Replace all pairs by these steps and gradient decreases (n, d), in their order."""
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
        """Return H⁻¹ g on the free coordinates by the two-loop recursion (Nocedal & Wright, Alg. 7.4).

        Each loop is a triangular system, with the pairs s and y as the rows of S and Y, R the upper triangle of S Yᵀ
        and D its diagonal (Byrd, Nocedal & Schnabel 1994):

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
        # Scale H₀ by the last step.
        scale = float(curvature[-1]) / float(last @ self._first(last, free))
        r = self._first(q - alpha @ falls, free) * scale
        return np.asarray(r + dtrsv(cross.T, curvature * alpha - falls @ r, lower=1) @ steps)

    def _first(self, q: Floats, free: Flags) -> Floats:
        """Return H₀⁻¹ q on the free coordinates, H₀ the initial curvature or the identity."""
        if self._initial is None or self._whole is None:
            return q
        if free.all():
            return self._whole @ q
        out = np.zeros_like(q)
        out[free] = _inverse(self._initial[np.ix_(free, free)]) @ q[free]
        return out


def _curved(bent: Any, step: Any, fall: Any) -> Any:
    """Return whether the curvature sᵀy exceeds rounding, given sᵀs and yᵀy; neither may underflow."""
    return (bent > NO_BEND * np.sqrt(step * fall)) & (np.minimum(step, fall) > TINY)


def _inverse(curvature: Floats) -> Floats:
    """Return the inverse of a curvature with eigenvalues made positive, so that steps ascend even where it is not."""
    with few_threads(EIGEN * len(curvature) ** 3):
        values, vectors = np.linalg.eigh(curvature)
    size = np.abs(values)
    return np.asarray((vectors / np.maximum(size, FLAT * max(size.max(initial=0.0), 1e-300))) @ vectors.T)
