"""`messirl fit --dynamics fitted`: recordings with vectors as states, by fitted value iteration."""

from __future__ import annotations

import argparse
import shlex
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
from messirl.io.sources import read_recordings


def fit_recordings(arguments: argparse.Namespace) -> int:
    """FittedMESSI on a file of recordings; writes fit.json, and the policy at every state that was left."""
    method = _method(arguments)
    recordings, facts = read_recordings(str(arguments.folder))
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


def _write_policy(model: FittedMESSI, points: Any, target: Path) -> None:
    """o_*, reward, value and p_* (the probability of each action) at states (n, k)."""
    table = {f"o_{j}": points[:, j] for j in range(points.shape[1])}
    table |= {"reward": model.reward(points), "value": model.values(points)}
    table |= {f"p_{a}": column for a, column in enumerate(model.policy(points).T)}
    with beside(target) as part:
        pq.write_table(pa.table(table), part)
