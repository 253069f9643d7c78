"""The paper's results, sentence by sentence, as tests on a results table.

Every test is on differences paired over runs, with a 95 % interval: a claim *holds* where the interval says so, *does
not hold* where it says the opposite, and is *undecided* in between. Where a moment is picked out as the best, it is
picked on one half of the runs and tested on the other. Each claim is decided for the paper's fixed steps and, where it
can be, for the exact optimum of the same objective: where the two differ, the claim is an artefact of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from messirl.experiments.curves import Curves, Interval, interval
from messirl.experiments.settings import SETTINGS, Setting
from messirl.problem.mdp import Floats

LABELS = {"MESSIMAX": "MESSIMAX", "MESSI-mu1": "MESSI on μ1", "MESSI-mu2": "MESSI on μ2"}
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Finding:
    """What a test found: verdict, the difference it rests on, and a word on it."""

    verdict: str
    evidence: Interval | None
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be true or false."""

    id: str
    text: str
    where: str
    test: str
    check: Callable[[Evidence], Finding | None]


class Evidence:
    """One domain's curves for one solver."""

    def __init__(self, curves: Curves, domain: str, solver: str) -> None:
        self.curves, self.domain, self.solver = curves, domain, solver
        self.setting: Setting = SETTINGS[domain]
        self._suffix = "/exact" if solver == "exact" else ""

    def has(self, figure: str, *methods: str) -> bool:
        return all((self.domain, figure, m + self._suffix) in self.curves for m in methods)

    def final(self, method: str) -> Floats:
        return self.curves[self.domain, "iterations", method + self._suffix].last

    def curve(self, figure: str, method: str) -> Any:
        return self.curves[self.domain, figure, method + self._suffix]


def _sign(values: Floats, note: str = "") -> Finding:
    """Holds where the mean is above zero beyond doubt."""
    found = interval(values)
    verdict = HOLDS if found.low > 0 else FAILS if found.high < 0 else UNDECIDED
    return Finding(verdict, found, note)


def _better(a: str, b: str) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
        return _sign(e.final(a) - e.final(b)) if e.has("iterations", a, b) else None

    return check


def _at_least(a: str, b: str) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
        if not e.has("iterations", a, b):
            return None
        found = interval(e.final(a) - e.final(b))
        return Finding(FAILS if found.high < 0 else HOLDS if found.low >= 0 else UNDECIDED, found)

    return check


def _soon(e: Evidence) -> Finding | None:
    if e.solver == "exact" or not e.has("iterations", "MESSIMAX", "MaxEnt"):
        return None
    if 36.0 not in e.curve("iterations", "MESSIMAX").x:
        return None
    gain = e.curve("iterations", "MESSIMAX").at(36.0) - e.curve("iterations", "MaxEnt").at(36.0)
    return _sign(gain, "after three dozen iterations")


def _grows(e: Evidence) -> Finding | None:
    if e.solver == "exact" or not e.has("iterations", "MaxEnt"):
        return None
    norm = e.curve("iterations", "MaxEnt").theta_norm
    return _sign(norm[-1] - norm[len(norm) // 2], "‖θ‖∞ of MaxEnt at the end less that half-way")


def _saturates(e: Evidence) -> Finding | None:
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


def _slope(method: str, sign: float) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
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


def _enough(method: str) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
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


def _same_at_one(e: Evidence) -> Finding | None:
    if not e.has("nu", "MESSI-mu1", "MESSIMAX") or 1.0 not in e.curve("nu", "MESSI-mu1").x:
        return None
    which = [m for m in ("MESSI-mu1", "MESSI-mu2") if e.has("nu", m)]
    gap = np.concatenate([e.curve("nu", m).at(1.0) - e.curve("nu", "MESSIMAX").at(1.0) for m in which])
    return Finding(HOLDS if np.abs(gap).max() <= 1e-12 else FAILS, interval(gap), "difference at ν = 1")


def _small_lambda(e: Evidence) -> Finding | None:
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


def _large_lambda(method: str) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
        if not e.has("lambda", method):
            return None
        curve = e.curve("lambda", method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        best = int(np.argmax(curve.performance[:, :half].mean(axis=1)))
        if best == len(curve.x) - 1:
            return Finding(FAILS, None, f"the largest λ0, {curve.x[-1]:g}, is the best (first half of the runs)")
        values = curve.performance[best, half:] - curve.performance[-1, half:]
        return _sign(
            values, f"best λ0 = {curve.x[best]:g} (first half of the runs) less λ0 = {curve.x[-1]:g} (second half)"
        )

    return check


def _em_worse(eta: int, mixture: str) -> Callable[[Evidence], Finding | None]:
    def check(e: Evidence) -> Finding | None:
        name = f"EM-{eta}" + ("" if mixture == "mu1" else f"-{mixture}")
        if e.solver == "exact" or not e.has("em", name, f"MESSI-{mixture}"):
            return None
        gap = e.curve("em", f"MESSI-{mixture}").performance - e.curve("em", name).performance
        each = [interval(row) for row in gap[1:]]
        better, worse = sum(i.high < 0 for i in each), sum(i.low > 0 for i in each)
        found = each[-1]
        few = better <= 0.1 * len(each)
        holds = few and found.low > 0 and worse > 0.5 * len(each)
        verdict = HOLDS if holds else FAILS if not few or found.high < 0 else UNDECIDED
        note = f"of {len(each)} iterations EM is beyond doubt worse in {worse}, better in {better}"
        return Finding(verdict, found, note)

    return check


def _monotone(method: str) -> Callable[[Evidence], Finding | None]:
    """No later moment is below an earlier one: the pair with the largest mean fall is picked, then tested."""

    def check(e: Evidence) -> Finding | None:
        if e.solver == "exact" or not e.has("iterations", method):
            return None
        curve = e.curve("iterations", method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        mean = curve.performance[:, :half].mean(axis=1)
        fall = np.maximum.accumulate(mean) - mean
        end = int(np.argmax(fall))
        if fall[end] <= 0:
            return Finding(HOLDS, None, "the mean of the first half of the runs never falls")
        begin = int(np.argmax(mean[: end + 1]))
        found = interval(curve.performance[begin, half:] - curve.performance[end, half:])
        note = f"largest fall, from iteration {int(curve.x[begin])} to {int(curve.x[end])} (first half of the runs)"
        return Finding(FAILS if found.low > 0 else HOLDS if found.high <= 0 else UNDECIDED, found, note)

    return check


def _peak(figure: str, method: str) -> Callable[[Evidence], Finding | None]:
    """It ends below its best moment."""

    def check(e: Evidence) -> Finding | None:
        if e.solver == "exact" or not e.has(figure, method):
            return None
        curve = e.curve(figure, method)
        half = curve.performance.shape[1] // 2
        if half < 2:
            return None
        best = int(np.argmax(curve.performance[:, :half].mean(axis=1)))
        fall = interval(curve.performance[best, half:] - curve.performance[-1, half:])
        note = f"best after {int(curve.x[best])} iterations (first half of the runs); fall until the end (second half)"
        return Finding(HOLDS if fall.low > 0 else FAILS if fall.high < 0 else UNDECIDED, fall, note)

    return check


def _limited(e: Evidence) -> Finding | None:
    if not e.has("iterations", "MESSI-mu3", "MESSIMAX", "MaxEnt"):
        return None
    loss = e.final("MaxEnt") - e.final("MESSI-mu3")
    gain = e.final("MESSIMAX") - e.final("MaxEnt")
    return _sign(0.5 * gain - loss, "half of MESSIMAX's gain less μ3's loss")


def _claims() -> list[Claim]:
    final = "final performance, paired"
    results, em = "section 4, Results", "section 4, Comparison to η-EM-MaxEnt"
    out = [
        Claim("max-beats-maxent", "MESSIMAX improves on MaxEnt-IRL.", results, final, _better("MESSIMAX", "MaxEnt")),
        Claim(
            "mu1-beats-maxent",
            "MESSI on μ1 still performs better than MaxEnt-IRL.",
            results,
            final,
            _better("MESSI-mu1", "MaxEnt"),
        ),
        Claim(
            "mu2-beats-maxent",
            "MESSI on μ2 still performs better than MaxEnt-IRL.",
            results,
            final,
            _better("MESSI-mu2", "MaxEnt"),
        ),
        Claim(
            "mu3-below-maxent",
            "MESSI on μ3 performs worse than MaxEnt-IRL.",
            results,
            final,
            _better("MaxEnt", "MESSI-mu3"),
        ),
        Claim(
            "max-above-mu1",
            "MESSIMAX is an upper bound: at least as good as MESSI on μ1.",
            results,
            final,
            _at_least("MESSIMAX", "MESSI-mu1"),
        ),
        Claim(
            "max-above-mu2",
            "MESSIMAX is an upper bound: at least as good as MESSI on μ2.",
            results,
            final,
            _at_least("MESSIMAX", "MESSI-mu2"),
        ),
        Claim("harm-is-limited", "The unfavourable case has only a limited effect.", "section 3.1", final, _limited),
        Claim(
            "benefit-soon",
            "MESSIMAX's benefit becomes apparent after a few dozen iterations.",
            "section 4, Number of iterations",
            "paired at iteration 36",
            _soon,
        ),
        Claim(
            "theta-grows",
            "The reward tends to increase with the number of iterations.",
            "section 4, Number of iterations",
            "‖θ‖∞ of MaxEnt, paired",
            _grows,
        ),
        Claim(
            "theta-saturates",
            "θ reaches θ_max, and then more iterations bring no improvement.",
            "section 4, Number of iterations",
            "share of runs; performance after",
            _saturates,
        ),
        Claim(
            "maxent-degrades",
            "MaxEnt-IRL may overfit: its performance degrades.",
            "section 4, Number of iterations",
            "best moment against the end, split runs",
            _peak("iterations", "MaxEnt"),
        ),
    ]
    for method, sign, word in (
        ("MESSIMAX", 1.0, "help MESSIMAX"),
        ("MESSI-mu1", 1.0, "help on μ1"),
        ("MESSI-mu2", 1.0, "help on μ2"),
        ("MESSI-mu3", -1.0, "hurt on μ3"),
    ):
        out.append(
            Claim(
                f"more-{method.lower()}",
                f"More unlabelled trajectories {word}.",
                "section 4, Number of unsupervised trajectories",
                "slope over log u, by run",
                _slope(method, sign),
            )
        )
    for name in ("mu1", "mu2"):
        out.append(
            Claim(
                f"nu-suffices-{name}",
                f"MESSI on {name.replace('mu', 'μ')} is better than MaxEnt-IRL from ν = 0.15 on.",
                "section 4, Proportion of good trajectories",
                "paired at every ν ≥ 0.15",
                _enough(f"MESSI-{name}"),
            )
        )
    out.append(
        Claim(
            "nu-one",
            "With ν = 1 MESSI and MESSIMAX are the same.",
            "section 4, Proportion of good trajectories",
            "equality",
            _same_at_one,
        )
    )
    out.append(
        Claim(
            "lambda-small",
            "With λ too small MESSI is no better than MaxEnt-IRL.",
            "section 4, Regularization",
            "equivalence within a tenth of the best gain",
            _small_lambda,
        )
    )
    for method in ("MESSIMAX", "MESSI-mu1"):
        out.append(
            Claim(
                f"lambda-large-{method.lower()}",
                f"With λ too large {LABELS[method]} gets worse.",
                "section 4, Regularization",
                "best λ0 against the largest, split runs",
                _large_lambda(method),
            )
        )
    for mixture in ("mu1", "mu2"):
        symbol = mixture.replace("mu", "μ")
        for eta in (1, 5, 10, 20, 50):
            out.append(
                Claim(
                    f"em-{eta}-worse-{mixture}",
                    f"{eta}-EM-MaxEnt on {symbol} is worse than MESSI in all but a few iterations.",
                    em,
                    "paired at every iteration",
                    _em_worse(eta, mixture),
                )
            )
        for eta in (1, 10, 50):
            name = f"EM-{eta}" + ("" if mixture == "mu1" else f"-{mixture}")
            out.append(
                Claim(
                    f"em-{eta}-peaks-{mixture}",
                    f"{eta}-EM-MaxEnt on {symbol} ends below its best moment, which cannot be known.",
                    em,
                    "best moment against the end, split runs",
                    _peak("em", name),
                )
            )
    for method in ("MESSIMAX", "MESSI-mu1", "MESSI-mu2"):
        out.append(
            Claim(
                f"monotone-{method.lower()}",
                f"{LABELS[method]} improves monotonically: it can be stopped at any time.",
                em,
                "best moment against the end, split runs",
                _monotone(method),
            )
        )
    for other in ("Ridge", "RidgeStd", "Complete", "Pooling"):
        out.append(
            Claim(
                f"sceptic-{other.lower()}",
                f"MESSI on μ1 is better than {SCEPTIC_NAMES[other]} of the same strength.",
                "not in the paper",
                final,
                _better("MESSI-mu1", other),
            )
        )
    return out


SCEPTIC_NAMES = {
    "Ridge": "plain L2",
    "RidgeStd": "standardised L2",
    "Complete": "the complete graph",
    "Pooling": "pooling",
}


def decide(table: pa.Table) -> list[dict[str, Any]]:
    """Every claim, for every domain and solver that the table can decide it for, as plain data."""
    curves = Curves(table)
    out: list[dict[str, Any]] = []
    for claim in _claims():
        for domain in curves.domains:
            for solver in ("paper", "exact"):
                if domain not in SETTINGS:
                    continue
                found = claim.check(Evidence(curves, domain, solver))
                if found is not None:
                    out.append(_row(claim, domain, solver, found))
    return out + _larger_in_the_pit(curves)


def _row(claim: Claim, domain: str, solver: str, found: Finding) -> dict[str, Any]:
    return {
        "id": claim.id,
        "text": claim.text,
        "where": claim.where,
        "test": claim.test,
        "domain": domain,
        "solver": solver,
        "verdict": found.verdict,
        "evidence": _finite(found.evidence),
        "note": found.note,
    }


def _finite(evidence: Interval | None) -> dict[str, float] | None:
    """The interval as data; one run has none."""
    if evidence is None or not np.isfinite([evidence.low, evidence.high]).all():
        return None
    return asdict(evidence)


def _larger_in_the_pit(curves: Curves) -> list[dict[str, Any]]:
    """The one claim over domains: MESSI's advantage, as a share of MaxEnt's loss, is larger in the pit."""
    claim = Claim(
        "pit-larger",
        "The pit shows an even stronger advantage of MESSI.",
        "App. B.2",
        "gain of MESSI(μ1) as a share of MaxEnt's loss, pit less the other domain, unpaired",
        lambda _: None,
    )
    out = []
    for solver in ("paper", "exact"):
        for other in ("highway", "gridworld"):
            here, there = Evidence(curves, "pit", solver), Evidence(curves, other, solver)
            if not (here.has("iterations", "MESSI-mu1", "MaxEnt") and there.has("iterations", "MESSI-mu1", "MaxEnt")):
                continue
            shares = [
                (e.final("MESSI-mu1") - e.final("MaxEnt")) / np.abs(e.final("MaxEnt").mean()) for e in (here, there)
            ]
            first, second = (interval(s) for s in shares)
            half = float(np.hypot(first.high - first.mean, second.high - second.mean))
            gap = first.mean - second.mean
            found = Interval(gap, gap - half, gap + half, min(first.n, second.n))
            verdict = HOLDS if found.low > 0 else FAILS if found.high < 0 else UNDECIDED
            out.append(_row(claim, f"pit against {other}", solver, Finding(verdict, found)))
    return out
