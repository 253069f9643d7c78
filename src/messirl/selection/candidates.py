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

from messirl._checks import numbers
from messirl._defaults import ENTROPY, MAX_ITER, OBJECTIVE, REFERENCE_STRENGTH, THETA_MAX, THETA_PRIOR, TOL
from messirl._types import Flags, Floats
from messirl.data.feature_counts import counts_of_sets
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.estimators._central_path import find_maximum
from messirl.estimators._initialization import bend_at, first_theta
from messirl.estimators._lockstep import answered_alone
from messirl.estimators._prior_policy import usual_policy
from messirl.estimators._streaming import Together, counts_of_both, penalty_of
from messirl.estimators.registry import LIGHT_RIDGE, METHODS, baseline, equal_trace
from messirl.objective import Objective, made_likely
from messirl.planning import NoFiniteValue, log_likelihood, soft_policy
from messirl.planning.likelihood import reward_log_likelihood
from messirl.similarity.base import as_similarity

LAMBDAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
STRENGTHS = (2.0, 50.0)  # prior strengths of a prior policy, besides the default
WEIGHTS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # of an unlabelled trajectory; 0 would be the experts only
USUAL = 0.3  # λ0 of the candidates with other prior strengths


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


def candidates(
    similarities: Sequence[Any], lambdas: Sequence[float], *, unlabelled: bool = True, based: bool = True
) -> list[Candidate]:
    """Return all candidates: the experts only first; λ0 from strong to weak.

    unlabelled : whether there are unlabelled trajectories
    based : whether a prior policy from them may be a candidate: not if one is given, or the model supports none
    """
    given = numbers("lambdas", list(lambdas) if isinstance(lambdas, Iterable) else lambdas)
    if given.ndim != 1:
        raise ValueError(f"lambdas={lambdas!r}: give a sequence of numbers")
    wrong = [x for x in given if not 0.0 <= x < np.inf]
    if wrong:
        raise ValueError(f"lambdas holds {wrong[0]}: give finite numbers >= 0")
    path = sorted({float(x) for x in given if x > 0}, reverse=True)
    out = [Candidate("MaxEnt")]
    out += [Candidate("RidgeStd", x) for x in sorted({*path, LIGHT_RIDGE}, reverse=True)]
    if not unlabelled:
        return out
    out += [Candidate("MESSI", x, similarity) for similarity in similarities for x in path]
    out += [Candidate("Complete", x) for x in path]
    if based:
        out += [Candidate("ReferenceStd", x, strength=REFERENCE_STRENGTH) for x in path]
        out += [Candidate("ReferenceStd", USUAL, strength=alpha) for alpha in STRENGTHS]
    return out + [Candidate("LightPoolingStd", LIGHT_RIDGE, weight=w) for w in WEIGHTS]


@dataclass(frozen=True)
class Fit:
    """A candidate fitted to some experts.

    Attributes
    ----------
    candidate : Candidate
        The method and its hyperparameters.
    theta : array (d,)
        Its weights.
    bend : array (d, d) or None
        The Hessian of its negative log-likelihood there, −∇²L.
    inside : PathPoint or None
        A point of the central path to it, if the path was followed.
    """

    candidate: Candidate
    theta: Floats
    bend: Floats | None
    inside: Any = None


@dataclass(eq=False)
class Bench:
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
    >>> from messirl.selection.candidates import Bench, Candidate
    >>> from messirl.similarity import CompleteGraph
    >>> bench = Bench(mdp, expert, None, yardstick=CompleteGraph())
    >>> bench.fit(Candidate("MaxEnt")).round(2)
    array([2.19])
    """

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories | StreamedTrajectories | None
    _: KW_ONLY
    yardstick: Any
    theta_max: float = THETA_MAX
    entropy: str = ENTROPY
    objective: str | None = OBJECTIVE
    max_iter: int = MAX_ITER
    tol: float = TOL
    theta_prior: float | None = THETA_PRIOR
    pooled: Flags | None = None

    def __post_init__(self) -> None:
        if isinstance(self.unlabelled, StreamedTrajectories):
            self.everyone: Any = Together(self.expert, self.unlabelled)
            self.counts: Any = counts_of_both(self.mdp, self.expert, self.unlabelled)
        else:
            self.everyone = self.expert if self.unlabelled is None else self.expert + self.unlabelled
            self.counts = counts_of_sets(self.mdp, self.expert, self.unlabelled)
        self._penalties: dict[Any, Floats] = {}
        self._based: dict[float | None, MDP] = {None: self.mdp}
        self._likelihoods: dict[tuple[float | None, float], Objective] = {}

    def path(self, every: Sequence[Candidate], known: Sequence[Fit | None] | None = None) -> Iterator[Fit]:
        """Yield the fit of each candidate.

        It is warm-started at the nearest fit so far or, if fits to nearly the same experts are `known`, at those.
        """
        made: list[Fit] = []
        for i, candidate in enumerate(every):
            near = self._near(candidate, made) if known is None else known[i]
            fit = self.fitted(candidate, near)
            if known is None:
                fit = replace(fit, bend=self.bend(candidate, fit.theta))
                made.append(fit)
            yield fit

    def _near(self, candidate: Candidate, made: Sequence[Fit]) -> Fit | None:
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
            return near
        return None

    def fit(self, candidate: Candidate, near: Fit | None = None) -> Floats:
        """Return θ at the optimum of a candidate."""
        return self.fitted(candidate, near).theta

    def fitted(self, candidate: Candidate, near: Fit | None = None) -> Fit:
        """Return the fit of a candidate, warm-started at the fit `near`, or started where values are finite."""
        likelihood, quadratic = self.likelihood(candidate), self.penalty(candidate)
        if near is None:
            begin = first_theta(self.based(candidate), likelihood, self.theta_max)
            near = Fit(candidate, begin, self.bend(candidate, begin))
        objective = likelihood.penalised(quadratic)
        options: dict[str, Any] = {"bound": self.theta_max, "max_iter": self.max_iter, "tol": self.tol}

        def penalised(bend: Floats | None) -> Floats | None:
            return bend if bend is None or quadratic is None else bend + quadratic

        def bend(theta: Floats) -> Floats | None:
            return penalised(self.bend(candidate, theta))

        options |= {"curvature": penalised(near.bend), "bend": bend, "inside": near.inside}
        found = answered_alone(find_maximum(objective, near.theta, certain=False, **options))
        return Fit(candidate, found.theta, None, found.inside)

    def bend(self, candidate: Candidate, theta: Floats) -> Floats | None:
        """Return the Hessian −∇²L (d, d) of a candidate at θ; None if it is expensive."""
        return bend_at(self.likelihood(candidate), theta)

    def based(self, candidate: Candidate) -> MDP:
        """Return the problem with the prior policy of a candidate."""
        alpha = candidate.strength
        if alpha not in self._based:
            assert alpha is not None
            assert self.unlabelled is not None
            self._based[alpha] = self.mdp.based_on(usual_policy(self.mdp, self.unlabelled, alpha))
        return self._based[alpha]

    def likelihood(self, candidate: Candidate) -> Objective:
        """Return the objective of a candidate without its penalty."""
        key = (candidate.strength, candidate.weight)
        if key not in self._likelihoods and candidate.weight > 0.0 and isinstance(self.everyone, Together):
            likely = made_likely(self.objective, self.entropy)
            self._likelihoods[key] = self.everyone.objective(
                self.based(candidate),
                np.ones(len(self.expert)),
                candidate.weight,
                counts=self.counts if likely == "counts" else None,
                quadratic=None,
                entropy=self.entropy,
                tilted=True,
            )
        if key not in self._likelihoods:
            l, some, counts = len(self.expert), self.everyone, self.counts
            if candidate.weight <= 0.0:
                some, counts = self.expert, counts[:l]
            elif self.pooled is not None:
                rows = np.concatenate([np.arange(l), l + np.flatnonzero(self.pooled)])
                some, counts = some[rows], counts[rows]
            self._likelihoods[key] = Objective.from_trajectories(
                self.based(candidate),
                some,
                self.entropy,
                objective=made_likely(self.objective, self.entropy),
                counts=counts,
                sample_weight=np.where(np.arange(len(some)) < l, 1.0, candidate.weight),
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
            self._penalties[similarity] = penalty_of(as_similarity(similarity), self.mdp, self.everyone, self.counts)
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
        if isinstance(self.everyone, Together):
            return self.everyone.first(self.mdp)
        return np.bincount(self.everyone.first, minlength=self.mdp.n_states).astype(np.float64)

    def score(self, candidate: Candidate, theta: Floats, held_out: Trajectories) -> float:
        """Return Σ log-probability of held-out trajectories."""
        return float(self.log_probabilities(candidate, theta, held_out).sum())
