"""Baselines to compare MESSI with, each with a penalty as strong (see estimators/methods.py), and chance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.estimators.messi import MESSI
from messirl.estimators.methods import BASELINES, Method
from messirl.estimators.standing import quietly
from messirl.estimators.uniform import uniform_score
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories


@dataclass(frozen=True)
class Comparison:
    """The log-probability per step of one method, on the experts and on held-out trajectories."""

    name: str
    expert: float
    held_out: float | None
    converged: bool


def compare(
    model: MESSI,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | None,
    held_out: Trajectories | None,
    methods: Iterable[Method] = BASELINES,
) -> list[Comparison]:
    """The scores of all baselines, fitted with the settings of the MESSI `model`."""
    rows = []
    for method in methods:
        if unlabelled is None and (method.penalised or method.unlabelled):  # MESSI has no penalty then
            continue
        estimator, data = method.make(clone(model), mdp, expert, unlabelled)
        with quietly():  # the row says whether it converged
            estimator.fit(mdp, *data)
        out = None if held_out is None else estimator.score(held_out)
        rows.append(Comparison(method.name, estimator.score(expert), out, estimator.converged_))
    return rows


def below_chance(model: MaximumEntropy, expert: Trajectories) -> str | None:
    """Why a fit scores lower on its own experts than the uniform policy; None if it does not."""
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
