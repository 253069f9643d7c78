"""Runner of the reproduction: one task per figure, run and setting; figures of a run share their trainings."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from messirl.paper.domains import DOMAINS, Domain
from messirl.paper.experiments.ablation import FIGURE, run_learners
from messirl.paper.experiments.paper_settings import Setting
from messirl.paper.experiments.result_store import Store
from messirl.paper.experiments.resumable import resume
from messirl.paper.experiments.training_runs import rows_of, train_all, trials


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
        """Key of the rows in a store."""
        return f"{self.name}-{self.figure}-{self.run:03d}".replace(": ", "-").replace(" ", "_")


def configuration(settings: dict[str, Setting]) -> str:
    """Return a hash of all settings; a store contains results of one hash only."""
    return hashlib.sha256("".join(f"{k}:{s.config_hash};" for k, s in settings.items()).encode()).hexdigest()[:12]


@functools.lru_cache(maxsize=64)
def _domain(name: str, arguments: tuple[tuple[str, Any], ...]) -> Domain:
    return DOMAINS[name](**dict(arguments))


def run_task(task: Task) -> list[dict[str, Any]]:
    """Run one task and return its rows, which depend only on the task."""
    return run_tasks([task])[0]


def run_tasks(tasks: Sequence[Task]) -> list[list[dict[str, Any]]]:
    """Run the tasks of one run of one setting, with shared trainings; return the rows of each task."""
    setting = tasks[0].setting
    domain = _domain(setting.domain, tuple(sorted(setting.arguments.items())))
    scene = domain.scene(tasks[0].seed)
    wanted = {task.figure: trials(task.figure, setting) for task in tasks if task.figure != FIGURE}
    known = train_all([trial for every in wanted.values() for trial in every], setting, scene)
    out = []
    for task in tasks:
        place = {
            "domain": task.name,
            "figure": task.figure,
            "run": task.run,
            "seed": task.seed,
            "config_hash": task.setting.config_hash,
        }
        rows = run_learners(setting, scene) if task.figure == FIGURE else rows_of(wanted[task.figure], known)
        out.append([{**place, **row} for row in rows])
    return out


def group_tasks(tasks: Sequence[Task]) -> list[list[Task]]:
    """Group the tasks of the same run and setting."""
    groups: dict[tuple[str, int, int, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.name, task.run, task.seed, task.setting.config_hash), []).append(task)
    return list(groups.values())


def run(
    store: Store, todo: list[Task], jobs: int, progress: Callable[[int, int], object], executor: Any = None
) -> None:
    """Run the tasks that are not in the store, `jobs` runs at a time; call `progress(done, total)` after each.

    executor : runs the tasks instead of local processes (see execution.completed); its workers may not reach the
        store, so the rows are returned and written here
    """
    resume(store, todo, group_tasks, run_tasks, jobs, progress, executor)
