"""What each figure shows and what to look at."""

from __future__ import annotations

from collections.abc import Sequence

from messirl._text import listed
from messirl.app.report.common.method_style import ANCHORS, MAIN, domain_name
from messirl.app.report.common.number_format import fixed
from messirl.paper.experiments.curves import Curves, interval

MEASURES = {
    "highway": "minus the expected share of time in a collision or off the road",
    "gridworld": "the expected mean reward under the expert’s θ*",
    "pit": "minus the expected share of time in the pit",
}
PICTURES = {
    "highway": "Highway: the driver (blue) meets rows of up to two cars (orange) and may go left, right or stay; "
    "beside the four lanes is off-road.",
    "gridworld": "Grid-world: the reward of the expert’s θ* in one run, a number for each of 64 blocks of 2 × 2 cells; "
    "three of them are good to be in.",
    "pit": "Pit: from the lower left to the upper right corner; the expert’s one trajectory (line) goes round along "
    "the right edge.",
}


ASIDES = {"highway-far": "The driver sees one more row of traffic; the main comparison is run once more."}
READING = (
    "Every figure shows means over runs with 95 % bands. Runs differ from each other more than methods do, so bands "
    "may overlap where the difference is certain: the figures of gains, paired by run, show that. An axis of "
    "performance is logarithmic in the loss where losses differ much. Frames follow the means: bands are cut at the "
    "frame, and not drawn where they would fill it."
)


def domains_caption(names: Sequence[str]) -> str:
    """The caption of the figure of the problems."""
    return "The domains. " + " ".join(PICTURES[n] for n in PICTURES if n in names or f"{n}-far" in names)


def paper_caption(curves: Curves, domain: str) -> str:
    """The caption of the paper's four panels."""
    shown = [f for f in ("iterations", "unlabelled", "nu", "lambda") if curves.methods(domain, f)]
    others = any(m not in MAIN and "/" not in m for f in shown for m in curves.methods(domain, f))
    parts = [f"{domain_name(domain)}. Performance ({_measure(domain)}; higher is better) against {_against(shown)}."]
    parts.append(ASIDES.get(domain, ""))
    if others:
        parts.append(
            "Above the paper’s methods, below the baselines a sceptic asks for, all fed with μ1, with MaxEnt-IRL and "
            "MESSI(μ1) repeated."
        )
    if len(shown) > 1:
        parts.append("The dotted line is the value that the other panels hold fixed.")
    parts.append("Look for the order MESSIMAX, MESSI(μ1), MESSI(μ2), MaxEnt-IRL, MESSI(μ3), which the paper reports.")
    parts.append(_begin(curves, domain, "iterations"))
    return " ".join(part for part in parts if part)


def gain_caption(_: Curves, domain: str) -> str:
    """The caption of the gains over MaxEnt-IRL, paired by run."""
    return (
        f"{domain_name(domain)}. The same as gains over MaxEnt-IRL, paired by run: this is what the claims are decided "
        "on. A band above the zero line is an improvement beyond doubt, a band below it a loss. Where a gain is "
        "certain, losses of more than twice the largest leave the frame."
    )


def em_caption(curves: Curves, domain: str) -> str:
    """The caption of the comparison with EM."""
    begin = _begin(curves, domain, "em")
    return (
        f"{domain_name(domain)}. η-EM-MaxEnt with each η (light to dark) beside MESSI and MESSIMAX, over the "
        "iterations. Look whether EM ends below MESSI, and whether it was better earlier: without the true reward "
        f"nobody can know when to stop it. {begin}"
    ).rstrip()


def exact_caption(_: Curves, domain: str) -> str:
    """The caption of the two solvers side by side."""
    return (
        f"{domain_name(domain)}. The paper’s fixed steps (above) and the exact optimum of the same objectives (below), "
        "on the same axes. What is seen above only is an artefact of the step size: with large λ0 fixed steps "
        "oscillate and their numbers mean little."
    )


def _measure(domain: str) -> str:
    return MEASURES.get(domain.removesuffix("-far"), "as the domain measures it")


def _against(shown: list[str]) -> str:
    names = {
        "iterations": "iterations",
        "unlabelled": "the number of unlabelled trajectories u",
        "nu": "the share ν of good ones among them",
        "lambda": "the strength λ0 of the penalty",
    }
    return listed([names[f] for f in shown])


def _begin(curves: Curves, domain: str, figure: str) -> str:
    """A sentence on where every training begins, which is outside of the frame."""
    for method in (*ANCHORS, *MAIN):
        if (domain, figure, method) in curves:
            curve = curves[domain, figure, method]
            if len(curve.x) > 1 and curve.x[0] == 0:
                begin = fixed(interval(curve.performance[0]).mean, 3)
                return f"Every training begins at {begin} (θ = 0), mostly outside of the frame."
    return ""
