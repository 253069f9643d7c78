"""Averagers: regressors with which fitted soft value iteration is that of a finite MDP.

    Ê[V(s')|s, a] = Σ_j K_a(s, j) V(s'_j),     K_a ≥ 0,  Σ_j K_a(s, j) = 1,     j over the steps recorded with action a

A tree puts equal weight on the samples in the leaf of s, a forest averages the weights of its trees, and nearest
neighbours are weighted as scikit-learn does. As K does not depend on V, soft value iteration is a contraction: it is
that of an MDP over the recorded states, with p(s'_j|s, a) = K_a(s, j) (Gordon 1995; Ormoneit & Sen 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from messirl._npz import check_integer_range
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.dynamics.transition_dataset import Samples, Scale

TREES = (DecisionTreeRegressor, ExtraTreesRegressor, RandomForestRegressor)
NODES = ("children_left", "children_right", "feature", "threshold")
MAX_ENTRIES = 50_000_000  # weights held at once


def is_averager(regressor: Any) -> bool:
    """Return True if a regressor predicts averages of the targets, with weights that do not depend on them."""
    return isinstance(regressor, (*TREES, KNeighborsRegressor))


class AveragerModel:
    """Transition probabilities from any state to the recorded states, for each action."""

    def __init__(self, regressor: Any, samples: Samples, forests: Sequence[Forest] | None = None) -> None:
        """Fit the regressor to each action's transitions or, if `forests` are given, use those fitted before."""
        self._scale, self.samples = Scale.of(samples.points), samples
        points = self._scale(samples.points)
        # The targets are the next states: a tree need not split where they are all the same.
        ends = np.column_stack([points, samples.terminal])
        self._averagers = []
        for action, (source, target) in enumerate(samples.moves()):
            if isinstance(regressor, KNeighborsRegressor) and regressor.n_neighbors > len(source):
                raise ValueError(
                    f"action {action} is recorded {len(source)} times, but n_neighbors={regressor.n_neighbors}: lower "
                    "it, or give more recordings"
                )
            fitted = forests[action] if forests else clone(regressor).fit(points[source], ends[target])
            kind = _Neighbours if isinstance(regressor, KNeighborsRegressor) else _Leaves
            self._averagers.append(kind(fitted, points[source], _indicator(target[:, None], len(points))))

    def successors(self, points: Floats, action: int) -> sp.csr_array:
        """Return probabilities (n, N) of the recorded states, after `action` in each of the points (n, k)."""
        averager = self._averagers[action]
        return sp.csr_array(averager.weights(self._scale(points)) @ averager.target)

    def forests(self) -> list[Forest]:
        """Return the trees of each action; empty for nearest neighbours, which are fitted again from the samples."""
        return [Forest.of(one.fitted) for one in self._averagers if isinstance(one, _Leaves)]

    def mdp(self, table: Floats, discount: float) -> MDP:
        """Return the MDP over the recorded states, with features (N, d), that starts in the expert's first states."""
        samples, n, a = self.samples, len(self.samples.points), self.samples.n_actions
        blocks = sp.vstack([self.successors(samples.points, action) for action in range(a)], format="csr")
        order = np.arange(n * a).reshape(a, n).T.ravel()  # row s·A + a
        return MDP(blocks[order], table, start=samples.start, terminal=samples.terminal, discount=discount)


@dataclass(frozen=True, eq=False)
class Forest:
    """Fitted trees as plain arrays over all their nodes: children, feature and threshold. root (T,): first nodes."""

    left: Ints
    right: Ints
    feature: Ints
    threshold: Floats
    root: Ints

    @classmethod
    def of(cls, fitted: Any) -> Forest:
        """Return the forest of a fitted tree or forest of scikit-learn, or a `Forest` unchanged."""
        if isinstance(fitted, Forest):
            return fitted
        trees = [one.tree_ for one in getattr(fitted, "estimators_", [fitted])]
        left, right, feature, threshold = (np.concatenate([getattr(tree, name) for tree in trees]) for name in NODES)
        root = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])[:-1]])
        return cls(left, right, feature, threshold, root)

    def check(self, width: int, most: int) -> None:
        """Raise a ValueError unless nodes from a file are trees over `width` coordinates of at most `most` nodes."""
        nodes, trees = self.left.size, self.root.size
        if any(one.shape != (nodes,) for one in (self.left, self.right, self.feature, self.threshold)) or not trees:
            raise ValueError("the nodes of its trees do not fit together")
        check_integer_range("root", self.root, 0, nodes - 1)
        size = np.diff(self.root, append=nodes)
        if self.root[0] != 0 or (size < 1).any() or (size > most).any():
            raise ValueError("the roots of its trees do not fit their nodes")
        number, inner = np.arange(nodes) - np.repeat(self.root, size), self.left >= 0
        for child in (self.left, self.right):
            check_integer_range("children", child, -1, nodes)
            if (inner & ~((child > number) & (child < np.repeat(size, size)))).any():
                raise ValueError("a node of its trees is not above its children")
        check_integer_range("feature", self.feature[inner], 0, width - 1)
        if self.threshold.dtype.kind != "f":
            raise ValueError("the thresholds of its trees are not numbers")

    def apply(self, at: Floats) -> Ints:
        """Return the leaf of every state in every tree, (n, T), numbered as by scikit-learn's `apply`."""
        x = at.astype(np.float32)  # the precision in which the trees were grown
        node = np.zeros((len(at), self.root.size), dtype=np.int64)
        while True:
            here = self.root + node
            inner = self.left[here] >= 0
            if not inner.any():
                return node
            value = np.take_along_axis(x, np.maximum(self.feature[here], 0), axis=1)
            ahead = np.where(value <= self.threshold[here], self.left[here], self.right[here])
            node = np.where(inner, ahead, node)


class _Leaves:
    """K of a tree or forest: 1/size on all samples in the leaf, also where a tree was grown on some of them only."""

    def __init__(self, fitted: Any, sources: Floats, target: sp.csr_array) -> None:
        self.fitted, self.target = fitted, target
        found = [np.unique(column, return_inverse=True) for column in self._apply(sources).T]
        self._names = [names for names, _ in found]
        self._first = np.concatenate([[0], np.cumsum([names.size for names in self._names])])
        inside = np.stack([at.ravel() for _, at in found], axis=1) + self._first[:-1]
        members = _indicator(inside, int(self._first[-1]))
        self._size = np.asarray(members.sum(axis=0)).ravel()
        self._means = sp.csr_array(sp.diags_array(1.0 / self._size) @ members.T)

    def _apply(self, at: Floats) -> Ints:
        return np.asarray(self.fitted.apply(at)).reshape(len(at), -1)  # one column per tree

    def weights(self, at: Floats) -> sp.csr_array:
        leaves = self._apply(at)
        number = np.stack([np.searchsorted(n, leaf) for n, leaf in zip(self._names, leaves.T, strict=True)], axis=1)
        if (number == np.diff(self._first)).any() or (
            np.concatenate(self._names)[number + self._first[:-1]] != leaves
        ).any():
            raise ValueError("a leaf of its trees holds no sample")
        number += self._first[:-1]
        _check_size(float(self._size[number].sum()))
        return sp.csr_array(_indicator(number, self._size.size) @ self._means / number.shape[1])


class _Neighbours:
    """K of nearest neighbours: equal weights, 1/distance (a neighbour at distance 0 has all), or a callable."""

    def __init__(self, fitted: Any, sources: Floats, target: sp.csr_array) -> None:
        self.fitted, self.target, self._sources = fitted, target, sources

    def weights(self, at: Floats) -> sp.csr_array:
        distance, index = self.fitted.kneighbors(at)
        _check_size(float(index.size))
        kind = self.fitted.weights
        if callable(kind):
            share = np.asarray(kind(distance), dtype=np.float64)
            if not (np.isfinite(share).all() and (share >= 0).all() and share.any(axis=1).all()):
                raise ValueError("the regressor's weights must be finite, >= 0 and not all zero: correct its callable")
        elif kind == "distance":
            # Some algorithms compute 1e-8 as the distance of a point to itself: compare the coordinates as well.
            there = (distance == 0) | (self._sources[index] == at[:, None]).all(axis=2)
            share = np.where(there.any(axis=1, keepdims=True), there, 1.0 / np.where(there, 1.0, distance))
        else:
            share = np.ones_like(distance)
        share = share / share.sum(axis=1, keepdims=True)
        bounds = np.arange(len(index) + 1) * index.shape[1]
        return sp.csr_array((share.ravel(), index.ravel(), bounds), shape=(len(index), len(self._sources)))


def _indicator(columns: Ints, width: int) -> sp.csr_array:
    """Return a matrix with 1 at the given columns of each row."""
    bounds = np.arange(len(columns) + 1) * columns.shape[1]
    return sp.csr_array((np.ones(columns.size), columns.ravel(), bounds), shape=(len(columns), width))


def _check_size(entries: float) -> None:
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"the regressor would average with {entries:.2g} weights, more than {MAX_ENTRIES:.0e}: use smaller leaves, "
            "fewer trees, fewer neighbours or fewer recordings"
        )
