"""LPAL, Syed, Bowling and Schapire 2008: the game of _zero_sum_game.py as one linear programme over discounted visits.

    max  B     such that   B ≤ g_iᵀ(Fᵀx − f*)  for every i
                           Σ_a x(s, a) = start(s) + γ Σ_{s',a'} p(s|s', a') x(s', a')  for every s that does not end
                           x ≥ 0

π(a|s) = x(s, a) / Σ_b x(s, b), then shared evenly among tied actions
(_action_ties.py). With a horizon x has one more
index, the step, and x_t flows into x_{t+1}. State features also count the last state: F collects them at the successors
of transitions, and at the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from messirl._types import Flags, Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import TrajectoriesLike, as_trajectories
from messirl.estimators._action_ties import shared_evenly
from messirl.estimators._apprenticeship import ApprenticeshipEstimator
from messirl.estimators._input_checks import check_bounded, mean_counts, read_sets
from messirl.estimators._zero_sum_game import stakes, value_of
from messirl.planning import model_for, soft_policy


@dataclass(eq=False, repr=False, kw_only=True)
class LPAL(ApprenticeshipEstimator):
    """Apprenticeship learning by linear programming: the policy with the largest lead under the worst reward.

    It solves the game of `MWAL` exactly, and its result is one policy, not a mixture. It needs the dynamics, and the
    states of the experts' trajectories; actions only with state-action features. It does not use unlabelled
    trajectories. The programme has a variable for every state and action and, with a horizon, for every step.

    Parameters
    ----------
    signs : array (d,) of 1, -1 and 0, optional
        Sign of each weight; 0 if unknown. None: all unknown; the game then minimises the largest deviation from the
        experts' counts, each feature in units of its largest magnitude.

    Attributes
    ----------
    value_ : float
        min_i g_iᵀ(f − f*), the lead of the policy over the experts under the worst possible reward; no policy has a
        higher value.
    converged_ : bool
        Always true: a failure of the solver raises an error.

    References
    ----------
    Syed, Bowling, Schapire: Apprenticeship Learning Using Linear Programming, ICML 2008.

    Examples
    --------
    Six states in a row; the sign of the feature is unknown, and the policy matches the experts' mean counts.

    >>> import numpy as np
    >>> from messirl import MDP, feature_counts, sample, soft_policy
    >>> from messirl.estimators import LPAL
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> model = LPAL().fit(mdp, expert)
    >>> bool(np.allclose(model.feature_counts_, feature_counts(mdp, expert).mean(axis=0)))
    True
    """

    _facts: ClassVar[tuple[str, ...]] = ("value_",)

    signs: Any = None

    def fit(self, mdp: MDP, expert: TrajectoriesLike, unlabelled: Any = None) -> Self:
        """Fit to the counts of the expert's trajectories; `unlabelled` is not used."""
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        start = read_sets("LPAL", mdp, expert)
        check_bounded("LPAL", mdp)
        rows, target = stakes(mdp, self.signs), mean_counts(mdp, expert)
        x = best_visits(mdp, start / start.sum(), rows, target)
        mass = x.sum(axis=-1, keepdims=True)
        met = mass > 0.0
        usual = soft_policy(mdp, np.zeros(mdp.n_states))
        policy = np.where(met, x / np.where(met, mass, 1.0), usual)
        self._set_fitted(mdp, start, shared_evenly(mdp, policy, usable_by_step(mdp)))
        self.value_ = value_of(rows, self.feature_counts_, target)
        self.converged_ = True
        return self


def best_visits(mdp: MDP, start: Floats, rows: Floats, target: Floats) -> Floats:
    """Solve the programme for x, (S, A), or (H − 1, S, A) with a horizon, where visits are not discounted."""
    usable = usable_by_step(mdp)
    columns = np.flatnonzero(usable)
    flow, collected = _flow(mdp), sp.csr_array(sp.csr_array(rows) @ _collected(mdp))
    going = np.tile(~mdp.terminal, len(usable))
    begin = np.zeros(flow.shape[0])
    begin[: mdp.n_states] = start
    own = np.zeros(mdp.n_features) if mdp.state_action else mdp.counts(start)
    solved = linprog(
        np.append(np.zeros(columns.size), -1.0),
        A_ub=sp.hstack([-collected[:, columns], np.ones((len(rows), 1))]),
        b_ub=rows @ (own - target),
        A_eq=sp.hstack([flow[going][:, columns], sp.csr_array((int(going.sum()), 1))]),
        b_eq=begin[going],
        bounds=[(0.0, None)] * columns.size + [(None, None)],
        method="highs",
    )
    if solved.status != 0:
        raise ValueError(f"the linear programme of LPAL was not solved: {solved.message}")
    x = np.zeros(usable.size)
    x[columns] = np.maximum(solved.x[:-1], 0.0)
    return x.reshape(mdp.policy_shape)


def _flow(mdp: MDP) -> sp.csr_array:
    """Return the flow matrix (T·S, T·S·A), outflow minus inflow of states, for visits x or the x_t of all T steps."""
    leaving = sp.kron(sp.eye_array(mdp.n_states), np.ones((1, mdp.n_actions)))
    if mdp.horizon is None:
        return sp.csr_array(leaving - mdp.discount * mdp.transitions.T)
    steps = mdp.horizon - 1
    later = sp.eye_array(steps, k=-1)
    return sp.csr_array(sp.kron(sp.eye_array(steps), leaving) - sp.kron(later, mdp.transitions.T))


def _collected(mdp: MDP) -> sp.csr_array:
    """Return the feature counts per unit of x, (d, T·S·A)."""
    features = sp.csr_array(mdp.feature_rows)
    once = sp.csr_array((features if mdp.state_action else mdp.transitions @ features).T)
    first = 0 if mdp.state_action else 1  # a successor counts one step later
    steps = range(1) if mdp.horizon is None else range(mdp.horizon - 1)
    return sp.csr_array(sp.hstack([mdp.discount ** (first + t) * once for t in steps]))


def usable_by_step(mdp: MDP) -> Flags:
    """Flag the actions allowed at each step, (T, S, A); T is 1 without a horizon."""
    model = model_for(mdp)
    if mdp.horizon is None:
        return np.asarray(model.live)[None]
    states = np.arange(mdp.n_states)
    return np.stack([model.usable(states, np.full(mdp.n_states, t)) for t in range(mdp.horizon - 1)])
