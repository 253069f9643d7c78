"""The policies of a fit with goals: one per goal, computed when first needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from messirl._checks import is_whole
from messirl._types import Floats, Ints
from messirl.planning.models import where_met
from messirl.problem.mdp import MDP


class GoalPolicies(Mapping[int, Floats]):
    """A lazy mapping from goal to policy (S, A). Any state may be the goal; iteration is over the expert's goals."""

    def __init__(self, mdp: MDP, reward: Floats, goals: Ints, start: Floats) -> None:
        self._mdp, self._reward, self._start = mdp, reward, start
        self._goals = tuple(int(g) for g in np.unique(goals))
        self._known: dict[int, Floats] = {}

    def __getitem__(self, goal: int) -> Floats:
        if goal not in self:
            raise KeyError(goal)
        goal = int(goal)
        if goal not in self._known:
            self._known[goal] = np.ascontiguousarray(where_met(self._mdp, self._reward, self._start, goal).table)
        return self._known[goal]

    def __contains__(self, goal: object) -> bool:
        return is_whole(goal) and bool(0 <= goal < self._mdp.n_states)

    def __iter__(self) -> Iterator[int]:
        return iter(self._goals)

    def __len__(self) -> int:
        return len(self._goals)

    def __repr__(self) -> str:
        return f"GoalPolicies({len(self)} goals)"
