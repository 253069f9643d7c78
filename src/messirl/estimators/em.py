"""η-EM-MaxEnt (Eq. 9): MaxEnt-IRL on all trajectories, each weighted by its likelihood under the current θ.

E-step:  w_ζ ∝ exp(θᵀf_ζ − V_θ(s_0)) over Σ = Σ* ∪ Σ̃     (Π p does not depend on θ and is left out)
M-step:  η gradient steps on L with f* = Σ_ζ w_ζ f_ζ
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.lib.recfunctions as rfn
import numpy.typing as npt
from scipy.special import softmax

from messirl._parameters import default
from messirl._types import Floats
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._initialization import WarmStart
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._prior_policy import prior_policy_counts
from messirl.estimators._search import PreparedFit, run_solver
from messirl.estimators._streaming import refuse_streamed
from messirl.objective import Evaluation, Objective
from messirl.optim.box_search import Callback, Result
from messirl.optim.lockstep import EvaluationRequest
from messirl.planning import start_values
from messirl.planning.likelihood import reward_log_likelihood


@dataclass(eq=False, repr=False, kw_only=True)
class EMMaxEnt(MaximumEntropy):
    """η-EM-MaxEnt (Eq. 9): MaxEnt-IRL on all trajectories, each weighted by its likelihood under the current θ.

    `max_iter` limits the total number of solver iterations; the default solver takes the paper's fixed gradient steps.

    Parameters
    ----------
    steps_per_round : int
        η, the number of iterations between two updates of the weights.

    Attributes
    ----------
    weights_ : array (n,)
        The last weights of all trajectories, experts first.
    effective_sample_size_ : float
        1/Σ w², the effective number of trajectories; `history_` has it for every iteration.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 4, Eq. 9.

    Examples
    --------
    Six states in a row; the experts prefer the right end, the other trajectories are of unknown quality.

    >>> import numpy as np
    >>> from messirl import MDP, EMMaxEnt, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, start=np.ones(6), random_state=1)
    >>> model = EMMaxEnt(objective="counts", solver="lbfgs").fit(mdp, expert, others)
    >>> model.theta_.round(2), model.converged_
    (array([2.78]), True)
    """

    _arrays: ClassVar[tuple[str, ...]] = ("weights_",)

    steps_per_round: int = default("steps_per_round")
    solver: str = default("solver", "EMMaxEnt")

    @merge_truncation_warnings()
    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: TrajectoriesLike | None = None) -> Self:
        """Fit to the expert's and the unlabelled trajectories together."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        return self._finish(*self._prepare(mdp, expert, unlabelled).found())

    def _prepare(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> PreparedFit:
        self._check_arguments()
        refuse_streamed(unlabelled, "EMMaxEnt", "reweights every trajectory in each round")
        eta = self.steps_per_round
        mdp, data = self._read(mdp, expert, unlabelled)
        everyone, counts = data.trajectories, self._counts(mdp, data, penalised=False)

        def weighted(weights: Floats) -> Objective:
            return self._objective(mdp, everyone, counts, None, weights, len(expert))

        first = weighted(np.full(len(everyone), 1.0))
        start = self._warm_start(mdp, first)

        def weights_at(theta: Floats) -> Floats:
            return e_step(mdp, theta, self.entropy, everyone, counts)

        return PreparedFit(mdp, everyone, first, start, lambda: self._rounds(start, eta, weights_at, weighted))

    def _rounds(
        self,
        start: WarmStart,
        eta: int,
        weights_at: Callable[[Floats], Floats],
        weighted: Callable[[Floats], Objective],
    ) -> Generator[EvaluationRequest, Evaluation, tuple[Objective, Result]]:
        """Alternate the E-step and η iterations of the solver."""
        theta = start.theta
        parts: list[np.ndarray[Any, Any]] = []
        done, result = 0, None
        while result is None or done < self.max_iter:
            weights = weights_at(theta)
            objective = weighted(weights)
            left = min(eta, self.max_iter - done)
            settings = replace(self._settings, max_iter=left, callback=self._numbered(done))
            result = yield from run_solver(objective, start, settings)
            steps = result.iterations
            spent = int(parts[-1]["evaluations"][-1]) if parts else 0
            if parts and steps == 0:  # same iteration, new weights
                parts[-1] = parts[-1][:-1]
            keep_first = not parts or steps == 0
            parts.append(_rows(result, done, spent, 1.0 / float(weights @ weights), keep_first=keep_first))
            moved = np.abs(result.theta - theta) / np.maximum(np.abs(result.theta), 1.0 / objective.unit)
            settled = result.converged and bool(moved.max() <= self.tol)  # also under the new weights
            done, theta, start = done + steps, result.theta, WarmStart(result.theta)
            if settled or steps == 0 or result.stopped:
                break
        self.weights_ = weights
        history = np.concatenate(parts).view(np.recarray)
        reason = f"all {done} steps were taken" if done == self.max_iter and not result.stopped else result.reason
        return objective, replace(result, history=history, reason=reason, converged=settled)

    @property
    def effective_sample_size_(self) -> float:
        """1/Σ w², the effective number of trajectories under the last weights."""
        return 1.0 / float(self.weights_ @ self.weights_)

    def _numbered(self, done: int) -> Callback | None:
        """Return the callback for a round after `done` iterations, with consecutive numbers and no repeated start."""
        callback: Callback | None = self.callback
        if callback is None or done == 0:
            return callback

        def numbered(state: dict[str, Any]) -> object:
            return None if state["iteration"] == 0 else callback({**state, "iteration": state["iteration"] + done})

        return numbered


def e_step(mdp: MDP, theta: Floats, entropy: str, everyone: Trajectories, counts: Floats | None) -> Floats:
    """Normalise P(ζ|θ) over Σ in log space: w_ζ ∝ exp(θᵀf_ζ − V_θ(s_0)) or, without counts, exp Σ_t log π(a_t|s_t)."""
    reward = mdp.reward(theta)
    if counts is None:
        begin = np.bincount(everyone.first, minlength=mdp.n_states).astype(np.float64)
        return np.asarray(softmax(reward_log_likelihood(mdp, reward, everyone, begin)))
    log_weight = counts @ theta - start_values(mdp, reward, entropy, everyone)
    if mdp.log_reference is not None:  # acts as a further feature
        log_weight += prior_policy_counts(mdp, everyone)
    return np.asarray(softmax(log_weight))


def _rows(result: Result, done: int, spent: int, size: float, *, keep_first: bool) -> Any:
    """Return the history of a round after `done` iterations and `spent` evaluations, with its effective sample size."""
    history = np.array(result.history if keep_first else result.history[1:])
    history["iteration"] += done
    history["evaluations"] += spent
    return rfn.append_fields(history, "effective_sample_size", np.full(len(history), size), usemask=False)
