"""Route choice: value and gradient over all destinations by one factorisation, against one factorisation each.

On a synthetic road network and, where its folder is at hand (MESSIRL_DATA, or ../shared/data), on Borlänge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, Trajectories
from messirl.planning import Planner

SIDE, GOALS, TRIPS = 50, 200, 800
TARGET = 15.0


def one_by_one(mdp: MDP, reward: np.ndarray, first: np.ndarray, goals: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean V at the starts and the expected flows (S, A), a sparse LU for every destination."""
    rows = np.flatnonzero(np.diff(mdp.transitions.indptr))
    source, action, target = rows // mdp.n_actions, rows % mdp.n_actions, mdp.transitions.indices
    gain = np.exp(reward[source, action])
    total, flows = 0.0, np.zeros((mdp.n_states, mdp.n_actions))
    for goal in np.unique(goals):
        weight = np.bincount(first[goals == goal], minlength=mdp.n_states) / len(goals)
        keep = source != goal
        matrix = sp.csc_array((gain[keep], (source[keep], target[keep])), shape=(mdp.n_states, mdp.n_states))
        system = splu(sp.csc_array(sp.eye_array(mdp.n_states) - matrix))
        unit = np.zeros(mdp.n_states)
        unit[goal] = 1.0
        z = system.solve(unit)
        at = weight > 0
        total += float(weight[at] @ np.log(z[at]))
        right = np.where(at, weight / np.where(at, z, 1.0), 0.0)
        y = system.solve(right, trans="T")
        flows[source[keep], action[keep]] += y[source[keep]] * gain[keep] * z[target[keep]]
    return total, flows


def network(wanted: int = GOALS) -> tuple[MDP, np.ndarray, np.ndarray, np.ndarray]:
    """A grid of one-way pairs of roads with random times, destinations and trips."""
    rng = np.random.default_rng(0)
    n = SIDE * SIDE
    r, c = np.divmod(np.arange(n), SIDE)
    rows, columns = [], []
    for a, (dr, dc) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
        inside = (r + dr >= 0) & (r + dr < SIDE) & (c + dc >= 0) & (c + dc < SIDE)
        rows.append(np.flatnonzero(inside) * 4 + a)
        columns.append(((r + dr) * SIDE + c + dc)[inside])
    row, column = np.concatenate(rows), np.concatenate(columns)
    moves = sp.csr_array((np.ones(row.size), (row, column)), shape=(4 * n, n))
    features = np.stack([rng.uniform(0.5, 1.5, (n, 4)), np.ones((n, 4))], axis=2)
    goals = rng.choice(n, wanted, replace=False)[rng.integers(0, wanted, TRIPS)]
    return MDP(moves, features, discount=1.0), np.array([-1.5, -1.0]), rng.integers(0, n, TRIPS), goals


def planner_of(wanted: int) -> tuple[Planner, np.ndarray]:
    """What evaluates trips to so many destinations on the synthetic network, and a reward."""
    mdp, theta, first, goals = network(wanted)
    weights = np.full(len(goals), 1.0 / len(goals))
    return Planner.for_goals(mdp, "causal", first, goals, weights), mdp.reward(theta)


def borlange() -> tuple[MDP, np.ndarray, Trajectories] | None:
    folder = Path(os.environ.get("MESSIRL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "borlange"
    if not folder.is_dir():
        return None
    from messirl.io import read_problem

    problem = read_problem(folder)
    return problem.mdp, np.array([-2.494, -0.933, -0.411, -4.459]), problem.trajectories


def rows() -> Iterator[Row]:
    mdp, theta, first, goals = network()
    yield _row(f"route choice, {SIDE}² crossings, {np.unique(goals).size} destinations", mdp, theta, first, goals)
    real = borlange()
    if real is not None:
        mdp, theta, trips = real
        assert trips.goals is not None
        what = f"route choice, Borlänge, {np.unique(trips.goals).size} destinations"
        yield _row(what, mdp, theta, trips.first, trips.goals)


def _row(what: str, mdp: MDP, theta: np.ndarray, first: np.ndarray, goals: np.ndarray) -> Row:
    planner = Planner.for_goals(mdp, "causal", first, goals, np.full(len(goals), 1.0 / len(goals)))
    reward = mdp.reward(theta)
    ours, (value, flows) = planner(reward), one_by_one(mdp, reward, first, goals)
    np.testing.assert_allclose(ours.log_partition, value, rtol=1e-8)
    np.testing.assert_allclose(ours.visits.steps, flows, atol=1e-8)
    times = compare(lambda: planner(reward), lambda: one_by_one(mdp, reward, first, goals))
    return Row(f"{what}: value and gradient", seconds(times.ours), seconds(times.other), times.ratio, TARGET)
