"""Base class of all estimators: a fitted policy with scores, predictions and samples.

The class hierarchy: `PolicyEstimator` ← `RewardEstimator` (_reward_base.py), which adds θ ← `MaximumEntropy`
(_maxent_base.py), which adds a stochastic model of the expert, a solver and a bound on θ. A method that finds a
policy without a reward derives from the first; its `fit` sets `mdp_`, `policy_`, `start_` and `converged_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._checks import is_whole
from messirl._docstrings import inherit_documentation
from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators.persistence import SavableEstimator
from messirl.planning import log_likelihood, sample
from messirl.planning._validation import check_goal


class PolicyEstimator(SavableEstimator):
    """A policy learned for an MDP, with its predictions, scores and file format.

    Attributes
    ----------
    mdp_ : MDP
        The MDP that was fitted.
    policy_ : array (S, A), (H − 1, S, A) with a horizon, or a mapping from goal to (S, A)
        π(a|s); rows of terminal states are zero. With a horizon, if all steps would take more than half a gigabyte, a
        sequence of (S, A), each computed on access.
    start_ : array (S,)
        The distribution of first states, from which `sample` draws.
    converged_ : bool
        Whether the search converged.
    goals_ : array of int or None
        The distinct goals of the experts, if they have goals.
    """

    mdp_: MDP
    policy_: Any
    start_: Floats
    converged_: bool
    goals_: Ints | None = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_documentation(cls)

    def score(self, trajectories: TrajectoriesLike) -> float:
        """Return the mean log-probability per step over all trajectories: log π(a|s), or log Σ_a π(a|s) p(s'|s,a)."""
        return self._scored(as_trajectories(trajectories))[0]

    def _scored(self, trajectories: Trajectories) -> tuple[float, Floats]:
        """Return the score, and the log-probability of each trajectory, (n,)."""
        self._fitted()
        check_trajectories(self.mdp_, trajectories)
        steps = int((trajectories.lengths - 1).sum()) if len(trajectories) else 0
        if steps == 0:
            raise ValueError("these trajectories make no step: there is nothing to score")
        if isinstance(self.policy_, Mapping) == (trajectories.goals is None):
            had = "the fit had goals, and the trajectories have none"
            raise ValueError(had if trajectories.goals is None else "the trajectories have goals, and the fit had none")
        logs = self._log_likelihood(trajectories)
        return float(logs.sum() / steps), logs

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        """Return the log-probability of each trajectory, (n,)."""
        return log_likelihood(self.mdp_, self.policy_, trajectories)

    def predict_proba(self, states: npt.ArrayLike, step: int | None = None, goal: int | None = None) -> Floats:
        """Return π(·|s) of the given states, (n, A). A horizon requires `step`, goals require `goal`."""
        self._fitted()
        if isinstance(states, Trajectories):
            raise TypeError("states must be a flat sequence of whole numbers, not Trajectories: give their .states")
        at = np.asarray(states)
        at = at.astype(np.int64) if at.size == 0 else at
        if at.dtype.kind not in "iu" or at.ndim != 1:
            raise TypeError("states must be a flat sequence of whole numbers")
        if at.size and not (at.min() >= 0 and at.max() < self.mdp_.n_states):
            raise ValueError(f"states must be among 0 … {self.mdp_.n_states - 1}")
        return np.array(self._one_policy(step, goal)[at])

    def _towards(self, goal: int | None) -> Any:
        """Return the fitted policy or, with goals, the policy towards `goal`."""
        if (goal is None) == isinstance(self.policy_, Mapping):
            raise ValueError(
                "this fit has goals: pass goal=, a state" if goal is None else "this fit has no goals: leave goal out"
            )
        check_goal(self.mdp_, goal)
        return self.policy_ if goal is None else np.asarray(self.policy_[goal])

    def _one_policy(self, step: int | None, goal: int | None) -> Floats:
        policy = self._towards(goal)
        if self.mdp_.horizon is None:
            if step is not None:
                raise ValueError("this fit has no horizon: leave step out")
            return np.asarray(policy)
        if step is None:
            raise ValueError(f"this fit has a horizon: pass step=, from 0 to {len(policy) - 1}")
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
        """Sample n trajectories of the fitted policy, from `start_` unless `start` (S,) is given."""
        self._fitted()
        policy = self._towards(goal)
        seed = getattr(self, "random_state", None) if random_state is None else random_state
        begin = self.start_ if start is None else start
        return sample(self.mdp_, policy, n, length, seed, goal=goal, start=begin)

    def _check_shapes(self, shape: tuple[int, ...], *names: str) -> None:
        """Refuse fitted arrays from a file that do not have this shape or are not finite."""
        for name in names:
            array = getattr(self, name, None)
            if array is not None and (
                array.shape != shape or array.dtype.kind not in "biuf" or not np.isfinite(array).all()
            ):
                raise ValueError(f"its {name} does not fit its MDP")
