"""The candidates of a selection, and fits of all of them to one set of experts.

Every use of the unlabelled trajectories is a path of candidates, next to fits to the experts only:

    MaxEnt            the experts only, no penalty
    RidgeStd          the experts only, standardised L2                       λ0
    MESSI, Complete   a penalty across all trajectories                       λ0
    ReferenceStd      a prior policy from the unlabelled, standardised L2     λ0, and the strength of its prior
    LightPoolingStd   weighted pooling of unlabelled ones, standardised L2    the weight of each, from 0 to 1

Penalties have the trace of MESSI's at the same λ0. Computations are shared: for one set of experts, objectives with the
same prior policy and weight differ only in the penalty. Each fit is warm-started, with θ and the Hessian, at the
previous one on its path, and the first of a path at another method's. Fits to all experts but a few are warm-started at
the fits to all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from messirl._checks import check_numeric_array
from messirl._parameters import default
from messirl._types import Flags, Floats
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators._central_path import find_maximum
from messirl.estimators._initialization import WarmStart, initial_theta, likelihood_curvature_at, penalised_curvature
from messirl.estimators._prior_policy import fit_population_policy
from messirl.estimators._training_data import TrainingData, training_objective
from messirl.estimators.registry import DEFAULT_POOLING_RIDGE, METHODS, baseline, equal_trace
from messirl.objective import Objective, resolve_objective
from messirl.optim.lockstep import run_search
from messirl.planning import NoFiniteValue, log_likelihood, soft_policy
from messirl.planning.likelihood import reward_log_likelihood
from messirl.similarity.base import as_similarity

LAMBDAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
STRENGTHS = (2.0, 50.0)  # prior strengths of a prior policy, besides the default
WEIGHTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of an unlabelled trajectory; 0 would be the experts only
DEFAULT_LAMBDA = 0.3  # λ0 of the candidates with other prior strengths


@dataclass(frozen=True)
class Candidate:
    """One method with its hyperparameters, as a selection compares it.

    Parameters
    ----------
    method : str
        Its name in `estimators/registry.py`.
    lambda0 : float
        λ0, the strength of the penalty; "MaxEnt" has none.
    similarity : similarity, optional
        The similarity of "MESSI"; other methods have none.
    strength : float, optional
        Prior strength of a prior policy from the unlabelled trajectories. None: no prior policy.
    weight : float
        The weight of an unlabelled trajectory in the objective, where an expert's has weight 1.

    Examples
    --------
    >>> from messirl.selection import Candidate
    >>> from messirl.similarity import RBF
    >>> print(Candidate("MESSI", 0.1, RBF(5.0)))
    MESSI λ0=0.1 RBF(sigma=5.0, standardise=False)
    >>> print(Candidate("LightPoolingStd", 0.01, weight=0.03))
    light pooling with L2 λ0=0.01 weight=0.03
    """

    method: str
    lambda0: float = 0.0
    similarity: Any = None
    strength: float | None = None
    weight: float = 0.0

    def __str__(self) -> str:
        method = METHODS[self.method]
        words = [method.label] + ([f"λ0={self.lambda0:g}"] if method.penalised else [])
        words += [] if self.strength is None else [f"strength={self.strength:g}"]
        words += [f"weight={self.weight:g}"] if self.weight else []
        return " ".join(words + ([] if self.similarity is None else [str(self.similarity)]))

    @property
    def unlabelled(self) -> bool:
        """True if the method learns from unlabelled trajectories."""
        return METHODS[self.method].unlabelled

    def estimator(self, model: Any, mdp: MDP, expert: Trajectories, unlabelled: Any) -> tuple[Any, Any]:
        """Return the unfitted estimator, other settings from a MESSI `model`, and the data to fit it to."""
        made, data = baseline(self.method, model, mdp, expert, unlabelled)
        knobs = {"reference_strength": self.strength, "unlabelled_weight": self.weight}
        own = made.get_params(deep=False)
        return made.set_params(**{name: value for name, value in knobs.items() if value and name in own}), data


def make_candidates(
    similarities: Sequence[Any], lambdas: Sequence[float], *, unlabelled: bool = True, based: bool = True
) -> list[Candidate]:
    """Return all candidates: the experts only first; λ0 from strong to weak.

    unlabelled : whether there are unlabelled trajectories
    based : whether a prior policy from them may be a candidate: not if one is given, or the model supports none
    """
    given = check_numeric_array("lambdas", list(lambdas) if isinstance(lambdas, Iterable) else lambdas)
    if given.ndim != 1:
        raise ValueError(f"lambdas={lambdas!r}: give a sequence of numbers")
    wrong = [x for x in given if not 0.0 <= x < np.inf]
    if wrong:
        raise ValueError(f"lambdas holds {wrong[0]}: give finite numbers >= 0")
    path = sorted({float(x) for x in given if x > 0}, reverse=True)
    out = [Candidate("MaxEnt")]
    out += [Candidate("RidgeStd", x) for x in sorted({*path, DEFAULT_POOLING_RIDGE}, reverse=True)]
    if not unlabelled:
        return out
    out += [Candidate("MESSI", x, similarity) for similarity in similarities for x in path]
    out += [Candidate("Complete", x) for x in path]
    if based:
        out += [Candidate("ReferenceStd", x, strength=default("reference_strength")) for x in path]
        out += [Candidate("ReferenceStd", DEFAULT_LAMBDA, strength=alpha) for alpha in STRENGTHS]
    return out + [Candidate("LightPoolingStd", DEFAULT_POOLING_RIDGE, weight=w) for w in WEIGHTS]


@dataclass(frozen=True)
class CandidateFit:
    """A candidate fitted to some experts.

    Attributes
    ----------
    candidate : Candidate
        The method and its hyperparameters.
    warm_start : WarmStart
        Its weights and, where known, the Hessian there, as a start of similar fits.
    """

    candidate: Candidate
    warm_start: WarmStart

    @property
    def theta(self) -> Floats:
        """Its weights, (d,)."""
        return self.warm_start.theta


@dataclass(eq=False)
class CandidateFitter:
    """A fitter of candidates to one set of experts, which computes everything independent of λ0 once.

    Parameters
    ----------
    mdp : MDP
        The problem.
    expert : Trajectories
        The expert's trajectories.
    unlabelled : Trajectories, StreamedTrajectories or None
        The trajectories of unknown quality.
    yardstick : similarity
        Penalties of other methods are scaled to the trace of the penalty with this similarity.
    theta_max, entropy, objective, max_iter, tol, theta_prior : float, str, str, int, float, float
        As for `MESSI`.
    pooled : array of bool (u,), optional
        Mask of the unlabelled trajectories that enter the pooled objective; penalties use all of them. None: all.

    Examples
    --------
    Six places in a row; the experts prefer the right end.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> from messirl.selection.candidates import CandidateFitter, Candidate
    >>> from messirl.similarity import CompleteGraph
    >>> bench = CandidateFitter(mdp, expert, None, yardstick=CompleteGraph())
    >>> bench.fit(Candidate("MaxEnt")).round(2)
    array([2.19])
    """

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories | StreamedTrajectories | None
    _: KW_ONLY
    yardstick: Any
    theta_max: float = default("theta_max")
    entropy: str = default("entropy")
    objective: str | None = default("objective")
    max_iter: int = default("max_iter")
    tol: float = default("tol")
    theta_prior: float | None = default("theta_prior")
    pooled: Flags | None = None

    def __post_init__(self) -> None:
        self.data = TrainingData(self.expert, self.unlabelled)
        self.data.check_against(self.mdp)
        self.counts: Any = self.data.counts(self.mdp)
        self._penalties: dict[Any, Floats] = {}
        self._based: dict[float | None, MDP] = {None: self.mdp}
        self._likelihoods: dict[tuple[float | None, float], Objective] = {}

    def path(
        self, every: Sequence[Candidate], known: Sequence[CandidateFit | None] | None = None
    ) -> Iterator[CandidateFit]:
        """Yield the fit of each candidate.

        It is warm-started at the nearest fit so far or, if fits to nearly the same experts are `known`, at those.
        """
        made: list[CandidateFit] = []
        for i, candidate in enumerate(every):
            if known is not None:
                near = known[i]
                yield self.fitted(candidate, None if near is None else near.warm_start)
                continue
            found = self.fitted(candidate, self._near(candidate, made)).warm_start
            made.append(CandidateFit(candidate, replace(found, hessian=self.hessian(candidate, found.theta))))
            yield made[-1]

    def _near(self, candidate: Candidate, made: Sequence[CandidateFit]) -> WarmStart | None:
        """Return the warm start of a candidate: of fits with its prior policy, the last on its path or the nearest λ0.

        None if there is none, or if values are not finite there (pooled trajectories may have other goals). Fits
        without a penalty are never used, since their weights may be at the bound, far from all others.
        """
        some = [fit for fit in made if fit.candidate.strength == candidate.strength and fit.candidate.lambda0 > 0.0]
        own = [fit for fit in some if fit.candidate.method == candidate.method]
        if own and own[-1].candidate.similarity == candidate.similarity:
            near = own[-1]
        elif some:
            near = min(some, key=lambda fit: abs(fit.candidate.lambda0 - candidate.lambda0))
        else:
            return None
        if near.candidate.weight == candidate.weight or np.isfinite(self.likelihood(candidate)(near.theta).value):
            return near.warm_start
        return None

    def fit(self, candidate: Candidate, warm_start: WarmStart | None = None) -> Floats:
        """Return θ at the optimum of a candidate."""
        return self.fitted(candidate, warm_start).theta

    def fitted(self, candidate: Candidate, warm_start: WarmStart | None = None) -> CandidateFit:
        """Return the fit of a candidate, from a warm start or from a θ where values are finite."""
        likelihood, quadratic = self.likelihood(candidate), self.penalty(candidate)
        if warm_start is None:
            begin = initial_theta(self.based(candidate), likelihood, self.theta_max)
            warm_start = WarmStart(begin, self.hessian(candidate, begin))
        objective = likelihood.penalised(quadratic)
        options: dict[str, Any] = {"bound": self.theta_max, "max_iter": self.max_iter, "tol": self.tol}

        def bend(theta: Floats) -> Floats | None:
            return penalised_curvature(self.hessian(candidate, theta), quadratic)

        found = run_search(
            find_maximum(objective, warm_start, hessian_function=bend, confirm_by_newton=False, **options)
        )
        return CandidateFit(candidate, WarmStart(found.theta, path_point=found.path_point))

    def hessian(self, candidate: Candidate, theta: Floats) -> Floats | None:
        """Return the Hessian −∇²L (d, d) of a candidate at θ; None if it is expensive."""
        return likelihood_curvature_at(self.likelihood(candidate), theta)

    def based(self, candidate: Candidate) -> MDP:
        """Return the problem with the prior policy of a candidate."""
        alpha = candidate.strength
        if alpha not in self._based:
            assert alpha is not None
            assert self.unlabelled is not None
            self._based[alpha] = self.mdp.with_prior_policy(fit_population_policy(self.mdp, self.unlabelled, alpha))
        return self._based[alpha]

    def likelihood(self, candidate: Candidate) -> Objective:
        """Return the objective of a candidate without its penalty."""
        key = (candidate.strength, candidate.weight)
        if key not in self._likelihoods:
            data, counts = self.data, self.counts
            if self.pooled is not None and isinstance(self.unlabelled, Trajectories):
                data = TrainingData(self.expert, self.unlabelled[self.pooled])
                counts = counts[np.concatenate([np.full(len(self.expert), True), self.pooled])]
            self._likelihoods[key] = training_objective(
                self.based(candidate),
                data,
                resolve_objective(self.objective, self.entropy),
                entropy=self.entropy,
                light=candidate.weight,
                counts=counts,
            )
        return self._likelihoods[key]

    def penalty(self, candidate: Candidate) -> Floats | None:
        """Return the matrix Q of a candidate's penalty and prior, or None."""
        return self.likelihood(candidate).with_prior(self._penalty(candidate), self.theta_prior)

    def _penalty(self, candidate: Candidate) -> Floats | None:
        """Return the matrix of the penalty only; other penalties than MESSI's have the trace of the yardstick's."""
        method, weight = METHODS[candidate.method], candidate.lambda0 / self.theta_max
        if not method.penalised or weight == 0.0:
            return None
        if method.shape is None:
            return weight * self._matrix(candidate.similarity)
        if method.shape not in self._penalties:
            self._penalties[method.shape] = method.shape(self.counts)
        shape = self._penalties[method.shape]
        if not shape.any():
            return None
        return equal_trace(weight, float(np.trace(self._matrix(self.yardstick))), shape) * shape

    def _matrix(self, similarity: Any) -> Floats:
        if similarity not in self._penalties:
            self._penalties[similarity] = self.data.penalty(as_similarity(similarity), self.mdp, self.counts)
        return self._penalties[similarity]

    def log_probabilities(self, candidate: Candidate, theta: Floats, held_out: Trajectories) -> Floats:
        """Return the log-probability of each held-out trajectory, (n,); −inf if θ has no finite values."""
        mdp = self.based(candidate)
        reward = mdp.reward(theta)
        try:
            if self.entropy == "noncausal":
                return log_likelihood(mdp, soft_policy(mdp, reward, "noncausal"), held_out)
            start = self._first + np.bincount(held_out.first, minlength=mdp.n_states)
            return reward_log_likelihood(mdp, reward, held_out, start)
        except NoFiniteValue:
            return np.full(len(held_out), -np.inf)

    @cached_property
    def _first(self) -> Floats:
        """The number of trajectories that begin in each state, (S,)."""
        return self.data.first(self.mdp)

    def score(self, candidate: Candidate, theta: Floats, held_out: Trajectories) -> float:
        """Return Σ log-probability of held-out trajectories."""
        return float(self.log_probabilities(candidate, theta, held_out).sum())
