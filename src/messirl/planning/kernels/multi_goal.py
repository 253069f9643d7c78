"""Compiled batched solves of systems that share a sparse matrix M, one column (the last axis) each.

M is stored by rows (CSR), as `ptr`, `index`, `data`. Every system is that of a chain with a diagonal scaling,

    x ↦ x − after · (M (before · x)),     before, after (n, k)
"""

from __future__ import annotations

import numpy as np

from messirl._compiled import inlined, jit
from messirl.planning.kernels.bicgstab import bicgstab_batch, bicgstab_single, multiplied, put


@inlined
def _single(ptr, index, data, s, x):
    """Return (M x)[s] of a single column."""
    total, j, end = 0.0, ptr[s], ptr[s + 1]
    while j + 4 <= end:
        a, b, c, d = data[j], data[j + 1], data[j + 2], data[j + 3]
        total += (a * x[index[j]] + b * x[index[j + 1]]) + (c * x[index[j + 2]] + d * x[index[j + 3]])
        j += 4
    while j < end:
        total += data[j] * x[index[j]]
        j += 1
    return total


@jit
def _apply_single(operator, x, out):
    """Compute A x of a single column (n,), for bicgstab.py."""
    ptr, index, data, before, after, worth = operator
    for s in range(x.shape[0]):
        worth[s] = before[s] * x[s]
    for s in range(x.shape[0]):
        out[s] = x[s] - after[s] * _single(ptr, index, data, s, worth)


@inlined
def _product(ptr, index, data, s, x, total):
    """Set total ← (M x)[s], four entries at a time so that it is seldom stored."""
    k, j, end = total.shape[0], ptr[s], ptr[s + 1]
    for i in range(k):
        total[i] = 0.0
    while j + 4 <= end:
        a, b, c, d = data[j], data[j + 1], data[j + 2], data[j + 3]
        xa, xb, xc, xd = x[index[j]], x[index[j + 1]], x[index[j + 2]], x[index[j + 3]]
        for i in range(k):
            total[i] += (a * xa[i] + b * xb[i]) + (c * xc[i] + d * xd[i])
        j += 4
    while j < end:
        a, xa = data[j], x[index[j]]
        for i in range(k):
            total[i] += a * xa[i]
        j += 1


@jit
def _apply(operator, x, out, with_one, one, with_two, two):
    """Compute A x and two inner products of each column, for bicgstab.py."""
    ptr, index, data, before, after, worth = operator
    n, k = x.shape
    total, first, second = np.empty(k), np.zeros(k), np.zeros(k)
    for s in range(n):
        xs, factor, at = x[s], before[s], worth[s]
        for i in range(k):
            at[i] = factor[i] * xs[i]
    for s in range(n):
        _product(ptr, index, data, s, worth, total)
        xs, factor = x[s], after[s]
        for i in range(k):
            total[i] = xs[i] - factor[i] * total[i]
        put(total, out[s])
        multiplied(total, with_one[s], first)
        multiplied(total, with_two[s], second)
    put(first, one)
    put(second, two)


@jit
def solve_columns(ptr, index, data, before, after, right, wanted, most):
    """Return x (n, k) with A x = right by BiCGSTAB, each column to ‖residual‖∞ ≤ `wanted` (k,) or for `most` steps."""
    x = np.zeros(right.shape)
    if right.shape[1] == 1:
        operator = (ptr, index, data, before[:, 0], after[:, 0], np.empty(right.shape[0]))
        bicgstab_single(_apply_single, operator, right[:, 0], x[:, 0], wanted[0], most)
        return x
    left, room = right.copy(), np.empty((5, right.shape[0], right.shape[1]))
    bicgstab_batch(_apply, (ptr, index, data, before, after, room[4]), left, x, wanted, most, room)
    return x


@jit
def times(ptr, index, data, x):
    """Return M x, (n, k)."""
    out, total = np.empty(x.shape), np.empty(x.shape[1])
    for s in range(x.shape[0]):
        if total.shape[0] == 1:
            out[s, 0] = _single(ptr, index, data, s, x[:, 0])
            continue
        _product(ptr, index, data, s, x, total)
        put(total, out[s])
    return out


@jit
def sweep(ptr, index, data, held, right, z, flushed, enough):
    """Return right + M z, (n, k), column i without row held[i] of M; entries below `flushed` are set to zero.

    Also returns which columns have grown by no more than a share `enough` in any row, (k,), and their maxima (k,).
    """
    ahead = times(ptr, index, data, z)
    settled, top = np.ones(z.shape[1], np.bool_), np.zeros(z.shape[1])
    for i in range(held.shape[0]):
        ahead[held[i], i] = 0.0
    for s in range(z.shape[0]):
        at, here, more = ahead[s], z[s], right[s]
        for i in range(z.shape[1]):
            at[i] += more[i]
        for i in range(z.shape[1]):
            at[i] = 0.0 if at[i] < flushed else at[i]
        for i in range(z.shape[1]):
            settled[i] &= at[i] - here[i] <= enough * at[i]
        for i in range(z.shape[1]):
            top[i] = max(top[i], at[i])
    return ahead, settled, top


@jit
def onwards(ptr, index, data, held, z, mass):
    """Return z · (Mᵀ (mass / z)), (n, k), each column without its row of `held`, where M is stored by columns."""
    share = np.zeros(z.shape)
    for s in range(z.shape[0]):
        here, own, at = z[s], mass[s], share[s]
        for i in range(z.shape[1]):
            at[i] = own[i] / here[i] if here[i] > 0.0 else 0.0
    for i in range(held.shape[0]):
        share[held[i], i] = 0.0
    out = times(ptr, index, data, share)
    for s in range(z.shape[0]):
        here, at = z[s], out[s]
        for i in range(z.shape[1]):
            at[i] *= here[i]
    return out
