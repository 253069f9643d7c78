"""A feasible start: a θ at which the model has finite values, where it has none at zero (γ = 1, no horizon).

If under some potential φ every step costs at least the log of the number of choices,

    θᵀf(s,a) + Σ_s' p(s'|s,a) φ(s') − φ(s) ≤ −log |A(s)|      for every live (s, a),

then T φ ≤ φ, so V ≤ φ is finite. The smallest such θ, each weight measured in units of its feature's spread, is the
solution of a linear programme. The programme without a potential, on the steps that lie on cycles, has few variables
and is tried first; then the one with a potential.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from messirl._types import Flags, Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.planning.policy_chain import chain_matrix

MARGIN = 0.1  # beyond log |A|, to stay clear of the boundary


def feasible_theta(mdp: MDP, bound: float, live: Flags) -> Floats | None:
    """Return a θ in the box with finite values of all `live` actions (S, A), or None if the programmes find none.

    The last answer is cached with the MDP, since fits with other penalties ask for the same one.
    """
    kept: dict[tuple[float, bytes], Floats | None] = mdp.memo("feasible θ", dict)
    key = bound, live.tobytes()
    if key not in kept:
        kept.clear()
        kept[key] = _found(mdp, bound, live)
    found = kept[key]
    return None if found is None else found.copy()


def _found(mdp: MDP, bound: float, live: Flags) -> Floats | None:
    rows = np.flatnonzero(live.ravel())
    state = rows // mdp.n_actions
    moves = mdp.transitions[rows]
    unit = feature_spread(mdp)
    features = sp.csr_array(mdp.feature_rows[rows if mdp.state_action else state]) @ sp.diags_array(1.0 / unit)
    box = bound * unit
    choices = np.bincount(state, minlength=mdp.n_states)[state]
    cost = -np.log(choices) - MARGIN

    _, part = connected_components(chain_matrix(mdp, live.astype(np.float64)), directed=True, connection="strong")
    inside = np.logical_or.reduceat(
        part[moves.indices] == np.repeat(part[state], np.diff(moves.indptr)), moves.indptr[:-1]
    )
    if not inside.any():
        return np.zeros(mdp.n_features)
    weights = _least(features[inside], cost[inside], 0, box)
    if weights is not None:
        return np.clip(weights / unit, -bound, bound)
    out = sp.csr_array(
        sp.coo_array((np.ones(rows.size), (np.arange(rows.size), state)), shape=(rows.size, mdp.n_states))
    )
    both = sp.csr_array(sp.hstack([features, moves - out]))[inside]
    weights = _least(both, cost[inside], mdp.n_states, box)
    if weights is None and np.isfinite(bound):  # the box is too small for the full margin: take what it allows
        weights = _most(both, cost[inside], box)
    return None if weights is None else np.clip(weights / unit, -bound, bound)


def _least(left: sp.csr_array, right: Floats, n_free: int, box: Floats) -> Floats | None:
    """Return w of least ‖w‖∞ with left [w, φ] ≤ right and |w_j| ≤ box_j."""
    d = box.size
    # Variables w, φ and m ≥ |w_j|.
    stack = sp.hstack([left, sp.csr_array((left.shape[0], 1))])
    caps = sp.hstack([sp.eye_array(d), sp.csr_array((d, n_free)), -np.ones((d, 1))])
    floors = sp.hstack([-sp.eye_array(d), sp.csr_array((d, n_free)), -np.ones((d, 1))])
    limits = np.concatenate([right, np.zeros(2 * d)])
    x = _solved(sp.vstack([stack, caps, floors]), limits, box, 1.0, None)
    return None if x is None else x[:d]


def _most(left: sp.csr_array, right: Floats, box: Floats) -> Floats | None:
    """Return the w in the box for which left [w, φ] ≤ m · right with the largest m."""
    x = _solved(sp.hstack([left, sp.csr_array(-right[:, None])]), np.zeros(len(right)), box, -1.0, 1.0)
    return x[: box.size] if x is not None and x[-1] > 0 else None


def _solved(matrix: Any, limits: Floats, box: Floats, cost: float, most: float | None) -> Floats | None:
    """Return [w, φ, m] with matrix [w, φ, m] ≤ limits, w in the box and 0 ≤ m ≤ most, for which cost · m is least."""
    n = matrix.shape[1]
    sides = [(-float(b), float(b)) if np.isfinite(b) else (None, None) for b in box]
    bounds = [*sides, *[(None, None)] * (n - box.size - 1), (0.0, most)]
    objective = np.append(np.zeros(n - 1), cost)
    answer = linprog(objective, A_ub=sp.csr_array(matrix), b_ub=limits, bounds=bounds, method="highs")
    return np.asarray(answer.x) if answer.status == 0 else None
