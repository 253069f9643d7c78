"""Two methods on the same held-out trajectories: how much better one predicts them, and how sure that is.

    gain = Σ_i (L_i − L'_i) / Σ_i T_i

with L_i and L'_i the log-probabilities of trajectory i under both, and T_i its steps. The standard error is that of a
ratio of sums over independent trajectories; what is common to both methods, such as that a trajectory is hard to
predict, cancels in the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from messirl._numbers import nats
from messirl._types import Floats, Ints

CONFIDENCE = 0.95
NOTHING = 1e-5  # nats per step: fits are no more exact than their tolerance, and smaller differences may be theirs


@dataclass(frozen=True)
class Gain:
    """How much better one method predicts than another, in nats per step.

    Attributes
    ----------
    mean : float
        The difference of their scores.
    low, high : float
        The ends of its interval, of 95 % unless asked otherwise; NaN where a single trajectory, or an infinite score,
        allows none.
    """

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        mean = f"{nats(self.mean, signed=True)} nats a step"
        if not np.isfinite([self.low, self.high]).all():
            return mean
        return f"{mean} [{nats(self.low, signed=True)}, {nats(self.high, signed=True)}]"

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero, and the difference is more than what fits leave open."""
        return abs(self.mean) > NOTHING and (self.low > 0.0 or self.high < 0.0 or not np.isfinite(self.mean))


def paired_gain(one: Floats, other: Floats, steps: Ints, confidence: float = CONFIDENCE) -> Gain:
    """The gain of `one` over `other`, both (n,) log-probabilities of the same trajectories of so many steps (n,)."""
    some = steps > 0
    with np.errstate(invalid="ignore"):  # both may rule out what was seen
        gaps, steps = np.asarray(one - other)[some], steps[some]
    n, total = steps.size, float(steps.sum())
    mean = float(gaps.sum()) / max(total, 1.0)
    if n < 2 or not np.isfinite(mean):
        return Gain(mean, np.nan, np.nan)
    rest = gaps - mean * steps
    half = float(student.ppf(0.5 + confidence / 2, n - 1) * np.sqrt(n / (n - 1) * (rest @ rest))) / total
    return Gain(mean, mean - half, mean + half)
