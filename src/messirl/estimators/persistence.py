"""Saving and loading fitted models: one .npz file of plain arrays with a JSON description inside. Never pickle.

Policies are not stored: they follow from the reward. What cannot be written (a callback, a similarity that is a
function of the user's own) is left out, and said so where it is missed.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from messirl._files import beside
from messirl.problem.mdp import MDP, NAMES
from messirl.similarity import RBF, CompleteGraph, Exponential, Precomputed

FORMAT, VERSION = "messirl-model", 1
SIMILARITIES: dict[str, Any] = {c.__name__: c for c in (RBF, Exponential, CompleteGraph)}
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, OSError, RuntimeError),
)


@dataclass(frozen=True)
class UnsavedSimilarity:
    """Stands for a similarity that could not be written to a file."""

    name: str

    def __call__(self, trajectories: Any, counts: Any) -> Any:
        raise ValueError(
            f"the similarity {self.name} was not saved with the model: set_params(similarity=...) before fit"
        )


class Saved(BaseEstimator):
    """An estimator that can be written to one file. A class says what of a fit belongs in it; a subclass adds its own.

    _arrays : names of fitted arrays; a file without one of them is damaged
    _optional : names of fitted arrays that are None in some fits
    _facts : names of fitted numbers and texts
    _records : names of fitted dataclasses of plain lists, without the underscore, and their classes

    Parameters and `mdp_` are always written.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()
    _facts: ClassVar[tuple[str, ...]] = ()
    _records: ClassVar[dict[str, Any]] = {}

    def _fitted(self) -> None:
        if not hasattr(self, "mdp_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def _revive(self) -> None:
        """Check what was read from a file, and make again what follows from it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that `messirl.load` reads."""
        self._fitted()
        write(self, path)


def _declared(kind: type[Saved], name: str) -> list[str]:
    """What a class and those it derives from declare, theirs first."""
    return [item for one in reversed(kind.__mro__) for item in vars(one).get(name, ())]


def write(estimator: Saved, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; an existing file is replaced only when the new one is complete."""
    arrays: dict[str, Any] = {}
    kind = type(estimator)
    described = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": kind.__name__,
        "parameters": {k: _describe(k, v, arrays) for k, v in estimator.get_params(deep=False).items()},
        "fitted": {name: _plain(getattr(estimator, name)) for name in _declared(kind, "_facts")},
        **{name: vars(getattr(estimator, f"{name}_")) for name in _declared(kind, "_records")},
        "mdp": _describe_mdp(estimator.mdp_, arrays),
    }
    for name in (*_declared(kind, "_arrays"), *_declared(kind, "_optional")):
        value = getattr(estimator, name, None)
        if value is not None:
            arrays[name] = np.asarray(value)
    arrays["description"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
    with beside(path) as part, open(part, "wb") as file:
        np.savez_compressed(file, **arrays)


def read(path: str | os.PathLike[str], class_of: Callable[[str], type[Saved]]) -> Any:
    """The model that `write` wrote, `class_of` its name; ValueError if the file is none or damaged. Runs nothing."""
    content = io.BytesIO(Path(path).read_bytes())  # from here on only the content can be at fault
    try:
        _check_claims(content)
        with np.load(content, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
            described = json.loads(arrays["description"].tobytes())
            kind, version = described["format"], described["version"]
    except BROKEN as error:
        raise ValueError(f"{os.fspath(path)} is not a messirl model, or is damaged ({error})") from error
    if kind != FORMAT:
        raise ValueError(f"{os.fspath(path)} is not a messirl model")
    if version != VERSION:
        raise ValueError(f"{os.fspath(path)} is a model of format {version}; this messirl reads format {VERSION}")
    try:
        return _restored(described, arrays, class_of)
    except BROKEN as error:
        raise ValueError(f"{os.fspath(path)} is a damaged messirl model ({error})") from error


def _check_claims(content: io.BytesIO) -> None:
    """Refuse an array that claims to be larger than its part of the file, before memory is asked for."""
    with zipfile.ZipFile(content) as archive:
        for part in archive.infolist():
            with archive.open(part) as file:
                first = np.lib.format.read_magic(file) == (1, 0)
                header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
                shape, _, kind = header(file)
            if math.prod(shape) * kind.itemsize > part.file_size:
                raise ValueError(f"{part.filename} is cut short")
    content.seek(0)


def _restored(described: dict[str, Any], arrays: dict[str, Any], class_of: Callable[[str], type[Saved]]) -> Saved:
    kind = class_of(described["estimator"])
    estimator = kind(**{k: _restore(v, arrays) for k, v in described["parameters"].items()})
    estimator.mdp_ = _restore_mdp(described["mdp"], arrays)
    for name in _declared(kind, "_facts"):
        setattr(estimator, name, described["fitted"][name])
    for name in _declared(kind, "_records"):
        setattr(estimator, f"{name}_", kind._records[name].of(described.get(name, {})))
    for name in _declared(kind, "_arrays"):
        setattr(estimator, name, arrays[name])
    for name in _declared(kind, "_optional"):
        setattr(estimator, name, arrays.get(name))
    estimator._revive()
    return estimator


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _describe(name: str, value: Any, arrays: dict[str, Any]) -> Any:
    value = _plain(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value).__name__ in SIMILARITIES and type(value) is SIMILARITIES[type(value).__name__]:
        return {
            "similarity": type(value).__name__,
            "arguments": {k: _plain(v) for k, v in asdict(value).items()},
        }
    if isinstance(value, Precomputed):
        arrays[f"parameter_{name}"] = value.matrix.toarray() if sp.issparse(value.matrix) else np.asarray(value.matrix)
        return {"precomputed": f"parameter_{name}"}
    if isinstance(value, np.ndarray | list | tuple):
        arrays[f"parameter_{name}"] = np.asarray(value, dtype=np.float64)
        return {"array": f"parameter_{name}"}
    return {"unsaved": getattr(value, "__qualname__", type(value).__qualname__), "is": name}


def _restore(value: Any, arrays: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    if "similarity" in value:
        return SIMILARITIES[value["similarity"]](**value["arguments"])
    if "precomputed" in value:
        return Precomputed(arrays[value["precomputed"]])
    if "array" in value:
        return arrays[value["array"]]
    return UnsavedSimilarity(value["unsaved"]) if value["is"] == "similarity" else None


def _describe_mdp(mdp: MDP, arrays: dict[str, Any]) -> dict[str, Any]:
    _put_sparse("mdp_transitions", mdp.transitions, arrays)
    if sp.issparse(mdp.features):
        _put_sparse("mdp_features", mdp.features, arrays)
    else:
        arrays["mdp_features"] = mdp.features
    arrays["mdp_terminal"] = mdp.terminal
    if mdp.start is not None:
        arrays["mdp_start"] = mdp.start
    return {"discount": mdp.discount, "horizon": mdp.horizon, **{name: getattr(mdp, name) for name in NAMES}}


def _put_sparse(name: str, matrix: sp.csr_array, arrays: dict[str, Any]) -> None:
    for part in ("data", "indices", "indptr"):
        arrays[f"{name}_{part}"] = getattr(matrix, part)
    arrays[f"{name}_shape"] = np.array(matrix.shape)


def _get_sparse(name: str, arrays: dict[str, Any]) -> sp.csr_array:
    parts = tuple(arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = sp.csr_array(parts, shape=tuple(int(n) for n in arrays[f"{name}_shape"]))
    matrix.check_format(full_check=True)
    return matrix


def _restore_mdp(described: dict[str, Any], arrays: dict[str, Any]) -> MDP:
    features = arrays["mdp_features"] if "mdp_features" in arrays else _get_sparse("mdp_features", arrays)
    return MDP(
        _get_sparse("mdp_transitions", arrays),
        features,
        start=arrays.get("mdp_start"),
        discount=described["discount"],
        horizon=described["horizon"],
        terminal=arrays["mdp_terminal"],
        **{name: described[name] for name in NAMES},
    )
