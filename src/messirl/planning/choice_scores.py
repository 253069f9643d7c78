"""Scores of choices: the gradients of their log-probabilities with respect to θ, exactly.

With F = ∇V, the expected counts of the soft policy from each state,

    ∇ log π(a|s) = A_f(s,a) = f(s,a) + γ Σ_s' p(s'|s,a) F(s') − F(s).

Where actions were not recorded, ∇ log Σ_a π(a|s) p(s'|s,a) is the mean of A_f(s,a) over the actions that can make the
transition, weighted by their posterior probabilities. A prior policy does not depend on θ: it enters through π only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.choices import Choices, choice_keys, choices_of, kinds_of
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.planning.choice_likelihood import ChoiceLikelihood
from messirl.planning.goal_conditioned import GoalsModel
from messirl.planning.goal_derivatives import OutOfReach, goals_gradients
from messirl.planning.planner import Model, Planner, solution_from_start
from messirl.planning.value_derivatives import differences, stepwise_gradients


def choice_scores(mdp: MDP, theta: Floats, choices: Choices, model: Model | GoalsModel, start: Floats) -> Floats:
    """Return the score of every kind of choice, (K, d), under the soft causal policy at θ.

    model : the causal model of the problem, or of the goals of the choices
    start : (S,) weights of initial states; unreachable states may have no finite value

    Scores are central differences of the exact log-probabilities where one factorisation serves most goals but not
    all, since a system per goal would take many times as long.
    """
    chosen, reward = ChoiceLikelihood(mdp, choices, np.ones(choices.group.size)), mdp.reward(theta)
    try:
        gap = _gaps(mdp, reward, chosen, model, start)
    except OutOfReach:

        def log_probability(at: Floats) -> Floats:
            there = mdp.reward(at)
            return chosen.kind_log_probabilities(there, model.solve(there))[0]

        return differences(log_probability, theta, feature_spread(mdp)).T
    if choices.has_single_candidates:
        return gap
    _, share = chosen.kind_log_probabilities(reward, model.solve(reward))
    places = (choices.of, np.arange(share.size))
    return np.asarray(sp.csr_array((share, places), shape=(choices.group.size, share.size)) @ gap)


@dataclass(frozen=True)
class Alternatives:
    """Alternatives to the observed choices, in the places (states, at a step or towards a goal) where these were made.

    trajectory, at : (N,) the trajectory of every choice, and the place where it was made
    place : (J,) the place of every alternative, sorted
    score : (J, d) ∇ log of its probability
    probability : (J,)
    chosen : (K, d) the scores of the kinds of choices that were made
    """

    trajectory: Ints
    at: Ints
    place: Ints
    score: Floats
    probability: Floats
    chosen: Floats

    def information(self) -> Floats:
        """Return the expected information Σ_choices Σ_a π(a|s) ∇log π ∇log πᵀ of all choices, (d, d)."""
        often = np.bincount(self.at, minlength=self.place[-1] + 1)[self.place] * self.probability
        return np.asarray(self.score.T @ (often[:, None] * self.score))

    def shares(self, labels: Ints, root: Floats) -> Iterator[Floats]:
        """Yield the expected information of the choices of every cluster in units of `root` (d, k), Zᵀ W_c Z (k, k).

        labels : (n,) the cluster of every trajectory, numbered from 0
        """
        weighed = np.sqrt(self.probability)[:, None] * (self.score @ root)
        first = np.searchsorted(self.place, np.arange(self.place[-1] + 2))
        label = labels[self.trajectory]
        order = np.lexsort((self.at, label))
        ends = np.searchsorted(label[order], np.arange(labels.max() + 2))
        for begin, end in pairwise(ends):
            places, often = np.unique(self.at[order[begin:end]], return_counts=True)
            sizes = first[places + 1] - first[places]
            rows = np.arange(sizes.sum()) + np.repeat(first[places] - np.cumsum(sizes) + sizes, sizes)
            some = weighed[rows]
            yield np.asarray(some.T @ (np.repeat(often, sizes)[:, None] * some))


def alternatives_of(
    mdp: MDP, theta: Floats, trajectories: Trajectories, choices: Choices, model: Model | GoalsModel, start: Floats
) -> Alternatives:
    """Return the alternatives to the choices of trajectories, with scores and probabilities under the policy at θ.

    Where actions were not recorded, an alternative is a next state. Other arguments as for `choice_scores`.
    """
    recorded = trajectories.actions is not None
    states = choices.group * mdp.n_states + choices.state
    places, at = np.unique(states, return_inverse=True)
    of, after = _ways_on(mdp, places % mdp.n_states, recorded=recorded)
    width = mdp.n_actions if recorded else mdp.n_states
    none = np.zeros(0, dtype=np.int64)
    every = Choices(none, none, *kinds_of(mdp, places[of] * width + after, recorded=recorded), choices.goals)
    reward = mdp.reward(theta)
    with np.errstate(invalid="ignore"):  # alternatives that lead to where no trajectory can end
        logs, _ = ChoiceLikelihood(mdp, every, np.ones(of.size)).kind_log_probabilities(reward, model.solve(reward))
    possible = np.isfinite(logs)
    of, after, probability = of[possible], after[possible], np.exp(logs[possible])
    score = choice_scores(mdp, theta, every.select_kinds(possible), model, start)
    number = None if choices.goals is None else choices.group[choices.kind]
    made = np.unique(choice_keys(mdp, trajectories, number))
    chosen = score[np.searchsorted(places[of] * width + after, made)]
    return Alternatives(choices.trajectory, at[choices.kind], of, score, probability, chosen)


def _ways_on(mdp: MDP, states: Ints, *, recorded: bool) -> tuple[Ints, Ints]:
    """Return the allowed actions in these states or, where actions are not recorded, the next states; both sorted.

    Two arrays: the index among `states`, and the action or the next state.
    """
    if recorded:
        of, after = np.nonzero(mdp.allowed[states])
        return of, after
    a, moves = mdp.n_actions, mdp.transitions
    first, last = moves.indptr[states * a], moves.indptr[states * a + a]
    of = np.repeat(np.arange(states.size), last - first)
    entry = np.arange(of.size) + np.repeat(first - np.cumsum(last - first) + (last - first), last - first)
    keys = np.unique(of * mdp.n_states + moves.indices[entry])
    return keys // mdp.n_states, keys % mdp.n_states


def _gaps(mdp: MDP, reward: Floats, chosen: ChoiceLikelihood, model: Model | GoalsModel, start: Floats) -> Floats:
    """Return A_f of every candidate, (J, d)."""
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
    """Return the score of every checked trajectory, ∇ log p(ζ|θ) = Σ_t ∇ log π(a_t|s_t), (n, d).

    start : (S,) weights of initial states; all states that these trajectories visit are added to it
    """
    choices, n = choices_of(mdp, trajectories), len(trajectories)
    if choices.trajectory.size == 0:
        return np.zeros((n, mdp.n_features))
    begin = start + np.bincount(trajectories.states, minlength=mdp.n_states)
    if trajectories.goals is None:
        planner = Planner(mdp, "causal", begin)
    else:
        planner = Planner.for_goals(mdp, "causal", trajectories.first, trajectories.goals, np.ones(n))
    of_kinds = choice_scores(mdp, theta, choices, planner.model, begin)
    made = sp.csr_array(
        (np.ones(choices.trajectory.size), (choices.trajectory, choices.kind)), shape=(n, choices.group.size)
    )
    return np.asarray(made @ of_kinds)


def _slopes(
    mdp: MDP, reward: Floats, chosen: ChoiceLikelihood, model: Model | GoalsModel, start: Floats
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield, for each group of choices (step or goal), its number and ∇V (S, d) before and after the choice."""
    if not isinstance(model, GoalsModel):
        yield from stepwise_gradients(mdp, solution_from_start(mdp, reward, start).table)
        return
    if model.shared:
        for number, towards in enumerate(goals_gradients(model.solve(reward), chosen.needed)):
            yield number, towards, towards
        return
    for number, goal in enumerate(model.goals.tolist()):
        for _, here, ahead in stepwise_gradients(mdp, solution_from_start(mdp, reward, start, goal).table, goal):
            yield number, here, ahead
