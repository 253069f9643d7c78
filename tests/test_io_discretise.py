"""Numbers for continuous observations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from seeds import generator

from messirl import Trajectories
from messirl.data.errors import InputError
from messirl.io.recordings.discretise import Grid, KMeans, discretise, from_dict
from messirl.io.recordings.recording import Recording


def cloud(n=200, k=2, seed=0):
    return generator(seed).normal(size=(n, k))


# ------------------------------------------------------------ grid


def test_a_box_holds_its_lower_edge_and_the_last_one_its_upper_edge_too():
    grid = Grid([[0, 1, 2]])
    assert grid.transform([0.0, 0.99, 1.0, 1.99, 2.0]).tolist() == [0, 0, 1, 1, 1]


def test_the_last_dimension_counts_fastest_and_every_centre_lies_in_its_box():
    grid = Grid([[0, 1, 2, 3], [0, 10, 20]])
    assert (grid.shape, grid.n_states) == ((3, 2), 6)
    assert grid.transform([[0.5, 5], [0.5, 15], [2.5, 15]]).tolist() == [0, 1, 5]
    assert grid.centres[1].tolist() == [0.5, 15.0]
    assert grid.transform(grid.centres).tolist() == list(range(6))


def test_points_outside_are_clipped_or_refused_as_asked():
    assert Grid([[0, 1, 2]]).transform([-9.0, 9.0]).tolist() == [0, 1]
    with pytest.raises(InputError, match=r"observations\[1\]: 9 lies outside \[0, 2\] in dimension 0"):
        Grid([[0, 1, 2]], outside="error").transform([2.0, 9.0])


def test_a_fitted_grid_spans_the_data_in_equal_steps():
    points = cloud()
    grid = Grid.fit(points, [4, 2])
    for j, cuts in enumerate(grid.edges):
        assert (cuts[0], cuts[-1]) == (points[:, j].min(), points[:, j].max())
        np.testing.assert_allclose(np.diff(cuts), np.ptp(cuts) / grid.shape[j])
    assert Grid.fit(points, 3).shape == (3, 3)
    states = Grid.fit(points, [4, 2], outside="error").transform(points)
    assert set(states) <= set(range(8))


# ------------------------------------------------------------ k-means


def test_kmeans_finds_clusters_and_numbers_them_in_order():
    centres = np.array([[0.0, 0.0], [4.0, 9.0], [9.0, 0.0]])
    points = np.concatenate([c + 0.1 * cloud(30, seed=i) for i, c in enumerate(centres[[2, 0, 1]])])
    mapping = KMeans.fit(points, 3)
    np.testing.assert_allclose(mapping.centres, centres, atol=0.1)
    assert mapping.transform(points).tolist() == [2] * 30 + [0] * 30 + [1] * 30
    assert mapping.transform(mapping.centres).tolist() == [0, 1, 2]
    assert mapping.n_states == 3


def test_kmeans_gives_the_nearest_centre_of_any_point():
    mapping, points = KMeans(cloud(12, seed=1)), 5 * cloud(100)
    distances = ((points[:, None] - mapping.centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(mapping.transform(points), distances.argmin(axis=1))


def test_a_seed_gives_the_same_centres_again():
    one, other = (KMeans.fit(cloud(), 5, random_state=7).centres for _ in range(2))
    np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------ both


@pytest.mark.parametrize("mapping", [Grid.fit(cloud(), [5, 3], outside="error"), KMeans.fit(cloud(), 6)])
def test_a_mapping_comes_back_from_json_and_gives_the_same_numbers(mapping):
    back = from_dict(json.loads(json.dumps(mapping.to_dict())))
    np.testing.assert_array_equal(back.transform(cloud()), mapping.transform(cloud()))
    np.testing.assert_array_equal(back.centres, mapping.centres)
    assert back.to_dict() == mapping.to_dict()


def test_recordings_become_trajectories():
    recordings = [
        Recording(np.array([[0.5], [1.5], [0.2]]), np.array([1, 0]), terminated=True),
        Recording(np.array([[1.1], [1.2]]), np.array([1]), truncated=True),
    ]
    grid = Grid.fit(recordings, 2)
    expected = Trajectories.from_lists([[0, 1, 0], [1, 1]], [[1, 0], [1]])
    assert discretise(recordings, grid) == expected
    ended = discretise(recordings, grid, end_state=grid.n_states)
    assert [t.states.tolist() for t in ended] == [[0, 1, 2], [1, 1]]


def test_continuous_actions_are_numbered_by_a_mapping_of_their_own():
    recordings = [Recording(np.zeros((3, 1)), np.array([[-1.0], [1.0]])), Recording(np.zeros((1, 1)), np.zeros((0, 1)))]
    states, actions = Grid([[-1, 1]]), Grid([[-2, 0, 2]])
    found = discretise(recordings, states, actions=actions)
    assert [t.actions.tolist() for t in found] == [[0, 1], []]
    with pytest.raises(InputError, match=r"recording 0: its actions are float64 of shape \(2, 1\): number them with"):
        discretise(recordings, states)


@pytest.mark.parametrize("mapping", [Grid([[0, 1], [0, 1]]), KMeans(np.eye(2))])
@pytest.mark.parametrize(
    ("points", "error", "message"),
    [
        ([[0, 1], [np.nan, 1]], InputError, r"observations\[1\]: \[nan +1\.\] is not finite: fill the gap"),
        ([[0, np.inf]], InputError, r"observations\[0\]: \[ 0\. inf\] is not finite"),
        ([[0, 1, 2]], InputError, r"observations: has shape \(1, 3\): give points \(N, 2\)"),
        ([["a", "b"]], TypeError, "observations must be numbers, not <U1"),
    ],
)
def test_what_is_no_point_is_refused(mapping, points, error, message):
    with pytest.raises(error, match=message):
        mapping.transform(points)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grid([]), "Grid: there are no edges"),
        (lambda: Grid([[0, 1], [2, 1]]), r"Grid: edges 1 are \[2\. 1\.\]: give two or more, finite and increasing"),
        (lambda: Grid([[0]]), "Grid: edges 0 are"),
        (lambda: Grid([[0, np.inf]]), "Grid: edges 0 are"),
        (lambda: Grid([[0, 1]], outside="wrap"), "Grid: outside='wrap': choose from 'clip', 'error'"),
        (lambda: Grid.fit(cloud(), [2]), r"Grid: bins=\[2\]: give one number >= 1, or one for each of 2 dimensions"),
        (lambda: Grid.fit(cloud(), 0), "Grid: bins=0"),
        (lambda: Grid.fit(np.zeros((3, 1)), 2), "Grid: dimension 0 is constant .*: drop it, or give the edges"),
        (lambda: Grid.fit(np.zeros((0, 1)), 2), "observations: there are none"),
        (lambda: Grid.fit(np.zeros((2, 2, 2)), 2), r"observations: has shape \(2, 2, 2\): give points \(N, k\)"),
        (lambda: KMeans(np.zeros(3)), r"KMeans: centres have shape \(3,\): give finite numbers \(S, k\)"),
        (lambda: KMeans.fit(np.zeros((5, 2)), 2), r"KMeans: n_states=2: give 1 … 1"),
        (lambda: from_dict({"kind": "tree"}), "mapping: kind is 'tree': choose 'grid', 'hexagons' or 'kmeans'"),
        (lambda: from_dict({"kind": "grid"}), "mapping: it has no 'edges': give what to_dict returned"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
