"""The experts' preferences: the features whose weight differs from zero, by what they contribute.

A penalty draws weights towards zero or along each other, so no preference is claimed from a penalised fit. Its weights
are fitted again to the experts alone, without the penalty but with a weak normal prior (standard deviation 10 in units
of each feature), which keeps weights finite where few experts do not determine them.

A weight has the unit of its feature, so weights are compared by what they contribute to the choices of a trajectory:
|θ_j| times how much the feature varies over the states, or steps, that the model expects. Where trajectories end by
themselves, a feature that is the same everywhere counts too, since every step costs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._defaults import MAX_ITER, WEAK_PRIOR
from messirl._types import Floats
from messirl.app.workflow.ranking import ranked
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators import MaxEntIRL
from messirl.estimators._convergence_report import quietly
from messirl.estimators.uniform import uniform_score
from messirl.inference import EstimationTable, estimation_table

ROUNDING = 1e-12  # of a mean square: smaller variances are rounding errors


@dataclass(frozen=True)
class Preferences:
    """The weights of the experts without a penalty, and their intervals.

    Attributes
    ----------
    model : MaxEntIRL
        The fit that they are of.
    table : EstimationTable or None
        Estimates and intervals; None where one trajectory or one individual allows none.
    refitted : bool
        Whether this is another fit than the one that the record is of.
    below_chance : bool
        Whether it explains the experts' own choices worse than equally likely actions do.
    """

    model: Any
    table: EstimationTable | None
    refitted: bool
    below_chance: bool = False

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the 95 % intervals, (d,) each; NaN where a weight has none, or the fit is none."""
        if self.table is None or not self.model.converged_ or self.below_chance:
            none = np.full(self.model.theta_.size, np.nan)
            return none, none
        low, high = self.table.conf_int().T
        return low, high

    def summary(self) -> dict[str, Any]:
        """What files hold of them."""
        estimates = None if self.table is None else self.table.rows()
        return {"refitted": self.refitted, "below_chance": self.below_chance, "estimates": estimates}


def refit_without_penalty(
    model: Any, mdp: MDP, expert: Trajectories, groups: npt.ArrayLike | None = None
) -> Preferences:
    """Return the preferences behind a fit with a penalty, or to unlabelled trajectories too."""
    causal = model.entropy == "causal"
    again = MaxEntIRL(
        entropy=model.entropy,
        objective=None if causal else "counts",
        reference=model.reference_,
        theta_prior=WEAK_PRIOR,
        theta_max=None,
        max_iter=MAX_ITER,
    )
    with quietly():
        again.fit(mdp, expert)
    return preferences_of(again, expert, table_of(again, expert, groups), refitted=True)


def preferences_of(model: Any, expert: Trajectories, table: EstimationTable | None, *, refitted: bool) -> Preferences:
    """Return the preferences that a fit to the experts without a penalty shows."""
    with np.errstate(invalid="ignore"):
        below = bool(model.score(expert) < uniform_score(model.mdp_, expert))
    return Preferences(model, table, refitted, below)


def table_of(model: Any, expert: Trajectories, groups: npt.ArrayLike | None = None) -> EstimationTable | None:
    """Return the estimation table of a fit to the experts, or None where nothing varies that errors could rest on."""
    alike = groups is not None and len(set(np.asarray(groups).tolist())) < 2
    if len(expert) < 2 or not (expert.lengths > 1).any() or alike:
        return None
    with warnings.catch_warnings():  # warnings about the data were raised by the fit; few clusters are a remark
        warnings.simplefilter("ignore")
        return estimation_table(model, expert, groups)


@dataclass(frozen=True)
class Signs:
    """Features by the sign of their weight, each list with the largest contribution first.

    Attributes
    ----------
    preferred, avoided : list of str
        Those whose interval leaves out zero.
    unclear : list of str
        Those whose interval includes zero.
    unknown : list of str
        Those without an interval: on the bound, or not identified.
    """

    preferred: list[str]
    avoided: list[str]
    unclear: list[str]
    unknown: list[str]

    @property
    def tested(self) -> bool:
        """Whether any weight has an interval."""
        return bool(self.preferred or self.avoided or self.unclear)


def signs_of(names: Sequence[str], low: Floats, high: Floats, contribution: Floats) -> Signs:
    """Sort features by what the intervals of their weights say.

    low, high : (d,) ends of the interval of each weight; NaN where it has none
    contribution : (d,) by which they are ordered, none below zero
    """
    order, known = ranked(contribution), np.isfinite(low) & np.isfinite(high)
    up, down = known & (low > 0.0), known & (high < 0.0)
    kinds = (up, down, known & ~up & ~down, ~known)
    return Signs(*([names[j] for j in order if which[j]] for which in kinds))


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
