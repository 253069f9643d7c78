"""Trajectories that have probability zero at every θ: they risk a dead end, or come to where nothing ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from messirl._types import Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.validation import Fault, unfinished
from messirl.planning.kernels.graph import FOREVER
from messirl.planning.likelihood import transition_probability
from messirl.planning.planner import model_for
from messirl.planning.reachability import arcs_of, ends_of, lifespan, next_step, structure_of

DEAD_END = "the transition from state {0} can run into the dead end {1}, so that it has probability 0 in the model"
ENDLESS = "after the transition from state {0} nothing may end it, so that it has probability 0 in the model"


def dead_end_faults(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    """Yield a fault at the first impossible step of every trajectory that has one; the trajectories fit the MDP."""
    left = np.flatnonzero(trajectories.leaves)
    states, step = trajectories.states[left], trajectories.step[left]
    if trajectories.goals is not None:
        if mdp.deterministic and not unfinished(mdp, trajectories).any():  # a trajectory to its goal met no dead end
            return
        usable = np.zeros((left.size, mdp.n_actions), dtype=bool)
        goal_of = np.repeat(trajectories.goals, trajectories.lengths - 1)
        for goal in np.unique(trajectories.goals):
            at = goal_of == goal
            usable[at] = model_for(mdp, goal=int(goal)).usable(states[at], step[at])
    else:
        usable = model_for(mdp).usable(states, step)
    if usable.all():
        return
    if trajectories.actions is not None:
        wrong = ~usable[np.arange(left.size), trajectories.actions]
    else:
        wrong = transition_probability(mdp, usable.astype(np.float64), states, trajectories.states[left + 1]) == 0.0
    bad, first = np.unique(np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)[wrong], return_index=True)
    ahead: dict[int | None, Ints] = {}
    for i, at in zip(bad.tolist(), np.flatnonzero(wrong)[first].tolist(), strict=True):
        goal = None if trajectories.goals is None else int(trajectories.goals[i])
        if goal not in ahead:
            ahead[goal] = _dead_ends(mdp, goal)
        s, t = int(states[at]), int(step[at])
        actions = np.arange(mdp.n_actions) if trajectories.actions is None else trajectories.actions[[at]]
        rows = mdp.transitions[s * mdp.n_actions + actions]
        if trajectories.actions is None:  # the actions that may have made the transition
            rows = rows[np.flatnonzero(rows[:, [int(trajectories.states[left[at] + 1])]].toarray()[:, 0])]
        end = int(ahead[goal][rows.indices].max())
        if end < 0:
            yield Fault("endless", i, t, ENDLESS, "give the states after it a way to an end, or leave it out", (s,))
        else:
            yield Fault("dead end ahead", i, t, DEAD_END, "make the dead end terminal, or leave it out", (s, end))


def _dead_ends(mdp: MDP, goal: int | None) -> Ints:
    """Return the dead end that each state cannot surely avoid, (S,); −1 for states that have none ahead."""
    if mdp.horizon is None:
        alive = structure_of(mdp, goal).alive
    else:
        spans = lifespan(mdp)
        alive = np.ones(mdp.n_states, dtype=bool) if spans is None else spans[0] == FOREVER
    arcs = arcs_of(mdp)
    arcs = arcs.where(~alive[arcs.source] & ~alive[arcs.target])
    ends = (~mdp.allowed.any(axis=1) | mdp.terminal) & ~ends_of(mdp, goal)
    onwards = next_step((arcs.target, arcs.source), ends)
    found = np.where(ends, np.arange(mdp.n_states), onwards)
    for _ in range(mdp.n_states.bit_length()):  # each round doubles the number of steps followed
        found = np.where(found < 0, -1, found[found])
    return found
