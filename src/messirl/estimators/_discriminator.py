"""Exact discriminators of expert choices from unlabelled ones.

A discriminator is a function d = 1/(1 + e^−g) of state-action pairs x that minimises

    Σ_x  b(x) log(1 + e^g(x)) − a(x) g(x)

Two cases are used, with p_E and p_O the shares of the pairs among the choices of two sets:

    experts against all          a = p_E     b = p_E + p_O      −E_E[log d] − E_O[log(1 − d)]
    experts among others (PU)    a = η p_E   b = p_O            η E_E[−log d + log(1 − d)] − E_O[log(1 − d)]

Over all functions of pairs ("table") the minimum is d = a/b, which is 0 for pairs that no expert took. Over functions
linear in features of pairs ("features") the problem is convex, and with a ridge it has one minimum, found by Newton's
method; such a discriminator generalises to pairs with similar features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP

ROUNDS = 100  # largest number of Newton steps; about ten are usual
TINY = 1e-15  # relative decrease of the value at which Newton's method stops


def by_table(a: Floats, b: Floats) -> Floats:
    """Return d = a/b within 0 and 1, the minimum over all functions; 0 for pairs without data."""
    return np.asarray(np.clip(a / np.where(b > 0.0, b, 1.0), 0.0, 1.0))


def by_features(a: Floats, b: Floats, inputs: Floats, ridge: float) -> Floats:
    """Return d (m,) of the best g = w₀ + wᵀx, with ½ ridge ‖w‖² on standardised x.

    a, b : (m,) of each pair; inputs : (m, k)
    """
    weight = b / b.sum()
    mean = weight @ inputs
    spread = np.sqrt(weight @ (inputs - mean) ** 2)
    flat = spread <= 1e-9 * np.abs(inputs).max(axis=0, initial=1e-300)
    x = np.column_stack([np.ones(len(inputs)), np.where(flat, 0.0, (inputs - mean) / np.where(flat, 1.0, spread))])
    pull = np.full(x.shape[1], ridge)
    pull[0] = 1e-9  # the intercept is not penalised
    w = np.zeros(x.shape[1])

    def value(w: Floats) -> float:
        g = x @ w
        return float(b @ np.logaddexp(0.0, g) - a @ g + 0.5 * pull @ w**2)

    for _ in range(ROUNDS):
        d = expit(x @ w)
        slope = x.T @ (b * d - a) + pull * w
        step = np.linalg.solve((x.T * (b * d * (1.0 - d))) @ x + np.diag(pull), slope)
        here, promised, size = value(w), float(slope @ step), 1.0
        if promised <= TINY * (1.0 + abs(here)):  # Newton decrement
            break
        while value(w - size * step) > here - 1e-4 * size * promised and size > 1e-6:
            size *= 0.5
        w = w - size * step
    return np.asarray(expit(x @ w))


def pair_features(mdp: MDP, rows: Ints) -> Floats:
    """Return features of pairs s·A + a, (m, k): f(s,a) or, with state features, f(s) and the expected f(s')."""
    if mdp.state_action:
        return _dense(mdp.feature_rows[rows])
    ahead = mdp.transitions[rows] @ mdp.feature_rows
    return np.hstack([_dense(mdp.feature_rows[rows // mdp.n_actions]), _dense(ahead)])


def _dense(table: Any) -> Floats:
    return np.asarray(table.toarray() if sp.issparse(table) else table, dtype=np.float64)
