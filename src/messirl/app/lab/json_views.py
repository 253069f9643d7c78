"""Scenes and fits as rounded numbers for the page, per tile of the map, ready for JSON."""

from __future__ import annotations

import base64
import math
import warnings
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.app.lab import state_layout
from messirl.app.lab.catalog import LabScene, RequestedSets
from messirl.data.feature_counts import counts_of_sets
from messirl.data.mdp import MDP

NEAREST = 3  # minimum number of edges per trajectory in the similarity graph
DIGITS = 4


def rounded(values: Any) -> Any:
    """Return numbers rounded to four digits, with the same nesting; non-finite ones become None."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [rounded(value) for value in values]
    if values is None or not math.isfinite(values):
        return None
    return float(f"{values:.{DIGITS}g}")


def scene_view(scene: LabScene) -> dict[str, Any]:
    """Return the data of a scene, which the page needs once."""
    mdp, layout = scene.mdp, scene.layout
    return {
        "key": scene.key,
        "title": scene.title,
        "story": scene.story,
        "kind": layout.kind,
        "tile": layout.tile.tolist(),
        "at": np.round(layout.at, 3).tolist(),
        "labels": layout.labels,
        "named": mdp.state_names is not None,
        "columns": list(layout.columns),
        "road": layout.road,
        "edges": state_layout.edges_of(mdp, layout) if layout.kind == "graph" else [],
        "moves": state_layout.transitions_of(mdp),
        "starts": None if mdp.start is None else np.flatnonzero(mdp.start).tolist(),
        "terminal": np.flatnonzero(mdp.terminal).tolist(),
        "horizon": mdp.horizon,
        "features": list(mdp.feature_ids),
        "actions": list(mdp.action_names or [f"action {a}" for a in range(mdp.n_actions)]),
        "size": {"states": mdp.n_states, "actions": mdp.n_actions, "features": mdp.n_features},
        "discount": mdp.discount,
        "defaults": scene.defaults,
        "mixtures": scene.mixtures,
        "filters": scene.filters,
        "judged": scene.performance is not None,
        "goals": mdp.horizon is None and mdp.discount >= 1.0 and not mdp.terminal.any(),
    }


def fit_view(
    scene: LabScene, picked: RequestedSets, model: Any, name: str, label: str, said: list[str]
) -> dict[str, Any]:
    """Return the data of one fitted model."""
    visits = np.asarray(model.visitation_)
    shown = map_numbers(scene.mdp, scene.layout, model, by_feature=scene.by_feature)
    return shown | {
        "method": name,
        "label": label,
        "theta": rounded(model.theta_),
        "score": rounded(_score(model, picked.expert)),
        "held_out": None if picked.test is None else rounded(_score(model, picked.test)),
        "performance": None if scene.performance is None else rounded(scene.performance(visits)),
        "converged": bool(model.converged_),
        "iterations": int(model.n_iter_),
        "reason": str(model.termination_),
        "remarks": said,
    }


def _score(model: Any, test: Any) -> float:
    try:
        return float(model.score(test))
    except ValueError:  # an unreachable state, or no step
        return math.nan


def map_numbers(mdp: MDP, layout: state_layout.Layout, model: Any, *, by_feature: bool = False) -> dict[str, Any]:
    """Return reward, visits and the most likely action with its direction, per tile."""
    visits = np.asarray(model.visitation_)
    policy = _policy(mdp, model)
    reward = np.asarray(model.reward_)
    if by_feature:
        reward = np.append(model.theta_, 0.0)[: mdp.n_states]
    elif reward.ndim == 2:
        reward = (policy * np.where(policy > 0, reward, 0.0)).sum(axis=1)
    weights = visits if layout.kind == "lanes" else None
    share = np.stack([layout.mean(column, weights) for column in policy.T], axis=1)
    best = share.argmax(axis=1)
    ways = mdp.memo(f"directions {layout.kind}", lambda: state_layout.directions(mdp, layout))
    sums = [layout.mean(ways[:, a, i], weights) for a in range(mdp.n_actions) for i in (0, 1)]
    arrows = np.stack(sums, axis=1).reshape(layout.n_tiles, mdp.n_actions, 2)[np.arange(layout.n_tiles), best]
    return {
        "reward": rounded(layout.mean(reward)),
        "visits": rounded(layout.sum(visits)),
        "best": best.tolist(),
        "chance": np.round(share.max(axis=1), 3).tolist(),
        "arrows": np.round(arrows, 2).tolist(),
    }


def _policy(mdp: MDP, model: Any) -> Floats:
    """Return π (S, A) of the first step, or towards the most visited goal."""
    goals = getattr(model, "goals_", None)
    goal = None if goals is None else int(goals[np.argmax(model.visitation_[goals])])
    if mdp.horizon == 1:
        return np.zeros((mdp.n_states, mdp.n_actions))
    return np.asarray(model.predict_proba(np.arange(mdp.n_states), step=mdp.first_step, goal=goal))


def sets_view(scene: LabScene, picked: RequestedSets, similarity: Any) -> dict[str, Any]:
    """Return the trajectories, their similarities and, if it is known, the true reward."""
    everyone = picked.expert if picked.unlabelled is None else picked.expert + picked.unlabelled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has warned about short trajectories already
        counts = counts_of_sets(scene.mdp, picked.expert, picked.unlabelled)
    alike = np.asarray(similarity(everyone, counts), dtype=np.float64)
    most = float(alike.max(initial=0.0)) or 1.0
    return {
        "tracks": [one.states.tolist() for one in everyone],
        "kinds": picked.kinds,
        "similarity": {
            "n": len(everyone),
            "most": rounded(most),
            "bytes": base64.b64encode(np.rint(255 * alike / most).astype(np.uint8).tobytes()).decode(),
            "at": np.round(_plane(alike), 3).tolist(),
            "edges": _edges(alike),
        },
        "truth": None if scene.truth is None else rounded(scene.layout.mean(scene.truth)),
    }


def _plane(alike: Floats) -> Floats:
    """Return coordinates (n, 2) of trajectories: the first two kernel principal components of their similarities."""
    centre = np.eye(len(alike)) - 1.0 / len(alike)
    values, vectors = np.linalg.eigh(centre @ alike @ centre)
    at = np.zeros((len(alike), 2))
    n = min(2, len(alike))
    at[:, :n] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, : -n - 1 : -1]
    at *= np.where(at[np.abs(at).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # the sign of an eigenvector is arbitrary
    return np.asarray(at / (np.abs(at).max() or 1.0))


def _edges(alike: Floats) -> list[list[float]]:
    """Return pairs (i, j, similarity) of every trajectory and its nearest neighbours."""
    n = len(alike)
    if n < 2:
        return []
    own = alike - 2 * np.diag(np.diag(alike) + 1)
    near = np.argsort(-own, axis=1, kind="stable")[:, : min(NEAREST, n - 1)]
    pairs = {(min(i, int(j)), max(i, int(j))) for i in range(n) for j in near[i]}
    return [[i, j, round(float(alike[i, j]), 3)] for i, j in sorted(pairs) if alike[i, j] > 1e-3]
