"""Probes for identifiability: where one action collects more of a reward fᵀv than another, and the rows A_f(s, a).

See identifiability.py. All use the uniform policy over the live actions of every reachable state.

    Finite    with a horizon: backwards from the last choice; rows propagate the effect of a choice forwards
    Endless   without a horizon: all steps at once, by solving the linear system of F
    Local     without a horizon: combinations of rows of a few neighbouring states from which F(s') cancels; it
              identifies fewer directions, at the cost of one sweep
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.backups import mean_backup
from messirl.planning.memory_layout import NONE, layout_of
from messirl.planning.policy_chain import Chain, choices, factorised
from messirl.planning.reachability import Structure

PRECISION = 1e-12  # residual of an iterative solve, relative to its right-hand side
DENSE = 0.1  # share of non-zero entries above which masses are stored dense
HELD = 2**24  # maximum number of stored masses
WIDEST = 400  # maximum number of actions in a neighbourhood
DEPENDENT = 1e-12  # share of the largest singular value below which a singular value counts as zero

Gaps = Callable[[], Floats]  # (A·S padded,)
ProbeSteps = Iterator[tuple[int, float, float, Gaps]]  # a step, the largest gap, the largest value, and all gaps


class Probe:
    """A problem under the uniform policy over `live` actions (S, A), from states where `start` > 0, or from all."""

    crowd = 4  # places to sample per remaining direction

    def __init__(self, mdp: MDP, live: Flags, start: Floats | None) -> None:
        self.mdp, self.layout, self.live = mdp, layout_of(mdp), live
        self.chain = Chain(mdp)
        self.policy = self.layout.action_major(live / np.maximum(live.sum(axis=1, keepdims=True), 1))
        self.chain.follow(self.policy)
        if start is not None:
            reached = self.chain.reach(start)
            if not reached.all():
                self.policy *= self.layout.pad(reached)
                self.chain.follow(self.policy)
                self.live = live & reached[:, None]

    def gaps_by_step(self, v: Floats) -> ProbeSteps:
        """Yield, step by step, the gaps between actions in the collected reward fᵀv."""
        raise NotImplementedError

    def rows(self, step: int, places: Ints, directions: Floats) -> Floats:
        """Return A_f (m, d) of these places of a step, or of combinations of them, along directions (k, d): (m, k)."""
        raise NotImplementedError

    def _terms(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the reward fᵀv of states (S padded,) and of actions (A, S padded)."""
        reward = self.mdp.reward(v)
        if reward.ndim == 1:
            return self.layout.pad(reward), NONE
        return np.zeros(self.layout.padded), self.layout.action_major(reward)

    def _sweep(self, terms: tuple[Floats, Floats], ahead: Floats, here: Floats) -> tuple[float, float, Gaps]:
        """Do one backup; return the largest gap, the largest value, and a function for all gaps, by another backup."""

        def gaps() -> Floats:
            table = np.empty_like(self.policy)
            mean_backup(self.layout, terms, self.mdp.discount, self.policy, ahead, here, table)
            return table.ravel()

        return *mean_backup(self.layout, terms, self.mdp.discount, self.policy, ahead, here, NONE), gaps

    def _changes(self, places: Ints) -> sp.csr_array:
        """Return the matrix (m, S·A) that replaces the mean action by the action of each place."""
        action, state = np.divmod(places, self.layout.padded)
        one = np.zeros((places.size, self.mdp.n_actions))
        one[np.arange(places.size), action] = 1.0
        return choices(self.mdp, one - self.policy[:, state].T, state)

    @cached_property
    def _gained(self) -> Any:
        """The features that a visit of each state collects, (S, d)."""
        if not self.mdp.state_action:
            return self.mdp.features
        return choices(self.mdp, self.layout.state_major(self.policy)) @ self.mdp.feature_rows


class FiniteHorizonProbe(Probe):
    """Probe with a horizon. Under the noncausal model every transition counts as an action of its own."""

    def __init__(self, mdp: MDP, start: Floats | None, *, noncausal: bool = False) -> None:
        mdp = _every_move(mdp) if noncausal else mdp
        stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
        risky = (mdp.transitions @ stuck.astype(np.float64) > 0).reshape(mdp.allowed.shape)
        super().__init__(mdp, mdp.allowed & ~risky, start)
        self._met = None if start is None else self._when_met(start)

    def _when_met(self, start: Floats) -> npt.NDArray[np.uint8]:
        """Return a bit mask of the states that can be reached at each step, (H, S/8)."""
        assert self.mdp.horizon is not None
        matrix, here, met = self._matrix.T.tocsr(), start > 0.0, []
        for _ in range(self.mdp.horizon):
            met.append(np.packbits(here))
            here = (matrix @ here.astype(np.float64)) > 0.0
        return np.array(met)

    def gaps_by_step(self, v: Floats) -> ProbeSteps:
        """Yield the gaps; step 1 is the last choice, step H − 1 the first."""
        assert self.mdp.horizon is not None
        terms = self._terms(v)
        ahead, here = terms[0].copy(), np.empty(self.layout.padded)
        for step in range(1, self.mdp.horizon):
            largest, values, gaps = self._sweep(terms, ahead, here)
            if self._met is not None:  # other states cannot be reached at this step
                table = np.where(self._states_met(step), gaps().reshape(self.policy.shape), 0.0).ravel()
                largest, gaps = float(np.abs(table).max(initial=0.0)), partial(_same, table)
            yield step, largest, values, gaps
            ahead, here = here, ahead

    def _states_met(self, step: int) -> Flags:
        """Return the states (S padded,) that can be reached at a step, counted from the last one."""
        assert self._met is not None
        assert self.mdp.horizon is not None
        bits = np.unpackbits(self._met[self.mdp.horizon - 1 - step], count=self.mdp.n_states)
        return self.layout.pad(bits.astype(np.float64)) > 0.0

    def rows(self, step: int, places: Ints, directions: Floats) -> Floats:
        """Return A_f from the change that the choice makes in the visits of each later step."""
        height = places.size if step == 1 else max(1, HELD // self.mdp.n_states)
        parts = [self._followed(step, places[lo : lo + height]) for lo in range(0, places.size, height)]
        return np.concatenate(parts) @ directions.T

    def _followed(self, step: int, places: Ints) -> Floats:
        change = self._changes(places)
        mass: Any = self.mdp.discount * (change @ self.mdp.transitions)
        found = _array(change @ self.mdp.feature_rows) if self.mdp.state_action else 0.0
        for _ in range(step - 1):
            found = found + _array(mass @ self._gained)
            mass = self.mdp.discount * (mass @ self._matrix)
            if sp.issparse(mass) and mass.nnz > DENSE * np.prod(mass.shape):
                mass = mass.toarray()
        return np.asarray(found if self.mdp.state_action else found + _array(mass @ self._gained))

    @cached_property
    def _matrix(self) -> sp.csr_array:
        return self.chain.matrix


class StationaryProbe(Probe):
    """Probe without a horizon: one F for all steps.

    at_once : whether to factorise the system and solve it for all directions at once
    """

    def __init__(self, mdp: MDP, structure: Structure, start: Floats | None, *, at_once: bool) -> None:
        super().__init__(mdp, structure.live, start)
        self._at_once = at_once

    def gaps_by_step(self, v: Floats) -> ProbeSteps:
        """Yield the gaps of the single step."""
        yield (
            1,
            *self._sweep(self._terms(v), self.layout.pad(self._values(v[None])[:, 0]), np.empty(self.layout.padded)),
        )

    def rows(self, step: int, places: Ints, directions: Floats) -> Floats:
        """Return A_f from F along every direction."""
        change = self._changes(places)
        found = self.mdp.discount * ((change @ self.mdp.transitions) @ self._values(directions))
        if self.mdp.state_action:
            found += _array(change @ self.mdp.feature_rows) @ directions.T
        return np.asarray(found)

    def _values(self, directions: Floats) -> Floats:
        """Return F (S, k) along directions (k, d)."""
        gained = _array(self._gained @ directions.T)
        if self._at_once:
            return np.asarray(self._factors.solve(gained))
        pad, n = self.layout.pad, self.mdp.n_states
        for column in gained.T:
            column[:] = self.chain.solve(pad(column), tolerance=PRECISION * float(np.abs(column).max()))[:n]
        return gained

    @cached_property
    def _factors(self) -> Any:
        return factorised(self.chain.matrix, self.mdp.discount)


class LocalProbe(Probe):
    """Probe without a horizon, from neighbourhoods of states only.

    With weights ω of the (s, a) pairs of a state and its successors such that Σ ω (E − γP) = 0, where E indicates the
    state s of a pair, ω A_f = ω f, whatever F is. Such ω exist wherever the pairs outnumber the states involved.
    """

    crowd = 1

    def __init__(self, mdp: MDP, structure: Structure, start: Floats | None) -> None:
        super().__init__(mdp, structure.live, start)
        self._ends = structure.ends

    def gaps_by_step(self, v: Floats) -> ProbeSteps:
        """Yield the gaps in the reward of the next state between actions."""
        yield 1, *self._sweep(self._terms(v), self.layout.pad(_array(self._gained @ v)), np.empty(self.layout.padded))

    def rows(self, step: int, places: Ints, directions: Floats) -> Floats:
        """Return ω f of the neighbourhoods of these places."""
        found = [self._cancelled(int(s)) @ directions.T for s in np.unique(places % self.layout.padded)]
        return np.concatenate([*found, np.zeros((1, len(directions)))])

    def _cancelled(self, state: int) -> Floats:
        """Return all independent ω f of one neighbourhood, (j, d)."""
        mdp, n_actions = self.mdp, self.mdp.n_actions
        near = np.append(self._successors(state * n_actions + np.flatnonzero(self.live[state]))[1], state)
        near = np.unique(near[~self._ends[near]])
        moves = (near[:, None] * n_actions + np.arange(n_actions))[self.live[near]]
        nothing = np.zeros((0, mdp.n_features))
        if moves.size > WIDEST:
            return nothing
        of, to, chance = self._successors(moves)
        over = self._ends[to]
        known, column = np.unique(np.append(moves // n_actions, to[~over]), return_inverse=True)
        if known.size >= moves.size:
            return nothing
        system = np.zeros((moves.size, known.size))
        np.subtract.at(system, (of[~over], column[moves.size :]), mdp.discount * chance[~over])
        np.add.at(system, (np.arange(moves.size), column[: moves.size]), 1.0)
        left, size, _ = np.linalg.svd(system)
        free = left[:, int((size > DEPENDENT * size[0]).sum()) :]
        if mdp.state_action:
            return np.asarray(free.T @ _array(mdp.feature_rows[moves]))
        worth = _array(mdp.features[moves // n_actions])
        if over.any():
            np.add.at(worth, of[over], mdp.discount * chance[over][:, None] * _array(mdp.features[to[over]]))
        return np.asarray(free.T @ worth)

    def _successors(self, moves: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the successors of rows s·A + a: the index of the row, the next state, and its probability."""
        rows = self.mdp.transitions
        width = rows.indptr[moves + 1] - rows.indptr[moves]
        of = np.repeat(np.arange(moves.size), width)
        entry = np.arange(of.size) + np.repeat(rows.indptr[moves] - np.cumsum(width) + width, width)
        return of, rows.indices[entry].astype(np.int64), rows.data[entry]


def _same(table: Floats) -> Floats:
    return table


def _array(table: Any) -> Floats:
    return np.asarray(table.toarray() if sp.issparse(table) else table)


def _every_move(mdp: MDP) -> MDP:
    """Return the MDP in which every transition (s, a, s') is an action of its own that leads to s' with certainty."""
    rows = np.repeat(np.arange(mdp.transitions.shape[0]), np.diff(mdp.transitions.indptr))
    state = rows // mdp.n_actions
    number = np.arange(rows.size) - np.searchsorted(state, state)
    most = int(number.max(initial=0)) + 1
    move = state * most + number
    shape = (mdp.n_states * most, mdp.n_states)
    certain = sp.csr_array(sp.coo_array((np.ones(move.size), (move, mdp.transitions.indices)), shape=shape))
    features = mdp.features
    if mdp.state_action:
        repeated = sp.csr_array(
            sp.coo_array((np.ones(move.size), (move, rows)), shape=(shape[0], mdp.transitions.shape[0]))
        )
        features = sp.csr_array(repeated @ sp.csr_array(mdp.feature_rows))
    return MDP(certain, features, discount=mdp.discount, horizon=mdp.horizon, terminal=mdp.terminal)
