"""Tasks of the comparison of methods: problems with known truth, and one draw of each.

    gridworld, highway, pit               from the paper, with a smaller grid in the benchmark
    FrozenLake, Taxi, CliffWalking        from gymnasium
    garnet, network                       random, a new problem for every seed

Unlabelled trajectories are all good (from near-experts), half good (the rest from agents with another reward) or none
good. Smaller sets of experts and unlabelled trajectories are subsets of larger ones, and all methods see the same.
Learners take the start from their trajectories; the start distribution of the problem is withheld.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.paper.domains import DOMAINS, Domain, SyntheticTask, garnet, mixture, network
from messirl.paper.experiments.paper_settings import SETTINGS
from messirl.paper.experiments.toy_text import TOYS, toy_text

MOST, HELD_OUT = 20, 20  # experts of a problem for training and for evaluation
QUALITIES = {"all good": ("MAX", 1.0), "half good": ("mu1", 0.5), "none good": ("mu3", 0.5)}
SMALL: dict[str, dict[str, Any]] = {"gridworld": {"side": 8}}  # settings of the benchmark that differ from the paper


@dataclass(frozen=True)
class Truth:
    """True reward (S,) or (S, A), MDP with its start, and expert policy, which define the performance."""

    mdp: MDP
    reward: Floats
    policy: Floats


@dataclass(frozen=True)
class Task:
    """Training and evaluation data of the methods.

    mdp : MDP
        The problem.
    expert, unlabelled, held_out : Trajectories; None if there are none
        Expert and unlabelled trajectories for training, held-out expert trajectories for evaluation.
    truth : Truth or None
        None if it is unknown.
    seed : int
        Random seed for the methods.
    """

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories | None
    held_out: Trajectories | None
    truth: Truth | None
    seed: int


@dataclass(frozen=True)
class Case:
    """One draw of a problem, by name, from which a worker process creates the task.

    small : whether to use the size of the benchmark instead of that of the paper
    u : number of unlabelled trajectories
    """

    problem: str
    unlabelled: str
    experts: int
    run: int
    seed: int
    u: int = 50
    small: bool = True

    @property
    def key(self) -> str:
        """Key of the rows in a store."""
        return f"{self.problem}-{self.unlabelled.replace(' ', '_')}-{self.experts:03d}-{self.run:03d}"

    @property
    def data(self) -> str:
        """Description that distinguishes data with the same names."""
        return f"{self.u} unlabelled, {'small' if self.small else 'full size'}"

    def task(self) -> Task:
        """Draw the task."""
        if self.experts > MOST:
            raise ValueError(f"{self.experts} experts: must be <= {MOST}")
        world = draw_task(self.problem, self.seed, self.u, small=self.small)
        name, share = QUALITIES[self.unlabelled]
        others = mixture(world, name, self.u, share)
        own = world.mdp.memo("own start", lambda: world.mdp.replace(start=None))
        truth = Truth(world.mdp, world.truth, world.policy)
        return Task(own, world.expert[: self.experts], others, world.expert[MOST:], truth, self.seed)


def draw_task(name: str, seed: int, pool: int, *, small: bool = True) -> SyntheticTask:
    """Draw one run of a problem."""
    size = {"experts": MOST + HELD_OUT, "pool": max(pool, 1)}
    if name in DOMAINS:
        arguments = SETTINGS[name].arguments | (SMALL.get(name, {}) if small else {})
        return _domain(name, tuple(sorted((arguments | size).items()))).scene(seed)
    if name in TOYS:
        return toy_text(name, seed, **size)
    return FAMILIES[name](seed, **size)


FAMILIES: dict[str, Callable[..., SyntheticTask]] = {"garnet": garnet, "network": network}
TASKS = ("gridworld", "highway", "pit", *TOYS, *FAMILIES)


def without_gymnasium() -> str | None:
    """Return why the problems in `TOYS` are not available; None if they are."""
    if importlib.util.find_spec("gymnasium") is not None:
        return None
    return f"{', '.join(TOYS)} are left out: they need gymnasium (pip install 'messirl[gym]')"


@functools.lru_cache(maxsize=8)
def _domain(name: str, arguments: tuple[tuple[str, Any], ...]) -> Domain:
    return DOMAINS[name](**dict(arguments))
