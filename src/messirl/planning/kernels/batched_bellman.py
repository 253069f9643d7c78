"""Compiled batched solver: the same dynamics, with another reward and another start in each lane of a batch.

Arrays are (…, L) with the lanes innermost, so that inner loops become vector instructions and every successor is looked
up once for all lanes. Lanes are independent: the result of one does not depend on the others, to the last bit. A lane
that has converged does not change while the others go on.

Transitions (built in batched.py) are factored into two stages. An action leads to places, with the probabilities
`chance`; from a place the next state is drawn, with the probabilities `share`. Where many actions of many states lead
to the same distribution over states (such as traffic that no action affects), it is one place and is averaged over
once. Where that saves nothing, places are the states themselves.

    place_ptr (S·A + 1,), place, chance, slot   the places that each action leads to, and the slot of each of them
    slot_ptr (S + 1,), slot_place               the distinct places of each state: its slots
    land_ptr (R + 1,), land, share              the states that each place leads to; (1,) where places are states

The number of lanes is read from the arrays, and sums are gathered in arrays made here: only such loops are vectorised.
"""

from __future__ import annotations

import numpy as np

from messirl._compiled import jit
from messirl.planning.kernels.bellman import LOWEST, _exp, _log
from messirl.planning.kernels.bicgstab import _largest, bicgstab_batch, multiplied, put

L = 16
MOVES, ENDS, DEAD = 0, 1, 2  # the kinds of states
EPS = float(np.finfo(np.float64).eps)
MAX_NEWTON = 60
MAX_KRYLOV = 400
PASSES = 6
LARGEST, SMALLEST = 1e250, 1e-250


@jit
def _average(land_ptr, land, share, x, out):
    """Set out[r] = Σ_s share(s|r) x[s], the expectation of x at each place."""
    m = x.shape[1]
    total = np.empty(m)
    for r in range(land_ptr.shape[0] - 1):
        for i in range(m):
            total[i] = 0.0
        for j in range(land_ptr[r], land_ptr[r + 1]):
            c, here = share[j], x[land[j]]
            for i in range(m):
                total[i] += c * here[i]
        at = out[r]
        for i in range(m):
            at[i] = total[i]


@jit
def _sweep(moves, base, kind, gamma, reward, values, places, gap, weights):
    """Do one soft backup: gap ← T V − V, and the chain of its policy on the slots, weights (slots, L)."""
    place_ptr, place, chance, slot, slot_ptr, _, land_ptr, land, share = moves
    n_actions, m = base.shape[1], values.shape[1]
    ahead = values
    if land_ptr.shape[0] > 1:
        _average(land_ptr, land, share, values, places)
        ahead = places
    q, top, total = np.empty((n_actions, m)), np.empty(m), np.empty(m)
    for s in range(kind.shape[0]):
        own, value, left = reward[s], values[s], gap[s]
        for j in range(slot_ptr[s], slot_ptr[s + 1]):
            weight = weights[j]
            for i in range(m):
                weight[i] = 0.0
        if kind[s] != MOVES:
            for i in range(m):
                left[i] = 0.0
            continue
        for i in range(m):
            top[i] = LOWEST
        for a in range(n_actions):
            qa, worth = q[a], base[s, a]
            for i in range(m):
                total[i] = 0.0
            for j in range(place_ptr[s * n_actions + a], place_ptr[s * n_actions + a + 1]):
                c, here = chance[j], ahead[place[j]]
                for i in range(m):
                    total[i] += c * here[i]
            for i in range(m):
                qa[i] = gamma * total[i] + worth
            for i in range(m):
                top[i] = max(top[i], qa[i])
        for i in range(m):
            total[i] = 0.0
        for a in range(n_actions):
            qa = q[a]
            for i in range(m):
                qa[i] = _exp(qa[i] - top[i])
            for i in range(m):
                total[i] += qa[i]
        for i in range(m):
            top[i] += _log(total[i])
        for i in range(m):
            left[i] = own[i] + top[i] - value[i]
        for i in range(m):
            total[i] = 1.0 / total[i]
        for a in range(n_actions):
            qa = q[a]
            for i in range(m):
                qa[i] *= total[i]
            for j in range(place_ptr[s * n_actions + a], place_ptr[s * n_actions + a + 1]):
                c, weight = chance[j], weights[slot[j]]
                for i in range(m):
                    weight[i] += c * qa[i]


@jit
def _forward(operator, x, out, with_one, one, with_two, two):
    """Set out = (I − γ P) x, for bicgstab.py."""
    moves, weights, gamma, places = operator
    slot_ptr, slot_place, land_ptr, land, share = moves[4:]
    m = x.shape[1]
    ahead = x
    if land_ptr.shape[0] > 1:
        _average(land_ptr, land, share, x, places)
        ahead = places
    total, first, second = np.empty(m), np.zeros(m), np.zeros(m)
    for s in range(x.shape[0]):
        for i in range(m):
            total[i] = 0.0
        for j in range(slot_ptr[s], slot_ptr[s + 1]):
            weight, here = weights[j], ahead[slot_place[j]]
            for i in range(m):
                total[i] += weight[i] * here[i]
        xs, at = x[s], out[s]
        for i in range(m):
            total[i] = xs[i] - gamma * total[i]
        for i in range(m):
            at[i] = total[i]
        multiplied(total, with_one[s], first)
        multiplied(total, with_two[s], second)
    put(first, one)
    put(second, two)


@jit
def _backward(operator, x, out, with_one, one, with_two, two):
    """Set out = m⁻¹ (I − γ Pᵀ) (m x), with m the positive `scale`, for bicgstab.py."""
    moves, weights, gamma, scale, places = operator
    slot_ptr, slot_place, land_ptr, land, share = moves[4:]
    m = x.shape[1]
    total, first, second = np.empty(m), np.zeros(m), np.zeros(m)
    two_stages = land_ptr.shape[0] > 1
    into = places if two_stages else out
    into[:] = 0.0
    for s in range(x.shape[0]):
        size, xs = scale[s], x[s]
        for i in range(m):
            total[i] = gamma * size[i] * xs[i]
        for j in range(slot_ptr[s], slot_ptr[s + 1]):
            weight, at = weights[j], into[slot_place[j]]
            for i in range(m):
                at[i] += weight[i] * total[i]
    if two_stages:
        out[:] = 0.0
        for r in range(land_ptr.shape[0] - 1):
            here = places[r]
            for j in range(land_ptr[r], land_ptr[r + 1]):
                c, at = share[j], out[land[j]]
                for i in range(m):
                    at[i] += c * here[i]
    for s in range(x.shape[0]):
        size, xs, at = scale[s], x[s], out[s]
        for i in range(m):
            total[i] = xs[i] - at[i] / size[i]
        for i in range(m):
            at[i] = total[i]
        multiplied(total, with_one[s], first)
        multiplied(total, with_two[s], second)
    put(first, one)
    put(second, two)


@jit
def solve_batch(moves, base, kind, gamma, reward, values, weights, places, room):
    """Compute soft values (S, L), with a warm start, and the chain of their policy on the slots, weights (slots, L).

    Newton's method as in infinite_horizon.py. Returns which lanes are solved to rounding, (L,).
    """
    n, m = values.shape
    gap, step = room[4], room[5]
    solved, rises = np.zeros(m, np.bool_), np.zeros(m, np.int64)
    residual, size, before, tolerance = np.empty(m), np.empty(m), np.full(m, np.inf), np.empty(m)
    for s in range(n):
        if kind[s] != MOVES:
            for i in range(m):
                values[s, i] = reward[s, i] if kind[s] == ENDS else 0.0
    for _ in range(MAX_NEWTON):
        _sweep(moves, base, kind, gamma, reward, values, places, gap, weights)
        _largest(gap, residual)
        _largest(values, size)
        every = True
        for i in range(m):
            rounding = 8.0 * EPS * (1.0 + size[i])
            close = residual[i] <= 1e3 * rounding and residual[i] >= 0.5 * before[i]
            solved[i] = solved[i] or residual[i] <= rounding or close
            every &= solved[i]
            rises[i] += residual[i] > before[i]
            before[i] = residual[i]
            # Inexact Newton: only as accurate as the next step can use, unless the iteration cycles.
            wanted = residual[i] * min(1e-2, residual[i] / (1.0 + size[i])) if rises[i] < 2 else 0.0
            tolerance[i] = np.inf if solved[i] else max(0.5 * rounding, wanted)
        if every:
            break
        step[:] = 0.0
        bicgstab_batch(_forward, (moves, weights, gamma, places), gap, step, tolerance, MAX_KRYLOV, room)
        for s in range(n):
            vs, ds = values[s], step[s]
            for i in range(m):
                vs[i] += ds[i]
    for i in range(m):
        solved[i] = solved[i] and size[i] < LARGEST
    return solved


@jit
def batch_visits(moves, weights, gamma, source, visits, solved, places, room):
    """Compute ρ (S, L) with (I − γ Pᵀ) ρ = source ≥ 0, with a warm start; clear `solved` of lanes that fail.

    The unknown is ρ/m with m close to ρ, as in policy_chain.py.
    """
    n, m = source.shape
    scale, r, y = room[4], room[5], room[6]
    mean, worst, tolerance = np.zeros(m), np.empty(m), np.empty(m)
    for s in range(n):
        for i in range(m):
            mean[i] += source[s, i]
    for i in range(m):
        mean[i] = max(mean[i] / ((1.0 - gamma) * n), SMALLEST)  # a lane may have no source at all
    for _ in range(PASSES + 1):
        for s in range(n):
            vs, size, ys = visits[s], scale[s], y[s]
            for i in range(m):
                vs[i] = max(vs[i], 0.0)
            for i in range(m):
                size[i] = vs[i] + 1e-3 * mean[i]
            for i in range(m):
                ys[i] = vs[i] / size[i]
        _backward((moves, weights, gamma, scale, places), y, r, y, worst, y, worst)
        for s in range(n):
            rs, size, begin = r[s], scale[s], source[s]
            for i in range(m):
                rs[i] = begin[i] / size[i] - rs[i]
        _largest(r, worst)
        every = True
        for i in range(m):
            fine = worst[i] <= 1e-13
            tolerance[i] = np.inf if fine else 1e-14
            every &= fine or not solved[i]
        if every:
            return
        bicgstab_batch(_backward, (moves, weights, gamma, scale, places), r, y, tolerance, MAX_KRYLOV, room)
        for s in range(n):
            vs, size, ys = visits[s], scale[s], y[s]
            for i in range(m):
                vs[i] = size[i] * ys[i] if tolerance[i] < 1.0 else vs[i]
    for i in range(m):
        solved[i] &= worst[i] <= 1e-13


@jit
def batch_rewards(feature_ptr, feature, amount, theta, reward):
    """Compute r (S, L) at θ (d, L); features are the rows of a sparse matrix, and r is zero before the call."""
    m = theta.shape[1]
    for s in range(feature_ptr.shape[0] - 1):
        at = reward[s]
        for j in range(feature_ptr[s], feature_ptr[s + 1]):
            c, here = amount[j], theta[feature[j]]
            for i in range(m):
                at[i] += c * here[i]


@jit
def batch_counts(feature_ptr, feature, amount, source, values, visits, counts):
    """Return Σ_s source(s) V(s), (L,), and add Σ_s ρ(s) f(s) to `counts` (d, L)."""
    n, m = values.shape
    total = np.zeros(m)
    for s in range(n):
        begin, value, often = source[s], values[s], visits[s]
        for i in range(m):
            total[i] += begin[i] * value[i]
        for j in range(feature_ptr[s], feature_ptr[s + 1]):
            c, at = amount[j], counts[feature[j]]
            for i in range(m):
                at[i] += c * often[i]
    return total
