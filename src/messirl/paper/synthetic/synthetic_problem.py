"""What an example is: a problem, the truth it was drawn from, and commands that find it again."""

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
    "The weights that everybody was drawn with are in truth.json. Five commands find them again, run from where this "
    "folder was written:"
)
WAYS = ["north", "east", "south", "west"]


@dataclass(frozen=True)
class Example:
    """A small problem that was drawn from known weights.

    Attributes
    ----------
    name : str
        What the command calls it.
    story : str
        What the problem is about, in a few sentences.
    problem : Problem
        The problem, with everybody's trajectories.
    theta : dict from str to dict from str to float
        The weights of each feature that each kind of trajectory was drawn from.
    others : dict from str to str
        What the kinds of unlabelled trajectories are to the expert.
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
        """What truth.json holds."""
        told = {"example": self.name, "theta": self.theta, "unlabelled": self.others}
        return json.dumps(told, ensure_ascii=False, indent=2) + "\n"

    def readme(self, folder: str) -> str:
        """What README.md holds; its commands run where `folder` is the path of the problem folder."""
        parts = [f"# {self.name}", self.story, TOLD]
        for i, (command, seen) in enumerate(self.commands, 1):
            parts.append(f"{i}. {seen}\n\n       {command.format(folder=shlex.quote(folder))}")
        return "\n\n".join(parts) + "\n"


def weights(names: Iterable[str], values: Iterable[float]) -> dict[str, float]:
    """Weights by the names of their features."""
    return dict(zip(names, values, strict=True))


def walks(mdp: MDP, theta: Mapping[str, float], n: int, random: np.random.Generator, **rest: Any) -> Trajectories:
    """n trajectories of the soft policy of weights, without actions: where one was and went tells them."""
    policy = soft_policy(mdp, mdp.reward(list(theta.values())), goal=rest.get("goal"))
    drawn = sample(mdp, policy, n, random_state=random, **rest)
    return Trajectories(drawn.states, drawn.offsets, None, drawn.goals)


def labelled(mdp: MDP, trajectories: Trajectories, meta: Mapping[str, Any], xy: Floats) -> Problem:
    """A problem whose states and actions are called by their names in all files."""
    states, actions = (np.array(names, dtype=object) for names in (mdp.state_names, mdp.action_names))
    return Problem(mdp, trajectories, meta, state_ids=states, action_ids=actions, xy=xy)


def joined(sets: Iterable[Trajectories]) -> Trajectories:
    """All trajectories, one set after the other."""
    first, *others = sets
    return sum(others, first)


def grid_moves(rows: int, columns: int) -> tuple[Floats, Floats]:
    """Moves (S, 4, S) to the four neighbours, where there are any, and coordinates (S, 2); north on top."""
    xy = np.array([(x, rows - 1 - y) for y in range(rows) for x in range(columns)], dtype=float)
    there = (xy[:, None, None] + np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])[:, None] == xy).all(axis=-1)
    return there.astype(float), xy
