"""Graphs as MDPs: NetworkX's and sparse adjacency matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from seeds import generator

from messirl import MaxEntIRL, Trajectories, optimal_policy
from messirl.data.errors import InputError
from messirl.io.interop.graphs import from_adjacency, from_networkx


class Graph:
    """As much of a NetworkX graph as is looked at; the tests that import NetworkX use the real one."""

    def __init__(self, nodes, edges, directed):
        self._nodes, self._edges, self._directed = nodes, edges, directed

    def nodes(self, data):
        return list(self._nodes.items())

    def edges(self, data):
        return self._edges

    def is_directed(self):
        return self._directed


NODES = {"c": {"h": 1.0}, "a": {"h": 2.0}, "b": {"h": 3.0}}
ONE_WAY = [("c", "b", {"km": 10.0}), ("c", "a", {"km": 20.0}), ("a", "b", {"km": 30.0})]


def moves(mdp):
    """The next state of each allowed (state, action)."""
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return {(s, a): int(dense[s, a].argmax()) for s, a in np.argwhere(mdp.allowed).tolist()}


def test_action_k_goes_to_the_kth_neighbour():
    mdp = from_networkx(Graph(NODES, ONE_WAY, True), discount=0.9, node_features=["h"])
    assert mdp.state_names == ("c", "a", "b")
    assert moves(mdp) == {(0, 0): 1, (0, 1): 2, (1, 0): 2}
    assert mdp.deterministic
    np.testing.assert_array_equal(mdp.features, [[1.0], [2.0], [3.0]])


def test_an_undirected_edge_is_a_move_each_way_and_a_loop_is_one_move():
    edges = [*ONE_WAY, ("a", "a", {"km": 5.0})]
    mdp = from_networkx(Graph(NODES, edges, False), discount=0.9, edge_features=["km"])
    expected = {(0, 0): 1, (0, 1): 2, (1, 0): 0, (1, 1): 1, (1, 2): 2, (2, 0): 0, (2, 1): 1}
    assert moves(mdp) == expected
    assert [mdp.features[s, a, 0] for s, a in expected] == [20, 10, 20, 5, 30, 10, 30]


def test_edge_features_come_first_and_node_features_are_those_of_the_node_entered():
    mdp = from_networkx(Graph(NODES, ONE_WAY, True), discount=0.9, node_features=["h"], edge_features=["km"])
    assert mdp.feature_names == ("km", "h")
    np.testing.assert_array_equal(mdp.features[0], [[20.0, 2.0], [10.0, 3.0]])
    np.testing.assert_array_equal(mdp.features[1], [[30.0, 3.0], [0.0, 0.0]])


def test_parallel_edges_are_actions_of_their_own():
    edges = [("c", "a", {"km": 1.0}), ("c", "b", {"km": 2.0}), ("c", "a", {"km": 3.0})]
    mdp = from_networkx(Graph(NODES, edges, True), discount=0.9, edge_features=["km"])
    assert moves(mdp) == {(0, 0): 1, (0, 1): 1, (0, 2): 2}
    np.testing.assert_array_equal(mdp.features[0, :, 0], [1.0, 3.0, 2.0])


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_every_kind_of_networkx_graph_is_read(kind):
    networkx = pytest.importorskip("networkx")
    graph = getattr(networkx, kind)()
    graph.add_nodes_from(NODES.items())
    graph.add_edges_from(ONE_WAY)
    if graph.is_multigraph():
        graph.add_edge("c", "b", km=99.0)
    mdp = from_networkx(graph, discount=0.9, node_features=["h"], edge_features=["km"])
    assert mdp.state_names == ("c", "a", "b")
    assert int(mdp.allowed.sum()) == (3 + graph.is_multigraph()) * (1 if graph.is_directed() else 2)
    assert mdp.features[0, 0].tolist() == [20.0, 2.0]


def test_the_shortest_path_of_networkx_is_the_best_policy_when_length_costs():
    networkx = pytest.importorskip("networkx")
    graph = networkx.grid_2d_graph(4, 4)
    rng = generator(0)
    for _, _, data in graph.edges(data=True):
        data["km"] = float(rng.uniform(1, 9))
    mdp = from_networkx(graph, discount=1.0, edge_features=["km"], terminal=[(3, 3)])
    policy = optimal_policy(mdp, -mdp.features[:, :, 0])
    path, labels = [0], list(graph)
    while not mdp.terminal[path[-1]]:
        path.append(moves(mdp)[path[-1], int(policy[path[-1]].argmax())])
    assert [labels[s] for s in path] == networkx.shortest_path(graph, (0, 0), (3, 3), weight="km")


def test_an_adjacency_matrix_is_a_graph_whose_weights_are_the_feature():
    rows, columns, weights = [0, 0, 1, 2], [2, 1, 2, 2], [5.0, 6.0, 0.0, 7.0]
    mdp = from_adjacency(sp.coo_array((weights, (rows, columns)), shape=(3, 3)), discount=0.9)
    assert moves(mdp) == {(0, 0): 1, (0, 1): 2, (1, 0): 2, (2, 0): 2}
    assert mdp.feature_names == ("weight",)
    assert [mdp.features[s, a, 0] for s, a in moves(mdp)] == [6.0, 5.0, 0.0, 7.0]


def test_an_undirected_adjacency_matrix_moves_both_ways():
    upper = sp.csr_array(np.array([[0, 1.0, 0], [0, 0, 2.0], [0, 0, 3.0]]))
    mdp = from_adjacency(upper, discount=0.9, directed=False)
    assert moves(mdp) == {(0, 0): 1, (1, 0): 0, (1, 1): 2, (2, 0): 1, (2, 1): 2}
    full = from_adjacency(sp.csr_array(upper.toarray() + np.triu(upper.toarray(), 1).T), discount=0.9)
    assert moves(full) == moves(mdp)
    np.testing.assert_array_equal(full.features, mdp.features)


def test_one_move_a_state_keeps_state_action_features():
    ring = sp.csr_array(np.roll(np.eye(3), 1, axis=1))
    mdp = from_adjacency(ring, discount=0.9)
    assert mdp.state_action
    assert mdp.n_actions == 1


def test_an_adjacency_matrix_takes_features_of_states_and_can_be_learned_on():
    grid = np.diag(np.ones(4), 1)
    mdp = from_adjacency(
        sp.csr_array(grid), discount=0.9, directed=False, features=np.arange(5.0)[:, None] / 4
    ).replace(horizon=3)
    expert = Trajectories.from_lists([[0, 1, 2], [2, 3, 4], [1, 2, 3]])
    assert MaxEntIRL(theta_max=10.0).fit(mdp, expert).theta_[0] > 0


@pytest.mark.parametrize(
    ("nodes", "edges", "arguments", "error", "message"),
    [
        (NODES, ONE_WAY, {}, InputError, "graph: no features are given: name attributes in node_features"),
        (NODES, ONE_WAY, {"node_features": "h"}, TypeError, "node_features must be a list of names, not 'h'"),
        (NODES, ONE_WAY, {"node_features": ["x"]}, InputError, "node 'c': it has no attribute 'x': set it"),
        (NODES, ONE_WAY, {"edge_features": ["x"]}, InputError, r"edge \('c', 'b'\): it has no attribute 'x'"),
        (
            NODES,
            [],
            {"node_features": ["h"]},
            InputError,
            "graph: it has no edges: an MDP needs at least one transition",
        ),
        (
            {"a": {"h": "tall"}},
            [],
            {"node_features": ["h"]},
            InputError,
            "node 'a': h is 'tall': it must be a number",
        ),
        (NODES, ONE_WAY, {"node_features": ["h"], "terminal": ["z"]}, InputError, "the graph has no node 'z'"),
        ({1: {"h": 1}, "1": {"h": 2}}, [(1, "1", {})], {"node_features": ["h"]}, ValueError, "'1' twice"),
    ],
)
def test_a_graph_that_does_not_say_enough_is_refused(nodes, edges, arguments, error, message):
    with pytest.raises(error, match=message):
        from_networkx(Graph(nodes, edges, True), discount=0.9, **arguments)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match=r"ndarray is not a graph: it has no nodes\(\)"):
        from_networkx(np.eye(2), discount=0.9, node_features=["h"])
    with pytest.raises(TypeError, match=r"adjacency must be scipy\.sparse, not ndarray"):
        from_adjacency(np.eye(2), discount=0.9)
    with pytest.raises(InputError, match=r"adjacency: has shape \(2, 3\): give a square matrix"):
        from_adjacency(sp.csr_array(np.ones((2, 3))), discount=0.9)
    with pytest.raises(InputError, match=r"features: has shape \(3, 1\): give \(2, d\)"):
        from_adjacency(sp.csr_array(np.eye(2)), discount=0.9, features=np.ones((3, 1)))
    unequal = sp.csr_array(np.array([[0, 1.0], [2.0, 0]]))
    with pytest.raises(
        InputError, match=r"adjacency: \(0, 1\) is 1 and \(1, 0\) is 2: make them equal, or use directed=True"
    ):
        from_adjacency(unequal, discount=0.9, directed=False)
    with pytest.raises(InputError, match="graph: it has no edges"):
        from_adjacency(sp.csr_array((2, 2)), discount=0.9)
