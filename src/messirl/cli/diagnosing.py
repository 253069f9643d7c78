"""The work of `messirl diagnose`."""

from __future__ import annotations

import argparse
import csv
import shlex
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from messirl import __version__
from messirl._files import beside
from messirl._numbers import nats, percentage, significant
from messirl.cli.common import as_json, say
from messirl.cli.model import make_model, with_features
from messirl.cli.reading import read_data
from messirl.cli.results import begin
from messirl.cli.selecting import groups_of
from messirl.cli.watching import watched
from messirl.diagnostics import diagnose
from messirl.estimators import MESSI
from messirl.report.fit.diagnosis import write_diagnosis_report
from messirl.report.fit.diagnosis_figures import most_influential, percent
from messirl.report.fit.record import Diagnosed
from messirl.report.kit.progress import Progress
from messirl.selection import NothingHeldOut

SHOWN = 5  # trajectories of each ranking
DIRECTIONS, HEAVIEST = 6, 3


def diagnosis(arguments: argparse.Namespace) -> int:
    data = read_data(arguments)
    if data.unlabelled is None:
        raise ValueError("there are no unlabelled trajectories to diagnose: say which they are with --unlabelled")
    mdp = with_features(data.problem.mdp, arguments.features)
    model = make_model(arguments, True)
    if not isinstance(model, MESSI):
        raise ValueError(f"--method {arguments.method} has no penalty to diagnose: leave --method out")
    groups = groups_of(arguments, data)
    ids = data.problem.trajectory_ids
    rows = data.rows["unlabelled"]
    names = [str(name) for name in (rows if ids is None else ids[rows])]
    features = list(mdp.feature_names or [f"feature {j}" for j in range(mdp.n_features)])
    out = begin(arguments.out, ("diagnosis.json", "diagnosis.csv", "diagnosis.html"), draws=True)
    notes = watched(model, arguments.max_iter, mdp, data.expert, data.unlabelled)
    say("messirl: what do held-out experts gain from them?")
    with Progress("leaving out", "trajectories") as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said of the data was said above
        try:
            found = diagnose(
                model,
                mdp,
                data.expert,
                data.unlabelled,
                influential=arguments.influential,
                cv=arguments.cv,
                groups=groups,
                aim=arguments.aim,
                random_state=arguments.seed,
                progress=progress,
            )
        except NothingHeldOut as why:
            raise ValueError(
                "one expert trajectory, which cannot be divided: nothing can be held out to judge the others by; give "
                "at least two with --expert"
            ) from why
    record = Diagnosed(found, names, features)
    summary = {
        "folder": str(arguments.folder),
        "trajectories": data.counts,
        **_summary(record),
        "settings": {k: str(v) for k, v in model.get_params(deep=False).items() if k not in ("callback", "theta_init")},
        "warnings": notes,
        "version": __version__,
        "command": shlex.join(["messirl", *arguments.words]),
    }
    out.write_summary("diagnosis.json", summary)
    _write_table(record, arguments.out / "diagnosis.csv")
    page = write_diagnosis_report(
        record,
        arguments.out,
        title=arguments.folder.resolve().name,
        lead=f"MESSI with λ0 = {model.lambda0:g} was fitted to {len(data.expert):,} expert and {len(names):,} "
        "unlabelled trajectories. Here is what the unlabelled ones did.",
        settings=summary["settings"],
        command=summary["command"],
        notes=notes,
    )
    out.write_summary("diagnosis.json", summary)
    out.remark()
    print(as_json(summary) if arguments.json else _text(record, summary, page))
    return 0


def _summary(record: Diagnosed) -> dict[str, Any]:
    found = record.diagnosis
    like = np.argsort(-found.likeness.unlabelled, kind="stable")
    n = min(SHOWN, max(len(record.ids) // 2, 1))  # nobody is in both
    return {
        "verdict": found.verdict,
        "evidence": found.evidence,
        "recommended": None
        if found.choice is None
        else {"candidate": str(found.choice.candidate), "reason": found.choice.reason},
        "expert_likeness": found.likeness.expert,
        "unlabelled_likeness": found.likeness.mean,
        "alike": int(found.likeness.alike.sum()),
        "degrees_of_freedom": found.degrees_of_freedom,
        "identified": found.identified,
        "most_alike": _some(record, like[:n]),
        "least_alike": _some(record, like[::-1][:n]),
        "most_influential": _some(record, most_influential(record)[:SHOWN]),
        "directions": [
            {"shrinkage": d.shrinkage, "features": dict(d.largest(record.features, len(record.features)))}
            for d in found.directions
        ],
    }


def _some(record: Diagnosed, which: Any) -> list[dict[str, Any]]:
    rows = record.diagnosis.rows()
    return [{"trajectory_id": record.ids[j], **rows[j]} for j in which]


def _write_table(record: Diagnosed, target: Path) -> None:
    with beside(target) as part, open(part, "w", newline="", encoding="utf-8") as file:
        rows = _some(record, range(len(record.ids)))
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:  # what was not measured is empty
            writer.writerow({k: "" if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()})


def _text(record: Diagnosed, summary: dict[str, Any], page: Path) -> str:
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    lines = [f"{kinds}: the unlabelled trajectories {summary['verdict']}", *(f"  {t}" for t in summary["evidence"]), ""]
    lines += [f"{'likeness':>10} {'share':>8} {'influence':>10}  trajectory"]
    for title, key in (
        ("most like the expert's", "most_alike"),
        ("least like the expert's", "least_alike"),
        ("most influential", "most_influential"),
    ):
        if summary[key]:
            lines.append(title)
        for row in summary[key]:
            moved = "-" if np.isnan(row["influence"]) else significant([row["influence"]], 3)[0]
            like, share = nats(row["likeness"], 3, signed=True), percentage(row["share"])
            lines.append(f"{like:>10} {share:>8} {moved:>10}  {row['trajectory_id']}")
    lines += ["", f"the penalty leaves the experts {summary['degrees_of_freedom']:.1f} of {summary['identified']}"]
    lines[-1] += " directions of θ; what it takes away most:"
    for d in record.diagnosis.directions[:DIRECTIONS]:
        made_of = "  ".join(
            f"{nats(weight, 2, signed=True)} {name}" for name, weight in d.largest(record.features, HEAVIEST)
        )
        lines.append(f"{percent(d.shrinkage):>8}  {made_of}")
    return "\n".join([*lines, "", f"page:  {page}", f"table: {page.parent / 'diagnosis.csv'}"])
