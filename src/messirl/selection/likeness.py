"""How much unlabelled trajectories look like the expert's, by what the experts alone teach.

A reward is learnt from the experts only: MaxEnt or a ridge, chosen and scaled by their own held-out trajectories. The
likeness of a trajectory is its log-probability per step under that policy less that under the policy that takes every
allowed action alike: above zero it goes where the expert would, below it is better explained by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl.estimators.baselines import uniform_policy
from messirl.planning import log_likelihood
from messirl.planning.likelihood import reward_log_likelihood
from messirl.problem.mdp import MDP, Floats
from messirl.problem.trajectories import Trajectories
from messirl.selection.candidates import LAMBDAS, Bench, Candidate, candidates
from messirl.selection.validation import SCALES, cross_validate, splits
from messirl.similarity import CompleteGraph


@dataclass(frozen=True)
class Likeness:
    """Nats per step better than chance: of each unlabelled trajectory, and of held-out experts on average."""

    unlabelled: Floats  # (u,)
    expert: float
    candidate: Candidate  # what the experts alone were learnt with
    scale: float

    @property
    def mean(self) -> float:
        """Of the unlabelled set."""
        return float(self.unlabelled.mean())

    @property
    def alike(self) -> npt.NDArray[np.bool_]:
        """Which unlabelled trajectories the experts explain better than chance does."""
        return np.asarray(self.unlabelled > 0.0)


def likeness(
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories,
    *,
    cv: int = 5,
    groups: npt.ArrayLike | None = None,
    random_state: Any = None,
    theta_max: float = 500.0,
    max_iter: int = 200,
    tol: float = 1e-3,
) -> Likeness:
    """See above. Causal model; with one expert trajectory of an endless problem its own later part is held out."""
    options: dict[str, Any] = {
        "reference": CompleteGraph(),
        "theta_max": theta_max,
        "max_iter": max_iter,
        "tol": tol,
    }
    every = candidates((), LAMBDAS, unlabelled=False)
    every = [c for c in every if c.method != "RidgeStd"]
    pairs = splits(mdp, expert, cv, groups, random_state)
    found = cross_validate(mdp, every, pairs, None, scales=SCALES, **options)
    best = int(found.scores.mean(axis=1).argmax())
    bench = Bench(mdp, expert, None, **options)
    theta = found.scale[best] * dict(bench.path(every[: best + 1]))[every[best]]
    start = np.bincount(np.concatenate([expert.first, unlabelled.first]), minlength=mdp.n_states).astype(np.float64)
    steps = np.maximum(unlabelled.lengths - 1, 1)
    chance = log_likelihood(mdp, uniform_policy(mdp, unlabelled), unlabelled)
    ratio = (reward_log_likelihood(mdp, mdp.reward(theta), unlabelled, start) - chance) / steps
    held_out = [test for _, test in pairs]
    by_chance = np.mean(
        [log_likelihood(mdp, uniform_policy(mdp, t), t).sum() / max(int((t.lengths - 1).sum()), 1) for t in held_out]
    )
    return Likeness(ratio, float(found.scores[best].mean() - by_chance), every[best], float(found.scale[best]))
