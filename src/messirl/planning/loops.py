"""Compiled loops over moves, one after the other: the noncausal model (Eq. 3), liveness, flows along paths."""

from __future__ import annotations

import math

import numpy as np

from messirl._compiled import jit

FOREVER = 1 << 40


@jit
def noncausal_backward(indptr, indices, log_prob, n_actions, reward, last, gamma, log_z, policy):
    """log Z_t(s) = log Σ_a exp(γ^t r(s,a)) Σ_s' p(s'|s,a) Z_{t+1}(s') for t = H−2 … 0, from log_z[H−1].

    States with a finite `last` are terminal. π_t(a|s), zero before the call, is the share of action a in the sum.
    """
    n_states = reward.shape[0]
    q = np.empty(n_actions)
    for t in range(log_z.shape[0] - 2, -1, -1):
        scale = gamma**t
        ahead = log_z[t + 1]
        for s in range(n_states):
            if last[s] > -math.inf:
                log_z[t, s] = scale * last[s]
                continue
            top = -math.inf
            for a in range(n_actions):
                row = s * n_actions + a
                peak = -math.inf
                for j in range(indptr[row], indptr[row + 1]):
                    peak = max(peak, log_prob[j] + ahead[indices[j]])
                q[a] = -math.inf
                if peak > -math.inf:
                    mass = 0.0
                    for j in range(indptr[row], indptr[row + 1]):
                        mass += math.exp(log_prob[j] + ahead[indices[j]] - peak)
                    q[a] = peak + math.log(mass) + scale * reward[s, a]
                top = max(top, q[a])
            if top == -math.inf:
                log_z[t, s] = -math.inf
                continue
            mass = 0.0
            for a in range(n_actions):
                mass += math.exp(q[a] - top)
            log_z[t, s] = top + math.log(mass)
            for a in range(n_actions):
                policy[t, a, s] = math.exp(q[a] - log_z[t, s])


@jit
def noncausal_forward(indptr, indices, log_prob, n_actions, reward, source, gamma, log_z, policy, total, by_action):
    """Σ_t γ^t P(s_t = s) under the model itself: the policy and the dynamics tilted by Z; `source` as of `forward`.

    P(s', a | s, t) = exp(γ^t r(s,a)) p(s'|s,a) Z_{t+1}(s') / Z_t(s)
    """
    once, n_states, now = source.shape[0] == 1, reward.shape[0], source[0].copy()
    total += now
    weight = 1.0
    for t in range(log_z.shape[0] - 1):
        then = np.zeros(n_states)
        scale = gamma**t
        ahead = log_z[t + 1]
        for s in range(n_states):
            if now[s] == 0.0:
                continue
            for a in range(n_actions):
                if policy[t, a, s] == 0.0:
                    continue
                by_action[s, a] += weight * now[s] * policy[t, a, s]
                row = s * n_actions + a
                for j in range(indptr[row], indptr[row + 1]):
                    lift = scale * reward[s, a] + log_prob[j] + ahead[indices[j]] - log_z[t, s]
                    then[indices[j]] += now[s] * math.exp(lift)
        weight *= gamma if once else 1.0
        if not once:
            then = gamma * then + source[t + 1]
        total += weight * then
        now = then


@jit
def lifetimes(indptr, n_actions, parents_ptr, parents, ends, dead):
    """For how many more steps a state can surely avoid dead ends; FOREVER where without end.

    A dead end (no action, or `dead`) has life −1; any other state 1 + max_a min_s' life(s'). Found level by level, each
    move looked at once. Returns life (S,) and the life of every row s·A + a: its worst successor's; −2 if not allowed.
    """
    n_states = ends.shape[0]
    forever = np.int64(FOREVER)
    life = np.full(n_states, forever)
    row_life = np.full(n_states * n_actions, forever)
    open_rows = np.zeros(n_states, np.int64)
    queue = np.empty(n_states, np.int64)
    filled = 0
    for s in range(n_states):
        for a in range(n_actions):
            row = s * n_actions + a
            if indptr[row + 1] > indptr[row]:
                open_rows[s] += 1
            else:
                row_life[row] = -2
        if dead[s] or (open_rows[s] == 0 and not ends[s]):
            life[s] = -1
            queue[filled] = s
            filled += 1
    head = 0
    while head < filled:
        s = queue[head]
        head += 1
        for j in range(parents_ptr[s], parents_ptr[s + 1]):
            row = parents[j]
            if row_life[row] != forever:
                continue
            row_life[row] = life[s]
            parent = row // n_actions
            open_rows[parent] -= 1
            if open_rows[parent] == 0 and not ends[parent] and life[parent] == forever:
                life[parent] = life[s] + 1
                queue[filled] = parent
                filled += 1
    return life, row_life


@jit
def path_flows(source, target, gain, y, z, flows):
    """flows[e] += gain[e] Σ_g y[source[e], g] z[target[e], g], with y and z stored goal by goal, (G, S)."""
    for g in range(y.shape[0]):
        for e in range(source.shape[0]):
            flows[e] += gain[e] * y[g, source[e]] * z[g, target[e]]
