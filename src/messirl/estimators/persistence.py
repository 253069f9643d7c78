"""Saving and loading fitted models: one .npz file of plain arrays with a JSON description inside. Never pickle.

Policies are not stored: they follow from the reward. What cannot be written (a callback, a similarity that is a
function of the user's own) is left out, and said so where it is missed.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._files import beside
from messirl.estimators.base import IRLEstimator
from messirl.estimators.em import EMMaxEnt
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.estimators.standing import Standing
from messirl.optimise import HISTORY
from messirl.problem.mdp import MDP
from messirl.similarity import RBF, CompleteGraph, Exponential, Precomputed

FORMAT, VERSION = "messirl-model", 1
ESTIMATORS: dict[str, type[IRLEstimator]] = {c.__name__: c for c in (MaxEntIRL, MESSI, EMMaxEnt)}
SIMILARITIES: dict[str, Any] = {c.__name__: c for c in (RBF, Exponential, CompleteGraph)}
ARRAYS = ("theta_", "theta_init_", "feature_counts_", "visitation_", "start_", "history_")
OPTIONAL_ARRAYS = ("goals_", "penalty_matrix_", "quadratic_", "weights_")
NUMBERS = ("objective_", "n_iter_", "converged_", "termination_", "gradient_norm_")
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, MemoryError, OSError, RuntimeError),
)
NAMES = ("state_names", "action_names", "feature_names")


@dataclass(frozen=True)
class UnsavedSimilarity:
    """Stands for a similarity that could not be written to a file."""

    name: str

    def __call__(self, trajectories: Any, counts: Any) -> Any:
        raise ValueError(
            f"the similarity {self.name} was not saved with the model: set_params(similarity=...) before fit"
        )


def save(estimator: IRLEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator; an existing file is replaced only when the new one is complete."""
    arrays: dict[str, Any] = {}
    described = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": type(estimator).__name__,
        "parameters": {k: _describe(k, v, arrays) for k, v in estimator.get_params(deep=False).items()},
        "fitted": {name: _plain(getattr(estimator, name)) for name in NUMBERS},
        "standing": vars(estimator.standing_),
        "mdp": _describe_mdp(estimator.mdp_, arrays),
    }
    for name in (*ARRAYS, *OPTIONAL_ARRAYS):
        value = getattr(estimator, name, None)
        if value is not None:
            arrays[name] = np.asarray(value)
    arrays["description"] = np.frombuffer(json.dumps(described).encode(), dtype=np.uint8)
    with beside(path) as part, open(part, "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: str | os.PathLike[str]) -> IRLEstimator:
    """Read a model that `save` wrote; ValueError if the file is not one or is damaged. Nothing in it is executed."""
    content = io.BytesIO(Path(path).read_bytes())  # from here on only the content can be at fault
    try:
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
        return _restored(described, arrays)
    except BROKEN as error:
        raise ValueError(f"{os.fspath(path)} is a damaged messirl model ({error})") from error


def _restored(described: dict[str, Any], arrays: dict[str, Any]) -> IRLEstimator:
    parameters = {k: _restore(v, arrays) for k, v in described["parameters"].items()}
    estimator = ESTIMATORS[described["estimator"]](**parameters)
    mdp = _restore_mdp(described["mdp"], arrays)
    estimator.mdp_ = mdp
    estimator.n_features_in_ = mdp.n_features
    for name in NUMBERS:
        setattr(estimator, name, described["fitted"][name])
    held = described.get("standing", {})
    estimator.standing_ = Standing(**{kind: tuple(int(j) for j in which) for kind, which in held.items()})
    for name in ARRAYS:
        setattr(estimator, name, arrays[name])
    for name in OPTIONAL_ARRAYS:
        if name in arrays or name in ("goals_", "quadratic_"):
            setattr(estimator, name, arrays.get(name))
    d, n = (mdp.n_features,), (mdp.n_states,)
    wanted = {"theta_": d, "theta_init_": d, "feature_counts_": d, "visitation_": n, "start_": n}
    for name, shape in wanted.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise ValueError(f"its {name} does not fit its MDP")
    for name in ("penalty_matrix_", "quadratic_"):
        if name in arrays and arrays[name].shape != d * 2:
            raise ValueError(f"its {name} does not fit its MDP")
    if not set(HISTORY.names or ()) <= set(arrays["history_"].dtype.names or ()):
        raise ValueError("its history_ lacks columns")
    estimator.history_ = estimator.history_.view(np.recarray)
    if "weights_" in arrays:
        estimator.effective_sample_size_ = 1.0 / float(estimator.weights_ @ estimator.weights_)
    estimator.reward_ = mdp.reward(estimator.theta_)
    estimator._set_policy()
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
