"""Labels of states and actions and coordinates of states, stored in the file of a model fitted to a folder.

A model stores names, which need not be the labels: a table of states may have both, and a folder may have labels but no
names. The labels are one more array in the .npz file, JSON as bytes, and coordinates another; the rest of the file is
unchanged.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._files import atomic_path
from messirl._npz import BROKEN, Archive, short_message
from messirl._types import Array, Floats
from messirl.data.mdp import MDP
from messirl.data.problem import Problem

MEMBER, PLACES = "folder_labels", "folder_xy"


@dataclass(frozen=True)
class Labels:
    """Labels of states and of actions; None if they are numbered 0, 1, …."""

    states: list[str] | None = None
    actions: list[str] | None = None
    y_down: bool = False
    xy: Floats | None = None

    @classmethod
    def of(cls, problem: Problem) -> Labels:
        """Return the labels of a problem."""
        both = problem.state_ids, problem.action_ids
        states, actions = (None if ids is None else [str(label) for label in ids.tolist()] for ids in both)
        return cls(states, actions, problem.y_down, problem.xy)


def save_model(model: Any, path: str | os.PathLike[str], problem: Problem) -> None:
    """Write a fitted model with the labels and the coordinates of the problem it was fitted to."""
    labels = Labels.of(problem)
    text = json.dumps({name: value for name, value in vars(labels).items() if name != "xy"})
    arrays = {MEMBER: np.frombuffer(text.encode(), dtype=np.uint8)}
    if labels.xy is not None:
        arrays[PLACES] = np.asarray(labels.xy, dtype=np.float64)
    with atomic_path(path) as part:
        model.save(part)
        with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)


def read_labels(path: str | os.PathLike[str], mdp: MDP) -> Labels:
    """Read the labels stored with a model of that MDP; empty if the file was not written by `save_model`."""
    with open(path, "rb") as file:
        try:
            archive = Archive(file)
            found = Labels(**archive.json(MEMBER), xy=archive.get(PLACES)) if MEMBER in archive else Labels()
        except BROKEN as error:
            raise ValueError(f"{os.fspath(path)} is a damaged messirl model ({short_message(error)})") from error
    for labels, many in ((found.states, mdp.n_states), (found.actions, mdp.n_actions)):
        if labels is not None and not (isinstance(labels, list) and [*map(type, labels)] == [str] * many):
            raise ValueError(f"{os.fspath(path)} is a damaged messirl model (its labels are not {many} strings)")
    if found.xy is not None and (found.xy.shape != (mdp.n_states, 2) or found.xy.dtype.kind != "f"):
        raise ValueError(f"{os.fspath(path)} is a damaged messirl model (its coordinates do not match its states)")
    if not isinstance(found.y_down, bool):
        raise ValueError(f"{os.fspath(path)} is a damaged messirl model (its y_down is not a boolean)")
    return found


def called(index: Array, labels: list[str] | None = None) -> Any:
    """Return an Arrow column of labels, or of the numbers themselves; −1 is null."""
    import pyarrow as pa

    at = pa.array(index, pa.int64(), mask=index < 0)
    return at if labels is None else pa.array(labels, pa.string()).take(at)
