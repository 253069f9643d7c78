"""The work of `messirl select`."""

from __future__ import annotations

import argparse
import shlex
import warnings
from pathlib import Path
from typing import Any

from messirl import __version__
from messirl._defaults import THETA_MAX
from messirl._numbers import nats, significant
from messirl._words import did_you_mean
from messirl.cli.common import as_json, note, remarks, say
from messirl.cli.model import with_features
from messirl.cli.reading import Data, read_data
from messirl.cli.results import begin
from messirl.estimators import MESSI
from messirl.io.folder.labels import save_model
from messirl.report.fit.selection_figures import gains_figure
from messirl.report.kit.images import render, save
from messirl.report.kit.progress import Progress
from messirl.selection import LAMBDAS, MESSICV, NothingHeldOut, bootstrap, nested_score, stability

OPTIONS = ("expert", "unlabelled", "test", "n_expert", "n_unlabelled", "features")


def select(arguments: argparse.Namespace) -> int:
    data = read_data(arguments)
    mdp = with_features(data.problem.mdp, arguments.features)
    groups = groups_of(arguments, data)
    model = MESSICV(
        lambdas=arguments.lambdas or LAMBDAS,
        aim=arguments.aim,
        cv=arguments.cv,
        theta_max=arguments.theta_max,
        random_state=arguments.seed,
    )
    out = begin(arguments.out, ("select.json", "model.npz"), draws=True)
    summary: dict[str, Any] = {
        "folder": str(arguments.folder),
        "aim": arguments.aim,
        "trajectories": data.counts,
        "version": __version__,
        "command": shlex.join(["messirl", *arguments.words]),
    }
    try:
        with Progress("select", "fits") as progress, warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model.set_params(progress=progress).fit(mdp, data.expert, data.unlabelled, groups)
    except NothingHeldOut as why:
        if data.unlabelled is None:
            raise
        summary |= {"chosen": None, "reason": str(why), "stability": _stability(arguments, mdp, data)}
        out.write_summary("select.json", summary)
        out.remark()
        print(as_json(summary) if arguments.json else _stability_text(arguments, summary))
        return 0
    model.set_params(progress=None)
    summary["warnings"] = remarks(heard)
    for text in summary["warnings"]:
        note(text)
    save_model(model, arguments.out / "model.npz", data.problem)
    image = render("gains", lambda: gains_figure(model.validation_, model.choice_))
    if image is not None:
        save(image, arguments.out / "figures")
    summary |= _chosen(model, data)
    with warnings.catch_warnings():  # what is to be said of the data was said above
        warnings.simplefilter("ignore")
        if arguments.nested:
            summary["nested"] = _nested(model, mdp, data, groups)
        if arguments.bootstrap is not None:
            summary["intervals"] = _intervals(arguments, model, mdp)
    summary["next"] = _next(arguments, model)
    out.write_summary("select.json", summary)
    out.remark()
    print(as_json(summary) if arguments.json else _text(arguments.out, summary, drawn=image is not None))
    return 0


def groups_of(arguments: argparse.Namespace, data: Data) -> list[str] | None:
    """The group of every expert trajectory."""
    if arguments.groups is None:
        return None
    if arguments.groups not in data.problem.meta:
        known = ", ".join(data.problem.meta) or "none"
        close = did_you_mean(arguments.groups, data.problem.meta)
        raise ValueError(f"--groups {arguments.groups}: trajectory_meta has no such column; there are {known}{close}")
    return [str(value) for value in data.problem.meta[arguments.groups][data.rows["expert"]]]


def _chosen(model: MESSICV, data: Data) -> dict[str, Any]:
    names = model.mdp_.feature_names or [str(j) for j in range(model.mdp_.n_features)]
    like = model.likeness_
    return {
        "candidates": model.validation_.rows(),
        "splits": model.validation_.scores.shape[1],
        "chosen": {
            "index": model.choice_.index,
            "candidate": str(model.candidate_),
            "method": model.candidate_.method,
            "lambda0": model.candidate_.lambda0,
        },
        "reason": model.reason_,
        "verdict": model.verdict_,
        "likeness": None
        if like is None
        else {"expert": like.expert, "unlabelled": like.mean, "alike": int(like.alike.sum())},
        "expert": model.score(data.expert),
        "held_out": None if data.test is None else model.score(data.test),
        "converged": bool(model.converged_),
        "theta": dict(zip(names, model.theta_.tolist(), strict=True)),
    }


def _nested(model: MESSICV, mdp: Any, data: Data, groups: list[str] | None) -> dict[str, Any]:
    say("messirl: choosing anew for every outer split")
    found = nested_score(model, mdp, data.expert, data.unlabelled, groups)
    return {
        "mean": found.mean,
        "standard_error": found.standard_error,
        "scores": found.scores,
        "chosen": [str(candidate) for candidate in found.chosen],
    }


def _intervals(arguments: argparse.Namespace, model: MESSICV, mdp: Any) -> dict[str, list[float]]:
    """95 % intervals of θ of the chosen candidate: the choice itself is not made again."""
    expert, unlabelled = (*model.fitted_to_, None)[:2]
    assert expert is not None
    with Progress("bootstrap", "resamples") as progress:
        found = bootstrap(
            model.best_estimator_,
            mdp,
            expert,
            unlabelled,
            n=arguments.bootstrap,
            random_state=arguments.seed,
            progress=progress,
        )
    names = mdp.feature_names or [str(j) for j in range(mdp.n_features)]
    return dict(zip(names, found.interval(found.theta).T.tolist(), strict=True))


def _stability(arguments: argparse.Namespace, mdp: Any, data: Data) -> list[dict[str, float]]:
    """λ0 by λ0, each with the same draws."""
    assert data.unlabelled is not None
    model = MESSI(theta_max=arguments.theta_max)
    lambdas, rows = arguments.lambdas or LAMBDAS, []
    with Progress("stability", "strengths") as progress:
        for i, x in enumerate(lambdas, start=1):
            rows += stability(model, mdp, data.expert, data.unlabelled, (x,), random_state=arguments.seed)
            progress(i, len(lambdas))
    return rows


def _next(arguments: argparse.Namespace, model: MESSICV) -> list[str]:
    """Commands that go on from here."""
    saved = shlex.quote(str(arguments.out / "model.npz"))
    chosen, folder = model.candidate_, shlex.quote(str(arguments.folder))
    given = [(name, getattr(arguments, name)) for name in OPTIONS]
    words = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in given if value is not None]
    words += [f"--seed {arguments.seed}"] if arguments.seed else []
    words += [f"--theta-max {arguments.theta_max:g}"] if arguments.theta_max != THETA_MAX else []
    data = " ".join([folder, *words])
    if chosen.method == "MESSI":
        out = [f"messirl fit {data} --lambda0 {chosen.lambda0:g}"]
    elif chosen.method == "MaxEnt":
        out = [f"messirl fit {data} --method maxent"]
    else:
        out = [f"messirl show {saved}"]
    if arguments.unlabelled is not None:
        out.append(f"messirl diagnose {data}" + (f" --lambda0 {chosen.lambda0:g}" if chosen.lambda0 else ""))
    if arguments.test is not None:
        out.append(f"messirl evaluate {saved} {folder} --test {shlex.quote(arguments.test)}")
    return out


def _text(out: Path, summary: dict[str, Any], *, drawn: bool) -> str:
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


def _stability_text(arguments: argparse.Namespace, summary: dict[str, Any]) -> str:
    lines = [f"nothing is chosen. {summary['reason'][0].upper()}{summary['reason'][1:]}.", ""]
    lines += [f"{'λ0':>8}  {'spread':>8}  of the policy over halves of the unlabelled trajectories"]
    spreads = significant(row["spread"] for row in summary["stability"])
    lines += [f"{row['lambda0']:8g}  {spread:>8}" for row, spread in zip(summary["stability"], spreads, strict=True)]
    lines += [
        "",
        "A spread near zero is stable, which is not to say right; a large one hangs on who happened to be there.",
    ]
    lines += [f"numbers: {arguments.out / 'select.json'}"]
    return "\n".join(lines)
