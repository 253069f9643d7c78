"""The score of a choice: how its log-probability changes with θ, exactly.

With F = ∇V, the expected counts of the soft policy from each state,

    ∇ log π(a|s) = A_f(s,a) = f(s,a) + γ Σ_s' p(s'|s,a) F(s') − F(s).

Where actions were not recorded, ∇ log Σ_a π(a|s) p(s'|s,a) is the mean of A_f(s,a) over the actions that can make the
move, by how likely each made it. A base policy does not depend on θ: it enters by π alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats
from messirl.planning.chosen import Chosen
from messirl.planning.curvature import differences, slopes
from messirl.planning.goal_slopes import OutOfReach, goals_slopes
from messirl.planning.goals import GoalsModel
from messirl.planning.models import Model, Planner, where_met
from messirl.problem.choices import Choices, choices_of
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.problem.units import feature_spread


def choice_scores(mdp: MDP, theta: Floats, choices: Choices, model: Model | GoalsModel, start: Floats) -> Floats:
    """The score of every kind of choice, (K, d), under the soft causal policy at θ.

    model : the causal model of the problem, or of the goals of the choices
    start : (S,) weights of where trajectories begin; states that cannot be met need have no finite value

    Where one factorisation could serve all goals but does not reach some, and a system for each would take many times
    as long, they are central differences of the exact log-probabilities.
    """
    chosen, reward = Chosen(mdp, choices, np.ones(choices.group.size)), mdp.reward(theta)
    try:
        gap = _gaps(mdp, reward, chosen, model, start)
    except OutOfReach:

        def log_probability(at: Floats) -> Floats:
            there = mdp.reward(at)
            return chosen.of_kinds(there, model.solve(there))[0]

        return differences(log_probability, theta, feature_spread(mdp)).T
    if choices.certain:
        return gap
    _, share = chosen.of_kinds(reward, model.solve(reward))
    places = (choices.of, np.arange(share.size))
    return np.asarray(sp.csr_array((share, places), shape=(choices.group.size, share.size)) @ gap)


def _gaps(mdp: MDP, reward: Floats, chosen: Chosen, model: Model | GoalsModel, start: Floats) -> Floats:
    """A_f of every candidate, (J, d)."""
    choices, features = chosen.choices, mdp.feature_rows
    gap, group = np.zeros((choices.row.size, mdp.n_features)), choices.group[choices.of]
    for number, here, ahead in _slopes(mdp, reward, chosen, model, start):
        some = slice(*np.searchsorted(group, (number, number + 1)))
        row = choices.row[some]
        own = features[row if mdp.state_action else row // mdp.n_actions]
        gap[some] = own.toarray() if sp.issparse(own) else own
        gap[some] += mdp.discount * (mdp.transitions[row] @ ahead) - here[row // mdp.n_actions]
    return gap


def trajectory_scores(mdp: MDP, theta: Floats, trajectories: Trajectories, start: Floats) -> Floats:
    """The score of every trajectory that was checked, ∇ log p(ζ|θ) = Σ_t ∇ log π(a_t|s_t), (n, d).

    start : (S,) weights of where trajectories begin; all states that these visit are added to it
    """
    choices, n = choices_of(mdp, trajectories), len(trajectories)
    if choices.trip.size == 0:
        return np.zeros((n, mdp.n_features))
    begin = start + np.bincount(trajectories.states, minlength=mdp.n_states)
    if trajectories.goals is None:
        planner = Planner(mdp, "causal", begin)
    else:
        planner = Planner.for_trips(mdp, "causal", trajectories.first, trajectories.goals, np.ones(n))
    of_kinds = choice_scores(mdp, theta, choices, planner.model, begin)
    made = sp.csr_array((np.ones(choices.trip.size), (choices.trip, choices.kind)), shape=(n, choices.group.size))
    return np.asarray(made @ of_kinds)


def _slopes(
    mdp: MDP, reward: Floats, chosen: Chosen, model: Model | GoalsModel, start: Floats
) -> Iterator[tuple[int, Floats, Floats]]:
    """For each group of choices, step or goal: ∇V (S, d) where they were made, and where they led."""
    if not isinstance(model, GoalsModel):
        yield from slopes(mdp, where_met(mdp, reward, start).table)
        return
    if model.shared:
        for number, towards in enumerate(goals_slopes(model.solve(reward), chosen.needed)):
            yield number, towards, towards
        return
    for number, goal in enumerate(model.goals.tolist()):
        for _, here, ahead in slopes(mdp, where_met(mdp, reward, start, goal).table, goal):
            yield number, here, ahead
