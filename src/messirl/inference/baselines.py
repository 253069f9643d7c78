"""Comparison of MESSI with baselines, whose penalties are equally strong (see estimators/registry.py), and chance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators._initialization import WarmStart, likelihood_curvature_at
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.estimators.registry import COMPARED, Method
from messirl.estimators.uniform import uniform_score
from messirl.objective import Objective
from messirl.optim.box_search import FEW
from messirl.planning import NoFiniteValue
from messirl.planning.likelihood import finite_log_likelihood, state_components

BENT = 1e-6  # least eigenvalue of the Hessian, relative to the largest, of a well-determined maximum
SHOWN = 1e-4  # the smallest difference between two scores that four decimals show


@dataclass(frozen=True)
class Comparison:
    """The log-probability per step of one method, on the experts and on held-out trajectories.

    logs : the log-probability of each of the held-out trajectories, (n,)
    """

    name: str
    expert: float
    held_out: float | None
    logs: Floats | None
    converged: bool


def compare(
    model: MESSI,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | StreamedTrajectories | None,
    held_out: Trajectories | None,
    methods: Iterable[Method] = COMPARED,
    fitted: MaximumEntropy | None = None,
) -> list[Comparison]:
    """Return the scores of all baselines, fitted with the settings of the MESSI `model`.

    fitted : a fit to the same experts, from which searches may be warm-started
    """
    rows, near = [], WarmStarts(expert)
    if fitted is not None:
        near.add(fitted)
    for method in methods:
        if unlabelled is None and (method.penalised or method.unlabelled):  # MESSI has no penalty then
            continue
        estimator, data = method.make(clone(model), mdp, expert, unlabelled)
        with ignore_convergence_warnings():  # the row says whether it converged
            near.fit(estimator, mdp, data)
        rows.append(
            Comparison(
                method.name, estimator.score(expert), *held_out_scores(estimator, held_out), estimator.converged_
            )
        )
    return rows


class WarmStarts:
    """Warm starts for fits to nearly the same experts, one with and one without a prior policy."""

    def __init__(self, expert: Trajectories) -> None:
        self._expert = expert
        self._known: dict[bool, WarmStart] = {}

    def fit(self, estimator: Any, mdp: MDP, data: tuple[Any, ...]) -> None:
        """Fit an estimator to its data."""
        one_search = type(estimator) in (MaxEntIRL, MESSI) and estimator.solver == "lbfgs"
        if one_search and estimator.theta_init is None:
            estimator.set_params(theta_init=self._known.get(estimator.reference is not None))
        estimator.fit(mdp, *data)
        if one_search:
            self.add(estimator)

    def add(self, model: MaximumEntropy) -> None:
        """Use this fit as a warm start, if it is the first of its kind, with few and well-determined weights.

        If weights are at the bound or the curvature is small in some direction, other fits may be far away.
        """
        based = model.reference is not None
        if based in self._known or model.theta_.size > FEW or not model.converged_ or model.standing_.box:
            return
        likelihood = Objective.from_trajectories(
            model.mdp_, self._expert, model.entropy, objective=model.likelihood_, checked=True
        )
        bend = likelihood_curvature_at(likelihood, model.theta_) if likelihood.concave else None
        if bend is not None:
            values = np.linalg.eigvalsh(bend / np.outer(likelihood.unit, likelihood.unit))
            if values[0] > BENT * values[-1]:
                self._known[based] = WarmStart(model.theta_.copy(), bend)


def held_out_scores(model: Any, held_out: Trajectories | None) -> tuple[float | None, Floats | None]:
    """Return the score of a fitted model on held-out trajectories and the log-probability of each; None without any.

    Both are −∞ where the model has no finite value.
    """
    if held_out is None:
        return None, None
    try:
        found: tuple[float, Floats] = model._scored(held_out)
    except NoFiniteValue:
        logs = finite_log_likelihood(model.mdp_, model._log_likelihood, held_out)
        return -np.inf, logs
    return found


def explain_missing_scores(mdp: MDP, held_out: Trajectories | None, logs: Floats | None) -> str:
    """Say how many held-out trajectories have no finite value under a model, and where; "" if none."""
    if held_out is None or logs is None or not mdp.must_end or np.isfinite(logs).all():
        return ""
    parts, lost = state_components(mdp)[held_out.first], ~np.isfinite(logs)
    said = f"no finite value for {int(lost.sum())} of {len(held_out)} held-out trajectories"
    every, some = np.unique(parts).size, np.unique(parts[lost]).size
    return said if every == 1 else f"{said}, in {some} of {every} separate parts of the state space"


def explain_below_chance(model: MaximumEntropy, expert: Trajectories) -> str | None:
    """Explain why a fit scores lower on its own experts than the uniform policy; None if it does not."""
    mdp, own, chance = model.mdp_, model.score(expert), uniform_score(model.mdp_, expert)
    if chance - own < SHOWN:
        return None
    counts, reasons = model.likelihood_ == "counts", []
    if not model.converged_:
        reasons.append("the fit did not converge")
    if counts and mdp.discount ** float(np.median(expert.lengths)) < 0.5:
        reasons.append(
            f"the fit matches counts discounted by {mdp.discount:g} per step while the score is not discounted, so "
            "late steps had little weight in the fit"
        )
    if counts and not mdp.deterministic:
        reasons.append("transitions are random, and the counts of few trajectories depend on chance")
    if getattr(model, "unlabelled_weight", 0.0) > 0.0:
        reasons.append("the fit also maximises the likelihood of the unlabelled trajectories")
    if model.reference_ is not None:
        reasons.append("the experts' actions are unlikely under the prior policy")
    if model.quadratic_ is not None:
        reasons.append("the penalty keeps the model from following the experts")
    if model.standing_.box:
        reasons.append("some weights are at the bound theta_max")
    if not reasons and counts:
        reasons.append("a fit that matches counts need not predict steps well")
    why = "; ".join(reasons) or "no better reward of these features was found"
    return (
        f"on the trajectories it was fitted to, the model scores {own:.4f} nats per step, below the {chance:.4f} of "
        f"the uniform policy: {why}"
    )
