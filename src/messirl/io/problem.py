"""A problem as it comes from a folder or another package: an MDP, trajectories, and what is known of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl.problem.mdp import MDP, Floats
from messirl.problem.trajectories import Trajectories

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Problem:
    """What `read_problem` returns and `write_problem` takes.

    meta : columns, one entry a trajectory
    state_ids, action_ids, trajectory_ids : what the user calls state 0, 1, …; None: 0, 1, … themselves
    xy : (S, 2) coordinates of the states, or None
    state_columns : further columns of the table of states, kept as they are
    """

    mdp: MDP
    trajectories: Trajectories
    meta: Mapping[str, Array] = field(default_factory=dict)
    trajectory_ids: Array | None = None
    state_ids: Array | None = None
    action_ids: Array | None = None
    xy: Floats | None = None
    state_columns: Mapping[str, Array] = field(default_factory=dict)

    def select(self, which: npt.ArrayLike) -> Problem:
        """The same problem with some of its trajectories: a mask, indices or a slice."""
        rows = np.arange(len(self.trajectories))[np.asarray(which) if not isinstance(which, slice) else which]
        ids = np.arange(len(self.trajectories)) if self.trajectory_ids is None else self.trajectory_ids
        return Problem(
            self.mdp,
            self.trajectories[rows],
            {name: column[rows] for name, column in self.meta.items()},
            ids[rows],
            self.state_ids,
            self.action_ids,
            self.xy,
            self.state_columns,
        )
