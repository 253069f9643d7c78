"""`messirl diagnose`: report whether the unlabelled trajectories help MESSI, and which of them."""

from __future__ import annotations

import argparse
import math

from messirl._formatting import format_nats, format_significant, percentage, whole_per_cent
from messirl._parameters import CV, INFLUENTIAL
from messirl.app.cli._group_options import add_by, by_lines
from messirl.app.cli._options import add_cluster, add_data, add_model, add_results, add_streamed, executor
from messirl.app.cli._parser import (
    Parser,
    StoreOnce,
    add_with_default,
    count,
    folder_name,
    one_line,
    problem_in,
    settings_from_options,
    trajectories_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

DIRECTIONS, HEAVIEST = 6, 3  # printed directions of θ, and features per direction

DESCRIPTION = (
    "Fit MESSI as messirl fit does, and report whether the unlabelled trajectories help: all together, one by one "
    "(agreement with the expert policy and influence on the fit), and by direction of θ. Writes diagnosis.csv, "
    "diagnosis.json and a report with figures."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl diagnose`."""
    add_data(made)
    add_streamed(made)
    add_model(made)
    group = made.add_argument_group("diagnosis")
    add_with_default(
        group,
        "--influential",
        _count_or_none,
        INFLUENTIAL,
        "refit without each of the N trajectories with the largest share in the penalty",
        "N",
    )
    add_with_default(group, "--cv", count, CV, "folds of the cross-validation over experts", "K")
    group.add_argument(
        "--groups",
        action=StoreOnce,
        metavar="COLUMN",
        help="column of trajectory_meta whose groups are held out as a whole",
    )
    add_by(group, "also the gain from each group of unlabelled trajectories")
    add_cluster(made)
    add_results(made, "out/diagnosis", "diagnosis.csv and diagnosis.json")


def run(arguments: argparse.Namespace) -> int:
    """Diagnose the unlabelled trajectories of a problem folder; write a report, a table and a summary."""
    from dataclasses import replace

    from messirl.app.cli._output_dir import Results
    from messirl.app.workflow.diagnosis import DiagnoseSettings, diagnose
    from messirl.app.workflow.split import Split

    options, problem = vars(arguments), problem_in(arguments.folder)
    split, settings = settings_from_options(Split, options), settings_from_options(DiagnoseSettings, options)
    asked = {"report": arguments.report, "default": arguments.usual_out, "force": arguments.force}
    with Results.from_options(arguments.out, "diagnosis.json", "diagnosis.csv", **asked) as out:
        with executor(arguments.cluster) as workers:
            streamed = trajectories_in(arguments.unlabelled_from, problem, workers)
            data = {"folder": folder_name(arguments.folder), "streamed": streamed, "executor": workers}
            record = diagnose(problem, split, settings, out.watcher, **data)
        record = replace(record, title=arguments.folder.resolve().name, command=arguments.command)
        summary, written = record.summary(), {"table": arguments.out / "diagnosis.csv"}
        out.write_summary("diagnosis.json", summary)
        _write_table(record.rows(), out.place / "diagnosis.csv")
        if arguments.report:
            from messirl.app.report.fit.diagnosis_page import write_diagnosis_report

            write_diagnosis_report(record, out.place)
            written["report"] = arguments.out / "report.html"
        return out.finish("diagnosis.json", summary, text_of(record, summary, written), json=arguments.json)


def _write_table(rows: Iterator[dict[str, Any]], target: Path) -> None:
    import csv
    from itertools import chain

    from messirl._files import atomic_path

    with atomic_path(target) as part, open(part, "w", newline="", encoding="utf-8") as file:
        first = next(rows)
        writer = csv.DictWriter(file, list(first))
        writer.writeheader()
        for row in chain([first], rows):
            writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value: Any) -> Any:
    """Return a cell of the table: empty for NaN, and quoted if a spreadsheet would take it for a formula."""
    if isinstance(value, float) and math.isnan(value):
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def text_of(record: Any, summary: dict[str, Any], files: dict[str, Path]) -> str:
    """Return the text for the terminal: the verdict, its evidence, and the extreme trajectories."""
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    lines = [*map(one_line, summary["in_words"]), ""]
    lines += [
        f"{kinds}; verdict: {summary['verdict']}",
        *(f"  {t}" for t in summary["evidence"]),
        "",
    ]
    lines += [f"{'agreement':>10} {'95 % interval':^18} {'steps':>6} {'share':>8} {'influence':>10}  trajectory"]
    tables = [
        ("highest agreement with the expert policy, shrunk by length", "most_alike"),
        ("lowest agreement", "least_alike"),
        ("most influential", "most_influential"),
    ]
    if summary["agreement"]["between"] == 0.0:  # every value is the mean
        tables[:2] = [("agreement with the expert policy: trajectories do not differ by more than noise", "most_alike")]
    for title, key in tables:
        if summary[key]:
            lines.append(title)
        for row in summary[key]:
            moved = "-" if math.isnan(row["influence"]) else format_significant([row["influence"]], 3)[0]
            known = math.isfinite(row["agreement_low"]) and math.isfinite(row["agreement_high"])
            ends = (
                f"[{format_nats(row['agreement_low'], 3)}, {format_nats(row['agreement_high'], 3)}]" if known else "-"
            )
            value, share = format_nats(row["agreement"], 3, signed=True), percentage(row["share"])
            made = "-" if math.isnan(row["steps"]) else f"{row['steps']:,}"
            lines.append(f"{value:>10} {ends:^18} {made:>6} {share:>8} {moved:>10}  {row['trajectory_id']}")
    lines += ["", *by_lines(summary["by"])[:-1]] if summary["by"] else []
    lines += ["", f"the penalty leaves {summary['degrees_of_freedom']:.1f} of {summary['identified']}"]
    lines[-1] += " directions of θ to the experts; the most shrunk ones:"
    for d in record.diagnosis.directions[:DIRECTIONS]:
        made_of = "  ".join(
            f"{format_nats(weight, 2, signed=True)} {name}" for name, weight in d.largest(record.features, HEAVIEST)
        )
        lines.append(f"{whole_per_cent(d.shrinkage):>8}  {made_of}")
    return "\n".join([*lines, "", *(f"{name + ':':<8}{place}" for name, place in files.items())])


def _count_or_none(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= 0")
    return int(text)
