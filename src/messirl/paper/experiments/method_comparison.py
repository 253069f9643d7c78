"""Methods against each other on the same tasks: what each is judged by, and the table of all.

    performance   (J(π) − J(chance)) / (J(expert) − J(chance)), J the return under the true reward: 1 is as good as the
                  expert, 0 no better than taking every action alike
    held out      log-probability of held-out experts, in nats per step
    distance      ‖f_π − f*‖ / ‖f_chance − f*‖, f* the counts of held-out experts, features in units of their spread
    solved        how many MDPs were solved, choosing the knobs included
    cpu           seconds of the processor, choosing the knobs included

A method that cannot use what it is given says so: its row then has that sentence, and no numbers.
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
from messirl.paper.experiments.hyperparameter_grids import chosen, fitted, grid, written
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
        ("logs", pa.string()),  # of every unit that is held out, with blanks between them
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
UNKNOWN = {  # what a row has where a method has no numbers
    **dict.fromkeys(("knobs", "chosen", "failure", "logs", "steps"), ""),
    **dict.fromkeys(("performance", "value", "distance", "cpu"), np.nan),
    **{"solved": 0, "converged": False},
}


class Drawn(Protocol):
    """What a contest is held on: names for the table, and a task that is made where the work is done."""

    @property
    def problem(self) -> str:
        """What the table calls the problem."""
        ...

    @property
    def unlabelled(self) -> str:
        """What the table calls the unlabelled trajectories."""
        ...

    @property
    def experts(self) -> int:
        """How many experts there are."""
        ...

    @property
    def run(self) -> int:
        """The number of the run."""
        ...

    @property
    def seed(self) -> int:
        """Of whatever is random."""
        ...

    @property
    def key(self) -> str:
        """The name under which a store keeps its rows."""
        ...

    @property
    def data(self) -> str:
        """What tells its data apart from others of the same names."""
        ...

    def task(self) -> Task:
        """What methods are given, and judged by."""
        ...


@dataclass(frozen=True)
class Round:
    """All methods on one draw."""

    case: Drawn
    methods: tuple[Method, ...]

    @property
    def key(self) -> str:
        """The name under which a store keeps its rows."""
        return self.case.key


def contest(
    folder: Path,
    cases: Sequence[Drawn],
    methods: Sequence[Method],
    origin: Origin,
    jobs: int = 1,
    progress: Callable[[int, int], object] = lambda done, total: None,
    executor: Any = None,
) -> pa.Table:
    """Every method on every draw: the rows of all, those that the folder has already not made again.

    Results of another origin, such as with other methods, are in another folder inside it, and not touched.
    """
    place = folder / hashlib.sha256(json.dumps(asdict(origin)).encode()).hexdigest()[:12]
    store = Store(place, origin, SCHEMA, ORDER)
    store.open()
    todo = [Round(case, tuple(methods)) for case in cases]
    resume(store, todo, _same_experts, _rows, jobs, progress, executor)
    return store.table([one.key for one in todo])


def origin_of(cases: Sequence[Drawn], methods: Sequence[Method], seed: int) -> Origin:
    """What the rows are made with; with more runs it is the same, so that runs can be added."""
    kinds = sorted({f"{case.problem}, {case.unlabelled}, {case.experts}, {case.data}" for case in cases})
    knobs = {method.name: [written(one) for one in grid(method)] for method in methods}
    return origin(seed, hashlib.sha256(json.dumps([kinds, knobs]).encode()).hexdigest()[:12])


def _same_experts(every: Sequence[Round]) -> list[list[Round]]:
    """Rounds that are done together: those that differ in the unlabelled trajectories alone."""
    groups: dict[tuple[Any, ...], list[Round]] = {}
    for one in every:
        case = one.case
        groups.setdefault((case.problem, case.experts, case.run, case.seed), []).append(one)
    return list(groups.values())


def _rows(group: Sequence[Round]) -> list[list[dict[str, Any]]]:
    """The rows of rounds that have the same experts: who looks at nothing else is fitted once."""
    out, known = [], dict[str, dict[str, Any]]()
    for one in group:
        case, task = one.case, one.case.task()
        place = {name: getattr(case, name) for name in ("problem", "unlabelled", "experts", "run", "seed")}
        scale, rows = Scale.of(task), []
        for method in one.methods:
            row = known.get(method.name) or judged(method, task, scale)
            if method.fitted_to in (EXPERT, NOTHING) and method.shape is None:
                known[method.name] = row
            rows.append({**place, **row})
        out.append(rows)
    return out


@dataclass(frozen=True)
class Scale:
    """What chance and the expert reach, between which performance and distance are measured.

    chance, expert : returns under the true reward; NaN where it is not known
    counts : (d,) those of the held-out experts, or of the experts, in units of the features' spread
    far : how far chance is from them
    start : (S,) where those experts begin
    """

    chance: float
    expert: float
    counts: Floats | None
    far: float
    start: Floats | None

    @classmethod
    def of(cls, task: Task) -> Scale:
        """The scale of a task."""
        known, truth = task.held_out or task.expert, task.truth
        policy = uniform_policy(task.mdp, None)
        ends = (np.nan, np.nan)
        if truth is not None:
            both = (policy, truth.policy)
            ends = (policy_value(truth.mdp, truth.reward, both[0]), policy_value(truth.mdp, truth.reward, both[1]))
        if known.goals is not None:  # a policy per goal has no counts of its own
            return cls(*ends, None, np.nan, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that cut trajectories stand for endless ones
            counts = feature_counts(task.mdp, known).mean(axis=0) / feature_spread(task.mdp)
        start = np.bincount(known.first, minlength=task.mdp.n_states) / len(known)
        return cls(*ends, counts, float(np.linalg.norm(counts - _counts(task, policy, start))), start)


def _counts(task: Task, policy: Any, start: Floats) -> Floats:
    seen = visits(task.mdp, policy, start=start)
    return np.asarray(seen.counts(task.mdp) / feature_spread(task.mdp))


def judged(method: Method, task: Task, scale: Scale) -> dict[str, Any]:
    """The row of one method on one task."""
    row: dict[str, Any] = {"method": method.name, **UNKNOWN}
    began = time.process_time()
    with tally() as count, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the row says whether it converged
        try:
            if method.unlabelled and task.unlabelled is None:
                raise ValueError("needs unlabelled trajectories, and there are none")
            knobs, row["chosen"] = chosen(method, task)
            row["knobs"] = written(knobs)
            model = fitted(method, knobs, task, task.expert)
            row |= {"cpu": time.process_time() - began, "solved": count.solved, "converged": bool(model.converged_)}
            return row | _measures(model, task, scale)
        except Exception as error:  # whatever one method cannot do, the table goes on
            kind = "" if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: "
            return row | {"failure": f"{kind}{error}".splitlines()[0], "cpu": time.process_time() - began}


def _measures(model: Any, task: Task, scale: Scale) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if task.held_out is not None:
        logs, steps = model._log_likelihood(task.held_out), task.held_out.lengths - 1
        if task.truth is not None:  # runs are what is independent
            logs, steps = logs.sum(keepdims=True), steps.sum(keepdims=True)
        out |= {"logs": " ".join(map(repr, logs.tolist())), "steps": " ".join(map(str, steps.tolist()))}
    if task.truth is not None:
        out["value"] = policy_value(task.truth.mdp, task.truth.reward, model.policy_)
        out["performance"] = (out["value"] - scale.chance) / (scale.expert - scale.chance)
    if scale.counts is not None and scale.start is not None:
        off = float(np.linalg.norm(scale.counts - _counts(task, model.policy_, scale.start)))
        out["distance"] = off / scale.far if scale.far > 0.0 else np.nan
    return out


def named(names: Sequence[str | Method]) -> list[Method]:
    """The methods of these names, in any case, and methods of one's own; an error where a name is unknown."""
    known, out = {name.lower(): method for name, method in METHODS.items()}, dict[str, Method]()
    for name in names:
        if isinstance(name, str) and name.lower() not in known:
            close = did_you_mean(name, METHODS)
            raise ValueError(f"there is no method {name!r}; there are {', '.join(METHODS)}{close}")
        method = known[name.lower()] if isinstance(name, str) else name
        out[method.name] = method
    return list(out.values())
