"""What kind of model a problem has, decided once.

    noncausal            the paper's own, with a horizon: noncausal.py
    finite               causal, with a horizon, one policy per step: finite.py
    stationary           causal, no horizon, one policy; endless and discounted, or until an end: stationary.py
    paths                the same with γ = 1 and deterministic moves, a sparse linear system: paths.py
    goals                trips, each with a goal of its own, whichever of the last two serves one goal: goals.py

Each has `solve(reward)`, whose result keeps values and policy and gives `visits(source)` from any signed source.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.planning.arguments import check_entropy, check_goal
from messirl.planning.finite import FiniteModel
from messirl.planning.goals import GoalsModel, trips_of
from messirl.planning.noncausal import NoncausalModel
from messirl.planning.paths import PathModel
from messirl.planning.solution import NoFiniteValue, Solution
from messirl.planning.stationary import StationaryModel
from messirl.planning.structure import reachable
from messirl.problem.mdp import MDP

Model = FiniteModel | StationaryModel  # and what derives from them


def model_for(
    mdp: MDP, entropy: str = "causal", *, goal: int | None = None, within: Flags | None = None, tilted: bool = True
) -> Model:
    """The model of a problem, towards one goal or towards wherever the problem ends.

    within : (S,) the states to look at, closed under moves, where there is no horizon; None: all
    tilted : with entropy="noncausal", whether visits follow the model's own tilted dynamics or the true ones
    """
    check_entropy(entropy)
    check_goal(mdp, goal)
    if entropy == "noncausal":
        return NoncausalModel(mdp, tilted)
    return FiniteModel(mdp) if mdp.horizon is not None else _without_horizon(mdp)(mdp, goal, within)


def model_for_goals(mdp: MDP, entropy: str, goals: Ints, within: Flags) -> GoalsModel:
    """The model of trips to these distinct goals, which can meet the states `within`."""
    check_entropy(entropy)
    if entropy == "noncausal":
        raise ValueError("entropy='noncausal' has no goals: use entropy='causal'")
    check_goal(mdp, int(goals[0]) if goals.size else None)
    return GoalsModel(mdp, goals, within, _without_horizon(mdp))


def _without_horizon(mdp: MDP) -> type[StationaryModel]:
    return PathModel if mdp.discount == 1.0 and mdp.deterministic else StationaryModel


def where_met(mdp: MDP, reward: Floats, start: Floats, goal: int | None = None, *, entropy: str = "causal") -> Solution:
    """The solution at a reward; where some state has no finite value, of the states that `start` can reach."""
    try:
        return model_for(mdp, entropy, goal=goal).solve(reward)
    except NoFiniteValue:
        return model_for(mdp, entropy, goal=goal, within=reachable(mdp, start, goal)).solve(reward)


def values_by_goal(
    mdp: MDP, reward: Floats, states: Ints, goals: Ints, start: Floats, *, entropy: str = "causal"
) -> Iterator[tuple[int, Floats]]:
    """Each distinct goal and V (S,) towards it, right in the `states` that go with it; both (N,).

    start : weights of where trajectories begin; states that cannot be met need have no finite value
    """
    trips = trips_of(mdp, states, goals, np.ones(states.size))
    model = model_for_goals(mdp, entropy, trips.goals, trips.within)
    if model.shared:
        yield from model.solve(reward).values(trips.starts)
    else:
        yield from ((goal, where_met(mdp, reward, start, goal).values) for goal in trips.goals.tolist())
