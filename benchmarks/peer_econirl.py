"""econirl: endless and discounted, with JAX; whole fits by its own defaults.

Like `objective="choices"` it maximises the likelihood of the actions. On an 8² grid (64 states, 64 features) both see
the same trajectories, 1000 or 50; we appear with both objectives. It has no score: its policy is scored by our
log-likelihood, on trajectories neither has seen; standard errors, which it would add, are left out. On the bus engines
(where their folder is at hand: MESSIRL_DATA, or ../shared/data) it is its nested fixed point, made for such data; its
standard errors cannot be left out, so ours are included. Times are CPU time; its threads, if it uses several, add up.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from econirl.core.reward_spec import RewardSpec
from econirl.estimators import MCEIRL, NFXP

from benchmarks.problems import dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import once
from messirl import MDP, MaxEntIRL, Trajectories, log_likelihood, sample, soft_policy
from messirl.inference import estimation_table
from messirl.io import read_problem

SIDE, DISCOUNT, LENGTH = 8, 0.95, 100
TARGET = 100.0  # times as fast as econirl, at least
STEP = {"state": "s", "action": "a", "id": "id"}  # what the columns of `table` are


def rows() -> Iterator[Row]:
    warnings.simplefilter("ignore")  # what converged is in the table
    yield from engines()
    mdp = grid(SIDE, discount=DISCOUNT, horizon=None)
    everywhere = np.full(mdp.n_states, 1.0 / mdp.n_states)
    truth = soft_policy(mdp, mdp.reward(true_theta()))
    expert, unseen = (sample(mdp, truth, 1000, LENGTH, seed, start=everywhere) for seed in (0, 1))
    yield Row("log-probability per step, unseen trajectories, the truth", f"{score(mdp, truth, unseen):.4f}", "")
    for n in (50, 1000):
        yield from fits(mdp.replace(start=None), expert[:n], unseen)


def fits(mdp: MDP, expert: Trajectories, unseen: Trajectories) -> Iterator[Row]:
    """Both on the same trajectories."""
    theirs = MCEIRL(
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        discount=mdp.discount,
        feature_matrix=np.asarray(mdp.features),
        compute_se=False,
    )
    steps, moves = table(expert), by_action(mdp)
    took = once(lambda: theirs.fit(steps, next_state="next", transitions=moves, **STEP))
    what = f"{SIDE}², γ {DISCOUNT:g}, {len(expert)} trajectories"
    for objective in ("choices", "counts"):
        ours = MaxEntIRL(objective=objective)
        mine = second(lambda ours=ours: ours.fit(mdp, expert))
        named = f"{what}, {objective}: econirl"
        target = TARGET if objective == "choices" else None
        yield Row(f"whole fit, {named}", seconds(mine), seconds(took), took / mine, target)
        yield Row(f"whether it converged, {named}", str(ours.converged_), str(theirs.converged_))
        scores = [f"{score(mdp, model.policy_, unseen):.4f}" for model in (ours, theirs)]
        yield Row(f"log-probability per step, unseen trajectories, {named}", *scores)
    ridge = MaxEntIRL(objective="counts", ridge=0.1).fit(mdp, expert)
    yield Row(f"the same, counts, ridge=0.1, {len(expert)} seen", f"{score(mdp, ridge.policy_, unseen):.4f}", "")


def engines() -> Iterator[Row]:
    """Rust's bus engines, group 4: both with standard errors from the Hessian."""
    folder = Path(os.environ.get("MESSIRL_DATA") or Path(__file__).parents[2] / "shared" / "data") / "bus_engines"
    if not folder.exists():
        return
    problem = read_problem(folder)
    mdp, expert = problem.mdp, problem.trajectories[np.flatnonzero(problem.meta["group"] == 4)]
    ours = MaxEntIRL(objective="choices")
    mine = second(lambda: estimation_table(ours.fit(mdp, expert), expert))
    theirs = NFXP(
        n_states=mdp.n_states,
        n_actions=mdp.n_actions,
        discount=mdp.discount,
        utility=RewardSpec.state_action_dependent(np.asarray(mdp.features), names=list(mdp.feature_names or ())),
        se_method="asymptotic",
    )
    steps, moves = table(expert), by_action(mdp)
    took = once(lambda: theirs.fit(steps, transitions=moves, **STEP))
    what = "bus engines, group 4: econirl"
    yield Row(f"whole fit and standard errors, {what}", seconds(mine), seconds(took), took / mine, TARGET)
    yield Row(f"whether it converged, {what}", str(ours.converged_), str(theirs.converged_))
    theta = (ours.theta_, theirs.coef_)
    yield Row(f"θ11 and RC, {what}", *(", ".join(f"{x:.4f}" for x in one) for one in theta))
    found = estimation_table(ours, expert)
    errors = (found.std_error, list(theirs.se_.values()))
    yield Row(f"standard errors (Hessian), {what}", *(", ".join(f"{x:.3f}" for x in one) for one in errors))
    heights = (found.log_likelihood, theirs.log_likelihood_)
    yield Row(f"log-likelihood, {what}", *(f"{x:.5f}" for x in heights))


def second(call: Callable[[], Any]) -> float:
    """CPU seconds of a call, after one that may have to compile."""
    call()
    return once(call)


def score(mdp: MDP, policy: np.ndarray, trajectories: Trajectories) -> float:
    """Mean log-probability of an action."""
    return float(log_likelihood(mdp, policy, trajectories).sum() / trajectories.leaves.sum())


def by_action(mdp: MDP) -> np.ndarray:
    """The dynamics as a dense (A, S, S) array."""
    return dense_rows(mdp).reshape(mdp.n_states, mdp.n_actions, mdp.n_states).transpose(1, 0, 2).copy()


def table(expert: Trajectories) -> pd.DataFrame:
    """One line per step: who, state, action, next state."""
    at = np.flatnonzero(expert.leaves)
    return pd.DataFrame(
        {
            "id": np.repeat(np.arange(len(expert)), expert.lengths)[at],
            "s": expert.states[at],
            "a": expert.actions,
            "next": expert.states[at + 1],
        }
    )
