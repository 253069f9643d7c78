"""The work of `messirl fit`."""

from __future__ import annotations

import argparse
import shlex
import warnings
from pathlib import Path
from typing import Any

from messirl import __version__
from messirl._defaults import THETA_MAX
from messirl._numbers import nats, significant
from messirl.cli.common import as_json, note, one_line, say
from messirl.cli.model import make_model, make_similarity, with_features
from messirl.cli.reading import Data, read_data
from messirl.cli.results import begin
from messirl.cli.watching import watched
from messirl.estimators import MESSI
from messirl.estimators.methods import BASELINES, METHODS, method_of
from messirl.evaluation import estimation_table, next_state_accuracy
from messirl.evaluation.comparison import below_chance, compare
from messirl.io.folder.labels import save_model
from messirl.report.fit.page import write_fit_report
from messirl.report.fit.record import FitRecord, Score


def fit(arguments: argparse.Namespace) -> int:
    dynamics: dict[str, Any] = {"kind": "known"}
    if arguments.dynamics == "estimated":
        from messirl.cli.dynamics import evidence, read_estimated

        data, estimated = read_estimated(arguments)
        dynamics = evidence(estimated)
        for line in dynamics["report"]:
            say(f"messirl: dynamics: {line}")
    else:
        data = read_data(arguments)
    mdp = with_features(data.problem.mdp, arguments.features)
    model = make_model(arguments, data.unlabelled is not None)
    page_too = () if arguments.no_report else ("report.html",)
    out = begin(arguments.out, ("fit.json", "model.npz", *page_too), draws=not arguments.no_report)
    both = (data.expert,) if data.unlabelled is None else (data.expert, data.unlabelled)
    notes = watched(model, arguments.max_iter, mdp, *both)
    save_model(model, arguments.out / "model.npz", data.problem)

    with warnings.catch_warnings():  # what is to be said of the data was said above
        warnings.simplefilter("ignore")
        scores = [_score(model, data)]
        if not arguments.no_baselines:
            scores += _baselines(arguments, mdp, data, model)
        table = _table(model, data)
        odd = below_chance(model, data.expert)
    if odd is not None:
        note(odd)
        notes.append(odd)
    summary = {**_summary(arguments, model, data, scores, table, notes), "dynamics": dynamics}
    out.write_summary("fit.json", summary)
    page = None
    if not arguments.no_report:
        record = FitRecord(
            title=arguments.folder.resolve().name,
            model=model,
            xy=data.problem.xy,
            counts=data.counts,
            scores=[Score(**row) for row in scores],
            estimates=None if table is None else table.rows(),
            fit_statistics=summary["statistics"],
            settings=summary["settings"],
            command=summary["command"],
            warnings=[*notes, *(f"dynamics: {line}" for line in dynamics.get("report", ()))],
        )
        page = write_fit_report(record, arguments.out)
        out.write_summary("fit.json", summary)
    out.remark()
    files = {"model": arguments.out / "model.npz"} | ({} if page is None else {"report": page})
    print(as_json(summary) if arguments.json else text_of(summary, table, files))
    return 0


def _score(model: Any, data: Data) -> dict[str, Any]:
    method = method_of(model)
    return {
        "name": method.label,
        "fit_on": method.fitted_to,
        "expert": model.score(data.expert),
        "held_out": None if data.test is None else model.score(data.test),
        "note": "" if model.converged_ else f"did not converge: {model.termination_}",
    }


def _baselines(arguments: argparse.Namespace, mdp: Any, data: Data, model: Any) -> list[dict[str, Any]]:
    """The baselines at the strength of the options, whatever the method."""
    shared = {k: v for k, v in model.get_params(deep=False).items() if k in MESSI().get_params(deep=False)}
    shared |= {"similarity": make_similarity(arguments), "lambda0": arguments.lambda0}
    shared["theta_max"] = arguments.theta_max or THETA_MAX
    plain = method_of(model).inference and model.quadratic_ is None  # it is itself one of the baselines
    if not (plain and data.unlabelled is None):  # else there is nothing to compare with but chance
        say("messirl: fitting the baselines")
    others = [method for method in BASELINES if not (plain and method == method_of(model))]
    rows = compare(MESSI(**shared), mdp, data.expert, data.unlabelled, data.test, others)
    return [
        {
            "name": METHODS[row.name].label,
            "fit_on": METHODS[row.name].fitted_to,
            "expert": row.expert,
            "held_out": row.held_out,
            "note": "" if row.converged else "did not converge",
        }
        for row in rows
    ]


def _table(model: Any, data: Data) -> Any:
    """Standard errors where they mean what they say: of an unpenalised fit to several trajectories."""
    if len(data.expert) < 2 or model.quadratic_ is not None or not method_of(model).inference:
        return None
    return estimation_table(model, data.expert)


def _summary(
    arguments: argparse.Namespace, model: Any, data: Data, scores: list[dict[str, Any]], table: Any, notes: list[str]
) -> dict[str, Any]:
    names = model.mdp_.feature_names or [str(j) for j in range(model.mdp_.n_features)]
    settings = {k: str(v) for k, v in model.get_params(deep=False).items() if k not in ("callback", "theta_init")}
    statistics: dict[str, float] = {} if table is None else table.statistics()
    statistics["objective"] = model.objective_
    if data.test is not None:
        statistics["next-state accuracy, held out"] = next_state_accuracy(model, data.test)
    return {
        "folder": str(arguments.folder),
        "method": type(model).__name__,
        "trajectories": data.counts,
        "theta": dict(zip(names, model.theta_.tolist(), strict=True)),
        "held": model.standing_.names(model.mdp_),
        "converged": bool(model.converged_),
        "termination": model.termination_,
        "iterations": model.n_iter_,
        "scores": scores,
        "estimates": None if table is None else table.rows(),
        "statistics": statistics,
        "settings": settings,
        "warnings": notes,
        "version": __version__,
        "command": shlex.join(["messirl", *arguments.words]),
    }


def text_of(summary: dict[str, Any], table: Any, files: dict[str, Path]) -> str:
    """What is printed of a fit."""
    kinds = ", ".join(f"{n} {name}" for name, n in summary["trajectories"].items())
    lines = [f"{summary['method']} on {kinds}: {summary['iterations']} iterations, {summary['termination']}", ""]
    if table is not None:
        lines += [str(table), ""]
    else:
        largest = sorted(summary["theta"].items(), key=lambda item: -abs(item[1]))
        weights = significant(value for _, value in largest[:20])
        wide = max([10, *map(len, weights)])
        shown = zip(weights, largest, strict=False)
        lines += [f"{'weight':>{wide}}  feature", *(f"{value:>{wide}}  {one_line(name)}" for value, (name, _) in shown)]
        lines += [f"{'':>{wide}}  … and {len(largest) - 20} more" if len(largest) > 20 else ""]
    lines += [f"{'expert':>10} {'held out':>10}  log-probability a step"]
    for row in summary["scores"]:
        note = f"  ({row['note']})" if row["note"] else ""
        lines.append(f"{_number(row['expert'])} {_number(row['held_out'])}  {row['name']}{note}")
    if all(row["held_out"] is None for row in summary["scores"]):
        lines.append("  (of what they were fitted to, which compares no methods: hold some out with --test)")
    lines += ["", *(f"{name + ':':<8}{place}" for name, place in files.items())]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return f"{'-' if value is None else nats(value):>10}"
