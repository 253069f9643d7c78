"""Records of a fit, a selection or a diagnosis: everything that a page, a terminal and a JSON file show.

A record is filled by its workflow and only read afterwards. `summary()` is the content of fit.json, select.json and
diagnosis.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from messirl import __version__
from messirl._docstrings import inherit_documentation
from messirl._types import Floats, Ints
from messirl.app.workflow import narrative
from messirl.app.workflow.ranking import ALIKE, ranked
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators.registry import EXPERT, describe_model

if TYPE_CHECKING:
    from messirl.app.workflow.policy_change import PolicyChange
    from messirl.app.workflow.preferences import Preferences
    from messirl.app.workflow.verdict import Verdict
    from messirl.data.trajectories import Trajectories
    from messirl.inference.group_breakdown import Breakdown
    from messirl.inference.paired_gain import Gain
    from messirl.inference.standard_errors import EstimationTable
    from messirl.inference.weight_ratios import WeightRatio
    from messirl.selection import MESSICV, NestedScore, Validation
    from messirl.selection.decision_rule import Choice
    from messirl.selection.diagnostics import Diagnosis

LISTED = 5  # trajectories of each ranking in a summary
KNOBS = ("lambda0", "ridge", "standardise", "theta_prior", "unlabelled_weight", "reference_strength")  # of a choice


@dataclass(frozen=True)
class Score:
    """The mean log-probability per step of one method.

    Attributes
    ----------
    name : str
        The method, in words.
    fit_on : str
        The trajectories it was fitted to, in words.
    expert : float or None
        The score on the expert's own trajectories.
    held_out : float or None
        The score on the held-out trajectories; None without any.
    note : str
        A note, such as that the fit did not converge.
    gain : Gain or None
        The gain over the experts only on the held-out trajectories, paired by trajectory; None if one of the two is
        missing.
    """

    name: str
    fit_on: str
    expert: float | None
    held_out: float | None
    note: str = ""
    gain: Gain | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """The common part of all records.

    Attributes
    ----------
    title : str
        The title of the page.
    folder : str
        The source of the data.
    command : str
        The command line that reproduces the record.
    counts : dict from str to int
        The number of trajectories of each kind, {"expert": 10, "unlabelled": 500, "test": 464}.
    filters : dict from str to str
        The filters that selected them, {"expert": "who = guide"}.
    settings : dict from str to str
        The arguments of the estimator, as text.
    warnings : list of str
        Warnings that concern the result.
    by : list of Breakdown
        Results by group of the column of `by`.
    """

    title: str = ""
    folder: str = ""
    command: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    by: list[Breakdown] = field(default_factory=list)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_documentation(cls)


@dataclass(frozen=True, eq=False)
class FitRecord(Record):
    """The record of a fit; `summary()` is the content of fit.json.

    Attributes
    ----------
    model : estimator
        The fitted model.
    xy : array (S, 2) or None
        Coordinates of the states; not finite for a state without coordinates.
    scores : list of Score
        The method first, then the baselines.
    preferences : Preferences or None
        The weights of the experts without a penalty, for the sentences.
    estimates : list of dict or None
        One per feature, with name, estimate, std_error, robust_std_error, outer_std_error, t and p, each of which may
        be None.
    table : EstimationTable or None
        The same, for printing.
    ratios : list of WeightRatio
        The requested ratios of weights.
    tests : list of dict
        The requested likelihood-ratio tests: the features left out, statistic, degrees and p.
    statistics : dict from str to float
        Statistics of the whole fit, such as its log-likelihood.
    dynamics : dict
        The source of the dynamics: {"kind": "known"}, or the evidence for estimated dynamics.
    verdict : Verdict or None
        The comparison of methods on held-out trajectories; None without any, or with one method only.
    change : PolicyChange or None
        The difference from the prior policy, if there is one.
    goal : int or None
        With goals, the one that the policy is shown for. None: the one with the most expected visits.
    laid_out : bool
        Whether `xy` is a layout of the transitions, for lack of coordinates; directions then have no meaning.
    y_down : bool
        Whether y grows downwards, as in images.
    tracks : dict from str to Trajectories
        Some of the expert and of the unlabelled trajectories, for drawing.
    """

    title: str = field()  # the first argument, and without the default that a Record has
    model: Any
    xy: npt.NDArray[Any] | None = None
    scores: list[Score] = field(default_factory=list)
    preferences: Preferences | None = None
    estimates: list[dict[str, Any]] | None = None
    table: EstimationTable | None = None
    ratios: list[WeightRatio] = field(default_factory=list)
    tests: list[dict[str, Any]] = field(default_factory=list)
    statistics: dict[str, float] = field(default_factory=dict)
    dynamics: dict[str, Any] = field(default_factory=lambda: {"kind": "known"})
    verdict: Verdict | None = None
    change: PolicyChange | None = None
    goal: int | None = None
    laid_out: bool = False
    y_down: bool = False
    tracks: dict[str, Trajectories] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return the content of fit.json."""
        model = self.model
        return {
            "folder": self.folder,
            "in_words": self.in_words,
            "method": self.method,
            "trajectories": self.counts,
            "theta": weights(model),
            "held": model.standing_.names(model.mdp_) if self.full else {},
            "converged": bool(model.converged_),
            "termination": self.termination,
            "iterations": getattr(model, "n_iter_", None),
            "scores": [asdict(score) for score in self.scores],
            "preferences": None if self.preferences is None else self.preferences.summary(),
            "estimates": self.estimates,
            "ratios": [ratio.row() for ratio in self.ratios],
            "tests": self.tests,
            "statistics": self.statistics,
            "settings": self.settings,
            "warnings": self.warnings,
            "version": __version__,
            "command": self.command,
            "dynamics": self.dynamics,
            "verdict": None if self.verdict is None else self.verdict.summary(),
            "base_policy": None if self.change is None else self.change.summary(),
            "by": [breakdown.summary() for breakdown in self.by],
        }

    @property
    def full(self) -> bool:
        """True for a maximum-entropy method: there are expected visits, a history and a convergence report."""
        return isinstance(self.model, MaximumEntropy)

    @property
    def termination(self) -> str:
        """The reason why the search ended."""
        return str(getattr(self.model, "termination_", "converged" if self.model.converged_ else "not converged"))

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        return narrative.fit_sentences(self)

    @property
    def uses_unlabelled(self) -> bool:
        """True if the fit learnt from unlabelled trajectories."""
        return describe_model(self.model)[1] != EXPERT

    @property
    def method(self) -> str:
        """The name of the estimator."""
        return type(self.model).__name__

    @property
    def states_on_map(self) -> Ints:
        """The states that have coordinates."""
        if self.xy is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(np.isfinite(np.asarray(self.xy, dtype=np.float64)).all(axis=1))

    @property
    def on_a_line(self) -> bool:
        """True if all states with coordinates lie on a line along x or along y."""
        if not self.states_on_map.size:
            return False
        extent = np.ptp(np.asarray(self.xy, dtype=np.float64)[self.states_on_map], axis=0)
        return bool(extent.min() <= ALIKE * extent.max())

    @property
    def towards(self) -> int | None:
        """The goal that the policy is shown for, None without goals."""
        goals = self.model.goals_
        if goals is None or self.goal is not None:
            return self.goal
        return int(goals[ranked(self.model.visitation_[goals])[0]])

    @property
    def policy(self) -> Floats | None:
        """π (S, A) at the first step, or for the goal shown; None if there is no choice."""
        mdp = self.model.mdp_
        if mdp.horizon == 1:
            return None
        return np.asarray(self.model.predict_proba(np.arange(mdp.n_states), step=mdp.first_step, goal=self.towards))

    @property
    def by_size(self) -> Ints:
        """Features by |θ|, the largest first."""
        return ranked(np.abs(self.model.theta_))

    @property
    def at_bound(self) -> int:
        """The number of weights at the bound ‖θ‖∞ ≤ θ_max."""
        bound = self.model.theta_max
        return 0 if bound is None else int((np.abs(self.model.theta_) >= bound * (1 - 1e-9)).sum())

    @property
    def all_warnings(self) -> list[str]:
        """The warnings, the report on the dynamics, and non-convergence unless a warning states it."""
        said = [*self.warnings, *(f"dynamics: {line}" for line in self.dynamics.get("report", ()))]
        if not self.model.converged_ and not any("converge" in words for words in said):
            said.append(f"The fit did not converge: {self.termination}.")
        return said

    def called(self, kind: str, i: int) -> str:
        """Return the name of a "feature", a "state" or an "action", or its number."""
        names = getattr(self.model.mdp_, f"{kind}_names")
        return str(names[i]) if names else f"{kind} {i}"

    def half_widths(self) -> Floats:
        """Return half the 95 % interval of every weight, (d,); NaN where none is known, or with a penalty."""
        out = np.full(self.model.theta_.size, np.nan)
        if self.model.quadratic_ is not None or self.table is None:
            return out
        low, high = self.table.conf_int().T
        return np.asarray((high - low) / 2)


@dataclass(frozen=True, eq=False)
class SelectionRecord(Record):
    """The record of a selection; `summary()` is the content of select.json.

    Attributes
    ----------
    validation : Validation or None
        The scores of the candidates; None if nothing could be held out.
    choice : Choice
        The choice and its reason.
    model : MESSICV
        The chosen candidate, fitted.
    expert, held_out : float or None
        The scores of the chosen candidate on the expert's own and on held-out trajectories.
    nested : NestedScore or None
        The score of the whole procedure, if requested.
    intervals : dict from str to list or None
        The 95 % bootstrap interval of each weight by the name of its feature, if requested.
    preferences : Preferences or None
        The weights of the experts without a penalty, for the sentences.
    stability : list of dict or None
        The stability of MESSI's policy at each λ0, if nothing could be held out.
    seconds : float
        The time of the selection.
    """

    validation: Validation | None
    choice: Choice
    model: MESSICV
    expert: float | None = None
    held_out: float | None = None
    nested: NestedScore | None = None
    intervals: dict[str, list[float]] | None = None
    preferences: Preferences | None = None
    stability: list[dict[str, float]] | None = None
    seconds: float = 0.0

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        return narrative.selection_sentences(self)

    @property
    def zero(self) -> int:
        """Index of the candidate that gains on a page are over: the choice for the experts only, or the default."""
        use, found = getattr(self.model, "use_", None), self.validation
        return self.choice.default if use is None or found is None else found.candidates.index(use.alone)

    def summary(self) -> dict[str, Any]:
        """Return the content of select.json."""
        choice, found, use = self.choice, self.validation, self.model.use_
        chosen, made = choice.candidate, self.model.best_estimator_.get_params(deep=False)
        out: dict[str, Any] = {
            "folder": self.folder,
            "in_words": self.in_words,
            "trajectories": self.counts,
            "version": __version__,
            "command": self.command,
            "warnings": self.warnings,
            "chosen": {
                "index": choice.index,
                "candidate": str(chosen),
                "method": chosen.method,
                "lambda0": chosen.lambda0,
                "strength": chosen.strength,
                "weight": chosen.weight,
                "parameters": {name: made[name] for name in KNOBS if name in made},
                "is_default": choice.index == choice.default,
            },
            "reason": choice.reason,
            "needed": choice.needed,
            "verdict": self.model.verdict_,
            "use": None if use is None else use.summary() | {"sentence": use.sentence},
            "candidates": [] if found is None else found.rows(choice.default),
            "default": choice.default,
            "units": 0 if found is None else int(found.steps.size),
            "seconds": self.seconds,
            "expert": self.expert,
            "held_out": self.held_out,
            "converged": bool(self.model.converged_),
            "theta": weights(self.model),
            "preferences": None if self.preferences is None else self.preferences.summary(),
            "by": [breakdown.summary() for breakdown in self.by],
        }
        if self.stability is not None:
            out["stability"] = self.stability
        if self.nested is not None:
            out["nested"] = {
                "mean": self.nested.mean,
                "standard_error": self.nested.standard_error,
                "scores": self.nested.scores,
                "chosen": [str(candidate) for candidate in self.nested.chosen],
            }
        return out if self.intervals is None else {**out, "intervals": self.intervals}


@dataclass(frozen=True, eq=False)
class DiagnosisRecord(Record):
    """The record of a diagnosis; `summary()` is the content of diagnosis.json.

    Attributes
    ----------
    diagnosis : Diagnosis
        The diagnosis.
    ids : sequence of str
        The names of the unlabelled trajectories.
    features : list of str
        The names of the features.
    lambda0 : float
        λ0 of the model that was diagnosed.
    """

    diagnosis: Diagnosis
    ids: Sequence[str]
    features: list[str]
    lambda0: float = 0.0

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        return narrative.diagnosis_sentences(self)

    def summary(self) -> dict[str, Any]:
        """Return the content of diagnosis.json."""
        found, choice = self.diagnosis, self.diagnosis.choice
        most, least = self.extremes(LISTED)
        return {
            "folder": self.folder,
            "in_words": self.in_words,
            "trajectories": self.counts,
            "verdict": found.verdict,
            "evidence": found.evidence,
            "use": None if found.use is None else found.use.summary(),
            "recommended": None if choice is None else {"candidate": str(choice.candidate), "reason": choice.reason},
            "expert_likeness": found.agreement_with_experts.expert,
            "unlabelled_likeness": found.agreement_with_experts.mean,
            "alike": int(found.agreement_with_experts.alike.sum()),
            "agreement": {
                name: getattr(found.agreement_with_experts.agreement, name) for name in ("mean", "between", "within")
            },
            "degrees_of_freedom": found.degrees_of_freedom,
            "identified": found.identified,
            "most_alike": list(self.rows(most)),
            "least_alike": list(self.rows(least)),
            "most_influential": list(self.rows(self.most_influential[:LISTED])),
            "directions": [
                {"shrinkage": d.shrinkage, "features": dict(d.largest(self.features, len(self.features)))}
                for d in found.directions
            ],
            "by": [breakdown.summary() for breakdown in self.by],
            "settings": self.settings,
            "warnings": self.warnings,
            "version": __version__,
            "command": self.command,
        }

    def rows(self, which: Iterable[int] | None = None) -> Iterator[dict[str, Any]]:
        """Yield one dict of results per unlabelled trajectory; by default for all."""
        some = enumerate(self.ids) if which is None else ((j, self.ids[j]) for j in which)
        return ({"trajectory_id": name, **self.diagnosis.row(j)} for j, name in some)

    def extremes(self, most: int) -> tuple[Ints, Ints]:
        """Return the trajectories of highest and of lowest agreement, at most so many; see `Likeness.extremes`."""
        return self.diagnosis.agreement_with_experts.extremes(most)

    @property
    def most_influential(self) -> Ints:
        """The trajectories whose influence is known, the largest first."""
        influence = self.diagnosis.influence
        if influence is None:
            return np.zeros(0, dtype=np.int64)
        known = np.flatnonzero(np.isfinite(influence))
        return np.asarray(known[np.argsort(-influence[known], kind="stable")])


def weights(model: Any) -> dict[str, float]:
    """Return θ by the name of each feature, or by its number; nothing for a method without θ."""
    return dict(zip(model.mdp_.feature_ids, model.theta_.tolist(), strict=True)) if hasattr(model, "theta_") else {}


def settings_of(model: Any) -> dict[str, str]:
    """Return the arguments of an estimator as text, without callback and theta_init."""
    return {name: text for name, text in parameters_of(model).items() if name not in ("callback", "theta_init")}


def parameters_of(model: Any) -> dict[str, str]:
    """Return all arguments of an estimator as text; of an array, such as a prior policy, its shape."""
    given = model.get_params(deep=False).items()
    return {name: f"array {value.shape}" if isinstance(value, np.ndarray) else str(value) for name, value in given}
