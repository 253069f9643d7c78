"""What the objective needs of a model at a reward: Σ_s start(s) V(s) and the expected visits.

A `Planner` is made once for a problem and a set of starts (or of trips, each with its goal) and then asked at many
rewards; where that helps it begins from the values of the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.planning.finite import solve_finite, visit_finite
from messirl.planning.noncausal import solve_noncausal, visit_noncausal
from messirl.planning.paths import PathSystem, Trips, evaluate_goals, trips_of, values_by_goal
from messirl.planning.policies import check_entropy, soft_values
from messirl.planning.stationary import solve_stationary, visit_stationary
from messirl.planning.structure import Structure, reachable, structure
from messirl.planning.terms import Visits
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories


@dataclass(frozen=True)
class Expectation:
    """log Z averaged over the starts, Σ_s start(s) V(s), and the expected visits from them."""

    log_partition: float
    visits: Visits


class Planner:
    """Expectations under one problem's model, from fixed starts.

    tilted : with entropy="noncausal", whether visits follow the model's own tilted dynamics (the gradient of log Z)
        or the true ones (the paper's forward pass)
    """

    def __init__(self, mdp: MDP, entropy: str, start: Floats | Trips, *, tilted: bool = True) -> None:
        check_entropy(entropy)
        self.mdp, self.entropy, self.start, self.tilted = mdp, entropy, start, tilted
        if entropy == "noncausal" and mdp.horizon is None:
            raise ValueError("entropy='noncausal' needs a horizon: give the MDP one, or use entropy='causal'")
        self._warm: dict[int | None, tuple[Floats, Floats]] = {}
        self._frames: dict[int | None, Structure] = {}

    @classmethod
    def for_trips(cls, mdp: MDP, entropy: str, first: Ints, goals: Ints, weights: Floats) -> Planner:
        """A planner for trips that each have a goal, weighted."""
        if entropy == "noncausal":
            raise ValueError("entropy='noncausal' has no goals: use entropy='causal'")
        return cls(mdp, entropy, trips_of(mdp, first, goals, weights))

    def __call__(self, reward: Floats) -> Expectation:
        """Raises NoFiniteValue where the model has none at this reward."""
        mdp = self.mdp
        if isinstance(self.start, Trips):
            return self._towards_goals(reward, self.start)
        if self.entropy == "noncausal":
            log_z, policy = solve_noncausal(mdp, reward)
            visits = (
                visit_noncausal(mdp, reward, log_z, policy, self.start)
                if self.tilted
                else visit_finite(mdp, policy, self.start, steps=mdp.state_action)
            )
            return Expectation(_mean(self.start, log_z[0]), visits)
        if mdp.horizon is not None:
            values, policy = solve_finite(mdp, reward)
            return Expectation(
                _mean(self.start, values[0]), visit_finite(mdp, policy, self.start, steps=mdp.state_action)
            )
        return self._to_the_end(reward, self._frame(self.start), None, self.start)

    def _frame(self, start: Floats) -> Structure:
        """What can be met from the start: with γ = 1 a state that cannot need have no finite value."""
        if self.mdp.discount < 1.0:
            return structure(self.mdp)
        if None not in self._frames:
            self._frames[None] = structure(self.mdp, None, reachable(self.mdp, start))
        return self._frames[None]

    def live(self) -> Flags:
        """The actions (S, A) that the model may take from these starts (no horizon)."""
        if not isinstance(self.start, Trips):
            return self._frame(self.start).live
        live = np.zeros((self.mdp.n_states, self.mdp.n_actions), dtype=bool)
        for goal in self.start.goals:
            live |= structure(self.mdp, int(goal), self.start.within).live
        return live

    def _to_the_end(self, reward: Floats, frame: Structure, goal: int | None, start: Floats) -> Expectation:
        mdp = self.mdp
        if mdp.discount == 1.0 and mdp.deterministic:
            system = PathSystem(mdp, reward, frame)
            return Expectation(_mean(start, system.values), system.visits(start))
        last_values, last_visits = self._warm.get(goal, (None, None))
        values, policy = solve_stationary(mdp, reward, frame, last_values)
        moving = frame.live.any(axis=1)
        visits = visit_stationary(mdp, policy, start, moving, steps=mdp.state_action, guess=last_visits)
        self._warm[goal] = (values, visits.states)
        return Expectation(_mean(start, values), visits)

    def _towards_goals(self, reward: Floats, trips: Trips) -> Expectation:
        mdp = self.mdp
        if mdp.discount == 1.0 and mdp.deterministic:
            return Expectation(*evaluate_goals(mdp, reward, trips))
        total, states, steps = 0.0, np.zeros(mdp.n_states), np.zeros((mdp.n_states, mdp.n_actions))
        for g, goal in enumerate(trips.goals):
            start = trips.starts[[g]].toarray()[0]
            if goal not in self._frames:
                self._frames[goal] = structure(mdp, int(goal), trips.within)
            part = self._to_the_end(reward, self._frames[goal], int(goal), start)
            total += part.log_partition
            states += part.visits.states
            if part.visits.steps is not None:
                steps += part.visits.steps
        return Expectation(total, Visits(states, steps))


def _mean(start: Floats, values: Floats) -> float:
    at = start > 0
    if not np.all(np.isfinite(values[at])):
        s = int(np.flatnonzero(at)[np.argmin(values[at])])
        raise ValueError(f"a trajectory cannot start in state {s}: from there it runs into a dead end or never ends")
    return float(start[at] @ values[at])


def start_values(mdp: MDP, reward: Floats, entropy: str, trajectories: Trajectories) -> Floats:
    """V(s_0) (or log Z_0(s_0)) of every trajectory, each towards its own goal if it has one, (n,)."""
    first = trajectories.first
    if trajectories.goals is None:
        values = soft_values(mdp, reward, entropy)
        return values[0, first] if mdp.horizon is not None else values[first]
    out = np.empty(len(trajectories))
    if entropy == "causal" and mdp.discount == 1.0 and mdp.deterministic:
        trips = trips_of(mdp, first, trajectories.goals, np.ones(len(first)))
        by_goal: Iterable[tuple[int, Floats]] = values_by_goal(mdp, reward, trips)
    else:
        goals = np.unique(trajectories.goals).tolist()
        by_goal = ((goal, soft_values(mdp, reward, entropy, goal)) for goal in goals)
    for goal, values in by_goal:
        which = trajectories.goals == goal
        out[which] = values[first[which]]
    return out
