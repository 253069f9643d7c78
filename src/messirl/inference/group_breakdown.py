"""Means per step by group of trajectories, with intervals and the difference of each group from all others.

    R_g = Σ_{i∈g} X_i / Σ_{i∈g} T_i

X_i is the total of trajectory i (such as its log-probability) and T_i its steps. A difference R_g − R_h between groups
without a common trajectory or cluster has the sum of their variances and Welch's degrees of freedom. If individuals
occur in both groups, the contributions of each individual are summed first. Quantities measured on the same held-out
trajectories for every group are compared in pairs instead (`paired_groups`).

Several groups are several tests: p-values are corrected by Holm's method over all groups. A difference is *clear* if
its corrected p is below 0.05. Its interval, which is not corrected, then excludes zero too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._text import join_names
from messirl._types import Floats, Ints
from messirl.inference.paired_gain import CONFIDENCE, Estimate, Gain, mean_per_step

ALPHA = 1.0 - CONFIDENCE
EFFECTS = ("use", "gain")  # measures for which zero means no effect
FROM_ZERO = (*EFFECTS, "likeness")  # measures that are tested against zero; a score is compared with the other groups
NAMED = 4  # groups that a sentence names


@dataclass(frozen=True)
class Group:
    """One group of trajectories.

    Attributes
    ----------
    name : str
        The value of the column that its trajectories share.
    trajectories, steps : int
        Their numbers.
    value : Gain
        Its mean, with the 95 % interval.
    difference : Gain or None
        The mean minus that of the other groups, with its 95 % interval; None without other groups.
    p : float
        The p-value of the difference, corrected for several groups; NaN where it is not known.
    value_p : float
        The p-value of a value of zero, corrected for several groups; NaN where this is not tested.
    """

    name: str
    trajectories: int
    steps: int
    value: Gain
    difference: Gain | None = None
    p: float = np.nan
    value_p: float = np.nan

    @property
    def apart(self) -> bool:
        """True if the group differs significantly from the other groups."""
        return self.difference is not None and self.difference.significant and self.p < ALPHA

    @property
    def sign(self) -> int:
        """1 if the value is significantly above zero, −1 if significantly below, else 0."""
        return int(np.sign(self.value.mean)) if self.value.significant and self.value_p < ALPHA else 0

    @property
    def side(self) -> int:
        """1 if the mean is significantly above that of the other groups, −1 if significantly below, else 0."""
        return int(np.sign(self.difference.mean)) if self.apart and self.difference is not None else 0


@dataclass(frozen=True)
class Breakdown:
    """A quantity by the values of one column.

    Attributes
    ----------
    measure : {"score", "gain", "likeness", "use"}
        The quantity.
    column : str
        The column that makes the groups.
    title : str
        The quantity in a few words.
    told : str
        Its definition and what was compared, in sentences.
    groups : list of Group
        The groups, ordered by name or number.
    whole : Group or None
        All groups together, where this is known.
    """

    measure: str
    column: str
    title: str
    told: str
    groups: list[Group]
    whole: Group | None = None

    def significant(self, group: Group) -> int:
        """Return 1 if a group is significantly above what its measure is tested against, −1 if below, else 0."""
        return group.sign if self.measure in FROM_ZERO else group.side

    @property
    def sentence(self) -> str:
        """The significant findings in one sentence."""
        parts = self._effects() if self.measure in EFFECTS else self._differences()
        return f"{self.title} by {self.column}: {'; '.join(parts)}"

    def _effects(self) -> list[str]:
        out, use = [], self.measure == "use"
        for sign, verb in ((1, "help"), (-1, "hurt"), (0, "make")):
            some = [group for group in self.groups if group.sign == sign]
            if some:
                does = (verb if len(some) > 1 else f"{verb}s") + ("" if sign else " no clear difference")
                gain = {1: "positive", -1: "negative", 0: "no clear difference"}[sign]
                shown = _some([f"{group.name} ({group.value})" for group in some])
                out.append(f"{shown} {does}" if use else f"{gain} for {shown}")
        return out

    def _differences(self) -> list[str]:
        if len(self.groups) < 2:
            return ["there is only one group, so nothing to compare it with"]
        out = []
        for sign, word in ((1, "above"), (-1, "below")):
            some = [group for group in self.groups if group.side == sign]
            if some:
                shown = _some([f"{group.name} ({group.difference})" for group in some])
                out.append(f"{shown} {'is' if len(some) == 1 else 'are'} clearly {word} the other groups")
        return out or [f"no clear difference between the {len(self.groups)} groups"]

    def summary(self) -> dict[str, Any]:
        """Return the entry of result files."""
        return {**asdict(self), "sentence": self.sentence}


def _some(names: list[str]) -> str:
    """Return the first names in words, and how many more there are."""
    return join_names(names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"])


def by_group(
    totals: Floats,
    steps: Ints,
    labels: Sequence[str],
    order: Sequence[str] | None = None,
    cluster: npt.ArrayLike | None = None,
    *,
    zero: bool = False,
) -> list[Group]:
    """Return the mean per step of every group, and its difference from all other groups.

    totals, steps : (n,) of every trajectory; those that make no step are not counted
    labels : (n,) the group of each trajectory
    order : the groups in the order wanted; those without a trajectory are left out. None: sorted
    cluster : (n,) labels; trajectories with the same label (of one animal) are one unit. None: each is a unit
    zero : whether to test each mean against zero as well
    """
    totals, steps = np.asarray(totals, dtype=np.float64), np.asarray(steps)
    label, who = np.asarray(labels), None if cluster is None else np.asarray(cluster)
    names = [name for name in (sorted(set(labels)) if order is None else order) if (label == name).any()]
    found, apart = list[Group](), list[Estimate]()
    values = []
    for name in names:
        own = (label == name) & (steps > 0)
        values.append(mean_per_step(totals[own], steps[own], None if who is None else who[own]))
        found.append(Group(name, int(own.sum()), int(steps[own].sum()), values[-1].gain()))
        if len(names) > 1:
            apart.append(_difference(totals, steps, own, ~own & (steps > 0), who))
    return _tested(found, values if zero else None, apart)


def paired_groups(
    names: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    logs: Floats,
    base: Floats,
    steps: Ints,
    cluster: npt.ArrayLike | None = None,
) -> list[Group]:
    """Return what each of K groups gains over a base, measured on the same n held-out trajectories.

    sizes : numbers of trajectories and steps of each group
    logs, base : (K, n) and (n,) log-probabilities of the held-out trajectories
    steps, cluster : (n,) as for `by_group`

    The difference of a group is from the mean of the other groups, paired by held-out trajectory.
    """
    many = len(names)
    with np.errstate(invalid="ignore"):  # both may give zero probability
        values = [mean_per_step(own - base, steps, cluster) for own in logs]
        rest = [np.delete(logs, k, axis=0).mean(axis=0) for k in range(many)] if many > 1 else []
        apart = [mean_per_step(own - others, steps, cluster) for own, others in zip(logs, rest, strict=False)]
    found = [Group(name, *size, value.gain()) for name, size, value in zip(names, sizes, values, strict=True)]
    return _tested(found, values, apart)


def holm(p: npt.ArrayLike) -> Floats:
    """Return p-values corrected by Holm's method: of m tests the smallest is multiplied by m, the next by m − 1, ….

    NaN stays NaN and does not count as a test.
    """
    given = np.asarray(p, dtype=np.float64)
    out, known = np.full(given.shape, np.nan), np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    times = np.arange(order.size, 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(times * given[order]), 1.0) if order.size else 0.0
    return out


def _tested(found: list[Group], values: list[Estimate] | None, apart: list[Estimate]) -> list[Group]:
    """Return the groups with their differences and p-values corrected for the number of groups."""
    if values is not None:
        corrected = holm([value.p for value in values])
        found = [replace(group, value_p=float(p)) for group, p in zip(found, corrected, strict=True)]
    if not apart:
        return found
    several = [one.p for one in apart]
    corrected = np.array(several) if len(found) == 2 else holm(several)  # two groups have one difference
    told = zip(found, apart, corrected, strict=True)
    return [replace(group, difference=one.gain(), p=float(p)) for group, one, p in told]


def _difference(totals: Floats, steps: Ints, one: Any, other: Any, cluster: Any) -> Estimate:
    """Return the mean of `one` minus the mean of the `other` trajectories."""
    first, second = (
        mean_per_step(totals[some], steps[some], None if cluster is None else cluster[some]) for some in (one, other)
    )
    with np.errstate(invalid="ignore"):
        mean = first.mean - second.mean
    if cluster is None or not np.intersect1d(cluster[one], cluster[other]).size:
        variances = np.array([first.error**2, second.error**2])
        freedoms = np.array([first.freedom, second.freedom])
        if not np.isfinite([mean, *variances]).all():
            return Estimate(mean, np.nan, np.nan)
        spread = float((variances**2 / freedoms).sum())
        freedom = float(variances.sum()) ** 2 / spread if spread > 0 else float(freedoms.sum())
        return Estimate(mean, float(np.sqrt(variances.sum())), freedom)
    rest = np.zeros(totals.size)
    for some, part, sign in ((one, first, 1.0), (other, second, -1.0)):
        rest[some] = sign * (totals[some] - part.mean * steps[some]) / steps[some].sum()
    _, label = np.unique(cluster[one | other], return_inverse=True)
    sums = np.bincount(label, rest[one | other])
    if sums.size < 2 or not np.isfinite(mean):
        return Estimate(mean, np.nan, np.nan)
    return Estimate(mean, float(np.sqrt(sums.size / (sums.size - 1) * (sums @ sums))), sums.size - 1)
