"""Agreement of unlabelled trajectories with the expert policy, as learnt by a fit to the experts only.

A reward is learnt from the experts only, with a normal prior chosen by cross-validation over their trajectories. The
agreement of a trajectory is its log-likelihood ratio per step of the resulting policy π to the uniform policy u. Above
zero the expert policy explains it better; below zero a random walk does.

The mean of two steps is mostly noise, so trajectories are ranked by estimates that are shrunk by length
(`shrink_means`).

A set of trajectories may lean towards the experts although its agreement is low, such as one that follows them half of
the time and wanders otherwise. Its *lean* is the mean of π/u − 1 over its steps: how much likelier they are under π
than under u. It is zero for a random walk, however sharp π is.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from messirl._parameters import CV, SEED, default
from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators._initialization import WarmStart
from messirl.estimators._training_data import TrainingData
from messirl.estimators.uniform import uniform_policy, uniform_score
from messirl.inference.paired_gain import CONFIDENCE, Gain, paired_gain
from messirl.planning import NoFiniteValue
from messirl.planning.likelihood import log_policies, step_logs
from messirl.selection.candidates import Candidate, CandidateFitter
from messirl.selection.cross_validation import Split, make_splits
from messirl.similarity import CompleteGraph

LEANING = 0.9  # confidence of the interval of the lean, which must lie above zero
PRIORS = (0.1, 0.3, 1.0, 3.0, 10.0)  # standard deviations of the weights, in units of their features
EXPERT_ONLY_CANDIDATE = Candidate("MaxEnt")
LESSONS = 64  # sets of experts whose fits are cached on an MDP


@dataclass(frozen=True)
class RelativeLikelihood(Gain):
    """The mean of π/u − 1, how much likelier steps are under the expert policy than by chance, with its interval.

    Attributes
    ----------
    mean : float
        Zero for a random walk.
    low, high : float
        The ends of its 90 % interval; NaN where a single trajectory allows none.
    """

    def __str__(self) -> str:
        return f"{1.0 + self.mean:.2f} times as likely for an expert as by chance"


@dataclass(frozen=True)
class ShrunkenMeans:
    """Means per step of trajectories, shrunk towards their common mean; see `shrink_means`.

    Attributes
    ----------
    values, low, high : array (u,)
        The estimates, and the ends of their 95 % intervals; NaN where the noise of a step is not known.
    mean : float
        The common mean μ.
    between, within : float
        The standard deviations τ between trajectories and s of the steps within one; NaN where they are not known.
    """

    values: Floats
    low: Floats
    high: Floats
    mean: float
    between: float
    within: float


@dataclass(frozen=True)
class ExpertAgreement:
    """Agreement of trajectories with the expert policy: log-likelihood ratios to uniform, in nats per step.

    Attributes
    ----------
    unlabelled : array (u,)
        The mean over the steps of each unlabelled trajectory.
    expert : float
        The mean over held-out expert trajectories.
    prior : float
        `theta_prior` of the fit to the experts only.
    relative_likelihood : RelativeLikelihood
        The lean of the unlabelled trajectories towards the experts, with its 90 % interval.
    steps : array (u,) or None
        The number of steps of each.
    variance : float
        The variance s² of the steps within a trajectory, pooled over all; NaN where it is not known.
    """

    unlabelled: Floats
    expert: float
    prior: float
    relative_likelihood: RelativeLikelihood
    steps: Ints | None = None
    variance: float = np.nan

    @cached_property
    def agreement(self) -> ShrunkenMeans:
        """The agreement of each trajectory, shrunk by its length, with its 95 % interval."""
        steps = np.ones(self.unlabelled.size) if self.steps is None else self.steps
        return shrink_means(self.unlabelled, steps, self.variance)

    def extremes(self, most: int) -> tuple[Ints, Ints]:
        """Return the trajectories of highest and of lowest agreement, at most so many, and none in both if u > 1.

        The shrunken values divide the trajectories into halves. The upper half is ordered by the lower end of the
        interval and the lower half by the upper end, so that no trajectory comes first because it is uncertain.
        """
        found, half = self.agreement, max(self.unlabelled.size // 2, 1)
        with np.errstate(invalid="ignore"):
            pull = (1 if self.steps is None else self.steps) * (self.unlabelled - found.mean)
        order = np.lexsort((-pull, -found.values))  # where τ = 0 all values are μ, and the pull is their limit
        low, high = (np.where(np.isnan(ends), found.values, ends) for ends in (found.low, found.high))
        upper, lower = order[:half], order[::-1][:half]
        upper, lower = upper[np.argsort(-low[upper], kind="stable")], lower[np.argsort(high[lower], kind="stable")]
        return upper[:most], lower[:most]

    @property
    def mean(self) -> float:
        """The mean over the unlabelled trajectories."""
        return float(self.unlabelled.mean())

    @property
    def alike(self) -> Flags:
        """Mask of the unlabelled trajectories that the expert policy explains better than chance."""
        return np.asarray(self.unlabelled > 0.0)

    @property
    def is_significant(self) -> bool | None:
        """True if the lean is significant; None if the expert policy is no better than chance on held-out experts."""
        return (
            None
            if self.expert <= 0.0
            else bool(self.relative_likelihood.significant and self.relative_likelihood.mean > 0.0)
        )


def measure_agreement(
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | StreamedTrajectories,
    *,
    cv: int = CV,
    groups: npt.ArrayLike | None = None,
    random_state: Any = SEED,
    theta_max: float = default("theta_max"),
    max_iter: int = default("max_iter"),
    tol: float = 1e-3,
) -> ExpertAgreement:
    """Return the agreement of each unlabelled trajectory with the policy of a fit to the experts only.

    It is the log-probability per step under the learnt policy minus that under the uniform one. The model is the causal
    one. If an endless problem has one expert trajectory, its later part is held out.
    """
    data = TrainingData(expert, unlabelled)
    data.check_unlabelled(mdp, start=False)
    start = data.first(mdp)
    pairs = make_splits(mdp, expert, cv, groups, random_state)
    options: dict[str, Any] = {"theta_max": theta_max, "max_iter": max_iter, "tol": tol}
    options |= {"yardstick": CompleteGraph()}
    lessons: dict[str, _Lesson] = mdp.memo("what experts alone teach", dict)
    base = None if mdp.reference is None else hashlib.sha256(mdp.reference.tobytes()).hexdigest()
    key = f"{_key(pairs)} {theta_max} {max_iter} {tol} {base}"
    if key not in lessons:
        if len(lessons) >= LESSONS:
            lessons.pop(next(iter(lessons)))  # the oldest
        lessons[key] = _learn(mdp, expert, pairs, options)
    lesson = lessons[key]
    reward, parts = mdp.reward(lesson.theta), list[tuple[Floats, Floats, Floats, Ints]]()
    for some in data.chunks(mdp):
        parts.append((*_explained(mdp, reward, some, start), some.lengths - 1))
    ratio, times, squares, steps = (np.concatenate(column) for column in zip(*parts, strict=True))
    lean = paired_gain(times, steps.astype(np.float64), steps, LEANING)
    known = np.isfinite(ratio) & (steps > 0)
    freedom = int((steps[known] - 1).sum())
    variance = float(squares[known].sum()) / freedom if freedom > 0 else np.nan
    values = ratio / np.maximum(steps, 1)
    return ExpertAgreement(
        values, lesson.gain, lesson.prior, RelativeLikelihood(lean.mean, lean.low, lean.high), steps, variance
    )


def shrink_means(values: Floats, steps: npt.ArrayLike, variance: float) -> ShrunkenMeans:
    """Shrink means per step towards their common mean, the more the shorter the trajectory (empirical Bayes).

        x_j | a_j ~ N(a_j, s²/T_j),     a_j ~ N(μ, τ²)

        τ² = max(0, [Σ T_j (x_j − x̄)² − (k − 1) s²] / [N − Σ T_j²/N]),     x̄ = Σ T_j x_j / N,     N = Σ T_j
        μ  = Σ w_j x_j / Σ w_j,     w_j = 1 / (τ² + s²/T_j)
        â_j = μ + B_j (x_j − μ),     B_j = τ² w_j
        Var â_j = B_j s²/T_j + (1 − B_j)² / Σ w_j

    The errors use for τ² at least its standard error at τ = 0, s² √(2(k − 1)) / [N − Σ T_j²/N]. Otherwise all intervals
    would equal that of μ if τ² is estimated as zero.

    values : (u,) x_j, the mean of the steps of trajectory j; −∞ stays, and does not affect the others
    steps : (u,) T_j; a trajectory without a step is estimated by μ
    variance : s² of the steps within a trajectory; NaN: not known, and nothing is shrunk

    References: DerSimonian and Laird, Controlled Clinical Trials 7 (1986), for τ²; Morris, Journal of the American
    Statistical Association 78 (1983).
    """
    made = np.asarray(steps, dtype=np.float64)
    known = np.isfinite(values) & (made > 0)
    x, t, k = values[known], made[known], int(known.sum())
    if not variance > 0.0 or not k:
        half = 0.0 if variance == 0.0 else np.nan
        return ShrunkenMeans(
            values, values - half, values + half, float(x.mean()) if k else np.nan, np.nan, variance**0.5
        )
    total = float(t.sum())
    spread = float(t @ (x - t @ x / total) ** 2) - (k - 1) * variance
    left = total - float(t @ t) / total
    tau2 = max(spread, 0.0) / left if k > 1 else 0.0
    weight = made / (tau2 * made + variance)
    mean = float(weight[known] @ x / weight[known].sum())
    kept = tau2 * weight
    with np.errstate(invalid="ignore"):
        found = np.where(np.isfinite(values), mean + kept * (values - mean), values)
    wide = max(tau2, float(np.sqrt(2 * (k - 1))) * variance / left) if k > 1 else 0.0
    weight = made / (wide * made + variance)
    pulled = 1.0 - wide * weight
    error = np.sqrt(pulled * (wide + pulled / weight[known].sum()))
    half = float(ndtri(0.5 + CONFIDENCE / 2)) * error
    return ShrunkenMeans(found, found - half, found + half, mean, tau2**0.5, variance**0.5)


@dataclass(frozen=True)
class _Lesson:
    """The fit to the experts only, which does not depend on the unlabelled trajectories."""

    theta: Floats
    gain: float
    prior: float


def _learn(mdp: MDP, expert: Trajectories, pairs: Sequence[Split], options: dict[str, Any]) -> _Lesson:
    """Return the fit with the prior that predicts held-out experts best."""
    bench, fits = CandidateFitter(mdp, expert, None, **options), list[WarmStart]()
    for prior in PRIORS:  # from narrow to wide, each warm-started at the last one
        bench.theta_prior = prior
        theta = bench.fit(EXPERT_ONLY_CANDIDATE, fits[-1] if fits else None)
        fits.append(WarmStart(theta, bench.hessian(EXPERT_ONLY_CANDIDATE, theta)))
    scores = np.zeros(len(PRIORS))
    for train, test in pairs:
        steps = max(int((test.lengths - 1).sum()), 1) * len(pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a warning that the parts of a divided trajectory are short
            part = CandidateFitter(mdp, train, None, **options)
        for i, fit in enumerate(fits):
            part.theta_prior = PRIORS[i]
            scores[i] += part.score(EXPERT_ONLY_CANDIDATE, part.fit(EXPERT_ONLY_CANDIDATE, fit), test) / steps
    best = int(np.argmax(scores))
    chance = np.mean([uniform_score(mdp, test) for _, test in pairs])
    return _Lesson(fits[best].theta, float(scores[best] - chance), PRIORS[best])


def _explained(mdp: MDP, reward: Floats, some: Trajectories, start: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Σ g, Σ exp g and Σ (g − ḡ)² over the steps of every trajectory, (n,) each, with g = log π/u of a step.

    They are −inf, 0 and 0 if the experts' reward has no finite value.
    """
    logs, times, squares = np.full(len(some), -np.inf), np.zeros(len(some)), np.zeros(len(some))
    with np.errstate(divide="ignore"):
        chance = np.log(uniform_policy(mdp, None))
    try:
        for which, log_policy in log_policies(mdp, reward, some, start):
            part = some[which]
            trip = np.repeat(np.arange(len(part)), part.lengths - 1)
            gap = step_logs(mdp, log_policy, part) - step_logs(mdp, chance, part)
            logs[which] = total = np.bincount(trip, gap, len(part))
            times[which] = np.bincount(trip, np.exp(gap), len(part))
            with np.errstate(invalid="ignore"):  # −inf less −inf
                rest = gap - (total / np.maximum(part.lengths - 1, 1))[trip]
            squares[which] = np.bincount(trip, rest**2, len(part))
    except NoFiniteValue:
        alike = np.stack([some.first, some.first if some.goals is None else some.goals], axis=1)
        kinds, kind = np.unique(alike, axis=0, return_inverse=True)
        for k in range(len(kinds)) if len(kinds) > 1 else ():
            which = np.flatnonzero(kind.ravel() == k)
            here = np.bincount(some.first[which], minlength=mdp.n_states).astype(np.float64)
            logs[which], times[which], squares[which] = _explained(mdp, reward, some[which], here)
    return logs, times, squares


def _key(pairs: Sequence[Split]) -> str:
    """Return a short text that identifies the trajectories of all splits."""
    content = hashlib.sha256()
    for one in (part for pair in pairs for part in pair):
        for array in (one.states, one.offsets, one.actions, one.goals):
            content.update(b"none" if array is None else array.tobytes())
    return content.hexdigest()
