"""Mixture model by EM: the groups of trajectories are estimated together with the reward of each group.

    p(ζ) = Σ_k w_k p(ζ|θ_k)

    F = Σ_ζ log Σ_{k may be ζ's} w_k p(ζ|θ_k) − N Σ_k ( λ R(θ_k) + prior of θ_k )

Trajectories whose group is known are pinned to it: the sum over k has this one term. By default the experts are pinned
to the first group, and the model estimates which unlabelled trajectories belong to it.

E-step:  r_ζk = w_k p(ζ|θ_k) / Σ_j w_j p(ζ|θ_j)                the responsibilities, in log space
M-step:  w_k = Σ_ζ r_ζk / n,  θ_k: some ascent steps on Σ_ζ r_ζk log p(ζ|θ_k) less its penalty, from the last θ_k

so that F never decreases. N is the number of all trajectories on the scale of J; F/N of one group is J of MESSI with
`unlabelled_weight=1`. F has several maxima: the best of several random starts is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.lib.recfunctions as rfn
import numpy.typing as npt
from scipy.special import logsumexp

from messirl._checks import is_whole
from messirl._parameters import default
from messirl._types import Flags, Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._multi_theta import MultiThetaMESSI, as_labels
from messirl.estimators._search import FitResult
from messirl.estimators._streaming import refuse_streamed
from messirl.objective import Objective
from messirl.optim.box_search import HISTORY, STOPPED_BY_CALLBACK, Result, run_with_function
from messirl.optim.lbfgs import seek_maximum
from messirl.planning.likelihood import reward_log_likelihood
from messirl.planning.sampling import random_source

FIRST = 20  # rounds of every start before the best one continues
CLIMB = 5, 20  # steps of a search in each of these rounds, and in those of the best start
EMPTY = 1e-6  # number of trajectories below which a group is not updated
SETTLED = 1e-4  # largest change of a responsibility in a round at convergence


@dataclass(eq=False, repr=False)
class MixtureMESSI(MultiThetaMESSI):
    """A mixture model fitted by EM, with one θ per group: experts are pinned to a group, the others are assigned.

    maximise Σ log Σ_k w_k p(ζ|θ_k), less MESSI's penalty on every θ_k. `theta_`, `policy_` and their derived values
    are those of the first group, to which the experts belong unless `fit` is given groups; `score` is of the mixture.
    Needs objective="choices".

    Parameters
    ----------
    n_groups : int
        K, the number of groups.
    n_starts : int
        Number of random starts, of which the best is taken.
    max_rounds : int
        Maximum number of EM rounds.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Random source of the starts.
    callback : callable, optional
        Called with a dict after every round of every start, as in other searches after every iteration; returning True
        stops the search.

    Attributes
    ----------
    weights_ : array (K,)
        w, the share of each group.
    responsibilities_ : array (n, K)
        Probability that each trajectory, experts first, belongs to each group.
    effective_sizes_ : array (K,)
        Effective sample size of each group, (Σ r)²/Σ r².
    log_likelihood_ : float
        Σ log Σ_k w_k p(ζ|θ_k) over all trajectories; log w_k p(ζ|θ_k) for pinned ones.
    objective_ : float
        F/N.
    n_iter_ : int
        Number of EM rounds.
    history_ : record array
        Iteration (round), objective, theta_norm, gradient_norm and evaluations of every round, and the log-likelihood.

    References
    ----------
    Babeş-Vroman, Marivate, Subramanian, Littman: Apprenticeship Learning About Multiple Intentions, ICML 2011.
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    section 6, names several experts as a direction.

    Examples
    --------
    Six states in a row; the experts go right. Half of the unlabelled trajectories go right too, the other half go left.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> from messirl.estimators import MixtureMESSI
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> there = sample(mdp, soft_policy(mdp, mdp.reward([3.0])), 13, start=np.ones(6), random_state=0)
    >>> back = sample(mdp, soft_policy(mdp, mdp.reward([-3.0])), 10, start=np.ones(6), random_state=1)
    >>> model = MixtureMESSI(lambda0=0.0, random_state=0).fit(mdp, there[:3], there[3:] + back)
    >>> model.thetas_.round(1).ravel(), model.weights_.round(2)
    (array([ 2.4, -2.8]), array([0.57, 0.43]))
    """

    _arrays: ClassVar[tuple[str, ...]] = ("weights_", "responsibilities_")
    _facts: ClassVar[tuple[str, ...]] = ("log_likelihood_",)

    n_groups: int = field(default=default("n_groups"), kw_only=True)
    n_starts: int = field(default=default("n_starts"), kw_only=True)
    max_rounds: int = field(default=default("max_rounds", "MixtureMESSI"), kw_only=True)

    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: TrajectoriesLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to all trajectories.

        groups : (l,) the group of each expert, 0 … K − 1, or −1 if unknown. None: experts belong to group 0 if there
            are unlabelled trajectories, and to unknown groups otherwise
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        return self._finish(*self._solve(mdp, expert, unlabelled, groups))

    def _solve(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> FitResult:
        refuse_streamed(unlabelled, "MixtureMESSI", "reweights every trajectory in each round")
        mdp, data, _, penalty, quadratic = self._measured(mdp, expert, unlabelled)
        everyone = data.trajectories
        may = self._pinned(groups, len(expert), len(everyone))
        together = self._objective(mdp, everyone, None, None, None, len(expert))
        quadratic = together.with_prior(quadratic, self.theta_prior)
        problem = EMProblem(mdp, everyone, may, quadratic, together.size)
        theta = self._theta_start(mdp, together.penalised(quadratic))
        source, best = random_source(self.random_state), None
        for _ in range(self.n_starts):
            begin = problem.initial_state(source, np.tile(theta, (self.n_groups, 1)))
            found = self._rounds(problem, begin, FIRST, CLIMB[0])
            best = found if best is None or found.objective > best.objective else best
            if found.stopped:
                break
        assert best is not None, "n_starts is at least 1"
        if not found.stopped:
            best = self._rounds(problem, best, self.max_rounds, CLIMB[1])
        self.penalty_matrix_, self.thetas_, self.weights_ = penalty, best.thetas, best.weights
        self.responsibilities_, self.log_likelihood_ = best.responsibilities, best.log_likelihood
        objective = self._weighted(problem, best.responsibilities[:, 0], len(expert))
        result = replace(best.first, history=best.history, converged=best.settled, theta=best.thetas[0])
        reason = "the responsibilities converged" if best.settled else f"max_rounds={self.max_rounds} rounds were done"
        reason = STOPPED_BY_CALLBACK if best.stopped or found.stopped else reason
        result = replace(result, point=objective(best.thetas[0]), reason=reason)
        return mdp, everyone, objective, theta, result

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.likelihood_ != "choices":
            raise ValueError(f"objective={self.likelihood_!r}: MixtureMESSI needs objective='choices'")

    def _pinned(self, groups: npt.ArrayLike | None, n_expert: int, n: int) -> Flags:
        """Flag the groups that each trajectory may belong to, (n, K)."""
        may = np.ones((n, self.n_groups), dtype=bool)
        labels = np.full(n_expert, 0 if n > n_expert else -1)
        if groups is not None:
            labels = as_labels(groups, n_expert)
            if labels.dtype.kind not in "iu" or labels.min() < -1 or labels.max() >= self.n_groups:
                raise ValueError(f"groups must be whole numbers 0 … {self.n_groups - 1}, or −1 if unknown")
        known = np.flatnonzero(labels >= 0)
        may[known] = False
        may[known, labels[known]] = True
        return may

    def _weighted(self, problem: EMProblem, weight: Floats, n_expert: int) -> Objective:
        """Return J of one group, weighted by its responsibilities: N/N_k times its part of F."""
        objective = self._objective(problem.mdp, problem.everyone, None, None, weight, n_expert)
        if problem.quadratic is None:
            return objective
        return objective.penalised(problem.size / objective.size * problem.quadratic)

    def _rounds(self, problem: EMProblem, state: EMState, most: int, climb: int) -> EMState:
        """Run rounds of EM until the responsibilities converge."""
        for _ in range(most):
            thetas, results = state.thetas.copy(), []
            for k, weight in enumerate(state.responsibilities.T):
                if weight.sum() > EMPTY:
                    objective = self._weighted(problem, weight, len(problem.everyone))
                    options: dict[str, Any] = {"bound": self._bound, "tol": float(self.tol), "unit": objective.unit}
                    search = seek_maximum(
                        thetas[k],
                        max_iter=min(climb, self.max_iter),
                        scale=objective.scale,
                        confirm_by_newton=False,
                        **options,
                    )
                    results.append(run_with_function(objective, search))
                    thetas[k] = results[-1].theta
            before, state = state, problem.after(state, thetas, results)
            moved = float(np.abs(state.responsibilities - before.responsibilities).max())
            state.settled = moved <= SETTLED and all(one.converged for one in results)
            state.stopped = self.callback is not None and bool(self.callback(state.callback_arguments()))
            if state.settled or state.stopped:
                break
        return state

    def score(self, trajectories: TrajectoriesLike, group: int | None = None) -> float:
        """Return the mean of log Σ_k w_k p(ζ|θ_k) per step or, with `group`, of log p(ζ|θ_k)."""
        trajectories = as_trajectories(trajectories)
        if group is None:
            return super().score(trajectories)
        one = self._of(group)
        one.thetas_, one.weights_ = one.theta_[None], np.ones(1)
        return super(MultiThetaMESSI, one).score(trajectories)

    def _log_likelihood(self, trajectories: Trajectories) -> Floats:
        return np.asarray(logsumexp(self._log_joint(trajectories), axis=1))

    def _log_joint(self, trajectories: Trajectories) -> Floats:
        return log_joint(self.mdp_, trajectories, self.thetas_, self.weights_, self.start_)

    def predict_groups(self, trajectories: Trajectories) -> Floats:
        """Return the probability that each trajectory, of unknown group, belongs to each group, (n, K)."""
        self._fitted()
        check_trajectories(self.mdp_, trajectories)
        joint = self._log_joint(trajectories)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    @property
    def effective_sizes_(self) -> Floats:
        """Effective sample size of each group, (K,)."""
        return np.asarray(self.responsibilities_.sum(axis=0) ** 2 / (self.responsibilities_**2).sum(axis=0))

    def _number(self, group: Any) -> int | None:
        if group is None:
            return None
        if not is_whole(group) or not 0 <= group < len(self.thetas_):
            raise ValueError(f"group {group!r} is not one of 0 … {len(self.thetas_) - 1}")
        return int(group)

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        k = len(self.thetas_)
        if self.weights_.shape != (k,) or self.responsibilities_.ndim != 2 or self.responsibilities_.shape[1] != k:
            raise ValueError("its weights_, responsibilities_ and thetas_ differ in their number of groups")


def log_joint(mdp: MDP, trajectories: Trajectories, thetas: Floats, weights: Floats, start: Floats) -> Floats:
    """Return log w_k p(ζ|θ_k), (n, K)."""
    logs = [reward_log_likelihood(mdp, mdp.reward(theta), trajectories, start) for theta in thetas]
    with np.errstate(divide="ignore"):  # a group may be empty
        return np.asarray(np.stack(logs, axis=1) + np.log(weights))


@dataclass(eq=False)
class EMState:
    """State of EM: θ_k, w_k, responsibilities, F/N, the likelihood, and the history of rounds."""

    thetas: Floats
    weights: Floats
    responsibilities: Floats
    objective: float = -np.inf
    log_likelihood: float = -np.inf
    history: Any = None
    first: Any = None
    settled: bool = False
    stopped: bool = False

    def callback_arguments(self) -> dict[str, Any]:
        """Return the arguments of the callback after a round; θ is that of the first group."""
        last = {name: self.history[name][-1].item() for name in HISTORY.names or ()}
        return {**last, "theta": self.thetas[0], "point": self.first.point}


@dataclass(frozen=True, eq=False)
class EMProblem:
    """All trajectories, the groups that each may belong to (n, K), and the penalty (d, d) on every θ_k, N times."""

    mdp: MDP
    everyone: Trajectories
    allowed_groups: Flags
    quadratic: Floats | None
    size: float

    def initial_state(self, source: np.random.RandomState, thetas: Floats) -> EMState:
        """Draw random responsibilities, concentrated on one group each; pinned ones stay."""
        drawn = source.dirichlet(np.full(self.allowed_groups.shape[1], 0.3), size=len(self.allowed_groups)) + 1e-9
        r = np.where(self.allowed_groups, drawn, 0.0)
        r /= r.sum(axis=1, keepdims=True)
        return EMState(thetas, r.mean(axis=0), r)

    def e_step(self, thetas: Floats, weights: Floats) -> tuple[Floats, float]:
        """Return the responsibilities (n, K), and the total log-likelihood."""
        begin = np.bincount(self.everyone.first, minlength=self.mdp.n_states).astype(np.float64)
        joint = np.where(self.allowed_groups, log_joint(self.mdp, self.everyone, thetas, weights, begin), -np.inf)
        total = logsumexp(joint, axis=1, keepdims=True)
        return np.exp(joint - total), float(total.sum())

    def after(self, state: EMState, thetas: Floats, results: list[Result]) -> EMState:
        """Return the state after an M-step with these θ_k."""
        weights = state.responsibilities.mean(axis=0)
        r, log_likelihood = self.e_step(thetas, weights)
        value = log_likelihood / self.size
        if self.quadratic is not None:
            value -= 0.5 * float(np.einsum("ki,ij,kj->", thetas, self.quadratic, thetas))
        row = np.zeros(1, dtype=HISTORY)
        done = state.history
        row["iteration"] = 1 if done is None else done["iteration"][-1] + 1
        row["evaluations"] = sum(int(one.history.evaluations[-1]) for one in results)
        row["evaluations"] += 0 if done is None else done["evaluations"][-1]
        row["objective"], row["theta_norm"] = value, np.abs(thetas).max()
        row["gradient_norm"] = max(one.gradient_norm for one in results)
        row = rfn.append_fields(row, "log_likelihood", np.array([log_likelihood]), usemask=False)
        history = (row if done is None else np.concatenate([done, row])).view(np.recarray)
        return EMState(thetas, weights, r, value, log_likelihood, history, results[0])
