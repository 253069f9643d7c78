"""What a folder calls its states and actions, kept inside the file of a model that was fitted to it.

A model knows names, which need not be the labels: a table of states may have both, and a folder may have labels but no
names. The labels are one more array in the .npz file, JSON as bytes; the rest of the file stays the same.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from messirl._files import beside
from messirl._npz import BROKEN, Archive
from messirl._types import Array
from messirl.problem.mdp import MDP
from messirl.problem.problem import Problem

MEMBER = "folder_labels"


@dataclass(frozen=True)
class Labels:
    """Labels of states and of actions; None if they are numbered 0, 1, …."""

    states: list[str] | None = None
    actions: list[str] | None = None

    @classmethod
    def of(cls, problem: Problem) -> Labels:
        """The labels of a problem."""
        both = problem.state_ids, problem.action_ids
        return cls(*(None if ids is None else [str(label) for label in ids.tolist()] for ids in both))


def save_model(model: Any, path: str | os.PathLike[str], problem: Problem) -> None:
    """Write a fitted model with the labels of the problem it was fitted to."""
    with beside(path) as part:
        model.save(part)
        text = json.dumps(asdict(Labels.of(problem)))
        with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{MEMBER}.npy", "w") as file:
            np.lib.format.write_array(file, np.frombuffer(text.encode(), dtype=np.uint8), allow_pickle=False)


def read_labels(path: str | os.PathLike[str], mdp: MDP) -> Labels:
    """The labels in the file of a model of that MDP; none if it was not written by `save_model`."""
    with open(path, "rb") as file:
        try:
            archive = Archive(file)
            found = Labels(**archive.json(MEMBER)) if MEMBER in archive else Labels()
        except BROKEN as error:
            raise ValueError(f"{os.fspath(path)} is a damaged messirl model ({error})") from error
    for labels, many in ((found.states, mdp.n_states), (found.actions, mdp.n_actions)):
        if labels is not None and not (isinstance(labels, list) and [*map(type, labels)] == [str] * many):
            raise ValueError(f"{os.fspath(path)} is a damaged messirl model (its labels are not {many} texts)")
    return found


def called(index: Array, labels: list[str] | None = None) -> Any:
    """An Arrow column of labels, or of the numbers themselves; −1 is null."""
    import pyarrow as pa

    at = pa.array(index, pa.int64(), mask=index < 0)
    return at if labels is None else pa.array(labels, pa.string()).take(at)
