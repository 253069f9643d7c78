"""What the report of one fit shows: everything is computed before, and the page only reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats, Ints
from messirl.diagnostics import Diagnosis
from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.report.kit.numbers import ranked

Z95 = 1.96  # standard errors on either side of an estimate, for 95 %


@dataclass(frozen=True)
class Score:
    """Mean log-probability a step of one method, on the expert's own trajectories and on held-out ones."""

    name: str
    fit_on: str
    expert: float | None
    held_out: float | None
    note: str = ""


@dataclass(frozen=True, eq=False)
class Diagnosed:
    """A diagnosis, and what people call the things in it.

    ids : (u,) of the unlabelled trajectories
    features : (d,) their names
    """

    diagnosis: Diagnosis
    ids: list[str]
    features: list[str]


@dataclass(frozen=True, eq=False)
class FitRecord:
    """One fit.

    model : fitted
    xy : (S, 2) coordinates of the states, not finite where a state has none; or None
    counts : how many trajectories of each kind, {"expert": 10, "unlabelled": 500, "test": 464}
    scores : the method first, then the baselines
    estimates : rows with name, estimate, std_error, robust_std_error, t, p; each number may be None
    goal : with goals, the one to show the policy for; None is the one with the most expected visits
    diagnosis : of the unlabelled trajectories, if there is one
    """

    title: str
    model: MaximumEntropy
    xy: npt.NDArray[Any] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)
    estimates: list[dict[str, Any]] | None = None
    fit_statistics: dict[str, float] | None = None
    settings: dict[str, str] = field(default_factory=dict)
    command: str = ""
    warnings: list[str] = field(default_factory=list)
    goal: int | None = None
    diagnosis: Diagnosed | None = None

    @property
    def method(self) -> str:
        return type(self.model).__name__

    @property
    def placed(self) -> Ints:
        """The states that have coordinates."""
        if self.xy is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.isfinite(np.asarray(self.xy, dtype=np.float64)).all(axis=1))

    @property
    def towards(self) -> int | None:
        """The goal that the policy is shown for, None without goals."""
        goals = self.model.goals_
        if goals is None or self.goal is not None:
            return self.goal
        return int(goals[ranked(self.model.visitation_[goals])[0]])

    @property
    def policy(self) -> Floats | None:
        """π (S, A) of the first step, or towards the goal shown; None where there is no choice at all."""
        horizon = self.model.mdp_.horizon
        if horizon == 1:
            return None
        every = np.arange(self.model.mdp_.n_states)
        return self.model.predict_proba(every, step=None if horizon is None else 0, goal=self.towards)

    @property
    def by_size(self) -> Ints:
        """Features by |θ|, the largest first."""
        return ranked(np.abs(self.model.theta_))

    @property
    def at_bound(self) -> int:
        """How many weights lie on the bound ‖θ‖∞ ≤ θ_max."""
        bound = self.model.theta_max
        return 0 if bound is None else int((np.abs(self.model.theta_) >= bound * (1 - 1e-9)).sum())

    def feature(self, j: int) -> str:
        """The name of a feature, or its number."""
        names = self.model.mdp_.feature_names
        return names[j] if names else f"feature {j}"

    def state(self, s: int) -> str:
        """The name of a state, or its number."""
        names = self.model.mdp_.state_names
        return names[s] if names else f"state {s}"

    def action(self, a: int) -> str:
        """The name of an action, or its number."""
        names = self.model.mdp_.action_names
        return names[a] if names else f"action {a}"

    def half_widths(self) -> Floats:
        """Half of the 95 % interval of every weight, (d,); NaN where none is known. Robust errors come first."""
        out = np.full(self.model.theta_.size, np.nan)
        rows = self.estimates or []
        known = {str(row.get("name")): row for row in rows}
        nameless = self.model.mdp_.feature_names is None and len(rows) == out.size
        for j in range(out.size):
            row = rows[j] if nameless else known.get(self.feature(j))
            for key in ("robust_std_error", "std_error"):
                value = None if row is None else row.get(key)
                if value is not None and np.isfinite(value) and not np.isfinite(out[j]):
                    out[j] = Z95 * float(value)
        return out
