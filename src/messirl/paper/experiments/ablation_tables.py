"""Tables of the comparison of learners: performance and gains of each learner, and tests of the paper's claims.

Reads the table of results only. Differences are paired over runs, with 95 % intervals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._types import Floats
from messirl.paper.experiments import claim_tests
from messirl.paper.experiments.ablation import EXPERT_ONLY, FIGURE, Learner, expert_only_learner, learners
from messirl.paper.experiments.curves import Curve, Curves, format_interval, interval
from messirl.paper.experiments.paper_settings import SETTINGS

# Learners for which the claims are tested: (experts only, MESSI without its mixture).
ASKED = {
    "counts, start given, no ridge": (Learner(EXPERT_ONLY, start="given"), Learner("MESSI", start="given")),
    "counts, own start, ridge": (expert_only_learner("counts"), Learner("MESSI")),
    "choices, own start, ridge": (expert_only_learner("choices"), Learner("MESSI", objective="choices")),
}


def rows_of(table: pa.Table) -> list[dict[str, str]]:
    """Return one row per domain and learner: its performance, and its gain over three other learners.

    These are experts only (same objective, own start, ridge), MESSI on the same trajectories with the same objective
    and start, and the same learner with the objective counts.
    """
    curves, out = Curves(table), []
    for domain in _domains(curves):
        for learner in learners(SETTINGS[domain]):
            mine = _last(curves, domain, learner)
            here = pc.and_(pc.equal(table["domain"], domain), pc.equal(table["method"], learner.name))
            found = interval(mine)
            others = {
                "over experts alone": expert_only_learner(learner.objective),
                "over MESSI": None if learner.mixture is None else replace(learner, way="MESSI", ridge=0.0),
                "over counts": None if learner.objective == "counts" else replace(learner, objective="counts"),
            }
            out.append(
                {
                    "domain": domain,
                    "way": learner.way,
                    "mixture": learner.mixture or "",
                    "objective": learner.objective,
                    "start": learner.start,
                    "ridge": f"{learner.ridge:g}",
                    "runs": str(found.n),
                    "converged": f"{np.mean(table.filter(here)['converged'].to_pylist()):.2f}",
                    "performance": f"{found.mean:.4f} [{found.low:.4f}, {found.high:.4f}]",
                    **{
                        name: ""
                        if other is None or other == learner
                        else format_interval(interval(mine - _last(curves, domain, other)))
                        for name, other in others.items()
                    },
                }
            )
    return out


def claims_of(table: pa.Table) -> list[dict[str, str]]:
    """Test the paper's order MESSIMAX > MESSI(μ1) > MaxEnt > MESSI(μ3) for three learners in every domain."""
    curves, out = Curves(table), []
    for domain in _domains(curves):
        for label, (plain, messi) in ASKED.items():
            base = curves[domain, FIGURE, plain.name]
            best, first, third = (
                curves[domain, FIGURE, replace(messi, mixture=mixture).name] for mixture in ("MAX", "mu1", "mu3")
            )
            for text, better, worse, check in (
                ("MESSIMAX improves on the expert alone", best, base, claim_tests.better),
                ("MESSI on mu1 improves on the expert alone", first, base, claim_tests.better),
                ("MESSI on mu3 is worse than the expert alone", base, third, claim_tests.better),
                ("MESSIMAX is at least as good as MESSI on mu1", best, first, claim_tests.at_least),
            ):
                out.append({"domain": domain, "learner": label, "claim": text, **_verdict(check(better, worse))})
    return out


def _verdict(found: claim_tests.Finding) -> dict[str, str]:
    return {"verdict": found.verdict, "difference": "" if found.evidence is None else format_interval(found.evidence)}


def _domains(curves: Curves) -> list[str]:
    return [domain for domain in SETTINGS if domain in curves.domains]


def _last(curves: Curves, domain: str, learner: Learner) -> Floats:
    curve: Curve = curves[domain, FIGURE, learner.name]
    return curve.last
