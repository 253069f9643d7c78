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

from messirl.experiments import checks
from messirl.experiments.checks import FAILS, HOLDS, UNDECIDED, Evidence, Finding
from messirl.experiments.curves import Curves, Interval, interval
from messirl.experiments.settings import SETTINGS

LABELS = {"MESSIMAX": "MESSIMAX", "MESSI-mu1": "MESSI on μ1", "MESSI-mu2": "MESSI on μ2"}


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be true or false."""

    id: str
    text: str
    where: str
    test: str
    check: Callable[[Evidence], Finding | None]


def _claims() -> list[Claim]:
    final = "final performance, paired"
    results, em = "section 4, Results", "section 4, Comparison to η-EM-MaxEnt"
    out = [
        Claim(
            "max-beats-maxent", "MESSIMAX improves on MaxEnt-IRL.", results, final, checks.better("MESSIMAX", "MaxEnt")
        ),
        Claim(
            "mu1-beats-maxent",
            "MESSI on μ1 still performs better than MaxEnt-IRL.",
            results,
            final,
            checks.better("MESSI-mu1", "MaxEnt"),
        ),
        Claim(
            "mu2-beats-maxent",
            "MESSI on μ2 still performs better than MaxEnt-IRL.",
            results,
            final,
            checks.better("MESSI-mu2", "MaxEnt"),
        ),
        Claim(
            "mu3-below-maxent",
            "MESSI on μ3 performs worse than MaxEnt-IRL.",
            results,
            final,
            checks.better("MaxEnt", "MESSI-mu3"),
        ),
        Claim(
            "max-above-mu1",
            "MESSIMAX is an upper bound: at least as good as MESSI on μ1.",
            results,
            final,
            checks.at_least("MESSIMAX", "MESSI-mu1"),
        ),
        Claim(
            "max-above-mu2",
            "MESSIMAX is an upper bound: at least as good as MESSI on μ2.",
            results,
            final,
            checks.at_least("MESSIMAX", "MESSI-mu2"),
        ),
        Claim(
            "harm-is-limited", "The unfavourable case has only a limited effect.", "section 3.1", final, checks.limited
        ),
        Claim(
            "benefit-soon",
            "MESSIMAX's benefit becomes apparent after a few dozen iterations.",
            "section 4, Number of iterations",
            "paired at iteration 36",
            checks.soon,
        ),
        Claim(
            "theta-grows",
            "The reward tends to increase with the number of iterations.",
            "section 4, Number of iterations",
            "‖θ‖∞ of MaxEnt, paired",
            checks.grows,
        ),
        Claim(
            "theta-saturates",
            "θ reaches θ_max, and then more iterations bring no improvement.",
            "section 4, Number of iterations",
            "share of runs; performance after",
            checks.saturates,
        ),
        Claim(
            "maxent-degrades",
            "MaxEnt-IRL may overfit: its performance degrades.",
            "section 4, Number of iterations",
            "best moment against the end, split runs",
            checks.peak("iterations", "MaxEnt"),
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
                checks.slope(method, sign),
            )
        )
    for name in ("mu1", "mu2"):
        out.append(
            Claim(
                f"nu-suffices-{name}",
                f"MESSI on {name.replace('mu', 'μ')} is better than MaxEnt-IRL from ν = 0.15 on.",
                "section 4, Proportion of good trajectories",
                "paired at every ν ≥ 0.15",
                checks.enough(f"MESSI-{name}"),
            )
        )
    out.append(
        Claim(
            "nu-one",
            "With ν = 1 MESSI and MESSIMAX are the same.",
            "section 4, Proportion of good trajectories",
            "equality",
            checks.same_at_one,
        )
    )
    out.append(
        Claim(
            "lambda-small",
            "With λ too small MESSI is no better than MaxEnt-IRL.",
            "section 4, Regularization",
            "equivalence within a tenth of the best gain",
            checks.small_lambda,
        )
    )
    for method in ("MESSIMAX", "MESSI-mu1"):
        out.append(
            Claim(
                f"lambda-large-{method.lower()}",
                f"With λ too large {LABELS[method]} gets worse.",
                "section 4, Regularization",
                "best λ0 against the largest, split runs",
                checks.large_lambda(method),
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
                    checks.em_worse(eta, mixture),
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
                    checks.peak("em", name),
                )
            )
    for method in ("MESSIMAX", "MESSI-mu1", "MESSI-mu2"):
        out.append(
            Claim(
                f"monotone-{method.lower()}",
                f"{LABELS[method]} improves monotonically: it can be stopped at any time.",
                em,
                "best moment against the end, split runs",
                checks.monotone(method),
            )
        )
    for other in ("Ridge", "RidgeStd", "Complete", "Pooling"):
        out.append(
            Claim(
                f"sceptic-{other.lower()}",
                f"MESSI on μ1 is better than {SCEPTIC_NAMES[other]} of the same strength.",
                "not in the paper",
                final,
                checks.better("MESSI-mu1", other),
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
