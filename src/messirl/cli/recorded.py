"""`messirl fit --dynamics fitted`: recordings with vectors as states, by fitted value iteration."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from messirl import __version__
from messirl._defaults import THETA_MAX
from messirl._files import beside
from messirl.cli.common import as_json
from messirl.cli.fitting import text_of
from messirl.cli.model import make_similarity
from messirl.cli.reading import divide
from messirl.cli.results import begin
from messirl.cli.watching import watched
from messirl.dynamics import FittedMESSI
from messirl.dynamics.features import RadialGrid, Squares
from messirl.io.checks import as_whole
from messirl.io.recordings.files import recordings_from_numpy, recordings_from_table
from messirl.io.recordings.recording import Recording
from messirl.io.tables import load_table
from messirl.problem.errors import InputError

OF_STEPS = ("step", "action", "reward", "terminated")


def fit_recordings(arguments: argparse.Namespace) -> int:
    """FittedMESSI on a file of recordings; writes fit.json, and the policy at every state that was left."""
    method = _method(arguments)
    recordings, facts = _recordings(str(arguments.folder))
    rows = divide(facts, arguments)
    parts: dict[str, Any] = {k: None if at is None else [recordings[i] for i in at] for k, at in rows.items()}
    learnt = parts["expert"] + (parts["unlabelled"] or [])
    points = np.concatenate([one.observations for one in learnt])
    features = Squares.fit(points) if arguments.grid is None else RadialGrid.fit(points, arguments.grid)
    model = FittedMESSI(
        features,
        similarity=make_similarity(arguments),
        lambda0=arguments.lambda0 if method == "messi" else 0.0,
        theta_max=arguments.theta_max or THETA_MAX,
        discount=arguments.discount,
        max_iter=arguments.max_iter,
        tol=arguments.tol,
        random_state=arguments.seed,
    )
    notes = watched(model, arguments.max_iter, parts["expert"], parts["unlabelled"])
    chance = -float(np.log(model.n_actions_))
    summary = {
        "source": str(arguments.folder),
        "method": "FittedMESSI",
        "dynamics": {
            "kind": "fitted",
            "transitions": sum(len(one) for one in learnt),
            "states": model.mdp_.n_states,
            "actions": model.n_actions_,
            "discount": arguments.discount,
            "lambda0": model.lambda0,
            "features": "1, o, o²" if arguments.grid is None else f"radial grid, {arguments.grid} a coordinate",
        },
        "trajectories": {name: len(some) for name, some in parts.items() if some is not None},
        "theta": dict(zip(features.names, model.theta_.tolist(), strict=True)),
        "converged": bool(model.converged_),
        "termination": model.termination_,
        "iterations": model.n_iter_,
        "scores": [
            {
                "name": "FittedMESSI" if method == "messi" else "fitted MaxEnt-IRL",
                "expert": model.score(parts["expert"]),
                "held_out": None if parts["test"] is None else model.score(parts["test"]),
                "note": "" if model.converged_ else f"did not converge: {model.termination_}",
            },
            {"name": "uniform policy", "expert": chance, "held_out": parts["test"] and chance, "note": ""},
        ],
        "warnings": notes,
        "version": __version__,
        "command": shlex.join(["messirl", *arguments.words]),
    }
    out = begin(arguments.out, ("fit.json", "policy.parquet"))
    left = np.concatenate([one.observations[:-1] for one in learnt])
    _write_policy(model, np.unique(left, axis=0), arguments.out / "policy.parquet")
    out.write_summary("fit.json", summary)
    out.remark()
    if arguments.json:
        print(as_json(summary))
    else:
        print(text_of(summary, None, {"policy": arguments.out / "policy.parquet"}))
    return 0


def _method(arguments: argparse.Namespace) -> str:
    """messi or maxent, and a refusal of what fitted dynamics do not have."""
    if arguments.discount is None:
        raise ValueError("recordings have no discount: give --discount, a number below 1")
    default = "messi" if arguments.unlabelled is not None else "maxent"
    method: str = arguments.method or default
    if method == "messi" and arguments.unlabelled is None:
        raise ValueError("--method messi needs unlabelled trajectories: say which with --unlabelled")
    for wrong, what in (
        (method == "em", "--method em"),
        (arguments.entropy != "causal", f"--entropy {arguments.entropy}"),
        (arguments.solver == "paper", "--solver paper"),
        (arguments.ridge > 0, "--ridge"),
        (arguments.features is not None, "--features"),
    ):
        if wrong:
            raise ValueError(f"{what} does not go with --dynamics fitted: leave it out")
    return method


def _recordings(source: str) -> tuple[list[Recording], dict[str, Any]]:
    """Recordings and what filters see of them: id, steps, terminated, return, and further columns of a table."""
    kind, colon, name = source.partition(":")
    suffix = Path(source).suffix.lower()
    extra: dict[str, Any] = {}
    if kind == "minari" and colon:
        from messirl.io.interop.minari import episodes_from_minari

        found = episodes_from_minari(name)
    elif suffix in (".hdf5", ".h5"):
        from messirl.io.interop.hdf5 import episodes_from_hdf5

        found = episodes_from_hdf5(source)
    elif suffix == ".npz":
        found = recordings_from_numpy(source)
    elif suffix in (".csv", ".parquet"):
        found = recordings_from_table(source)
        extra = _columns(source, found)
    else:
        raise InputError(
            source, "is no file of recordings", "give .npz, .parquet, .csv or .hdf5, or minari:ID; see docs/dynamics.md"
        )
    if not found:
        raise InputError(source, "holds no recording", "give at least one")
    width = found[0].observations.shape[1] if found[0].observations.ndim == 2 else 1
    found = [_checked(source, one, width) for one in found]
    facts: dict[str, Any] = {
        "trajectory_id": np.array([i if one.id is None else one.id for i, one in enumerate(found)]),
        "steps": np.array([len(one) for one in found]),
        "terminated": np.array([one.terminated for one in found]),
        **extra,
    }
    rewards = [one.rewards for one in found if one.rewards is not None]
    if len(rewards) == len(found):
        facts["return"] = np.array([float(some.sum()) for some in rewards])
    return found, facts


def _columns(source: str, found: list[Recording]) -> dict[str, Any]:
    """Further columns of a table, one value per trajectory."""
    table = load_table(source)
    ids = as_whole(table.column("trajectory_id")).array().tolist()
    first = {name: row for row, name in reversed(list(enumerate(ids)))}
    start = np.array([first[name] for name in ids])
    out = {}
    for name in table.names:
        if name in ("trajectory_id", *OF_STEPS) or name.startswith(("o_", "a_")):
            continue
        values = table.column(name).array()
        wrong = np.flatnonzero([a != b and not (a != a and b != b) for a, b in zip(values, values[start], strict=True)])
        if wrong.size:
            what = f"{name} changes within a trajectory"
            raise table.error(what, "give one value for all of its rows", int(wrong[0]))
        out[name] = values[[first[one.id] for one in found]]
    return out


def _checked(source: str, one: Recording, width: int) -> Recording:
    """The recording with points (T + 1, k) and whole numbers for actions (T,)."""
    where = f"{source}, recording {one.id}"
    actions = one.actions[:, 0] if one.actions.ndim == 2 and one.actions.shape[1] == 1 else one.actions
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        raise InputError(
            where, f"its actions are {actions.dtype} of shape {actions.shape}", "number them 0, 1, …, one a step"
        )
    points = one.observations if one.observations.ndim == 2 else one.observations[:, None]
    if points.shape[1] != width:
        raise InputError(where, f"its observations have {points.shape[1]} numbers, others {width}", "give as many")
    return replace(one, observations=points, actions=actions)


def _write_policy(model: FittedMESSI, points: Any, target: Path) -> None:
    """o_*, reward, value and p_* (the probability of each action) at states (n, k)."""
    table = {f"o_{j}": points[:, j] for j in range(points.shape[1])}
    table |= {"reward": model.reward(points), "value": model.values(points)}
    table |= {f"p_{a}": column for a, column in enumerate(model.policy(points).T)}
    with beside(target) as part:
        pq.write_table(pa.table(table), part)
