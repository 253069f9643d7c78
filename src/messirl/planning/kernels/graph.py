"""Compiled loops over single transitions: the noncausal model (Eq. 3), dead ends, best paths and flows on paths."""

from __future__ import annotations

import math

import numpy as np

from messirl._compiled import jit

FOREVER = 1 << 40


@jit
def noncausal_backward(indptr, indices, log_prob, n_actions, reward, last, gamma, log_z, policy):
    """Run the backward pass log Z_t(s) = log Σ_a exp(γ^t r(s,a)) Σ_s' p(s'|s,a) Z_{t+1}(s'), t = H−2 … 0.

    It starts from log_z[H−1]. States with a finite `last` are terminal. π_t(a|s), zero before the call, is the share of
    action a in the sum.
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
    """Compute Σ_t γ^t P(s_t = s) under the policy and the dynamics tilted by Z; `source` is as in `forward`.

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
    """Return for how many more steps each state can surely avoid dead ends; FOREVER where it always can.

    A dead end (no action, or `dead`) has life −1; any other state 1 + max_a min_s' life(s'). Found level by level, each
    transition visited once. Returns life (S,) and the life of every row s·A + a: that of its worst successor, or −2 if
    not allowed.
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
def best_paths(first, target, gain, best):
    """Compute hard-max values W(s) = max_e gain[e] + W(target[e]), from `best` (S,) at the ends.

    first : (S + 1,) row pointer: where the transitions of each state begin

    Returns False where a cycle has positive gain. Sweeps alternate between the two orders of the states
    (Bellman-Ford). With a positive cycle the best transitions so far soon form one: they are checked now and then, so
    that it is found before as many sweeps as there are states.
    """
    n_states = best.shape[0]
    chosen = np.full(n_states, -1)
    for sweep in range(n_states + 1):
        settled = True
        for k in range(n_states):
            s = k if sweep % 2 else n_states - 1 - k
            for e in range(first[s], first[s + 1]):
                reached = gain[e] + best[target[e]]
                if reached > best[s]:
                    best[s] = reached
                    chosen[s] = e
                    settled = False
        if settled:
            return True
        if sweep % 4 == 3 and _gains_in_a_circle(target, gain, chosen):
            return False
    return False


@jit
def _gains_in_a_circle(target, gain, chosen):
    """Return whether the transitions `chosen` (S,), −1 for none, form a cycle whose gain exceeds rounding."""
    n_states = chosen.shape[0]
    walk = np.full(n_states, -1)  # the walk that visited each state
    for begin in range(n_states):
        s = begin
        while walk[s] < 0 and chosen[s] >= 0:
            walk[s] = begin
            s = target[chosen[s]]
        if walk[s] != begin:
            continue
        total, size, at = 0.0, 0.0, s
        while True:
            total += gain[chosen[at]]
            size += abs(gain[chosen[at]])
            at = target[chosen[at]]
            if at == s:
                break
        if total > 1e-12 * size:
            return True
    return False


@jit
def path_flows(source, target, gain, y, z, flows):
    """Add gain[e] Σ_g y[source[e], g] z[target[e], g] to flows[e], with y and z stored goal by goal, (G, S)."""
    for g in range(y.shape[0]):
        for e in range(source.shape[0]):
            flows[e] += gain[e] * y[g, source[e]] * z[g, target[e]]


@jit
def path_gains(source, target, gain, z, own, out):
    """Add Σ_e gain[e] own[e, j] z[target[e]] over the transitions e of s to out[j, s]: (∂M) z, (d, S)."""
    for e in range(source.shape[0]):
        worth = gain[e] * z[target[e]]
        for j in range(own.shape[1]):
            out[j, source[e]] += worth * own[e, j]


@jit
def path_spread(source, target, gain, y, z, own, slope, bend):
    """Add Σ_e gain[e] y[s] z[s'] A Aᵀ to the lower half of `bend`; A = own[e] + slope[s'] − slope[s], e = (s, s')."""
    d = own.shape[1]
    ahead = np.empty(d)
    for e in range(source.shape[0]):
        flow = gain[e] * y[source[e]] * z[target[e]]
        for j in range(d):
            ahead[j] = own[e, j] + slope[target[e], j] - slope[source[e], j]
            for k in range(j + 1):
                bend[j, k] += flow * ahead[j] * ahead[k]
