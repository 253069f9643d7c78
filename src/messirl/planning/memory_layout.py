"""Data layout of the kernels: an MDP's dynamics in blocks of states and slots of successors, and rewards.

A reward is split into the terms that they add: r(s) after the sum over actions, r(s, a) inside it. State rewards count
every visited state, the last included: V_last = r. A state-action reward counts every step taken: V_last = 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._compiled import LINE
from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.kernels.bellman import B
from messirl.planning.multithreading import BlockRange, divide_blocks

NONE: Floats = np.zeros((0, 0))
STATES_AT_ONCE = 512 * B
GATHER_COST = 2.0  # cost of a gathered value, in multiplications


def aligned(*shape: int) -> Floats:
    """Return an empty array aligned to a cache line, so that no vector of the kernels crosses one."""
    return _within(np.empty(math.prod(shape) + LINE // 8), shape)


def _within(room: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the aligned array of this shape within a buffer that is one cache line larger."""
    skip = -room.__array_interface__["data"][0] % LINE // 8
    return room[skip : skip + math.prod(shape)].reshape(shape)


@dataclass(frozen=True)
class Layout:
    """The arguments that every kernel takes first, and the sizes needed to pad and unpad."""

    shared: bool
    off: Ints
    idx: npt.NDArray[np.uint32]
    own: Ints
    prob: Floats
    n_actions: int
    n_states: int
    padded: int  # number of states, padding of the last block included
    parts: tuple[BlockRange, ...]

    @property
    def dynamics(self) -> tuple[Any, ...]:
        """The arguments of a kernel that describe the transitions."""
        return self.shared, self.off, self.idx, self.own, self.prob, self.n_actions

    def pad(self, per_state: npt.NDArray[Any]) -> Floats:
        """Return an array (…, S) padded with zeros, (…, S padded)."""
        out = aligned(*per_state.shape[:-1], self.padded)
        out[..., : self.n_states] = per_state
        out[..., self.n_states :] = 0.0
        return out

    def action_major(self, policy: Floats) -> Floats:
        """Return a policy (…, S, A) as the kernels store it, (…, A, S padded); no copy if it came from them."""
        stored, shape = policy.base, (*policy.shape[:-2], self.n_actions, self.padded)
        if isinstance(stored, np.ndarray) and stored.shape == (math.prod(shape) + LINE // 8,):
            stored = _within(stored, shape)
        if isinstance(stored, np.ndarray) and stored.shape == shape and stored.flags.c_contiguous:
            view = self.state_major(stored)
            same = view.__array_interface__ == policy.__array_interface__  # place, type, shape and strides
            if same and np.isfinite(stored[..., self.n_states :]).all():  # the padding may hold anything
                return stored
        out = np.zeros(shape)
        out[..., : self.n_states] = np.swapaxes(policy, -1, -2)
        return out

    def state_major(self, stored: Floats) -> Floats:
        """Return the public view (…, S, A) of a stored policy."""
        return np.swapaxes(stored[..., : self.n_states], -1, -2)


def layout_of(mdp: MDP) -> Layout:
    """Return the MDP's layout, built once: the cheaper of the two for its dynamics."""
    return mdp.memo("layout", lambda: _build(mdp.transitions, mdp.n_states, mdp.n_actions))


def _build(transitions: sp.csr_array, n_states: int, n_actions: int) -> Layout:
    n_blocks = -(-n_states // B)
    per_row, per_state = np.zeros(n_blocks, dtype=np.int64), np.zeros(n_blocks, dtype=np.int64)
    for part in _parts(transitions, n_states, n_actions):
        np.maximum.at(per_row, part.state // B, part.within + 1)
        np.maximum.at(per_state, part.state // B, part.slot + 1)
    shared_cost = per_state.sum() * (GATHER_COST + n_actions)
    separate_cost = per_row.sum() * n_actions * (GATHER_COST + 1)
    shared = bool(shared_cost <= separate_cost)

    slots = per_state if shared else per_row * n_actions
    off = np.concatenate([[0], np.cumsum(slots)]).astype(np.int64)
    lanes = np.minimum(np.arange(n_blocks * B, dtype=np.uint32).reshape(-1, B), n_states - 1)
    idx = np.repeat(lanes, slots, axis=0)  # an unused slot leads to the state itself, with p = 0
    chances = ProbabilityBlocks(off * n_actions if shared else off)
    for part in _parts(transitions, n_states, n_actions):
        block, lane = part.state // B, part.state % B
        number = off[block] + (part.slot if shared else part.action * per_row[block] + part.within)
        idx[number, lane] = part.successor
        row = number * n_actions + part.action if shared else number
        chances.add(part.first // B, -(-part.last // B), row, lane, part.chance)
    return Layout(
        shared, off, idx, chances.own, chances.prob, n_actions, n_states, n_blocks * B, divide_blocks(off, idx)
    )


class ProbabilityBlocks:
    """The probabilities of blocks, equal blocks stored once: `own` (blocks,) is the first row of each in `prob`.

    edges : (blocks + 1,) row pointer of the blocks if none were equal
    """

    def __init__(self, edges: Ints) -> None:
        self._edges, self._known, self._used = edges, dict[bytes, int](), 0
        self._room = aligned(int(edges[-1]), B)  # unused rows are never touched, so they take no memory
        self.own = np.empty(edges.size - 1, dtype=np.int64)

    def add(self, lo: int, hi: int, row: Ints, lane: Ints, chance: Floats) -> None:
        """Add blocks lo … hi−1 from their entries: row as in `edges`, and lane."""
        first = int(self._edges[lo])
        table = np.zeros((int(self._edges[hi]) - first, B))
        table[row - first, lane] = chance
        for b in range(lo, hi):
            rows = table[self._edges[b] - first : self._edges[b + 1] - first]
            self.own[b] = self._known.setdefault(blake2b(rows.data, digest_size=16).digest(), self._used)
            if self.own[b] == self._used:
                self._room[self._used : self._used + len(rows)] = rows
                self._used += len(rows)

    @property
    def prob(self) -> Floats:
        """(rows, B)."""
        return self._room[: self._used]


@dataclass(frozen=True)
class _Part:
    """Entries of the states first … last−1: their indices, position in the row and slot among all successors."""

    first: int
    last: int
    state: Ints
    action: Ints
    successor: Ints
    chance: Floats
    within: Ints
    slot: Ints


def _parts(transitions: sp.csr_array, n_states: int, n_actions: int) -> Iterator[_Part]:
    """Yield all entries, some states at a time, so that large problems need little memory beside their layout."""
    at_once = max(STATES_AT_ONCE // B, 1) * B  # whole blocks
    for low in range(0, n_states, at_once):
        high = min(low + at_once, n_states)
        pointer = transitions.indptr[low * n_actions : high * n_actions + 1].astype(np.int64)
        some = slice(int(pointer[0]), int(pointer[-1]))
        rows = np.repeat(np.arange(low * n_actions, high * n_actions), np.diff(pointer))
        state, successor = rows // n_actions, transitions.indices[some].astype(np.int64)
        within = np.arange(some.start, some.stop) - transitions.indptr[rows]
        unique, slot_of = np.unique((state - low) * n_states + successor, return_inverse=True)
        first = np.searchsorted(unique, np.arange(high - low) * n_states)
        yield _Part(
            low, high, state, rows % n_actions, successor, transitions.data[some], within, slot_of - first[state - low]
        )


@dataclass(frozen=True)
class Terms:
    """state (S padded,), action (A, S padded) or empty, end (S,): the value of ending in a state."""

    state: Floats
    action: Floats
    end: Floats


def usable_actions(mdp: MDP) -> Flags:
    """Return allowed actions, and all actions of terminal states, where none is taken: often simply all."""
    return mdp.memo("usable", lambda: mdp.allowed | mdp.terminal[:, None])


def terms_of(layout: Layout, reward: Floats, usable: Flags, base: Floats | None = None) -> Terms:
    """Return the kernels' terms; actions that are not `usable` (S, A) get −inf.

    base : (S, A) the logarithm of the prior policy, added to the reward of every choice
    """
    all_usable, of_states = bool(usable.all()), reward.ndim == 1
    state, end = (layout.pad(reward), reward) if of_states else (np.zeros(layout.padded), np.zeros(layout.n_states))
    if of_states and all_usable and base is None:
        return Terms(state, NONE, end)
    worth = np.zeros((1, 1)) if of_states else reward
    if base is not None:
        worth = worth + base
    action = np.zeros((layout.n_actions, layout.padded))
    action[:, : layout.n_states] = (worth if all_usable else np.where(usable, worth, -np.inf)).T
    return Terms(state, action, end)
