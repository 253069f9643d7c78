"""A problem as read from a folder or converted from another package: an MDP, trajectories and their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._text import count_noun
from messirl._types import Array, Floats, Ints
from messirl.data.errors import InputError
from messirl.data.filters import matching
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, as_trajectories

GIVE = "give a filter such as 'role = expert', a mask, indices or a slice"


@dataclass(frozen=True, eq=False)
class Problem:
    """An MDP with trajectories and their metadata; `read_problem` returns it and `write_problem` accepts it.

    Parameters
    ----------
    mdp : MDP
        The decision process of the trajectories.
    trajectories : Trajectories
        All trajectories, experts or not.
    meta : mapping from str to array (n,), optional
        Columns with one entry per trajectory, by which `select` and the commands filter.
    trajectory_ids, state_ids, action_ids : arrays, optional
        The user's ids of trajectory, state and action 0, 1, …. None: these numbers.
    xy : array (S, 2), optional
        Coordinates of the states.
    y_down : bool
        Whether y grows downwards, as in images; maps are drawn accordingly.
    state_columns : mapping from str to array (S,), optional
        Further columns of the table of states, kept as they are.
    edge_columns : mapping from str to array, optional
        Further columns of the table of edges, with one entry per transition, in the order of `mdp.transitions`.
    step_columns : mapping from str to array, optional
        Further columns of the table of trajectories, with one entry per entry of `trajectories.states`.
    notes : tuple of str
        Interpretations made when the tables were read, one sentence each.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl import MDP, Trajectories
    >>> from messirl.io import Problem
    >>> mdp = MDP([[[0, 1]], [[1, 0]]], features=[[0.0], [1.0]], discount=0.9)
    >>> walks = Trajectories.from_lists([[0, 1, 0], [1, 0]])
    >>> problem = Problem(mdp, walks, meta={"role": np.array(["expert", "unknown"])})
    >>> len(problem.select("role = expert").trajectories)
    1
    """

    mdp: MDP
    trajectories: Trajectories
    meta: Mapping[str, Array] = field(default_factory=dict)
    trajectory_ids: Array | None = None
    state_ids: Array | None = None
    action_ids: Array | None = None
    xy: Floats | None = None
    y_down: bool = field(default=False, kw_only=True)
    state_columns: Mapping[str, Array] = field(default_factory=dict)
    edge_columns: Mapping[str, Array] = field(default_factory=dict)
    step_columns: Mapping[str, Array] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "trajectories", as_trajectories(self.trajectories))
        for name, kind in (("mdp", MDP), ("trajectories", Trajectories)):
            if not isinstance(getattr(self, name), kind):
                found = type(getattr(self, name)).__name__
                raise TypeError(f"{name} is of type {found}, not {kind.__name__}: give Problem(mdp, trajectories, ...)")
        n, mdp = len(self.trajectories), self.mdp
        sizes = {"trajectory_ids": n, "state_ids": mdp.n_states, "action_ids": mdp.n_actions, "xy": mdp.n_states}
        for name, size in sizes.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _column(name, "it", getattr(self, name), size))
        if self.xy is not None and self.xy.shape != (mdp.n_states, 2):
            raise InputError("xy", f"has shape {self.xy.shape}", f"give x and y of each state, ({mdp.n_states}, 2)")
        steps, moves = self.trajectories.states.size, mdp.transitions.nnz
        tables = {"meta": n, "state_columns": mdp.n_states, "edge_columns": moves, "step_columns": steps}
        for name, size in tables.items():
            given = getattr(self, name)
            if not hasattr(given, "items"):  # a data frame has them, too
                raise TypeError(
                    f"{name} is of type {type(given).__name__}: give a mapping of columns, {{'role': [...]}}"
                )
            given = given.items()
            columns = {key: _column(name, f"column {key!r}", values, size) for key, values in given}
            object.__setattr__(self, name, columns)

    @property
    def facts(self) -> dict[str, Array]:
        """The columns that filters can use: trajectory_id, and those of `meta`."""
        ids = np.arange(len(self.trajectories)) if self.trajectory_ids is None else self.trajectory_ids
        return {"trajectory_id": ids, **self.meta}

    def select(self, which: str | slice | npt.ArrayLike) -> Problem:
        """Return the same problem with some of its trajectories.

        which : a filter (`"group = 4 and role != test"`, see `messirl.data.filters`), a mask, indices or a slice
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
            raise ValueError(f"select({which!r:.60}) is not a selection of trajectories: {GIVE}")
        if key.dtype.kind == "b":
            if key.size != n:
                raise ValueError(
                    f"the mask has {count_noun(key.size, 'entry')} for {count_noun(n, 'trajectory')}: give "
                    "one per trajectory"
                )
            return np.flatnonzero(key)
        outside = (key < -n) | (key >= n)
        if outside.any():
            wrong = key[int(np.argmax(outside))]
            raise IndexError(f"trajectory {wrong} is not one of 0 … {n - 1}: number the {n} trajectories from 0")
        rows = np.arange(n)[key.astype(np.int64)]
        again = np.flatnonzero(np.bincount(rows, minlength=n) > 1)
        if again.size:
            remedy = "give each once, or a mask of True and False"
            raise ValueError(f"select takes trajectory {again[0]} more than once: {remedy}")
        return rows


def _column(where: str, what: str, values: Any, n: int) -> Array:
    """Return the values as an array with n entries; raise InputError otherwise."""
    column = np.asarray(values)
    if column.ndim == 0 or len(column) != n:
        has = count_noun(len(column), "entry") if column.ndim else f"the one value {values!r:.60}"
        raise InputError(where, f"{what} has {has}, not {n}", f"give {n}, or leave it out")
    return column
