"""Maximum-entropy methods: the better an action is by r_θ, the likelier the expert takes it.

θ is found by maximum likelihood, with a penalty and within a box.
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

from messirl._checks import flag, is_whole, number
from messirl._defaults import ENTROPY, MAX_ITER, OBJECTIVE, REFERENCE_STRENGTH, SOLVER, STEP_SIZE, THETA_MAX, TOL
from messirl._npz import within
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
from messirl.objective import OBJECTIVES, Evaluation, Objective, check_start, made_likely
from messirl.optim.box_search import HISTORY, NEAR, Callback, Result
from messirl.optim.fixed_steps import fixed_steps
from messirl.planning import NoFiniteValue, log_likelihood
from messirl.planning._validation import check_entropy
from messirl.planning.choice_scores import trajectory_scores
from messirl.planning.finite_horizon import CheckpointedSolution
from messirl.planning.identifiability import unidentified
from messirl.planning.likelihood import reward_log_likelihood
from messirl.planning.planner import where_met

SOLVERS = ("lbfgs", "paper")
EMPTY = "unlabelled is empty: pass None to fit without unlabelled trajectories"

LOG = logging.getLogger(__name__)


@dataclass(eq=False, repr=False, kw_only=True)
class MaximumEntropy(RewardEstimator):
    """The reward under which the policy of maximum entropy does what the experts did.

    Constructors store what they are given; `fit` checks it.

    Parameters
    ----------
    theta_max : float, optional
        Bound on every weight. None, where a method allows it: no bound.
    entropy : {"causal", "noncausal"}
        "noncausal" is the paper's Eq. 3, which needs a horizon.
    objective : {"choices", "counts"} or None
        What is made likely: the choices that the experts made, or their feature counts, which also hold where chance
        took them. "choices" goes with entropy="causal" and solver="lbfgs". None: "choices" with these, else "counts".
    reference : array (S, A), "unlabelled" or None
        A base policy π₀ that entropy is measured against: θ = 0 is then π₀ itself. "unlabelled": what is usual among
        the unlabelled trajectories. Goes with entropy="causal" and solver="lbfgs".
    reference_strength : float
        Of the prior of `reference="unlabelled"`, under which all allowed actions are equally likely: how many choices
        per state it counts as.
    solver : {"lbfgs", "paper"}
        "lbfgs" finds the optimum; "paper" takes the fixed steps of Alg. 1.
    step_size : float
        Of the solver "paper".
    max_iter : int
        Iterations at most.
    tol : float
        How far a weight may be from its optimum, relative to its size or, if that is larger, to one over the spread of
        its feature.
    theta_init : array (d,), "random" or None
        Where the search begins. None: at zero, or where values are not finite there, at a θ for which they are.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        For `theta_init="random"`.
    callback : callable, optional
        Called with a dict after every iteration (iteration, objective, theta_norm, gradient_norm, evaluations, theta,
        point); returning True stops the search.
    warm_start : bool
        Whether a second `fit` begins where the first one ended.

    Attributes
    ----------
    visitation_ : array (S,)
        Expected discounted visits of every state from the experts' starts; with goals, the mean over their trips.
    feature_counts_ : array (d,)
        Expected feature counts of the policy; at the optimum without penalty, those of the experts.
    objective_ : float
        The objective J at `theta_`.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether no weight would move by more than `tol`.
    termination_ : str
        Why the search ended.
    gradient_norm_ : float
        The largest entry of the projected gradient.
    history_ : record array
        Iteration, objective, theta_norm, gradient_norm and evaluations of every iteration.
    standing_ : Standing
        The weights that the box or the penalty holds, that nothing identifies, or that have not settled.
    remarks_ : list of str
        The same in sentences, with what to do.
    quadratic_ : array (d, d) or None
        The matrix Q of the penalty ½ θᵀQθ.
    theta_init_ : array (d,)
        Where the search began.
    goals_ : array of int or None
        The distinct goals of the experts, where they have goals.
    likelihood_ : {"choices", "counts"}
        What was made likely.
    reference_ : array (S, A) or None
        The base policy, where there is one.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("theta_init_", "feature_counts_", "visitation_", "start_", "history_")
    _optional: ClassVar[tuple[str, ...]] = ("goals_", "quadratic_")
    _facts: ClassVar[tuple[str, ...]] = ("objective_", "n_iter_", "converged_", "termination_", "gradient_norm_")
    _records: ClassVar[dict[str, Any]] = {"standing": Standing}

    theta_max: float | None = THETA_MAX
    entropy: str = ENTROPY
    objective: str | None = OBJECTIVE
    reference: Any = None
    reference_strength: float = REFERENCE_STRENGTH
    solver: str = SOLVER
    step_size: float = STEP_SIZE
    max_iter: int = MAX_ITER
    tol: float = TOL
    theta_init: Any = None
    random_state: Any = None
    callback: Any = None
    warm_start: bool = False

    def _check_arguments(self) -> None:
        check_entropy(self.entropy)
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r}: choose 'lbfgs' (the exact optimum) or 'paper' (Alg. 1)")
        if self.objective not in (None, *OBJECTIVES):
            raise ValueError(f"objective={self.objective!r}: choose 'choices' or 'counts'")
        if isinstance(self.reference, str) and self.reference != "unlabelled":
            raise ValueError(f"reference={self.reference!r}: give an array (S, A), 'unlabelled' or None")
        beyond = ["objective='choices'"] * (self.objective == "choices") + ["reference"] * (self.reference is not None)
        for name, only in (("entropy", "causal"), ("solver", "lbfgs")):
            if beyond and getattr(self, name) != only:
                raise ValueError(f"{beyond[0]} with {name}={getattr(self, name)!r}: it goes with {name}={only!r} only")
        number("reference_strength", self.reference_strength, above=0.0)
        flag("warm_start", self.warm_start)
        if self.theta_max is not None:
            number("theta_max", self.theta_max, above=0.0)
        number("step_size", self.step_size, above=0.0)
        number("tol", self.tol, least=0.0)
        if not is_whole(self.max_iter):
            raise TypeError(f"max_iter={self.max_iter!r}: give a whole number of iterations")
        if self.max_iter < 0:
            raise ValueError(f"max_iter={self.max_iter}: it must be >= 0")
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
        """The MDP with its base policy, and Σ = Σ* ∪ Σ̃, experts first, checked; `Together` where Σ̃ is in files.

        counted : whether counts of Σ̃ will be asked for, so that files are read only once
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
            raise ValueError(f"the experts have goals, which trajectories in files cannot have: {IN_MEMORY}")
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
            raise ValueError("reference='unlabelled' needs unlabelled trajectories: give them to fit, or leave it out")
        return mdp.based_on(usual_policy(mdp, unlabelled, float(self.reference_strength)))

    def _counts(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | StreamedTrajectories | None,
        *,
        penalised: bool,
    ) -> Floats | None:
        """Feature counts of everyone, each set by its own actions, where the objective or a penalty looks at them."""
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
        """The search for θ: asks for evaluations of objectives, and returns what `_finish` takes."""
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
        except NoFiniteValue:  # a search along the edge of finite values knows them from the step before
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
        open_way, length = self._open_direction(objective, result, unidentified)
        bend = 1.0 / (objective.sample_size * max(length, 1e-100) ** 2)  # of J, along a change as large as the weights
        if length > BOUNDLESS or bend < UNSEEN * (1.0 + abs(result.point.value)):
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
        self.standing_ = self._standing(objective, result, unidentified, open_way)
        if open_way is not None:
            warnings.warn(
                f"the trajectories hardly determine theta along {direction(mdp, open_way)}: the standard error is more "
                "than ten times that. A choice that is always made the same way (separation) leaves weights without a "
                "finite optimum. Give theta_prior=10, a penalty, or more trajectories",
                IdentifiabilityWarning,
                stacklevel=3,
            )
        if not result.converged and result.reason != OPEN:
            said = f"{type(self).__name__} {not_converged(result, self.standing_, mdp, self.tol)}"
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        if len(unidentified):
            warnings.warn(
                f"theta is determined only up to {len(unidentified)} direction(s) among the features "
                f"{some_features(mdp, self.standing_.unidentified)}: no trajectory tells them apart. Policies, "
                "objectives and scores mean what they say; these weights on their own do not",
                IdentifiabilityWarning,
                stacklevel=3,
            )
        return self

    @property
    def remarks_(self) -> list[str]:
        """Which weights the box, the penalty or the lack of digits holds, and what to do about it, in sentences."""
        self._fitted()
        offset = offsets(self.mdp_)
        return [*self.standing_.remarks(self.mdp_, self.theta_), *(() if offset is None else (offset,))]

    def _open_direction(
        self, objective: Objective, result: Result, unidentified: Floats
    ) -> tuple[Floats | None, float]:
        """The change of θ (d,), about as large as the weights, of which the trajectories tell least, if it is little.

        Also its standard error, relative to the weights; 0 where that is not known.
        """
        bent = result.curvature
        if self.solver == "paper" or result.move.max(initial=0.0) > NEAR or not np.isfinite(objective.sample_size):
            return None, 0.0
        if bent is None and objective.curvature_is_affordable:
            bent = -objective.hessian(result.theta)
        if bent is None or not np.isfinite(bent).all():
            return None, 0.0
        known = (result.theta, objective.unit, self._bound, unidentified)
        change, length = widest_direction(objective.sample_size * bent, *known)
        return (change / length if length > UNDETERMINED else None), length

    def _standing(
        self, objective: Objective, result: Result, unidentified: Floats, open_way: Floats | None
    ) -> Standing:
        penalty: tuple[int, ...] = ()
        if objective.quadratic is not None and not isinstance(self.theta_init, Nearby):
            penalty = held_by_penalty(objective.quadratic @ result.theta, self._gap(objective), objective.unit)
        return Standing(
            box=held_by_box(result.theta, self._bound),
            penalty=penalty,
            unidentified=numbers_of(np.abs(unidentified).max(axis=0, initial=0.0) > 0),
            unsettled=() if result.converged else numbers_of(result.move > self.tol),
            undetermined=() if open_way is None else numbers_of(largest_parts(open_way * objective.unit)),
        )

    def _gap(self, objective: Objective) -> Floats:
        """The slope of the likelihood where a model knows nothing, or at the start: what there is to learn."""
        plain = objective.penalised(None)
        nothing = plain(np.zeros(objective.mdp.n_features))
        return nothing.gradient if np.isfinite(nothing.value) else plain(self.theta_init_).gradient

    def _set_policy(self) -> None:
        """The policy, and the values it comes from, so that scores need not solve again."""
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
        """Those that the policy came from, while `reward_` is what it was."""
        known = self._values_ is not None and np.array_equal(self._valued_, self.reward_)
        return self._values_ if known else None

    @property
    def likelihood_(self) -> str:
        """What is made likely, "choices" or "counts"."""
        return made_likely(self.objective, self.entropy, self.solver)

    @property
    def reference_(self) -> Floats | None:
        """The base policy (S, A), where there is one."""
        self._fitted()
        return self.mdp_.reference

    def _unidentified(self, mdp: MDP, expert: Trajectories) -> Floats:
        """A basis (k, d) of the directions of θ that nothing identifies; found once for an MDP and its starts."""
        start = None if self.goals_ is not None else self.start_
        told: Any = self.goals_ if start is None else np.flatnonzero(start)
        key = f"unidentified {self.entropy} {start is None} {hashlib.sha256(told.tobytes()).hexdigest()}"
        return mdp.memo(key, lambda: unidentified(mdp, start, expert.goals, noncausal=self.entropy == "noncausal"))

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        if self.entropy == "noncausal":
            return log_likelihood(self.mdp_, self.policy_, trajectories)
        return reward_log_likelihood(self.mdp_, self.reward_, trajectories, self.start_, self._values())

    def scores(self, trajectories: Trajectories) -> Floats:
        """∇θ log p(ζ|θ) at `theta_` of every trajectory, (n, d): how each would change the weights."""
        self._fitted()
        if self.entropy != "causal":
            raise ValueError(f"scores of single trajectories go with entropy='causal', not {self.entropy!r}")
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
