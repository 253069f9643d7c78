"""Predictions of a fitted model: expected flows on every transition, and next-state accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._policy_base import PolicyEstimator
from messirl.planning import Planner, Visits
from messirl.planning.likelihood import log_policies
from messirl.planning.policy_chain import choices

TIE = 1e-9  # probabilities closer than this count as equal: they carry the rounding errors of the values


def expected_flows(model: MaximumEntropy, trips: Trajectories) -> Visits:
    """Return expected visits of states (S,) and flows on actions (S, A), from the starts (and goals) of `trips`.

    They are sums over the trajectories, such as flows on a road network, discounted if γ < 1.
    """
    model._fitted()
    mdp = model.mdp_
    check_trajectories(mdp, trips, "trips")
    each = np.ones(len(trips))
    if trips.goals is not None:
        planner = Planner.for_goals(mdp, model.entropy, trips.first, trips.goals, each)
    else:
        planner = Planner(mdp, model.entropy, np.bincount(trips.first, each, mdp.n_states).astype(np.float64))
    return planner(model.reward_, steps=True).visits


def next_state_accuracy(model: PolicyEstimator, trajectories: Trajectories) -> float:
    """Return the share of steps into the most likely next state; one of k equally likely states counts 1/k."""
    model._fitted()
    mdp = model.mdp_
    check_trajectories(mdp, trajectories)
    hits, steps = 0.0, 0
    for which, policy in _policies(model, trajectories):
        some = trajectories[which]
        left = np.flatnonzero(some.leaves)
        states, entered = some.states[left], some.states[left + 1]
        n = len(states)
        chances = choices(mdp, policy[mdp.at(some.step[left], states)], states) @ mdp.transitions
        best = np.asarray(chances.max(axis=1).todense()).ravel() - TIE
        tied = np.add.reduceat(chances.data >= np.repeat(best, np.diff(chances.indptr)), chances.indptr[:-1], dtype=int)
        taken = np.asarray(chances[np.arange(n), entered]).ravel()
        hits += float(np.sum((taken >= best) / tied))
        steps += n
    if steps == 0:
        raise ValueError("these trajectories make no step: there is nothing to predict")
    return hits / steps


def _policies(model: PolicyEstimator, trajectories: Trajectories) -> Iterator[tuple[Ints, Floats]]:
    if isinstance(model.policy_, Mapping) and not isinstance(model, MaximumEntropy):
        assert trajectories.goals is not None
        for goal in np.unique(trajectories.goals):
            yield np.flatnonzero(trajectories.goals == goal), model.policy_[int(goal)]
        return
    if not isinstance(model, MaximumEntropy) or model.entropy == "noncausal":
        yield np.arange(len(trajectories)), model.policy_
        return
    for which, log_policy in log_policies(model.mdp_, model.reward_, trajectories, model.start_, model._values()):
        yield which, np.exp(log_policy)
