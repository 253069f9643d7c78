"""`messirl select`: choose how to use the unlabelled trajectories, by held-out expert trajectories."""

from __future__ import annotations

import argparse
import math

from messirl._formatting import format_nats, format_nats_interval, format_significant
from messirl._parameters import CV, SHARED, WEAK_PRIOR, default
from messirl.app.cli._group_options import add_by, by_lines
from messirl.app.cli._options import add_cluster, add_data, add_parameters, add_results, add_streamed, executor
from messirl.app.cli._parser import (
    Parser,
    StoreOnce,
    add_with_default,
    at_least_two,
    count,
    folder_name,
    not_negative,
    one_line,
    problem_in,
    settings_from_options,
    trajectories_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

REPEATED = {  # options that the next commands repeat if they differ from these defaults
    **dict.fromkeys(
        ("expert", "unlabelled", "unlabelled_from", "test", "n_expert", "n_unlabelled", "features", "reference")
    ),
    **{name: default(name) for name in ("objective", "reference_strength", "theta_max")},
    "seed": 0,
}
DIAGNOSED = {"cv": CV, "groups": None, "by": None, "theta_prior": WEAK_PRIOR}  # the same for messirl diagnose only

DESCRIPTION = (
    "Choose whether, how and how strongly to use the unlabelled trajectories: MESSI, the complete graph, a prior "
    "policy, weighted pooling, or experts only. Each candidate is scored on held-out expert trajectories, and "
    "replaces a fixed default only if it is significantly better. Writes the chosen model, its numbers (select.json) "
    "and a report with figures."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl select`."""
    add_data(made)
    add_streamed(made)
    group = made.add_argument_group("choice")
    add_with_default(
        group, "--cv", count, CV, "folds of the cross-validation; up to 4 K experts are held out one by one", "K"
    )
    group.add_argument(
        "--groups",
        action=StoreOnce,
        metavar="COLUMN",
        help="column of trajectory_meta that names individuals: they are held out and resampled (--bootstrap) as a "
        "whole, and are the units of the intervals",
    )
    add_by(group, "also scores and agreement with the expert policy")
    group.add_argument("--lambdas", action=StoreOnce, type=_strengths, metavar="A,B,…", help="candidate values of λ0")
    group.add_argument(
        "--nested", action="store_true", help="also score the whole procedure by nested cross-validation (slow)"
    )
    group.add_argument(
        "--bootstrap", type=at_least_two, metavar="N", help="95 %% intervals of θ of the chosen fit, from N resamples"
    )
    add_parameters(group, SHARED, owner="MESSICV")
    group.add_argument("--features", action=StoreOnce, metavar="A,B,…", help="use only these features (all)")
    add_cluster(made)
    add_results(made, "out/select", "the model and select.json")


def run(arguments: argparse.Namespace) -> int:
    """Choose a method and its strength by held-out experts; write the chosen model, a report and a summary."""
    from dataclasses import replace

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.selecting import SelectSettings, select
    from messirl.app.workflow.split import Split
    from messirl.io.folder.labels import save_model

    options, problem = vars(arguments), problem_in(arguments.folder)
    split, settings = settings_from_options(Split, options), settings_from_options(SelectSettings, options)

    def keep(model: Any, place: Path) -> None:
        save_model(model, place / "model.npz", problem)

    asked = {"report": arguments.report, "default": arguments.usual_out, "force": arguments.force}
    with Results.from_options(arguments.out, "select.json", "model.npz", keep=keep, **asked) as out:
        with executor(arguments.cluster) as workers:
            streamed = trajectories_in(arguments.unlabelled_from, problem, workers)
            data = {"folder": folder_name(arguments.folder), "streamed": streamed, "executor": workers}
            record = select(problem, split, settings, out.watcher, **data)
        record = replace(record, title=arguments.folder.resolve().name, command=arguments.command)
        summary, written = record.summary(), {"model": arguments.out / "model.npz"}
        summary["next"] = _next(arguments, summary)
        out.write_summary("select.json", summary)
        if arguments.report:
            from messirl.app.report.fit.selection_page import write_selection_report

            write_selection_report(record, out.place)
            written["report"] = arguments.out / "report.html"
        plain = None if record.preferences is None else record.preferences.table
        text = text_of(summary, written, plain)
        return out.finish("select.json", summary, text, json=arguments.json)


def _next(arguments: argparse.Namespace, summary: dict[str, Any]) -> list[str]:
    """Return commands to run next with the chosen method."""
    import shlex

    saved, folder = shlex.quote(str(arguments.out / "model.npz")), shlex.quote(str(arguments.folder))
    data = " ".join([folder, *_given(arguments, REPEATED)])
    groups = _given(arguments, {"groups": None})
    out = [" ".join(["messirl fit", data, *groups, _knobs(summary["chosen"])])]
    if summary["use"] is not None:  # otherwise there are no held-out experts to diagnose with
        out.append(" ".join(["messirl diagnose", data, *_given(arguments, DIAGNOSED)]))
    if arguments.test is not None:
        out.append(f"messirl evaluate {saved} {folder} --test {shlex.quote(arguments.test)}")
    return out


def _given(arguments: argparse.Namespace, usual: dict[str, Any]) -> list[str]:
    """Return the options that differ from their defaults, as words of a command."""
    import shlex

    given = {name: getattr(arguments, name) for name, value in usual.items() if getattr(arguments, name) != value}
    shown = {k: "none" if v is None else f"{v:g}" if isinstance(v, float) else str(v) for k, v in given.items()}
    return [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in shown.items()]


def _knobs(chosen: dict[str, Any]) -> str:
    """Return the options of `messirl fit` for the chosen candidate."""
    own = chosen["parameters"]
    prior = [] if own["theta_prior"] is None else [f"--theta-prior {own['theta_prior']:g}"]
    if chosen["method"] in ("MESSI", "Complete"):
        words = ["--similarity complete"] if chosen["method"] == "Complete" else []
        return " ".join([*words, f"--lambda0 {own['lambda0']:.6g}", *prior])
    words = ["--method maxent"] + ([f"--ridge {own['ridge']:.6g} --standardise"] if own["ridge"] else [])
    words += [f"--unlabelled-weight {chosen['weight']:g}"] if chosen["weight"] else []
    if chosen["strength"] is not None:
        words.append(f"--reference unlabelled --reference-strength {chosen['strength']:g}")
    return " ".join([*words, *prior])


def text_of(summary: dict[str, Any], files: dict[str, Path], plain: Any = None) -> str:
    """Return the text for the terminal: the best candidate of every method, the choice and its reasons.

    plain : estimates of a fit to the experts only without the penalty, or None
    """
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    chosen, every = summary["chosen"], summary["candidates"]
    lines = [*map(one_line, summary["in_words"]), ""]
    lines += [f"{kinds}; {summary['units']} held out; {summary['seconds']:.1f} s", ""] if every else [kinds, ""]
    if every:
        lines += [f"  {'score':>9} {'gain':>9} {'95 % interval':^21}  best of each method, of {len(every)} candidates"]
        lines += [_row(every, i, chosen["index"], summary["default"]) for i in _shown(summary)]
    if summary["needed"] is not None:
        lines.append(f"about {summary['needed']:,} held-out experts would make a difference of this size significant")
    if summary["held_out"] is not None:
        lines.append(f"held out: {format_nats(summary['held_out'])} nats per step on the test trajectories")
    if "nested" in summary:
        nested = summary["nested"]
        lines.append(
            f"nested: {format_nats(nested['mean'])} ± {format_nats(nested['standard_error'])} nats per step, "
            "choice included"
        )
    if plain is not None:
        lines += ["", "Without the penalty, experts only:", *str(plain).splitlines()]
    if "intervals" in summary:
        lines += ["", *_interval_lines(summary["theta"], summary["intervals"])]
    if summary["by"]:
        from messirl.app.workflow.group_by import TOGETHER

        lines += ["", *by_lines(summary["by"])[:-1], TOGETHER.format(column=one_line(summary["by"][0]["column"]))]
    if "stability" in summary:
        lines += ["", *_stability_lines(summary["stability"])]
    lines += ["", *(f"{name + ':':<8}{place}" for name, place in files.items())]
    lines += ["next:", *(f"  {command}" for command in summary["next"])]
    return "\n".join(lines)


def _shown(summary: dict[str, Any]) -> list[int]:
    """Return the indices of the best candidate of every method, the chosen one and the default, in order."""
    every: list[dict[str, Any]] = summary["candidates"]
    best: dict[str, int] = {}
    for i, row in enumerate(every):
        if row["method"] not in best or row["score"] > every[best[row["method"]]]["score"]:
            best[row["method"]] = i
    return sorted({*best.values(), summary["chosen"]["index"], summary["default"]})


def _row(every: list[dict[str, Any]], i: int, chosen: int, default: int) -> str:
    row, mark = every[i], "*" if i == chosen else " "
    gain = f"{format_nats(row['gain'], signed=True):>9}" if i != default else f"{'default':>9}"
    known = i != default and math.isfinite(row["gain_low"])
    ends = format_nats_interval(row["gain_low"], row["gain_high"]) if known else ""
    return f"{mark} {format_nats(row['score']):>9} {gain} {ends:^21}  {row['candidate']}"


def _interval_lines(theta: dict[str, float], intervals: dict[str, list[float]]) -> list[str]:
    weights = format_significant(theta[name] for name in intervals)
    low, high = (format_significant(ends[i] for ends in intervals.values()) for i in (0, 1))
    width = len(low[0]) + len(high[0]) + 4
    rows = zip(weights, low, high, intervals, strict=True)
    return [
        "The chosen fit, penalty included, under resampling (not a test of any weight):",
        f"{'weight':>10}  {'95 % interval':^{width}}  feature",
        *(f"{weight:>10}  [{a}, {b}]  {name}" for weight, a, b, name in rows),
    ]


def _stability_lines(rows: list[dict[str, float]]) -> list[str]:
    spreads = format_significant(row["spread"] for row in rows)
    return [
        f"{'λ0':>8}  {'spread':>8}  of MESSI's policy over halves of the unlabelled trajectories",
        *(f"{row['lambda0']:8g}  {spread:>8}" for row, spread in zip(rows, spreads, strict=True)),
        "",
        "A spread near zero means a stable policy, not a correct one; a large one depends on the sampled trajectories.",
    ]


def _strengths(text: str) -> tuple[float, ...]:
    return tuple(not_negative(word) for word in text.split(","))
