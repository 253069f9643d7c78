"""Which directions of θ the model cannot tell apart.

Adding v to θ changes nothing if every policy collects the same v-reward: if, under some fixed policy that may do
anything (every live action alike), no action is better than another,

    vᵀ A_f(s, a) = 0 for every reachable (s, a),     A_f(s,a) = f(s,a) + γ Σ p F(s') − F(s),   F = Σ_a π (f + γ P F).

So the unidentified directions are the null space of G = Σ_{s,a} A_f A_fᵀ, a d×d matrix that θ does not enter.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Floats, Ints
from messirl.planning.structure import Structure, reachable, structure
from messirl.problem.mdp import MDP

RELATIVE = 1e-10
ROUNDING = 1e-9
MAX_STATES = 200_000  # beyond, the factorisation would cost more than the fit
MAX_STEPS = 200  # of a horizon: the rank settles long before
MAX_GOALS = 16


Gram = tuple[Floats, Floats]  # G and the size of each feature's values


def unidentified(mdp: MDP, start: Floats | None, goals: Ints | None, *, noncausal: bool = False) -> Floats:
    """A basis (k, d) of the directions of θ that no trajectory from these starts can tell."""
    if mdp.n_states > MAX_STATES:
        return np.zeros((0, mdp.n_features))
    if goals is not None:
        distinct, often = np.unique(goals, return_counts=True)
        gram, scale = np.zeros((mdp.n_features, mdp.n_features)), np.zeros(mdp.n_features)
        for i, goal in enumerate(distinct[np.argsort(-often, kind="stable")]):
            more, size = _gram_endless(mdp, structure(mdp, int(goal)), None, noncausal=noncausal)
            gram, scale = gram + more, np.maximum(scale, size)
            if i + 1 >= MAX_GOALS or len(_null(gram, scale)) == 0:
                break
        return _null(gram, scale)
    if mdp.horizon is not None:
        return _null(*_gram_finite(mdp, start, noncausal=noncausal))
    return _null(*_gram_endless(mdp, structure(mdp), start, noncausal=noncausal))


def _null(gram: Floats, scale: Floats) -> Floats:
    """The null space of G; `scale` (d,) is the size of each feature's values, below which lies rounding."""
    size = np.sqrt(np.maximum(np.diag(gram), 0.0))
    size = np.where(size > ROUNDING * scale, size, 0.0)
    unit = np.where(size > 0, size, 1.0)
    seen = size > 0
    values, vectors = np.linalg.eigh(np.where(np.outer(seen, seen), gram / np.outer(unit, unit), 0.0))
    basis = vectors[:, values <= RELATIVE * max(float(values[-1]), 1e-300)].T
    return np.where(np.abs(basis) > 1e-6, basis, 0.0) / unit


def _rows(mdp: MDP) -> Floats:
    """Features of every (s, a) as a dense (S·A, d) matrix, scaled to comparable size by feature."""
    rows = mdp.feature_rows
    dense = np.asarray(rows.todense()) if sp.issparse(rows) else rows
    return dense if mdp.state_action else np.repeat(dense, mdp.n_actions, axis=0)


def _average(mdp: MDP, live: np.ndarray) -> sp.csr_array:
    """The policy that takes every live action alike, as a matrix (S, S·A)."""
    share = (live / np.maximum(live.sum(axis=1, keepdims=True), 1)).ravel()
    at = np.flatnonzero(share)
    return sp.csr_array(sp.coo_array((share[at], (at // mdp.n_actions, at)), shape=(mdp.n_states, share.size)))


def _spread(mdp: MDP, rows: Floats, ahead: Floats, here: Floats, live: np.ndarray, *, noncausal: bool) -> Floats:
    """Σ over live (s, a) of A_f A_fᵀ; noncausal models also tell next states apart."""
    gap = rows + mdp.discount * (mdp.transitions @ ahead) - np.repeat(here, mdp.n_actions, axis=0)
    gap = gap[live.ravel()]
    gram = gap.T @ gap
    if noncausal:
        keep = np.repeat(live.ravel(), np.diff(mdp.transitions.indptr))
        row = np.repeat(np.arange(live.size), np.diff(mdp.transitions.indptr))
        luck = ahead[mdp.transitions.indices] - (mdp.transitions @ ahead)[row]
        gram += luck[keep].T @ luck[keep]
    return np.asarray(gram)


def _gram_endless(mdp: MDP, frame: Structure, start: Floats | None, *, noncausal: bool) -> Gram:
    rows, average = _rows(mdp), _average(mdp, frame.live)
    end = np.zeros((mdp.n_states, mdp.n_features))
    if not mdp.state_action:
        end[frame.ends] = rows[:: mdp.n_actions][frame.ends]
    system = sp.csc_array(sp.eye_array(mdp.n_states) - mdp.discount * (average @ mdp.transitions))
    here = splu(system).solve(np.ascontiguousarray(average @ rows + end))
    live = frame.live if start is None else frame.live & reachable(mdp, start)[:, None]
    return _spread(mdp, rows, here, here, live, noncausal=noncausal), np.abs(here).max(axis=0)


def _gram_finite(mdp: MDP, start: Floats | None, *, noncausal: bool) -> Gram:
    assert mdp.horizon is not None
    rows = _rows(mdp)
    stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
    live = mdp.allowed & ~((mdp.transitions @ stuck.astype(float)) > 0).reshape(mdp.allowed.shape)
    average = _average(mdp, live)
    end = np.zeros((mdp.n_states, mdp.n_features)) if mdp.state_action else rows[:: mdp.n_actions]
    ahead = end
    at = live if start is None else live & reachable(mdp, start)[:, None]
    gram = np.zeros((mdp.n_features, mdp.n_features))
    for step in range(1, min(mdp.horizon - 1, MAX_STEPS) + 1):
        here = average @ (rows + mdp.discount * (mdp.transitions @ ahead))
        here[mdp.terminal] = end[mdp.terminal]
        gram += _spread(mdp, rows, ahead, here, at, noncausal=noncausal)
        ahead = here
        if step.bit_count() == 1 and len(_null(gram, np.abs(ahead).max(axis=0))) == 0:  # now and then
            break
    return gram, np.abs(ahead).max(axis=0)
