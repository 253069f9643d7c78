"""Synthetic examples: a problem, the true weights it was drawn from, and commands that recover them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.planning import sample, soft_policy

TOLD = (
    "The true weights are in truth.json. Five commands recover them; run them from the directory from which this "
    "folder was written:"
)
WAYS = ["north", "east", "south", "west"]


@dataclass(frozen=True)
class Example:
    """A small problem that was drawn from known weights.

    Attributes
    ----------
    name : str
        Its name in the command.
    story : str
        What the problem is about, in a few sentences.
    problem : Problem
        The problem, with all trajectories.
    theta : dict from str to dict from str to float
        The true weights of each kind of trajectory, by feature.
    others : dict from str to str
        The effect of each kind of unlabelled trajectory on a fit to the experts.
    commands : sequence of pairs of str
        Five command lines, with {folder} for the problem folder, and what each of them shows.
    """

    name: str
    story: str
    problem: Problem
    theta: Mapping[str, Mapping[str, float]]
    others: Mapping[str, str]
    commands: Sequence[tuple[str, str]]

    def truth(self) -> str:
        """Return the content of truth.json."""
        told = {"example": self.name, "theta": self.theta, "unlabelled": self.others}
        return json.dumps(told, ensure_ascii=False, indent=2) + "\n"

    def readme(self, folder: str) -> str:
        """Return the content of README.md; its commands run where `folder` is the path of the problem folder."""
        parts = [f"# {self.name}", self.story, TOLD]
        for i, (command, seen) in enumerate(self.commands, 1):
            parts.append(f"{i}. {seen}\n\n       {command.format(folder=shlex.quote(folder))}")
        return "\n\n".join(parts) + "\n"


def weights(names: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Return weights by the names of their features."""
    return dict(zip(names, values, strict=True))


def walks(mdp: MDP, theta: Mapping[str, float], n: int, random: np.random.Generator, **rest: Any) -> Trajectories:
    """Draw n trajectories from the soft policy of weights, without actions, which the states imply."""
    policy = soft_policy(mdp, mdp.reward(list(theta.values())), goal=rest.get("goal"))
    drawn = sample(mdp, policy, n, random_state=random, **rest)
    return Trajectories(drawn.states, drawn.offsets, None, drawn.goals)


def labelled(mdp: MDP, trajectories: Trajectories, meta: Mapping[str, Any], xy: Floats) -> Problem:
    """Return a problem whose states and actions have their names as ids in all files."""
    states, actions = (np.array(names, dtype=object) for names in (mdp.state_names, mdp.action_names))
    return Problem(mdp, trajectories, meta, state_ids=states, action_ids=actions, xy=xy)


def joined(sets: Iterable[Trajectories]) -> Trajectories:
    """Concatenate sets of trajectories."""
    first, *others = sets
    return sum(others, first)


def grid_moves(rows: int, columns: int) -> tuple[Floats, Floats]:
    """Return transitions (S, 4, S) to the four neighbours, where they exist, and coordinates (S, 2), north on top."""
    xy = np.array([(x, rows - 1 - y) for y in range(rows) for x in range(columns)], dtype=float)
    there = (xy[:, None, None] + np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])[:, None] == xy).all(axis=-1)
    return there.astype(float), xy
