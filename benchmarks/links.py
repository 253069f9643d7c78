"""Long-range links: a small-world graph whose factors fill in, γ = 1. Iteration against one factorisation of it.

The graph is that of Watts and Strogatz: a ring whose states lead to their 26 nearest, a tenth of all moves to anywhere.

    python -m benchmarks.links FOLDER [GOALS]      # the graph and 200 trips as a problem folder, to time messirl fit on
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, Trajectories, sample, soft_policy
from messirl.io import Problem, write_problem
from messirl.planning import Planner

STATES, MOVES, FAR = 4_600, 26, 0.1
GOALS, TRIPS = (1, 16, 48), 400
TARGET = 50.0  # of one goal
ROLES = {"expert": 94, "unlabelled": 66, "test": 40}  # of the trips in a folder


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
        iterated, factorised = (Planner.for_goals(mdp, "causal", first, goals, weights) for _ in range(2))
        factorised.model.__dict__["iterates"] = False
        ours, other = iterated(reward), factorised(reward)
        np.testing.assert_allclose(ours.log_partition, other.log_partition, rtol=1e-10)
        np.testing.assert_allclose(ours.visits.steps, other.visits.steps, atol=1e-9)
        times = compare(lambda one=iterated: one(reward), lambda one=factorised: one(reward), rounds=3)
        what = f"long-range links, {STATES:,} states, {mdp.transitions.nnz:,} moves, {wanted} goal(s): by factors"
        yield Row(what, seconds(times.ours), seconds(times.other), times.ratio, TARGET if wanted == 1 else None)


def trips(goals: int) -> Problem:
    """The graph, with trips to so many goals, drawn from the weights of `small_world`, and the role of each."""
    mdp, theta, rng = small_world()
    reward, n = mdp.reward(theta), sum(ROLES.values())
    drawn: list[Trajectories] = []
    for goal in rng.choice(STATES, goals, replace=False).tolist():
        start = np.bincount(rng.choice(STATES, 20), minlength=STATES) / 20.0
        drawn.append(
            sample(mdp, soft_policy(mdp, reward, goal=goal), -(-n // goals), None, rng, goal=goal, start=start)
        )
    every = sum(drawn[1:], drawn[0])
    role = np.repeat(list(ROLES), list(ROLES.values()))
    return Problem(mdp, every[rng.permutation(len(every))[:n]], meta={"role": role})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m benchmarks.links FOLDER [GOALS]")
    write_problem(trips(int(sys.argv[2]) if len(sys.argv) > 2 else GOALS[-1]), sys.argv[1])
