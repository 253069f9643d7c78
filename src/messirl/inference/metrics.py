"""Distances between a learned reward or policy and the true one.

    expected_value_difference   start·V* − start·V^π, both under the true reward (Levine et al. 2011)
    inverse_learning_error      ‖V* − V^π‖_p over all states, both under the true reward (Choi and Kim 2011)
    epic_distance               between two rewards up to potential shaping and scale (Gleave et al. 2021)
    policy_kl                   between two policies, over the states that the first one visits

Rewards are (S,) or (S, A), policies (S, A), or (H − 1, S, A) with a horizon. Each call takes one policy: fits with
goals have one per goal and are not supported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import rel_entr

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning import Visits, optimal_policy, optimal_values, visits
from messirl.planning._validation import check_probabilities, checked_policy, checked_reward, start_of
from messirl.planning.policy_chain import chain_matrix, factorised
from messirl.planning.reachability import reach, structure_of

CONSTANT = 1e-12  # spread, relative to the largest reward, below which a canonical reward counts as constant


def policy_value(mdp: MDP, reward: npt.ArrayLike, policy: npt.ArrayLike, start: npt.ArrayLike | None = None) -> float:
    """Return E Σ_t γ^t r(s_t, a_t) under a policy, from `start` (S,) or the MDP's own start."""
    r = checked_reward(mdp, reward)
    seen = _visits(mdp, policy, start)
    assert seen.steps is not None
    return float(np.sum((seen.states if r.ndim == 1 else seen.steps) * r))


def expected_value_difference(
    mdp: MDP, true_reward: npt.ArrayLike, policy: npt.ArrayLike, start: npt.ArrayLike | None = None
) -> float:
    """Return start·V* − start·V^π (EVD), the loss of `policy` under the true reward (Levine et al. 2011)."""
    begin = _start(mdp, start)
    reached = policy_value(mdp, true_reward, policy, begin)
    best, there = _first_values(mdp, true_reward), begin > 0
    return float(begin[there] @ best[there]) - reached


def inverse_learning_error(
    mdp: MDP,
    true_reward: npt.ArrayLike,
    learned_reward: npt.ArrayLike | None = None,
    *,
    policy: npt.ArrayLike | None = None,
    p: float = 1,
) -> float:
    """Return the inverse learning error ‖V* − V^π‖_p over states, under the true reward (Choi and Kim 2011).

    π is optimal for `learned_reward`, or the `policy` given in its place. With a horizon, V holds the values of the
    first step. States of value −inf (dead ends) are left out.
    """
    if (learned_reward is None) == (policy is None):
        raise ValueError("give exactly one of learned_reward and policy=")
    if not p >= 1:
        raise ValueError(f"p={p!r}: a norm needs p >= 1; use 1, 2 or np.inf")
    taken = _checked_policy(mdp, policy if learned_reward is None else optimal_policy(mdp, learned_reward))
    best = _first_values(mdp, true_reward)
    valued = np.isfinite(best)
    if not valued.any():
        raise ValueError("no state has a finite value: every state leads into a dead end")
    gap = best[valued] - _values_under(mdp, checked_reward(mdp, true_reward), taken, valued)[valued]
    return float(np.linalg.norm(gap, ord=p))


def policy_kl(mdp: MDP, policy_p: npt.ArrayLike, policy_q: npt.ArrayLike, start: npt.ArrayLike | None = None) -> float:
    """Return the mean of KL(p(·|s) ‖ q(·|s)) over the choices that p visits, in nats.

        Σ_s d(s) KL(p(·|s) ‖ q(·|s)) / Σ_s d(s),     d(s) = Σ_t γ^t P_p(s_t = s, a choice is made)

    Terminal states and the last state of a horizon offer no choice and do not count. The result is inf if q gives zero
    probability to an action that p may take.
    """
    d, met = _choices(mdp, policy_p, start)
    p, q = np.asarray(policy_p, dtype=np.float64), _checked_policy(mdp, policy_q)
    if not met.any():
        raise ValueError("no choice is made from this start: every trajectory ends in its first state")
    check_probabilities(q, met, "policy_q")
    gaps = rel_entr(p[met], q[met]).sum(axis=-1)
    return float(d[met] @ gaps / d[met].sum()) if np.isfinite(gaps).all() else np.inf


def epic_distance(mdp: MDP, reward_a: npt.ArrayLike, reward_b: npt.ArrayLike, *, coverage: Any = None) -> float:
    """Return the EPIC distance of two rewards in [0, 1]; 0 up to potential shaping and scale (Gleave et al. 2021).

        C(R)(s,a,s') = R(s,a,s') + E[γ R(s',A,S') − R(s,A,S') − γ R(S,A,S')]
        distance = sqrt((1 − ρ)/2),   ρ the correlation of C(R_a) and C(R_b) over the coverage

    reward_a, reward_b : (S,), (S, A), or (S, A, S) for rewards that depend on the next state.  A step from s has the
        state reward r(s); an (S, A) reward is zero where no action is allowed.
    coverage : weights of the steps (s, a, s'), (S, A, S) or sparse (S·A, S).  None: every allowed (s, a) has the same
        weight and s' comes from the dynamics, so that impossible steps do not count.

    In E the states S, S' are uniform over all states, A over the actions allowed in the state (over all if none is).
    Expectations are exact. A reward whose C is constant has no correlation: its distance is 0 to another such reward
    and ½ to every other. These are the values of ½‖x − y‖ for standardised C, x and y, where a constant C becomes 0.
    """
    weights = _coverage(mdp, coverage)
    x = _standardised(mdp, reward_a, weights, "reward_a")
    y = _standardised(mdp, reward_b, weights, "reward_b")
    # ½‖x − y‖ = sqrt((1 − ρ)/2) for unit vectors, without the cancellation of 1 − ρ
    return min(float(np.linalg.norm(x - y)) / 2.0, 1.0)


# -- policies and values ------------------------------------------------------------------------------------------


def _checked_policy(mdp: MDP, policy: Any) -> Floats:
    if isinstance(policy, Mapping):
        raise TypeError("policy is a mapping from goals to policies, and goals are not supported: give one policy")
    return checked_policy(mdp, policy)


def _start(mdp: MDP, start: npt.ArrayLike | None) -> Floats:
    begin = start_of(mdp, start)
    return np.asarray(begin / begin.sum())


def _visits(mdp: MDP, policy: npt.ArrayLike, start: npt.ArrayLike | None) -> Visits:
    table, begin = _checked_policy(mdp, policy), _start(mdp, start)
    if mdp.must_end:
        table = table * _met(mdp, table, begin)[:, None]  # a loop elsewhere would make the system singular
    seen = visits(mdp, table, start=begin)
    if mdp.horizon is None:
        dead = reach(_arcs(mdp, table), begin > 0) & ~structure_of(mdp).alive
        if dead.any():
            raise ValueError(f"the policy reaches state {int(np.argmax(dead))}, a dead end: it has no finite value")
    return seen


def _choices(mdp: MDP, policy: npt.ArrayLike, start: npt.ArrayLike | None) -> tuple[Floats, Flags]:
    """Return expected discounted choices in each state, (S,), or (H − 1, S) with a horizon, and where they are > 0."""
    seen, table, now = _visits(mdp, policy, start), _checked_policy(mdp, policy), _start(mdp, start)
    assert seen.steps is not None
    if mdp.horizon is None:
        met = reach(_arcs(mdp, table), now > 0) & ~mdp.terminal & (table > 0).any(axis=1)
        return np.asarray(seen.steps.sum(axis=1)), met
    d = np.empty((mdp.horizon - 1, mdp.n_states))
    for t, rows in enumerate(table):
        d[t] = np.where(mdp.terminal, 0.0, now)
        now = mdp.discount * (chain_matrix(mdp, rows).T @ now)
    return d, d > 0  # sums of products of probabilities: zero exactly where a state cannot be reached


def _first_values(mdp: MDP, reward: npt.ArrayLike) -> Floats:
    return mdp.first(optimal_values(mdp, reward))


def _arcs(mdp: MDP, rows: Floats) -> tuple[Ints, Ints]:
    """Return the state left and the state entered of every transition possible under a policy (S, A)."""
    left, entered = sp.coo_array(chain_matrix(mdp, rows)).coords
    return left, entered


def _values_under(mdp: MDP, reward: Floats, table: Floats, valued: Flags) -> Floats:
    """Return V^π of the first step, (S,), in the states `valued`: V = r_π + γ P_π V.  table : the policy."""
    _visits(mdp, table, valued / valued.sum())  # checks that it is a policy in all these states

    def gain(rows: Floats) -> Floats:
        return reward if reward.ndim == 1 else np.where(mdp.terminal, 0.0, (rows * reward).sum(axis=1))

    if mdp.horizon is not None:
        values = reward if reward.ndim == 1 else np.zeros(mdp.n_states)
        for rows in table[::-1]:
            values = gain(rows) + mdp.discount * (chain_matrix(mdp, rows) @ values)
        return values
    chain = chain_matrix(mdp, table * valued[:, None])
    return np.asarray(factorised(chain, mdp.discount).solve(gain(table)))


def _met(mdp: MDP, rows: Floats, start: Floats) -> Flags:
    """Return the states that the policy reaches, (S,); with γ = 1 each must lead to a terminal state."""
    left, entered = _arcs(mdp, rows)
    met = reach((left, entered), start > 0)
    lost = met & ~reach((entered, left), mdp.terminal)
    if lost.any():
        raise ValueError(
            f"from state {int(np.argmax(lost))} the policy may never reach a terminal state, so with discount=1 it has "
            "no finite value: use a discount below 1 or a horizon"
        )
    return met


# -- EPIC ---------------------------------------------------------------------------------------------------------


def _coverage(mdp: MDP, coverage: Any) -> sp.coo_array:
    """Return weights of the steps, sparse (S·A, S), that sum to one."""
    shape = (mdp.n_states * mdp.n_actions, mdp.n_states)
    if coverage is None:
        weights = sp.coo_array(mdp.transitions)
    elif sp.issparse(coverage):
        weights = sp.coo_array(coverage, dtype=np.float64)
    else:
        dense = np.asarray(coverage, dtype=np.float64)
        fits = dense.shape == (mdp.n_states, mdp.n_actions, mdp.n_states)
        weights = sp.coo_array(dense.reshape(shape) if fits else np.atleast_2d(dense.reshape(-1)))
    total = weights.data.sum()
    if weights.shape != shape or not np.isfinite(weights.data).all() or (weights.data < 0).any() or not total > 0:
        raise ValueError(
            f"coverage must be weights of shape ({mdp.n_states}, {mdp.n_actions}, {mdp.n_states}), or sparse {shape}, "
            "finite, nonnegative and not all zero"
        )
    return sp.coo_array(weights / total)


def _standardised(mdp: MDP, reward: npt.ArrayLike, coverage: sp.coo_array, name: str) -> Floats:
    """Return √weight · (C − mean)/sd for every covered step: a unit vector, or zero if C is constant."""
    row, column, weight = coverage.row, coverage.col, coverage.data
    state, action = row // mdp.n_actions, row % mdp.n_actions
    r = _step_reward(mdp, reward, name)
    given = r[state] if r.ndim == 1 else r[state, action] if r.ndim == 2 else r[state, action, column]
    m = _mean_reward(mdp, r)
    canonical = given + mdp.discount * (m[column] - m.mean()) - m[state]
    centred = np.sqrt(weight) * (canonical - weight @ canonical)
    size = float(np.linalg.norm(centred))
    return centred / size if size > CONSTANT * float(np.abs(r).max()) else np.zeros_like(centred)


def _mean_reward(mdp: MDP, reward: Floats) -> Floats:
    """Return m(s) = E R(s, A, S'), (S,)."""
    if reward.ndim == 1:
        return reward
    per_action = reward if reward.ndim == 2 else reward.mean(axis=2)
    choice = np.where(mdp.allowed.any(axis=1, keepdims=True), mdp.allowed, True)
    return np.asarray((choice * per_action).sum(axis=1) / choice.sum(axis=1))


def _step_reward(mdp: MDP, reward: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(reward)
    if array.ndim == 3:
        if array.shape != (mdp.n_states, mdp.n_actions, mdp.n_states) or not np.isfinite(array).all():
            raise ValueError(
                f"{name} has shape {array.shape}: give ({mdp.n_states}, {mdp.n_actions}, {mdp.n_states}), all finite"
            )
        return array.astype(np.float64)
    r = checked_reward(mdp, reward)
    return r if r.ndim == 1 else np.where(mdp.allowed, r, 0.0)
