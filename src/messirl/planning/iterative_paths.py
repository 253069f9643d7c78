"""Iterative solver of the path systems, where a factorisation would fill in: graphs with long-range links.

The systems of recursive_logit.py and goal_conditioned.py are z = b + M z with M ≥ 0, one column each, where M lacks the
row of the column's own goal. Sweeps from below find the magnitude of z. BiCGSTAB then solves the system scaled by it, P
= z⁻¹ M z, which is the chain of the policy, a block of columns at a time. Krylov methods find the slowest mode first,
so that a spectral radius close to one costs little where the graph mixes well.

Every solution has a certificate. A vector d ≥ 0 with (I − P) d ≥ ½ bounds the expected number of steps by 2 d, so that

    |log z − log ẑ| ≤ 2 d · max_s |r(s)| / z(s) to first order,     Σ_s |ρ − ρ̂| ≤ 2 dᵀ |r|,

where r is the residual of the values, or of the visits ρ = m + Pᵀ ρ. A vector w ≥ 0, w ≠ 0, with M w ≥ w proves
instead that the spectral radius is at least one, so no finite z exists. Where neither is found soon, `NotCertified` is
raised.

Reference: Berman, Plemmons: Nonnegative Matrices in the Mathematical Sciences, chapters 2 (spectral radius) and 6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from messirl._types import Flags, Floats, Ints
from messirl.planning.kernels.multi_goal import onwards, solve_columns, sweep, times

LEAST_WORK = 1e8  # multiplications below which a factorisation takes milliseconds
ADVANTAGE = 10.0  # cost of a multiplication in a sparse sweep over that in a factorisation
SWEEPS = 50  # sweeps of a fast iteration, besides those needed to cross the graph
SETTLED = 0.3  # relative growth per sweep below which a magnitude serves as a scale
UNSETTLED = 16  # sweeps, a power of two, after which divergence is tested
MAX_SWEEPS = 200
POWERS = 6
MAX_KRYLOV = 150
PASSES = 6
FLUSHED = 1e-290  # smaller values are set to zero; goal_conditioned.py solves such goals in another way
TARGET, TRUSTED = 1e-13, 1e-11  # the error bound aimed for, and the largest accepted
ROUNDING, ROUNDED = 2e-14, 1e-9  # a residual that is rounding, and the error bound then accepted after many steps


Rows = tuple[Ints, Any, Floats]  # a sparse matrix by rows (CSR): row pointer, columns, entries


class NotCertified(Exception):
    """The iteration found no solution with a certificate."""


def fills_in(pattern: sp.csr_array) -> bool:
    """Return whether factors of a matrix with this pattern (n, n) would cost more than many sweeps over it.

    The mean width w of its envelope in reverse Cuthill-McKee order is about the size of a graph separator. Eliminating
    a separator takes w³ multiplications, a sweep one per entry, and there are about n / w levels across the graph.
    """
    n = pattern.shape[0]
    if pattern.nnz == 0 or float(n) ** 3 < LEAST_WORK:
        return False
    order = reverse_cuthill_mckee(sp.csr_matrix(pattern), symmetric_mode=False)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    rows, columns = np.repeat(place, np.diff(pattern.indptr)), place[pattern.indices]
    first = np.arange(n)
    np.minimum.at(first, np.maximum(rows, columns), np.minimum(rows, columns))
    width = max(float(np.mean(np.arange(n) - first)), 1.0)
    return bool(width**3 > max(LEAST_WORK, ADVANTAGE * (n / width + SWEEPS) * pattern.nnz))


class IterativeSolution:
    """Solution z (n, k) of z = right + M z, each column without the row `held` of M, and the visits that follow.

    matrix, transposed : M (n, n), no entry negative, and Mᵀ, both `as_csr`
    right, begin : (n, k) right-hand sides, and starting values that are at most z
    held : (k,) the row that each column lacks, or None
    """

    def __init__(self, matrix: Rows, transposed: Rows, right: Floats, begin: Floats, held: Ints | None = None) -> None:
        self.matrix, self.transposed = matrix, transposed
        self.held = np.zeros(0, dtype=np.int64) if held is None else held
        self.diverges: Flags = np.zeros(right.shape[1], dtype=bool)  # (k,) provably without a finite z
        self.z = self._values(right, begin)
        self._steps: Floats = np.zeros_like(right)  # d; 2 d bounds the expected number of steps
        if not self.diverges.all():
            self._certify(right)

    def visits(self, source: Floats) -> Floats:
        """Return ρ (n, k) with ρ = source + Pᵀ ρ, for a source of any sign."""
        size, mass = np.abs(source), np.abs(source)
        for _ in range(SWEEPS):
            mass = self._onwards(mass)
            size += mass
            if (mass.sum(axis=0) <= SETTLED * np.abs(source).sum(axis=0)).all():
                break
        mean = size.mean(axis=0)
        unit = size + np.where(mean > 0, 1e-3 * mean, 1.0)  # a column may have no source
        found, asked = np.zeros_like(source), (self._steps * np.abs(source)).sum(axis=0)

        back = self._cleared(np.divide(unit, self.z, out=np.zeros_like(unit), where=self.z > 0))
        enough = 0.25 * TARGET * asked / np.maximum((self._steps * unit).sum(axis=0), np.finfo(float).tiny)

        error, before, stalled = np.inf, np.inf, 0
        for _ in range(PASSES):
            residual = source + self._onwards(found) - found
            bounds = 2.0 * (self._steps * np.abs(residual)).sum(axis=0)
            error = float(np.max(bounds / np.where(asked > 0, asked, 1.0), initial=0.0))
            # From a single state the recurrence may break down at once; restarted from the residual, it goes on.
            stalled = stalled + 1 if error > 0.5 * before else 0
            if not error > TARGET or stalled == 2:
                break
            before = error
            found = found + unit * _solved(self.transposed, back, self.z / unit, residual / unit, enough=enough)
        if not error <= TRUSTED:
            raise NotCertified
        return found

    def _values(self, right: Floats, begin: Floats) -> Floats:
        z = np.array(begin)
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(1, MAX_SWEEPS):
                before = z
                z, settled, top = sweep(*self.matrix, self.held, right, before, FLUSHED, SETTLED)
                if not np.isfinite(top).all():
                    raise NotCertified
                if number >= UNSETTLED and number & (number - 1) == 0:  # at powers of two
                    self.diverges |= ~settled & self._grows(np.maximum(z - before, 0.0))
                if (settled | self.diverges).all():
                    break
        worst = np.inf
        for _ in range(PASSES):
            unit = np.where(z > 0, z, 1.0)
            residual = np.where(self.diverges, 0.0, (self._ahead(z) + right - z) / unit)
            worst, last = float(np.abs(residual).max(initial=0.0)), worst
            if worst <= 0.1 * TARGET or not worst < 0.5 * last:
                break
            change = 1.0 + _solved(self.matrix, z, self._cleared(1.0 / unit), residual, enough=0.05 * TARGET)
            negative = (z * change).min(axis=0) < 0
            if negative.any():
                # Above a spectral radius of one the solution turns negative, and its magnitude proves divergence.
                self.diverges |= negative & self._grows(np.maximum(-z * change, 0.0))
                if (negative & ~self.diverges).any():
                    raise NotCertified
            z = z * np.where(self.diverges, 1.0, change)
        return z

    def _certify(self, right: Floats) -> None:
        """Bound the error of log z by its residual and the expected number of steps; raise Slow if that fails."""
        unit, there = np.where(self.z > 0, self.z, 1.0), (self.z > 0).astype(np.float64)
        self._cleared(there)[:, self.diverges] = 0.0

        self._steps = _solved(self.matrix, self.z, self._cleared(1.0 / unit), there, least=0.25)
        residual = np.abs(self._ahead(self.z) + right - self.z) / unit
        residual[:, self.diverges] = 0.0
        sure = self._steps.min() >= 0.0 and bool(
            (self._steps - self._ahead(self.z * self._steps) / unit >= 0.5 * there).all()
        )
        left = float(residual.max())
        error = 2.0 * float(self._steps.max()) * left
        if not (sure and (error <= TRUSTED or (left <= ROUNDING and error <= ROUNDED))):
            raise NotCertified

    def _ahead(self, z: Floats) -> Floats:
        """Return M z, each column without its row."""
        return self._cleared(times(*self.matrix, z))

    def _onwards(self, mass: Floats) -> Floats:
        """Return Pᵀ mass."""
        return np.asarray(onwards(*self.transposed, self.held, self.z, mass))

    def _cleared(self, table: Floats) -> Floats:
        """Set a table (n, k) to zero in the row that each column lacks, and return it."""
        table[self.held, np.arange(self.held.size)] = 0.0
        return table

    def _grows(self, w: Floats) -> Flags:
        """Return the columns, (k,), where M w ≥ w ≠ 0 to rounding, for this w or after a few power iterations.

        No digits cancel here, so the result holds for any w.
        """
        found = np.zeros(w.shape[1], dtype=bool)
        for _ in range(POWERS):
            ahead = self._ahead(w)
            found |= (ahead >= w * (1.0 - 1e-12)).all(axis=0) & (w > 0).any(axis=0)
            w = ahead / np.maximum(ahead.max(axis=0), np.finfo(float).tiny)
        return found


def as_csr(matrix: sp.csr_array) -> Rows:
    """Return a sparse matrix as the kernels take it; unsigned indices spare Numba the check for negative ones."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data


def _solved(
    rows: Rows, before: Floats, after: Floats, right: Floats, least: float = 1e-13, enough: Floats | float = 0.0
) -> Floats:
    """Return x with x − after · (M (before · x)) = right, each column to `least` of its right-hand side or to `enough`.

    Convergence is left to the caller to check.
    """
    wanted = np.maximum(least * np.abs(right).max(axis=0), enough)
    return np.asarray(solve_columns(*rows, before, after, right, wanted, MAX_KRYLOV))
