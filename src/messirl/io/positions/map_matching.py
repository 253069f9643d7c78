"""Map matching by a hidden Markov model: the most likely cell sequence behind noisy positions.

    max over s_0 … s_T of  Σ_t −‖x_t − c(s_t)‖² / 2σ_t² − Σ_t k(s_t, s_{t+1}),   k = log deg(s) to neighbours, else JUMP

with c(s) the centre of cell s, x_t the recorded position, and σ_t the noise. All transitions out of a cell are equally
likely. A jump costs as much as two positions that are four standard deviations off: smaller deviations count as noise.
Where no position was recorded, x_t is interpolated, and σ_t grows with the time to the nearest recorded one. The
maximum is found by dynamic programming (Viterbi) over the cells nearest to each position, batched over trajectories.

Reference: A. J. Viterbi, Error bounds for convolutional codes, IEEE Trans. Inf. Theory 13 (1967).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from messirl._types import Array, Flags, Floats, Ints
from messirl.io.positions.segmentation import Points
from messirl.io.positions.spatial_cells import CellMap

LEAST, MOST = 9, 37  # bounds on the number of candidate cells per position
FAR = 4.0  # standard deviations within which candidates lie
JUMP = FAR**2
ENTRIES = 10_000_000  # of the table of transition costs, per batch


def match_to_cells(points: Points, places: CellMap, noise: float, *, stay: bool) -> Ints:
    """Return the cell of each point, (M,).

    noise : standard deviation of x and of y
    stay : whether a trajectory may be in the same cell twice in a row
    """
    centres = places.centres
    assert points.xy is not None, "positions are needed"
    assert centres is not None, "centres of cells are needed"
    wide = int(np.pi * (FAR * noise / places.spacing) ** 2) + 4
    n_near = min(len(centres), int(np.clip(wide, LEAST, MOST)))
    tree, moves = cKDTree(centres), _Moves(places.near, stay)
    first = np.flatnonzero(np.append(True, ~points.goes_on))
    length = np.diff(np.append(first, points.trajectory.size))
    spread = noise**2 + places.spacing**2 * _distance_to_recorded(points)
    near = np.zeros((points.trajectory.size, n_near), dtype=np.int32)
    back = np.zeros((points.trajectory.size, n_near), dtype=np.int8)
    ends = np.zeros(points.trajectory.size, dtype=np.int64)
    order = np.argsort(-length, kind="stable")  # longest first: trajectories still running form a prefix
    for some in np.array_split(order, 1 + order.size * n_near**2 // ENTRIES):
        begin, long = first[some], length[some]
        score: Floats = np.zeros((0, n_near))
        for t in range(int(long[0])):
            on = int(np.searchsorted(-long, -t))  # trajectories with a point at time t
            at = begin[:on] + t
            distance, found = tree.query(points.xy[at], k=n_near)
            near[at] = found.reshape(on, n_near)
            fits = -(distance.reshape(on, n_near) ** 2) / (2.0 * spread[at, None])
            if t == 0:
                score = fits
            else:
                score, back[at] = _step(score[:on], moves.cost(near[at - 1], near[at]))
                score += fits
            done = long[:on] == t + 1
            ends[at[done]] = score[done].argmax(axis=1)
        for t in range(int(long[0]) - 1, 0, -1):
            at = begin[: int(np.searchsorted(-long, -t))] + t
            ends[at - 1] = back[at, ends[at]]
    return np.take_along_axis(near, ends[:, None], axis=1)[:, 0].astype(np.int64)


def _step(score: Floats, cost: Floats) -> tuple[Floats, Ints]:
    """Return the best score of every next cell and its predecessor: (n, k) and (n, k, k) to (n, k) twice."""
    ways: Array = score[:, :, None] + cost
    best = ways.argmax(axis=1)
    gain: Array = np.take_along_axis(ways, best[:, None], axis=1)[:, 0]
    jump: Array = score.max(axis=1, keepdims=True) - JUMP
    return np.maximum(gain, jump), np.where(gain < jump, score.argmax(axis=1)[:, None], best)


class _Moves:
    """Log transition probabilities: log 1 / deg(s) to neighbours, −inf otherwise."""

    def __init__(self, near: Any, stay: bool) -> None:
        self.n, self.stay = near.shape[0], stay
        degree = np.diff(near.indptr)
        self.keys = np.repeat(np.arange(self.n), degree) * self.n + near.indices
        self.log_degree = np.log(np.maximum(degree + stay, 1))

    def cost(self, source: Array, target: Array) -> Floats:
        """Return the log probabilities (n, k, k) from cells (n, k) to next cells (n, k)."""
        a, b = source[:, :, None].astype(np.int64), target[:, None, :]
        key = a * self.n + b
        at = np.minimum(np.searchsorted(self.keys, key), self.keys.size - 1)
        allowed: Flags = self.keys[at] == key
        if self.stay:
            allowed |= a == b
        return np.where(allowed, -self.log_degree[a], -np.inf)


def _distance_to_recorded(points: Points) -> Ints:
    """Return the distance, in points, to the nearest recorded point; trajectories begin and end with recorded ones."""
    index, every = np.flatnonzero(points.seen), np.arange(points.trajectory.size)
    after = np.searchsorted(index, every)
    away = np.minimum(index[after] - every, every - index[np.maximum(after - 1, 0)])
    return np.asarray(np.where(points.seen, 0, away))
