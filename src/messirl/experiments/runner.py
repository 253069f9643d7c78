"""Running the reproduction: tasks over processes or a cluster, results into the store, resumed where it stopped."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from messirl import execution
from messirl.domains import DOMAINS, Domain
from messirl.execution import processes, uninterrupted
from messirl.experiments.learners import FIGURE, run_learners
from messirl.experiments.settings import Setting
from messirl.experiments.store import Origin, Store
from messirl.experiments.trials import run_trials, trials


@dataclass(frozen=True)
class Task:
    """All trainings of one figure in one run of one setting."""

    name: str  # of the setting: the domain, or a variant of it
    setting: Setting
    figure: str
    run: int
    seed: int

    @property
    def key(self) -> str:
        """The name under which a store keeps its rows."""
        return f"{self.name}-{self.figure}-{self.run:03d}".replace(": ", "-").replace(" ", "_")


def configuration(settings: dict[str, Setting]) -> str:
    """A hash over all settings; one store holds results of one hash only."""
    return hashlib.sha256("".join(f"{k}:{s.config_hash};" for k, s in settings.items()).encode()).hexdigest()[:12]


@functools.lru_cache(maxsize=64)
def _domain(name: str, arguments: tuple[tuple[str, Any], ...]) -> Domain:
    return DOMAINS[name](**dict(arguments))


def do(task: Task) -> list[dict[str, Any]]:
    """The rows of one task; depends on the task alone."""
    domain = _domain(task.setting.domain, tuple(sorted(task.setting.arguments.items())))
    scene = domain.scene(task.seed)
    place = {
        "domain": task.name,
        "figure": task.figure,
        "run": task.run,
        "seed": task.seed,
        "config_hash": task.setting.config_hash,
    }
    if task.figure == FIGURE:
        rows = run_learners(task.setting, scene)
    else:
        rows = run_trials(trials(task.figure, task.setting), task.setting, scene)
    return [{**place, **row} for row in rows]


def _work(folder: Path, origin: Origin, task: Task) -> str:
    rows = do(task)
    with uninterrupted():
        Store(folder, origin).put(task.key, rows)
    return task.key


def run(
    store: Store, todo: list[Task], jobs: int, progress: Callable[[int, int], object], executor: Any = None
) -> None:
    """Do the tasks that the store does not have yet, `jobs` at a time; `progress(done, all)` after each.

    executor : does them instead of processes here (see execution.completed); the store may be out of its reach, so
        that the rows come back and are written here
    """
    left = [task for task in todo if not store.has(task.key)]
    there = len(todo) - len(left)
    progress(there, len(todo))
    if not left:
        return

    def told(done: int, _: int) -> None:
        progress(there + done, len(todo))

    if executor is not None:
        for done, (task, rows) in enumerate(execution.completed(do, left, executor), start=1):
            store.put(task.key, rows)
            told(done, len(left))
        return
    with processes(jobs) as pool:
        work = functools.partial(_work, store.folder, store.origin)
        for _ in execution.run(work, left, pool, told):
            pass  # the workers have written the results
