"""Maximum-entropy methods: the higher the value of an action under r_θ, the more likely the expert takes it.

θ is estimated by maximum likelihood, with a penalty and within the box ‖θ‖∞ ≤ theta_max.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from messirl._checks import is_whole
from messirl._npz import check_integer_range
from messirl._parameters import default
from messirl._types import Floats, Ints
from messirl.data.feature_scale import offsets
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._convergence_report import ConvergenceReport, judge
from messirl.estimators._initialization import WarmStart, initial_theta
from messirl.estimators._lazy_policies import fitted_policy
from messirl.estimators._prior_policy import with_prior_policy
from messirl.estimators._reward_base import RewardEstimator
from messirl.estimators._search import PreparedFit, SearchSettings
from messirl.estimators._training_data import TrainingData
from messirl.objective import Objective, resolve_objective
from messirl.optim.box_search import HISTORY, Result
from messirl.planning import NoFiniteValue, log_likelihood
from messirl.planning.choice_scores import trajectory_scores
from messirl.planning.identifiability import unidentified
from messirl.planning.likelihood import reward_log_likelihood

LOG = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class MaximumEntropy(RewardEstimator):
    """Base class of the estimators of a reward whose maximum-entropy policy matches the experts.

    Constructors store their arguments; `fit` checks them.

    Parameters
    ----------
    theta_max : float, optional
        Bound on every weight. None means no bound, for the methods that allow it.
    entropy : {"causal", "noncausal"}
        "noncausal" is the paper's Eq. 3, which needs a horizon.
    objective : {"choices", "counts"} or None
        "choices" maximises the likelihood of the experts' choices. "counts" matches their feature counts, which also
        reflect random transitions. "choices" needs entropy="causal" and solver="lbfgs". None: "choices" with these,
        otherwise "counts".
    reference : array (S, A), "unlabelled" or None
        A prior policy π₀ relative to which entropy is measured, so that θ = 0 gives π₀ itself. "unlabelled" estimates
        it from the unlabelled trajectories. It needs entropy="causal" and solver="lbfgs".
    reference_strength : float
        Strength of the uniform prior of `reference="unlabelled"`: the number of choices per state that it counts as.
    solver : {"lbfgs", "paper"}
        "lbfgs" finds the optimum; "paper" takes the fixed steps of Alg. 1.
    step_size : float
        Step size of the solver "paper".
    max_iter : int
        Maximum number of iterations.
    tol : float
        Largest distance of a weight from its optimum, relative to max(|θ_j|, 1/σ_j), σ_j the spread of its feature.
    theta_init : array (d,), "random" or None
        Initial θ of the search. None: zeros or, where values are not finite there, a θ at which they are.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Random source of `theta_init="random"`.
    callback : callable, optional
        Called with a dict after every iteration (iteration, objective, theta_norm, gradient_norm, evaluations, theta,
        point); returning True stops the search.
    warm_start : bool
        Whether a second `fit` starts from the θ of the first one.

    Attributes
    ----------
    visitation_ : array (S,)
        Expected discounted visits of every state from the experts' starts; with goals, the mean over their
        trajectories.
    feature_counts_ : array (d,)
        Expected feature counts of the policy; at the optimum without penalty, those of the experts.
    objective_ : float
        The objective J at `theta_`.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether every weight is within `tol` of its optimum.
    termination_ : str
        Reason why the search ended.
    gradient_norm_ : float
        The largest entry of the projected gradient.
    history_ : record array
        Iteration, objective, theta_norm, gradient_norm and evaluations of every iteration.
    standing_ : ConvergenceReport
        Convergence report: weights at their bound, shrunk by the penalty, not identified or not converged.
    warnings_ : list of str
        The warnings of the report in sentences, with remedies.
    quadratic_ : array (d, d) or None
        The matrix Q of the penalty ½ θᵀQθ.
    theta_init_ : array (d,)
        Initial θ of the search.
    likelihood_ : {"choices", "counts"}
        The objective that was used.
    reference_ : array (S, A) or None
        The prior policy, if there is one.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("theta_init_", "feature_counts_", "visitation_", "start_", "history_")
    _optional: ClassVar[tuple[str, ...]] = ("goals_", "quadratic_")
    _facts: ClassVar[tuple[str, ...]] = ("objective_", "n_iter_", "converged_", "termination_", "gradient_norm_")
    _records: ClassVar[dict[str, Any]] = {"standing": ConvergenceReport}

    theta_max: float | None = default("theta_max")
    entropy: str = default("entropy")
    objective: str | None = default("objective")
    reference: Any = default("reference")
    reference_strength: float = default("reference_strength")
    solver: str = default("solver")
    step_size: float = default("step_size")
    max_iter: int = default("max_iter")
    tol: float = default("tol")
    theta_init: Any = None
    random_state: Any = None
    callback: Any = None
    warm_start: bool = default("warm_start")

    def _check_arguments(self) -> None:
        if not is_whole(self.max_iter):
            raise TypeError(f"max_iter={self.max_iter!r}: it must be a whole number")
        super()._check_arguments()
        beyond = ["objective='choices'"] * (self.objective == "choices")
        beyond += ["`reference`"] * (self.reference is not None)
        for name, only in (("entropy", "causal"), ("solver", "lbfgs")):
            if beyond and getattr(self, name) != only:
                chosen = f"{name}={getattr(self, name)!r}"
                raise ValueError(f"{beyond[0]} cannot be combined with {chosen}: omit it, or use {name}={only!r}")
        if self.callback is not None and not callable(self.callback):
            raise TypeError("callback must be callable: it is called with a dict after every iteration")

    @property
    def _bound(self) -> float:
        return np.inf if self.theta_max is None else float(self.theta_max)

    def _read(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | StreamedTrajectories | None,
        *,
        counted: bool = False,
    ) -> tuple[MDP, TrainingData]:
        """Check the data, and return the MDP with its prior policy and Σ = Σ* ∪ Σ̃.

        counted : whether counts of Σ̃ will be needed, so that files are read only once
        """
        data = TrainingData(expert, unlabelled)
        data.check(mdp, counted=counted, pooled=getattr(self, "unlabelled_weight", 0.0) > 0.0)
        if self.reference is not None:
            mdp = with_prior_policy(mdp, self.reference, float(self.reference_strength), unlabelled)
        return mdp, data

    def _counts(self, mdp: MDP, data: TrainingData, *, penalised: bool) -> Floats | None:
        """Return the feature counts of both sets, each by its own actions; None if nothing needs them."""
        return data.counts(mdp) if penalised or self.likelihood_ == "counts" else None

    def _objective(
        self,
        mdp: MDP,
        some: Trajectories,
        counts: Floats | None,
        quadratic: Floats | None,
        weight: npt.ArrayLike | None,
        n_expert: int,
    ) -> Objective:
        return Objective.from_trajectories(
            mdp,
            some,
            self.entropy,
            quadratic,
            weight,
            objective=self.likelihood_,
            counts=counts,
            tilted=self.solver != "paper",
            checked=True,
            n_expert=n_expert,
        )

    def _theta_start(self, mdp: MDP, objective: Objective) -> Floats:
        if self.warm_start and hasattr(self, "theta_"):
            return np.asarray(np.clip(self.theta_, -self._bound, self._bound))
        return initial_theta(mdp, objective, self._bound, self.theta_init, self.random_state)

    def _prepare(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> PreparedFit:
        """Check parameters and data, and return the fit up to its search."""
        raise NotImplementedError

    def _warm_start(self, mdp: MDP, objective: Objective) -> WarmStart:
        """Return the start of the search: a given `WarmStart`, if it serves, or the initial θ."""
        given, theta = self.theta_init, self._theta_start(mdp, objective)
        return given if isinstance(given, WarmStart) and theta is given.theta else WarmStart(theta)

    @property
    def _settings(self) -> SearchSettings:
        return SearchSettings(
            self._bound, self.max_iter, float(self.tol), self.callback, self.solver, float(self.step_size)
        )

    def _finish(
        self, mdp: MDP, expert: Trajectories, objective: Objective, theta_start: Floats, result: Result
    ) -> Self:
        self.start_ = objective.planner.start
        self.goals_: Ints | None = objective.planner.goals
        try:
            self._set_fitted(mdp, result.theta)
            self._set_policy()
        except NoFiniteValue:  # near the edge of finite values, the search relied on those of the step before
            result = result.moved_inside(theta_start, objective)
            self._set_fitted(mdp, result.theta)
            self._set_policy()
        self.theta_init_ = theta_start
        expected = objective.from_start(result.theta, result.point)
        self.feature_counts_, self.visitation_ = expected.counts(mdp), expected.states
        self.objective_ = float(result.history.objective[-1])
        self.history_ = result.history
        self.n_iter_ = result.iterations
        self.gradient_norm_ = result.gradient_norm
        self.quadratic_ = objective.quadratic
        start = None if isinstance(self.theta_init, WarmStart) else theta_start
        exact, blind = self.solver != "paper", self._unidentified(mdp, expert)
        found = judge(objective, result, blind, start, bound=self._bound, tol=self.tol, exact=exact)
        self.converged_, self.termination_ = found.result.converged, found.result.reason
        self.standing_ = found.standing
        LOG.info(
            "%s: %d expert trajectories, %d iterations, %d evaluations, objective %.8g: %s",
            type(self).__name__,
            len(expert),
            result.iterations,
            result.evaluations,
            self.objective_,
            self.termination_,
        )
        found.warn(type(self).__name__, mdp, self.tol, stacklevel=4)
        return self

    @property
    def warnings_(self) -> list[str]:
        """Warnings about weights at their bound, shrunk by the penalty or lost to rounding, with remedies."""
        self._fitted()
        offset = offsets(self.mdp_)
        return [*self.standing_.warnings(self.mdp_, self.theta_), *(() if offset is None else (offset,))]

    def _set_policy(self) -> None:
        """Set the policy, and keep its values so that scores need not solve the MDP again."""
        known = fitted_policy(self.mdp_, self.reward_, self.start_, self.goals_, self.entropy)
        self.policy_: Any = known[0]
        self._values_, self._valued_ = known[1], np.array(self.reward_)

    def _values(self) -> Floats | None:
        """Return the values of the policy, unless `reward_` was changed since."""
        known = self._values_ is not None and np.array_equal(self._valued_, self.reward_)
        return self._values_ if known else None

    @property
    def likelihood_(self) -> str:
        """The objective in use, "choices" or "counts"."""
        return resolve_objective(self.objective, self.entropy, self.solver)

    @property
    def reference_(self) -> Floats | None:
        """The prior policy (S, A), if there is one."""
        self._fitted()
        return self.mdp_.reference

    def _unidentified(self, mdp: MDP, expert: Trajectories) -> Floats:
        """Return a basis (k, d) of the unidentified directions of θ; it is cached for an MDP and its starts."""
        start = None if self.goals_ is not None else self.start_
        starts: Any = self.goals_ if start is None else np.flatnonzero(start)
        key = f"unidentified {self.entropy} {start is None} {hashlib.sha256(starts.tobytes()).hexdigest()}"
        return mdp.memo(key, lambda: unidentified(mdp, start, expert.goals, noncausal=self.entropy == "noncausal"))

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        if self.entropy == "noncausal":
            return log_likelihood(self.mdp_, self.policy_, trajectories)
        return reward_log_likelihood(self.mdp_, self.reward_, trajectories, self.start_, self._values())

    def scores(self, trajectories: Trajectories) -> Floats:
        """Return the score ∇θ log p(ζ|θ) at `theta_` of every trajectory, (n, d)."""
        self._fitted()
        if self.entropy != "causal":
            raise ValueError(f"entropy={self.entropy!r} has no scores of single trajectories: use entropy='causal'")
        check_trajectories(self.mdp_, trajectories)
        return trajectory_scores(self.mdp_, self.theta_, trajectories, self.start_)

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        d, n = (self.mdp_.n_features,), (self.mdp_.n_states,)
        self._check_shapes(d, "theta_init_", "feature_counts_")
        self._check_shapes(n, "visitation_", "start_")
        self._check_shapes(d * 2, "quadratic_")
        if not set(HISTORY.names or ()) <= set(self.history_.dtype.names or ()):
            raise ValueError("its history_ lacks columns")
        self.history_ = self.history_.view(np.recarray)
        if self.goals_ is not None:
            check_integer_range("goals_", self.goals_, 0, self.mdp_.n_states - 1)
        self._set_policy()
