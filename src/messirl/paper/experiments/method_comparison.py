"""Comparison of methods on the same tasks: the measures, and one row per task and method.

    performance   (J(π) − J(chance)) / (J(expert) − J(chance)), J the return under the true reward: 1 is as good as the
                  expert, 0 as good as the uniform policy
    held out      log-probability of held-out experts, in nats per step
    distance      ‖f_π − f*‖ / ‖f_chance − f*‖, f* the counts of held-out experts, features in units of their spread
    solved        number of solved MDPs, choice of the hyperparameters included
    cpu           processor seconds, choice of the hyperparameters included

If a method fails on a task, its row has the error message and no numbers.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from messirl._text import did_you_mean
from messirl._types import Floats
from messirl.data.feature_counts import feature_counts
from messirl.data.feature_scale import feature_spread
from messirl.estimators.registry import EXPERT, METHODS, NOTHING, Method
from messirl.estimators.uniform import uniform_policy
from messirl.inference.metrics import policy_value
from messirl.paper.experiments.benchmark_tasks import Task
from messirl.paper.experiments.hyperparameter_grids import (
    choose_hyperparameters,
    fit_method,
    format_hyperparameters,
    grid,
)
from messirl.paper.experiments.result_store import Origin, Store, origin
from messirl.paper.experiments.resumable import resume
from messirl.planning import visits
from messirl.planning.solve_counter import tally

CORE = ("MaxEnt", "MESSI", "LightPoolingStd", "ReferenceStd", "Cloning", "ISWBC", "DemoDICE", "AbbeelNg")
SCHEMA = pa.schema(
    [
        ("problem", pa.string()),
        ("unlabelled", pa.string()),
        ("experts", pa.int32()),
        ("run", pa.int32()),
        ("method", pa.string()),
        ("knobs", pa.string()),
        ("chosen", pa.string()),
        ("performance", pa.float64()),
        ("value", pa.float64()),
        ("logs", pa.string()),  # of every held-out unit, separated by spaces
        ("steps", pa.string()),
        ("distance", pa.float64()),
        ("solved", pa.int64()),
        ("cpu", pa.float64()),
        ("converged", pa.bool_()),
        ("failure", pa.string()),
        ("seed", pa.int64()),
        ("version", pa.string()),
        ("commit", pa.string()),
    ]
)
ORDER = ("problem", "unlabelled", "experts", "method", "run")
UNKNOWN = {  # the values in a row of a method without numbers
    **dict.fromkeys(("knobs", "chosen", "failure", "logs", "steps"), ""),
    **dict.fromkeys(("performance", "value", "distance", "cpu"), np.nan),
    **{"solved": 0, "converged": False},
}


class ComparisonCase(Protocol):
    """One draw of a problem: its names in the table, and the task, which is created by the worker."""

    @property
    def problem(self) -> str:
        """Name of the problem in the table."""
        ...

    @property
    def unlabelled(self) -> str:
        """Name of the unlabelled trajectories in the table."""
        ...

    @property
    def experts(self) -> int:
        """Number of experts."""
        ...

    @property
    def run(self) -> int:
        """Number of the run."""
        ...

    @property
    def seed(self) -> int:
        """Random seed."""
        ...

    @property
    def key(self) -> str:
        """Key of the rows in a store."""
        ...

    @property
    def data(self) -> str:
        """Description that distinguishes data with the same names."""
        ...

    def task(self) -> Task:
        """Create the data for the methods and for their evaluation."""
        ...


@dataclass(frozen=True)
class Round:
    """All methods on one draw of a problem."""

    case: ComparisonCase
    methods: tuple[Method, ...]

    @property
    def key(self) -> str:
        """Key of the rows in a store."""
        return self.case.key


def run_comparison(
    folder: Path,
    cases: Sequence[ComparisonCase],
    methods: Sequence[Method],
    origin: Origin,
    jobs: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
    executor: Any = None,
) -> pa.Table:
    """Run every method on every draw and return all rows; rows that the folder has already are reused.

    Results of another origin, for example with other methods, are in another subfolder and stay unchanged.
    """
    place = folder / hashlib.sha256(json.dumps(asdict(origin)).encode()).hexdigest()[:12]
    store = Store(place, origin, SCHEMA, ORDER)
    store.open()
    todo = [Round(case, tuple(methods)) for case in cases]
    resume(store, todo, _same_experts, _rows, jobs, progress, executor)
    return store.table([one.key for one in todo])


def origin_of(cases: Sequence[ComparisonCase], methods: Sequence[Method], seed: int) -> Origin:
    """Return the origin of the rows; it does not depend on the number of runs, so that runs can be added."""
    kinds = sorted({f"{case.problem}, {case.unlabelled}, {case.experts}, {case.data}" for case in cases})
    knobs = {method.name: [format_hyperparameters(one) for one in grid(method)] for method in methods}
    return origin(seed, hashlib.sha256(json.dumps([kinds, knobs]).encode()).hexdigest()[:12])


def _same_experts(every: Sequence[Round]) -> list[list[Round]]:
    """Group the rounds that differ only in the unlabelled trajectories."""
    groups: dict[tuple[Any, ...], list[Round]] = {}
    for one in every:
        case = one.case
        groups.setdefault((case.problem, case.experts, case.run, case.seed), []).append(one)
    return list(groups.values())


def _rows(group: Sequence[Round]) -> list[list[dict[str, Any]]]:
    """Return the rows of rounds with the same experts; a method that uses only the experts is fitted once."""
    out, known = [], dict[str, dict[str, Any]]()
    for one in group:
        case, task = one.case, one.case.task()
        place = {name: getattr(case, name) for name in ("problem", "unlabelled", "experts", "run", "seed")}
        scale, rows = Scale.of(task), []
        for method in one.methods:
            row = known.get(method.name) or evaluate_method(method, task, scale)
            if method.fitted_to in (EXPERT, NOTHING) and method.shape is None:
                known[method.name] = row
            rows.append({**place, **row})
        out.append(rows)
    return out


@dataclass(frozen=True)
class Scale:
    """Values of the uniform policy and the expert, by which performance and distance are normalised.

    chance, expert : returns under the true reward; NaN if it is unknown
    counts : (d,) feature counts of the held-out experts, or of the experts, in units of the spread of the features
    far : distance of the counts of the uniform policy from them
    start : (S,) start distribution of these experts
    """

    chance: float
    expert: float
    counts: Floats | None
    far: float
    start: Floats | None

    @classmethod
    def of(cls, task: Task) -> Scale:
        """Compute the scale of a task."""
        known, truth = task.held_out or task.expert, task.truth
        policy = uniform_policy(task.mdp, None)
        ends = (np.nan, np.nan)
        if truth is not None:
            both = (policy, truth.policy)
            ends = (policy_value(truth.mdp, truth.reward, both[0]), policy_value(truth.mdp, truth.reward, both[1]))
        if known.goals is not None:  # with one policy per goal, there are no common counts
            return cls(*ends, None, np.nan, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the warning about truncated trajectories
            counts = feature_counts(task.mdp, known).mean(axis=0) / feature_spread(task.mdp)
        start = np.bincount(known.first, minlength=task.mdp.n_states) / len(known)
        return cls(*ends, counts, float(np.linalg.norm(counts - _counts(task, policy, start))), start)


def _counts(task: Task, policy: Any, start: Floats) -> Floats:
    seen = visits(task.mdp, policy, start=start)
    return np.asarray(seen.counts(task.mdp) / feature_spread(task.mdp))


def evaluate_method(method: Method, task: Task, scale: Scale) -> dict[str, Any]:
    """Fit and evaluate one method on one task; return its row."""
    row: dict[str, Any] = {"method": method.name, **UNKNOWN}
    began = time.process_time()
    with tally() as count, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row says whether it converged
        try:
            if method.unlabelled and task.unlabelled is None:
                raise ValueError("needs unlabelled trajectories, and there are none")
            knobs, row["chosen"] = choose_hyperparameters(method, task)
            row["knobs"] = format_hyperparameters(knobs)
            model = fit_method(method, knobs, task, task.expert)
            row |= {"cpu": time.process_time() - began, "solved": count.solved, "converged": bool(model.converged_)}
            return row | _measures(model, task, scale)
        except Exception as error:  # an error of one method does not stop the comparison
            kind = "" if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: "
            return row | {"failure": f"{kind}{error}".splitlines()[0], "cpu": time.process_time() - began}


def _measures(model: Any, task: Task, scale: Scale) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if task.held_out is not None:
        logs, steps = model._log_likelihood(task.held_out), task.held_out.lengths - 1
        if task.truth is not None:  # the runs are the independent units
            logs, steps = logs.sum(keepdims=True), steps.sum(keepdims=True)
        out |= {"logs": " ".join(map(repr, logs.tolist())), "steps": " ".join(map(str, steps.tolist()))}
    if task.truth is not None:
        out["value"] = policy_value(task.truth.mdp, task.truth.reward, model.policy_)
        out["performance"] = (out["value"] - scale.chance) / (scale.expert - scale.chance)
    if scale.counts is not None and scale.start is not None:
        off = float(np.linalg.norm(scale.counts - _counts(task, model.policy_, scale.start)))
        out["distance"] = off / scale.far if scale.far > 0.0 else np.nan
    return out


def find_methods(names: Sequence[str | Method]) -> list[Method]:
    """Return the methods with these names, in any case, and given methods; raise an error for an unknown name."""
    known, out = {name.lower(): method for name, method in METHODS.items()}, dict[str, Method]()
    for name in names:
        if isinstance(name, str) and name.lower() not in known:
            close = did_you_mean(name, METHODS)
            raise ValueError(f"unknown method {name!r}: must be one of {', '.join(METHODS)}{close}")
        method = known[name.lower()] if isinstance(name, str) else name
        out[method.name] = method
    return list(out.values())
