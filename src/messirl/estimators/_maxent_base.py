"""Maximum-entropy methods: the higher the value of an action under r_θ, the more likely the expert takes it.

θ is estimated by maximum likelihood, with a penalty and within the box ‖θ‖∞ ≤ theta_max.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from messirl._checks import is_whole
from messirl._npz import within
from messirl._parameters import default
from messirl._types import Floats, Ints
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.feature_scale import offsets
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.sufficient_statistics import gathered
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._central_path import find_maximum
from messirl.estimators._convergence_report import (
    BOUNDLESS,
    OPEN,
    UNDETERMINED,
    UNSEEN,
    IdentifiabilityWarning,
    Standing,
    direction,
    held_by_box,
    held_by_penalty,
    largest_parts,
    not_converged,
    numbers_of,
    some_features,
    widest_direction,
)
from messirl.estimators._initialization import Nearby, first_theta
from messirl.estimators._lazy_policies import GoalPolicies, StepPolicies
from messirl.estimators._lockstep import Learning, Question, about
from messirl.estimators._prior_policy import usual_policy
from messirl.estimators._reward_base import RewardEstimator
from messirl.estimators._streaming import IN_MEMORY, Together, counts_of_both
from messirl.objective import Evaluation, Objective, check_start, made_likely
from messirl.optim.box_search import HISTORY, NEAR, Callback, Result
from messirl.optim.fixed_steps import fixed_steps
from messirl.planning import NoFiniteValue, log_likelihood
from messirl.planning.choice_scores import trajectory_scores
from messirl.planning.finite_horizon import CheckpointedSolution
from messirl.planning.identifiability import unidentified
from messirl.planning.likelihood import reward_log_likelihood
from messirl.planning.planner import where_met

EMPTY = "unlabelled is empty: pass None to fit without unlabelled trajectories"

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
    standing_ : Standing
        Convergence report: weights at their bound, shrunk by the penalty, not identified or not converged.
    remarks_ : list of str
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
    _records: ClassVar[dict[str, Any]] = {"standing": Standing}

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
    ) -> tuple[MDP, Any]:
        """Check the data, and return the MDP with its prior policy and Σ = Σ* ∪ Σ̃, experts first.

        Σ is a `Together` where Σ̃ is in files.

        counted : whether counts of Σ̃ will be needed, so that files are read only once
        """
        check_trajectories(mdp, expert, "expert")
        if len(expert) == 0:
            raise ValueError("expert is empty: at least one trajectory is needed")
        if unlabelled is None:
            return self._based(mdp, None), expert
        if isinstance(unlabelled, StreamedTrajectories):
            return self._read_streamed(mdp, expert, unlabelled, counted=counted)
        check_trajectories(mdp, unlabelled, "unlabelled")
        check_start(mdp, unlabelled, "unlabelled")
        if len(unlabelled) == 0:
            raise ValueError(EMPTY)
        if (expert.goals is None) != (unlabelled.goals is None):
            raise ValueError("expert and unlabelled must both have goals, or neither")
        return self._based(mdp, unlabelled), expert + unlabelled

    def _read_streamed(
        self, mdp: MDP, expert: Trajectories, unlabelled: StreamedTrajectories, *, counted: bool
    ) -> tuple[MDP, Together]:
        if expert.goals is not None:
            raise ValueError(f"expert has goals, but trajectories in files cannot have any: {IN_MEMORY}")
        if len(unlabelled) == 0:
            raise ValueError(EMPTY)
        bare = unlabelled.with_actions and expert.actions is None and getattr(self, "unlabelled_weight", 0.0) > 0.0
        gathered(mdp, unlabelled, counted=counted, moved=bare)
        return self._based(mdp, unlabelled), Together(expert, unlabelled)

    def _based(self, mdp: MDP, unlabelled: Trajectories | StreamedTrajectories | None) -> MDP:
        if self.reference is None:
            return mdp
        if not isinstance(self.reference, str):
            return mdp.based_on(self.reference)
        if unlabelled is None:
            raise ValueError("reference='unlabelled' needs unlabelled trajectories: pass some to fit, or leave it out")
        return mdp.based_on(usual_policy(mdp, unlabelled, float(self.reference_strength)))

    def _counts(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | StreamedTrajectories | None,
        *,
        penalised: bool,
    ) -> Floats | None:
        """Return the feature counts of both sets, each by its own actions; None if nothing needs them."""
        if self.likelihood_ == "choices" and not penalised:
            return None
        if isinstance(unlabelled, StreamedTrajectories):
            found: Floats = counts_of_both(mdp, expert, unlabelled)
            return found
        sets = {" of expert": expert} | ({} if unlabelled is None else {" of unlabelled": unlabelled})
        return np.concatenate([checked_feature_counts(mdp, some, whose) for whose, some in sets.items()])

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
        return first_theta(mdp, objective, self._bound, self.theta_init, self.random_state)

    def _learning(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Learning:
        """Search for θ: yield requests for evaluations of objectives, and return the arguments of `_finish`."""
        raise NotImplementedError

    def _optimise(
        self, objective: Objective, theta: Floats, max_iter: int, callback: Callback | None
    ) -> Generator[Question, Evaluation, Result]:
        shared: dict[str, Any] = {
            "bound": self._bound,
            "max_iter": max_iter,
            "tol": float(self.tol),
            "callback": callback,
        }
        if self.solver == "paper":
            search = fixed_steps(theta, step_size=float(self.step_size), unit=objective.unit, **shared)
            return (yield from about(objective, search))
        near = self.theta_init
        known = isinstance(near, Nearby) and theta is near.theta
        curvature = near.curvature(objective) if known else None
        return (yield from find_maximum(objective, theta, curvature=curvature, **shared))

    def _finish(
        self, mdp: MDP, expert: Trajectories, objective: Objective, theta_start: Floats, result: Result
    ) -> Self:
        self.start_ = objective.planner.start
        self.goals_: Ints | None = objective.planner.goals
        try:
            self._learnt(mdp, result.theta)
            self._set_policy()
        except NoFiniteValue:  # near the edge of finite values, the search relied on those of the step before
            result = result.drawn_back(theta_start, objective)
            self._learnt(mdp, result.theta)
            self._set_policy()
        self.theta_init_ = theta_start
        expected = objective.from_start(result.theta, result.point)
        self.feature_counts_, self.visitation_ = expected.counts(mdp), expected.states
        self.objective_ = float(result.history.objective[-1])
        self.history_ = result.history
        self.n_iter_ = result.iterations
        self.gradient_norm_ = result.gradient_norm
        self.quadratic_ = objective.quadratic
        unidentified = self._unidentified(mdp, expert)
        flat, length = self._open_direction(objective, result, unidentified)
        curvature = 1.0 / (objective.sample_size * max(length, 1e-100) ** 2)  # of J, for a change of the size of θ
        if length > BOUNDLESS or curvature < UNSEEN * (1.0 + abs(result.point.value)):
            result = replace(result, converged=False, reason=OPEN)
        self.converged_, self.termination_ = result.converged, result.reason
        LOG.info(
            "%s: %d expert trajectories, %d iterations, %d evaluations, objective %.8g: %s",
            type(self).__name__,
            len(expert),
            result.iterations,
            result.evaluations,
            self.objective_,
            self.termination_,
        )
        self.standing_ = self._standing(objective, result, unidentified, flat)
        if flat is not None:
            warnings.warn(
                f"the trajectories hardly determine theta along {direction(mdp, flat)}: the standard error is more "
                "than ten times that. If a choice is always made the same way (separation), its weights have no finite "
                "optimum. Try theta_prior=10, a penalty, or more trajectories",
                IdentifiabilityWarning,
                stacklevel=3,
            )
        if not result.converged and result.reason != OPEN:
            said = f"{type(self).__name__} {not_converged(result, self.standing_, mdp, self.tol)}"
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        if len(unidentified):
            warnings.warn(
                f"theta is determined only up to {len(unidentified)} direction(s) among the features "
                f"{some_features(mdp, self.standing_.unidentified)}: no trajectory distinguishes them. Policies, "
                "objectives and scores remain valid; these weights cannot be interpreted one by one",
                IdentifiabilityWarning,
                stacklevel=3,
            )
        return self

    @property
    def remarks_(self) -> list[str]:
        """Warnings about weights at their bound, shrunk by the penalty or lost to rounding, with remedies."""
        self._fitted()
        offset = offsets(self.mdp_)
        return [*self.standing_.remarks(self.mdp_, self.theta_), *(() if offset is None else (offset,))]

    def _open_direction(
        self, objective: Objective, result: Result, unidentified: Floats
    ) -> tuple[Floats | None, float]:
        """Return the least determined change of θ (d,), about as large as the weights; None if all are determined.

        Also return its standard error relative to the weights, 0 if that is not known.
        """
        curvature = result.curvature
        if self.solver == "paper" or result.move.max(initial=0.0) > NEAR or not np.isfinite(objective.sample_size):
            return None, 0.0
        if curvature is None and objective.curvature_is_affordable:
            curvature = -objective.hessian(result.theta)
        if curvature is None or not np.isfinite(curvature).all():
            return None, 0.0
        known = (result.theta, objective.unit, self._bound, unidentified)
        change, length = widest_direction(objective.sample_size * curvature, *known)
        return (change / length if length > UNDETERMINED else None), length

    def _standing(self, objective: Objective, result: Result, unidentified: Floats, flat: Floats | None) -> Standing:
        penalty: tuple[int, ...] = ()
        if objective.quadratic is not None and not isinstance(self.theta_init, Nearby):
            penalty = held_by_penalty(objective.quadratic @ result.theta, self._gap(objective), objective.unit)
        return Standing(
            box=held_by_box(result.theta, self._bound),
            penalty=penalty,
            unidentified=numbers_of(np.abs(unidentified).max(axis=0, initial=0.0) > 0),
            unsettled=() if result.converged else numbers_of(result.move > self.tol),
            undetermined=() if flat is None else numbers_of(largest_parts(flat * objective.unit)),
        )

    def _gap(self, objective: Objective) -> Floats:
        """Return the gradient of the likelihood at θ = 0, or at the initial θ: the gap in counts before learning."""
        plain = objective.penalised(None)
        nothing = plain(np.zeros(objective.mdp.n_features))
        return nothing.gradient if np.isfinite(nothing.value) else plain(self.theta_init_).gradient

    def _set_policy(self) -> None:
        """Set the policy, and keep its values so that scores need not solve the MDP again."""
        self._values_: Floats | None = None
        if self.goals_ is not None:
            self.policy_: Any = GoalPolicies(self.mdp_, self.reward_, self.goals_, self.start_)
            return
        found = where_met(self.mdp_, self.reward_, self.start_, entropy=self.entropy)
        if isinstance(found, CheckpointedSolution):
            self.policy_ = StepPolicies(found)
            return
        self.policy_, self._values_ = np.ascontiguousarray(found.table), found.values
        self._valued_ = np.array(self.reward_)

    def _values(self) -> Floats | None:
        """Return the values of the policy, unless `reward_` was changed since."""
        known = self._values_ is not None and np.array_equal(self._valued_, self.reward_)
        return self._values_ if known else None

    @property
    def likelihood_(self) -> str:
        """The objective in use, "choices" or "counts"."""
        return made_likely(self.objective, self.entropy, self.solver)

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

    def _revive(self, parts: Any) -> None:
        super()._revive(parts)
        d, n = (self.mdp_.n_features,), (self.mdp_.n_states,)
        self._check_shapes(d, "theta_init_", "feature_counts_")
        self._check_shapes(n, "visitation_", "start_")
        self._check_shapes(d * 2, "quadratic_")
        if not set(HISTORY.names or ()) <= set(self.history_.dtype.names or ()):
            raise ValueError("its history_ lacks columns")
        self.history_ = self.history_.view(np.recarray)
        if self.goals_ is not None:
            within("goals_", self.goals_, 0, self.mdp_.n_states - 1)
        self._set_policy()
