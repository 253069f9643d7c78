"""Compiled loops over blocks of states: soft and hard Bellman sweeps, visitation, linear solves.

Layout (built in memory_layout.py). States lie in blocks of B; the last block is padded with states of probability zero.
Block b owns the slots off[b] … off[b+1]−1, each a row of B successors, `idx[slot, i]`:

- shared:   a slot is one successor of the state, whichever action leads there, with A rows of probabilities,
            `prob[own[b] + u·A + a, i]` of its u-th slot: few gathers, where actions share successors (slippery grids)
- separate: slot a·K + k is the k-th successor of action a, `prob[own[b] + a·K + k, i]`: fewer products, where they do
            not (deterministic moves: K = 1)

Blocks with equal probabilities share their rows, so that dynamics that are the same everywhere stay in the cache.

All inner loops run over the B states of a block and become vector instructions; exp and log are written out for that
reason (relative errors 2.2e-16 and 4.3e-16). Values of states that cannot be entered are kept finite here, so that
0·V is never NaN; actions that may not be taken have reward −inf.

Policies are stored action-major, (…, A, S padded). Arguments are arrays and numbers only.
"""

from __future__ import annotations

import math

import numpy as np

from messirl._compiled import LINE, inlined, jit
from messirl.planning.kernels.bicgstab import STALLED, bicgstab_single

B = 128
LOWEST = -1e300
TINY = -709.4  # exp of anything below is taken as zero


@inlined
def _exp(x):
    """Return e^x for x ≤ 0, zero below e^−709: 2^k e^r with |r| ≤ ½ log 2, e^r by a polynomial of error 3e-17.

    The polynomial was fitted at Chebyshev's points. Where k is −1023, the bits of 2^k are those of zero.
    """
    y = max(x, TINY)
    shifted = y * 1.4426950408889634 + 6755399441055744.0
    k = np.float64(shifted).view(np.int64)
    n = shifted - 6755399441055744.0
    r = y - n * 6.93147180369123816490e-01
    r = r - n * 1.90821492927058770002e-10
    p = (2.509554685120205e-08 * r + 2.761379668517062e-07) * r + 2.7557280081118127e-06
    p = ((p * r + 2.480153640702703e-05) * r + 0.00019841269854331553) * r + 0.0013888888905872366
    p = ((p * r + 0.008333333333332157) * r + 0.041666666666651364) * r + 0.16666666666666666
    return (((p * r + 0.5) * r + 1.0) * r + 1.0) * np.int64((k + 1023) << 52).view(np.float64)


@inlined
def _log(x):
    """Return log x for normal x > 0: exponent·log 2 + 2 atanh((m−1)/(m+1)), m in [√½, √2), atanh by a polynomial."""
    bits = np.float64(x).view(np.int64)
    e = (bits - 0x3FE6A09E667F3BCD) >> 52
    m = np.int64(bits - (e << 52)).view(np.float64)
    f = (m - 1.0) / (m + 1.0)
    g = f * f
    p = (0.14809710360655276 * g + 0.1531252814836419) * g + 0.18183631680229329
    p = ((p * g + 0.22222197056726048) * g + 0.2857142876064168) * g + 0.3999999999930234
    p = (p * g + 0.6666666666666765) * g + 2.0
    return float(e) * 0.6931471805599453 + f * p


@inlined
def _products(prob, row, stride, n, x, out):
    """Set out[i] = Σ_k prob[row + k·stride, i] x[k, i] over k < n, four at a time so that out is seldom stored."""
    k = 0
    if n >= 4:
        r1, r2, r3 = row + stride, row + 2 * stride, row + 3 * stride
        for i in range(B):
            out[i] = (prob[row, i] * x[0, i] + prob[r1, i] * x[1, i]) + (prob[r2, i] * x[2, i] + prob[r3, i] * x[3, i])
        k = 4
    else:
        for i in range(B):
            out[i] = 0.0
    while k < n:
        at = row + k * stride
        for i in range(B):
            out[i] += prob[at, i] * x[k, i]
        k += 1


@jit
def _next_values(shared, off, idx, own, prob, v, b, gathered, q):
    """Set q[a, i] = Σ_s' p(s'|s,a) v(s') for the states of block b."""
    first = off[b]
    n_slots = off[b + 1] - first
    n_actions = q.shape[0]
    if shared:
        for u in range(n_slots):
            for i in range(B):
                gathered[u, i] = v[idx[first + u, i]]
        for a in range(n_actions):
            _products(prob, own[b] + a, n_actions, n_slots, gathered, q[a])
        return
    per_action = n_slots // n_actions
    for a in range(n_actions):
        for i in range(B):
            q[a, i] = 0.0
        for k in range(a * per_action, (a + 1) * per_action):
            slot, row = first + k, own[b] + k
            for i in range(B):
                q[a, i] += prob[row, i] * v[idx[slot, i]]


@jit
def _action_values(shared, off, idx, own, prob, action_reward, gamma, v, b, gathered, q, top):
    """Set q ← r(s,a) + γ Σ p v and top ← its maximum over a; return the factor that both still have to be scaled by.

    Without action rewards that is γ, which saves one multiplication.
    """
    _next_values(shared, off, idx, own, prob, v, b, gathered, q)
    with_rewards = action_reward.shape[0] > 0
    for i in range(B):
        top[i] = LOWEST
    for a in range(q.shape[0]):
        if with_rewards:
            for i in range(B):
                q[a, i] = gamma * q[a, i] + action_reward[a, b * B + i]
        for i in range(B):
            top[i] = max(top[i], q[a, i])
    return 1.0 if with_rewards else gamma


@inlined
def _widest(off):
    """Return the largest number of slots of any block."""
    most = 0
    for b in range(off.shape[0] - 1):
        most = max(most, off[b + 1] - off[b])
    return most


@inlined
def _room(rows):
    """Return workspace (rows, B), aligned to a cache line so that no vector crosses one."""
    room = np.empty(rows * B + LINE // 8)
    skip = (LINE - room.ctypes.data % LINE) // 8
    return room[skip : skip + rows * B].reshape((rows, B))


@jit
def soft_sweep(lo, hi, shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, v, out, policy):
    """Do one soft Bellman backup of blocks lo … hi−1, and store its policy (A, S) unless that array is empty.

    V(s) = r(s) + log Σ_a exp(r(s,a) + γ Σ p v),   π(a|s) = exp(Q(s,a) − V(s))
    """
    room = _room(2 + n_actions + _widest(off))
    _soft_blocks(
        lo, hi, shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, v, out, policy, room
    )


@jit
def _soft_blocks(
    lo, hi, shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, v, out, policy, room
):
    """Do the backup of `soft_sweep` with the workspace `room` (2 + A + slots, B)."""
    top, total, q, gathered = room[0], room[1], room[2 : 2 + n_actions], room[2 + n_actions :]
    for b in range(lo, hi):
        factor = _action_values(shared, off, idx, own, prob, action_reward, gamma, v, b, gathered, q, top)
        for i in range(B):
            total[i] = 0.0
        for a in range(n_actions):
            for i in range(B):
                e = _exp(factor * (q[a, i] - top[i]))
                q[a, i] = e
                total[i] += e
        at = b * B
        for i in range(B):
            out[at + i] = state_reward[at + i] + (factor * top[i] + _log(total[i]))
        if policy.shape[0] == 0:
            continue
        for i in range(B):
            total[i] = 1.0 / total[i] if total[i] > 0.0 else 0.0
        for a in range(n_actions):
            for i in range(B):
                policy[a, at + i] = q[a, i] * total[i]


@jit
def hard_sweep(shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, v, out, choice):
    """Do one hard-max backup: V(s) = r(s) + max_a (r(s,a) + γ Σ p v), and the lowest action that attains it."""
    gathered = np.empty((_widest(off), B))
    q, top = np.empty((n_actions, B)), np.empty(B)
    for b in range(off.shape[0] - 1):
        factor = _action_values(shared, off, idx, own, prob, action_reward, gamma, v, b, gathered, q, top)
        for i in range(B):
            s = b * B + i
            out[s] = state_reward[s] + factor * top[i]
            choice[s] = 0
            # Actions within rounding of the best one are ties, which go to the lowest action.
            near = top[i] - 1e-12 * (1.0 + abs(top[i]))
            for a in range(n_actions - 1, -1, -1):
                if q[a, i] >= near:
                    choice[s] = a


@jit
def mean_sweep(
    lo, hi, shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, policy, v, out, gaps
):
    """Do one backup of blocks lo … hi−1 under a given policy, with the advantage of each of its actions.

    F(s) = r(s) + Σ_a π(a|s) (r(s,a) + γ Σ p v),   gaps[a, s] = r(s) + r(s,a) + γ Σ p v − F(s), zero where π(a|s) is

    Returns the largest |gap| and the largest |F|. Gaps are stored unless that array is empty.
    """
    gathered = np.empty((_widest(off), B))
    q = np.empty((n_actions, B))
    top, mean = np.empty(B), np.empty(B)
    largest, size = 0.0, 0.0
    for b in range(lo, hi):
        factor = _action_values(shared, off, idx, own, prob, action_reward, gamma, v, b, gathered, q, top)
        at = b * B
        for i in range(B):
            mean[i] = 0.0
        for a in range(n_actions):
            for i in range(B):
                mean[i] += policy[a, at + i] * q[a, i]
        for a in range(n_actions):
            for i in range(B):
                q[a, i] = factor * (q[a, i] - mean[i]) if policy[a, at + i] > 0.0 else 0.0
                largest = max(largest, abs(q[a, i]))
        for a in range(gaps.shape[0]):
            for i in range(B):
                gaps[a, at + i] = q[a, i]
        for i in range(B):
            out[at + i] = state_reward[at + i] + factor * mean[i]
            size = max(size, abs(out[at + i]))
    return largest, size


@jit
def soft_backward(
    shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, fixed, fixed_value, values, policy
):
    """Run the backward pass: values[t] and policy[t] from the last step to the first.

    `fixed` states keep their values and have no policy.
    """
    blocks, kept, none = off.shape[0] - 1, policy.shape[0] > 0, np.empty((0, 0))
    room = _room(2 + n_actions + _widest(off))
    for t in range(values.shape[0] - 2, -1, -1):
        v, out, here = values[t + 1], values[t], policy[t] if kept else none
        _soft_blocks(
            0, blocks, shared, off, idx, own, prob, n_actions, state_reward, action_reward, gamma, v, out, here, room
        )
        for j in range(fixed.shape[0]):
            out[fixed[j]] = fixed_value[j]
            for a in range(here.shape[0]):
                here[a, fixed[j]] = 0.0


@jit
def merge(lo, hi, shared, off, idx, own, prob, n_actions, policy, weights):
    """Set weights[slot, i] = Σ_a π(a|s) p(slot|s,a) of blocks lo … hi−1: the transition matrix P_π on the slots."""
    for b in range(lo, hi):
        first = off[b]
        n_slots = off[b + 1] - first
        at = b * B
        if shared:
            for u in range(n_slots):
                slot = first + u
                for i in range(B):
                    weights[slot, i] = 0.0
                for a in range(n_actions):
                    row = own[b] + u * n_actions + a
                    for i in range(B):
                        weights[slot, i] += prob[row, i] * policy[a, at + i]
        else:
            per_action = n_slots // n_actions
            for a in range(n_actions):
                for k in range(a * per_action, (a + 1) * per_action):
                    slot, row = first + k, own[b] + k
                    for i in range(B):
                        weights[slot, i] = prob[row, i] * policy[a, at + i]


@jit
def reached(off, idx, weights, first):
    """Return the states, bool (S padded,), that the chain P (`weights` on the slots) can reach from `first`."""
    n = (off.shape[0] - 1) * B
    seen, queue = np.zeros(n, np.bool_), np.empty(n, np.int64)
    filled, head = first.shape[0], 0
    for j in range(filled):
        queue[j] = first[j]
        seen[first[j]] = True
    while head < filled:
        b, i = queue[head] // B, queue[head] % B
        head += 1
        for slot in range(off[b], off[b + 1]):
            s = np.int64(idx[slot, i])
            if weights[slot, i] > 0.0 and not seen[s]:
                seen[s] = True
                queue[filled] = s
                filled += 1
    return seen


@jit
def push(lo, hi, shared, off, idx, own, prob, n_actions, policy, moving, now, first, then, weight, by_action):
    """Add to then[s' − first] the flow Σ π(a|s) p(s'|s,a) now(s) from the states s of blocks lo … hi−1.

    Visits of actions, times `weight`, are added to `by_action`, unless it is empty. Returns the largest mass that a
    state loses or gains because its policy does not sum to one (to zero where `moving` is 0), or a large number where
    a probability is negative.
    """
    room = _room(2 + n_actions)
    return _push_blocks(lo, hi, shared, off, idx, own, prob, policy, moving, now, first, then, weight, by_action, room)


@jit
def _push_blocks(lo, hi, shared, off, idx, own, prob, policy, moving, now, first, then, weight, by_action, room):
    """Do the step of `push` with the workspace `room` (2 + A, B)."""
    flow, lost, mass = room[0], room[1], room[2:]
    n_actions, worst = mass.shape[0], 0.0
    for b in range(lo, hi):
        at, n_slots = b * B, off[b + 1] - off[b]
        reached = False
        for i in range(B):
            reached |= now[at + i] != 0.0
        if not reached:
            continue
        for i in range(B):
            lost[i] = moving[at + i] * now[at + i]
        for a in range(n_actions):
            for i in range(B):
                m = now[at + i] * policy[a, at + i]
                mass[a, i] = m
                lost[i] -= m if m * now[at + i] >= 0.0 else 1e9
        for i in range(B):
            worst = max(worst, abs(lost[i]))
        if by_action.shape[0] > 0:
            for a in range(n_actions):
                for i in range(B):
                    by_action[a, at + i] += weight * mass[a, i]
        if shared:
            for u in range(n_slots):
                slot = off[b] + u
                _products(prob, own[b] + u * n_actions, 1, n_actions, mass, flow)
                for i in range(B):
                    then[idx[slot, i] - first] += flow[i]
        else:
            per_action = n_slots // n_actions
            for a in range(n_actions):
                for k in range(a * per_action, (a + 1) * per_action):
                    slot, row = off[b] + k, own[b] + k
                    for i in range(B):
                        then[idx[slot, i] - first] += mass[a, i] * prob[row, i]
    return worst


@jit
def arrive(lo, hi, spans, then, more, gamma, weight, now, total):
    """Set ρ at the next step, of blocks lo … hi−1: now ← m + γ Σ then.

    `more` is the source m, or empty where there is none. Row k of `then` is the mass that part k pushed to the states
    spans[k, 0] … spans[k, 1]−1; parts are added in their order, and cleared. ρ, times `weight`, is added to `total`.
    """
    begin, end = lo * B, hi * B
    here, sums = now[begin:end], total[begin:end]
    for i in range(end - begin):
        here[i] = 0.0
    for k in range(spans.shape[0]):
        low, high = max(begin, spans[k, 0]), min(end, spans[k, 1])
        if low < high:
            into, came = now[low:high], then[k, low - spans[k, 0] : high - spans[k, 0]]
            for i in range(high - low):
                into[i] += came[i]
                came[i] = 0.0
    for i in range(end - begin):
        here[i] *= gamma
    if more.shape[0] > 0:
        entering = more[begin:end]
        for i in range(end - begin):
            here[i] += entering[i]
    for i in range(end - begin):
        sums[i] += weight * here[i]


@jit
def forward(shared, off, idx, own, prob, n_actions, policies, moving, now, more, gamma, weight, total, by_action):
    """Run the forward pass ρ_t = m_t + γ P_πᵀ ρ_{t−1} under one policy per step; Σ ρ_t, t ≥ 1, is added to `total`.

    `now` (S,) is ρ at the first of these steps and, on return, at the one after the last; `more` (T, S) are the
    sources m, of any sign, of the later steps. Where it is empty, all mass enters at the first step: `now` is then not
    discounted but weighted by γ^t, at first by `weight`. `by_action` and the returned number are those of `push`.
    """
    once, blocks, worst = more.shape[0] == 0, off.shape[0] - 1, 0.0
    factor = 1.0 if once else gamma
    then, spans, none = np.zeros((1, now.shape[0])), np.array([[0, now.shape[0]]]), np.empty(0)
    room = _room(2 + n_actions)
    for t in range(policies.shape[0]):
        fault = _push_blocks(
            0, blocks, shared, off, idx, own, prob, policies[t], moving, now, 0, then[0], weight, by_action, room
        )
        worst = max(worst, fault) if fault == fault else math.nan
        weight *= gamma if once else 1.0
        arrive(0, blocks, spans, then, none if once else more[t], factor, weight, now, total)
    return worst


@jit
def _apply(operator, x, out):
    """Set out = (I − γ P) x; or, where a positive `scale` m is given, out = m⁻¹ (I − γ Pᵀ) (m x)."""
    off, idx, weights, gamma, scale = operator
    n = x.shape[0]
    if scale.shape[0] == 0:
        for s in range(n):
            out[s] = x[s]
        for b in range(off.shape[0] - 1):
            at = b * B
            for slot in range(off[b], off[b + 1]):
                for i in range(B):
                    out[at + i] -= gamma * weights[slot, i] * x[idx[slot, i]]
        return
    mass = np.empty(B)
    for s in range(n):
        out[s] = 0.0
    for b in range(off.shape[0] - 1):
        at = b * B
        for i in range(B):
            mass[i] = gamma * scale[at + i] * x[at + i]
        for slot in range(off[b], off[b + 1]):
            for i in range(B):
                out[idx[slot, i]] += weights[slot, i] * mass[i]
    for s in range(n):
        out[s] = x[s] - out[s] / scale[s]


@jit
def bicgstab(off, idx, weights, gamma, scale, b, x, tolerance, max_iter):
    """Solve (I − γ P) x = b, or the scaled transpose of `_apply`, with a warm start at x: see bicgstab.py."""
    return bicgstab_single(_apply, (off, idx, weights, gamma, scale), b, x, tolerance, max_iter)


@jit
def contract(off, idx, weights, gamma, scale, b, x, tolerance, most):
    """Iterate x ← x + b − A x, with A as in `bicgstab`, until ‖b − A x‖ ≤ tolerance or rounding; return that norm.

    The norm is the largest entry or, for the transpose, the sum of them in units of `scale`: it falls by γ per sweep.
    Slow, but it cannot break down. It ends after `most` sweeps, or where a number is NaN.
    """
    n, transposed = b.shape[0], scale.shape[0] > 0
    out, size, least, since = np.empty(n), np.inf, np.inf, 0
    for step in range(most):
        _apply((off, idx, weights, gamma, scale), x, out)
        top = total = 0.0
        for i in range(n):
            out[i] = b[i] - out[i]
            top = max(top, abs(out[i]))
            total += scale[i] * abs(out[i]) if transposed else abs(out[i])
        size = total if transposed or total != total else top  # max ignores NaN
        if size < least:
            least, since = size, step
        if not size > tolerance or step - since > STALLED:
            break
        for i in range(n):
            x[i] += out[i]
    return size
