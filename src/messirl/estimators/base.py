"""What the estimators share: arguments, the start, the solver, and what a fitted one offers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from messirl._checks import is_whole, number
from messirl._types import Floats, Ints
from messirl.estimators.policies import GoalPolicies
from messirl.estimators.standing import Standing, held_by_box, held_by_penalty, numbers_of, some_features
from messirl.objective import Objective, check_start
from messirl.optimise import EDGE, NEAR, ROUNDING, UNSETTLED, Result, lbfgs, paper
from messirl.planning import log_likelihood, sample, soft_policy
from messirl.planning.feasible import feasible_theta
from messirl.planning.identify import unidentified
from messirl.planning.likelihood import reward_log_likelihood
from messirl.planning.paths import Trips
from messirl.planning.policies import check_entropy, check_goal, policy_where_met
from messirl.planning.sampling import random_source
from messirl.problem.counts import check_trajectories, feature_counts
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.problem.units import feature_spread, offsets

SOLVERS = ("lbfgs", "paper")
NAMES_SHOWN = 6


class IdentifiabilityWarning(UserWarning):
    """θ is not determined by the features: some direction of it changes no trajectory's probability."""


@contextmanager
def quietly() -> Iterator[None]:
    """For fits among many: that one did not converge, or that θ is not identified, is not said each time."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, IdentifiabilityWarning):
            warnings.simplefilter("ignore", kind)
        yield


class IRLEstimator(BaseEstimator):
    """Common part of MaxEntIRL, MESSI and EMMaxEnt. Constructors store; `fit` checks."""

    def __init__(
        self,
        theta_max: float | None,
        entropy: str,
        solver: str,
        step_size: float,
        max_iter: int,
        tol: float,
        theta_init: Any,
        random_state: Any,
        callback: Any,
        warm_start: bool,
    ) -> None:
        self.theta_max = theta_max
        self.entropy = entropy
        self.solver = solver
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.theta_init = theta_init
        self.random_state = random_state
        self.callback = callback
        self.warm_start = warm_start

    # -- fitting ------------------------------------------------------------------------------------------------

    def _check_arguments(self) -> None:
        check_entropy(self.entropy)
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r}: choose 'lbfgs' (the exact optimum) or 'paper' (Alg. 1)")
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

    def _read(self, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> tuple[Trajectories, Floats]:
        """Σ = Σ* ∪ Σ̃, experts first, checked, and its feature counts."""
        check_trajectories(mdp, expert, "expert")
        if len(expert) == 0:
            raise ValueError("expert is empty: at least one trajectory is needed")
        if unlabelled is None:
            return expert, feature_counts(mdp, expert)
        check_trajectories(mdp, unlabelled, "unlabelled")
        check_start(mdp, unlabelled, "unlabelled")
        if len(unlabelled) == 0:
            raise ValueError("unlabelled is empty: pass None to fit without unlabelled trajectories")
        if (expert.goals is None) != (unlabelled.goals is None):
            raise ValueError("expert and unlabelled must both have goals, or neither")
        counts = np.concatenate([feature_counts(mdp, expert), feature_counts(mdp, unlabelled)])
        return expert + unlabelled, counts

    def _theta_start(self, mdp: MDP, objective: Objective) -> Floats:
        given = self.theta_init
        if self.warm_start and hasattr(self, "theta_"):
            return np.asarray(np.clip(self.theta_, -self._bound, self._bound))
        if isinstance(given, str):
            if given != "random":
                raise ValueError(f"theta_init={given!r}: give an array, 'random' or None for zeros")
            drawn = random_source(self.random_state).normal(size=mdp.n_features)
            return np.asarray(np.clip(drawn, -self._bound, self._bound))
        if given is not None:
            theta = np.asarray(given, dtype=np.float64)
            if theta.shape != (mdp.n_features,) or not np.isfinite(theta).all():
                raise ValueError(f"theta_init must be {mdp.n_features} finite numbers, one a feature")
            if np.abs(theta).max() > self._bound:
                raise ValueError(f"theta_init goes up to {np.abs(theta).max():g}, beyond theta_max={self._bound:g}")
            if mdp.horizon is None and mdp.discount == 1.0 and not np.isfinite(objective(theta).value):
                raise ValueError(self._no_value_at(theta, mdp, objective))
            return theta
        theta = np.zeros(mdp.n_features)
        if mdp.horizon is not None or mdp.discount < 1.0 or np.isfinite(objective(theta).value):
            return theta
        found = feasible_theta(mdp, self._bound, objective.planner.live())
        if found is None or not np.isfinite(objective(found).value):
            raise ValueError(self._no_start(mdp, objective))
        return found

    def _no_start(self, mdp: MDP, objective: Objective) -> str:
        """Why no θ in the box gives finite values: the units of the features, or the features themselves."""
        wanted = None if self._bound == np.inf else feasible_theta(mdp, np.inf, objective.planner.live())
        if wanted is not None and np.isfinite(objective(wanted).value):
            unit, large = feature_spread(mdp), np.flatnonzero(np.abs(wanted) > self._bound)
            first = int(large[np.argmax(np.abs(wanted[large]))]) if large.size else int(np.argmax(np.abs(wanted)))
            return (
                f"with theta_max={self._bound:g} no step can cost enough for the values to be finite (discount=1): it "
                f"takes a weight of {wanted[first]:.3g} on {mdp.feature_label(first)}, whose values spread by "
                f"{unit[first]:.2g}. Give that feature in a smaller unit, so that its values are larger, or raise "
                "theta_max"
            )
        return (
            "no theta was found for which the model has finite values: with discount=1 every step on a cycle must be "
            "able to cost something; add a constant feature, or use a discount below 1"
        )

    def _no_value_at(self, theta: Floats, mdp: MDP, objective: Objective) -> str:
        """Which features to make more negative, judged by a θ that works."""
        found = feasible_theta(mdp, self._bound, objective.planner.live())
        text = "at theta_init the model has no finite value: a trajectory that goes on and on is worth infinitely much"
        if found is None:
            return f"{text}; leave theta_init out"
        lower = [j for j in range(mdp.n_features) if found[j] < theta[j]]
        names = ", ".join(mdp.feature_label(j) for j in lower[:NAMES_SHOWN])
        more = f" and {len(lower) - NAMES_SHOWN} more" if len(lower) > NAMES_SHOWN else ""
        return (
            f"{text}; make the weights of {names}{more} more negative ({found[lower[0]]:.3g} for the first does), "
            "or leave theta_init out"
        )

    def _optimise(self, objective: Objective, theta: Floats, max_iter: int) -> Result:
        shared: dict[str, Any] = {
            "bound": self._bound,
            "max_iter": max_iter,
            "tol": float(self.tol),
            "unit": objective.unit,
            "callback": self.callback,
        }
        if self.solver == "paper":
            return paper(objective, theta, step_size=float(self.step_size), **shared)
        return lbfgs(objective, theta, scale=objective.scale, **shared)

    def _finish(
        self, mdp: MDP, expert: Trajectories, objective: Objective, theta_start: Floats, result: Result
    ) -> Self:
        self.mdp_ = mdp
        self.n_features_in_ = mdp.n_features
        self.theta_init_ = theta_start
        self.theta_ = result.theta
        self.reward_ = mdp.reward(result.theta)
        self.feature_counts_ = result.point.expected_counts
        self.visitation_ = result.point.visitation
        self.objective_ = float(result.history.objective[-1])
        self.history_ = result.history
        self.n_iter_ = int(result.history.iteration[-1])
        self.converged_ = result.converged
        self.termination_ = result.reason
        self.gradient_norm_ = result.gradient_norm
        self.quadratic_ = objective.quadratic
        start = objective.planner.start
        if isinstance(start, Trips):
            self.start_ = np.asarray(start.starts.sum(axis=0)).ravel()
            self.goals_: Ints | None = np.array(start.goals)
        else:
            self.start_ = start
            self.goals_ = None
        self._set_policy()
        unidentified = self._unidentified(mdp, expert)
        self.standing_ = self._standing(objective, result, unidentified)
        if not result.converged:
            warnings.warn(self._not_converged(result), ConvergenceWarning, stacklevel=3)
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

    def _standing(self, objective: Objective, result: Result, unidentified: Floats) -> Standing:
        theta, point = result.theta, result.point
        penalty: tuple[int, ...] = ()
        if objective.quadratic is not None:
            pull = objective.quadratic @ theta
            penalty = held_by_penalty(pull, self._gap(objective), objective.unit)
        return Standing(
            box=held_by_box(theta, point.gradient, self._bound),
            penalty=penalty,
            unidentified=numbers_of(np.abs(unidentified).max(axis=0, initial=0.0) > 0),
            unsettled=() if result.converged else numbers_of(result.move > self.tol),
        )

    def _gap(self, objective: Objective) -> Floats:
        """How far the expert's counts are from those of a model that knows nothing, or of the start."""
        nothing = objective(np.zeros(objective.mdp.n_features))
        if not np.isfinite(nothing.value):
            nothing = objective(self.theta_init_)
        return np.asarray(objective.target - nothing.expected_counts)

    def _not_converged(self, result: Result) -> str:
        worst = int(np.argmax(result.move))
        said = (
            f"{type(self).__name__} did not converge: {result.reason}. With a projected gradient of "
            f"{result.gradient_norm:.2g} the weight of {self.mdp_.feature_label(worst)} would still move by "
            f"{result.move[worst]:.2g} of its size or its unit, where tol asks for {self.tol:.2g}"
        )
        loose = self.standing_.unsettled
        if not loose:
            return said
        if result.reason == ROUNDING and result.move[worst] <= NEAR:  # the numbers are in the way, not the data
            return f"{said}. The values allow no more: take a tol above that, or a smaller discount where it is near 1"
        said = f"{said}. Not settled: {some_features(self.mdp_, loose)}"
        if result.reason not in (EDGE, UNSETTLED, ROUNDING):
            return f"{said}: allow more iterations, or add a penalty if they run on for ever"
        return (
            f"{said}. Hardly anything in the data holds them: add a penalty, or trajectories that say more about them"
        )

    def _set_policy(self) -> None:
        if self.goals_ is not None:
            self.policy_: Any = GoalPolicies(self.mdp_, self.reward_, self.goals_, self.start_)
        else:
            self.policy_ = np.ascontiguousarray(self._policy())

    def _policy(self) -> Floats:
        if self.entropy != "causal":
            return soft_policy(self.mdp_, self.reward_, self.entropy)
        return policy_where_met(self.mdp_, self.reward_, self.start_)

    def _unidentified(self, mdp: MDP, expert: Trajectories) -> Floats:
        """A basis (k, d) of the directions of θ that nothing identifies; found once for an MDP and its starts."""
        start = None if self.goals_ is not None else self.start_
        key = "unidentified " + self.entropy + (repr(np.flatnonzero(start).tobytes()) if start is not None else "")
        if self.goals_ is not None:
            key += repr(self.goals_.tobytes())
        return mdp.memo(key, lambda: unidentified(mdp, start, expert.goals, noncausal=self.entropy == "noncausal"))

    # -- using --------------------------------------------------------------------------------------------------

    def _fitted(self) -> None:
        if not hasattr(self, "theta_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    def score(self, trajectories: Trajectories) -> float:
        """Mean log-probability per step, pooled over trajectories: log π(a|s), or log Σ_a π(a|s) p(s'|s,a)."""
        self._fitted()
        check_trajectories(self.mdp_, trajectories)
        steps = int((trajectories.lengths - 1).sum()) if len(trajectories) else 0
        if steps == 0:
            raise ValueError("these trajectories make no step: there is nothing to score")
        if isinstance(self.policy_, Mapping) == (trajectories.goals is None):
            had = "the fit had goals, and the trajectories have none"
            raise ValueError(had if trajectories.goals is None else "the trajectories have goals, and the fit had none")
        if self.entropy == "noncausal":
            logs = log_likelihood(self.mdp_, self.policy_, trajectories)
        else:
            logs = reward_log_likelihood(self.mdp_, self.reward_, trajectories, self.start_)
        return float(logs.sum() / steps)

    def predict_proba(self, states: npt.ArrayLike, step: int | None = None, goal: int | None = None) -> Floats:
        """π(·|s) of every state given, (n, A). With a horizon say which step, with goals which goal."""
        self._fitted()
        at = np.asarray(states)
        at = at.astype(np.int64) if at.size == 0 else at
        if at.dtype.kind not in "iu" or at.ndim != 1:
            raise TypeError("states must be a flat sequence of whole numbers")
        if at.size and not (at.min() >= 0 and at.max() < self.mdp_.n_states):
            raise ValueError(f"states must be among 0 … {self.mdp_.n_states - 1}")
        return np.array(self._one_policy(step, goal)[at])

    def _towards(self, goal: int | None) -> Floats:
        """The policy of the fit, or towards the goal asked for."""
        if (goal is None) == isinstance(self.policy_, Mapping):
            raise ValueError(
                "say goal=, towards which state" if goal is None else "this fit has no goals: leave goal out"
            )
        check_goal(self.mdp_, goal)
        return np.asarray(self.policy_ if goal is None else self.policy_[goal])

    def _one_policy(self, step: int | None, goal: int | None) -> Floats:
        policy = self._towards(goal)
        if self.mdp_.horizon is None:
            if step is not None:
                raise ValueError("this fit has no horizon: leave step out")
            return policy
        if step is None:
            raise ValueError(f"say step=, 0 to {len(policy) - 1}: the policy depends on it")
        if not is_whole(step):
            raise TypeError(f"step must be a whole number, not {step!r}")
        if not 0 <= step < len(policy):
            raise ValueError(f"step {step} is not one of 0 … {len(policy) - 1}")
        return np.asarray(policy[step])

    def sample(
        self,
        n: int,
        length: int | None = None,
        *,
        goal: int | None = None,
        start: npt.ArrayLike | None = None,
        random_state: Any = None,
    ) -> Trajectories:
        """n trajectories of the fitted policy, from the starts of the fit."""
        self._fitted()
        policy = self._towards(goal)
        seed = self.random_state if random_state is None else random_state
        begin = self.start_ if start is None else start
        return sample(self.mdp_, policy, n, length, seed, goal=goal, start=begin)

    def save(self, path: Any) -> None:
        """Write the fitted model to one file that `messirl.load` reads."""
        from messirl.estimators.persistence import save

        self._fitted()
        save(self, path)
