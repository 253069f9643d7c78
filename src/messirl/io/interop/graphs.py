"""Graphs as MDPs with deterministic transitions: NetworkX graphs and SciPy sparse adjacency matrices.

Action k of a node follows its k-th edge; edges are sorted by the index of the node they lead to. Parallel edges are
separate actions. A node with fewer edges than others allows fewer actions; one without edges is a dead end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP


def from_networkx(
    graph: Any,
    *,
    discount: float,
    node_features: Sequence[str] = (),
    edge_features: Sequence[str] = (),
    terminal: Iterable[Hashable] = (),
) -> MDP:
    """Convert a (Multi)(Di)Graph to an MDP; states are numbered in the order of the nodes and named by their labels.

    node_features : attributes of nodes; without edge_features, the features are f(s), (S, d)
    edge_features : attributes of edges; with them the features are f(s, a), (S, A, d): those of the edge, then those of
        the node it leads to.  An undirected edge is a transition in each direction.
    terminal : labels of the nodes where an episode ends
    """
    for name in ("nodes", "edges", "is_directed"):
        if not callable(getattr(graph, name, None)):
            raise TypeError(f"{type(graph).__name__} is not a graph: it has no {name}()")
    for what, names in (("node_features", node_features), ("edge_features", edge_features)):
        if isinstance(names, str):
            raise TypeError(f"{what} must be a list of names, not {names!r}")
    if not node_features and not edge_features:
        raise InputError("graph", "no features are given", "name attributes in node_features or edge_features")
    labels = [label for label, _ in graph.nodes(data=True)]
    number = {label: i for i, label in enumerate(labels)}
    at_nodes = _columns(graph.nodes(data=True), node_features, "node")
    edges = [(number[u], number[v], (u, v), data) for u, v, data in graph.edges(data=True)]
    along = _columns(((pair, data) for _, _, pair, data in edges), edge_features, "edge")
    tail, head = (np.array([edge[end] for edge in edges], dtype=np.int64) for end in (0, 1))
    if not graph.is_directed():
        back = tail != head
        tail, head = np.concatenate([tail, head[back]]), np.concatenate([head, tail[back]])
        along = np.concatenate([along, along[back]])
    ends = np.zeros(len(labels), dtype=bool)
    for label in terminal:
        if label not in number:
            raise InputError("terminal", f"the graph has no node {label!r}", "give labels of nodes")
        ends[number[label]] = True
    return _moves(
        len(labels),
        tail,
        head,
        at_nodes,
        along,
        discount=discount,
        terminal=ends,
        state_names=[str(label) for label in labels],
        feature_names=[*edge_features, *node_features],
    )


def from_adjacency(adjacency: Any, *, discount: float, features: Any = None, directed: bool = True) -> MDP:
    """Convert a scipy.sparse matrix (S, S) to an MDP: every stored entry (i, j) is a transition from i to j.

    features : (S, d) of the states; None : one state-action feature "weight", the entry itself
    directed : False: every entry is a transition in each direction; if both are stored they must be equal
    """
    if not sp.issparse(adjacency):
        raise TypeError(f"adjacency must be scipy.sparse, not {type(adjacency).__name__}: use scipy.sparse.csr_array")
    matrix = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError("adjacency", f"has shape {matrix.shape}", "give a square matrix")
    matrix.sum_duplicates()
    entries = matrix.tocoo()
    tail, head, weight = entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    if not directed:
        tail, head, weight = _both_ways(tail, head, weight)
    n = matrix.shape[0]
    if features is None:
        return _moves(n, tail, head, np.zeros((n, 0)), weight[:, None], discount=discount, feature_names=["weight"])
    at_nodes = np.asarray(features, dtype=np.float64)
    if at_nodes.ndim != 2 or len(at_nodes) != n:
        raise InputError("features", f"has shape {at_nodes.shape}", f"give ({n}, d)")
    return _moves(n, tail, head, at_nodes, np.zeros((tail.size, 0)), discount=discount)


def _moves(n: int, tail: Ints, head: Ints, at_nodes: Floats, along: Floats, **arguments: Any) -> MDP:
    """Make the MDP of edges tail → head with features (E, ·) and nodes with features (S, ·)."""
    if tail.size == 0:
        raise InputError("graph", "it has no edges", "an MDP needs at least one transition")
    order = np.lexsort((head, tail))  # stable: parallel edges stay in the order of the graph
    tail, head, along = tail[order], head[order], along[order]
    degree = np.bincount(tail, minlength=n)
    action = np.arange(tail.size) - np.repeat(np.cumsum(degree) - degree, degree)
    n_actions = int(degree.max())
    shape = (n * n_actions, n)
    transitions = sp.csr_array((np.ones(tail.size), (tail * n_actions + action, head)), shape=shape)
    if along.shape[1] == 0:
        return MDP(transitions, at_nodes, **arguments)
    features = np.zeros((n, n_actions, along.shape[1] + at_nodes.shape[1]))
    features[tail, action] = np.column_stack([along, at_nodes[head]])
    return MDP(transitions, features, **arguments)


def _columns(items: Iterable[tuple[Any, Mapping[str, Any]]], names: Sequence[str], what: str) -> Floats:
    """Return the named attributes of nodes or edges, one row each."""
    rows = []
    for label, data in items:
        row = []
        for name in names:
            if name not in data:
                lack = f"it has no attribute {name!r}"
                raise InputError(f"{what} {label!r}", lack, "set it, or omit the feature")
            try:
                row.append(float(data[name]))
            except (TypeError, ValueError):
                raise InputError(f"{what} {label!r}", f"{name} is {data[name]!r}", "it must be a number") from None
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _both_ways(tail: Ints, head: Ints, weight: Floats) -> tuple[Ints, Ints, Floats]:
    known = dict(zip(zip(tail.tolist(), head.tolist(), strict=True), weight.tolist(), strict=True))
    for (i, j), value in list(known.items()):
        if known.setdefault((j, i), value) != value:
            what = f"({i}, {j}) is {value:g} and ({j}, {i}) is {known[j, i]:g}"
            raise InputError("adjacency", what, "make them equal, or use directed=True")
    ends = np.array(list(known), dtype=np.int64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1], np.array(list(known.values()))
