"""What the objective needs of a model at a reward: Σ_s start(s) V(s) and the expected visits.

A `Planner` is made once for a problem and a set of starts (or of trips, each with its goal) and then asked at many
rewards; where that helps its model begins from what it found last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.planning.goals import GoalsModel, Trips, trips_of
from messirl.planning.models import Model, model_for, model_for_goals, values_by_goal, where_met
from messirl.planning.solution import Expectation
from messirl.planning.structure import reachable
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories


class Planner:
    """Expectations under one problem's model, from fixed starts.

    start : (S,) weights of the states where trajectories begin, or trips; kept as (S,), all goals together
    goals : (G,) of trips, else None
    tilted : with entropy="noncausal", whether visits follow the model's own tilted dynamics (the gradient of log Z)
        or the true ones (the paper's forward pass)
    """

    def __init__(self, mdp: MDP, entropy: str, start: Floats | Trips, *, tilted: bool = True) -> None:
        self.mdp, self.entropy = mdp, entropy
        self.model: Model | GoalsModel
        self._source: Any
        self.goals: Ints | None = None
        if isinstance(start, Trips):
            self.model = model_for_goals(mdp, entropy, start.goals, start.within)
            self._source, self.goals = start.starts, start.goals
            self.start = np.asarray(start.starts.sum(axis=0)).ravel()
        else:  # with γ = 1 a state that cannot be met need have no finite value
            within = reachable(mdp, start) if mdp.must_end else None
            self.model = model_for(mdp, entropy, within=within, tilted=tilted)
            self._source = self.start = start

    @classmethod
    def for_trips(cls, mdp: MDP, entropy: str, first: Ints, goals: Ints, weights: Floats) -> Planner:
        """A planner for trips that each have a goal, weighted."""
        return cls(mdp, entropy, trips_of(mdp, first, goals, weights))

    def __call__(self, reward: Floats, *, steps: bool = False) -> Expectation:
        """Raises NoFiniteValue where the model has none at this reward.

        steps : whether visits of (state, action) pairs are wanted also where the features do not need them
        """
        return self.model.solve(reward).expectation(self._source, steps=steps or self.mdp.state_action)


def start_values(mdp: MDP, reward: Floats, entropy: str, trajectories: Trajectories) -> Floats:
    """V(s_0) (or log Z_0(s_0)) of every trajectory, each towards its own goal if it has one, (n,)."""
    first, goals = trajectories.first, trajectories.goals
    start = np.bincount(first, minlength=mdp.n_states).astype(np.float64)
    if goals is None:
        return mdp.first(where_met(mdp, reward, start, entropy=entropy).values)[first]
    out = np.empty(len(trajectories))
    for goal, values in values_by_goal(mdp, reward, first, goals, start, entropy=entropy):
        out[goals == goal] = values[first[goals == goal]]
    return out
