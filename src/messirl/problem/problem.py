"""A problem as it comes from a folder or another package: an MDP, trajectories, and what is known of each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Array, Floats, Ints
from messirl.problem.filters import matching
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories

GIVE = "give a filter such as 'role = expert', a mask, indices or a slice"


@dataclass(frozen=True, eq=False)
class Problem:
    """What `read_problem` returns and `write_problem` takes.

    meta : columns, one entry per trajectory
    state_ids, action_ids, trajectory_ids : what the user calls state 0, 1, …; None: 0, 1, … themselves
    xy : (S, 2) coordinates of the states, or None
    state_columns : further columns of the table of states, kept as they are
    edge_columns : further columns of the table of edges, one entry per move, in the order of `mdp.transitions`
    step_columns : further columns of the table of trajectories, one entry per entry of `trajectories.states`
    notes : what was interpreted when the tables were read, one sentence each
    """

    mdp: MDP
    trajectories: Trajectories
    meta: Mapping[str, Array] = field(default_factory=dict)
    trajectory_ids: Array | None = None
    state_ids: Array | None = None
    action_ids: Array | None = None
    xy: Floats | None = None
    state_columns: Mapping[str, Array] = field(default_factory=dict)
    edge_columns: Mapping[str, Array] = field(default_factory=dict)
    step_columns: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Array]:
        """What filters see: trajectory_id, and the columns of `meta`."""
        ids = np.arange(len(self.trajectories)) if self.trajectory_ids is None else self.trajectory_ids
        return {"trajectory_id": ids, **self.meta}

    def select(self, which: str | slice | npt.ArrayLike) -> Problem:
        """The same problem with some of its trajectories.

        which : a filter (`"group = 4 and role != test"`, see `messirl.problem.filters`), a mask, indices or a slice
        """
        rows = self._rows(which)
        every = self.trajectories
        entries = Trajectories(np.arange(every.states.size), every.offsets)[rows].states
        return replace(
            self,
            trajectories=every[rows],
            meta={name: column[rows] for name, column in self.meta.items()},
            trajectory_ids=self.facts["trajectory_id"][rows],
            step_columns={name: column[entries] for name, column in self.step_columns.items()},
        )

    def _rows(self, which: Any) -> Ints:
        n = len(self.trajectories)
        if isinstance(which, str):
            return matching(self.facts, which)
        if isinstance(which, slice):
            return np.arange(n)[which]
        key = np.asarray(which)
        if key.ndim != 1 or (key.size and key.dtype.kind not in "biu"):
            raise ValueError(f"select({which!r:.60}) names no trajectories: {GIVE}")
        if key.dtype.kind == "b":
            if key.size != n:
                raise ValueError(f"the mask has {key.size} entries for {n} trajectories: give one per trajectory")
            return np.flatnonzero(key)
        outside = (key < -n) | (key >= n)
        if outside.any():
            wrong = key[int(np.argmax(outside))]
            raise IndexError(f"trajectory {wrong} is not one of 0 … {n - 1}: number the {n} trajectories from 0")
        return np.arange(n)[key.astype(np.int64)]
