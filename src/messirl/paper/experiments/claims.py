"""The paper's results, sentence by sentence, as tests on a results table.

Every test uses differences paired over runs, with a 95 % interval: a claim *holds* if the interval confirms it, *does
not hold* if the interval contradicts it, and is *undecided* otherwise. If a test picks the best point of a curve, it
picks it on one half of the runs and tests it on the other. Each claim is tested for the paper's fixed steps and, if
possible, for the exact optimum of the same objective: if the two differ, the claim is an artefact of the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from messirl.paper.experiments import claim_tests
from messirl.paper.experiments.claim_tests import Finding
from messirl.paper.experiments.curves import Curves, Interval
from messirl.paper.experiments.paper_settings import AGAINST, EXACT, SETTINGS

RESULTS = "section 4, Results"
ITERATIONS = "section 4, Number of iterations"
NUMBER = "section 4, Number of unsupervised trajectories"
PROPORTION = "section 4, Proportion of good trajectories"
REGULARISATION = "section 4, Regularization"
EM = "section 4, Comparison to η-EM-MaxEnt"
FINAL = "final performance, paired"
BEST_MOMENT = "best moment against the end, split runs"
STEPS, OPTIMUM = "paper", "exact"
MIXTURES = (("mu1", "MESSI-mu1", "MESSI on μ1"), ("mu2", "MESSI-mu2", "MESSI on μ2"))


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be true or false.

    where : the place in the paper
    test : description of the test that `check` makes
    figure, methods : the curves that `check` receives
    solvers : solvers for which the claim can be tested
    optional : methods whose curves are passed as well if the table has them
    """

    id: str
    text: str
    where: str
    test: str
    check: Callable[..., Finding | None]
    figure: str
    methods: tuple[str, ...]
    solvers: tuple[str, ...] = (STEPS, OPTIMUM)
    optional: tuple[str, ...] = ()


def _final(name: str, text: str, check: Callable[..., Finding | None], *methods: str, where: str = RESULTS) -> Claim:
    return Claim(name, text, where, FINAL, check, "iterations", methods)


def _steps(where: str, name: str, text: str, test: str, check: Any, *methods: str, figure: str = "iterations") -> Claim:
    """Return a claim about fixed steps only, since the exact optimum has no iterations."""
    return Claim(name, text, where, test, check, figure, methods, (STEPS,))


CLAIMS = (
    _final("max-beats-maxent", "MESSIMAX improves on MaxEnt-IRL.", claim_tests.better, "MESSIMAX", "MaxEnt"),
    *(
        _final(
            f"{mu}-beats-maxent",
            f"{label} still performs better than MaxEnt-IRL.",
            claim_tests.better,
            method,
            "MaxEnt",
        )
        for mu, method, label in MIXTURES
    ),
    _final(
        "mu3-below-maxent", "MESSI on μ3 performs worse than MaxEnt-IRL.", claim_tests.better, "MaxEnt", "MESSI-mu3"
    ),
    *(
        _final(
            f"max-above-{mu}",
            f"MESSIMAX is an upper bound: at least as good as {label}.",
            claim_tests.at_least,
            "MESSIMAX",
            method,
        )
        for mu, method, label in MIXTURES
    ),
    _final(
        "harm-is-limited",
        "The unfavourable case has only a limited effect.",
        claim_tests.limited,
        "MESSI-mu3",
        "MESSIMAX",
        "MaxEnt",
        where="section 3.1",
    ),
    _steps(
        ITERATIONS,
        "benefit-soon",
        "MESSIMAX's benefit becomes apparent after a few dozen iterations.",
        "paired at iteration 36",
        claim_tests.soon,
        "MESSIMAX",
        "MaxEnt",
    ),
    _steps(
        ITERATIONS,
        "theta-grows",
        "The reward tends to increase with the number of iterations.",
        "‖θ‖∞ of MaxEnt, paired",
        claim_tests.grows,
        "MaxEnt",
    ),
    _steps(
        ITERATIONS,
        "theta-saturates",
        "θ reaches θ_max, and then more iterations bring no improvement.",
        "share of runs; performance after",
        claim_tests.saturates,
        "MaxEnt",
        "MESSIMAX",
        "MESSI-mu1",
        "MESSI-mu2",
    ),
    _steps(
        ITERATIONS,
        "maxent-degrades",
        "MaxEnt-IRL may overfit: its performance degrades.",
        BEST_MOMENT,
        claim_tests.peak,
        "MaxEnt",
    ),
    *(
        Claim(
            f"more-{method.lower()}",
            f"More unlabelled trajectories {effect}.",
            NUMBER,
            "slope over log u, by run",
            check,
            "unlabelled",
            (method,),
        )
        for method, check, effect in (
            ("MESSIMAX", claim_tests.rises, "help MESSIMAX"),
            ("MESSI-mu1", claim_tests.rises, "help on μ1"),
            ("MESSI-mu2", claim_tests.rises, "help on μ2"),
            ("MESSI-mu3", claim_tests.falls, "hurt on μ3"),
        )
    ),
    *(
        Claim(
            f"nu-suffices-{mu}",
            f"{label} is better than MaxEnt-IRL from ν = 0.15 on.",
            PROPORTION,
            "paired at every ν ≥ 0.15",
            claim_tests.enough,
            "nu",
            (method, "MaxEnt"),
        )
        for mu, method, label in MIXTURES
    ),
    Claim(
        "nu-one",
        "With ν = 1 MESSI and MESSIMAX are the same.",
        PROPORTION,
        "equality",
        claim_tests.same_at_one,
        "nu",
        ("MESSIMAX", "MESSI-mu1"),
        optional=("MESSI-mu2",),
    ),
    Claim(
        "lambda-small",
        "With λ too small MESSI is no better than MaxEnt-IRL.",
        REGULARISATION,
        "equivalence within a tenth of the best gain",
        claim_tests.small_lambda,
        "lambda",
        ("MESSI-mu1", "MaxEnt"),
    ),
    *(
        Claim(
            f"lambda-large-{method.lower()}",
            f"With λ too large {label} gets worse.",
            REGULARISATION,
            "best λ0 against the largest, split runs",
            claim_tests.large_lambda,
            "lambda",
            (method,),
        )
        for method, label in (("MESSIMAX", "MESSIMAX"), ("MESSI-mu1", "MESSI on μ1"))
    ),
    *(
        _steps(
            EM,
            f"em-{eta}-{word}-{mu}",
            f"{eta}-EM-MaxEnt on {symbol} {text}",
            test,
            check,
            f"EM-{eta}{suffix}",
            *beside,
            figure="em",
        )
        for mu, symbol, suffix in (("mu1", "μ1", ""), ("mu2", "μ2", "-mu2"))
        for word, text, test, check, beside, etas in (
            (
                "worse",
                "is worse than MESSI in all but a few iterations.",
                "paired at every iteration",
                claim_tests.em_worse,
                [f"MESSI-{mu}"],
                (1, 5, 10, 20, 50),
            ),
            (
                "peaks",
                "ends below its best moment, which cannot be known.",
                BEST_MOMENT,
                claim_tests.peak,
                [],
                (1, 10, 50),
            ),
        )
        for eta in etas
    ),
    *(
        _steps(
            EM,
            f"monotone-{method.lower()}",
            f"{label} improves monotonically: it can be stopped at any time.",
            BEST_MOMENT,
            claim_tests.monotone,
            method,
        )
        for method, label in (("MESSIMAX", "MESSIMAX"), *(names for _, *names in MIXTURES))
    ),
    *(
        _final(
            f"sceptic-{method.lower()}",
            f"MESSI on μ1 is better than {label} of the same strength.",
            claim_tests.better,
            "MESSI-mu1",
            method,
            where="not in the paper",
        )
        for method, label in (
            ("Ridge", "plain L2"),
            ("RidgeStd", "standardised L2"),
            ("Complete", "the complete graph"),
            ("Pooling", "pooling"),
        )
    ),
)
IN_THE_PIT = Claim(  # the only claim about two domains
    "pit-larger",
    "The pit shows an even stronger advantage of MESSI.",
    "App. B.2",
    "gain of MESSI(μ1) as a share of MaxEnt's loss, pit less the other domain, unpaired",
    claim_tests.larger_share,
    "iterations",
    ("MESSI-mu1", "MaxEnt"),
)


def evaluate_claims(table: pa.Table) -> list[dict[str, Any]]:
    """Test every claim for every domain and solver in the table; return plain data."""
    curves = Curves(table)
    known = [domain for domain in curves.domains if domain in SETTINGS]
    cases = [(claim, [domain], solver) for claim in CLAIMS for domain in known for solver in claim.solvers]
    cases += [(IN_THE_PIT, ["pit", other], s) for s in IN_THE_PIT.solvers for other in ("highway", "gridworld")]
    rows = (_row(curves, *case) for case in cases)
    return [row for row in rows if row is not None]


def _row(curves: Curves, claim: Claim, domains: Sequence[str], solver: str) -> dict[str, Any] | None:
    """Return the verdict on a claim as plain data; None if the table cannot decide it."""
    suffix = EXACT if solver == OPTIMUM else ""
    keys = [(domain, claim.figure, method + suffix) for domain in domains for method in claim.methods]
    if not all(key in curves for key in keys):
        return None
    more = [(domain, claim.figure, method + suffix) for domain in domains for method in claim.optional]
    keys += [key for key in more if key in curves]
    found = claim.check(*(curves[key] for key in keys))
    if found is None:
        return None
    return {
        "id": claim.id,
        "text": claim.text,
        "where": claim.where,
        "test": claim.test,
        "domain": AGAINST.join(domains),
        "solver": solver,
        "verdict": found.verdict,
        "evidence": _finite(found.evidence),
        "note": found.note,
    }


def _finite(evidence: Interval | None) -> dict[str, float] | None:
    """Return the interval as plain data; None for one run, which has no interval."""
    if evidence is None or not np.isfinite([evidence.low, evidence.high]).all():
        return None
    return asdict(evidence)
