"""Report of one fit: the learnt reward and policy, and the scores of the fit and its baselines."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from messirl import plot
from messirl.app.report.common.feature_labels import one_line, shorten
from messirl.app.report.common.glossary import link_terms
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER, gains_figure
from messirl.app.report.common.markup import Html, tag
from messirl.app.report.common.number_format import as_sentence, count_with_noun, score
from messirl.app.report.common.svg_tooltips import MOST as SPOTS, HoverArea, add_tooltips
from messirl.app.report.fit import fit_figures, maps, tables
from messirl.app.report.fit.group_section import groups_section
from messirl.app.report.fit.map_axes import MARKED, MOST_TRANSITIONS, BaseMap, widely_spread
from messirl.app.report.fit.prior_policy_section import prior_section
from messirl.app.report.fit.verdict_figures import preferences_picture
from messirl.app.workflow.record import FitRecord, Score, weights
from messirl.estimators.registry import describe_model

PENALISED = (
    "The robust std. error of a penalised fit measures how much the shrunk weight varies from sample to sample. It "
    "does not include the bias of the penalty towards zero, so it is no test of the weight. Preferences are therefore "
    "tested with a fit without the penalty."
)


def write_fit_report(record: FitRecord, out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    _check(record)
    folder = out / "figures"
    parts = {
        "scores": ("Scores", _scores(record, folder)),
        "groups": ("Results by group", groups_section(record.by, folder)),
        **(_reward_and_policy(record, folder) if record.full else {"weights": ("Weights", _plain_weights(record))}),
        "settings": ("Settings", [tables.words_table(record.settings), written_with("environment")]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    remarks = tables.with_plain_names(record.all_warnings, record.model.mdp_.feature_names)
    first = opening(record.in_words, _pictures(record, folder), lead(record), remarks)
    return write_page(out / "report.html", record.title, describe_model(record.model)[0], first, parts)


def _reward_and_policy(record: FitRecord, folder: Path) -> dict[str, tuple[str, list[Html]]]:
    """Return the sections that need a reward, expected visits and a history."""
    return {
        "weights": ("Reward by feature", _weights(record, folder)),
        "maps": ("Maps of reward and visits", _maps(record, folder)),
        "policy": ("Policy", _policy(record, folder)),
        "base": ("Prior policy, and how the experts depart from it", prior_section(record, folder, _which(record))),
        "convergence": ("Convergence", fit_figures.convergence(record, folder)),
    }


def _plain_weights(record: FitRecord) -> list[Html]:
    """Return a table of θ; nothing for a method without."""
    found = weights(record.model)
    return [tables.statistics_table(found)] if found else []


def _pictures(record: FitRecord, folder: Path) -> list[Html]:
    """Draw the experts' preferences, and the gain from using the unlabelled trajectories."""
    shown = preferences_picture(record.preferences, folder)
    if record.verdict is not None and record.verdict.without:
        gains = partial(gains_figure, list(record.verdict.without.items()), BETTER)
        caption = (
            "Did the unlabelled trajectories help? The gain of the fit on held-out trajectories over each method that "
            "does not use them, with 95 % intervals. Hollow grey dots are no clear difference."
        )
        shown += draw_figure("use", gains, folder, caption, small=True)
    return shown


def lead(record: FitRecord) -> str:
    """Describe in two sentences what was fitted, whether it converged, and how well it predicts."""
    model, mdp = record.model, record.model.mdp_
    kinds = [f"{n:,} {one_line(kind)}" for kind, n in record.counts.items() if kind in ("expert", "unlabelled")]
    data = f" to {' and '.join(kinds)} trajectories" if kinds else ""
    of = "steps" if mdp.state_action else "states"
    first = (
        f"{describe_model(model)[0]} was fitted{data}, in a problem of {count_with_noun(mdp.n_states, 'state')}, "
        f"{count_with_noun(mdp.n_actions, 'action')} and {count_with_noun(mdp.n_features, 'feature')} of {of}."
    )
    end = "converged" if model.converged_ else "stopped before it converged,"
    steps = getattr(model, "n_iter_", None)
    second = f"It {end.rstrip(',')}" if steps is None else f"It {end} after {count_with_noun(steps, 'iteration')}"
    method, *baselines = record.scores or [Score("", "", None, None)]
    if method.held_out is not None and np.isfinite(method.held_out):
        tests = f"the {record.counts['test']:,} " if "test" in record.counts else ""
        second += f", and gives {tests}held-out trajectories {score(method.held_out, 3)} nats per step"
        known = [b for b in baselines if b.held_out is not None and np.isfinite(b.held_out)]
        if known and record.verdict is None:
            value, best = max((float(b.held_out or 0.0), shorten(b.name)) for b in known)
            second += f"; the best baseline, {best}, gives {score(value, 3)}"
    return f"{first} {second}."


def _check(record: FitRecord) -> None:
    if not hasattr(record.model, "mdp_"):
        raise ValueError("the model of the record is not fitted. Call fit before writing a report.")
    n = record.model.mdp_.n_states
    if record.xy is not None and np.shape(record.xy) != (n, 2):
        raise ValueError(
            f"xy has shape {np.shape(record.xy)}. It must have one pair of coordinates for each of the {n} states."
        )


def _scores(record: FitRecord, folder: Path) -> list[Html]:
    out: list[Html] = []
    if record.verdict is not None:
        out.append(tag("p", link_terms(as_sentence(record.verdict.sentence))))
    if record.scores:
        caption = (
            f"Scores. {shorten(record.scores[0].name)} (blue) and the baselines: the mean log-probability of the "
            "observed choices, over all steps."
        )
        if record.verdict is not None:
            caption += (
                f" Intervals in the table are of the difference from {record.verdict.alone}, fitted to the experts "
                "only, paired by trajectory. Each is of one comparison: the best of many methods looks slightly better "
                "than it is."
            )
        if all(score.held_out is None for score in record.scores):
            caption += (
                " These are the trajectories that the methods were fitted to, so the scores show how closely each "
                "method follows them, not how well it predicts. Hold some trajectories out, or use messirl select."
            )
        if fit_figures.far_below(record.scores):
            caption += " Scores far below the rest are written at the left edge; −∞: an observed choice is impossible."
        out += draw_figure("scores", partial(fit_figures.scores_figure, record.scores), folder, caption, small=True)
        out.append(tables.scores_table(record.scores))
    if record.statistics:
        out += [tag("h3", "Statistics of the fit"), tables.statistics_table(record.statistics)]
    return out


def _weights(record: FitRecord, folder: Path) -> list[Html]:
    d = record.model.theta_.size
    caption = ["Weights. Orange bars raise the reward, purple ones lower it."]
    if d > fit_figures.MOST_FEATURES:
        caption.append(f"The {fit_figures.MOST_FEATURES} largest of {d:,} are drawn.")
    if np.isfinite(record.half_widths()).any():
        caption.append(
            "Lines are 95 % intervals by robust standard errors and Student’s t. Those of hollow bars include zero."
        )
    if record.at_bound:
        caption.append(f"{record.at_bound:,} of {d:,} are at the bound ±{record.model.theta_max:g}.")
    picture = draw_figure("weights", partial(fit_figures.weights_figure, record), folder, " ".join(caption), small=True)
    penalised = record.estimates is not None and record.model.quadratic_ is not None
    remark = [tag("p", link_terms(PENALISED))] if penalised else []
    asked = [tables.ratios_table(record), tables.tests_table(record)]
    plain = tables.preferences_table(record.preferences)
    return [*picture, *remark, tables.estimates_table(record), plain, *asked]


def _maps(record: FitRecord, folder: Path) -> list[Html]:
    if not record.states_on_map.size:
        return []
    caption = ["Maps. The reward of every state, and how often the fitted policy is expected to visit it."]
    mdp, visits = record.model.mdp_, record.model.visitation_
    if mdp.state_action:
        of_moves = "Rewards are of transitions: each colours the half of its line next to the state that it leaves."
        caption.append(
            of_moves if maps.colours_transitions(record) else "The reward of a state is the mean over its actions."
        )
    unmet, undefined = int((visits == 0).sum()), int((~np.isfinite(record.model.reward_)).sum())
    if widely_spread(visits) and not record.on_a_line:
        caption.append("Visits have a logarithmic scale.")
    if unmet:
        caption.append(f"Grey states have no expected visits: {unmet:,} of {mdp.n_states:,}.")
    if undefined or not np.isfinite(visits).all():
        caption.append("States without a finite value are grey.")
    missing = mdp.n_states - record.states_on_map.size
    if missing and not record.laid_out:
        caption.append(f"Without coordinates and left out: {count_with_noun(missing, 'state')}.")
    if mdp.transitions.nnz > MOST_TRANSITIONS and not plot.on_grid(np.asarray(record.xy)[record.states_on_map]):
        caption.append("There are too many transitions to draw.")
    caption += map_words(record)
    spots: list[HoverArea] = []
    out = add_tooltips(draw_figure("maps", partial(maps.maps_figure, record, spots), folder, " ".join(caption)), spots)
    spots = []
    said = "Trajectories. One line per trajectory, slightly offset from the others; a dot marks its start."
    make = partial(maps.tracks_figure, record, spots)
    half = len(record.tracks) == 1 and not record.on_a_line and not BaseMap(record).broad
    return out + add_tooltips(draw_figure("tracks", make, folder, said, half=half), spots)


def map_words(record: FitRecord) -> list[str]:
    """Return caption sentences for all maps of a fit: the direction of y, marks and names."""
    if record.on_a_line:
        return []
    out, model, n = [], record.model, record.states_on_map.size
    if record.laid_out:
        of = "" if n == model.mdp_.n_states else f" for the {count_with_noun(n, 'state')} that the experts visit"
        out.append(
            f"The states have no coordinates. The layout is computed from the transitions{of}: neighbouring states are "
            "near each other, and directions mean nothing."
        )
    elif record.y_down:
        out.append("y grows downwards, as set in problem.json.")
    else:
        out.append('y grows upwards; "y_axis": "down" in problem.json inverts the map.')
    begins = int((np.asarray(model.start_) > 0).sum())
    if begins > MARKED:
        out.append(f"Trajectories begin in {begins:,} states, which are not marked.")
    ends = int(model.mdp_.terminal.sum()) if model.goals_ is None else len(model.goals_)
    if ends > MARKED:
        out.append(f"Trajectories end in {ends:,} states, which are not marked.")
    if n <= SPOTS:
        out.append("The most visited states are labelled; point at any state to see its name and values.")
    else:
        out.append("The most visited states are labelled.")
    return out


def _policy(record: FitRecord, folder: Path) -> list[Html]:
    which = _which(record)
    of_moves = record.model.mdp_.state_action
    colours = f"Colours are the reward{', the mean over the actions of a state' if of_moves else ''}."
    if record.on_a_line:
        caption = f"Policy{which}. The probability of each action along the line of states."
    elif record.states_on_map.size > maps.ARROWS**2:
        caption = (
            f"Policy{which}. Each part of the map has one arrow, from its most visited state along the most likely "
            f"transition: the longer and thicker, the more likely. A ring means staying. {colours}"
        )
    else:
        caption = (
            f"Policy{which}. There is an arrow along every transition with a probability of at least 0.1: the longer "
            f"and thicker, the more likely. A ring means staying. {colours}"
        )
    spots: list[HoverArea] = []
    half = not record.states_on_map.size or not (record.on_a_line or BaseMap(record).broad)
    return [
        *add_tooltips(
            draw_figure("policy", partial(maps.policy_figure, record, spots), folder, caption, half=half), spots
        ),
        tag("p", f"The most visited states, and the policy there{which}:"),
        tables.policy_table(record),
    ]


def _which(record: FitRecord) -> str:
    """Return the step or the goal that the policy is shown for, in words."""
    if record.towards is not None:
        return f" towards {shorten(record.called('state', record.towards))}"
    return "" if record.model.mdp_.first_step is None else " at the first step"
