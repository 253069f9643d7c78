"""What a fit says that experts want and avoid: the features whose sign is settled, by what they contribute.

A weight has the unit of its feature, so weights are compared by what they contribute to the choices of a trajectory:
|θ_j| times how much the feature varies over the states, or steps, that the model expects. Where trajectories end by
themselves, a feature that is the same everywhere counts too, since every step costs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.workflow.ranking import ranked

LEAST = 0.2  # of the largest contribution: without intervals, weights that contribute less are not named
ROUNDING = 1e-12  # of a mean square: smaller variances are rounding errors


@dataclass(frozen=True)
class Wants:
    """Features by the sign of their weight, each list with the largest contribution first.

    Attributes
    ----------
    wanted, avoided : list of str
        Those whose sign is settled: the interval of the weight leaves out zero. Without any interval, those whose
        estimate contributes most.
    unsettled : list of str
        Those whose interval includes zero.
    unknown : list of str
        Those without an interval, where others have one: on the bound, or not identified.
    tested : bool
        Whether there were intervals.
    """

    wanted: list[str]
    avoided: list[str]
    unsettled: list[str]
    unknown: list[str]
    tested: bool


def wants_of(names: Sequence[str], theta: Floats, low: Floats, high: Floats, contribution: Floats) -> Wants:
    """Features by what their intervals say.

    low, high : (d,) ends of the interval of each weight; NaN where it has none
    contribution : (d,) by which they are ordered, none below zero
    """
    order = ranked(contribution)
    known = np.isfinite(low) & np.isfinite(high)
    tested = bool(known.any())
    if tested:
        up, down = known & (low > 0.0), known & (high < 0.0)
    else:
        large = contribution >= LEAST * contribution.max(initial=0.0)
        up, down = large & (theta > 0.0), large & (theta < 0.0)
    kinds = (up, down, known & ~up & ~down, ~known & tested)
    wanted, avoided, unsettled, unknown = ([names[j] for j in order if which[j]] for which in kinds)
    return Wants(wanted, avoided, unsettled, unknown, tested)


def contributions(model: Any) -> Floats:
    """|θ_j| times how much feature j varies over what a fitted model expects to meet, (d,)."""
    return np.asarray(np.abs(model.theta_) * spreads(model))


def spreads(model: Any) -> Floats:
    """How much each feature varies over the states, or steps, that a fitted model expects to meet, (d,)."""
    mdp, visits = model.mdp_, np.nan_to_num(model.visitation_)
    weight = visits if visits.sum() > 0 else np.ones(mdp.n_states)
    if mdp.state_action:
        weight = (weight[:, None] * mdp.allowed).ravel()
    weight = weight / max(float(weight.sum()), 1e-300)
    rows = mdp.feature_rows
    square = np.asarray(weight @ (rows.multiply(rows) if hasattr(rows, "multiply") else rows**2)).ravel()
    if model.goals_ is None and not mdp.terminal.any():  # what is the same everywhere changes no choice
        mean = np.asarray(weight @ rows).ravel()
        square = np.where(square - mean**2 > ROUNDING * square, square - mean**2, 0.0)
    return np.asarray(np.sqrt(square))
