"""Saving and loading fitted models: one .npz file of plain arrays with a JSON description inside. Never pickle.

Policies are not stored: they follow from the reward. User-defined functions (a callback, a similarity) cannot be
written; a loaded model that needs one raises an error that names it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from messirl._checks import check_parameters, is_number, is_whole
from messirl._files import atomic_path
from messirl._memory_guard import JSON
from messirl._npz import BROKEN, Archive, check_integer_range, short_message
from messirl.data.mdp import MDP, NAMES
from messirl.estimators._estimator_html import estimator_html
from messirl.similarity import Precomputed, Similarity
from messirl.similarity.base import as_similarity, checked_similarities
from messirl.similarity.kernels import DEFAULT

FORMAT, VERSION = "messirl-model", 1
MDP_ARRAYS = ("transitions", "features", "terminal")
MDP_FACTS = ("discount", "horizon", *NAMES)
SPARSE = ("data", "indices", "indptr")
FLAGS, TEXTS = ("converged_",), ("termination_",)  # names of fitted booleans and texts; all other values are numbers
NUMBERS = ("n_iter_", "n_rounds_", "n_features_in_", "n_actions_")  # whole numbers
ABSENT = ("effective_sample_size_",)  # numbers that some fits lack
RECORDS, LABELS = ("history_",), ("groups_",)  # record arrays, and arrays that may hold texts


@dataclass(frozen=True)
class Unsaved:
    """Placeholder for a user-defined function, which could not be written to the file."""

    parameter: str
    name: str

    def __call__(self, *arguments: Any) -> Any:
        """Raise an error that names the parameter to set before the model can be fitted again."""
        raise ValueError(
            f"the {self.parameter} {self.name} was not saved with the model: "
            f"set_params({self.parameter}=...) before fit"
        )


class SavableEstimator(BaseEstimator):
    """An estimator that can be written to one file. A class declares its content; a subclass adds to it.

    _arrays : names of fitted arrays; a file without one of them is damaged
    _optional : names of fitted arrays that are None in some fits
    _facts : names of fitted numbers and texts
    _records : names of fitted dataclasses of plain lists, without the underscore, and their classes
    _kinds : classes that parameters may be instances of, written by name with their own parameters
    _missed : names of parameters that may be user-defined functions, which a new fit needs

    Plain parameters and `mdp_` are always written.
    """

    _arrays: ClassVar[tuple[str, ...]] = ()
    _optional: ClassVar[tuple[str, ...]] = ()
    _facts: ClassVar[tuple[str, ...]] = ()
    _records: ClassVar[dict[str, Any]] = {}
    _kinds: ClassVar[tuple[type[Any], ...]] = ()
    _missed: ClassVar[tuple[str, ...]] = ()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too: `set_params(similarity__sigma=2.0)`.

        Similarities are immutable and may be shared: a new one with these parameters replaces the old one.
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
        """Return further arrays for the file by name."""
        return {}

    def _restore_fitted(self, parts: Any) -> None:
        """Check the content of a file (`parts` are all its arrays), and recompute derived attributes."""

    def _check_arguments(self) -> None:
        """Raise an error if a parameter is invalid."""
        check_parameters(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file for `messirl.load`; an existing file is replaced only on success."""
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
        text = json.dumps(described).encode()
        if len(text) > JSON:
            raise ValueError(f"state names of {len(text) / 1e6:.0f} MB are too large for a model file: shorten them")
        arrays["description"] = np.frombuffer(text, dtype=np.uint8)
        with atomic_path(path) as part, open(part, "wb") as file:
            np.savez_compressed(file, **arrays)


def _declared(kind: type[SavableEstimator], name: str) -> list[str]:
    """Return the declarations of a class and its parents under a name, parents first."""
    return [item for one in reversed(kind.__mro__) for item in vars(one).get(name, ())]


def read(path: str | os.PathLike[str], class_of: Callable[[str], type[SavableEstimator]]) -> Any:
    """Read a model that `save` wrote; raise ValueError if the file is damaged or no model. Nothing in it is executed.

    class_of : function from the name of a class to the class
    """
    place = Path(path)
    if place.is_dir():
        raise ValueError(f"{os.fspath(path)!r} is a folder: give the file of a model, as in {place / 'model.npz'}")
    with place.open("rb") as file:  # any failure from here on is due to the content
        try:
            arrays = Archive(file)
            described = arrays.json("description")
            kind, version = described["format"], described["version"]
        except BROKEN as error:
            raise ValueError(
                f"{os.fspath(path)} is not a messirl model, or is damaged ({short_message(error)})"
            ) from error
        if kind != FORMAT:
            raise ValueError(f"{os.fspath(path)} is not a messirl model")
        if version != VERSION:
            raise ValueError(f"{os.fspath(path)} is a model of format {version}; this messirl reads format {VERSION}")
        try:
            return _restored(described, arrays, class_of)
        except BROKEN as error:
            raise ValueError(f"{os.fspath(path)} is a damaged messirl model ({short_message(error)})") from error


def _restored(
    described: dict[str, Any], arrays: Archive, class_of: Callable[[str], type[SavableEstimator]]
) -> SavableEstimator:
    kind = class_of(described["estimator"])
    estimator = kind(**{k: _restore(k, v, kind, arrays) for k, v in described["parameters"].items()})
    parts = {name: _get(f"mdp_{name}", arrays) for name in MDP_ARRAYS}
    facts = {name: described["mdp"][name] for name in MDP_FACTS}
    estimator.mdp_ = MDP(**parts, **facts, start=arrays.get("mdp_start")).with_prior_policy(arrays.get("mdp_reference"))
    for name in _declared(kind, "_facts"):
        setattr(estimator, name, _checked_fact(name, described["fitted"][name]))
    for name in _declared(kind, "_records"):
        setattr(estimator, f"{name}_", kind._records[name].of(described.get(name, {})))
    for name in _declared(kind, "_arrays"):
        setattr(estimator, name, _checked_array(name, arrays))
    for name in _declared(kind, "_optional"):
        setattr(estimator, name, _checked_array(name, arrays) if name in arrays else None)
    estimator._restore_fitted(arrays)
    estimator._check_arguments()
    return estimator


def _checked_fact(name: str, value: Any) -> Any:
    """Return a fitted number or text; raise ValueError if it is not of the type that its name requires."""
    if name in FLAGS:
        right: bool = isinstance(value, bool)
    elif name in TEXTS:
        right = isinstance(value, str)
    elif name in NUMBERS:
        right = is_whole(value) and value >= 0
    else:
        right = is_number(value) or (value is None and name in ABSENT)
    if not right:
        raise ValueError(f"its {name} is {value!r:.80}, not of the expected type")
    return value


def _checked_array(name: str, arrays: Archive) -> Any:
    """Return a fitted array; raise ValueError if it is not of the type that its name requires."""
    array = arrays[name]
    if (name in RECORDS) != (array.dtype.names is not None) or (name not in LABELS and array.dtype.kind == "U"):
        raise ValueError(f"its {name} has the unexpected type {array.dtype}")
    if name == "start_" and not (np.isfinite(array).all() and (array >= 0).all() and math.isclose(array.sum(), 1.0)):
        raise ValueError("its start_ does not fit its MDP: it is not a probability distribution")
    return array


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _describe(name: str, value: Any, kind: type[SavableEstimator], arrays: dict[str, Any]) -> Any:
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


def _restore(name: str, value: Any, kind: type[SavableEstimator], arrays: Archive) -> Any:
    if not isinstance(value, dict):
        return value
    kinds = {one.__name__: one for one in kind._kinds}
    if "arguments" in value:  # earlier files name the class under "similarity", not "kind"
        inside = {k: _restore(f"{name}_{k}", v, kind, arrays) for k, v in value["arguments"].items()}
        return _checked_object(kinds[value["kind"] if "kind" in value else value["similarity"]](**inside))
    if "precomputed" in value:  # in earlier files
        return _checked_object(kinds["Precomputed"](arrays[value["precomputed"]]))
    if "array" in value:
        return arrays[value["array"]]
    return Unsaved(name, value["unsaved"]) if name in kind._missed else None


def _checked_object(made: Any) -> Any:
    """Return a parameter read from a file; raise ValueError for a similarity matrix that no fit would accept."""
    if isinstance(made, Precomputed):
        checked_similarities(made.matrix, len(made.matrix))
    return made


def _put(name: str, value: Any, arrays: dict[str, Any]) -> None:
    """Add a value to the arrays of a file: sparse matrices by their parts; None is left out."""
    if sp.issparse(value):
        arrays |= {f"{name}_{part}": getattr(value, part) for part in SPARSE}
        arrays[f"{name}_shape"] = np.array(value.shape)
    elif value is not None:
        arrays[name] = np.asarray(value)


def _get(name: str, arrays: Archive) -> Any:
    """Return a value that `_put` added; the structure of a sparse matrix is checked before SciPy sees it."""
    if f"{name}_shape" not in arrays:
        return arrays[name]
    data, indices, indptr = (f"{name}_{part}" for part in SPARSE)
    entries = arrays.shapes[data]
    if len(entries) != 1 or arrays.shapes[indices] != entries or arrays.shapes[f"{name}_shape"] != (2,):
        raise ValueError(f"the parts of {name} do not fit together")
    rows, columns = check_integer_range(f"{name}_shape", arrays[f"{name}_shape"], 0, 2**62).tolist()
    if arrays.shapes[indptr] != (rows + 1,) or entries[0] > rows * columns:
        raise ValueError(f"the parts of {name} do not fit together")
    bounds = check_integer_range(indptr, arrays[indptr], 0, entries[0])
    if bounds[0] != 0 or bounds[-1] != entries[0] or (bounds[1:] < bounds[:-1]).any():
        raise ValueError(f"the rows of {name} do not fit its entries")
    return sp.csr_array(
        (arrays[data], check_integer_range(indices, arrays[indices], 0, columns - 1), bounds), shape=(rows, columns)
    )
