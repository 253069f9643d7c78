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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from messirl._files import beside
from messirl.problem.mdp import MDP, NAMES

FORMAT, VERSION = "messirl-model", 1
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, OSError, RuntimeError),
)


@dataclass(frozen=True)
class Unsaved:
    """Stands for a function of the user's own, which could not be written to a file, where it is missed."""

    parameter: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        raise ValueError(
            f"the {self.parameter} {self.name} was not saved with the model: "
            f"set_params({self.parameter}=...) before fit"
        )


class Saved(BaseEstimator):
    """An estimator that can be written to one file. A class says what of a fit belongs in it; a subclass adds its own.

    _arrays : names of fitted arrays; a file without one of them is damaged
    _optional : names of fitted arrays that are None in some fits
    _facts : names of fitted numbers and texts
    _records : names of fitted dataclasses of plain lists, without the underscore, and their classes
    _kinds : classes of objects that parameters may be, written by name with their own parameters
    _missed : names of parameters that may be functions of the user's own, and cannot be done without

    Plain parameters and `mdp_` are always written.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()
    _facts: ClassVar[tuple[str, ...]] = ()
    _records: ClassVar[dict[str, Any]] = {}
    _kinds: ClassVar[tuple[type[Any], ...]] = ()
    _missed: ClassVar[tuple[str, ...]] = ()

    def _fitted(self) -> None:
        if not hasattr(self, "mdp_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def _parts(self) -> dict[str, Any]:
        """Further arrays for the file, under names of the class's own."""
        return {}

    def _revive(self, parts: dict[str, Any]) -> None:
        """Check what was read from a file, all of whose arrays are the parts, and make again what follows from it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file that `messirl.load` reads."""
        self._fitted()
        write(self, path)


def _declared(kind: type[Saved], name: str) -> list[str]:
    """What a class and those it derives from declare, theirs first."""
    return [item for one in reversed(kind.__mro__) for item in vars(one).get(name, ())]


def write(estimator: Saved, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; an existing file is replaced only when the new one is complete."""
    arrays, kind = estimator._parts(), type(estimator)
    described = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": kind.__name__,
        "parameters": {k: _describe(k, v, kind, arrays) for k, v in estimator.get_params(deep=False).items()},
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
    estimator = kind(**{k: _restore(k, v, kind, arrays) for k, v in described["parameters"].items()})
    estimator.mdp_ = _restore_mdp(described["mdp"], arrays)
    for name in _declared(kind, "_facts"):
        setattr(estimator, name, described["fitted"][name])
    for name in _declared(kind, "_records"):
        setattr(estimator, f"{name}_", kind._records[name].of(described.get(name, {})))
    for name in _declared(kind, "_arrays"):
        setattr(estimator, name, arrays[name])
    for name in _declared(kind, "_optional"):
        setattr(estimator, name, arrays.get(name))
    estimator._revive(arrays)
    return estimator


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _describe(name: str, value: Any, kind: type[Saved], arrays: dict[str, Any]) -> Any:
    value = _plain(value.toarray() if sp.issparse(value) else value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if type(value) in kind._kinds:
        inside = value.get_params(deep=False) if hasattr(value, "get_params") else vars(value)
        arguments = {k: _describe(f"{name}_{k}", v, kind, arrays) for k, v in inside.items()}
        return {"kind": type(value).__name__, "arguments": arguments}
    if isinstance(value, np.ndarray | list | tuple):
        arrays[f"parameter_{name}"] = np.asarray(value, dtype=np.float64)
        return {"array": f"parameter_{name}"}
    return {"unsaved": getattr(value, "__qualname__", type(value).__qualname__), "is": name}


def _restore(name: str, value: Any, kind: type[Saved], arrays: dict[str, Any]) -> Any:
    if not isinstance(value, dict):
        return value
    kinds = {one.__name__: one for one in kind._kinds}
    if "arguments" in value:  # earlier files call the class of a similarity by the name of the parameter
        inside = {k: _restore(f"{name}_{k}", v, kind, arrays) for k, v in value["arguments"].items()}
        return kinds[value["kind"] if "kind" in value else value["similarity"]](**inside)
    if "precomputed" in value:  # in earlier files
        return kinds["Precomputed"](arrays[value["precomputed"]])
    if "array" in value:
        return arrays[value["array"]]
    return Unsaved(name, value["unsaved"]) if name in kind._missed else None


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
