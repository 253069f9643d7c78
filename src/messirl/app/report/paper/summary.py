"""Summary of the reproduction: whether MESSI helps, with one sentence and one figure per domain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from messirl._text import join_names, quote_name
from messirl.app.report.common.glossary import TERMS
from messirl.app.report.common.html_page import draw_figure
from messirl.app.report.common.interval_plot import gains_figure
from messirl.app.report.common.markup import Html, row, table, tag
from messirl.app.report.common.method_style import MAIN, STYLES, domain_name, style_of
from messirl.app.report.common.number_format import as_sentence, mean_and_interval
from messirl.app.report.paper.captions import MEASURES
from messirl.app.workflow.narrative import difference
from messirl.inference.paired_gain import Gain
from messirl.paper.experiments.curves import Curves, Interval, interval
from messirl.paper.experiments.paper_settings import EXACT

BASE, OWN = "MaxEnt", "MESSI-mu1"
METHODS = tuple(method for method in STYLES if method != BASE)
ROLES = ("MESSI", "MESSIMAX", "μ1", "μ2", "μ3")
ABOVE = "; above zero is better"
SOLVERS = (("", "with the paper’s fixed steps"), (EXACT, "at the exact optimum"))


def roles() -> Html:
    """Return definitions of the names that the paper uses."""
    return tag("dl", *(part for term in ROLES for part in (tag("dt", term), tag("dd", TERMS[term]))), class_="roles")


def gains(curves: Curves, domain: str, over: str = BASE, suffix: str = "") -> dict[str, Gain]:
    """Return the gain of every method over the method `over` at the end of training, paired by run."""
    key = (domain, "iterations", over + suffix)
    out: dict[str, Gain] = {}
    for method in STYLES:
        other = (domain, "iterations", method + suffix)
        if method != over and key in curves and other in curves:
            one, base = curves[other].last, curves[key].last
            if one.shape == base.shape:
                found = interval(one - base)
                out[method] = Gain(found.mean, found.low, found.high)
    return out


def sentences(curves: Curves, domains: Sequence[str]) -> list[str]:
    """Say in which domains MESSI on μ1 helps, and which other baselines do as well."""
    said = []
    for suffix, how in SOLVERS:
        found = {d: gains(curves, d, suffix=suffix)[OWN] for d in domains if OWN in gains(curves, d, suffix=suffix)}
        if not found:
            continue
        better = [quote_name(domain_name(d)) for d, gain in found.items() if gain.significant and gain.mean > 0]
        others = [quote_name(domain_name(d)) for d, gain in found.items() if not (gain.significant and gain.mean > 0)]
        where = f"in {join_names(better)}" if better else "in no domain"
        rest = f", not significantly in {join_names(others)}" if better and others else ""
        label = style_of(OWN).label
        said.append(f"{as_sentence(how)}, {label} is significantly better than {style_of(BASE).label} {where}{rest}.")
    rivals = {d: gains(curves, d, OWN) for d in domains}
    for clear, words in ((True, "significantly better than"), (False, "not significantly different from")):
        here = {d: [m for m in _as_good(found) if found[m].significant == clear] for d, found in rivals.items()}
        told = [
            f"in {domain_name(d)} {join_names([quote_name(style_of(m).label) for m in ms])}"
            for d, ms in here.items()
            if ms
        ]
        if told:
            said.append(f"With fixed steps, other baselines are {words} {style_of(OWN).label}: {'; '.join(told)}.")
    return said


def domain_sentence(curves: Curves, domain: str) -> str:
    """Say what MESSI gains in one domain, by the kind of its unlabelled trajectories."""
    found = gains(curves, domain)
    said = [f"{style_of(m).label} is {difference(found[m], style_of(BASE).label, '')}" for m in MAIN if m in found]
    if not said:
        return ""
    measure = MEASURES.get(domain.removesuffix("-far"), "the domain’s own measure")
    told, *rest = "; ".join(said).split(ABOVE)  # said once
    return f"{domain_name(domain)} ({measure}). {told}{ABOVE if rest else ''}{''.join(rest)}."


def panels(curves: Curves, names: dict[str, str], folder: Path) -> list[Html]:
    """Draw one figure per domain, with one sentence as its caption.

    names : domain → file name
    """
    shown: list[Html] = []
    for domain, name in names.items():
        found = gains(curves, domain)
        rows = [(style_of(m).label, found[m]) for m in METHODS if m in found]
        figure = partial(gains_figure, rows, f"◂ worse · better ▸ than {style_of(BASE).label}", style_of(OWN).label)
        shown += draw_figure(f"{name}-answer", figure, folder, as_sentence(domain_sentence(curves, domain)), small=True)
    return shown


def losses_table(curves: Curves, domains: Sequence[str]) -> list[Html]:
    """Return a table of the comparisons with MaxEnt-IRL and the other baselines that MESSI does not clearly win."""
    rows = []
    for domain in domains:
        for suffix, how in SOLVERS:
            found, own = gains(curves, domain, suffix=suffix), gains(curves, domain, OWN, suffix)
            lost = [
                (m, BASE, found[m]) for m in MAIN if m in found and not (found[m].significant and found[m].mean > 0)
            ]
            lost += [(m, OWN, own[m]) for m in _as_good(own)]
            rows += [_row(f"{domain_name(domain)}, {how}", *one) for one in lost]
    head = row("domain and solver", "comparison", "difference", "95 % interval", "the first method is", head=True)
    return [table([head], rows, "fit differences")] if rows else []


def _row(where: str, one: str, other: str, gain: Gain) -> Html:
    mean, ends = mean_and_interval(Interval(gain.mean, gain.low, gain.high, 0), signed=True)
    words = "not significantly different" if not gain.significant else "better" if gain.mean > 0 else "worse"
    return row(where, f"{style_of(one).label} against {style_of(other).label}", mean, ends, words)


def _as_good(found: dict[str, Gain]) -> list[str]:
    """Return the baselines that are not significantly worse than MESSI on μ1."""
    return [m for m, gain in found.items() if m not in MAIN and not (gain.significant and gain.mean < 0)]
