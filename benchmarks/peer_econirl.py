"""econirl: endless and discounted, with JAX; a whole fit by its own defaults.

It maximises the likelihood of the actions where we match the counts of states: two estimators of the same θ. Both see
the same trajectories, 1000 or 50, on an 8² grid (64 states, 64 features). It has no score: its policy is scored by our
log-likelihood, on trajectories neither has seen. Standard errors, which it would add, are left out. Times are by the
clock on the wall: it uses several threads.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
from econirl.estimators import MCEIRL

from benchmarks.problems import N_ACTIONS, dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import once
from messirl import MDP, MaxEntIRL, Trajectories, log_likelihood, sample, soft_policy

SIDE, DISCOUNT, LENGTH = 8, 0.95, 100


def rows() -> Iterator[Row]:
    warnings.simplefilter("ignore")  # what converged is in the table
    mdp = grid(SIDE, discount=DISCOUNT, horizon=None)
    everywhere = np.full(mdp.n_states, 1.0 / mdp.n_states)
    truth = soft_policy(mdp, mdp.reward(true_theta()))
    expert, unseen = (sample(mdp, truth, 1000, LENGTH, seed, start=everywhere) for seed in (0, 1))
    for n in (1000, 50):
        yield from fits(mdp.replace(start=None), expert[:n], unseen)
    yield Row("log-probability a step, unseen trajectories, the truth", f"{score(mdp, truth, unseen):.4f}", "")


def fits(mdp: MDP, expert: Trajectories, unseen: Trajectories) -> Iterator[Row]:
    """Both on the same trajectories."""
    moves = dense_rows(mdp).reshape(mdp.n_states, N_ACTIONS, mdp.n_states).transpose(1, 0, 2).copy()
    steps = table(expert)
    ours = MaxEntIRL()
    ours.fit(mdp, expert)
    mine = once(lambda: ours.fit(mdp, expert), time.perf_counter)
    theirs = MCEIRL(
        n_states=mdp.n_states,
        n_actions=N_ACTIONS,
        discount=DISCOUNT,
        feature_matrix=np.asarray(mdp.features),
        compute_se=False,
    )
    took = once(
        lambda: theirs.fit(steps, state="s", action="a", id="id", next_state="next", transitions=moves),
        time.perf_counter,
    )
    what = f"{SIDE}², γ {DISCOUNT:g}, {len(expert)} trajectories: econirl"
    yield Row(f"whole fit, {what}", seconds(mine), seconds(took), took / mine)
    yield Row(f"whether it converged, {what}", str(ours.converged_), str(theirs.converged_))
    scores = [f"{score(mdp, model.policy_, unseen):.4f}" for model in (ours, theirs)]
    yield Row(f"log-probability a step, unseen trajectories, {len(expert)} seen: econirl", *scores)
    ridge = MaxEntIRL(ridge=0.1).fit(mdp, expert)
    yield Row("the same with ridge=0.1", f"{score(mdp, ridge.policy_, unseen):.4f}", "")


def score(mdp: MDP, policy: np.ndarray, trajectories: Trajectories) -> float:
    """Mean log-probability of an action."""
    return float(log_likelihood(mdp, policy, trajectories).sum() / trajectories.leaves.sum())


def table(expert: Trajectories) -> pd.DataFrame:
    """One line a step: who, state, action, next state."""
    at = np.flatnonzero(expert.leaves)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(len(expert)), expert.lengths)[at],
            "s": expert.states[at],
            "a": expert.actions,
            "next": expert.states[at + 1],
        }
    )
