"""QuantEcon's discrete dynamic programs in their sparse form: one row per feasible pair (state, action).

    max E Σ β^t R(s_t, a_t),   Q[i, s'] = p(s' | s_i, a_i),   R[i] = r(s_i, a_i)

`DiscreteDP(*to_quantecon(mdp, reward))` is QuantEcon's object; QuantEcon is not imported here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP


class SparseForm(NamedTuple):
    """Arguments of QuantEcon's DiscreteDP, in their order: L pairs, S states."""

    R: Floats  # (L,)
    Q: sp.csr_array  # (L, S)
    beta: float
    s_indices: Ints  # (L,)
    a_indices: Ints  # (L,)


def from_quantecon(program: Any, *, features: Any = None, start: npt.ArrayLike | None = None) -> tuple[MDP, Floats]:
    """Convert a SparseForm, a DiscreteDP, or an object with the same attributes to an MDP and its reward (S, A).

    program : R (L,), Q (L, S), beta, s_indices, a_indices; or R (S, A), Q (S, A, S), beta.  Pairs with R = −inf and
        pairs that are not listed are not allowed; their reward is returned as 0.
    features : as for an MDP; None : one indicator per state
    """
    for name in ("R", "Q", "beta"):
        if getattr(program, name, None) is None:
            raise TypeError(f"{type(program).__name__} has no {name}: give a DiscreteDP or a SparseForm")
    R, Q, beta = np.asarray(program.R, dtype=np.float64), program.Q, program.beta
    s, a = getattr(program, "s_indices", None), getattr(program, "a_indices", None)
    if s is None or a is None:
        return _from_product(R, Q, beta, features, start)
    rows, n_pairs = sp.csr_array(Q, dtype=np.float64), R.size
    s, a = _indices("s_indices", s, n_pairs), _indices("a_indices", a, n_pairs)
    if R.ndim != 1 or rows.shape[0] != n_pairs:
        raise InputError("Q", f"has shape {rows.shape}, R {R.shape}", "give one row and one reward per pair")
    n_states, n_actions = rows.shape[1], int(a.max()) + 1
    if s.max() >= n_states:
        raise InputError("s_indices", f"holds {s.max()}", f"Q has {n_states} columns, so states are 0 … {n_states - 1}")
    place = s * n_actions + a
    numbers, times = np.unique(place, return_counts=True)
    if (times > 1).any():
        twice = int(numbers[np.argmax(times > 1)])
        raise InputError("s_indices", f"the pair {divmod(twice, n_actions)} is listed twice", "list each pair once")
    spread = sp.csr_array((np.ones(n_pairs), (place, np.arange(n_pairs))), shape=(n_states * n_actions, n_pairs))
    reward = np.full(n_states * n_actions, -np.inf)
    reward[place] = R
    return _built(sp.csr_array(spread @ rows), reward.reshape(n_states, n_actions), beta, features, start)


def to_quantecon(mdp: MDP, reward: npt.ArrayLike) -> SparseForm:
    """Convert an MDP to the sparse form with the same optimal values; reward (S,) or (S, A).

    A terminal state gets a self-loop with reward 0 for a reward (S, A), and (1 − β) r(s) per step, r(s) in all, for a
    reward (S,).
    """
    r = np.asarray(reward, dtype=np.float64)
    n, m = mdp.n_states, mdp.n_actions
    if r.shape not in ((n,), (n, m)):
        raise InputError("reward", f"has shape {r.shape}", f"give ({n},) or ({n}, {m})")
    if not mdp.endless:
        what = f"discount is {mdp.discount:g}, horizon is {mdp.horizon}"
        raise InputError("mdp", what, "the sparse form needs discount < 1 and no horizon")
    stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
    if stuck.any():
        raise InputError(
            "mdp", f"state {int(np.argmax(stuck))} has no action", "make it terminal, or give it an action"
        )
    feasible = mdp.allowed.copy()
    feasible[mdp.terminal, 0] = True
    s, a = np.nonzero(feasible)
    loops = mdp.terminal[s].astype(np.float64)
    Q = mdp.transitions[s * m + a] + sp.csr_array((loops, (np.arange(s.size), s)), shape=(s.size, n))
    end = (1.0 - mdp.discount) * r[s] if r.ndim == 1 else np.zeros(s.size)
    R = np.where(mdp.terminal[s], end, r[s] if r.ndim == 1 else r[s, a])
    return SparseForm(R, sp.csr_array(Q), mdp.discount, s, a)


def _from_product(R: Floats, Q: Any, beta: Any, features: Any, start: Any) -> tuple[MDP, Floats]:
    law = Q if sp.issparse(Q) else np.asarray(Q, dtype=np.float64)
    if R.ndim != 2 or law.shape != (*R.shape, R.shape[0]):
        what = f"has shape {law.shape}, R {R.shape}"
        raise InputError("Q", what, "give R (S, A) and Q (S, A, S), or the index arrays")
    return _built(sp.csr_array(law.reshape(-1, R.shape[0])), R, beta, features, start)


def _built(rows: sp.csr_array, reward: Floats, beta: Any, features: Any, start: Any) -> tuple[MDP, Floats]:
    n_states = reward.shape[0]
    table = sp.eye_array(n_states, format="csr") if features is None else features
    feasible = reward != -np.inf
    if not np.isfinite(reward[feasible]).all():
        raise InputError("R", "some reward is NaN or infinite", "use finite rewards, or -inf for infeasible pairs")
    mdp = MDP(rows, table, discount=float(beta), start=start, allowed=feasible)
    return mdp, np.where(feasible, reward, 0.0)


def _indices(name: str, values: Any, n: int) -> Ints:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.shape != (n,) or not n or array.min() < 0:
        raise InputError(
            name, f"has dtype {array.dtype} and shape {array.shape}", f"give {n} numbers from 0, one per pair"
        )
    return array.astype(np.int64)
