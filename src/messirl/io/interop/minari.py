"""Minari data sets of recorded episodes, through its API. Only local data sets; nothing is downloaded.

Infos, seeds and options of episodes are not read. `io.hdf5` reads the same files without Minari.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Array
from messirl.data.errors import InputError
from messirl.data.trajectories import Trajectories
from messirl.io.recordings.recording import Recording, as_recordings, trajectories_from_recordings


def from_minari(dataset: Any, *, end_state: int | None = None) -> Trajectories:
    """Convert a data set with discrete observations and actions to trajectories, both numbered from 0.

    dataset : a MinariDataset, or the id of a local one
    end_state : replaces the last state of a terminated episode; `from_gym` adds such a state, as its last one
    """
    data = _loaded(dataset)
    first = {}
    for name, space in (("observations", data.observation_space), ("actions", data.action_space)):
        if not (hasattr(space, "n") and hasattr(space, "start")):
            remedy = "use episodes_from_minari and messirl.io.recordings.discretise"
            raise InputError(_name(data), f"its {name} are {space}, not Discrete", remedy)
        first[name] = int(space.start)
    shifted = [
        Recording(one.observations - first["observations"], one.actions - first["actions"], one.terminated, id=one.id)
        for one in episodes_from_minari(data)
    ]
    return trajectories_from_recordings(shifted, end_state=end_state)


def episodes_from_minari(dataset: Any, *, key: str | None = None) -> list[Recording]:
    """Read the episodes of a data set; `key` selects the entry if observations are a Dict."""
    data = _loaded(dataset)
    name, found = _name(data), []
    for one in data.iterate_episodes():
        seen, ends = _entry(name, one.observations, key), (one.terminations, one.truncations)
        found.append(episode(f"{name}, episode {one.id}", int(one.id), seen, one.actions, one.rewards, *ends))
    return found


def episode(
    where: str, number: int, observations: Any, actions: Any, rewards: Any, terminations: Any, truncations: Any
) -> Recording:
    """Convert a Minari episode to a recording; rewards that are all NaN are unknown."""
    ends = []
    for name, flags in (("terminated", terminations), ("truncated", truncations)):
        marked = np.flatnonzero(flags)
        if marked.size and marked[0] < len(flags) - 1:
            raise InputError(where, f"it is {name} at step {marked[0]} of {len(flags)}", "split the episode there")
        ends.append(bool(marked.size))
    known = None if np.isnan(rewards).all() else rewards
    return Recording(observations, actions, ends[0], ends[1], known, number)


def to_minari(
    episodes: Trajectories | Iterable[Recording],
    dataset_id: str,
    *,
    terminated: npt.ArrayLike = False,
    observation_space: Any = None,
    action_space: Any = None,
    renumber: bool = False,
    **details: Any,
) -> Any:
    """Create a local MinariDataset, under MINARI_DATASETS_PATH if it is set.

    terminated : for trajectories, True if they ended and were not truncated: bool (n,), or one for all
    observation_space, action_space : a number n for Discrete(n), or a space of gymnasium; None: the smallest Discrete
        space from 0 that contains all integers, or an unbounded Box
    renumber : renumber the episodes; Minari's ids are 0, 1, …
    details : further arguments of minari.create_dataset_from_buffers (description, author, env, …)

    Unknown rewards are stored as NaN.
    """
    minari = _minari()
    if not re.fullmatch(r"[-\w/]+-v\d+", dataset_id):
        raise InputError(dataset_id, "it is not the id of a data set", "give (namespace/)name-v0")
    if np.any(terminated) and not isinstance(episodes, Trajectories):
        raise InputError("terminated", "given together with recordings", "omit it: recordings contain their own flags")
    recordings = as_recordings(episodes, terminated)
    if not recordings:
        raise InputError(dataset_id, "there are no episodes", "give at least one")
    if not renumber and any(one.id not in (None, i) for i, one in enumerate(recordings)):
        what = "the ids of the episodes are not 0, 1, …"
        raise InputError(dataset_id, what, "Minari supports no other ids; use renumber=True")
    buffers = [_buffer(minari, i, one) for i, one in enumerate(recordings)]
    spaces = {
        "observation_space": _space("observation", observation_space, [one.observations for one in recordings]),
        "action_space": _space("action", action_space, [one.actions for one in recordings]),
    }
    with warnings.catch_warnings():  # Minari warns of every omitted detail
        warnings.filterwarnings("ignore", r"`\w+` is set to None|env_spec is None", UserWarning)
        return minari.create_dataset_from_buffers(dataset_id, buffers, **spaces, **details)


def _buffer(minari: Any, number: int, one: Recording) -> Any:
    steps = len(one)
    last = np.arange(steps) == steps - 1
    return minari.data_collector.EpisodeBuffer(
        id=number,
        observations=one.observations,
        actions=one.actions,
        rewards=np.full(steps, np.nan) if one.rewards is None else one.rewards,
        terminations=last & one.terminated,
        truncations=last & one.truncated,
    )


def _space(what: str, given: Any, arrays: list[Array]) -> Any:
    """Return the given space after checking that it contains the data, or the smallest one that does."""
    from gymnasium import spaces

    flat, dtype = [one for one in arrays if one.size], np.result_type(*arrays)
    low, high = min((one.min() for one in flat), default=0), max((one.max() for one in flat), default=0)
    space = spaces.Discrete(given) if isinstance(given, int) else given
    if space is None and dtype.kind in "iu" and arrays[0].ndim == 1:
        space = spaces.Discrete(int(high) + 1)
    elif space is None and dtype.kind == "f":
        space = spaces.Box(-np.inf, np.inf, arrays[0].shape[1:], dtype.type)
    elif space is None:
        raise InputError("to_minari", f"{what}s that are {dtype} fit several spaces", f"give {what}_space")
    if any(one.shape[1:] != space.shape for one in arrays):
        raise InputError("to_minari", f"the {what}s do not have the shape of {space}", f"give another {what}_space")
    if isinstance(space, spaces.Discrete) and not space.start <= low <= high < space.start + space.n:
        raise InputError("to_minari", f"{what}s {low} … {high} lie outside {space}", f"give another {what}_space")
    return space


def _entry(where: str, observations: Any, key: str | None) -> Any:
    if not isinstance(observations, Mapping):
        if key is not None:
            raise InputError(where, f"its observations have no entry {key!r}", "omit key=")
        return observations
    if key not in observations:
        raise InputError(
            where, f"its observations are a Dict of {', '.join(observations)}", "choose one of them with key="
        )
    return observations[key]


def _loaded(dataset: Any) -> Any:
    if not isinstance(dataset, str):
        if not hasattr(dataset, "iterate_episodes"):
            raise TypeError(f"dataset must be a MinariDataset or its id, not {type(dataset).__name__}")
        return dataset
    minari = _minari()
    if dataset not in minari.list_local_datasets():
        raise InputError(dataset, "there is no such local data set", "download or create it first")
    return minari.load_dataset(dataset)


def _name(data: Any) -> str:
    return str(getattr(getattr(data, "spec", None), "dataset_id", "data set"))


def _minari() -> Any:
    try:
        import minari
        import minari.data_collector
    except ImportError:
        raise ImportError("this needs minari: pip install 'messirl[minari]'") from None
    return minari
