"""Ratios of weights with their errors, such as the value of time in tolls, which do not depend on the scale of θ.

For r = a/b of two estimates with covariance Σ, the delta method linearises r around them:

    ∇r = (1/b, −a/b²),      Var r = ∇rᵀ Σ ∇r = (Σ_aa − 2 r Σ_ab + r² Σ_bb) / b²,      r ± z √Var r

Fieller's interval does not linearise: it contains every ρ for which a − ρ b is within z standard errors of zero,

    (a − ρ b)² ≤ z² (Σ_aa − 2 ρ Σ_ab + ρ² Σ_bb)

and need not be symmetric around r. It is finite only if b is more than z standard errors away from zero. z is the
quantile of Student's t with the smaller degrees of freedom of the two weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from messirl._checks import check_fraction
from messirl._text import did_you_mean
from messirl._types import Floats
from messirl.inference.standard_errors import EstimationTable

LEVEL = 0.95


@dataclass(frozen=True)
class WeightRatio:
    """The ratio of two weights and its errors.

    Attributes
    ----------
    numerator, denominator : str
        The features.
    value : float
        θ of the numerator over θ of the denominator.
    std_error, robust_std_error : float
        Standard errors by the delta method, from the Hessian's and from the sandwich's covariance; NaN where the data
        do not determine them.
    outer_std_error : float or None
        The same by the outer product of the scores of choices; None for a fit to counts.
    low, high : float
        The ends of the interval by the delta method and the sandwich.
    fieller_low, fieller_high : float
        The ends of Fieller's interval by the sandwich; infinite where the denominator may be zero.
    level : float
        In repeated samples, the share of such intervals that contain the true value.
    degrees_of_freedom : float
        Degrees of freedom of Student's t, for both intervals.
    """

    numerator: str
    denominator: str
    value: float
    std_error: float
    robust_std_error: float
    outer_std_error: float | None
    low: float
    high: float
    fieller_low: float
    fieller_high: float
    level: float = LEVEL
    degrees_of_freedom: float = np.inf

    @property
    def name(self) -> str:
        """The name of the ratio, `time/toll`."""
        return f"{self.numerator}/{self.denominator}"

    def row(self) -> dict[str, Any]:
        """Return the entry of result files."""
        return {"name": self.name, **{name: getattr(self, name) for name in self.__dataclass_fields__}}


def weight_ratio(table: EstimationTable, numerator: str, denominator: str, *, level: float = LEVEL) -> WeightRatio:
    """Return the ratio of two weights of an estimation table, by the delta method with their full covariance.

    level : of the intervals, between 0 and 1

    The delta method fails if the denominator is not clearly different from zero. The ratio is then far from linear in
    it and the interval too short on one side; below about three standard errors from zero it means little. Fieller's
    interval, returned as well, remains valid: it becomes longer, and infinite where the denominator may be zero at this
    level. Far from zero the two agree. Both need the two estimates to be about normal around the truth.
    """
    if not isinstance(table, EstimationTable):
        raise TypeError(f"table is of type {type(table).__name__}: give estimation_table(model, expert)")
    check_fraction("level", level)
    if numerator == denominator:
        raise ValueError(f"the ratio of {numerator!r} to itself is 1: name two features")
    one, other = (_place(table, name) for name in (numerator, denominator))
    a, b = float(table.estimate[one]), float(table.estimate[other])
    if b == 0.0:
        raise ValueError(f"the weight of {denominator!r} is 0: it cannot be the denominator; invert the ratio")
    pair, known = np.ix_([one, other], [one, other]), np.array([one, other])
    slope, freedom = np.array([1.0 / b, -a / b**2]), np.inf
    if table.degrees_of_freedom is not None:
        freedom = float(table.degrees_of_freedom[known].min())
    z = float(student.ppf(0.5 + level / 2, freedom))

    def error(covariance: Floats, errors: Floats) -> float:
        if not np.isfinite(errors[known]).all():
            return float("nan")
        return float(np.sqrt(max(slope @ covariance[pair] @ slope, 0.0)))

    robust = error(table.interval_covariance, table.interval_error)
    outer = None
    if table.outer_covariance is not None and table.outer_std_error is not None:
        outer = error(table.outer_covariance, table.outer_std_error)
    ends = (np.nan, np.nan) if np.isnan(robust) else _fieller(a, b, table.interval_covariance[pair], z)
    plain = error(table.covariance, table.std_error)
    low, high = a / b - z * robust, a / b + z * robust
    return WeightRatio(numerator, denominator, a / b, plain, robust, outer, low, high, *ends, level, freedom)


def _fieller(a: float, b: float, covariance: Floats, z: float) -> tuple[float, float]:
    """Return the ends of Fieller's interval; −∞ and ∞ where it is unbounded on either side."""
    (saa, sab), (_, sbb) = covariance.tolist()
    square = b**2 - z**2 * sbb
    if square <= 0.0:
        return -np.inf, np.inf
    middle = a * b - z**2 * sab
    half = np.sqrt(max(middle**2 - square * (a**2 - z**2 * saa), 0.0))
    return float((middle - half) / square), float((middle + half) / square)


def _place(table: EstimationTable, name: str) -> int:
    if name not in table.names:
        close = did_you_mean(str(name), table.names)
        raise ValueError(f"there is no feature {name!r}; there are {', '.join(table.names)}{close}")
    return table.names.index(name)
