"""The objective J(θ) = L(θ) − ½ θᵀ Q θ and its gradient (Eq. 2, Eq. 4 and Eq. 6), for counts or for choices.

    counts     L(θ) = θᵀ f* − Σ_s start(s) V_θ(s),        ∇L(θ) = f* − f_θ,    f_θ = Σ_s ρ_θ(s) f(s)
    choices    L(θ) = c Σ_i w_i Σ_t log π_θ(a_t|s_t)      (log Σ_a π(a|s) p(s'|s,a) where actions are not recorded)

For counts (feature matching), L is the concave dual of maximum (causal) entropy; it is the mean log-likelihood of the
expert's trajectories where transitions are deterministic and γ = 1 (Eq. 4 has the sum). Without Q the gradient vanishes
where the counts match, Eq. 2.

For choices, L is the log-likelihood of the actions given the states, whatever the transitions then were. It has the
same form, with the features of the choices for f* and a signed source for the start (planning/choice_likelihood.py).
Where transitions are deterministic, γ = 1 and trajectories end, the two are equal; elsewhere L of choices need not be
concave. The factor c gives a choice the weight it has in the counts: c = Σ w_i M_i / Σ w_i T_i, with T_i the choices of
a trajectory and M_i their discounted mass.

MESSI has Q = (λ0/θ_max) M with M of Eq. 5; a ridge has Q = ρ I. A normal prior of the weights, θ_j · unit_j ~ N(0, τ²),
adds unit_j² / (τ² N) to the diagonal of Q, where N · L is the log-likelihood of all trajectories: N is their number, or
for choices their number over c. Its influence falls with the number of trajectories.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._checks import check_numeric_array
from messirl._text import count_noun
from messirl._types import Flags, Floats
from messirl.data.choices import Choices
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.sufficient_statistics import SufficientStatistics, statistics_of
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories, start_faults
from messirl.planning import NoFiniteValue, Planner, Visits, model_for
from messirl.planning.batched import batched_expectations, can_batch
from messirl.planning.choice_likelihood import ChoiceLikelihood
from messirl.planning.dead_ends import dead_end_faults
from messirl.planning.goal_conditioned import GoalsModel
from messirl.planning.goal_derivatives import OutOfReach, goals_hessian
from messirl.planning.infinite_horizon import StationaryModel
from messirl.planning.policy_chain import MANY
from messirl.planning.value_derivatives import differences, value_hessian

OBJECTIVES = ("counts", "choices")
FEW = 16  # number of weights up to which finite differences give ∇²J at the end of a search
LARGE = 4_000_000  # entries of a table of states, steps and features above which ∇²J is computed only on request


def resolve_objective(objective: str | None, entropy: str = "causal", solver: str = "lbfgs") -> str:
    """Return the objective, "choices" or "counts": the given one or, if None, choices where the model allows them."""
    if objective is not None:
        return objective
    return "choices" if entropy == "causal" and solver == "lbfgs" else "counts"


@dataclass(frozen=True)
class Evaluation:
    """J at one θ. Where the model has no finite value, `value` is −inf and the gradient is meaningless.

    For choices, expected counts and visits are those from the signed source, not from the start.
    """

    value: float
    gradient: Floats
    expected_counts: Floats
    visits: Visits | None

    @property
    def visitation(self) -> Floats:
        """Expected discounted visits to each state, (S,)."""
        if self.visits is None:
            raise NoFiniteValue("no visits: the model has no finite value at this theta")
        return self.visits.states


@dataclass(frozen=True)
class Barrier:
    """Barrier for the central path: the negative mean log-likelihood of trajectories of the policy of some θ₀.

    B(θ) = Σ_s b(s) (V_θ(s) − F(s)ᵀθ), with F(s) the expected counts of the policy of θ₀ from s, is convex, least at θ₀,
    and infinite where the value of any of these states is.

    source : b, in the shape of a planner's source, summing to 1
    counts : Σ_s b(s) F(s), (d,)
    """

    source: Any
    counts: Floats


class Objective:
    """J as a function of θ.

    target : (d,) the expert's mean counts f*, or the features of its choices
    quadratic : (d, d) the matrix Q, or None
    constant : the part of L that does not depend on θ
    size : N; the log-likelihood of all trajectories, or of their choices, is N · L
    """

    def __init__(
        self,
        mdp: MDP,
        planner: Planner,
        target: Floats,
        quadratic: Floats | None = None,
        constant: float = 0.0,
        size: float = 1.0,
    ) -> None:
        self.mdp, self.planner, self.target, self.quadratic, self.constant = mdp, planner, target, quadratic, constant
        self.size = self.sample_size = size  # the latter does not depend on the sum of the weights
        self.highest = np.inf  # upper bound on L: 0 for choices, which rounding might exceed
        self._last: tuple[Floats, Evaluation] | None = None  # the last θ and its evaluation

    @classmethod
    def from_trajectories(
        cls,
        mdp: MDP,
        expert: Trajectories,
        entropy: str = "causal",
        quadratic: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        objective: str = "counts",
        counts: Floats | None = None,
        tilted: bool = True,
        checked: bool = False,
        n_expert: int | None = None,
    ) -> Self:
        """Return J for an expert's trajectories, weighted by `sample_weight`.

        counts : their feature counts, if known; the trajectories are then assumed to be checked
        checked : whether the trajectories were checked already
        n_expert : number of leading trajectories that are the expert's, the rest being unlabelled; for error messages
        """
        if counts is None and not checked:
            check_trajectories(mdp, expert, "expert")
            if len(expert) == 0:
                raise ValueError("expert is empty: at least one trajectory is needed")
        weights = normalised_weights(sample_weight, len(expert))
        if entropy == "causal":  # under the noncausal model the transitions themselves may avoid dead ends
            check_possible(mdp, expert, len(expert) if n_expert is None else n_expert)
        q = None if quadratic is None else np.asarray(quadratic, dtype=np.float64)
        if q is not None and q.shape != (mdp.n_features, mdp.n_features):
            raise ValueError(f"quadratic has shape {q.shape}: it must be ({mdp.n_features}, {mdp.n_features})")
        check_start(mdp, expert, "expert")
        with np.errstate(over="ignore"):  # with infinite weights a prior has no influence
            size = len(expert) if sample_weight is None else float(np.sum(sample_weight))
        known = None
        if objective == "counts":
            known = checked_feature_counts(mdp, expert) if counts is None else counts
        return cls.from_statistics(mdp, statistics_of(mdp, expert, weights, size, known), entropy, q, tilted=tilted)

    @classmethod
    def from_statistics(
        cls,
        mdp: MDP,
        found: SufficientStatistics,
        entropy: str = "causal",
        quadratic: Floats | None = None,
        *,
        tilted: bool = True,
    ) -> Self:
        """Return J for trajectories with these statistics, for counts or for choices."""
        if found.trips is not None:
            planner = Planner.for_goals(mdp, entropy, *found.trips)
        else:
            assert found.start is not None
            planner = Planner(mdp, entropy, found.start, tilted=tilted)
        if found.counts is not None:
            made = cls(mdp, planner, found.counts, quadratic, size=found.size)
            made.sample_size = 1.0 / found.squares
            return made
        size = found.size / (found.scale or 1.0)
        chosen = _of_choices(mdp, planner, found.choices, found.totals, quadratic, size)
        with np.errstate(invalid="ignore"):
            chosen.sample_size = size / found.size / found.squares
        return cast(Self, chosen)

    def penalised(self, quadratic: Floats | None) -> Self:
        """Return the same likelihood with another penalty."""
        other = copy(self)
        other.quadratic, other._last = quadratic, None
        return other

    def regularised(self, quadratic: Floats | None, spread: float | None) -> Self:
        """Return the same likelihood with a penalty Q (d, d) and a normal prior, as of `with_prior`."""
        return self.penalised(self.with_prior(quadratic, spread))

    def barrier(self, theta: Floats) -> Barrier:
        """Return the barrier that is least at θ."""
        assert isinstance(self.planner.model, StationaryModel | GoalsModel)
        source = self.planner.model.uniform_start()
        expected = self.planner.solve(self.mdp.reward(theta)).expectation(source, steps=self.mdp.state_action)
        return Barrier(source, expected.visits.counts(self.mdp))

    def minus_barrier(self, barrier: Barrier, weight: float) -> Self:
        """Return J − weight · B, with B a barrier."""
        other, planner = copy(self), copy(self.planner)
        planner.source = self.planner.active_source + weight * barrier.source
        other.planner, other.target, other._last = planner, self.target + weight * barrier.counts, None
        other.highest = np.inf
        return other

    def with_prior(self, quadratic: Floats | None, spread: float | None) -> Floats | None:
        """Return a penalty Q (d, d) plus a normal prior of the weights; `spread` is its standard deviation in units."""
        if spread is None:
            return quadratic
        with np.errstate(over="ignore"):
            weak = np.diag((self.unit / spread) ** 2 / self.size)
        if not np.isfinite(weak).all():
            raise ValueError(f"theta_prior={spread:g} is too small to compute with: give a larger one")
        return weak if quadratic is None else quadratic + weak

    @property
    def unit(self) -> Floats:
        """The spread of each feature, (d,), in which its weight is measured."""
        return feature_spread(self.mdp)

    @property
    def scale(self) -> Floats:
        """Square roots of the approximate curvature of J along each weight, (d,), from the data and the penalty."""
        return curvature_scale(self.unit, self.quadratic)

    @property
    def concave(self) -> bool:
        """True if J is known to be concave, as it is for counts, and for choices where the two are equal.

        V is convex and, where trajectories end, linear: J is concave if the source is negative only there.
        """
        source = self.planner.source
        if source is None:
            return True
        if sp.issparse(source):
            row, state = source.nonzero()
            negative = np.asarray(source[row, state] < 0.0)
            row, state = row[negative], state[negative]
        else:
            row, state = np.nonzero(np.atleast_2d(source) < 0.0)
        if self.planner.goals is not None:
            return bool((self.planner.goals[row] == state).all())
        return bool((self.mdp.terminal[state] | (row + 1 == self.mdp.horizon)).all())

    def __call__(self, theta: npt.ArrayLike) -> Evaluation:
        """Return J and its gradient at θ (Eqs. 4 and 6)."""
        t = np.asarray(theta, dtype=np.float64)
        if t.shape != self.target.shape:
            raise ValueError(f"theta has shape {t.shape}: it must be ({self.mdp.n_features},), one weight per feature")
        if not self.mdp.must_end:
            return self._evaluated(t)
        # The start of a search is evaluated twice: once to check that its values are finite.
        last = self._last
        if last is None or not np.array_equal(last[0], t):
            last = self._last = t.copy(), self._evaluated(t)
        return last[1]

    def _evaluated(self, theta: Floats) -> Evaluation:
        try:
            value, target, visits = self._likelihood(theta)
        except NoFiniteValue:
            nothing = np.zeros_like(theta)
            return Evaluation(-np.inf, nothing, nothing, None)
        return self._penalised(theta, value, target, visits.counts(self.mdp), visits)

    def _penalised(self, theta: Floats, value: float, target: Floats, counts: Floats, visits: Visits) -> Evaluation:
        """Return J from L and from the two sides of its gradient."""
        gradient = target - counts
        if self.quadratic is not None:
            pull = self.quadratic @ theta
            value -= 0.5 * float(theta @ pull)
            gradient = gradient - pull
        return Evaluation(value, gradient, counts, visits)

    @property
    def batch_mdp(self) -> MDP | None:
        """The MDP, if it can be evaluated in a batch with other objectives (planning/batched.py); else None."""
        return self.mdp if type(self) is Objective and can_batch(self.planner) else None

    def _likelihood(self, theta: Floats) -> tuple[float, Floats, Visits]:
        """Return L and the two sides whose difference is its gradient: the target (d,) and the expected visits."""
        expected = self.planner(self.mdp.reward(theta))
        return self._value(theta, expected.log_partition), self.target, expected.visits

    def _value(self, theta: Floats, log_partition: float) -> float:
        return min(float(theta @ self.target) + self.constant - log_partition, self.highest)

    def from_start(self, theta: Floats, point: Evaluation) -> Visits:
        """Return expected visits from the start at θ, where `point` is this objective's evaluation."""
        if self.planner.source is None and point.visits is not None:
            return point.visits
        return self.planner.from_start(self.mdp.reward(theta)).visits

    def hessian(self, theta: npt.ArrayLike, *, by_differences: bool = True) -> Floats:
        """Return the Hessian ∇²J(θ), (d, d): exact for causal models, else central differences of the exact gradient.

        With goals it is exact where one factorisation serves all of them. Elsewhere a gradient takes long as well.

        by_differences : whether differences may be taken; if not, NoFiniteValue is raised where ∇²J is not had exactly
        """
        t, planner = np.asarray(theta, dtype=np.float64), self.planner
        of_values = None
        if self.has_exact_hessian:
            source = planner.start if planner.source is None else planner.source
            solution = planner.solve(self.mdp.reward(t))
            of_values, _ = value_hessian(self.mdp, solution.table, source, getattr(solution, "factors", None))
        elif self._curved_by_values and isinstance(planner.model, GoalsModel):
            with contextlib.suppress(OutOfReach):
                of_values = goals_hessian(planner.solve(self.mdp.reward(t)), planner.active_source)
        if of_values is None and not by_differences:
            raise NoFiniteValue("the Hessian is not known exactly here")
        if of_values is None:
            table = differences(lambda at: self(at).gradient, t, self.unit)
            return np.asarray(0.5 * (table + table.T))
        return -of_values if self.quadratic is None else -of_values - self.quadratic

    @property
    def has_exact_hessian(self) -> bool:
        """True if ∇²J is exact at every θ, from one linear system."""
        return self._curved_by_values and self.planner.goals is None and self.planner.entropy == "causal"

    @property
    def curvature_is_cheap(self) -> bool:
        """True if ∇²J is exact, and costs about as much as J."""
        model = self.planner.model
        shared = isinstance(model, GoalsModel) and model.shared and not model.iterates
        known = self.has_exact_hessian or (self._curved_by_values and shared)
        return known and self._is_small(self.mdp.n_features)

    @property
    def curvature_is_affordable(self) -> bool:
        """True if ∇²J is affordable once at the end of a search, if need be by finite differences."""
        return self.curvature_is_cheap or (self.mdp.n_features <= FEW and self._is_small(1))

    def _is_small(self, width: int) -> bool:
        """Return whether there are choices, and tables of states and steps with this many columns are small."""
        n, steps = self.mdp.n_states, self.mdp.horizon or 2
        return steps > 1 and n * steps <= MANY and n * steps * width <= LARGE

    _curved_by_values = True  # whether ∇²L is that of the values only


def evaluate_batch(objectives: Sequence[Objective], thetas: Sequence[Floats]) -> list[Evaluation]:
    """Evaluate each objective at its own θ; those that share an MDP are batched where possible."""
    found: list[Evaluation | None] = [None] * len(objectives)
    lanes: dict[int, list[int]] = {}
    for k, objective in enumerate(objectives):
        if objective.batch_mdp is not None:
            lanes.setdefault(id(objective.mdp), []).append(k)
    for these in lanes.values():
        answers = batched_expectations([objectives[k].planner for k in these], [thetas[k] for k in these])
        for k, answer in zip(these, answers, strict=True):
            if answer is not None:
                log_partition, counts, visits = answer
                objective, theta = objectives[k], thetas[k]
                value = objective._value(theta, log_partition)
                found[k] = objective._penalised(theta, value, objective.target, counts, visits)
    return [
        objective(theta) if known is None else known
        for objective, theta, known in zip(objectives, thetas, found, strict=True)
    ]


class UncertainChoices(Objective):
    """J of choices whose actions are uncertain: the posterior number of times each was chosen depends on θ."""

    _curved_by_values = False

    def __init__(
        self, mdp: MDP, planner: Planner, chosen: ChoiceLikelihood, quadratic: Floats | None, size: float
    ) -> None:
        super().__init__(mdp, planner, np.zeros(mdp.n_features), quadratic, size=size)
        self.chosen = chosen

    @property
    def concave(self) -> bool:
        """False: concavity is never known here."""
        return False

    def from_start(self, theta: Floats, point: Evaluation) -> Visits:
        """Return expected visits from the start at θ."""
        return self.planner.from_start(self.mdp.reward(theta)).visits

    def _likelihood(self, theta: Floats) -> tuple[float, Floats, Visits]:
        reward = self.mdp.reward(theta)
        solution = self.planner.solve(reward)
        value, often = self.chosen.value_and_candidates(reward, solution)
        value = min(value, 0.0)
        expected = solution.expectation(self.chosen.source(often), steps=self.mdp.state_action)
        return value, self.chosen.collected(often), expected.visits


def _of_choices(
    mdp: MDP, planner: Planner, choices: Any, totals: Any, quadratic: Floats | None, size: float
) -> Objective:
    """Return J of choices with weights `totals` (K,) of their kinds, scaled by c; `size` is N."""
    chosen = ChoiceLikelihood(mdp, choices, totals)
    if not chosen.choices.has_single_candidates:
        return UncertainChoices(mdp, planner, chosen, quadratic, size)
    planner.source = chosen.source(chosen.totals)
    constant = chosen.constant(chosen.totals)
    objective = Objective(mdp, planner, chosen.collected(chosen.totals), quadratic, constant, size)
    objective.highest = 0.0
    return objective


def curvature_scale(unit: Floats, quadratic: Floats | None) -> Floats:
    """Return square roots of the approximate curvature along each weight, (d,): from its spread and the penalty."""
    if quadratic is None:
        return unit
    pull = np.maximum(np.diag(quadratic), 0.0)  # where nearly all similarities are 0, rounding may make it negative
    return np.hypot(unit, np.sqrt(pull))


def normalised_weights(sample_weight: npt.ArrayLike | None, n: int) -> Floats:
    """Return weights of n trajectories that sum to one."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = checked_weights(sample_weight, n)
    shares = weights / weights.max()  # their sum is finite, however large the weights
    return np.asarray(shares / shares.sum())


def checked_weights(sample_weight: npt.ArrayLike, n: int) -> Floats:
    """Return weights of n trajectories, checked: none negative and not all zero."""
    weights = check_numeric_array("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}: give one weight for each of the {n} expert trajectories"
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must be finite, not negative and not all zero")
    return weights


def check_start(mdp: MDP, trajectories: Trajectories, name: str) -> None:
    """Raise a ValueError if a trajectory begins where the MDP's start is zero. With goals there is no start."""
    wrong = list(start_faults(mdp, trajectories))
    if wrong:
        more = f" (as do {count_noun(len(wrong) - 1, 'other')})" if len(wrong) > 1 else ""
        raise ValueError(
            f"trajectory {wrong[0].trajectory} of {name}: {wrong[0].what(mdp.state_label)}{more}: {wrong[0].remedy}"
        )


def check_possible(mdp: MDP, expert: Trajectories, n_expert: int) -> None:
    """Raise a ValueError if a trajectory has probability zero at every θ: it risks a dead end or may never end."""
    fault = next(dead_end_faults(mdp, expert), None)
    if fault is not None and fault.trajectory is not None:
        i = fault.trajectory
        whose = f"trajectory {i} of expert" if i < n_expert else f"trajectory {i - n_expert} of unlabelled"
        raise ValueError(f"{whose}, step {fault.step}: {fault.what(mdp.state_label)}: {fault.remedy}")


def impossible_choices(mdp: MDP, choices: Choices) -> Flags:
    """Return the kinds of choices, (K,), that have probability zero, as in `check_possible`; without goals."""
    live = model_for(mdp).usable(choices.state, choices.group)[choices.of, choices.row % mdp.n_actions]
    return np.bincount(choices.of, live, choices.group.size) < 0.5
