"""Comparison of methods: on a problem with a known truth, on a user's data, or over the whole benchmark."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from messirl._parameters import CV
from messirl._text import count_noun, did_you_mean, join_names
from messirl.app.workflow.comparison_record import OVERALL, ComparisonRecord, part_of
from messirl.app.workflow.split import PROBLEM, Split, divide
from messirl.app.workflow.watcher import SILENT, Watcher
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.estimators.registry import Method
from messirl.paper.experiments.benchmark_tasks import QUALITIES, TASKS, Case, Task, without_gymnasium
from messirl.paper.experiments.method_comparison import CORE, ComparisonCase, find_methods, origin_of, run_comparison
from messirl.paper.experiments.rankings import Cell, cells_of, mean_ranks
from messirl.paper.experiments.toy_text import TOYS
from messirl.selection.cross_validation import make_splits

FIRST = 9000  # the seed of the first run of the benchmark, which no choice of defaults used
EXPERTS = (1, 5, 20)
ROWS = "rows"  # the folder for finished work


@dataclass(frozen=True)
class FolderCase:
    """One split of a user's own experts into training and held-out trajectories.

    Attributes
    ----------
    problem, unlabelled, experts, run, seed : str, str, int, int, int
        Their columns in the table of results.
    mdp, expert, others, held_out : MDP, Trajectories, Trajectories or None, Trajectories
        The task itself.
    """

    problem: str
    unlabelled: str
    experts: int
    run: int
    seed: int
    mdp: MDP
    expert: Trajectories
    others: Trajectories | None
    held_out: Trajectories

    @property
    def key(self) -> str:
        """The key of its rows in a store."""
        return f"split-{self.run:03d}"

    @property
    def data(self) -> str:
        """A hash over the problem and every set of trajectories."""
        found, mdp = hashlib.sha256(), self.mdp
        parts: list[Any] = [mdp.discount, mdp.horizon, mdp.start, mdp.terminal]
        for table in (mdp.transitions, sp.csr_array(mdp.feature_rows)):
            parts += [table.shape, table.indptr, table.indices, table.data]
        for some in (self.expert, self.others, self.held_out):
            parts += [None] if some is None else [some.states, some.lengths, some.actions, some.goals]
        for part in parts:
            found.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
        return found.hexdigest()

    def task(self) -> Task:
        """Return the task: what methods are given, and what they are scored on."""
        return Task(self.mdp, self.expert, self.others, self.held_out, None, self.seed)


@dataclass(frozen=True)
class CompareSettings:
    """The options of `messirl compare`.

    Parameters
    ----------
    methods : tuple of str or Method
        Names in the table of methods, or user-defined entries.
    runs : int
        On a problem with a known truth, the number of draws.
    n_expert, n_unlabelled : int
        On such a problem, the numbers of trajectories.
    quality : {"all good", "half good", "none good"}
        On such a problem, the quality of the unlabelled trajectories.
    seed : int
        The seed of the first run.
    jobs : int
        The number of processes.

    Examples
    --------
    >>> from messirl.app.workflow.comparison import CompareSettings
    >>> CompareSettings(methods=("MESSI", "MaxEnt")).runs
    10
    """

    methods: tuple[str | Method, ...] = CORE
    runs: int = 10
    n_expert: int = 1
    n_unlabelled: int = 20
    quality: str = "half good"
    seed: int = FIRST
    jobs: int = 1


def compare_synthetic(
    name: str, settings: CompareSettings, out: Path, watcher: Watcher = SILENT, executor: Any = None
) -> ComparisonRecord:
    """Compare methods on draws of one problem with a known truth; those of the paper have their full size."""
    if name in TOYS and (why := without_gymnasium()):
        raise ValueError(why)
    s = settings
    cases = [
        Case(name, s.quality, s.n_expert, run, s.seed + run, u=s.n_unlabelled, small=False) for run in range(s.runs)
    ]
    lead = (
        f"{count_noun(len(find_methods(s.methods)), 'method')} learnt from the same {_trajectories(s.n_expert)} and "
        f"{s.n_unlabelled} unlabelled ones, of which {s.quality.replace(' good', '')} are good, in each of "
        f"{count_noun(s.runs, 'run')}."
    )
    return _record(name, cases, s, out, lead, [], watcher, executor)


def compare_folder(
    problem: Problem,
    split: Split,
    settings: CompareSettings,
    out: Path,
    watcher: Watcher = SILENT,
    *,
    folder: str = PROBLEM,
    executor: Any = None,
) -> ComparisonRecord:
    """Compare methods on a user's problem, by test trajectories or by experts that are held out in turn."""
    parts = divide(problem, split, watcher, folder)
    kept = [(parts.expert, parts.test)] if parts.test is not None else _splits(problem.mdp, parts.expert, settings)
    how = "the test trajectories" if parts.test is not None else f"experts held out in {count_noun(len(kept), 'split')}"
    others = "none" if parts.unlabelled is None else f"{len(parts.unlabelled)}"
    words = "no unlabelled ones" if parts.unlabelled is None else f"{others} unlabelled ones"
    cases = [
        FolderCase(folder, others, len(parts.expert), run, settings.seed, problem.mdp, train, parts.unlabelled, test)
        for run, (train, test) in enumerate(kept)
    ]
    lead = (
        f"{count_noun(len(find_methods(settings.methods)), 'method')} learnt from "
        f"{_trajectories(len(parts.expert))} and "
        f"{words}, and are judged by {how}."
    )
    return _record(folder, cases, settings, out, lead, [], watcher, executor)


def _trajectories(n: int) -> str:
    return f"{n} expert trajector{'y' if n == 1 else 'ies'}"


def _splits(mdp: MDP, expert: Trajectories, settings: CompareSettings) -> list[tuple[Trajectories, Trajectories]]:
    """Return the splits of the experts, the same ones every time."""
    return make_splits(mdp, expert, CV, random_state=settings.seed)


def benchmark(
    settings: CompareSettings,
    out: Path,
    watcher: Watcher = SILENT,
    executor: Any = None,
    experts: Sequence[int] = EXPERTS,
    problems: Sequence[str] = TASKS,
) -> ComparisonRecord:
    """Compare methods over all problems, kinds of unlabelled trajectories and several numbers of experts."""
    why = without_gymnasium()
    notes = [why] if why else []
    some = [name for name in problems if not (why and name in TOYS)]
    cases = [
        Case(name, quality, n, run, settings.seed + run)
        for run in range(settings.runs)
        for name in some
        for n in experts
        for quality in QUALITIES
    ]
    lead = (
        f"{count_noun(len(find_methods(settings.methods)), 'method')} on {count_noun(len(some), 'problem')}, with "
        f"{join_names([*map(str, experts[:-1]), count_noun(experts[-1], 'expert')])} and {Case.u} unlabelled "
        "trajectories of "
        f"which all, half or none are good, in {count_noun(settings.runs, 'run')} each."
    )
    return _record("benchmark", cases, settings, out, lead, notes, watcher, executor)


def _record(
    title: str,
    cases: Sequence[ComparisonCase],
    settings: CompareSettings,
    out: Path,
    lead: str,
    notes: list[str],
    watcher: Watcher,
    executor: Any,
) -> ComparisonRecord:
    methods = find_methods(settings.methods)
    watcher.begin()
    began, origin = time.monotonic(), origin_of(cases, methods, settings.seed)
    with watcher.progress(title, "parts") as count:
        table = run_comparison(out / ROWS, cases, methods, origin, settings.jobs, count, executor)
    seconds, names = time.monotonic() - began, [method.name for method in methods]
    return record_of(title, table, names, lead, notes, seconds, asdict(origin))


def record_of(
    title: str, table: pa.Table, names: list[str], lead: str, notes: list[str], seconds: float, origin: dict[str, Any]
) -> ComparisonRecord:
    """Return the record of a table of results."""
    cells = cells_of(table, names)
    ranks = {name: mean_ranks(table, names, where) for name, where in _parts(cells).items()}
    return ComparisonRecord(title, names, cells, ranks, lead, notes, seconds, origin)


def _parts(cells: Sequence[Cell]) -> dict[str, Callable[[Any], bool]]:
    """Return filters by name: all cells, and those of the same unlabelled trajectories, number of experts, or both."""
    out: dict[str, Callable[[Any], bool]] = {OVERALL: partial(_has, {})}
    if len(cells) == 1:
        return out
    kinds = [quality for quality in QUALITIES if any(cell.unlabelled == quality for cell in cells)]
    numbers = sorted({cell.experts for cell in cells})
    out |= {f"unlabelled {q}": partial(_has, {"unlabelled": q}) for q in kinds}
    out |= {count_noun(n, "expert"): partial(_has, {"experts": n}) for n in numbers}
    return out | {part_of(n, q): partial(_has, {"experts": n, "unlabelled": q}) for n in numbers for q in kinds}


def _has(wanted: dict[str, Any], row: dict[str, Any]) -> bool:
    return all(row[name] == value for name, value in wanted.items())


def find_problem(text: str) -> str | None:
    """Return the problem with a known truth of this name, ignoring case; None if there is none."""
    return {name.lower(): name for name in TASKS}.get(text.lower())


def no_such_problem(text: str) -> str:
    """Return the error message for a name that is neither a folder nor a problem."""
    return f"{text} is neither a folder nor a problem: choose from {', '.join(TASKS)}{did_you_mean(text, TASKS)}"
