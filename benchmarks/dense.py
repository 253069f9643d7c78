"""The recursion as one would write it in NumPy: a dense (S·A, S) array, one BLAS product a step, policies stored.

V_{H−1} = r,   Q_t = γ P V_{t+1},   V_t = r + log Σ_a exp Q_t,   π_t = exp(Q_t − log Σ_a exp Q_t)
D_0 = start,   D_{t+1} = γ (D_t π_t)ᵀ P,   ρ = Σ_t D_t
"""

from __future__ import annotations

import numpy as np


def backward(rows: np.ndarray, reward: np.ndarray, discount: float, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """V_0 (S,) and the policies (H − 1, S, A)."""
    n_states = reward.size
    n_actions = rows.shape[0] // n_states
    policy = np.empty((horizon - 1, n_states, n_actions))
    flat = np.empty(rows.shape[0])
    q = flat.reshape(n_states, n_actions)
    value = reward
    for t in range(horizon - 2, -1, -1):
        np.matmul(rows, value, out=flat)
        q *= discount
        top = q.max(axis=1)
        q -= top[:, None]
        np.exp(q, out=q)
        total = q.sum(axis=1)
        np.divide(q, total[:, None], out=policy[t])
        value = reward + top + np.log(total)
    return value, policy


def forward(rows: np.ndarray, policy: np.ndarray, start: np.ndarray, discount: float) -> np.ndarray:
    """ρ (S,): expected discounted visits."""
    visits = start.copy()
    now = start
    flow = np.empty(policy.shape[1:])
    for step in policy:
        np.multiply(now[:, None], step, out=flow)
        now = flow.ravel() @ rows
        now *= discount
        visits += now
    return visits


def evaluate(
    rows: np.ndarray, reward: np.ndarray, start: np.ndarray, discount: float, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One evaluation: V_0, policies and visits."""
    value, policy = backward(rows, reward, discount, horizon)
    return value, policy, forward(rows, policy, start, discount)
