"""`messirl fit`: fit a reward and a policy to a problem folder, and report on the fit."""

from __future__ import annotations

import argparse

from messirl._formatting import format_columns, format_nats, format_p_value, format_significant
from messirl._parameters import MODEL, SETTINGS
from messirl._text import count_noun
from messirl.app.cli._group_options import add_by, by_lines
from messirl.app.cli._options import (
    add_cluster,
    add_data,
    add_model,
    add_parameters,
    add_results,
    add_streamed,
    executor,
)
from messirl.app.cli._parser import (
    Parser,
    StoreOnce,
    count,
    finite,
    folder_name,
    not_negative,
    one_line,
    path,
    print_notes,
    problem_in,
    settings_from_options,
    trajectories_in,
)
from messirl.app.cli._table_file import table_writer
from messirl.estimators.registry import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

SHOWN = 20  # number of printed weights

DESCRIPTION = (
    "Learn the reward that experts maximise from the trajectories of a problem folder. Writes the model, its numbers "
    "(fit.json) and a report with figures, and compares the fit with simpler methods."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl fit`."""
    add_data(made)
    add_model(made, "em or another of the methods listed below")
    every = ", ".join(f"{method.option} ({method.label})" for method in METHODS.values())
    group = made.add_argument_group("parameters of single methods", f"The methods are: {every}.")
    add_parameters(group, [name for name, one in SETTINGS.items() if one not in MODEL])
    group = made.add_argument_group(
        "dynamics",
        "With estimated, the table of edges may be missing: transition probabilities are estimated from the "
        "trajectories outside --test. With fitted, FOLDER is a file of recordings with vectors as states (.npz, "
        ".parquet, .csv, .hdf5, or minari:ID), and WHICH may name trajectory_id, steps, terminated, return, and the "
        "columns of the table.",
    )
    group.add_argument(
        "--dynamics", choices=("known", "estimated", "fitted"), default="known", help="transition probabilities (known)"
    )
    group.add_argument("--prior", type=not_negative, help="with estimated: pseudo-counts of each action in a state (0)")
    group.add_argument("--discount", type=_discount, help="with fitted: discount factor γ, below 1 (required)")
    group.add_argument(
        "--grid", type=count, metavar="N", help="with fitted: features from N centres per coordinate (1, o, o²)"
    )
    add_streamed(made)
    add_cluster(made)
    group = made.add_argument_group(
        "inference",
        "For a fit to the experts only without a penalty (--method maxent), which has standard errors.",
    )
    group.add_argument(
        "--ratio",
        action="append",
        default=[],
        metavar="A/B",
        help="ratio of two weights with intervals; may be repeated",
    )
    group.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="A,B,…",
        help="likelihood-ratio test of these features, by a refit without them; may be repeated",
    )
    group.add_argument("--table", type=path, metavar="FILE", help="write the estimates as a table: .csv, .tex or .html")
    group.add_argument("--stars", action="store_true", help="mark significant estimates in the --table (.tex or .html)")
    group = made.add_argument_group("groups")
    add_by(group, "scores, and agreement of the unlabelled trajectories with the expert policy")
    group.add_argument(
        "--groups",
        action=StoreOnce,
        metavar="COLUMN",
        help="column of trajectory_meta that names individuals: robust errors and intervals are clustered by it",
    )
    made.add_argument(
        "--no-baselines", dest="baselines", action="store_false", help="do not fit simpler methods for comparison"
    )
    force = "an earlier result in --out, and the file of --table"
    add_results(made, "out/fit", "the model and fit.json", force)


def run(arguments: argparse.Namespace) -> int:
    """Fit a model to a problem folder or, with `--dynamics fitted`, to a file of recordings."""
    for option, kind in (("prior", "estimated"), ("discount", "fitted"), ("grid", "fitted")):
        if getattr(arguments, option) is not None and arguments.dynamics != kind:
            raise ValueError(
                f"--{option} has no effect with --dynamics {arguments.dynamics}: leave it out, or use --dynamics {kind}"
            )
    if arguments.unlabelled_from is not None and arguments.dynamics != "known":
        raise ValueError(f"--unlabelled-from needs --dynamics known, not {arguments.dynamics}: leave it out")
    if arguments.cluster is not None and arguments.unlabelled_from is None:
        raise ValueError("--cluster has no effect without --unlabelled-from, whose files it reads: leave it out")
    for option in ("ratio", "without", "table", "stars"):
        if getattr(arguments, option) and arguments.dynamics == "fitted":
            raise ValueError(f"--{option} needs standard errors, which --dynamics fitted does not have: leave it out")
    for option in ("by", "groups"):
        if getattr(arguments, option) is not None and arguments.dynamics == "fitted":
            raise ValueError(
                f"--{option} needs a problem folder and has no effect with --dynamics fitted: leave it out"
            )
    return _fit_recordings(arguments) if arguments.dynamics == "fitted" else _fit(arguments)


def _fit(arguments: argparse.Namespace) -> int:
    from dataclasses import replace
    from functools import partial

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.fitting import FitSettings, fit
    from messirl.app.workflow.split import Split
    from messirl.io.folder.labels import save_model

    options, estimate = vars(arguments), None
    options["errors"] = arguments.table is not None
    asked = {"force": arguments.force, "stars": arguments.stars, "page": arguments.out / "report.html"}
    write_table = table_writer(arguments.table, **asked)
    if arguments.dynamics == "estimated":
        from messirl.io.folder.unknown_dynamics import read_estimable

        found = read_estimable(arguments.folder)
        problem, estimate = print_notes(found.problem), partial(found.estimate, prior=arguments.prior or 0.0)
    else:
        problem = problem_in(arguments.folder)
    split, settings = settings_from_options(Split, options), settings_from_options(FitSettings, options)
    data: dict[str, Any] = {"folder": folder_name(arguments.folder), "estimate": estimate}

    def keep(model: Any, place: Path) -> None:
        save_model(model, place / "model.npz", problem)

    asked = {"report": arguments.report, "default": arguments.usual_out, "force": arguments.force}
    with Results.from_options(arguments.out, "fit.json", "model.npz", keep=keep, **asked) as out:
        with executor(arguments.cluster) as workers:
            data["streamed"] = trajectories_in(arguments.unlabelled_from, problem, workers)
            record = fit(problem, split, settings, out.watcher, **data)
        record = replace(record, title=arguments.folder.resolve().name, command=arguments.command)
        summary, written = record.summary(), {"model": arguments.out / "model.npz"}
        out.write_summary("fit.json", summary)
        if write_table is not None:
            written["table"] = write_table(record.table, record.ratios)
        if arguments.report:
            from messirl.app.report.fit.fit_page import write_fit_report

            write_fit_report(record, out.place)
            written["report"] = arguments.out / "report.html"
        known = record.preferences
        plain = None if known is None or not known.refitted else known.table
        return out.finish("fit.json", summary, text_of(summary, record.table, written, plain), json=arguments.json)


def _fit_recordings(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    import pyarrow as pa
    import pyarrow.parquet as pq

    from messirl._files import atomic_path
    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.fit_recordings import RecordingSettings, fit_recordings
    from messirl.app.workflow.split import Split
    from messirl.io.recording_sources import read_recordings

    options = vars(arguments)
    split, settings = settings_from_options(Split, options), settings_from_options(RecordingSettings, options)
    source = str(arguments.folder)
    asked = {"report": arguments.report, "default": arguments.usual_out, "force": arguments.force}
    with Results.from_options(arguments.out, "fit.json", "policy.parquet", **asked) as out:
        record = fit_recordings(*read_recordings(source), split, settings, out.watcher, folder=source)
        record = replace(record, title=source, command=arguments.command)
        summary, written = record.summary(), {"policy": arguments.out / "policy.parquet"}
        with atomic_path(out.place / "policy.parquet") as part:
            pq.write_table(pa.table(record.policy), part)
        if arguments.report:
            from messirl.app.report.fit.recordings_page import write_recordings_report

            write_recordings_report(record, out.place)
            written["report"] = arguments.out / "report.html"
        return out.finish("fit.json", summary, text_of(summary, None, written), json=arguments.json)


def text_of(summary: dict[str, Any], table: Any, files: dict[str, Path], plain: Any = None) -> str:
    """Return the text for the terminal: the fit, its weights, the scores, and the files written.

    table, plain : estimates of the fit, and of a fit to the experts only without its penalty; or None
    """
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    lines = [*map(one_line, summary["in_words"]), ""]
    steps = "" if summary["iterations"] is None else f"{count_noun(summary['iterations'], 'iteration')}, "
    lines += [f"{summary['method']} on {kinds}: {steps}{summary['termination']}", ""]
    if table is not None:
        lines += [str(table), "", *_ratios(summary["ratios"]), *_tests(summary["tests"])]
    else:
        lines += _weights(summary["theta"], summary.get("estimates"))
        if plain is not None:
            lines += ["Without the penalty, experts only:", *str(plain).splitlines(), ""]
    gains = [_gain(row.get("gain")) for row in summary["scores"]]
    wide = max(map(len, gains))
    over = f" {'over experts only':>{wide}}" if wide else ""
    lines += [f"{'expert':>10} {'held out':>10}{over}  log-probability per step"]
    for row, gain in zip(summary["scores"], gains, strict=True):
        remark = f"  ({row['note']})" if row["note"] else ""
        gained = f" {gain:>{wide}}" if wide else ""
        lines.append(f"{_score(row['expert'])} {_score(row['held_out'])}{gained}  {row['name']}{remark}")
    if all(row["held_out"] is None for row in summary["scores"]):
        lines.append("  (in-sample scores do not compare methods: hold out trajectories with --test)")
    if summary.get("verdict") is not None:
        lines += ["", summary["verdict"]["sentence"]]
    if summary.get("by"):
        lines += ["", *by_lines(summary["by"])[:-1]]
    lines += ["", *(f"{name + ':':<8}{place}" for name, place in files.items())]
    return "\n".join(lines)


def _weights(theta: dict[str, float], estimates: list[dict[str, Any]] | None) -> list[str]:
    """Format the largest weights, with their robust errors if available."""
    if not theta:
        return []
    largest = sorted(theta.items(), key=lambda item: -abs(item[1]))
    columns = {"weight": format_significant(value for _, value in largest[:SHOWN])}
    if estimates is not None:
        errors = {row["name"]: row["robust_std_error"] for row in estimates}
        columns["robust se"] = format_significant(errors[name] for name, _ in largest[:SHOWN])
    wide = {head: max([10, len(head), *map(len, texts)]) for head, texts in columns.items()}
    heads = "  ".join(f"{head:>{wide[head]}}" for head in columns)
    lines = [
        "  ".join(f"{text:>{w}}" for text, w in zip(row, wide.values(), strict=True))
        for row in zip(*columns.values(), strict=True)
    ]
    more = [f"{'':>{len(heads)}}  … and {len(largest) - SHOWN} more" if len(largest) > SHOWN else ""]
    named = zip(lines, largest, strict=False)
    return [f"{heads}  feature", *(f"{line}  {one_line(name)}" for line, (name, _) in named), *more]


def _ratios(rows: list[dict[str, Any]]) -> list[str]:
    """Format ratios with their errors and both intervals, in columns."""
    if not rows:
        return []
    columns = {
        "value": format_significant(row["value"] for row in rows),
        "robust se": format_significant(row["robust_std_error"] for row in rows),
        "95 % interval": [_interval(row["low"], row["high"]) for row in rows],
        "Fieller's": [_interval(row["fieller_low"], row["fieller_high"]) for row in rows],
    }
    return [*format_columns(["ratio", *(one_line(row["name"]) for row in rows)], columns), ""]


def _interval(low: float, high: float) -> str:
    return "[" + ", ".join(text.strip() for text in format_significant([low, high])) + "]"


def _tests(rows: list[dict[str, Any]]) -> list[str]:
    """Format one sentence per likelihood-ratio test."""
    lines = []
    for row in rows:
        degrees = f"{row['degrees']} degree{'s' if row['degrees'] > 1 else ''} of freedom"
        without = one_line(", ".join(row["without"]))
        lines.append(
            f"without {without}: likelihood ratio {row['statistic']:.5g} on {degrees}, p {format_p_value(row['p'])}"
        )
    return [*lines, ""] if lines else []


def _score(value: float | None) -> str:
    return f"{'-' if value is None else format_nats(value):>10}"


def _gain(found: dict[str, float] | None) -> str:
    """Format a difference with its 95 % interval, if it has one."""
    if found is None:
        return ""
    mean, low, high = (format_nats(found[name], signed=True) for name in ("mean", "low", "high"))
    if mean == "nan":
        return "undefined"
    return f"{mean} [{low}, {high}]" if low != "nan" else mean


def _discount(text: str) -> float:
    return finite(text, lambda x: 0 < x < 1, "a number > 0 and < 1")
