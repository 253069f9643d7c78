"""The report of one fit: what was learned, and how well it predicts compared with the baselines."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from messirl import plot
from messirl.report.fit import figures, tables
from messirl.report.fit.base import base_section
from messirl.report.fit.groups import groups_section
from messirl.report.kit.digits import as_sentence, many, score
from messirl.report.kit.markup import Html, tag
from messirl.report.kit.names import one_line, short
from messirl.report.kit.page import drawn, opening, write_page, written_with
from messirl.workflow.record import FitRecord, Score


def write_fit_report(record: FitRecord, out: Path) -> Path:
    """Draw the figures into out/figures and write out/report.html; returns its path."""
    _check(record)
    folder = out / "figures"
    parts = {
        "scores": ("Scores", _scores(record, folder)),
        "groups": ("Group by group", groups_section(record.by, folder)),
        "weights": ("Reward by feature", _weights(record, folder)),
        "maps": ("Reward and visits on the map", _maps(record, folder)),
        "policy": ("Policy", _policy(record, folder)),
        "base": ("Base policy, and what the experts change in it", base_section(record, folder, _which(record))),
        "convergence": ("Convergence", _convergence(record, folder)),
        "settings": ("Settings", [tables.words_table(record.settings), written_with("environment")]),
        "rerun": ("How to run it again", [tag("pre", tag("code", record.command))] if record.command else []),
    }
    first = opening(lead(record), record.remarks)
    return write_page(out / "report.html", record.title, record.method, first, parts)


def lead(record: FitRecord) -> str:
    """What was fitted, whether it converged, and which method predicts best, in two or three sentences."""
    model, mdp = record.model, record.model.mdp_
    kinds = [f"{n:,} {one_line(kind)}" for kind, n in record.counts.items() if kind in ("expert", "unlabelled")]
    data = f" to {' and '.join(kinds)} trajectories" if kinds else ""
    of = "steps" if mdp.state_action else "states"
    first = (
        f"{record.method} was fitted{data}, in a problem of {many(mdp.n_states, 'state')}, "
        f"{many(mdp.n_actions, 'action')} and {many(mdp.n_features, 'feature')} of {of}."
    )
    end = "converged" if model.converged_ else "stopped before it converged,"
    second = f"It {end} after {many(model.n_iter_, 'iteration')}"
    method, *baselines = record.scores or [Score("", "", None, None)]
    if method.held_out is not None and np.isfinite(method.held_out):
        tests = f"the {record.counts['test']:,} " if "test" in record.counts else ""
        second += f", and gives {tests}held-out trajectories {score(method.held_out, 3)} nats a step"
        known = [b for b in baselines if b.held_out is not None and np.isfinite(b.held_out)]
        if known and record.verdict is None:
            value, best = max((float(b.held_out or 0.0), short(b.name)) for b in known)
            second += f"; the best baseline, {best}, gives {score(value, 3)}"
    best = "" if record.verdict is None else f" {as_sentence(record.verdict.sentence)}"
    return f"{first} {second}.{best}"


def _check(record: FitRecord) -> None:
    if not hasattr(record.model, "theta_"):
        raise ValueError("the model of the record is not fitted: call fit before writing a report")
    n = record.model.mdp_.n_states
    if record.xy is not None and np.shape(record.xy) != (n, 2):
        raise ValueError(f"xy has shape {np.shape(record.xy)}: give one pair of coordinates for each of the {n} states")


def _scores(record: FitRecord, folder: Path) -> list[Html]:
    out: list[Html] = []
    if record.scores:
        caption = (
            f"Scores. {short(record.scores[0].name)} (blue) and the baselines: the mean log-probability of what was "
            "done next, pooled over all steps."
        )
        if record.verdict is not None:
            caption += (
                f" Intervals are of the difference from {record.verdict.alone}, fitted to the experts alone, paired by "
                "trajectory; each is of one pair, and the best of many methods always looks a little too good."
            )
        if all(score.held_out is None for score in record.scores):
            caption += (
                " These are the trajectories that the methods were fitted to: it says how closely each follows them, "
                "not which is better. Hold some out for that, or let messirl select do it."
            )
        if figures.far_below(record.scores):
            caption += " Who is far below the others is named at the left edge; −∞ rules out what was seen."
        out += drawn("scores", partial(figures.scores_figure, record.scores), folder, caption, half=True)
        out.append(tables.scores_table(record.scores))
    if record.statistics:
        out += [tag("h3", "Statistics of the fit"), tables.statistics_table(record.statistics)]
    return out


def _weights(record: FitRecord, folder: Path) -> list[Html]:
    d = record.model.theta_.size
    caption = ["Weights. Orange adds to the reward, purple takes from it."]
    if d > figures.MOST_FEATURES:
        caption.append(f"The {figures.MOST_FEATURES} largest of {d:,} are drawn.")
    if np.isfinite(record.half_widths()).any():
        caption.append("Lines are 95 % intervals, ±1.96 standard errors, robust ones where they are known.")
    if record.at_bound:
        caption.append(f"{record.at_bound:,} of {d:,} lie on the bound ±{record.model.theta_max:g}.")
    picture = drawn("weights", partial(figures.weights_figure, record), folder, " ".join(caption), half=True)
    return [*picture, tables.estimates_table(record), tables.ratios_table(record), tables.tests_table(record)]


def _maps(record: FitRecord, folder: Path) -> list[Html]:
    if not record.placed.size:
        return []
    caption = ["Maps. The reward of every state, and how often the fitted policy is expected to visit it."]
    mdp, visits = record.model.mdp_, record.model.visitation_
    if mdp.state_action:
        caption.append("The reward of a state is the mean over its actions.")
    unmet, undefined = int((visits == 0).sum()), int((~np.isfinite(record.model.reward_)).sum())
    if figures.widely_spread(visits):
        caption.append("Visits have a logarithmic scale.")
    if unmet:
        caption.append(f"Never met, and grey: {unmet:,} of {mdp.n_states:,} states.")
    if undefined or not np.isfinite(visits).all():
        caption.append("States without a finite number are grey.")
    missing = mdp.n_states - record.placed.size
    if missing:
        caption.append(f"Without coordinates, and left out: {many(missing, 'state')}.")
    if mdp.transitions.nnz > figures.MOST_MOVES and not plot.on_grid(np.asarray(record.xy)[record.placed]):
        caption.append("There are too many moves to draw.")
    return drawn("maps", partial(figures.maps_figure, record), folder, " ".join(caption))


def _policy(record: FitRecord, folder: Path) -> list[Html]:
    which = _which(record)
    caption = (
        f"Policy{which}. Arrows point where the policy goes on average; the more its moves agree, the longer they are. "
        "Colours are the reward."
    )
    if record.towards is not None or 0 < record.model.mdp_.terminal.sum() <= figures.ARROWS:
        caption += " Squares are ends."
    if record.placed.size > figures.ARROWS**2:
        caption += " There is one arrow for each part of the map, out of the state there that is visited most."
    return [
        *drawn("policy", partial(figures.policy_figure, record), folder, caption, half=True),
        tag("p", f"The states visited most, and what the policy does there{which}:"),
        tables.policy_table(record),
    ]


def _which(record: FitRecord) -> str:
    """Of which step, or towards which goal, the policy is shown."""
    if record.towards is not None:
        return f" towards {short(record.called('state', record.towards))}"
    return "" if record.model.mdp_.first_step is None else " at the first step"


def _convergence(record: FitRecord, folder: Path) -> list[Html]:
    model = record.model
    caption = (
        f"Convergence. The objective ends at {score(model.objective_)} after {many(model.n_iter_, 'iteration')}: "
        f"{model.termination_}."
    )
    return drawn("convergence", partial(figures.history_figure, record), folder, caption, half=True)
