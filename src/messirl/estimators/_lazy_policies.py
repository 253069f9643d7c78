"""Policies that are computed on access: one per goal, or one per step if they do not all fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from messirl._checks import is_whole
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.finite_horizon import CheckpointedSolution
from messirl.planning.planner import solution_from_start


def fitted_policy(
    mdp: MDP, reward: Floats, start: Floats, goals: Ints | None, entropy: str
) -> tuple[Any, Floats | None]:
    """Return the policy of a reward and, if it is one array, its values, with which scores need no other solution."""
    if goals is not None:
        return GoalPolicies(mdp, reward, goals, start), None
    found = solution_from_start(mdp, reward, start, entropy=entropy)
    if isinstance(found, CheckpointedSolution):
        return StepPolicies(found), None
    return np.ascontiguousarray(found.table), found.values


class GoalPolicies(Mapping[int, Floats]):
    """A lazy mapping from goal to policy (S, A). Any state may be the goal; iteration is over the experts' goals."""

    def __init__(self, mdp: MDP, reward: Floats, goals: Ints, start: Floats) -> None:
        self._mdp, self._reward, self._start = mdp, reward, start
        self._goals = tuple(int(g) for g in np.unique(goals))
        self._known: dict[int, Floats] = {}

    def __getitem__(self, goal: int) -> Floats:
        if goal not in self:
            raise KeyError(goal)
        goal = int(goal)
        if goal not in self._known:
            self._known[goal] = np.ascontiguousarray(
                solution_from_start(self._mdp, self._reward, self._start, goal).table
            )
        return self._known[goal]

    def __contains__(self, goal: object) -> bool:
        return is_whole(goal) and bool(0 <= goal < self._mdp.n_states)

    def __iter__(self) -> Iterator[int]:
        return iter(self._goals)

    def __len__(self) -> int:
        return len(self._goals)

    def __repr__(self) -> str:
        return f"GoalPolicies({len(self)} goals)"


class StepPolicies(Sequence[Floats]):
    """The policies of H − 1 steps, (S, A) each, of a problem with a horizon, too large to store together.

    `policies[t]` computes one from the nearest stored values. Conversion to a single array is refused.
    """

    def __init__(self, solution: CheckpointedSolution) -> None:
        self._solution, self.shape = solution, solution.mdp.policy_shape

    def __getitem__(self, step: Any) -> Any:
        if not is_whole(step):
            self.__array__()
        if not -len(self) <= step < len(self):
            raise IndexError(f"step {step} is not one of 0 … {len(self) - 1}")
        return self._solution.step(int(step) % len(self))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        size = 8.0 * float(np.prod(self.shape)) / 1e9
        raise ValueError(
            f"the policies of all {len(self)} steps would take {size:.1f} GB: ask for one step at a time, "
            "policy_[step] or predict_proba(states, step=...), or fit with a shorter horizon, or with none and a "
            "discount below 1"
        )

    def __repr__(self) -> str:
        return f"StepPolicies({len(self)} steps, {self.shape[1]} states, {self.shape[2]} actions)"
