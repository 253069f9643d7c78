"""Recorded episodes before conversion to trajectories: T + 1 observations, T actions, and end flags.

Observations are points (T + 1, k) or, in a discrete space, state numbers (T + 1,); `io.discretise` converts points to
states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._text import count_noun
from messirl._types import Array
from messirl.data.errors import InputError
from messirl.data.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Recording:
    """One recorded episode of T steps.

    Parameters
    ----------
    observations : array (T + 1, k), or (T + 1,)
        Observations before each step and after the last one: points, or state numbers.
    actions : array (T,), or (T, m)
        The action in each step.
    terminated : bool
        Whether the last step ended the episode.
    truncated : bool
        Whether the episode was cut short. Neither, either or both may be the case.
    rewards : array (T,), optional
        The reward of each step.
    id : int or str, optional
        The id of the episode in the source.
    columns : tuple of str, optional
        The names in the source of the components of an observation.

    Examples
    --------
    >>> from messirl.io import Recording
    >>> walk = Recording([[0.0], [0.4], [1.0]], [1, 1], terminated=True)
    >>> len(walk), walk.observations.shape
    (2, (3, 1))
    """

    observations: Array
    actions: Array
    terminated: bool = False
    truncated: bool = False
    rewards: Array | None = None
    id: int | str | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        where = "a recording" if self.id is None else f"recording {self.id}"
        for name in ("observations", "actions", "rewards"):
            value = getattr(self, name)
            if value is None and name == "rewards":
                continue
            array = _numbers(where, name, value)
            if not 1 <= array.ndim <= (1 if name == "rewards" else 2):
                raise InputError(where, f"its {name} have shape {array.shape}", "give one number or one row per step")
            object.__setattr__(self, name, array)
        steps = len(self.observations) - 1
        for name in ("actions", "rewards"):
            value = getattr(self, name)
            if value is not None and len(value) != steps:
                what = f"it has {count_noun(steps + 1, 'observation')} and {count_noun(len(value), name[:-1])}"
                raise InputError(where, what, f"give one per step ({max(steps, 0)})")
        for name in ("terminated", "truncated"):
            flag = getattr(self, name)
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"{where}: {name} must be True or False, not {flag!r}")
            object.__setattr__(self, name, bool(flag))

    def __len__(self) -> int:
        """Return the number of steps T."""
        return len(self.actions)


def check_recordings(recordings: Iterable[Recording]) -> list[Recording]:
    """Return the recordings as a list; raise TypeError for anything else."""
    if isinstance(recordings, Recording):
        raise TypeError("recordings must be a list of Recording, not one alone: give [recording]")
    found = list(recordings)
    for item in found:
        if not isinstance(item, Recording):
            raise TypeError(f"recordings must be a list of Recording, not of {type(item).__name__}")
    return found


def as_recordings(episodes: Trajectories | Iterable[Recording], terminated: npt.ArrayLike) -> list[Recording]:
    """Return recordings unchanged, or convert trajectories to recordings."""
    if isinstance(episodes, Trajectories):
        return recordings_from_trajectories(episodes, terminated=terminated)
    return check_recordings(episodes)


def trajectories_from_recordings(recordings: Iterable[Recording], *, end_state: int | None = None) -> Trajectories:
    """Convert recordings in a discrete space to trajectories.

    end_state : replaces the last state of a recording that terminated, as `from_gym` adds such a state (its last one)
    """
    states: list[Any] = []
    actions: list[Any] = []
    for i, item in enumerate(check_recordings(recordings)):
        where = f"recording {i if item.id is None else item.id}"
        states.append(ended(_whole(where, "observations", item.observations), item, end_state))
        actions.append(_whole(where, "actions", item.actions))
    return Trajectories.from_lists(states, actions)


def recordings_from_trajectories(
    trajectories: Trajectories, *, terminated: npt.ArrayLike = False, ids: Sequence[int | str] | None = None
) -> list[Recording]:
    """Convert trajectories with actions to recordings; those not `terminated`, (n,) or one for all, are truncated."""
    if trajectories.actions is None:
        raise InputError("trajectories", "they have no actions", "give one action per step")
    n = len(trajectories)
    flags = np.asarray(terminated)
    if flags.dtype != np.bool_ or flags.shape not in ((), (n,)):
        raise InputError(
            "terminated", f"has dtype {flags.dtype} and shape {flags.shape}", f"give one bool, or {n} of them"
        )
    flags = np.broadcast_to(flags, (n,))
    names = range(n) if ids is None else list(ids)
    if len(names) != n:
        raise InputError("ids", f"there are {len(names)} for {count_noun(n, 'trajectory')}", "give one per trajectory")
    return [
        Recording(t.states, t.actions, bool(end), not end, id=name)
        for t, end, name in zip(trajectories, flags, names, strict=True)
        if t.actions is not None
    ]


def ended(states: Array, recording: Recording, end_state: int | None) -> Array:
    """Return the states, the last replaced by `end_state` if given and the recording terminated."""
    if end_state is None or not recording.terminated or len(recording) == 0:
        return states
    return np.append(states[:-1], end_state)


def _whole(where: str, name: str, values: Array) -> Array:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind not in "iu" or values.ndim != 1:
        what = f"its {name} are {values.dtype} of shape {values.shape}, not state or action numbers"
        raise InputError(where, what, "use messirl.io.recordings.discretise to number them")
    return values.astype(np.int64)


def _numbers(where: str, name: str, values: Any) -> Array:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(where, f"its {name} have rows of different lengths", "give rows of equal length") from None
    if array.dtype.kind not in "fiub":
        raise InputError(where, f"its {name} are {array.dtype}, not numbers", "encode them as numbers")
    return array
