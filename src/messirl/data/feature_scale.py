"""The unit of each feature: its standard deviation over the states, or over the allowed state-action pairs.

A weight times the spread of its feature is dimensionless. Weights are compared, optimised and tested for convergence in
this form, so that no result depends on whether a length is given in metres or in millimetres.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.data.mdp import MDP

CONSTANT = 1e-10  # spread, relative to the size of the values, below which a feature is nearly constant
ROUNDING = 1e-15  # and below which it is constant
FEW_DIGITS = 1e-6  # and below which differences have too few digits left
UNEQUAL = 1e4  # ratio of spreads above which a warning is given
CHUNK = 65_536  # rows that are read at a time


def feature_spread(mdp: MDP) -> Floats:
    """Return the standard deviation of each feature, (d,); for a constant one its size, or 1 if it is always 0."""
    return mdp.memo("feature spread", lambda: spread_of(_looked_at(mdp)))


def unequal_spreads(mdp: MDP) -> str | None:
    """Return a warning if features differ in scale so much that one bound or penalty cannot suit them all."""
    rows = mdp.feature_rows
    used = np.flatnonzero(np.asarray(abs(rows).sum(axis=0)).ravel())
    spread = feature_spread(mdp)
    used = np.setdiff1d(used, _hardly_varying(mdp))
    if used.size == 0:
        return None
    low, high = (int(used[pick(spread[used])]) for pick in (np.argmin, np.argmax))
    if spread[high] <= UNEQUAL * spread[low]:
        return None
    large, small = (f"{mdp.feature_label(j)} has standard deviation {spread[j]:.2g}" for j in (high, low))
    return (
        f"the features differ in scale by {spread[high] / spread[low]:.0e}: {large}, {small}; fits are not affected, "
        "but theta_max and penalties that are not standardised act in these units: give features in units of "
        "comparable size"
    )


def offsets(mdp: MDP) -> str | None:
    """Return a warning if the values of a feature are large but differ little, so that few digits are left."""
    which = _hardly_varying(mdp)
    if not which.size:
        return None
    j = int(which[0])
    unit, spread, size = _moments(_looked_at(mdp))
    more = f" (and of {which.size - 1} more features)" if which.size > 1 else ""
    return (
        f"the values of {mdp.feature_label(j)}{more} vary by only {unit[j] * spread[j]:.2g} around "
        f"{unit[j] * size[j]:.2g}, so that the weight is found with few digits or not at all: subtract a constant from "
        "them and, where trajectories differ in length, add a constant feature"
    )


def _hardly_varying(mdp: MDP) -> Any:
    """Return the features that vary, but so little compared with their size that few digits are left."""
    unit, spread, size = _moments(_looked_at(mdp))
    return np.flatnonzero((spread > ROUNDING * size) & (spread <= FEW_DIGITS * size) & (unit > 0))


def spread_of(rows: Any) -> Floats:
    """Return the spread of each column of a matrix (n, d), dense or sparse."""
    unit, spread, size = _moments(rows)
    return np.asarray(unit * np.where(spread > CONSTANT * size, spread, np.where(size > 0, size, 1.0)))


def _looked_at(mdp: MDP) -> Any:
    rows = mdp.feature_rows
    return rows[mdp.allowed.ravel()] if mdp.state_action else rows


def _moments(rows: Any) -> tuple[Floats, Floats, Floats]:
    """Return the largest absolute value of each column (1 if all are 0), and relative to it the spread and the size."""
    n, d = rows.shape
    if n == 0:
        return np.ones(d), np.zeros(d), np.zeros(d)
    largest = np.asarray(abs(rows).max(axis=0).todense() if sp.issparse(rows) else np.abs(rows).max(axis=0)).ravel()
    unit = np.where(largest > 0, largest, 1.0)  # divided by it first, squares neither overflow nor underflow
    if sp.issparse(rows):  # the contribution of the zeros is known
        table = sp.csr_array(rows)
        column, values = table.indices, table.data / unit[table.indices]
        mean = np.bincount(column, values, d) / n
        square = np.bincount(column, (values - mean[column]) ** 2, d) / n
        square += (1.0 - np.bincount(column, minlength=d) / n) * mean**2
        return unit, np.sqrt(square), np.sqrt(square + mean**2)
    mean, square = np.zeros(d), np.zeros(d)
    for lo in range(0, n, CHUNK):
        mean += (rows[lo : lo + CHUNK] / unit).sum(axis=0) / n
    for lo in range(0, n, CHUNK):
        square += ((rows[lo : lo + CHUNK] / unit - mean) ** 2).sum(axis=0) / n
    return unit, np.sqrt(square), np.sqrt(square + mean**2)
