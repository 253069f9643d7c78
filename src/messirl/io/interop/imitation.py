"""Demonstrations of the package imitation, with attributes obs (T + 1), acts (T), terminal and rews.

They are objects (`Trajectory`), or the table in which imitation stores them on disk and on the Hugging Face hub:
one row per demonstration, with the columns obs, acts, terminal and, if known, rews. Neither package is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl.data.errors import InputError
from messirl.data.trajectories import Trajectories
from messirl.io.recordings.recording import Recording, as_recordings, trajectories_from_recordings

NEEDED = ("obs", "acts", "terminal")


def from_imitation(demonstrations: Any, *, end_state: int | None = None) -> Trajectories:
    """Convert demonstrations whose observations and actions are state and action numbers to trajectories.

    demonstrations : objects with obs, acts and terminal; or their table: a dict of lists, a pyarrow.Table or a
        datasets.Dataset
    end_state : replaces the last state of a terminal demonstration; `from_gym` adds such a state.  imitation also marks
        an episode as terminal at its time limit: then omit end_state, or cut those episodes yourself.
    """
    return trajectories_from_recordings(recordings_from_imitation(demonstrations), end_state=end_state)


def recordings_from_imitation(demonstrations: Any) -> list[Recording]:
    """Convert demonstrations with any observations and actions to recordings."""
    names = getattr(demonstrations, "column_names", None)
    if names is None and isinstance(demonstrations, dict):
        names = list(demonstrations)
    if names is not None:
        return _from_table(demonstrations, names)
    found = []
    for i, one in enumerate(demonstrations):
        missing = [name for name in NEEDED if not hasattr(one, name)]
        if missing:
            raise TypeError(f"demonstration {i} has no {', '.join(missing)}: give objects like imitation's Trajectory")
        found.append(_recording(i, one.obs, one.acts, one.terminal, getattr(one, "rews", None)))
    return found


def to_table(
    episodes: Trajectories | Iterable[Recording], *, terminated: npt.ArrayLike = False
) -> dict[str, list[Any]]:
    """Convert trajectories with actions, or recordings, to a table: `datasets.Dataset.from_dict(to_table(…))`.

    terminated : for trajectories, bool (n,) or one for all.  infos are empty, one per step, as imitation expects them.
    """
    recordings = as_recordings(episodes, terminated)
    table: dict[str, list[Any]] = {
        "obs": [one.observations.tolist() for one in recordings],
        "acts": [one.actions.tolist() for one in recordings],
        "infos": [["{}"] * len(one) for one in recordings],
        "terminal": [one.terminated for one in recordings],
    }
    rewards = [one.rewards.tolist() for one in recordings if one.rewards is not None]
    if rewards and len(rewards) != len(recordings):
        raise InputError("to_table", "some recordings have rewards and some do not", "give rewards to all or to none")
    return {**table, "rews": rewards} if rewards else table


def _from_table(table: Any, names: list[str]) -> list[Recording]:
    for name in NEEDED:
        if name not in names:
            raise InputError(
                "table", f"there is no column {name!r}", f"the columns are {', '.join(names)}; rename them"
            )
    wanted = [*NEEDED, *(["rews"] if "rews" in names else [])]
    columns = {name: _plain(table[name]) for name in wanted}
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        what = f"its columns have {', '.join(map(str, sorted(sizes)))} rows"
        raise InputError("table", what, "give one row per demonstration")
    rewards = columns.get("rews", [None] * sizes.pop())
    return [_recording(i, *row) for i, row in enumerate(zip(*(columns[name] for name in NEEDED), rewards, strict=True))]


def _plain(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def _recording(i: int, obs: Any, acts: Any, terminal: Any, rews: Any) -> Recording:
    if isinstance(terminal, np.ndarray) and terminal.ndim == 0:
        terminal = terminal.item()
    return Recording(obs, acts, terminal, rewards=rews, id=i)
