"""Captions of the figures of the reproduction."""

from __future__ import annotations

from collections.abc import Sequence

from messirl._text import join_names
from messirl.app.report.common.method_style import ANCHORS, MAIN, domain_name
from messirl.app.report.common.number_format import fixed
from messirl.paper.experiments.curves import Curves, interval

MEASURES = {
    "highway": "minus the expected share of time in a collision or off the road",
    "gridworld": "the expected mean reward under the expert’s θ*",
    "pit": "minus the expected share of time in the pit",
}
PICTURES = {
    "highway": "Highway: the driver (blue) meets rows of up to two cars (orange) and may go left, right or stay. "
    "Beside the four lanes is off-road.",
    "gridworld": "Grid-world: the expert’s reward θ* in one run, one value for each of 64 blocks of 2 × 2 cells; "
    "three of the blocks have a high reward.",
    "pit": "Pit: the agent goes from the lower left to the upper right corner. The expert’s only trajectory (line) "
    "follows the right edge around the pit.",
}


ASIDES = {"highway-far": "The driver sees one more row of traffic. The main comparison is repeated."}
READING = (
    "Every figure shows means over runs with 95 % bands. Runs differ more than methods do, so bands may overlap "
    "although a difference is significant; see the figures of gains, which are paired by run. The performance axis is "
    "logarithmic in the loss where losses differ much. Axis limits follow the means: bands are cut there, and left out "
    "where they would fill the panel."
)


def domains_caption(names: Sequence[str]) -> str:
    """Return the caption of the figure of the domains."""
    return "The domains. " + " ".join(PICTURES[n] for n in PICTURES if n in names or f"{n}-far" in names)


def paper_caption(curves: Curves, domain: str) -> str:
    """Return the caption of the paper's four panels."""
    shown = [f for f in ("iterations", "unlabelled", "nu", "lambda") if curves.methods(domain, f)]
    others = any(m not in MAIN and "/" not in m for f in shown for m in curves.methods(domain, f))
    parts = [f"{domain_name(domain)}. Performance ({_measure(domain)}; higher is better) against {_against(shown)}."]
    parts.append(ASIDES.get(domain, ""))
    if others:
        parts.append(
            "The top row shows the paper’s methods. The bottom row shows further baselines, all on μ1, with MaxEnt-IRL "
            "and MESSI(μ1) repeated."
        )
    if len(shown) > 1:
        parts.append("The dotted line is the value used in the other panels.")
    parts.append("The paper reports the order MESSIMAX, MESSI(μ1), MESSI(μ2), MaxEnt-IRL, MESSI(μ3).")
    parts.append(_begin(curves, domain, "iterations"))
    return " ".join(part for part in parts if part)


def gain_caption(_: Curves, domain: str) -> str:
    """Return the caption of the gains over MaxEnt-IRL, paired by run."""
    return (
        f"{domain_name(domain)}. The same results as gains over MaxEnt-IRL, paired by run, on which the claims are "
        "tested. A band above zero is a significant gain, a band below zero a significant loss. Where a gain is "
        "significant, losses of more than twice the largest gain are outside of the axis."
    )


def em_caption(curves: Curves, domain: str) -> str:
    """Return the caption of the comparison with EM."""
    begin = _begin(curves, domain, "em")
    return (
        f"{domain_name(domain)}. η-EM-MaxEnt for each η (light to dark), MESSI and MESSIMAX, by iteration. The "
        "question is whether EM ends below MESSI. If it was better earlier, this cannot be used: the best iteration "
        f"is unknown without the true reward. {begin}"
    ).rstrip()


def exact_caption(_: Curves, domain: str) -> str:
    """Return the caption of the comparison of the two solvers."""
    return (
        f"{domain_name(domain)}. The paper’s fixed steps (top) and the exact optimum of the same objectives (bottom), "
        "on the same axes. Effects that appear only in the top row are artefacts of the step size: with large λ0, "
        "fixed steps oscillate."
    )


def _measure(domain: str) -> str:
    return MEASURES.get(domain.removesuffix("-far"), "the domain’s own measure")


def _against(shown: list[str]) -> str:
    names = {
        "iterations": "iterations",
        "unlabelled": "the number of unlabelled trajectories u",
        "nu": "their share ν that follows the expert’s reward",
        "lambda": "the strength λ0 of the penalty",
    }
    return join_names([names[f] for f in shown])


def _begin(curves: Curves, domain: str, figure: str) -> str:
    """Return a sentence on the value at θ = 0, where every training begins."""
    for method in (*ANCHORS, *MAIN):
        if (domain, figure, method) in curves:
            curve = curves[domain, figure, method]
            if len(curve.x) > 1 and curve.x[0] == 0:
                begin = fixed(interval(curve.performance[0]).mean, 3)
                return f"Every training begins at {begin} (θ = 0), outside of most axes."
    return ""
