"""Compiled BiCGSTAB, for one system and for a batch of them, one per lane (the last axis).

A system is a compiled function: `apply(operator, x, out)` puts A x into out, where `operator` is any argument it needs.
For a batch, `apply(operator, x, out, with_one, one, with_two, two)` also computes the inner products `one` and `two`
(L,) of each lane of out with two other vectors, all (n, L).

Lanes are independent: the result of one does not depend on the others, to the last bit. A lane that has converged does
not change while the others go on.

The number of lanes is read from the arrays, and sums are gathered in arrays made here: only such loops are vectorised.
"""

from __future__ import annotations

import math

import numpy as np

from messirl._compiled import inlined, jit

STALLED = 100  # steps without a smaller residual after which rounding is reached


@inlined
def multiplied(x, y, total):
    """Add x y to `total`, lane by lane."""
    for i in range(x.shape[0]):
        total[i] += x[i] * y[i]


@inlined
def put(x, out):
    """Copy x to out, lane by lane: `out[:] = x` takes seconds to compile."""
    for i in range(x.shape[0]):
        out[i] = x[i]


@jit
def _largest(x, out):
    """Compute ‖x‖∞ of each lane."""
    m = x.shape[1]
    most = np.zeros(m)
    for s in range(x.shape[0]):
        xs = x[s]
        for i in range(m):
            most[i] = max(most[i], abs(xs[i]))
    put(most, out)


@jit
def _dot(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@inlined
def bicgstab_single(apply, operator, b, x, tolerance, most):
    """Solve A x = b with a warm start at x.

    Stops at ‖residual‖∞ ≤ tolerance, after `most` steps, after STALLED steps without progress, or where the recurrence
    breaks down. Returns ‖residual‖∞ by the recurrence (the true one where `most` is 0), NaN where it diverged.
    Convergence is left to the caller to check.
    """
    n = b.shape[0]
    r = np.empty(n)
    apply(operator, x, r)
    worst = 0.0
    for i in range(n):
        r[i] = b[i] - r[i]
        worst = max(worst, abs(r[i]))
    shadow, p, v, t = r.copy(), np.zeros(n), np.zeros(n), np.empty(n)
    rho = alpha = omega = 1.0
    least, since = worst, 0
    for step in range(most):
        if worst < least:
            least, since = worst, step
        if worst <= tolerance or step - since > STALLED:
            break
        rho_next = _dot(shadow, r)
        if rho_next == 0.0 or omega == 0.0:
            break
        beta = (rho_next / rho) * (alpha / omega)
        rho = rho_next
        for i in range(n):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        apply(operator, p, v)
        bottom = _dot(shadow, v)
        if bottom == 0.0:
            break
        alpha = rho / bottom
        for i in range(n):
            r[i] -= alpha * v[i]
        apply(operator, r, t)
        tt = _dot(t, t)
        omega = _dot(t, r) / tt if tt > 0.0 else 0.0
        worst = 0.0
        for i in range(n):
            x[i] += alpha * p[i] + omega * r[i]
            r[i] -= omega * t[i]
            worst = max(worst, abs(r[i]))
        if not worst < 1e300:  # overflow
            break
    size = _dot(r, r)
    return worst if size == size else math.nan  # max ignores NaN


@inlined
def bicgstab_batch(apply, operator, r, x, tolerance, most, room):
    """Add the solution of A · = r to x; r becomes the residual. The first four of `room` (…, n, L) are workspace.

    Each lane stops at ‖r‖∞ ≤ its tolerance, after `most` steps, or where its recurrence breaks down. Convergence is
    left to the caller to check.
    """
    n, m = x.shape
    shadow, p, v, t = room[0], room[1], room[2], room[3]
    rho, alpha, omega, beta = np.ones(m), np.ones(m), np.ones(m), np.zeros(m)
    one, two, next_rho, worst = np.empty(m), np.empty(m), np.zeros(m), np.zeros(m)
    on = np.ones(m, np.bool_)
    p[:] = 0.0
    v[:] = 0.0
    _largest(r, worst)
    for s in range(n):
        put(r[s], shadow[s])
        multiplied(r[s], r[s], next_rho)
    for _ in range(most):
        any_on = False
        for i in range(m):
            on[i] = on[i] and worst[i] > tolerance[i] and next_rho[i] != 0.0 and omega[i] != 0.0
            any_on |= on[i]
            beta[i] = (next_rho[i] / rho[i]) * (alpha[i] / omega[i]) if on[i] else 0.0
            rho[i] = next_rho[i] if on[i] else 1.0
            omega[i] = omega[i] if on[i] else 0.0
        if not any_on:
            break
        for s in range(n):
            rs, ps, vs = r[s], p[s], v[s]
            for i in range(m):
                ps[i] = rs[i] + beta[i] * (ps[i] - omega[i] * vs[i])
        apply(operator, p, v, shadow, one, shadow, two)
        for i in range(m):
            on[i] = on[i] and one[i] != 0.0
            alpha[i] = rho[i] / one[i] if on[i] else 0.0
        for s in range(n):
            rs, vs = r[s], v[s]
            for i in range(m):
                rs[i] -= alpha[i] * vs[i]
        apply(operator, r, t, t, one, r, two)
        for i in range(m):
            omega[i] = two[i] / one[i] if on[i] and one[i] > 0.0 else 0.0
            next_rho[i] = 0.0
            worst[i] = 0.0
        for s in range(n):
            xs, ps, rs, ts, begin = x[s], p[s], r[s], t[s], shadow[s]
            for i in range(m):
                xs[i] += alpha[i] * ps[i] + omega[i] * rs[i]
            for i in range(m):
                rs[i] -= omega[i] * ts[i]
            for i in range(m):
                worst[i] = max(worst[i], abs(rs[i]))
            multiplied(begin, rs, next_rho)
