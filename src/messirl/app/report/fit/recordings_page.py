"""Page of a fit to recordings with vector states: the experts' reward, and how well they are predicted."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import plot
from messirl._types import Floats
from messirl.app.report.common.axes import BLUE, INK, panels
from messirl.app.report.common.feature_labels import name_html, shorten
from messirl.app.report.common.html_page import draw_figure, opening, rerun, write_page, written_with
from messirl.app.report.common.interval_plot import BETTER, SMALL, gains_figure
from messirl.app.report.common.markup import Html, row, table, tag
from messirl.app.report.common.number_format import count_with_noun, rounded, score
from messirl.app.report.fit import fit_figures, tables
from messirl.app.report.fit.verdict_figures import contributions_figure, spread_figure
from messirl.app.workflow.fit_recordings import SAME, RecordingsRecord
from messirl.app.workflow.ranking import ranked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6  # coordinates drawn at most
DOTS = 4000  # states drawn at most, evenly spaced
TRACKS = 12
NOTHING = 1e-12  # of the largest weight; smaller weights are rounding errors
DYNAMICS = (
    "The dynamics were estimated from the recordings that are not held out. Intervals on this page do not include the "
    "error of this estimate. Nothing is known about the effect of an action where it was never tried."
)


def write_recordings_report(record: RecordingsRecord, out: Path) -> Path:
    """Draw the figures into out/figures, write out/report.html and return its path."""
    folder = out / "figures"
    dynamics = {name: str(value) for name, value in record.dynamics.items()}
    parts = {
        "scores": ("Scores", _scores(record, folder)),
        "reward": ("Reward by coordinate", _reward(record, folder)),
        "weights": ("Weights", [_weights(record)]),
        "convergence": ("Convergence", fit_figures.convergence(record, folder)),
        "dynamics": ("Dynamics", [tag("p", DYNAMICS), tables.words_table(dynamics)]),
        "settings": ("Settings", [tables.words_table(record.settings), written_with("environment")]),
        "rerun": ("How to run it again", rerun(record.command)),
    }
    first = opening(record.in_words, _pictures(record, folder), lead(record), record.warnings)
    return write_page(out / "report.html", record.title, record.scores[0].name, first, parts)


def lead(record: RecordingsRecord) -> str:
    """Describe what was fitted, and how well it predicts."""
    model = record.model
    kinds = [f"{n:,} {kind}" for kind, n in record.counts.items() if kind != "test"]
    end = "converged" if model.converged_ else "stopped before it converged,"
    said = (
        f"{record.scores[0].name} was fitted to {' and '.join(kinds)} trajectories of "
        f"{count_with_noun(record.dynamics['transitions'], 'step')}, with states of "
        f"{count_with_noun(model.n_features_in_, 'number')} and "
        f"{count_with_noun(model.n_actions_, 'action')}. It {end} after {count_with_noun(model.n_iter_, 'iteration')}"
    )
    held_out = record.scores[0].held_out
    if held_out is None:
        return f"{said}."
    return f"{said}, and gives the {record.counts['test']:,} held-out trajectories {score(held_out, 3)} nats per step."


def _pictures(record: RecordingsRecord, folder: Path) -> list[Html]:
    """Draw the reward over one or two coordinates, else contributions, and the gain on held-out trajectories."""
    none = np.full(record.model.theta_.size, np.nan)
    where = partial(reward_figure, record) if record.model.n_features_in_ <= 2 else None
    wants = partial(contributions_figure, record.aims, record.model.theta_, record.spreads, none, none)
    if where is None:
        caption = "Weights of the experts. The contribution of each feature. These estimates have no intervals."
        shown = draw_figure("wants", wants, folder, caption, small=True)
    else:
        caption = f"Reward of the experts. {_told(record)} These estimates have no intervals."
        shown = draw_figure("reward", where, folder, caption, small=True)
    if record.without:
        beyond = [] if record.beyond is None else [(SAME, record.beyond)]
        gains = partial(gains_figure, [*record.without.items(), *beyond, *_chance(record)], BETTER)
        between = ", a reward from the experts only with dynamics from all recordings," if beyond else ""
        caption = (
            "Did the unlabelled trajectories help? The gain of the fit on held-out trajectories over its "
            f"alternatives, with 95 % intervals: the same fit to the experts only{between} and chance. Hollow grey "
            "dots are no clear difference."
        )
        shown += draw_figure("use", gains, folder, caption, small=True)
    elif record.gain is not None:
        caption = (
            "Better than chance? How much better the fit predicts each held-out trajectory than chance does. The mark "
            "above the bars is the mean over all steps, with its 95 % interval."
        )
        shown += draw_figure(
            "chance", partial(spread_figure, record.each, record.gain, BETTER), folder, caption, small=True
        )
    return shown


def _chance(record: RecordingsRecord) -> list[tuple[str, Any]]:
    return [] if record.gain is None else [("uniform policy", record.gain)]


def _told(record: RecordingsRecord) -> str:
    """Describe the figure of the reward."""
    if record.model.n_features_in_ == 1:
        return "The reward over the coordinate of the states and, below, the number of visits of the experts."
    return (
        f"Colours are the reward of recorded states; lines are the trajectories of {_some(record)}. Squares are starts."
    )


def _some(record: RecordingsRecord) -> str:
    n, shown = record.counts["expert"], min(len(record.tracks), TRACKS)
    return "the experts" if n <= shown else f"the first {shown} of {n:,} experts"


def reward_figure(record: RecordingsRecord) -> Figure | None:
    """Draw the reward of recorded states: along a line, or on a plane with trajectories of experts."""
    at, called = np.column_stack([record.policy[name] for name in record.explained]), record.coordinates
    reward = np.asarray(record.policy["reward"])
    some = np.unique(np.linspace(0, len(at) - 1, min(len(at), DOTS)).astype(int))
    if at.shape[1] == 1:
        figure, (ax, below) = panels(SMALL, 2.6, 2, sharex=True, height_ratios=[3, 1])
        order = np.argsort(at[:, 0])
        ax.plot(at[order, 0], reward[order], color=BLUE)
        below.hist(np.concatenate(record.tracks)[:, 0], bins=30, color=INK, alpha=0.6)
        ax.set_ylabel("reward")
        below.set_ylabel("visits")
        below.set_xlabel(shorten(called[0], 30))
        return figure
    from matplotlib.ticker import MaxNLocator

    figure, ax = panels(SMALL, 3.1)
    plot.states(reward[some], at[some], ax, label="reward", diverging=bool(reward.min() < 0 < reward.max()), size=14.0)
    ax.set_aspect("auto")
    for track in record.tracks[:TRACKS]:
        ax.plot(track[:, 0], track[:, 1], color=INK, linewidth=0.7, alpha=0.6)
        ax.plot(*track[0, :2], "s", color=INK, markersize=5.5, markerfacecolor="white", zorder=5)
    for axis in (ax.xaxis, ax.yaxis):  # unlike maps, these axes have numbers
        axis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(shorten(called[0], 30))
    ax.set_ylabel(shorten(called[1], 30))
    return figure


def coordinates_figure(record: RecordingsRecord) -> Figure | None:
    """Draw the reward of recorded states over each of the coordinates that explain most of it."""
    reward = np.asarray(record.policy["reward"])
    if not any(record.explained.values()):
        return None
    order = ranked(np.array(list(record.explained.values())))[:MOST]
    columns, wide = list(record.explained), min(len(order), 3)
    figure, axes = panels(2.4 * wide, 1.9 * -(-len(order) // wide), -(-len(order) // wide), wide, squeeze=False)
    some = np.unique(np.linspace(0, len(reward) - 1, min(len(reward), DOTS)).astype(int))
    for ax, j in zip(axes.flat, order, strict=False):
        _over(ax, np.asarray(record.policy[columns[j]])[some], reward[some], shorten(record.coordinates[j], 30))
    for ax in axes.flat[len(order) :]:
        ax.set_visible(False)
    return figure


def _over(ax: Axes, x: Floats, reward: Floats, name: str) -> None:
    ax.plot(x, reward, ".", color=BLUE, markersize=2.5, alpha=0.5, rasterized=x.size > fit_figures.MANY)
    ax.set_xlabel(name)
    ax.set_ylabel("reward")


def _scores(record: RecordingsRecord, folder: Path) -> list[Html]:
    caption = (
        f"Scores. {record.scores[0].name} (blue) and its baselines: the mean log-probability of the observed "
        "choices, over all steps."
    )
    if record.without:
        caption += " Intervals in the table are of the difference from experts only, paired by trajectory."
    if record.scores[0].held_out is None:
        caption += " These are the trajectories that it was fitted to. Hold some out to see how well it predicts."
    picture = draw_figure("scores", partial(fit_figures.scores_figure, record.scores), folder, caption, small=True)
    return [*picture, tables.scores_table(record.scores)]


def _reward(record: RecordingsRecord, folder: Path) -> list[Html]:
    caption = "Reward by coordinate. The reward of recorded states over the coordinates that explain most of it."
    return draw_figure("coordinates", partial(coordinates_figure, record), folder, caption, half=True)


def _weights(record: RecordingsRecord) -> Html:
    theta = record.model.theta_
    theta = np.where(np.abs(theta) > NOTHING * np.abs(theta).max(initial=0.0), theta, 0.0)
    given = theta * record.spreads
    rows = [
        row(
            name_html(record.features[j]), name_html(record.aims[j]), rounded(float(theta[j])), rounded(float(given[j]))
        )
        for j in ranked(np.abs(given))[: tables.MOST_ROWS]
    ]
    return table([row("feature", "stands for", "weight θ", "contribution", head=True)], rows, "fit")
