"""`messirl select`: the strength of the penalty, chosen by the experts' own held-out trajectories."""

from __future__ import annotations

import argparse

from messirl._defaults import AIM, CV, OBJECTIVE, REFERENCE_STRENGTH, THETA_MAX
from messirl._numbers import nats, significant
from messirl.cli.common import Parser, add_with_default, count, filled, not_negative, path, positive, problem_in
from messirl.cli.options import add_data, add_objective

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

REPEATED = {  # in the next commands too, where they are not what is taken anyway
    **dict.fromkeys(("expert", "unlabelled", "test", "n_expert", "n_unlabelled", "features", "reference")),
    "objective": OBJECTIVE,
    "reference_strength": REFERENCE_STRENGTH,
    "seed": 0,
    "theta_max": THETA_MAX,
}

DESCRIPTION = (
    "Choose how strongly to use the unlabelled trajectories, or not at all: MESSI at several strengths beside no "
    "penalty, L2, the complete graph and pooling, each judged on expert trajectories it has not seen. Writes the "
    "chosen model, its numbers (select.json) and a figure."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl select`."""
    add_data(made)
    group = made.add_argument_group("choice")
    group.add_argument(
        "--aim",
        choices=("imitation", "prediction"),
        default=AIM,
        help="imitation: never what may lose against no penalty; prediction: the best held-out score (imitation)",
    )
    add_with_default(group, "--cv", count, CV, "folds; few experts go one by one", "K")
    group.add_argument("--groups", metavar="COLUMN", help="hold out whole groups: a column of trajectory_meta")
    group.add_argument("--lambdas", type=_strengths, metavar="A,B,…", help="the strengths to choose from")
    group.add_argument("--nested", action="store_true", help="also an honest score of the whole procedure (slow)")
    group.add_argument("--bootstrap", type=count, metavar="N", help="95 %% intervals of θ from N resamples")
    add_with_default(group, "--theta-max", positive, THETA_MAX, "bound on every weight")
    add_objective(group)
    group.add_argument("--features", metavar="A,B,…", help="only these features (default: all)")
    made.add_argument("--out", type=path, default="out/select", help="folder of the results (out/select)")
    made.add_argument("--json", action="store_true", help="print select.json instead of a summary")


def run(arguments: argparse.Namespace) -> int:
    """Choose the method and its strength by held-out experts; write the chosen model and a summary."""
    from dataclasses import replace

    from messirl.cli.results import Results
    from messirl.io.folder.labels import save_model
    from messirl.report.fit.selection_figures import gains_figure
    from messirl.report.kit.images import render
    from messirl.workflow.select import SelectSettings, select
    from messirl.workflow.split import Split

    options, problem, place = vars(arguments), problem_in(arguments.folder), arguments.out / "model.npz"
    files = ("select.json", "model.npz")
    out = Results(arguments.out, files, True, lambda model: save_model(model, place, problem))
    split, settings = filled(Split, options), filled(SelectSettings, options)
    record = select(problem, split, settings, out.watcher, folder=str(arguments.folder))
    summary = replace(record, command=arguments.command).summary()
    if summary["chosen"] is None:
        text = _stability_text(arguments.out, summary)
    else:
        image = render("gains", lambda: gains_figure(record), arguments.out / "figures")
        summary["next"] = _next(arguments, summary["chosen"])
        text = text_of(arguments.out, summary, drawn=image is not None)
    return out.finish("select.json", summary, text, json=arguments.json)


def _next(arguments: argparse.Namespace, chosen: dict[str, Any]) -> list[str]:
    """Commands to run next with what was chosen."""
    import shlex

    saved, folder = shlex.quote(str(arguments.out / "model.npz")), shlex.quote(str(arguments.folder))
    given = {name: getattr(arguments, name) for name, usual in REPEATED.items() if getattr(arguments, name) != usual}
    shown = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in given.items()}
    words = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in shown.items()]
    data = " ".join([folder, *words])
    if chosen["method"] == "MESSI":
        out = [f"messirl fit {data} --lambda0 {chosen['lambda0']:g}"]
    elif chosen["method"] == "MaxEnt":
        out = [f"messirl fit {data} --method maxent"]
    else:
        out = [f"messirl show {saved}"]
    if arguments.unlabelled is not None:
        out.append(f"messirl diagnose {data}" + (f" --lambda0 {chosen['lambda0']:g}" if chosen["lambda0"] else ""))
    if arguments.test is not None:
        out.append(f"messirl evaluate {saved} {folder} --test {shlex.quote(arguments.test)}")
    return out


def text_of(out: Path, summary: dict[str, Any], *, drawn: bool) -> str:
    """The summary for the terminal: every candidate with its score, the chosen one, and why it was chosen."""
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    chosen = summary["chosen"]
    lines = [f"{kinds}; {summary['splits']} splits of the expert's", ""]
    lines += [f"  {'score':>9} {'calibrated':>11} {'gain':>9} ± {'se':<7}  candidate"]
    for i, row in enumerate(summary["candidates"]):
        mark = "*" if i == chosen["index"] else " "
        gain = f"{nats(row['gain'], signed=True):>9} ± {nats(row['gain_se']):<7}" if i else f"{'':19}"
        lines.append(f"{mark} {nats(row['score']):>9} {nats(row['calibrated']):>11} {gain}  {row['candidate']}")
    lines += ["", f"chosen: {chosen['candidate']}", f"because: {summary['reason']}"]
    if summary["verdict"] is not None:
        lines.append(f"diagnosis: the unlabelled trajectories {summary['verdict']}")
    if summary["likeness"] is not None:
        like = summary["likeness"]
        lines.append(
            f"likeness: held-out experts {nats(like['expert'], 3, signed=True)}, unlabelled "
            f"{nats(like['unlabelled'], 3, signed=True)} nats a step over chance; {like['alike']} of "
            f"{summary['trajectories']['unlabelled']} are above zero"
        )
    if summary["held_out"] is not None:
        lines.append(f"held out: {nats(summary['held_out'])} nats a step on the test trajectories")
    if "nested" in summary:
        nested = summary["nested"]
        lines.append(f"nested: {nats(nested['mean'])} ± {nats(nested['standard_error'])} nats a step, choice included")
    if "intervals" in summary:
        lines += ["", *_interval_lines(summary["theta"], summary["intervals"])]
    lines += ["", f"model:  {out / 'model.npz'}"]
    lines += [f"figure: {out / 'figures' / 'gains.png'}"] if drawn else []
    lines += ["next:", *(f"  {command}" for command in summary["next"])]
    return "\n".join(lines)


def _interval_lines(theta: dict[str, float], intervals: dict[str, list[float]]) -> list[str]:
    weights = significant(theta[name] for name in intervals)
    low, high = (significant(ends[i] for ends in intervals.values()) for i in (0, 1))
    width = len(low[0]) + len(high[0]) + 4
    rows = zip(weights, low, high, intervals, strict=True)
    return [
        f"{'weight':>10}  {'95 % interval':^{width}}  feature",
        *(f"{weight:>10}  [{a}, {b}]  {name}" for weight, a, b, name in rows),
    ]


def _stability_text(out: Path, summary: dict[str, Any]) -> str:
    lines = [f"nothing is chosen. {summary['reason'][0].upper()}{summary['reason'][1:]}.", ""]
    lines += [f"{'λ0':>8}  {'spread':>8}  of the policy over halves of the unlabelled trajectories"]
    spreads = significant(row["spread"] for row in summary["stability"])
    lines += [f"{row['lambda0']:8g}  {spread:>8}" for row, spread in zip(summary["stability"], spreads, strict=True)]
    lines += [
        "",
        "A spread near zero is stable, which is not to say right; a large one hangs on who happened to be there.",
    ]
    lines += [f"numbers: {out / 'select.json'}"]
    return "\n".join(lines)


def _strengths(text: str) -> tuple[float, ...]:
    return tuple(not_negative(word) for word in text.split(","))
