"""Dead ends and reachability: the states that have a value and the actions that the model may take, whatever θ.

A state with no allowed action that is neither terminal nor the goal is a dead end: V = −inf, never entered. So an
action that can lead into one is never taken, and a state with no other action is a dead end too. With γ = 1 and no
horizon a state must also be able to reach an end with probability one. None of this depends on θ: it is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.kernels.graph import FOREVER, lifetimes


@dataclass(frozen=True)
class Arcs:
    """State, action and next state of every transition of positive probability, sorted by state and action."""

    source: Ints
    action: Ints
    target: Ints

    def rewards(self, reward: Floats, base: Floats | None) -> Floats:
        """Return the reward of each, from (S,) or (S, A), plus log π₀ (S, A) if there is a prior policy."""
        own = reward[self.source] if reward.ndim == 1 else reward[self.source, self.action]
        return own if base is None else own + base[self.source, self.action]

    def where(self, kept: Flags) -> Arcs:
        """Return the subset selected by a mask."""
        return Arcs(self.source[kept], self.action[kept], self.target[kept])


def arcs_of(mdp: MDP) -> Arcs:
    """Return all transitions of an MDP."""
    rows = np.repeat(np.arange(mdp.transitions.shape[0]), np.diff(mdp.transitions.indptr))
    return Arcs(rows // mdp.n_actions, rows % mdp.n_actions, mdp.transitions.indices.astype(np.int64))


def reach(arcs: tuple[Ints, Ints], seeds: Flags) -> Flags:
    """Return the states reachable from the seeds along arcs (from, to), (S,), by a search from an extra source node."""
    return next_step(arcs, seeds) >= 0


def next_step(arcs: tuple[Ints, Ints], seeds: Flags) -> Ints:
    """Return the state from which a breadth-first search along arcs (from, to) meets each state, (S,).

    It is S for the seeds, which one more node leads to, and -1 for states that are never met.
    """
    n, first = seeds.size, np.flatnonzero(seeds)
    ends = (np.concatenate([arcs[0], np.full(first.size, n)]), np.concatenate([arcs[1], first]))
    graph = sp.csr_array(sp.coo_array((np.ones(ends[0].size), ends), shape=(n + 1, n + 1)))
    before = np.full(n, -1, dtype=np.int64)
    order, found = breadth_first_order(graph, n, return_predecessors=True)
    before[order[1:]] = found[order[1:]]
    return before


@dataclass(frozen=True)
class Structure:
    """Structure of a problem without horizon: states that end it, states with a value, actions that may be taken."""

    ends: Flags  # (S,)
    alive: Flags  # (S,) V > −inf
    live: Flags  # (S, A)


def structure_of(mdp: MDP, goal: int | None = None, within: Flags | None = None) -> Structure:
    """Return the structure of a problem without horizon, towards one goal or towards the terminal states.

    within : (S,) states to restrict it to, closed under transitions
    """
    if goal is None and within is None:
        return mdp.memo("structure", lambda: _build(mdp, None, None))
    return _build(mdp, goal, within)


def ends_of(mdp: MDP, goal: int | None) -> Flags:
    """Return the states where trajectories end, (S,): the goal, or the terminal states."""
    return mdp.terminal if goal is None else np.arange(mdp.n_states) == goal


def reachable(mdp: MDP, start: Floats, goal: int | None = None) -> Flags:
    """Return the states reachable from those where `start` is positive, (S,); with a goal, not beyond it."""
    arcs = arcs_of(mdp)
    if goal is not None:
        arcs = arcs.where(arcs.source != goal)
    return reach((arcs.source, arcs.target), start > 0)


def _build(mdp: MDP, goal: int | None, within: Flags | None) -> Structure:
    ends = ends_of(mdp, goal)
    if goal is None and mdp.discount == 1.0 and not ends.any():
        raise ValueError(
            "discount=1 with no horizon, no terminal state and no goal: no trajectory ends, so no value is finite. "
            "Give a horizon, terminal states, goals, or a discount below 1"
        )
    dead = np.zeros(mdp.n_states, dtype=bool) if within is None else ~within
    parents_ptr, parents = _parents(mdp)
    while True:  # each iteration marks at least one more state dead: at most S iterations
        life, row_life = lifetimes(mdp.transitions.indptr, mdp.n_actions, parents_ptr, parents, ends, dead)
        alive, live = life == FOREVER, row_life == FOREVER
        live &= np.repeat(alive & ~ends, mdp.n_actions)
        if mdp.discount < 1.0:
            break
        used = arcs_of(mdp).where(np.repeat(live, np.diff(mdp.transitions.indptr)))
        lost = alive & ~reach((used.target, used.source), ends)
        if not lost.any():
            break
        dead = ~alive | lost
    return Structure(ends, alive, live.reshape(mdp.n_states, mdp.n_actions))


def lifespan(mdp: MDP) -> tuple[Ints, Ints] | None:
    """Return (life, life of each action) of a problem with a horizon, see `lifetimes`; None without dead ends."""

    def build() -> tuple[Ints, Ints] | None:
        if np.all(mdp.allowed.any(axis=1) | mdp.terminal):
            return None
        nowhere = np.zeros(mdp.n_states, dtype=bool)
        life, row_life = lifetimes(mdp.transitions.indptr, mdp.n_actions, *_parents(mdp), mdp.terminal, nowhere)
        return life, row_life.reshape(mdp.n_states, mdp.n_actions)

    return mdp.memo("lifespan", build)


def _parents(mdp: MDP) -> tuple[Ints, Ints]:
    """Return the rows s·A + a that can lead to each state, in compressed form (CSC)."""
    columns = mdp.memo("parents", mdp.transitions.tocsc)
    return columns.indptr, columns.indices
