"""Ways to choose among fitted candidates, by what the experts alone can tell.

Every way is a function from `Fitted` to the place of a candidate or, of "average", to the weights of all, (C,).

    rule                         what the package does (selection/decision_rule.py)
    shrunken gain                the largest gain over the fixed default, shrunk as far as it is uncertain
    best held out                the best cross-validated score
    one standard error           the least likely of the experts, of those within one standard error of the best
    approximate leave-one-out    the best score of leave-one-out, by one Newton step from the fit to all
    evidence                     Laplace's method; candidates without pooling, and with a penalty, which is the prior
    average                      policies, not candidates: weights ∝ exp(n · held-out score)
    default                      the fixed default, whatever the data
    alone                        the package's rule among the candidates that do not use the unlabelled trajectories
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import t as student

from messirl._types import Floats
from messirl.data.choices import choices_of
from messirl.planning import NoFiniteValue
from messirl.planning.choice_scores import choice_scores
from messirl.selection import Candidate, Validation
from messirl.selection.candidates import CandidateFitter
from messirl.selection.decision_rule import choose_candidate
from messirl.selection.expert_agreement import ExpertAgreement

FLAT = 1e-10  # of the largest eigenvalue: curvature below it is none


@dataclass(frozen=True)
class Fitted:
    """All that a way may look at.

    bench, thetas : the candidates' fits to all experts
    validation : their held-out log-probabilities
    like : how much the unlabelled trajectories look like the expert's
    """

    bench: CandidateFitter
    thetas: list[Floats]
    validation: Validation
    like: ExpertAgreement | None = None

    @property
    def candidates(self) -> list[Candidate]:
        return self.validation.candidates

    @cached_property
    def seen(self) -> Floats:
        """Σ log-probability of the experts under the fits to them, (C,)."""
        pairs = zip(self.candidates, self.thetas, strict=True)
        return np.array([self.bench.score(c, theta, self.bench.expert) for c, theta in pairs])


def best_held_out(fitted: Fitted) -> int:
    return int(np.argmax(fitted.validation.scores))


def shrunken(fitted: Fitted) -> int:
    """The posterior mean of the gain, if gains are normal around zero with a spread of 3 % of the default's score."""
    found, default, n = fitted.validation, choose_candidate(fitted.validation).default, fitted.validation.steps.size
    gains = [found.gain(i, default, one_error(n)) for i in range(len(fitted.candidates))]
    spread = (0.03 * found.scores[default]) ** 2
    doubts = [(gain.high - gain.mean) ** 2 * (n - 1) / (n - 3) for gain in gains]
    counted = [gain.mean * spread / (spread + doubt) for gain, doubt in zip(gains, doubts, strict=True)]
    return int(np.argmax(np.nan_to_num(counted, nan=-np.inf)))


def one_error(n: int) -> float:
    """The confidence of an interval that reaches one standard error to either side, on n units."""
    return 2.0 * float(student.cdf(1.0, n - 1)) - 1.0


def one_standard_error(fitted: Fitted) -> int:
    found, best = fitted.validation, best_held_out(fitted)
    one = one_error(found.steps.size)
    near = [i for i in range(len(fitted.candidates)) if i == best or found.gain(best, i, one).low <= 0.0]
    return min(near, key=lambda i: fitted.seen[i])


def approximate(fitted: Fitted) -> int:
    pairs = zip(fitted.candidates, fitted.thetas, strict=True)
    return int(np.argmax([leave_one_out(fitted.bench, c, theta).sum() for c, theta in pairs]))


def evidence(fitted: Fitted) -> int:
    logs = np.full(len(fitted.candidates), -np.inf)
    for i, (candidate, theta) in enumerate(zip(fitted.candidates, fitted.thetas, strict=True)):
        if candidate.weight == 0.0 and np.isfinite(fitted.seen[i]):
            logs[i] = log_evidence(fitted.bench, candidate, theta, float(fitted.seen[i]))
    return int(np.argmax(logs))


def average(fitted: Fitted) -> Floats:
    found = fitted.validation
    scores = np.where(np.isfinite(fitted.seen), found.scores, -np.inf)
    weights = np.exp(found.steps.size * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


WAYS: dict[str, Callable[[Fitted], int | Floats]] = {
    "rule": lambda fitted: choose_candidate(fitted.validation, fitted.like).index,
    "shrunken gain": shrunken,
    "best held out": best_held_out,
    "one standard error": one_standard_error,
    "approximate leave-one-out": approximate,
    "evidence": evidence,
    "average": average,
    "default": lambda fitted: choose_candidate(fitted.validation).default,
    "alone": lambda fitted: choose_candidate(fitted.validation, unlabelled=False).index,
}


def leave_one_out(bench: CandidateFitter, candidate: Candidate, theta: Floats) -> Floats:
    """The log-probability of every expert trajectory under a fit to the others, (n,), without fitting or solving again.

    With w_i the weight of trajectory i, g_i its gradient and s_i its share of all steps, J₋ᵢ has at θ the gradient
    (Qθ − g_i) w_i / (1 − w_i) and about the curvature H (1 − s_i) / (1 − w_i) + Q, where H is that of all. Q is taken
    to stay as it is. At θ₋ᵢ, one Newton step away, the log-probability of i is taken from its own parabola, which has
    the slope g_i and about the curvature H s_i / w_i. −inf where θ has no finite values.
    """
    mdp, expert = bench.based(candidate), bench.expert
    planner = bench.likelihood(replace(candidate, weight=0.0)).planner
    weights, scale = _shares(bench, candidate)
    choices, q = choices_of(mdp, expert), _penalty(bench, candidate)
    try:
        kinds = choice_scores(mdp, theta, choices, planner.model, planner.start)
        bend = -bench.likelihood(candidate).hessian(theta)
    except NoFiniteValue:
        return np.full(len(expert), -np.inf)
    each = np.zeros((len(expert), theta.size))
    np.add.at(each, choices.trajectory, scale * kinds[choices.kind])
    made = weights * (bench.data.trajectories.lengths[: weights.size] - 1)
    out = bench.log_probabilities(candidate, theta, expert)
    for i, (weight, left_out) in enumerate(zip(weights, made[: len(expert)] / made.sum(), strict=False)):
        slope = (q @ theta - each[i]) * weight / (1.0 - weight)
        curvature = bend * (1.0 - left_out) / (1.0 - weight) + q
        moved = theta + np.linalg.pinv(curvature, rcond=FLAT, hermitian=True) @ slope
        step = np.clip(moved, -bench.theta_max, bench.theta_max) - theta
        out[i] += (each[i] @ step - 0.5 * (step @ bend @ step) * left_out / weight) / scale
    return out


def log_evidence(bench: CandidateFitter, candidate: Candidate, theta: Floats, seen: float) -> float:
    """log ∫ p(experts | θ) p(θ) dθ by Laplace's method, p(θ) ∝ exp(−½ N θᵀQθ); −inf without a penalty.

    N, the size of the objective, brings J to the scale of Σ log π, which is `seen`. Directions that Q leaves free have
    density 1.
    """
    q, n = _penalty(bench, candidate), bench.likelihood(candidate).size
    if not q.any():
        return -np.inf
    prior, bound = _log_volume(n * q)
    posterior, settled = _log_volume(n * (q - bench.likelihood(candidate).hessian(theta)))
    free = 0.5 * (settled - bound) * np.log(2.0 * np.pi)
    return seen - 0.5 * n * float(theta @ q @ theta) + 0.5 * (prior - posterior) + free


def _shares(bench: CandidateFitter, candidate: Candidate) -> tuple[Floats, float]:
    """The weight of every trajectory that is made likely, (m,), and c of the objective of choices."""
    some = bench.data.trajectories if candidate.weight > 0.0 else bench.expert
    weights = np.where(np.arange(len(some)) < len(bench.expert), 1.0, candidate.weight)
    return weights / weights.sum(), float(weights.sum()) / bench.likelihood(candidate).size


def _penalty(bench: CandidateFitter, candidate: Candidate) -> Floats:
    found = bench.penalty(candidate)
    return np.zeros((bench.mdp.n_features,) * 2) if found is None else found


def _log_volume(matrix: Floats) -> tuple[float, int]:
    """The logarithm of the pseudo-determinant, and the rank."""
    values = np.linalg.eigvalsh(matrix)
    some = values[values > FLAT * values.max()]
    return float(np.log(some).sum()), some.size
