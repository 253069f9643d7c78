"""The experts' preferences: features with significant weights, ordered by their contribution.

A penalty shrinks weights towards zero or towards each other, so no preference is claimed from a penalised fit. Its
weights are refitted to the experts only, without the penalty but with a weak normal prior (standard deviation 10 in
units of each feature), which keeps weights finite if few experts do not determine them.

A weight has the unit of its feature, so weights are compared by their contribution to the choices of a trajectory:
|θ_j| times the variation of the feature over the states, or steps, that the model expects. If trajectories end by
themselves, a constant feature contributes too, since every step adds it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._parameters import WEAK_PRIOR, default
from messirl._types import Floats
from messirl.app.workflow.ranking import ranked
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators import MaxEntIRL
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators.uniform import uniform_score
from messirl.inference import EstimationTable, estimation_table

ROUNDING = 1e-12  # variances below this share of the mean square are rounding errors


@dataclass(frozen=True)
class Preferences:
    """The weights of the experts without a penalty, and their intervals.

    Attributes
    ----------
    model : MaxEntIRL
        The fit of these weights.
    table : EstimationTable or None
        Estimates and intervals; None if one trajectory or one individual allows none.
    refitted : bool
        Whether this is a different fit from that of the record.
    below_chance : bool
        Whether it explains the experts' own choices worse than equally likely actions do.
    """

    model: Any
    table: EstimationTable | None
    refitted: bool
    below_chance: bool = False

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Lower and upper ends of the 95 % intervals, (d,) each; NaN where a weight has none or the fit failed."""
        if self.table is None or not self.model.converged_ or self.below_chance:
            none = np.full(self.model.theta_.size, np.nan)
            return none, none
        low, high = self.table.conf_int().T
        return low, high

    def summary(self) -> dict[str, Any]:
        """Return the entry of result files."""
        estimates = None if self.table is None else self.table.rows()
        return {"refitted": self.refitted, "estimates": estimates}


def refit_without_penalty(
    model: Any, mdp: MDP, expert: Trajectories, groups: npt.ArrayLike | None = None
) -> Preferences:
    """Return the preferences for a fit that has a penalty or uses unlabelled trajectories."""
    causal = model.entropy == "causal"
    again = MaxEntIRL(
        entropy=model.entropy,
        objective=None if causal else "counts",
        reference=model.reference_,
        theta_prior=WEAK_PRIOR,
        theta_max=None,
        max_iter=default("max_iter"),
    )
    with ignore_convergence_warnings():
        again.fit(mdp, expert)
    return preferences_of(again, expert, table_of(again, expert, groups), refitted=True)


def preferences_of(model: Any, expert: Trajectories, table: EstimationTable | None, *, refitted: bool) -> Preferences:
    """Return the preferences that a fit to the experts without a penalty shows."""
    with np.errstate(invalid="ignore"):
        below = bool(model.score(expert) < uniform_score(model.mdp_, expert))
    return Preferences(model, table, refitted, below)


def table_of(model: Any, expert: Trajectories, groups: npt.ArrayLike | None = None) -> EstimationTable | None:
    """Return the estimation table of a fit to the experts, or None if too little varies for standard errors."""
    alike = groups is not None and len(set(np.asarray(groups).tolist())) < 2
    if len(expert) < 2 or not (expert.lengths > 1).any() or alike:
        return None
    with warnings.catch_warnings():  # the fit has raised all warnings about the data; few clusters are noted elsewhere
        warnings.simplefilter("ignore")
        return estimation_table(model, expert, groups)


@dataclass(frozen=True)
class FeatureSigns:
    """Features by the sign of their weight, each list with the largest contribution first.

    Attributes
    ----------
    preferred, avoided : list of str
        Those whose interval excludes zero.
    unclear : list of str
        Those whose interval includes zero.
    unknown : list of str
        Those without an interval: at the bound, or not identified.
    """

    preferred: list[str]
    avoided: list[str]
    unclear: list[str]
    unknown: list[str]

    @property
    def tested(self) -> bool:
        """True if any weight has an interval."""
        return bool(self.preferred or self.avoided or self.unclear)


def sort_by_sign(names: Sequence[str], low: Floats, high: Floats, contribution: Floats) -> FeatureSigns:
    """Sort features by the sign of their weight, from its interval.

    low, high : (d,) ends of the interval of each weight; NaN where it has none
    contribution : (d,) the nonnegative key of their order
    """
    order, known = ranked(contribution), np.isfinite(low) & np.isfinite(high)
    up, down = known & (low > 0.0), known & (high < 0.0)
    kinds = (up, down, known & ~up & ~down, ~known)
    return FeatureSigns(*([names[j] for j in order if which[j]] for which in kinds))


def contributions(model: Any) -> Floats:
    """Return |θ_j| times the spread of feature j over what a fitted model expects to visit, (d,)."""
    return np.asarray(np.abs(model.theta_) * spreads(model))


def spreads(model: Any) -> Floats:
    """Return the spread of each feature over the states, or steps, that a fitted model expects to visit, (d,)."""
    mdp, visits = model.mdp_, np.nan_to_num(model.visitation_)
    weight = visits if visits.sum() > 0 else np.ones(mdp.n_states)
    if mdp.state_action:
        weight = (weight[:, None] * mdp.allowed).ravel()
    weight = weight / max(float(weight.sum()), 1e-300)
    rows = mdp.feature_rows
    square = np.asarray(weight @ (rows.multiply(rows) if hasattr(rows, "multiply") else rows**2)).ravel()
    if model.goals_ is None and not mdp.terminal.any():  # a constant feature changes no choice
        mean = np.asarray(weight @ rows).ravel()
        square = np.where(square - mean**2 > ROUNDING * square, square - mean**2, 0.0)
    return np.asarray(np.sqrt(square))
