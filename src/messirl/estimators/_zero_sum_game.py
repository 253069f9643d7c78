"""The game of Syed and Schapire: a policy against the worst possible reward.

    v* = max_π min_i g_iᵀ(f_π − f*)

The possible rewards are all Σ_i w_i g_i with w ≥ 0, Σw = 1. A feature whose sign is known (more of it is better, or
worse) has one row g_i, ± one over its largest magnitude; one whose sign is unknown has both. If the experts' counts are
those of some policy, v* ≥ 0: no possible reward prefers the experts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._checks import check_numeric_array
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators._best_response import TIE


def stakes(mdp: MDP, signs: Any) -> Floats:
    """Return the rows g_i, (m, d).

    signs : (d,) of 1, −1 and 0 for features that are good, bad, or of unknown sign; None: all signs are unknown
    """
    known = np.zeros(mdp.n_features) if signs is None else check_numeric_array("signs", signs)
    if known.shape != (mdp.n_features,) or not np.isin(known, (-1.0, 0.0, 1.0)).all():
        raise ValueError(f"signs={signs!r}: give 1, -1 or 0 (unknown) for each of the {mdp.n_features} features")
    largest = abs(mdp.feature_rows).max(axis=0)
    largest = np.asarray(largest.todense() if hasattr(largest, "todense") else largest).ravel()
    unit = np.diag(1.0 / np.where(largest > 0.0, largest, 1.0))
    return np.concatenate([unit[known >= 0.0], -unit[known <= 0.0]])


def weighed(weights: Floats, rows: Floats) -> Floats:
    """Return the reward Σ_i w_i g_i, (d,), of weights (m,), with rounding errors set to zero.

    Opposite rows with equal weights cancel, and rounding would leave an arbitrary reward.
    """
    found, terms = weights @ rows, weights @ np.abs(rows)
    return np.asarray(np.where(np.abs(found) > TIE * terms, found, 0.0))


def value_of(rows: Floats, counts: Floats, target: Floats) -> float:
    """Return min_i g_iᵀ(f − f*), the lead of counts (d,) over the target under the worst reward."""
    return float((rows @ (counts - target)).min())


def largest_count(mdp: MDP) -> float:
    """Return Σ_t γ^t over the longest trajectory, the largest count of a feature of magnitude 1."""
    if mdp.horizon is None:
        return 1.0 / (1.0 - mdp.discount)
    return float((mdp.discount ** np.arange(mdp.horizon)).sum())
