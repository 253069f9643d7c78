"""Best responses: policies found in sequence, each optimal for some reward, and mixtures of them.

A mixture draws one policy by its weight before the first step, and follows it. The Markov policy

    π(a|s) = Σ_j λ_j ρ_j(s, a) / Σ_j λ_j ρ_j(s),       ρ_j the discounted visits of policy j

has the same visits, step by step if there is a horizon, and so the same feature counts.
"""

from __future__ import annotations

import numpy as np

from messirl._memory_guard import check_memory
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.planning import optimal_values, soft_policy, visits

TIE = 1e-11  # differences in value up to this, relative to the largest value, are ties: rounding


class BestResponses:
    """The policies found so far and their expected feature counts, from one start.

    The first is the policy of maximum entropy, which avoids dead ends.
    """

    def __init__(self, mdp: MDP, start: Floats) -> None:
        self.mdp, self.start = mdp, start / start.sum()
        first = soft_policy(mdp, np.zeros(mdp.n_states))
        self._policies = [np.asarray(first)]
        self._counts = [visits(mdp, first, start=self.start).counts(mdp)]

    def best(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the best policy under the reward of θ (d,), and its counts (d,); the scale of θ does not matter."""
        policy = best_policy(self.mdp, self.mdp.reward(theta))
        return policy, visits(self.mdp, policy, start=self.start, steps=self.mdp.state_action).counts(self.mdp)

    def add(self, theta: Floats) -> Floats:
        """Add the best policy under the reward of θ (d,), and return its counts (d,)."""
        policy, counts = self.best(theta)
        k = len(self._policies) + 1
        check_memory(
            f"{k} policies and a mixture of them", 8.0 * (k + 2) * policy.size, "allow fewer policies, or rounds"
        )
        self._policies.append(policy)
        self._counts.append(counts)
        return counts

    @property
    def counts(self) -> Floats:
        """Expected feature counts of every policy, (k, d)."""
        return np.array(self._counts)

    @property
    def policies(self) -> Floats:
        """Every policy, (k, S, A), or (k, H − 1, S, A) with a horizon."""
        return np.array(self._policies)


def best_policy(mdp: MDP, reward: Floats) -> Floats:
    """Return an optimal policy, (S, A) or (H − 1, S, A), uniform over equally good actions.

    If all actions are equally good, as with constant features, it is the uniform policy.
    """
    size = float(np.abs(reward).max())
    reward = reward / size if size > 0.0 else reward  # ties do not depend on the unit
    values = optimal_values(mdp, reward)
    ahead = values[1:] if mdp.horizon is not None else values[None]
    worth = mdp.discount * (mdp.transitions @ ahead.T).T.reshape(-1, mdp.n_states, mdp.n_actions)
    worth = np.where(mdp.allowed, worth + (reward if mdp.state_action else 0.0), -np.inf)
    known = values[np.isfinite(values)]
    near = TIE * (1.0 + float(np.abs(known).max(initial=0.0)))
    best = worth.max(axis=-1, keepdims=True)
    equal = np.isfinite(best) & (worth >= best - near) & ~mdp.terminal[:, None]
    policy = equal / np.maximum(equal.sum(axis=-1, keepdims=True), 1)
    return np.ascontiguousarray(policy if mdp.horizon is not None else policy[0])


def mixed_policy(mdp: MDP, policies: Floats, weights: Floats, start: Floats) -> Floats:
    """Return the Markov policy with the same visits as the mixture with these weights (k,).

    In states that the mixture never visits, it is the weighted mean of the policies.
    """
    used = np.flatnonzero(weights > 0)
    total = sum(weights[j] * occupancy(mdp, policies[j], start) for j in used)
    mass = np.asarray(total).sum(axis=-1, keepdims=True)
    plain = np.tensordot(weights[used], policies[used], axes=1)
    met = mass > np.finfo(float).tiny
    return np.asarray(np.where(met, total / np.where(met, mass, 1.0), plain))


def occupancy(mdp: MDP, policy: Floats, start: Floats) -> Floats:
    """Return Σ_t γ^t P(s_t = s, a_t = a), (S, A); with a horizon P(s_t = s, a_t = a) per step, (H − 1, S, A)."""
    if mdp.horizon is None:
        found = visits(mdp, policy, start=start).steps
        assert found is not None
        return found
    now, out = start, np.empty(mdp.policy_shape)
    for t, rows in enumerate(policy):
        out[t] = np.where(mdp.terminal, 0.0, now)[:, None] * rows
        now = mdp.transitions.T @ out[t].ravel()
    return out
