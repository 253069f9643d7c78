"""Diagnosis of the effect of the unlabelled trajectories: in total, per trajectory, and per direction of θ.

share      the share of trajectory j in the penalty at θ̂:  Σ_k s_jk (θ̂ᵀΔ_jk)² / Σ_jk s_jk (θ̂ᵀΔ_jk)²
agreement  its log-likelihood ratio of the expert policy to the uniform one, in nats per step (measure_agreement)
influence  the change of θ̂ if j is left out and the model refitted, ‖Δθ‖ in the metric of the likelihood; with
           trajectories in files by one Newton step, with the similarities measured with j
directions generalised eigenvectors of Q against H = −∇²L: the penalty halves the estimate where q = h
degrees of freedom   tr H (H + Q)⁻¹: the effective number of directions that the experts determine
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from sklearn.base import clone

from messirl._checks import check_integer
from messirl._parameters import CV, INFLUENTIAL, SEED, WEAK_PRIOR
from messirl._types import Floats, Ints
from messirl.data.chunked_reduce import pieces
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories, as_streamed
from messirl.data.trajectories import Trajectories, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators._streaming import refuse_streamed
from messirl.estimators._training_data import TrainingData
from messirl.estimators.messi import MESSI
from messirl.inference.standard_errors import check_same
from messirl.objective import Objective
from messirl.parallel import run
from messirl.selection.decision_rule import Choice, UnlabelledGain
from messirl.selection.expert_agreement import ExpertAgreement, measure_agreement
from messirl.selection.messicv import MESSICV
from messirl.similarity import Precomputed
from messirl.similarity.attribution import pair_pulls, pair_sums
from messirl.similarity.penalty_blocks import exceeds_exact_limit

HARDLY = 0.005  # nats per step of mutual agreement below which the experts hardly explain each other
WITHOUT = "the prior policy or the weighted pooling would have to be recomputed without each"
EQUAL, CLOSE = 1e-6, 0.05  # relative differences of sums over the same trajectories; where they are estimated
FLAT = 1e-10  # curvature, relative to the largest, below which a direction is not determined


@dataclass(frozen=True)
class Direction:
    """A direction of θ, and how much the penalty shrinks it.

    Attributes
    ----------
    shrinkage : float
        The share, from 0 to 1, by which the penalty shrinks the estimate along the direction.
    weights : array (d,)
        The direction, of length 1.
    """

    shrinkage: float
    weights: Floats

    def largest(self, names: npt.ArrayLike, n: int = 3) -> list[tuple[str, float]]:
        """Return the features with the largest weights in it, the largest first."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:n]
        return [(str(np.asarray(names)[j]), float(self.weights[j])) for j in order]


@dataclass(frozen=True)
class Diagnosis:
    """Diagnosis of the effect of the unlabelled trajectories on one fitted MESSI.

    Attributes
    ----------
    verdict : {"help", "hurt", "no effect", "unclear"}
        The effect of the unlabelled trajectories.
    evidence : list of str
        The evidence for the verdict, in sentences.
    similarity : array (u,)
        The mean similarity of each unlabelled trajectory to the experts.
    share : array (u,)
        The share of each of them in the penalty.
    agreement_with_experts : ExpertAgreement
        The agreement of each of them with the expert policy.
    influence : array (u,) or None
        The change of θ without each of them; NaN where it was not computed, None if it was not requested.
    directions : list of Direction
        Directions of θ, the most shrunk first.
    degrees_of_freedom : float
        The effective number of directions that the experts determine beside the penalty.
    identified : int
        The number of directions that the experts would determine without the penalty.
    choice : Choice or None
        The recommendation of the selection.
    use : UnlabelledGain or None
        The gain for held-out experts from the unlabelled trajectories, on which the verdict is based.
    """

    verdict: str
    evidence: list[str]
    similarity: Floats
    share: Floats
    agreement_with_experts: ExpertAgreement
    influence: Floats | None
    directions: list[Direction]
    degrees_of_freedom: float
    identified: int
    choice: Choice | None = None
    use: UnlabelledGain | None = None

    def rows(self) -> list[dict[str, float]]:
        """Return one dict per unlabelled trajectory."""
        return [self.row(j) for j in range(self.similarity.size)]

    def row(self, j: int) -> dict[str, float]:
        """Return the measures of one of them; `agreement` is shrunk by length and has its interval."""
        nan, found = float("nan"), self.agreement_with_experts.agreement
        return {
            "similarity": float(self.similarity[j]),
            "share": float(self.share[j]),
            "likeness": float(self.agreement_with_experts.unlabelled[j]),
            "influence": nan if self.influence is None else float(self.influence[j]),
            "steps": nan if self.agreement_with_experts.steps is None else int(self.agreement_with_experts.steps[j]),
            "agreement": float(found.values[j]),
            "agreement_low": float(found.low[j]),
            "agreement_high": float(found.high[j]),
        }


@merge_truncation_warnings()
def diagnose(
    model: MESSI,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Any,
    *,
    influential: int = INFLUENTIAL,
    cv: int = CV,
    groups: npt.ArrayLike | None = None,
    random_state: Any = SEED,
    progress: Any = None,
    executor: Any = None,
) -> Diagnosis:
    """Diagnose a fitted model with the trajectories it was fitted to.

    The verdict is that of `MESSICV` with the model's similarity (the default one if that is a given matrix), as in
    `messirl select`: the gain for held-out experts from using them. Likeness and influence explain it.

    unlabelled : Trajectories, or Parquet files of them, as for `MESSI`; shares of very many are then estimated, and
        influence is found by one Newton step without each
    influential : number of trajectories, those with the largest shares, for which the model is refitted without them
    progress : called with (done, total) after each of these refits
    executor : runs the splits and refits (see execution.run); None: this process
    """
    if not isinstance(model, MESSI):
        raise TypeError(f"model must be a fitted MESSI, not {type(model).__name__}: for a MESSICV use best_estimator_")
    model._fitted()
    check_integer("influential", influential, least=0)
    expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(as_streamed(unlabelled), "unlabelled")
    _check_fitted(model, mdp, expert)
    if not model.measure.of_counts:
        refuse_streamed(unlabelled, f"the similarity {model.similarity!r:.80}", "looks at whole trajectories")
    data = TrainingData(expert, unlabelled)
    data.check_unlabelled(mdp, start=False, counted=True)
    counts = data.counts(mdp)
    block = model.measure.on(data.trajectories, counts)
    sums = pair_sums(block, values_of(counts, model.theta_))
    _check_penalty(model, float(sums.sum()), len(counts))
    chosen = MESSICV(
        None if model.measure.fixed else [model.measure],
        cv=cv,
        theta_max=model._bound,
        theta_prior=WEAK_PRIOR if model.theta_prior is None else model.theta_prior,
        entropy=model.entropy,
        objective=model.likelihood_,
        reference=model.reference,
        reference_strength=model.reference_strength,
        random_state=random_state,
    )
    with ignore_convergence_warnings():
        chosen.fit(mdp, expert, unlabelled, groups, executor=executor)
    alike = chosen.agreement_
    if alike is None:  # the model is not causal, or nothing can be held out
        asked: dict[str, Any] = {"cv": cv, "random_state": random_state, "theta_max": model._bound}
        alike = measure_agreement(mdp, expert, unlabelled, groups=groups, **asked)
    l = len(expert)
    share = _shares(sums)[l:]
    directions, freedom, identified = penalty_directions(model, expert)
    influence, evidence = None, gather_evidence(chosen, alike)
    if influential > 0:
        which = np.argsort(-share, kind="stable")[:influential]
        influence = np.full(len(unlabelled), np.nan)
        if not isinstance(unlabelled, StreamedTrajectories):
            found = leave_one_out(model, mdp, expert, unlabelled, which, progress=progress, executor=executor)
            influence[which] = found
        elif model.unlabelled_weight > 0.0 or isinstance(model.reference, str):
            evidence.append(f"no influence is computed for trajectories in files, since {WITHOUT}")
        else:
            influence[which] = leave_one_out_newton(model, expert, block, counts, l + which)
    return Diagnosis(
        chosen.verdict_ or "unclear",
        evidence,
        mean_similarity(block, l, len(counts)),
        share,
        alike,
        influence,
        directions,
        freedom,
        identified,
        chosen.choice_,
        chosen.use_,
    )


def _check_fitted(model: MESSI, mdp: MDP, expert: Trajectories) -> None:
    """Refuse another MDP, or other experts, than the model was fitted to."""
    check_trajectories(mdp, expert, "expert")
    own, remedy = model.mdp_, "give the MDP that the model was fitted to"
    for name in ("discount", "horizon", "n_states", "n_actions", "n_features"):
        given, fitted = getattr(mdp, name), getattr(own, name)
        if given != fitted:
            raise ValueError(f"mdp has {name}={given}, but the model was fitted with {name}={fitted}: {remedy}")
    for name, table, known in (
        ("transitions", mdp.transitions, own.transitions),
        ("features", mdp.feature_rows, own.feature_rows),
    ):
        if table.shape != known.shape or abs(table - known).max() > EQUAL * abs(known).max():
            raise ValueError(f"mdp has other {name} than the model was fitted with: {remedy}")
    if model.unlabelled_weight == 0.0 and model.solver == "lbfgs":  # else its θ is no optimum of the experts' objective
        objective = model._objective(own, expert, None, model.quadratic_, None, len(expert))
        check_same(model, objective)


def _check_penalty(model: MESSI, total: float, n: int) -> None:
    """Refuse other unlabelled trajectories than the model was fitted to: n θᵀMθ is the sum of the squares of all."""
    if model.penalty_matrix_ is None:
        return
    theta, size = model.theta_, np.abs(model.penalty_matrix_).max()
    own = n * float(theta @ model.penalty_matrix_ @ theta)
    near = CLOSE if exceeds_exact_limit(n) else EQUAL
    if abs(total - own) > near * max(total, own) + EQUAL**2 * n * size * float(theta @ theta):
        raise ValueError(
            "these are not the unlabelled trajectories the model was fitted to: give the same ones, in the same order"
        )


def gather_evidence(chosen: MESSICV, alike: ExpertAgreement) -> list[str]:
    """Return the evidence for the verdict of a selection, and the agreement with the experts, in sentences."""
    assert chosen.use_ is not None
    said = [
        chosen.use_.sentence,
        f"recommended: {chosen.candidate_}: {chosen.reason_}",
        "agreement with the expert policy does not decide this: for held-out expert trajectories it is "
        f"{alike.expert:+.3f} nats per step, compared with the uniform policy",
        f"for the unlabelled trajectories it is {alike.mean:+.3f} on average; {int(alike.alike.sum()):,} of "
        f"{alike.unlabelled.size:,} are above zero; their steps are {alike.relative_likelihood} (the mean of "
        "the ratios, "
        "not of their logarithms)",
    ]
    if alike.expert <= HARDLY:
        said.append("the experts hardly agree with each other: they may be too few, or too different, to measure this")
    return said


def penalty_shares(weights: Any, counts: Floats, theta: Floats) -> Floats:
    """Return each trajectory's share of R(θ), (n,); the contribution of a pair is divided between the two.

    weights : (n, n) similarities, dense or sparse, or a function that returns blocks of them, `Similarity.on`
    """
    block = weights if callable(weights) else Precomputed(weights).on(None, counts)
    return _shares(pair_sums(block, values_of(counts, theta)))


def _shares(sums: Floats) -> Floats:
    total = float(sums.sum())
    return sums / total if total > 0 else sums


def values_of(counts: Any, theta: Floats) -> Floats:
    """Return F θ (n,), computed piece by piece."""
    return np.concatenate([counts[part] @ theta for part in pieces(*counts.shape)])


def mean_similarity(block: Any, l: int, n: int) -> Floats:
    """Return the mean similarity of the trajectories l, l + 1, … to the first l of them, (n − l,)."""
    parts = (slice(l + part.start, l + part.stop) for part in pieces(n - l, l))
    return np.concatenate([np.asarray(block(slice(l), part).mean(axis=0)).ravel() for part in parts])


def penalty_directions(model: MESSI, expert: Trajectories) -> tuple[list[Direction], float, int]:
    """Return directions by falling shrinkage q / (h + q), effective degrees of freedom, and the number identified."""
    hessian = _curvature(model, expert)
    pull = np.zeros_like(hessian) if model.quadratic_ is None else model.quadratic_
    size = np.sqrt(np.maximum(np.diag(hessian + pull), 0.0))
    unit = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh((hessian + pull) * np.outer(unit, unit))
    kept = vectors[:, values > FLAT * max(float(values[-1]), 1e-300)]
    basis = unit[:, None] * kept  # the directions that data and penalty together determine
    shrinkage, inside = eigh(basis.T @ pull @ basis, basis.T @ (hessian + pull) @ basis)
    order = np.argsort(-shrinkage, kind="stable")
    found = [Direction(float(np.clip(shrinkage[i], 0.0, 1.0)), _unit(basis @ inside[:, i])) for i in order]
    freedom = float(np.sum(1.0 - np.clip(shrinkage, 0.0, 1.0)))
    alone = np.linalg.eigvalsh(hessian * np.outer(unit, unit))
    return found, freedom, int(np.sum(alone > FLAT * max(float(alone[-1]), 1e-300)))


def leave_one_out(
    model: MESSI,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories,
    which: Ints,
    *,
    progress: Any = None,
    executor: Any = None,
) -> Floats:
    """Return √(Δθᵀ H Δθ) of a refit without each of the unlabelled trajectories `which`, H the Hessian of −L at θ̂."""
    hessian = _curvature(model, expert)
    again = clone(model).set_params(theta_init=model.theta_, warm_start=False, callback=None)
    work = functools.partial(_without, again, mdp, expert, unlabelled)
    moves = (theta - model.theta_ for theta in run(work, np.asarray(which).tolist(), executor, progress))
    return np.array([np.sqrt(max(float(moved @ hessian @ moved), 0.0)) for moved in moves])


def leave_one_out_newton(model: MESSI, expert: Trajectories, block: Any, counts: Any, which: Ints) -> Floats:
    """Return `leave_one_out` for the rows `which` of Σ by one Newton step, with the similarities of the full Σ.

        Δθ = −(H + Q)⁻¹ (Q_j − Q) θ̂,   Q_j − Q = λ (M − 2 G_j) / (n − 1)

    M = (1/n) Σ_j G_j is the penalty's matrix, G_j the contribution of the pairs of j. A refit differs from this in the
    order of 1/n², and its search would stop before such small changes. Weights at their bound stay there.
    """
    theta, hessian = model.theta_, _curvature(model, expert)
    if model.quadratic_ is None or model.penalty_matrix_ is None:
        return np.zeros(len(which))
    strength, free = float(model.lambda0) / model._bound, np.abs(theta) < (1.0 - FLAT) * model._bound
    pulls = pair_pulls(block, which, counts, values_of(counts, theta))
    push = strength / (len(counts) - 1) * (2.0 * pulls - model.penalty_matrix_ @ theta)
    moves = np.zeros_like(push)
    stiff = (hessian + model.quadratic_)[np.ix_(free, free)]
    moves[:, free] = np.linalg.lstsq(stiff, push[:, free].T, rcond=FLAT)[0].T
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", moves, hessian, moves), 0.0)))


def _curvature(model: MESSI, expert: Trajectories) -> Floats:
    """Return −∇²L at θ̂, (d, d), with L the experts' part of the objective."""
    objective = Objective.from_trajectories(model.mdp_, expert, model.entropy, objective=model.likelihood_)
    return -objective.hessian(model.theta_)


def _without(model: MESSI, mdp: MDP, expert: Trajectories, unlabelled: Trajectories, j: int) -> Floats:
    """Return θ of a fit without the unlabelled trajectory j."""
    rest = unlabelled[np.delete(np.arange(len(unlabelled)), j)] if len(unlabelled) > 1 else None
    everyone = np.arange(len(expert) + len(unlabelled))
    again = clone(model).set_params(similarity=model.measure.part(np.delete(everyone, len(expert) + j)))
    if rest is None and isinstance(model.reference, str):  # no trajectory is left to estimate the prior policy
        again.set_params(reference=None)
    with ignore_convergence_warnings():
        theta: Floats = again.fit(mdp, expert, rest).theta_
    return theta


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    turned = vector if length == 0 else vector / length
    return np.asarray(turned if turned[np.argmax(np.abs(turned))] >= 0 else -turned)
