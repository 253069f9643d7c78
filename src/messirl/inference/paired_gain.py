"""Paired comparison of two methods on the same held-out trajectories, with an interval of the difference.

    gain = Σ_i (L_i − L'_i) / Σ_i T_i

with L_i and L'_i the log-probabilities of trajectory i under both, and T_i its steps. The standard error is that of a
ratio of sums over independent trajectories. What both methods share, such as how hard a trajectory is to predict,
cancels in the difference. Trajectories of one individual need not be independent: each cluster is one term of these
sums.

A few units that agree by chance would make this error too small. The variance of a unit is therefore at least that of
±gain per step if the next unit contradicts the others with probability p = 1/(n + 2), which is Laplace's rule of
succession after n units that agree:

    Var_i ≥ 4 p (1 − p) (gain · T_i)²

With this bound, fewer than five units are never significant at 5 %. Identical units count as a single observation and
have no interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from messirl._formatting import format_nats, format_nats_interval
from messirl._types import Floats, Ints

CONFIDENCE = 0.95
MARGIN = 0.01  # nats per step: an effect inside ±MARGIN is negligible
SAME = 1e-9  # relative difference of the totals of units below which they are equal up to rounding
NOTHING = 1e-5  # nats per step: smaller differences may come from the tolerance of the fits


@dataclass(frozen=True)
class Gain:
    """The difference in prediction between two methods, in nats per step.

    Attributes
    ----------
    mean : float
        The difference of their scores.
    low, high : float
        The ends of its interval, 95 % by default; NaN where a single trajectory or an infinite score allows none.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return "not comparable, as both give some trajectories zero probability"
        mean = f"{format_nats(self.mean, signed=True)} nats per step"
        if not np.isfinite([self.low, self.high]).all():
            return mean
        return f"{mean} {format_nats_interval(self.low, self.high)}"

    @property
    def significant(self) -> bool:
        """True if the interval excludes zero and the difference exceeds the tolerance of fits."""
        return abs(self.mean) > NOTHING and (self.low > 0.0 or self.high < 0.0 or not np.isfinite(self.mean))

    @property
    def negligible(self) -> bool:
        """True if the interval lies within ±0.01 nats per step and includes zero."""
        return not self.significant and max(abs(self.low), abs(self.high)) <= MARGIN


@dataclass(frozen=True)
class Estimate:
    """A mean per step with its standard error and the degrees of freedom of this error.

    mean, error : in nats per step; the error is NaN where a single unit, or an infinite score, allows none
    freedom : of Student's t
    """

    mean: float
    error: float
    freedom: float

    @property
    def p(self) -> float:
        """The probability of a mean at least as far from zero if the true one is zero; NaN where none is known."""
        if not np.isfinite(self.error):
            return np.nan
        return float(2.0 * student.sf(abs(self.mean) / max(self.error, np.finfo(np.float64).tiny), self.freedom))

    def gain(self, confidence: float = CONFIDENCE) -> Gain:
        """Return the mean with its interval."""
        half = float(student.ppf(0.5 + confidence / 2, self.freedom)) * self.error if self.freedom > 0 else np.nan
        return Gain(self.mean, self.mean - half, self.mean + half)


def paired_gain(
    one: Floats, other: Floats, steps: Ints, confidence: float = CONFIDENCE, cluster: npt.ArrayLike | None = None
) -> Gain:
    """Return the gain of `one` over `other`, (n,) log-probabilities of the same trajectories with (n,) steps.

    cluster : (n,) labels; trajectories with the same label (of one animal) are one unit. None: each is a unit
    """
    with np.errstate(invalid="ignore"):  # both may give zero probability
        gaps = np.asarray(one - other)
    return mean_per_step(gaps, steps, cluster).gain(confidence)


def mean_per_step(totals: Floats, steps: Ints, cluster: npt.ArrayLike | None = None) -> Estimate:
    """Return Σ_i X_i / Σ_i T_i of totals X (n,) and steps T (n,), with errors by trajectory or by cluster."""
    sums, made = units(totals, steps, cluster)
    n, total = made.size, float(made.sum())
    mean = float(sums.sum()) / max(total, 1.0)
    if n < 2 or not np.isfinite(mean) or (abs(mean) > NOTHING and _identical(sums, made)):
        return Estimate(mean, np.nan, n - 1)
    rest, p = sums - mean * made, 1.0 / (n + 2)
    square = max(float(rest @ rest), 4.0 * p * (1.0 - p) * mean**2 * float(made @ made))
    return Estimate(mean, float(np.sqrt(n / (n - 1) * square)) / total, n - 1)


def _identical(sums: Floats, made: Floats) -> bool:
    """Return whether all units are equal up to rounding."""
    return bool(np.ptp(made) == 0.0 and np.ptp(sums) <= SAME * np.abs(sums).max())


def units(totals: Floats, steps: Ints, cluster: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    """Return totals and steps of every cluster, or trajectory, that makes a step."""
    some = np.asarray(steps) > 0
    own = np.asarray(totals, dtype=np.float64)[some]
    made = np.asarray(steps)[some].astype(np.float64)
    if cluster is None:
        return own, made
    names, label = np.unique(np.asarray(cluster)[some], return_inverse=True)
    sums, steps_of = np.zeros(names.size), np.zeros(names.size)
    np.add.at(sums, label, own)
    np.add.at(steps_of, label, made)
    return sums, steps_of
