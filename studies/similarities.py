"""Similarities that look at more than feature counts: candidates for one that adds more than the complete graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl.data.trajectories import Trajectories
from messirl.similarity import RBF


@dataclass(frozen=True)
class Visits:
    """RBF, median width, on the share of time spent in each state: how alike the places are, not how long the trip."""

    def __call__(self, trajectories: Trajectories, counts: Any) -> Any:
        return _rbf(_shares(trajectories, trajectories.states[:, None]))


@dataclass(frozen=True)
class Sequences:
    """RBF, median width, on the shares of all runs of `length` states: how alike the order is."""

    length: int = 3

    def __call__(self, trajectories: Trajectories, counts: Any) -> Any:
        n, states = trajectories.states.size, trajectories.states
        ahead = np.arange(n)[:, None] + np.arange(self.length)
        owner = np.repeat(np.arange(len(trajectories)), trajectories.lengths)
        last = trajectories.offsets[1:][owner] - 1
        runs = states[np.minimum(ahead, last[:, None])]  # a run that would leave the trip stays at its end
        return _rbf(_shares(trajectories, runs))


@dataclass(frozen=True)
class Whitened:
    """RBF, median width, on counts without correlations: Mahalanobis distance, directions that hardly vary left out."""

    def __call__(self, trajectories: Trajectories, counts: Any) -> Any:
        centred = counts - counts.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(counts))
        kept = values > 1e-8 * values[-1]
        return _rbf(centred @ vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True)
class LogCounts:
    """RBF, median width, on log(1 + counts), standardised: a trip of 500 steps is not 100 times one of 5."""

    def __call__(self, trajectories: Trajectories, counts: Any) -> Any:
        return RBF("median", standardise=True)(trajectories, np.log1p(np.maximum(counts, 0.0)))


@dataclass(frozen=True)
class ToExperts:
    """RBF on standardised counts between experts and the others only: the first `n_expert` rows are the experts."""

    n_expert: int

    def __call__(self, trajectories: Trajectories, counts: Any) -> Any:
        weights = RBF("median", standardise=True)(trajectories, counts)
        expert = np.arange(len(weights)) < self.n_expert
        return np.where(expert[:, None] | expert[None, :], weights, 0.0)


def _shares(trajectories: Trajectories, items: np.ndarray) -> np.ndarray:
    """The share of each kind of row of `items` (one per state of the trips) in every trip, (n, kinds)."""
    _, kind = np.unique(items, axis=0, return_inverse=True)
    owner = np.repeat(np.arange(len(trajectories)), trajectories.lengths)
    table = sp.coo_array((np.ones(owner.size), (owner, kind.ravel()))).toarray()
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _rbf(points: np.ndarray) -> Any:
    """RBF of median width; where more than half of all pairs coincide, the mean width."""
    square = np.sum(points**2, axis=1)
    distance = np.maximum(square[:, None] + square[None, :] - 2.0 * points @ points.T, 0.0)
    off = distance[np.triu_indices(len(points), 1)]
    return np.exp(-distance / (2.0 * (float(np.median(off)) or float(off.mean()))))
