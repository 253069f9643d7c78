"""Which directions of θ the model cannot tell apart.

Adding v to θ changes nothing if every policy collects the same v-reward: if, under some fixed policy that may do
anything (all live actions equally likely), no action is better than another,

    vᵀ A_f(s, a) = 0 for every reachable (s, a),     A_f(s,a) = f(s,a) + γ Σ p F(s') − F(s),   F = Σ_a π (f + γ P F).

So the unidentified directions are the null space of G = Σ_{s,a} A_f A_fᵀ, a d×d matrix that θ does not enter.
"""

from __future__ import annotations

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.planning.chain import chain_matrix, collected, factorised, feature_table, gram
from messirl.planning.structure import Structure, reachable, structure_of
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
        total, scale = np.zeros((mdp.n_features, mdp.n_features)), np.zeros(mdp.n_features)
        for i, goal in enumerate(distinct[np.argsort(-often, kind="stable")]):
            more, size = _gram_endless(mdp, structure_of(mdp, int(goal)), None, noncausal=noncausal)
            total, scale = total + more, np.maximum(scale, size)
            if i + 1 >= MAX_GOALS or len(_null(total, scale)) == 0:
                break
        return _null(total, scale)
    if mdp.horizon is not None:
        return _null(*_gram_finite(mdp, mdp.horizon, start, noncausal=noncausal))
    return _null(*_gram_endless(mdp, structure_of(mdp), start, noncausal=noncausal))


def _null(gram: Floats, scale: Floats) -> Floats:
    """The null space of G; `scale` (d,) is the size of each feature's values, below which lies rounding."""
    size = np.sqrt(np.maximum(np.diag(gram), 0.0))
    size = np.where(size > ROUNDING * scale, size, 0.0)
    unit = np.where(size > 0, size, 1.0)
    seen = size > 0
    values, vectors = np.linalg.eigh(np.where(np.outer(seen, seen), gram / np.outer(unit, unit), 0.0))
    basis = vectors[:, values <= RELATIVE * max(float(values[-1]), 1e-300)].T
    return np.where(np.abs(basis) > 1e-6, basis, 0.0) / unit


def _alike(live: Flags) -> Floats:
    """The policy under which all live actions are equally likely."""
    return np.asarray(live / np.maximum(live.sum(axis=1, keepdims=True), 1))


def _spread(mdp: MDP, features: Floats, ahead: Floats, here: Floats, live: Flags, *, noncausal: bool) -> Floats:
    """Σ over live (s, a) of A_f A_fᵀ; noncausal models also tell next states apart."""
    total = gram(mdp, features, ahead, here, live.astype(np.float64))
    if noncausal:
        row = np.repeat(np.arange(live.size), np.diff(mdp.transitions.indptr))
        luck = (ahead[mdp.transitions.indices] - (mdp.transitions @ ahead)[row])[live.ravel()[row]]
        total += luck.T @ luck
    return total


def _gram_endless(mdp: MDP, structure: Structure, start: Floats | None, *, noncausal: bool) -> Gram:
    features, average = feature_table(mdp), _alike(structure.live)
    here = collected(features, average)
    if not mdp.state_action:
        here[structure.ends] += features[structure.ends, 0]
    here = factorised(chain_matrix(mdp, average), mdp.discount).solve(here)
    live = structure.live if start is None else structure.live & reachable(mdp, start)[:, None]
    return _spread(mdp, features, here, here, live, noncausal=noncausal), np.abs(here).max(axis=0)


def _gram_finite(mdp: MDP, horizon: int, start: Floats | None, *, noncausal: bool) -> Gram:
    features = feature_table(mdp)
    stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
    live = mdp.allowed & ~((mdp.transitions @ stuck.astype(float)) > 0).reshape(mdp.allowed.shape)
    chain, gained = chain_matrix(mdp, _alike(live)), collected(features, _alike(live))
    end = np.zeros((mdp.n_states, mdp.n_features)) if mdp.state_action else features[:, 0]
    ahead = end
    at = live if start is None else live & reachable(mdp, start)[:, None]
    total = np.zeros((mdp.n_features, mdp.n_features))
    for step in range(1, min(horizon - 1, MAX_STEPS) + 1):
        here = gained + mdp.discount * (chain @ ahead)
        here[mdp.terminal] = end[mdp.terminal]
        total += _spread(mdp, features, ahead, here, at, noncausal=noncausal)
        ahead = here
        if step.bit_count() == 1 and len(_null(total, np.abs(ahead).max(axis=0))) == 0:  # now and then
            break
    return total, np.abs(ahead).max(axis=0)
