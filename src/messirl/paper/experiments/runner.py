"""Running the reproduction: what one run of one setting is, and how its figures share their trainings."""

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
    return do_all([task])[0]


def do_all(tasks: Sequence[Task]) -> list[list[dict[str, Any]]]:
    """The rows of each task of one run of one setting. Figures share trainings; no row depends on the other figures."""
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


def together(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks that are done together: those of one run of one setting."""
    groups: dict[tuple[str, int, int, str], list[Task]] = {}
    for task in tasks:
        groups.setdefault((task.name, task.run, task.seed, task.setting.config_hash), []).append(task)
    return list(groups.values())


def run(
    store: Store, todo: list[Task], jobs: int, progress: Callable[[int, int], object], executor: Any = None
) -> None:
    """Do the tasks that the store does not have yet, `jobs` runs at a time; `progress(done, all)` after each.

    executor : does them instead of processes here (see execution.completed); the store may be out of its reach, so
        that the rows come back and are written here
    """
    resume(store, todo, together, do_all, jobs, progress, executor)
