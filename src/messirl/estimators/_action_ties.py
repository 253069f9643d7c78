"""Ties between actions: a policy has the same expected feature counts after either of them.

    Q(s, a) = f(s, a) + γ Σ_s' p(s'|s,a) F(s'),      F(s) = Σ_a π(a|s) Q(s, a)

are the expected feature counts of a policy from a state, and after an action there, (d,) each. Moving probability
between actions of equal Q changes F nowhere, by the performance difference f_π' − f_π =
Σ_s ρ_π'(s) Σ_a π'(a|s) (Q_π(s, a) − F_π(s)), (Kakade and Langford 2002), and so no feature counts from any start.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from messirl._types import Flags, Floats
from messirl.data.mdp import MDP
from messirl.estimators._best_response import TIE
from messirl.planning.policy_chain import chain_matrix, collected, factorised, feature_table


def shared_evenly(mdp: MDP, policy: Floats, usable: Flags) -> Floats:
    """Share probability evenly among tied actions of a policy; its feature counts stay the same.

    usable : (T, S, A) flags of the actions allowed at each of T steps; T is 1 without a horizon
    """
    steps = policy.reshape(usable.shape)
    out = np.empty(steps.shape)
    for t, after in _counts_after(mdp, steps):
        near = TIE * np.abs(after).max(axis=(0, 1))
        same = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_actions), dtype=bool)
        for a, b in combinations(range(mdp.n_actions), 2):
            both = usable[t, :, a] & usable[t, :, b]
            same[:, a, b] = same[:, b, a] = both & (np.abs(after[:, a] - after[:, b]) <= near).all(axis=-1)
        same |= np.eye(mdp.n_actions, dtype=bool)
        out[t] = np.einsum("sb,sba->sa", steps[t] / same.sum(axis=-1), same)
    return out.reshape(policy.shape)


def _counts_after(mdp: MDP, steps: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield every step, backwards, with Q (S, A, d) of the policies (T, S, A) there."""
    features = feature_table(mdp)

    def after(ahead: Floats) -> Floats:
        entered = (mdp.transitions @ ahead).reshape(*mdp.allowed.shape, mdp.n_features)
        return np.asarray(features + mdp.discount * entered)

    def here(policy: Floats) -> Floats:  # features of a visit; terminal states have no action, but their features count
        return collected(features, policy) if mdp.state_action else np.asarray(features[:, 0])

    if mdp.horizon is None:
        yield 0, after(factorised(chain_matrix(mdp, steps[0]), mdp.discount).solve(here(steps[0])))
        return
    ahead = here(np.zeros(mdp.allowed.shape))
    for t in reversed(range(len(steps))):
        yield t, after(ahead)
        ahead = here(steps[t]) + mdp.discount * (chain_matrix(mdp, steps[t]) @ ahead)
