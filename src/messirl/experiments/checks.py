"""Tests that decide claims: on differences paired over runs, each with a 95 % interval.

A check takes one domain's evidence and returns a finding, or None where the table cannot say. Where a moment is picked
out as the best, it is picked on one half of the runs and tested on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.experiments.curves import NOTHING, Curves, Interval, interval
from messirl.experiments.settings import SETTINGS, Setting

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Finding:
    """What a test found: verdict, the difference it rests on, and a word on it."""

    verdict: str
    evidence: Interval | None
    note: str = ""


class DomainCurves:
    """One domain's curves for one solver."""

    def __init__(self, curves: Curves, domain: str, solver: str) -> None:
        self.curves, self.domain, self.solver = curves, domain, solver
        self.setting: Setting = SETTINGS[domain]
        self._suffix = "/exact" if solver == "exact" else ""

    def has(self, figure: str, *methods: str) -> bool:
        """Whether the table has these methods in a figure."""
        return all((self.domain, figure, m + self._suffix) in self.curves for m in methods)

    def final(self, method: str) -> Floats:
        """Performance at the end of training, one number per run."""
        return self.curves[self.domain, "iterations", method + self._suffix].last

    def curve(self, figure: str, method: str) -> Any:
        """One method in one figure."""
        return self.curves[self.domain, figure, method + self._suffix]


def first_best(means: Floats) -> int:
    """The place of the largest number, the first of equals."""
    return int(np.argmax(means >= means.max() - NOTHING))


def sign(values: Floats, note: str = "") -> Finding:
    """Holds where the mean is above zero beyond doubt."""
    return Finding(*beyond_doubt(interval(values)), note)


def beyond_doubt(found: Interval) -> tuple[str, Interval]:
    """The verdict of an interval on "it is above zero"."""
    return HOLDS if found.low > 0 else FAILS if found.high < 0 else UNDECIDED, found


def better(a: str, b: str) -> Callable[[DomainCurves], Finding | None]:
    """At the end of training `a` performs better than `b`."""

    def check(e: DomainCurves) -> Finding | None:
        return sign(e.final(a) - e.final(b)) if e.has("iterations", a, b) else None

    return check


def at_least(a: str, b: str) -> Callable[[DomainCurves], Finding | None]:
    """At the end of training `a` performs no worse than `b`."""

    def check(e: DomainCurves) -> Finding | None:
        if not e.has("iterations", a, b):
            return None
        found = interval(e.final(a) - e.final(b))
        return Finding(FAILS if found.high < 0 else HOLDS if found.low >= 0 else UNDECIDED, found)

    return check


def soon(e: DomainCurves) -> Finding | None:
    """MESSIMAX is ahead of MaxEnt after three dozen iterations."""
    if e.solver == "exact" or not e.has("iterations", "MESSIMAX", "MaxEnt"):
        return None
    if 36.0 not in e.curve("iterations", "MESSIMAX").x:
        return None
    gain = e.curve("iterations", "MESSIMAX").at(36.0) - e.curve("iterations", "MaxEnt").at(36.0)
    return sign(gain, "after three dozen iterations")


def grows(e: DomainCurves) -> Finding | None:
    """‖θ‖∞ of MaxEnt is larger at the end than half-way."""
    if e.solver == "exact" or not e.has("iterations", "MaxEnt"):
        return None
    norm = e.curve("iterations", "MaxEnt").theta_norm
    return sign(norm[-1] - norm[len(norm) // 2], "‖θ‖∞ of MaxEnt at the end less that half-way")


def saturates(e: DomainCurves) -> Finding | None:
    """Most runs reach θ_max, and gain nothing after that."""
    if e.solver == "exact" or not e.has("iterations", "MaxEnt", "MESSIMAX", "MESSI-mu1", "MESSI-mu2"):
        return None
    share, later = [], []
    for method in ("MaxEnt", "MESSIMAX", "MESSI-mu1", "MESSI-mu2"):
        curve = e.curve("iterations", method)
        there = curve.theta_norm >= 0.999 * e.setting.theta_max
        share.append(there.any(axis=0).mean())
        for run in np.flatnonzero(there.any(axis=0)):
            later.append(curve.performance[-1, run] - curve.performance[int(np.argmax(there[:, run])), run])
    note = f"share of runs that reach θ_max: {np.mean(share):.0%}"
    if np.mean(share) < 0.5:
        return Finding(FAILS, None, note)
    found = interval(np.array(later))
    verdict = HOLDS if found.high <= 0 else FAILS if found.low > 0 else UNDECIDED
    return Finding(verdict, found, note + "; performance gained after that")


def slope(method: str, sign: float) -> Callable[[DomainCurves], Finding | None]:
    """Performance rises (sign = 1) or falls (−1) with the logarithm of the number of unlabelled trajectories."""

    def check(e: DomainCurves) -> Finding | None:
        if not e.has("unlabelled", method):
            return None
        curve = e.curve("unlabelled", method)
        some = curve.x >= 1
        if some.sum() < 2:
            return None
        t = np.log2(curve.x[some])
        slope = (t - t.mean()) @ curve.performance[some] / ((t - t.mean()) @ (t - t.mean()))
        found = interval(slope)
        verdict = HOLDS if sign * found.mean > 0 and found.low * found.high > 0 else UNDECIDED
        if verdict == UNDECIDED and found.low * found.high > 0:
            verdict = FAILS
        return Finding(verdict, found, "slope per doubling of u")

    return check


def enough(method: str) -> Callable[[DomainCurves], Finding | None]:
    """The method is ahead of MaxEnt at every share ν ≥ 0.15 of good trajectories."""

    def check(e: DomainCurves) -> Finding | None:
        if not e.has("nu", method, "MaxEnt"):
            return None
        curve, plain = e.curve("nu", method), e.curve("nu", "MaxEnt")
        points = [float(x) for x in curve.x if x >= 0.15]
        gains = [interval(curve.at(x) - plain.at(x)) for x in points]
        if not gains:
            return None
        fails = any(gain.high < 0 for gain in gains)
        worst = min(range(len(gains)), key=lambda k: gains[k].high if fails else gains[k].low)
        verdict = FAILS if fails else HOLDS if gains[worst].low > 0 else UNDECIDED
        above = ", ".join(f"{x:g}" for x, g in zip(points, gains, strict=True) if g.low > 0) or "no point"
        return Finding(
            verdict, gains[worst], f"worst at ν = {points[worst]:g}; beyond doubt above MaxEnt at ν = {above}"
        )

    return check


def same_at_one(e: DomainCurves) -> Finding | None:
    """With ν = 1 MESSI and MESSIMAX are the same training."""
    if not e.has("nu", "MESSI-mu1", "MESSIMAX") or 1.0 not in e.curve("nu", "MESSI-mu1").x:
        return None
    which = [m for m in ("MESSI-mu1", "MESSI-mu2") if e.has("nu", m)]
    gap = np.concatenate([e.curve("nu", m).at(1.0) - e.curve("nu", "MESSIMAX").at(1.0) for m in which])
    return Finding(HOLDS if np.abs(gap).max() <= NOTHING else FAILS, interval(gap), "difference at ν = 1")


def small_lambda(e: DomainCurves) -> Finding | None:
    """With the smallest λ0 MESSI is as good as MaxEnt, to a tenth of its best gain."""
    if not e.has("lambda", "MESSI-mu1", "MaxEnt"):
        return None
    curve, plain = e.curve("lambda", "MESSI-mu1"), e.curve("lambda", "MaxEnt")
    least = float(min(x for x in curve.x if x > 0))
    best = max(interval(curve.at(x) - plain.at(x)).mean for x in curve.x)
    found = interval(curve.at(least) - plain.at(least))
    margin = 0.1 * max(best, 0.0)
    verdict = HOLDS if -margin <= found.low and found.high <= margin else UNDECIDED
    if found.low > margin or found.high < -margin:
        verdict = FAILS
    return Finding(verdict, found, f"λ0 = {least:g} against MaxEnt; a tenth of the best gain is {margin:.2g}")


def large_lambda(method: str) -> Callable[[DomainCurves], Finding | None]:
    """The largest λ0 is worse than the best one, which is picked on other runs."""

    def check(e: DomainCurves) -> Finding | None:
        if not e.has("lambda", method):
            return None
        curve = e.curve("lambda", method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        best = first_best(curve.performance[:, :half].mean(axis=1))
        if best == len(curve.x) - 1:
            return Finding(FAILS, None, f"the largest λ0, {curve.x[-1]:g}, is the best (first half of the runs)")
        values = curve.performance[best, half:] - curve.performance[-1, half:]
        return sign(
            values, f"best λ0 = {curve.x[best]:g} (first half of the runs) less λ0 = {curve.x[-1]:g} (second half)"
        )

    return check


def em_worse(em: str, messi: str) -> Callable[[DomainCurves], Finding | None]:
    """EM is behind MESSI in most iterations and at the end, and ahead in hardly any."""

    def check(e: DomainCurves) -> Finding | None:
        if e.solver == "exact" or not e.has("em", em, messi):
            return None
        gap = e.curve("em", messi).performance - e.curve("em", em).performance
        each = [interval(row) for row in gap[1:]]
        better, worse = sum(i.high < 0 for i in each), sum(i.low > 0 for i in each)
        found = each[-1]
        few = better <= 0.1 * len(each)
        holds = few and found.low > 0 and worse > 0.5 * len(each)
        verdict = HOLDS if holds else FAILS if not few or found.high < 0 else UNDECIDED
        note = f"of {len(each)} iterations EM is beyond doubt worse in {worse}, better in {better}"
        return Finding(verdict, found, note)

    return check


def monotone(method: str) -> Callable[[DomainCurves], Finding | None]:
    """No later moment is below an earlier one: the pair with the largest mean fall is picked, then tested."""

    def check(e: DomainCurves) -> Finding | None:
        if e.solver == "exact" or not e.has("iterations", method):
            return None
        curve = e.curve("iterations", method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        mean = curve.performance[:, :half].mean(axis=1)
        fall = np.maximum.accumulate(mean) - mean
        end = int(np.argmax(fall))
        if fall[end] <= NOTHING:
            return Finding(HOLDS, None, "the mean of the first half of the runs never falls")
        begin = int(np.argmax(mean[: end + 1]))
        found = interval(curve.performance[begin, half:] - curve.performance[end, half:])
        note = f"largest fall, from iteration {int(curve.x[begin])} to {int(curve.x[end])} (first half of the runs)"
        return Finding(FAILS if found.low > 0 else HOLDS if found.high <= 0 else UNDECIDED, found, note)

    return check


def peak(figure: str, method: str) -> Callable[[DomainCurves], Finding | None]:
    """It ends below its best moment."""

    def check(e: DomainCurves) -> Finding | None:
        if e.solver == "exact" or not e.has(figure, method):
            return None
        curve = e.curve(figure, method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        best = first_best(curve.performance[:, :half].mean(axis=1))
        fall = interval(curve.performance[best, half:] - curve.performance[-1, half:])
        note = f"best after {int(curve.x[best])} iterations (first half of the runs); fall until the end (second half)"
        return Finding(*beyond_doubt(fall), note)

    return check


def limited(e: DomainCurves) -> Finding | None:
    """What MESSI loses on μ3 is less than half of what MESSIMAX gains."""
    if not e.has("iterations", "MESSI-mu3", "MESSIMAX", "MaxEnt"):
        return None
    loss = e.final("MaxEnt") - e.final("MESSI-mu3")
    gain = e.final("MESSIMAX") - e.final("MaxEnt")
    return sign(0.5 * gain - loss, "half of MESSIMAX's gain less μ3's loss")


def larger_share(here: DomainCurves, there: DomainCurves) -> Finding | None:
    """MESSI's gain as a share of MaxEnt's loss is larger here than there; runs of two domains are not paired."""
    if not all(e.has("iterations", "MESSI-mu1", "MaxEnt") for e in (here, there)):
        return None
    first, second = (
        interval((e.final("MESSI-mu1") - e.final("MaxEnt")) / np.abs(e.final("MaxEnt").mean())) for e in (here, there)
    )
    half = float(np.hypot(first.high - first.mean, second.high - second.mean))
    gap = first.mean - second.mean
    return Finding(*beyond_doubt(Interval(gap, gap - half, gap + half, min(first.n, second.n))))
