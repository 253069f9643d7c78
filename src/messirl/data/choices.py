"""Choices made by trajectories: the state of each, and the action taken or, if unknown, its candidates.

Equal choices (the same step with a horizon, or the same goal; the same state; the same action or, where actions were
not recorded, the same next state) form one kind. The candidates of a kind are the recorded action, or all actions that
can make the transition, each with its probability of doing so. A trajectory's last state makes no choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import transition_probabilities


@dataclass(frozen=True)
class Choices:
    """N choices of K kinds with J candidates.

    trajectory, kind : (N,) the trajectory and the kind of each choice
    group : (K,) its step with a horizon, the number of its goal with goals, else 0
    state : (K,) where it was made
    of, row, log_probability : (J,) the kind of each candidate, sorted; s·A + a; log p(s'|s,a), 0 where actions are
    recorded
    goals : (G,) the distinct goals that groups are numbers of, or None
    """

    trajectory: Ints
    kind: Ints
    group: Ints
    state: Ints
    of: Ints
    row: Ints
    log_probability: Floats
    goals: Ints | None

    @property
    def has_single_candidates(self) -> bool:
        """True if every kind has exactly one candidate."""
        return self.of.size == self.group.size

    def totals(self, weights: Floats) -> Floats:
        """Return the weighted number of choices of each kind, (K,), given the weights (n,) of the trajectories."""
        return np.bincount(self.kind, weights[self.trajectory], self.group.size).astype(np.float64)

    def select_kinds(self, wanted: Flags) -> Choices:
        """Return the choices of the wanted kinds, a mask (K,), renumbered; the goals stay."""
        number, made, some = np.cumsum(wanted) - 1, wanted[self.kind], wanted[self.of]
        return Choices(
            self.trajectory[made],
            number[self.kind[made]],
            self.group[wanted],
            self.state[wanted],
            number[self.of[some]],
            self.row[some],
            self.log_probability[some],
            self.goals,
        )


def choices_of(mdp: MDP, trajectories: Trajectories) -> Choices:
    """Return the choices of trajectories that have been checked."""
    trip = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)
    goals, number = None, None
    if trajectories.goals is not None:
        goals, number = np.unique(trajectories.goals, return_inverse=True)
        number = number[trip]
    keys, kind = np.unique(choice_keys(mdp, trajectories, number), return_inverse=True)
    return Choices(trip, kind, *kinds_of(mdp, keys, recorded=trajectories.actions is not None), goals)


def choice_keys(mdp: MDP, trajectories: Trajectories, group: Ints | None = None, *, recorded: bool = True) -> Ints:
    """Return the key of the kind of every choice, (N,).

        (group·S + s)·A + a    or, where actions are not recorded,    (group·S + s)·S + s'

    group : of every choice, (N,); None: its step with a horizon, else 0
    recorded : use recorded actions where there are any
    """
    left = np.flatnonzero(trajectories.leaves)
    if group is None:
        group = trajectories.step[left] if mdp.horizon is not None else np.zeros(1, dtype=np.int64)
    after, width = trajectories.actions if recorded else None, mdp.n_actions
    if after is None:
        after, width = trajectories.states[left + 1], mdp.n_states
    return np.asarray((group * mdp.n_states + trajectories.states[left]) * width + after)


def kinds_of(mdp: MDP, keys: Ints, *, recorded: bool) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """Return the kinds with these sorted keys, and their candidates, as the arrays of `Choices` from group on."""
    width = mdp.n_actions if recorded else mdp.n_states
    group, state, after = keys // width // mdp.n_states, keys // width % mdp.n_states, keys % width
    if recorded:
        of, action, log_chance = np.arange(keys.size), after, np.zeros(keys.size)
    else:
        chance = transition_probabilities(mdp, state, after)
        of, action = np.nonzero(chance)
        log_chance = np.log(chance[of, action])
    return group, state, of, state[of] * mdp.n_actions + action, log_chance


def choice_mass(mdp: MDP, trajectories: Trajectories) -> Floats:
    """Return Σ_t γ^t over the choices of each trajectory, (n,); 1/(1 − γ) for a truncated one treated as endless."""
    made = (trajectories.lengths - 1).astype(np.float64)
    if mdp.discount == 1.0:
        return made
    mass = -np.expm1(made * np.log(mdp.discount))
    if mdp.endless and trajectories.goals is None:
        mass[~mdp.terminal[trajectories.last]] = 1.0
    return np.asarray(mass / (1.0 - mdp.discount))
