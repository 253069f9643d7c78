"""Policies found one after the other, each the best for some reward, and what a mixture of them does.

To follow a mixture is to draw one policy by its weight before the first step, and to keep to it. The Markov policy

    π(a|s) = Σ_j λ_j ρ_j(s, a) / Σ_j λ_j ρ_j(s),       ρ_j the discounted visits of policy j

makes the same visits, step by step where there is a horizon, and so has the same feature counts.
"""

from __future__ import annotations

import numpy as np

from messirl._memory_guard import foresee
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.planning import optimal_values, soft_policy, visits

TIE = 1e-11  # how much less an action may be worth, relative to the largest value, and be as good: rounding


class Responses:
    """The policies found so far and their expected feature counts, from one start.

    It begins with the policy of maximum entropy: all courses alike, none of them into a dead end.
    """

    def __init__(self, mdp: MDP, start: Floats) -> None:
        self.mdp, self.start = mdp, start / start.sum()
        first = soft_policy(mdp, np.zeros(mdp.n_states))
        self._policies = [np.asarray(first)]
        self._counts = [visits(mdp, first, start=self.start).counts(mdp)]

    def best(self, theta: Floats) -> tuple[Floats, Floats]:
        """The best policy under the reward of θ (d,), and its counts (d,); a multiple of θ has the same."""
        policy = best_policy(self.mdp, self.mdp.reward(theta))
        return policy, visits(self.mdp, policy, start=self.start, steps=self.mdp.state_action).counts(self.mdp)

    def add(self, theta: Floats) -> Floats:
        """Add the best policy under the reward of θ (d,), and return its counts (d,)."""
        policy, counts = self.best(theta)
        k = len(self._policies) + 1
        foresee(f"{k} policies and a mixture of them", 8.0 * (k + 2) * policy.size, "allow fewer policies, or rounds")
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
    """An optimal policy, (S, A) or (H − 1, S, A), whose actions are shared evenly among those that are equally good.

    Where nothing is better than anything else, as with features that are the same everywhere, it is the uniform one.
    """
    size = float(np.abs(reward).max())
    reward = reward / size if size > 0.0 else reward  # what counts as a tie has no unit
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
    """The Markov policy that visits what the mixture with these weights (k,) visits.

    Where no policy of the mixture comes to, it takes actions with the weights of the policies that take them.
    """
    used = np.flatnonzero(weights > 0)
    total = sum(weights[j] * occupancy(mdp, policies[j], start) for j in used)
    mass = np.asarray(total).sum(axis=-1, keepdims=True)
    plain = np.tensordot(weights[used], policies[used], axes=1)
    met = mass > np.finfo(float).tiny
    return np.asarray(np.where(met, total / np.where(met, mass, 1.0), plain))


def occupancy(mdp: MDP, policy: Floats, start: Floats) -> Floats:
    """Σ_t γ^t P(s_t = s, a_t = a), (S, A); with a horizon P(s_t = s, a_t = a) of every step, (H − 1, S, A)."""
    if mdp.horizon is None:
        found = visits(mdp, policy, start=start).steps
        assert found is not None
        return found
    now, out = start, np.empty(mdp.policy_shape)
    for t, rows in enumerate(policy):
        out[t] = np.where(mdp.terminal, 0.0, now)[:, None] * rows
        now = mdp.transitions.T @ out[t].ravel()
    return out
