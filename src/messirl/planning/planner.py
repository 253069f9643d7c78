"""Dispatch to the model of a problem, and the planner that evaluates it at many rewards.

    noncausal            the paper's own, with a horizon: noncausal.py
    finite               causal, with a horizon, one policy per step: finite_horizon.py
    stationary           causal, no horizon, one policy; infinite discounted, or episodic: infinite_horizon.py
    paths                the same with γ = 1 and deterministic transitions, a sparse linear system: recursive_logit.py
    goals                many goals, each solved as by one of the last two: goal_conditioned.py

Each has `solve(reward)`, whose result has values and policy and gives `visits(source)` from any signed source.

A `Planner` is made once for a problem and a set of starts (or of trajectories, each with its goal) and then evaluated
at many rewards, with a warm start at the last solution where that helps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.planning._validation import check_entropy, check_goal
from messirl.planning.finite_horizon import FiniteModel
from messirl.planning.goal_conditioned import GoalGroups, GoalsModel, group_by_goal
from messirl.planning.infinite_horizon import SignedPart, StationaryModel, split_by_sign
from messirl.planning.noncausal import NoncausalModel
from messirl.planning.reachability import reachable
from messirl.planning.recursive_logit import PathModel
from messirl.planning.solution import Expectation, NoFiniteValue, Solution

Model = FiniteModel | StationaryModel  # and their subclasses


def model_for(
    mdp: MDP, entropy: str = "causal", *, goal: int | None = None, within: Flags | None = None, tilted: bool = True
) -> Model:
    """Return the model of a problem, towards one goal or towards the terminal states.

    within : (S,) without a horizon, the states to restrict it to, closed under transitions; None: all
    tilted : with entropy="noncausal", whether visits follow the model's own tilted dynamics or the true ones
    """
    check_entropy(entropy)
    check_goal(mdp, goal)
    if entropy == "noncausal":
        return NoncausalModel(mdp, tilted)
    return FiniteModel(mdp) if mdp.horizon is not None else _without_horizon(mdp)(mdp, goal, within)


def model_for_goals(mdp: MDP, entropy: str, goals: Ints, within: Flags, starts: Any = None) -> GoalsModel:
    """Return the model of trajectories to these distinct goals, within these states and from `starts` (G, S)."""
    check_entropy(entropy)
    if entropy == "noncausal":
        raise ValueError("entropy='noncausal' does not allow goals: use entropy='causal'")
    check_goal(mdp, int(goals[0]) if goals.size else None)
    return GoalsModel(mdp, goals, within, _without_horizon(mdp), starts)


def _without_horizon(mdp: MDP) -> type[StationaryModel]:
    return PathModel if mdp.discount == 1.0 and mdp.deterministic else StationaryModel


class Planner:
    """Evaluation of Σ_s start(s) V(s) and the expected visits under one problem's model, from fixed starts.

    start : (S,) weights of initial states, or `GoalGroups`; stored as (S,), summed over goals
    source : signed weights in place of the start: (S,), (H, S) with a horizon, (G, S) with goals
    goals : (G,) the distinct goals, or None
    tilted : with entropy="noncausal", whether visits follow the model's own tilted dynamics (the gradient of log Z)
        or the true ones (the paper's forward pass)
    """

    def __init__(
        self, mdp: MDP, entropy: str, start: Floats | GoalGroups, *, source: Any = None, tilted: bool = True
    ) -> None:
        self.mdp, self.entropy, self.source = mdp, entropy, source
        self.model: Model | GoalsModel
        self._starts: Any
        self.goals: Ints | None = None
        self.last: Floats | None = None  # the θ of its last batched evaluation (batched.py)
        self._parts: tuple[Any, list[SignedPart]] = (None, [])
        self._solved: dict[bytes, Any] = {}  # the last solution, by its reward; copies of a planner share it
        if isinstance(start, GoalGroups):
            self.model = model_for_goals(mdp, entropy, start.goals, start.within, start.starts)
            self._starts, self.goals = start.starts, start.goals
            self.start = np.asarray(start.starts.sum(axis=0)).ravel()
        else:  # with γ = 1 unreachable states may have no finite value
            within = reachable(mdp, start) if mdp.must_end else None
            self.model = model_for(mdp, entropy, within=within, tilted=tilted)
            self._starts = self.start = start

    @classmethod
    def for_goals(
        cls, mdp: MDP, entropy: str, first: Ints, goals: Ints, weights: Floats, *, source: Any = None
    ) -> Planner:
        """Return a planner for weighted trajectories that each have a goal."""
        return cls(mdp, entropy, group_by_goal(mdp, first, goals, weights), source=source)

    def __call__(self, reward: Floats, *, steps: bool = False) -> Expectation:
        """Return the expectation from the source or, without one, from the start; NoFiniteValue if there is none.

        steps : whether to return visits of (state, action) pairs even where the features do not need them
        """
        found: Expectation = self.solve(reward).expectation(self.active_source, steps=steps or self.mdp.state_action)
        return found

    def solve(self, reward: Floats) -> Any:
        """Return the model's solution; with discount=1 the last one is cached, since a search needs it repeatedly."""
        if not self.mdp.must_end:
            return self.model.solve(reward)
        key = reward.tobytes()
        if key not in self._solved:
            self._solved.clear()
            self._solved[key] = self.model.solve(reward)
        return self._solved[key]

    @property
    def active_source(self) -> Any:
        """The source or, without one, the starts; (G, S) with goals."""
        return self._starts if self.source is None else self.source

    @property
    def parts(self) -> list[SignedPart]:
        """The source (S,) split into parts of one sign; cached until the source changes."""
        if self._parts[0] is not self.active_source:
            self._parts = (self.active_source, split_by_sign(self.active_source))
        return self._parts[1]

    def from_start(self, reward: Floats) -> Expectation:
        """Return the expectation from the start, whatever the source."""
        found: Expectation = self.solve(reward).expectation(self._starts, steps=self.mdp.state_action)
        return found


def solution_from_start(
    mdp: MDP, reward: Floats, start: Floats, goal: int | None = None, *, entropy: str = "causal"
) -> Solution:
    """Return the solution at a reward, restricted to the states reachable from `start` if others have no value."""
    try:
        return model_for(mdp, entropy, goal=goal).solve(reward)
    except NoFiniteValue:
        return model_for(mdp, entropy, goal=goal, within=reachable(mdp, start, goal)).solve(reward)


def values_by_goal(
    mdp: MDP, reward: Floats, states: Ints, goals: Ints, *, entropy: str = "causal"
) -> Iterator[tuple[int, Floats]]:
    """Yield each distinct goal and V (S,) towards it, valid in the `states` paired with it; both (N,).

    States that cannot be reached from them may have no finite value.
    """
    trips = group_by_goal(mdp, states, goals, np.ones(states.size))
    model = model_for_goals(mdp, entropy, trips.goals, trips.within, trips.starts)
    if model.shared:
        yield from model.solve(reward).values(trips.starts)
    else:
        for number, goal in enumerate(trips.goals.tolist()):
            yield goal, solution_from_start(mdp, reward, trips.starts[[number]].toarray().ravel(), goal).values


def start_values(mdp: MDP, reward: Floats, entropy: str, trajectories: Trajectories) -> Floats:
    """Return V(s_0) (or log Z_0(s_0)) of every trajectory, each towards its own goal if it has one, (n,)."""
    first, goals = trajectories.first, trajectories.goals
    if goals is None:
        start = np.bincount(first, minlength=mdp.n_states).astype(np.float64)
        return mdp.first(solution_from_start(mdp, reward, start, entropy=entropy).values)[first]
    out = np.empty(len(trajectories))
    for goal, values in values_by_goal(mdp, reward, first, goals, entropy=entropy):
        out[goals == goal] = values[first[goals == goal]]
    return out
