"""The game of Syed and Schapire: a policy against the worst reward that is still possible.

    v* = max_π min_i g_iᵀ(f_π − f*)

The rewards w.r.t. which the policy must not fall behind the experts are all Σ_i w_i g_i with w ≥ 0, Σw = 1. A feature
whose sign is known (more of it is better, or worse) has one row g_i, ± one over its largest magnitude; of one whose
sign is not known there are both. If the experts' counts are those of some policy, v* ≥ 0: no possible reward prefers
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._checks import numbers
from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.estimators._best_response import TIE


def stakes(mdp: MDP, signs: Any) -> Floats:
    """The rows g_i, (m, d).

    signs : (d,) of 1, −1 and 0 for features that are good, bad, or of unknown sign; None: nothing is known
    """
    known = np.zeros(mdp.n_features) if signs is None else numbers("signs", signs)
    if known.shape != (mdp.n_features,) or not np.isin(known, (-1.0, 0.0, 1.0)).all():
        raise ValueError(f"signs={signs!r}: give 1, -1 or 0 (not known) for each of the {mdp.n_features} features")
    largest = abs(mdp.feature_rows).max(axis=0)
    largest = np.asarray(largest.todense() if hasattr(largest, "todense") else largest).ravel()
    unit = np.diag(1.0 / np.where(largest > 0.0, largest, 1.0))
    return np.concatenate([unit[known >= 0.0], -unit[known <= 0.0]])


def weighed(weights: Floats, rows: Floats) -> Floats:
    """Σ_i w_i g_i, (d,): the reward that these weights (m,) make, zero where all that is left of it is rounding.

    Where good and bad weigh the same they cancel, and any reward may be what rounding leaves.
    """
    found, terms = weights @ rows, weights @ np.abs(rows)
    return np.asarray(np.where(np.abs(found) > TIE * terms, found, 0.0))


def value_of(rows: Floats, counts: Floats, target: Floats) -> float:
    """min_i g_iᵀ(f − f*): how far counts (d,) are ahead of the target under the worst reward."""
    return float((rows @ (counts - target)).min())


def largest_count(mdp: MDP) -> float:
    """Σ_t γ^t over the longest trajectory: what a feature of magnitude 1 can add up to."""
    if mdp.horizon is None:
        return 1.0 / (1.0 - mdp.discount)
    return float((mdp.discount ** np.arange(mdp.horizon)).sum())
