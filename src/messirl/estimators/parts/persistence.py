"""Saving and loading fitted models: one .npz file of plain arrays with a JSON description inside. Never pickle.

Policies are not stored: they follow from the reward. What cannot be written (a callback, a similarity that is a
user-defined function) is left out; using it after loading is an error that says so.
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
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from messirl._files import beside
from messirl.estimators.shown import estimator_html
from messirl.problem.mdp import MDP, NAMES
from messirl.similarity import DEFAULT, Similarity, as_similarity

FORMAT, VERSION = "messirl-model", 1
MDP_ARRAYS = ("transitions", "features", "terminal")
MDP_FACTS = ("discount", "horizon", *NAMES)
SPARSE = ("data", "indices", "indptr")
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, OSError, RuntimeError),
)


@dataclass(frozen=True)
class Unsaved:
    """Takes the place of a user-defined function, which could not be written to the file."""

    parameter: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """Raise the error that says which parameter must be set before the model can be fitted again."""
        raise ValueError(
            f"the {self.parameter} {self.name} was not saved with the model: "
            f"set_params({self.parameter}=...) before fit"
        )


class Saved(BaseEstimator):
    """An estimator that can be written to one file. A class declares what belongs in it; a subclass adds its own.

    _arrays : names of fitted arrays; a file without one of them is damaged
    _optional : names of fitted arrays that are None in some fits
    _facts : names of fitted numbers and texts
    _records : names of fitted dataclasses of plain lists, without the underscore, and their classes
    _kinds : classes of objects that parameters may be, written by name with their own parameters
    _missed : names of parameters that may be user-defined functions, without which the model cannot be fitted again

    Plain parameters and `mdp_` are always written.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()
    _facts: ClassVar[tuple[str, ...]] = ()
    _records: ClassVar[dict[str, Any]] = {}
    _kinds: ClassVar[tuple[type[Any], ...]] = ()
    _missed: ClassVar[tuple[str, ...]] = ()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of parameters too: `set_params(similarity__sigma=2.0)`.

        A similarity does not change, and may be shared: one with these parameters takes its place.
        """
        whole = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**whole)
        inner: dict[str, dict[str, Any]] = {}
        for name in params.keys() - whole.keys():
            outer, _, rest = name.partition("__")
            inner.setdefault(outer, {})[rest] = params[name]
        for outer, given in inner.items():
            held = self.get_params(deep=False).get(outer)
            if outer == "similarity" and (held is None or isinstance(held, str | Similarity)):
                setattr(self, outer, as_similarity(DEFAULT if held is None else held).set_params(**given))
            else:
                super().set_params(**{f"{outer}__{rest}": value for rest, value in given.items()})
        return self

    def _repr_html_(self) -> str:
        return estimator_html(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": estimator_html(self)}

    def _fitted(self) -> None:
        if not hasattr(self, "converged_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def _parts(self) -> dict[str, Any]:
        """Further arrays for the file, under names of the class's own."""
        return {}

    def _revive(self, parts: dict[str, Any]) -> None:
        """Check what was read from a file (`parts` are all its arrays), and compute again what follows from it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `messirl.load` reads; an old file stays until this one is complete."""
        self._fitted()
        arrays, kind = self._parts(), type(self)
        described = {
            "format": FORMAT,
            "version": VERSION,
            "estimator": kind.__name__,
            "parameters": {k: _describe(k, v, kind, arrays) for k, v in self.get_params(deep=False).items()},
            "fitted": {name: _plain(getattr(self, name)) for name in _declared(kind, "_facts")},
            **{name: vars(getattr(self, f"{name}_")) for name in _declared(kind, "_records")},
            "mdp": {name: getattr(self.mdp_, name) for name in MDP_FACTS},
        }
        for name in (*_declared(kind, "_arrays"), *_declared(kind, "_optional")):
            _put(name, getattr(self, name, None), arrays)
        for name in (*MDP_ARRAYS, "start", "reference"):
            _put(f"mdp_{name}", getattr(self.mdp_, name), arrays)
        arrays["description"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
        with beside(path) as part, open(part, "wb") as file:
            np.savez_compressed(file, **arrays)


def _declared(kind: type[Saved], name: str) -> list[str]:
    """What a class and its parents declare under a name, the parents first."""
    return [item for one in reversed(kind.__mro__) for item in vars(one).get(name, ())]


def read(path: str | os.PathLike[str], class_of: Callable[[str], type[Saved]]) -> Any:
    """The model that `save` wrote; ValueError if the file is no model or is damaged. Nothing in it is executed.

    class_of : function from the name of a class to the class
    """
    content = io.BytesIO(Path(path).read_bytes())  # whatever fails from here on is the fault of the content
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
    """Refuse an array that claims to be larger than its part of the file, before memory is allocated for it."""
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
    parts = {name: _get(f"mdp_{name}", arrays) for name in MDP_ARRAYS}
    facts = {name: described["mdp"][name] for name in MDP_FACTS}
    estimator.mdp_ = MDP(**parts, **facts, start=arrays.get("mdp_start")).based_on(arrays.get("mdp_reference"))
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
    if "arguments" in value:  # earlier files name the class under "similarity", not "kind"
        inside = {k: _restore(f"{name}_{k}", v, kind, arrays) for k, v in value["arguments"].items()}
        return kinds[value["kind"] if "kind" in value else value["similarity"]](**inside)
    if "precomputed" in value:  # in earlier files
        return kinds["Precomputed"](arrays[value["precomputed"]])
    if "array" in value:
        return arrays[value["array"]]
    return Unsaved(name, value["unsaved"]) if name in kind._missed else None


def _put(name: str, value: Any, arrays: dict[str, Any]) -> None:
    """Add a value to the arrays of a file: a sparse matrix as its parts, None not at all."""
    if sp.issparse(value):
        arrays |= {f"{name}_{part}": getattr(value, part) for part in SPARSE}
        arrays[f"{name}_shape"] = np.array(value.shape)
    elif value is not None:
        arrays[name] = np.asarray(value)


def _get(name: str, arrays: dict[str, Any]) -> Any:
    """The value that `_put` added."""
    if f"{name}_shape" not in arrays:
        return arrays[name]
    shape = tuple(int(n) for n in arrays[f"{name}_shape"])
    matrix = sp.csr_array(tuple(arrays[f"{name}_{part}"] for part in SPARSE), shape=shape)
    matrix.check_format(full_check=True)
    return matrix
