"""Deterministic moves, γ = 1, no horizon: the values are a sparse linear system (the recursive logit).

With z = exp V, and the move of action a in s leading to s',

    z(s) = Σ_a exp(r(s,a)) z(s') = (M z)(s),     z(end) = exp(r(end))        (1 with state-action rewards)

*One end, or the terminal states together* (`PathSystem`): solved for exp(V − W), where W is the hard-max value. All
its coefficients are at most 1 and all its unknowns at least 1, so nothing under- or overflows, however far the end.

*All goals together* (`evaluate_goals`): x_g = (I − M)⁻¹ e_g from one factorisation. Rows other than g of (I − M) x_g
vanish, so z_g = ζ_g x_g / x_g(g) whether or not the goal has moves of its own. The expected visits are
D_g = y_g z_g with (I − M)ᵀ y_g = start_g / z_g − (n_g/ζ_g) M[g, :]ᵀ, because each of the n_g trips ends in g once.
Goals for which doubles do not reach far enough are solved one by one, as above.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Flags, Floats, Ints
from messirl.planning.kernels import path_flows
from messirl.planning.layout import layout_of
from messirl.planning.stationary import NO_VALUE
from messirl.planning.structure import Structure, reachable, structure
from messirl.planning.terms import NoFiniteValue, Visits
from messirl.problem.mdp import MDP

SMALLEST = 1e-250  # z below this at a start: solve the goal on its own
CHUNK = 16  # goals solved at once: more do not fit the processor's cache, and a solve then takes three times as long


@dataclass(frozen=True)
class Moves:
    """Every allowed move: state left, action, state entered."""

    source: Ints
    action: Ints
    target: Ints

    def rewards(self, reward: Floats) -> Floats:
        return reward[self.source] if reward.ndim == 1 else reward[self.source, self.action]


def moves_of(mdp: MDP) -> Moves:
    def build() -> Moves:
        rows = np.flatnonzero(np.diff(mdp.transitions.indptr))
        return Moves(rows // mdp.n_actions, rows % mdp.n_actions, mdp.transitions.indices.astype(np.int64))

    return mdp.memo("path moves", build)


class PathSystem:
    """Values, policy and visits towards one goal, or towards the terminal states."""

    def __init__(self, mdp: MDP, reward: Floats, frame: Structure) -> None:
        self.mdp, self.frame = mdp, frame
        moves = moves_of(mdp)
        live = frame.live[moves.source, moves.action]
        self.moves = Moves(moves.source[live], moves.action[live], moves.target[live])
        gains = self.moves.rewards(reward)
        end = np.where(frame.ends, reward if reward.ndim == 1 else 0.0, -np.inf)
        self.potential = _best_paths(self.moves, gains, end)

        inner = frame.alive & ~frame.ends
        self.inner = np.flatnonzero(inner)
        number = np.full(mdp.n_states, -1)
        number[self.inner] = np.arange(self.inner.size)
        self.gain = np.exp(gains + self.potential[self.moves.target] - self.potential[self.moves.source])
        to_end = frame.ends[self.moves.target]
        source, target = number[self.moves.source], number[self.moves.target]
        shape = (self.inner.size, self.inner.size)
        between = sp.coo_array((self.gain[~to_end], (source[~to_end], target[~to_end])), shape=shape)
        arriving = np.bincount(source[to_end], weights=self.gain[to_end], minlength=self.inner.size)
        self.lift = np.ones(mdp.n_states)
        if self.inner.size:
            self._lu = _factorised(sp.csc_array(sp.eye_array(self.inner.size) - between))
            self.lift[self.inner] = self._lu.solve(arriving)
        if not (np.isfinite(self.lift).all() and self.lift.min() > 1.0 - 1e-6):  # V ≥ W, or there is no V
            raise NoFiniteValue(NO_VALUE)

    @property
    def values(self) -> Floats:
        """V (S,), −inf where no end is reached."""
        return np.asarray(self.potential + np.log(self.lift))

    @property
    def policy(self) -> Floats:
        """π (A, S padded), stored as the kernels store it."""
        policy = np.zeros((self.mdp.n_actions, layout_of(self.mdp).padded))
        share = self.gain * self.lift[self.moves.target] / self.lift[self.moves.source]
        policy[self.moves.action, self.moves.source] = share
        return np.asarray(policy / np.maximum(policy.sum(axis=0), np.finfo(float).tiny))

    def visits(self, start: Floats) -> Visits:
        """Expected visits from a start distribution (or weights)."""
        y = np.zeros(self.mdp.n_states)
        if self.inner.size:
            y[self.inner] = self._lu.solve((start / self.lift)[self.inner], trans="T")
        flow = y[self.moves.source] * self.gain * self.lift[self.moves.target]
        states = y * self.lift
        entered = np.bincount(self.moves.target, weights=flow, minlength=self.mdp.n_states)
        states[self.frame.ends] = (start + entered)[self.frame.ends]
        steps = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        steps[self.moves.source, self.moves.action] = flow
        return Visits(states, steps)


def _best_paths(moves: Moves, gains: Floats, end: Floats) -> Floats:
    """Hard-max values W by sweeps: at most one a state, else going round gains for ever."""
    best = np.array(end)
    if moves.source.size == 0:
        return best
    first = np.flatnonzero(np.diff(moves.source, prepend=-1))  # moves are sorted by the state left
    states = moves.source[first]
    for _ in range(best.size + 1):
        reach = np.maximum.reduceat(gains + best[moves.target], first)
        better = reach > best[states]
        if not better.any():
            return best
        best[states[better]] = reach[better]
    raise NoFiniteValue(NO_VALUE)


def _factorised(matrix: sp.csc_array) -> Any:
    """LU with pivots on the diagonal: for an M-matrix it adds only numbers of one sign, so small entries stay exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except (RuntimeError, Warning) as error:
            raise NoFiniteValue(NO_VALUE) from error


def _is_m_matrix(lu: Any) -> bool:
    """Whether the spectral radius of M is below one, well clear of it: then no step of the solves cancels digits.

    If only the moves out of the goals themselves push it to one or above, each goal is still fine on its own.
    """
    return bool(np.array_equal(lu.perm_r, lu.perm_c) and lu.U.diagonal().min() > 1e-6)


@dataclass(frozen=True)
class Trips:
    """Distinct goals, for each the states where its trips start with their weights (G, S); all states they can meet."""

    goals: Ints
    starts: sp.csr_array
    within: Flags


def trips_of(mdp: MDP, first: Ints, goals: Ints, weights: Floats) -> Trips:
    """Trips grouped by goal."""
    distinct, column = np.unique(goals, return_inverse=True)
    shape = (distinct.size, mdp.n_states)
    starts = sp.csr_array(sp.coo_array((weights, (column, first)), shape=shape))
    return Trips(distinct, starts, reachable(mdp, np.bincount(first, weights, mdp.n_states).astype(np.float64)))


class GoalSystem:
    """I − M over the moves that trips can meet, factorised once for all goals; `lu` is None where doubles do not do."""

    def __init__(self, mdp: MDP, reward: Floats, within: Flags) -> None:
        moves = moves_of(mdp)
        met = within[moves.source]
        self.moves = Moves(moves.source[met], moves.action[met], moves.target[met])
        with np.errstate(over="ignore"):
            self.gain = np.exp(self.moves.rewards(reward))
            self.end = np.exp(reward) if reward.ndim == 1 else np.ones(mdp.n_states)
        places = (self.moves.source, self.moves.target)
        self.matrix = sp.csr_array(sp.coo_array((self.gain, places), shape=(mdp.n_states, mdp.n_states)))
        self.lu: Any = None
        if np.isfinite(self.matrix.data).all():
            try:
                lu = _factorised(sp.csc_array(sp.eye_array(mdp.n_states) - self.matrix))
            except NoFiniteValue:  # singular with every goal's moves in place; without them it need not be
                return
            self.lu = lu if _is_m_matrix(lu) else None

    def values(self, goals: Ints, needed: Flags) -> tuple[Floats, Flags]:
        """z towards each goal, (G, S), and for which goals it is right at the states `needed` (G, S)."""
        at = np.arange(goals.size)
        if self.lu is None:
            return np.zeros(needed.shape), np.zeros(goals.size, dtype=bool)
        unit = np.zeros((needed.shape[1], goals.size), order="F")
        unit[goals, at] = 1.0
        with np.errstate(all="ignore"):
            z = self.lu.solve(unit).T
            z *= (self.end[goals] / z[at, goals])[:, None]
            reached = np.where(needed, z, 1.0).min(axis=1) > SMALLEST
            return z, reached & np.isfinite(z).all(axis=1) & (z.min(axis=1) >= 0.0)


def evaluate_goals(mdp: MDP, reward: Floats, trips: Trips) -> tuple[float, Visits]:
    """Σ_trips weight · V_goal(start) and the expected visits summed over trips, all goals from one factorisation."""
    system = GoalSystem(mdp, reward, trips.within)
    moves = system.moves
    value = 0.0
    states, flows = np.zeros(mdp.n_states), np.zeros(moves.source.size)
    for goals, starts in _chunks(trips):
        solved, part = _together(system, goals, starts, states, flows)
        value += part
        for g in np.flatnonzero(~solved):
            alone = PathSystem(mdp, reward, structure(mdp, int(goals[g]), trips.within))
            at = np.flatnonzero(starts[g])
            value += float(starts[g, at] @ alone.values[at])
            visits = alone.visits(starts[g])
            assert visits.steps is not None
            states += visits.states
            flows += visits.steps[moves.source, moves.action]
    steps = np.zeros((mdp.n_states, mdp.n_actions))
    steps[moves.source, moves.action] = flows
    return value, Visits(states, steps)


def values_by_goal(mdp: MDP, reward: Floats, trips: Trips) -> Iterator[tuple[int, Floats]]:
    """Each goal and V (S,) towards it, right where `trips.starts` is positive; all from one factorisation."""
    system = GoalSystem(mdp, reward, trips.within)
    for goals, starts in _chunks(trips):
        z, solved = system.values(goals, starts > 0)
        with np.errstate(divide="ignore"):
            for g, goal in enumerate(goals.tolist()):
                if solved[g]:
                    yield goal, np.log(z[g])
                else:
                    yield goal, PathSystem(mdp, reward, structure(mdp, goal, trips.within)).values


def _chunks(trips: Trips) -> Iterator[tuple[Ints, Floats]]:
    for lo in range(0, trips.goals.size, CHUNK):
        yield trips.goals[lo : lo + CHUNK], trips.starts[lo : lo + CHUNK].toarray()


def _together(system: GoalSystem, goals: Ints, starts: Floats, states: Floats, flows: Floats) -> tuple[Flags, float]:
    """Add the goals that the factorisation serves to `states` and `flows`; which they were, and their Σ weight · V."""
    at, begins = np.arange(goals.size), starts > 0
    z, solved = system.values(goals, begins)
    if not solved.any():
        return solved, 0.0
    with np.errstate(all="ignore"):
        end = system.end[goals]
        rest = np.array(starts)
        rest[at, goals] = 0.0  # trips that begin in their goal make no step
        arrivals = rest.sum(axis=1)
        right = np.where(begins, rest / np.where(begins, z, 1.0), 0.0)
        right -= (arrivals / end)[:, None] * system.matrix[goals].toarray()
        y = system.lu.solve(np.asfortranarray(np.where(solved[:, None], right, 0.0).T), trans="T").T
        y[at, goals] = 0.0
        visited = y * z
        into = sp.coo_array(sp.csc_array(system.matrix)[:, goals])
        came = end * np.bincount(into.col, weights=into.data * y[into.col, into.row], minlength=goals.size)
        solved &= np.isfinite(visited).all(axis=1) & (visited.min(axis=1) >= -1e-9)
        solved &= np.abs(came - arrivals) <= 1e-10 * np.maximum(arrivals, 1e-300)
        y, z, visited = y[solved], np.ascontiguousarray(z[solved]), visited[solved]
        value = float(np.sum(np.where(begins[solved], starts[solved] * np.log(np.where(z > 0, z, 1.0)), 0.0)))
    visited[np.arange(len(y)), goals[solved]] = starts[solved].sum(axis=1)
    states += np.maximum(visited, 0.0).sum(axis=0)
    path_flows(system.moves.source, system.moves.target, system.gain, np.ascontiguousarray(y), z, flows)
    return solved, value
