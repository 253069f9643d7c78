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
from messirl.experiments.checks import DomainCurves, Finding
from messirl.experiments.curves import Curves, Interval
from messirl.experiments.settings import SETTINGS

RESULTS = "section 4, Results"
ITERATIONS = "section 4, Number of iterations"
PROPORTION = "section 4, Proportion of good trajectories"
REGULARISATION = "section 4, Regularization"
EM = "section 4, Comparison to η-EM-MaxEnt"
FINAL = "final performance, paired"
BEST_MOMENT = "best moment against the end, split runs"
SOLVERS = ("paper", "exact")


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be true or false, where it stands, and the test that decides it."""

    id: str
    text: str
    where: str
    test: str
    check: Callable[..., Finding | None]


CLAIMS = (
    Claim("max-beats-maxent", "MESSIMAX improves on MaxEnt-IRL.", RESULTS, FINAL, checks.better("MESSIMAX", "MaxEnt")),
    *(
        Claim(
            f"{mu}-beats-maxent",
            f"MESSI on {symbol} still performs better than MaxEnt-IRL.",
            RESULTS,
            FINAL,
            checks.better(f"MESSI-{mu}", "MaxEnt"),
        )
        for mu, symbol in (("mu1", "μ1"), ("mu2", "μ2"))
    ),
    Claim(
        "mu3-below-maxent",
        "MESSI on μ3 performs worse than MaxEnt-IRL.",
        RESULTS,
        FINAL,
        checks.better("MaxEnt", "MESSI-mu3"),
    ),
    *(
        Claim(
            f"max-above-{mu}",
            f"MESSIMAX is an upper bound: at least as good as MESSI on {symbol}.",
            RESULTS,
            FINAL,
            checks.at_least("MESSIMAX", f"MESSI-{mu}"),
        )
        for mu, symbol in (("mu1", "μ1"), ("mu2", "μ2"))
    ),
    Claim("harm-is-limited", "The unfavourable case has only a limited effect.", "section 3.1", FINAL, checks.limited),
    Claim(
        "benefit-soon",
        "MESSIMAX's benefit becomes apparent after a few dozen iterations.",
        ITERATIONS,
        "paired at iteration 36",
        checks.soon,
    ),
    Claim(
        "theta-grows",
        "The reward tends to increase with the number of iterations.",
        ITERATIONS,
        "‖θ‖∞ of MaxEnt, paired",
        checks.grows,
    ),
    Claim(
        "theta-saturates",
        "θ reaches θ_max, and then more iterations bring no improvement.",
        ITERATIONS,
        "share of runs; performance after",
        checks.saturates,
    ),
    Claim(
        "maxent-degrades",
        "MaxEnt-IRL may overfit: its performance degrades.",
        ITERATIONS,
        BEST_MOMENT,
        checks.peak("iterations", "MaxEnt"),
    ),
    *(
        Claim(
            f"more-{method.lower()}",
            f"More unlabelled trajectories {effect}.",
            "section 4, Number of unsupervised trajectories",
            "slope over log u, by run",
            checks.slope(method, sign),
        )
        for method, sign, effect in (
            ("MESSIMAX", 1.0, "help MESSIMAX"),
            ("MESSI-mu1", 1.0, "help on μ1"),
            ("MESSI-mu2", 1.0, "help on μ2"),
            ("MESSI-mu3", -1.0, "hurt on μ3"),
        )
    ),
    *(
        Claim(
            f"nu-suffices-{mu}",
            f"MESSI on {symbol} is better than MaxEnt-IRL from ν = 0.15 on.",
            PROPORTION,
            "paired at every ν ≥ 0.15",
            checks.enough(f"MESSI-{mu}"),
        )
        for mu, symbol in (("mu1", "μ1"), ("mu2", "μ2"))
    ),
    Claim("nu-one", "With ν = 1 MESSI and MESSIMAX are the same.", PROPORTION, "equality", checks.same_at_one),
    Claim(
        "lambda-small",
        "With λ too small MESSI is no better than MaxEnt-IRL.",
        REGULARISATION,
        "equivalence within a tenth of the best gain",
        checks.small_lambda,
    ),
    *(
        Claim(
            f"lambda-large-{method.lower()}",
            f"With λ too large {label} gets worse.",
            REGULARISATION,
            "best λ0 against the largest, split runs",
            checks.large_lambda(method),
        )
        for method, label in (("MESSIMAX", "MESSIMAX"), ("MESSI-mu1", "MESSI on μ1"))
    ),
    *(
        claim
        for mu, symbol, suffix in (("mu1", "μ1", ""), ("mu2", "μ2", "-mu2"))
        for claim in (
            *(
                Claim(
                    f"em-{eta}-worse-{mu}",
                    f"{eta}-EM-MaxEnt on {symbol} is worse than MESSI in all but a few iterations.",
                    EM,
                    "paired at every iteration",
                    checks.em_worse(f"EM-{eta}{suffix}", f"MESSI-{mu}"),
                )
                for eta in (1, 5, 10, 20, 50)
            ),
            *(
                Claim(
                    f"em-{eta}-peaks-{mu}",
                    f"{eta}-EM-MaxEnt on {symbol} ends below its best moment, which cannot be known.",
                    EM,
                    BEST_MOMENT,
                    checks.peak("em", f"EM-{eta}{suffix}"),
                )
                for eta in (1, 10, 50)
            ),
        )
    ),
    *(
        Claim(
            f"monotone-{method.lower()}",
            f"{label} improves monotonically: it can be stopped at any time.",
            EM,
            BEST_MOMENT,
            checks.monotone(method),
        )
        for method, label in (("MESSIMAX", "MESSIMAX"), ("MESSI-mu1", "MESSI on μ1"), ("MESSI-mu2", "MESSI on μ2"))
    ),
    *(
        Claim(
            f"sceptic-{method.lower()}",
            f"MESSI on μ1 is better than {label} of the same strength.",
            "not in the paper",
            FINAL,
            checks.better("MESSI-mu1", method),
        )
        for method, label in (
            ("Ridge", "plain L2"),
            ("RidgeStd", "standardised L2"),
            ("Complete", "the complete graph"),
            ("Pooling", "pooling"),
        )
    ),
)
IN_THE_PIT = Claim(  # the one claim over two domains
    "pit-larger",
    "The pit shows an even stronger advantage of MESSI.",
    "App. B.2",
    "gain of MESSI(μ1) as a share of MaxEnt's loss, pit less the other domain, unpaired",
    checks.larger_share,
)


def decide(table: pa.Table) -> list[dict[str, Any]]:
    """Every claim, for every domain and solver that the table can decide it for, as plain data."""
    curves = Curves(table)
    cases: list[tuple[Claim, str, str, tuple[DomainCurves, ...]]] = [
        (claim, domain, solver, (DomainCurves(curves, domain, solver),))
        for claim in CLAIMS
        for domain in curves.domains
        if domain in SETTINGS
        for solver in SOLVERS
    ]
    cases += [
        (
            IN_THE_PIT,
            f"pit against {other}",
            solver,
            (DomainCurves(curves, "pit", solver), DomainCurves(curves, other, solver)),
        )
        for solver in SOLVERS
        for other in ("highway", "gridworld")
    ]
    found = ((claim, domain, solver, claim.check(*seen)) for claim, domain, solver, seen in cases)
    return [_row(claim, domain, solver, finding) for claim, domain, solver, finding in found if finding is not None]


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
