"""Long-range links: a small-world graph whose factors fill in, γ = 1. Iteration against one factorisation of it.

The graph is that of Watts and Strogatz: a ring whose states lead to their 26 nearest, a tenth of all moves to anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP
from messirl.planning import Planner

STATES, MOVES, FAR = 4_600, 26, 0.1
GOALS, TRIPS = (1, 16, 48), 400
TARGET = 50.0  # of one goal


def small_world() -> tuple[MDP, np.ndarray, np.random.Generator]:
    """The graph, with a length and a constant as features of moves, and weights of them."""
    rng = np.random.default_rng(0)
    source, action = np.divmod(np.arange(STATES * MOVES), MOVES)
    near = np.concatenate([np.arange(1, MOVES // 2 + 1), -np.arange(1, MOVES // 2 + 1)])
    target = (source + near[action]) % STATES
    target = np.where(rng.random(target.size) < FAR, rng.integers(0, STATES, target.size), target)
    _, first = np.unique(source * STATES + target, return_index=True)  # no two moves to the same state
    kept = first[source[first] != target[first]]
    shape = (STATES * MOVES, STATES)
    moves = sp.csr_array((np.ones(kept.size), (source[kept] * MOVES + action[kept], target[kept])), shape=shape)
    features = np.stack([rng.uniform(0.5, 1.5, (STATES, MOVES)), np.ones((STATES, MOVES))], axis=2)
    return MDP(moves, features, discount=1.0), np.array([-1.0, -2.6]), rng


def rows() -> Iterator[Row]:
    mdp, theta, rng = small_world()
    reward = mdp.reward(theta)
    for wanted in GOALS:
        goals = rng.choice(STATES, wanted, replace=False)[np.arange(TRIPS) % wanted]
        first, weights = rng.integers(0, STATES, TRIPS), np.full(TRIPS, 1.0 / TRIPS)
        iterated, factorised = (Planner.for_trips(mdp, "causal", first, goals, weights) for _ in range(2))
        factorised.model.__dict__["iterates"] = False
        ours, other = iterated(reward), factorised(reward)
        np.testing.assert_allclose(ours.log_partition, other.log_partition, rtol=1e-10)
        np.testing.assert_allclose(ours.visits.steps, other.visits.steps, atol=1e-9)
        times = compare(lambda one=iterated: one(reward), lambda one=factorised: one(reward), rounds=3)
        what = f"long-range links, {STATES:,} states, {mdp.transitions.nnz:,} moves, {wanted} goal(s): by factors"
        yield Row(what, seconds(times.ours), seconds(times.other), times.ratio, TARGET if wanted == 1 else None)
