"""The baselines a sceptic asks for beside MESSI, each as strong as it.

    MaxEnt     no penalty            Ridge      ½ρ‖θ‖²
    Pooling    all are experts       RidgeStd   ½ρ Σ_j (σ_j θ_j)², counts in units of their spread
                                     Complete   Eq. 5 with all similarities 1

The three penalties have the trace that MESSI's has on the same trajectories, so that one λ0 means one strength.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from messirl._types import Floats
from messirl.estimators.base import IRLEstimator, quietly
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.planning import log_likelihood
from messirl.problem.counts import feature_counts
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.similarity import CompleteGraph, similarity_penalty
from messirl.similarity.kernels import deviations

BASELINES = ("MaxEnt", "Ridge", "RidgeStd", "Complete", "Pooling")
Task = tuple[IRLEstimator, tuple[Trajectories, ...]]


def baseline(name: str, model: MESSI, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> Task:
    """An unfitted baseline with the model's own solver and bound, and what to fit it to."""
    if name not in BASELINES:
        raise ValueError(f"baseline {name!r}: choose from {', '.join(BASELINES)}")
    arguments = model.get_params(deep=False)
    similarity, lambda0 = arguments.pop("similarity"), arguments.pop("lambda0")
    if name == "MaxEnt" or unlabelled is None:
        return MaxEntIRL(**arguments), (expert,)
    everyone = expert + unlabelled
    if name == "Pooling":
        return MaxEntIRL(**arguments), (everyone,)
    counts = feature_counts(mdp, everyone)
    if not deviations(counts).any():  # all counts are equal: there is nothing to penalise
        return MaxEntIRL(**arguments), (expert,)
    strength = float(np.trace(similarity_penalty(similarity, everyone, counts)))
    if name == "Complete":
        full = float(np.trace(similarity_penalty(CompleteGraph(), everyone, counts)))
        return MESSI(CompleteGraph(), lambda0=lambda0 * strength / full, **arguments), (expert, unlabelled)
    standardise = name == "RidgeStd"
    trace = float(counts.var(axis=0).sum()) if standardise else float(mdp.n_features)
    ridge = lambda0 / model.theta_max * strength / trace
    return MaxEntIRL(ridge=ridge, standardise=standardise, **arguments), (expert, unlabelled)


@dataclass(frozen=True)
class Comparison:
    """One method beside the others: its log-probability per step on the experts and on held-out trajectories."""

    name: str
    expert: float
    held_out: float | None
    converged: bool


def compare(
    model: MESSI, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None, held_out: Trajectories | None
) -> list[Comparison]:
    """Every baseline fitted as MESSI was, and the policy that takes every allowed action alike."""
    rows = []
    names = BASELINES if unlabelled is not None else BASELINES[:1]
    for name in names:
        estimator, data = baseline(name, clone(model), mdp, expert, unlabelled)
        with quietly():  # said in the row
            estimator.fit(mdp, *data)
        out = None if held_out is None else estimator.score(held_out)
        rows.append(Comparison(name, estimator.score(expert), out, estimator.converged_))
    out = None if held_out is None else uniform_score(mdp, held_out)
    return [*rows, Comparison("uniform", uniform_score(mdp, expert), out, True)]


def uniform_score(mdp: MDP, trajectories: Trajectories) -> float:
    """Log-probability per step under the policy that takes every allowed action alike."""
    steps = int((trajectories.lengths - 1).sum())
    return float(log_likelihood(mdp, uniform_policy(mdp, trajectories), trajectories).sum() / max(steps, 1))


def below_chance(model: IRLEstimator, expert: Trajectories) -> str | None:
    """Why a fit scores lower on its own experts than the policy that takes every allowed action alike, if it does."""
    mdp, own, chance = model.mdp_, model.score(expert), uniform_score(model.mdp_, expert)
    if own >= chance:
        return None
    reasons = []
    if not model.converged_:
        reasons.append("the fit did not converge")
    if mdp.discount ** float(np.median(expert.lengths)) < 0.5:
        reasons.append(
            f"the fit matches counts discounted by {mdp.discount:g} a step, and the score does not discount, so that "
            "late steps hardly entered the fit"
        )
    if not mdp.deterministic:
        reasons.append("moves are random, and the counts of few trajectories hold their luck")
    if model.quadratic_ is not None:
        reasons.append("the penalty keeps the model from following the experts")
    if model.standing_.box:
        reasons.append("theta_max holds some weights")
    why = "; ".join(reasons) or "matching counts is not the same as predicting steps"
    return (
        f"on the trajectories it was fitted to, the model scores {own:.4f} a step, below the {chance:.4f} of a policy "
        f"that takes every allowed action alike: {why}"
    )


def uniform_policy(mdp: MDP, trajectories: Trajectories) -> Any:
    """Every allowed action alike: as `policy_`, a mapping where the trajectories have goals."""
    alike: Floats = mdp.allowed / np.maximum(mdp.allowed.sum(axis=1, keepdims=True), 1)
    if trajectories.goals is not None:
        return dict.fromkeys(np.unique(trajectories.goals).tolist(), alike)
    return np.broadcast_to(alike, mdp.policy_shape)
