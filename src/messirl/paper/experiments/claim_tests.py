"""Tests of claims: differences paired over runs, each with a 95 % interval.

A check takes the curves of the methods in a claim and returns a finding, or None if the curves cannot decide it.
If a test picks the best point of a curve, it picks it on one half of the runs and tests it on the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Floats
from messirl.paper.experiments.curves import NOTHING, Curve, Interval, interval
from messirl.paper.experiments.paper_settings import Setting

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
SOON = 36.0  # iterations: "three dozen" in the paper
ENOUGH = 0.15  # share ν of good trajectories


@dataclass(frozen=True)
class Finding:
    """Result of a test: the verdict, the difference it is based on, and a short note."""

    verdict: str
    evidence: Interval | None
    note: str = ""


def above_zero(values: Floats | Interval, note: str = "", *, touching: bool = False) -> Finding:
    """Test that the 95 % interval of the mean is above zero or, with `touching`, not below it."""
    found = values if isinstance(values, Interval) else interval(values)
    holds = found.low >= 0 if touching else found.low > 0
    return Finding(HOLDS if holds and found.high >= 0 else FAILS if found.high < 0 else UNDECIDED, found, note)


def first_best(means: Floats) -> int:
    """Return the index of the largest number, the first one of ties."""
    return int(np.argmax(means >= means.max() - NOTHING))


def _halves(curve: Curve) -> tuple[Floats, Floats] | None:
    """Return mean performance (points,) of the first half of the runs, and performance (points, runs) of the second.

    None for too few runs, and for a curve with only one point.
    """
    points, half = curve.performance.shape[0], curve.performance.shape[1] // 2
    return None if half < 2 or points < 2 else (curve.performance[:, :half].mean(axis=1), curve.performance[:, half:])


def better(a: Curve, b: Curve) -> Finding:
    """Test that `a` performs better than `b` at the end of training."""
    return above_zero(a.last - b.last)


def at_least(a: Curve, b: Curve) -> Finding:
    """Test that `a` performs no worse than `b` at the end of training."""
    return above_zero(a.last - b.last, touching=True)


def limited(bad: Curve, best: Curve, plain: Curve) -> Finding:
    """Test that the loss from bad trajectories is less than half of the gain from the best."""
    gain, loss = best.last - plain.last, plain.last - bad.last
    return above_zero(0.5 * gain - loss, "half of MESSIMAX's gain less μ3's loss")


def soon(a: Curve, b: Curve) -> Finding | None:
    """Test that `a` is better than `b` after three dozen iterations."""
    return above_zero(a.at(SOON) - b.at(SOON), "after three dozen iterations") if SOON in a.x else None


def grows(curve: Curve) -> Finding:
    """Test that ‖θ‖∞ is larger at the end than half-way."""
    norm = curve.theta_norm
    return above_zero(norm[-1] - norm[len(norm) // 2], "‖θ‖∞ of MaxEnt at the end less that half-way")


def saturates(*curves: Curve) -> Finding:
    """Test that most runs reach θ_max and gain nothing after that."""
    share, later = [], []
    for curve in curves:
        there = curve.theta_norm >= 0.999 * Setting.theta_max
        share.append(there.any(axis=0).mean())
        for run in np.flatnonzero(there.any(axis=0)):
            later.append(curve.performance[-1, run] - curve.performance[int(np.argmax(there[:, run])), run])
    note = f"share of runs that reach θ_max: {np.mean(share):.0%}"
    if np.mean(share) < 0.5:
        return Finding(FAILS, None, note)
    found = interval(np.array(later))
    verdict = HOLDS if found.high <= 0 else FAILS if found.low > 0 else UNDECIDED
    return Finding(verdict, found, note + "; performance gained after that")


def rises(curve: Curve, sign: float = 1.0) -> Finding | None:
    """Test that performance rises with the logarithm of the number of unlabelled trajectories."""
    some = curve.x >= 1
    if some.sum() < 2:
        return None
    t = np.log2(curve.x[some])
    found = interval((t - t.mean()) @ curve.performance[some] / ((t - t.mean()) @ (t - t.mean())))
    certain, right = found.low * found.high > 0, sign * found.mean > 0
    return Finding(UNDECIDED if not certain else HOLDS if right else FAILS, found, "slope per doubling of u")


def falls(curve: Curve) -> Finding | None:
    """Test that performance falls with the logarithm of the number of unlabelled trajectories."""
    return rises(curve, -1.0)


def enough(curve: Curve, plain: Curve) -> Finding | None:
    """Test that the method is better than MaxEnt at every share ν ≥ 0.15 of good trajectories."""
    points = [float(x) for x in curve.x if x >= ENOUGH]
    gains = [interval(curve.at(x) - plain.at(x)) for x in points]
    if not gains:
        return None
    fails = any(gain.high < 0 for gain in gains)
    worst = min(range(len(gains)), key=lambda k: gains[k].high if fails else gains[k].low)
    verdict = FAILS if fails else HOLDS if gains[worst].low > 0 else UNDECIDED
    above = ", ".join(f"{x:g}" for x, g in zip(points, gains, strict=True) if g.low > 0) or "no point"
    return Finding(verdict, gains[worst], f"worst at ν = {points[worst]:g}; significantly above MaxEnt at ν = {above}")


def same_at_one(best: Curve, *others: Curve) -> Finding | None:
    """Test that with ν = 1 the methods are the same training as MESSIMAX."""
    if 1.0 not in others[0].x:
        return None
    gap = np.concatenate([curve.at(1.0) - best.at(1.0) for curve in others])
    return Finding(HOLDS if np.abs(gap).max() <= NOTHING else FAILS, interval(gap), "difference at ν = 1")


def small_lambda(curve: Curve, plain: Curve) -> Finding:
    """Test that MESSI with the smallest λ0 equals MaxEnt up to a tenth of its best gain."""
    least = float(min(x for x in curve.x if x > 0))
    best = max(interval(curve.at(x) - plain.at(x)).mean for x in curve.x)
    found = interval(curve.at(least) - plain.at(least))
    margin = 0.1 * max(best, 0.0)
    verdict = HOLDS if -margin <= found.low and found.high <= margin else UNDECIDED
    if found.low > margin or found.high < -margin:
        verdict = FAILS
    return Finding(verdict, found, f"λ0 = {least:g} against MaxEnt; a tenth of the best gain is {margin:.2g}")


def large_lambda(curve: Curve) -> Finding | None:
    """Test that the largest λ0 is worse than the best one, which is picked on other runs."""
    halves = _halves(curve)
    if halves is None:
        return None
    best = first_best(halves[0])
    if best == len(curve.x) - 1:
        return Finding(FAILS, None, f"the largest λ0, {curve.x[-1]:g}, is the best (first half of the runs)")
    note = f"best λ0 = {curve.x[best]:g} (first half of the runs) less λ0 = {curve.x[-1]:g} (second half)"
    return above_zero(halves[1][best] - halves[1][-1], note)


def em_worse(em: Curve, messi: Curve) -> Finding | None:
    """Test that EM is worse than MESSI in most iterations and at the end; None if only the end is known."""
    each = [interval(row) for row in (messi.performance - em.performance)[1:]]
    if not each:
        return None
    ahead, behind = sum(i.high < 0 for i in each), sum(i.low > 0 for i in each)
    found = each[-1]
    few = ahead <= 0.1 * len(each)
    holds = few and found.low > 0 and behind > 0.5 * len(each)
    verdict = HOLDS if holds else FAILS if not few or found.high < 0 else UNDECIDED
    note = f"of {len(each)} iterations EM is significantly worse in {behind}, better in {ahead}"
    return Finding(verdict, found, note)


def monotone(curve: Curve) -> Finding | None:
    """Test that performance never falls: the pair of points with the largest mean fall is picked, then tested."""
    halves = _halves(curve)
    if halves is None:
        return None
    mean, rest = halves
    fall = np.maximum.accumulate(mean) - mean
    end = int(np.argmax(fall))
    if fall[end] <= NOTHING:
        return Finding(HOLDS, None, "the mean of the first half of the runs never falls")
    begin = int(np.argmax(mean[: end + 1]))
    found = interval(rest[begin] - rest[end])
    note = f"largest fall, from iteration {int(curve.x[begin])} to {int(curve.x[end])} (first half of the runs)"
    return Finding(FAILS if found.low > 0 else HOLDS if found.high <= 0 else UNDECIDED, found, note)


def peak(curve: Curve) -> Finding | None:
    """Test that the curve ends below its best point."""
    halves = _halves(curve)
    if halves is None:
        return None
    best = first_best(halves[0])
    note = f"best after {int(curve.x[best])} iterations (first half of the runs); fall until the end (second half)"
    return above_zero(halves[1][best] - halves[1][-1], note)


def larger_share(here: Curve, plain_here: Curve, there: Curve, plain_there: Curve) -> Finding:
    """Test that the gain as a share of MaxEnt's loss is larger in the first domain; runs are unpaired."""
    first, second = (
        interval((a.last - b.last) / np.abs(b.last.mean())) for a, b in ((here, plain_here), (there, plain_there))
    )
    half = float(np.hypot(first.high - first.mean, second.high - second.mean))
    gap = first.mean - second.mean
    return above_zero(Interval(gap, gap - half, gap + half, min(first.n, second.n)))
