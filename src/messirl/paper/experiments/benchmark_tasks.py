"""The problems that methods are compared on, and one draw of each as a task.

    gridworld, highway, pit               the paper's, the grid smaller in the benchmark
    FrozenLake, Taxi, CliffWalking        gymnasium's
    garnet, network                       random, another problem for every seed

Unlabelled trajectories are all good (of near-experts), half good (the others of people who want something else) or
none good. Experts and unlabelled trajectories of smaller sets are among those of larger ones, and all methods see the
same. Trajectories begin where they do: learners are not told where others would.
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
from messirl.paper.domains import DOMAINS, Domain, World, garnet, mixture, network
from messirl.paper.experiments.paper_settings import SETTINGS
from messirl.paper.experiments.toy_text import TOYS, toy_text

MOST, HELD_OUT = 20, 20  # experts of a world to learn from, and to be judged by
QUALITIES = {"all good": ("MAX", 1.0), "half good": ("mu1", 0.5), "none good": ("mu3", 0.5)}
SMALL: dict[str, dict[str, Any]] = {"gridworld": {"side": 8}}  # of the benchmark, where it differs from the paper


@dataclass(frozen=True)
class Truth:
    """What performance is measured by: a reward (S,) or (S, A), from the starts of an MDP, and the expert's policy."""

    mdp: MDP
    reward: Floats
    policy: Floats


@dataclass(frozen=True)
class Task:
    """What every method is given, and what it is judged by.

    mdp : MDP
        The problem.
    expert, unlabelled, held_out : Trajectories; None where there are none
        To learn from, to learn from as well, and to be judged by.
    truth : Truth or None
        None where it is not known.
    seed : int
        Of whatever a method draws.
    """

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories | None
    held_out: Trajectories | None
    truth: Truth | None
    seed: int


@dataclass(frozen=True)
class Case:
    """One draw of a world, by name: what a process needs to make the task itself.

    small : whether the world is that of the benchmark, or that of the paper
    u : unlabelled trajectories; 0: none
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
        """The name under which a store keeps its rows."""
        return f"{self.problem}-{self.unlabelled.replace(' ', '_')}-{self.experts:03d}-{self.run:03d}"

    @property
    def data(self) -> str:
        """What tells its data apart from others of the same names."""
        return f"{self.u} unlabelled, {'small' if self.small else 'full size'}"

    def task(self) -> Task:
        """The task, drawn now."""
        if self.experts > MOST:
            raise ValueError(f"{self.experts} experts: a world holds {MOST} to learn from")
        world = drawn(self.problem, self.seed, self.u, small=self.small)
        name, share = QUALITIES[self.unlabelled]
        others = mixture(world, name, self.u, share)
        own = world.mdp.memo("own start", lambda: world.mdp.replace(start=None))
        truth = Truth(world.mdp, world.truth, world.policy)
        return Task(own, world.expert[: self.experts], others, world.expert[MOST:], truth, self.seed)


def drawn(name: str, seed: int, pool: int, *, small: bool = True) -> World:
    """One run of a world."""
    size = {"experts": MOST + HELD_OUT, "pool": max(pool, 1)}
    if name in DOMAINS:
        arguments = SETTINGS[name].arguments | (SMALL.get(name, {}) if small else {})
        return _domain(name, tuple(sorted((arguments | size).items()))).scene(seed)
    if name in TOYS:
        return toy_text(name, seed, **size)
    return FAMILIES[name](seed, **size)


FAMILIES: dict[str, Callable[..., World]] = {"garnet": garnet, "network": network}
WORLDS = ("gridworld", "highway", "pit", *TOYS, *FAMILIES)


def without_gymnasium() -> str | None:
    """Why the worlds in `TOYS` cannot be drawn here; None if they can."""
    if importlib.util.find_spec("gymnasium") is not None:
        return None
    return f"{', '.join(TOYS)} are left out: they need gymnasium (pip install 'messirl[gym]')"


@functools.lru_cache(maxsize=8)
def _domain(name: str, arguments: tuple[tuple[str, Any], ...]) -> Domain:
    return DOMAINS[name](**dict(arguments))
