"""Trips that each end in a goal of their own: one model serves all goals.

Where moves are deterministic and γ = 1 (see paths.py for M), x_g = (I − M)⁻¹ e_g comes from one factorisation for all
goals g. Rows other than g of (I − M) x_g vanish, so z_g = ζ_g x_g / x_g(g) whether or not the goal has moves of its
own. The expected visits are D_g = y_g z_g with (I − M)ᵀ y_g = m_g / z_g − (n_g/ζ_g) M[g, :]ᵀ, because all of the
source m_g, n_g in sum, ends in g once. Where the factors would fill in, blocks of goals are iterated instead
(iterated.py), each without its own row of M. Goals for which doubles do not reach far enough, and all goals of other
problems, are solved one by one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.infinite_horizon import StationaryModel
from messirl.planning.iterative_paths import Iterated, Rows, Slow, by_rows
from messirl.planning.kernels.graph import path_flows
from messirl.planning.multithreading import MOST, on_threads
from messirl.planning.reachability import Arcs, reach, reachable
from messirl.planning.recursive_logit import PathModel, Places, connections_fill_in, m_matrix_lu, moves_of
from messirl.planning.solution import Expectation, NoFiniteValue, Visits
from messirl.planning.solve_counter import counted

SMALLEST = 1e-250  # z below this at a start: solve the goal on its own
KEPT = 1_000_000  # moves of goals that are solved on their own, whose places in the system are found once
FEW = (
    16  # goals up to which factors are found in a kept order: reordering more right-hand sides costs more than it saves
)
CHUNK = 16  # goals solved at once: more do not fit the processor's cache, and a solve then takes three times as long
ITERATED = 32  # goals iterated at once
HELD = 4_000_000  # numbers of a table of goals and states that threads may hold together

T = TypeVar("T")


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


class GoalsModel:
    """Values and visits towards many goals.

    goals : (G,) distinct; within : (S,) the states that trips can meet
    kind : the model of a single goal
    starts : (G, S) not zero where trips to each goal begin; None: anywhere within
    """

    def __init__(
        self, mdp: MDP, goals: Ints, within: Flags, kind: type[StationaryModel], starts: sp.csr_array | None = None
    ) -> None:
        self.mdp, self.goals, self.within, self.kind, self.starts = mdp, goals, within, kind, starts
        self.shared = kind is PathModel  # one system for all
        self._alone: dict[int, StationaryModel] = {}
        self._met: dict[int, Flags] = {}

    def towards(self, goal: int) -> StationaryModel:
        """The model of one goal; kept where it begins with what it found the last time, else if there is room."""
        found = self._alone.get(goal)
        if found is None:
            found = self.kind(self.mdp, goal, self._within(goal))
            if not self.shared or len(self._alone) * self.mdp.transitions.nnz < KEPT:
                self._alone[goal] = found
        return found

    def _within(self, goal: int) -> Flags:
        """The states that trips to this goal can meet; with γ = 1, what lies beyond it need have no finite value."""
        if self.starts is None or not self.mdp.must_end:
            return self.within
        if goal not in self._met:
            row = self.starts[[int(np.searchsorted(self.goals, goal))]]
            begin = np.zeros(self.mdp.n_states)
            begin[row.indices] = 1.0
            self._met[goal] = reachable(self.mdp, begin, goal)
        return self._met[goal]

    @property
    def live(self) -> Flags:
        """The actions that the model may take towards any goal, (S, A)."""
        live = np.zeros((self.mdp.n_states, self.mdp.n_actions), dtype=bool)
        for goal in self.goals.tolist():
            live |= self.towards(goal).live
        return live

    def everywhere(self) -> sp.csr_array:
        """Starts (G, S) spread, for each goal, evenly over the states from which its trips can still reach it."""
        assert self.starts is not None
        arcs, rows = self.meetings[0], []
        for number, goal in enumerate(self.goals.tolist()):
            before = arcs.source != goal
            begin, end = np.zeros(self.mdp.n_states, dtype=bool), np.arange(self.mdp.n_states) == goal
            begin[self.starts[[number]].indices] = True
            met = reach((arcs.source[before], arcs.target[before]), begin) & ~end
            if self.shared:
                met &= reach((arcs.target[before], arcs.source[before]), end)
            else:
                met &= self.towards(goal).structure.alive
            rows.append(sp.csr_array(float(self.starts[[number]].sum()) * met[None] / max(int(met.sum()), 1)))
        return sp.csr_array(sp.vstack(rows))

    @cached_property
    def iterates(self) -> bool:
        """Whether the shared system would fill in if factorised."""
        return self.shared and connections_fill_in(self.mdp, self.within)

    @cached_property
    def meetings(self) -> tuple[Arcs, Places]:
        """The moves that trips can meet, and their places in the shared system; those met last are kept."""
        kept: dict[bytes, tuple[Arcs, Places]] = self.mdp.memo("meetings", dict)
        key = self.within.tobytes()
        if key not in kept:
            kept.clear()
            moves = moves_of(self.mdp)
            moves = moves.where(self.within[moves.source])
            kept[key] = moves, Places(moves.source, moves.target, self.mdp.n_states)
        return kept[key]

    @counted
    def solve(self, reward: Floats) -> GoalsSolution:
        """Factorise once, where one factorisation serves all goals."""
        return GoalsSolution(self, reward)


class GoalsSolution:
    """What a model of many goals says at one reward: values goal by goal, and visits summed over them."""

    def __init__(self, model: GoalsModel, reward: Floats) -> None:
        self.model, self.reward = model, reward
        self.system = None
        if model.shared:
            few = model.goals.size <= FEW
            self.system = GoalSystem(model.mdp, reward, *model.meetings, iterate=model.iterates, few=few)

    def expectation(self, starts: Any, *, steps: bool = True) -> Expectation:
        """Σ starts · V over goals and states, and the visits from `starts` summed over goals.

        starts : (G, S), one row per goal, sparse or not and signed or not
        """
        mdp, system = self.model.mdp, self.system
        value, states, pairs = 0.0, np.zeros(mdp.n_states), np.zeros((mdp.n_states, mdp.n_actions))
        flows = np.zeros(0 if system is None else system.moves.source.size)
        for goals, sources, found in self._found(starts, GoalSystem.flows):
            solved = np.zeros(goals.size, dtype=bool)
            if system is not None and found is not None:
                solved = found.solved
                value += system.add(found, sources, states, flows)
            for g in np.flatnonzero(~solved):
                alone = self.model.towards(int(goals[g])).solve(self.reward).expectation(sources[g], steps=steps)
                value += alone.log_partition
                states += alone.visits.states
                if alone.visits.steps is not None:
                    pairs += alone.visits.steps
        if system is not None:
            pairs[system.moves.source, system.moves.action] += flows
        return Expectation(value, Visits(states, pairs if steps or system is not None else None))

    def _found(
        self, table: Any, asked: Callable[[GoalSystem, Ints, Floats, bool], T]
    ) -> Iterator[tuple[Ints, Floats, T | None]]:
        """Goals, their rows of a table (G, S) and what the shared system answers, None without one.

        Chunks that are iterated share the threads.
        """
        chunks, system = self.chunks(table), self.system
        at_once = max(1, min(MOST, HELD // (ITERATED * self.model.mdp.n_states)))

        def iterated(chunk: tuple[Ints, Floats]) -> T | None:
            assert system is not None
            with contextlib.suppress(Slow):
                return asked(system, *chunk, True)
            return None

        while some := list(islice(chunks, at_once if self.model.iterates else 1)):
            found: list[T | None] = [None] * len(some)
            if system is not None:
                if system.iterates:
                    found = on_threads(iterated, some)
                    system.iterates = None not in found  # what is slow is not tried once more
                found = [
                    asked(system, *chunk, False) if part is None else part
                    for chunk, part in zip(some, found, strict=True)
                ]
            yield from ((*chunk, part) for chunk, part in zip(some, found, strict=True))

    def values(self, needed: Any) -> Iterator[tuple[int, Floats]]:
        """Each goal and V (S,) towards it, right where `needed` (G, S) is not zero."""
        for goals, sources, found in self._found(needed, GoalSystem.values):
            z, solved = (sources, np.zeros(goals.size, dtype=bool)) if found is None else found
            for g, goal in enumerate(goals.tolist()):
                if solved[g]:
                    with np.errstate(divide="ignore"):
                        yield goal, np.log(z[g])
                else:
                    yield goal, self.model.towards(goal).solve(self.reward).values

    def chunks(self, table: Any) -> Iterator[tuple[Ints, Floats]]:
        """Some goals at a time, and their rows of a table (G, S)."""
        rows, n = sp.csr_array(table), self.model.goals.size
        parts = -(-n // (ITERATED if self.model.iterates else CHUNK))
        edges = np.linspace(0, n, parts + 1).round().astype(int).tolist()
        for lo, hi in pairwise(edges):
            yield self.model.goals[lo:hi], rows[lo:hi].toarray()


@dataclass(frozen=True)
class GoalFlows:
    """What the shared system says of some goals: which of them it serves, (G,), and z, y and visits, (G, S) each."""

    solved: Flags
    z: Floats
    y: Floats
    visited: Floats


class GoalSystem:
    """I − M over the moves that trips can meet, factorised once for all goals or, if asked to, iterated."""

    def __init__(
        self, mdp: MDP, reward: Floats, moves: Arcs, places: Places, *, iterate: bool = False, few: bool = False
    ) -> None:
        self.moves, self.places, self.few = moves, places, few
        with np.errstate(over="ignore"):
            self.gain = np.exp(self.moves.worth(reward, mdp.log_reference))
            self.end = np.exp(reward) if reward.ndim == 1 else np.ones(mdp.n_states)
            self._finite = bool(np.isfinite(self.gain.sum()))
        self.iterates = iterate and self._finite

    @cached_property
    def lu(self) -> Any:
        """The factors of I − M; None where doubles do not do."""
        if not self._finite:
            return None
        try:
            lu = self.places.factors(self.gain) if self.few else m_matrix_lu(self.places.system(self.gain))
        except NoFiniteValue:  # singular with every goal's moves in place; without them it need not be
            return None
        return lu if _is_m_matrix(lu) else None

    @cached_property
    def _both_ways(self) -> tuple[Rows, Rows]:
        """M and its transpose, by rows."""
        matrix = self.places.matrix(self.gain)
        return by_rows(matrix), by_rows(sp.csr_array(matrix.T))

    def _at(self, goals: Ints, states: Ints) -> tuple[Ints, Ints]:
        """Which of the moves' `states`, left or entered, are goals, and which of `goals` each of them is."""
        number = np.full(self.end.size, -1)
        number[goals] = np.arange(goals.size)
        which = np.flatnonzero(number[states] >= 0)
        return which, number[states[which]]

    def values(self, goals: Ints, needed: Any, iterate: bool = False) -> tuple[Floats, Flags]:
        """z towards each goal, (G, S), and for which goals it is right where `needed` (G, S) is not zero.

        iterate : by iteration, on whatever thread; raises Slow where that is slow
        """
        z, solved, _ = self._solved(goals, needed != 0, iterate=iterate)
        return z, solved

    def _solved(self, goals: Ints, needed: Flags, *, iterate: bool) -> tuple[Floats, Flags, Iterated | None]:
        """The same, and the iteration that found them, if it was one."""
        at = np.arange(goals.size)
        if iterate:
            right = np.zeros((needed.shape[1], goals.size))
            right[goals, at] = self.end[goals]
            found = Iterated(*self._both_ways, right, right, goals)
            z = found.z.T
            return z, ~found.hopeless & (np.where(needed, z, 1.0).min(axis=1) > SMALLEST), found
        if self.lu is None:
            return np.zeros(needed.shape), np.zeros(goals.size, dtype=bool), None
        unit = np.zeros((needed.shape[1], goals.size), order="F")
        unit[goals, at] = 1.0
        with np.errstate(all="ignore"):
            z = self.lu.solve(unit).T
            z *= (self.end[goals] / z[at, goals])[:, None]
            reached = np.where(needed, z, 1.0).min(axis=1) > SMALLEST
            return z, reached & np.isfinite(z).all(axis=1) & (z.min(axis=1) >= 0.0), None

    def _flows(self, goals: Ints, z: Floats, rest: Floats, solved: Flags, found: Iterated | None) -> Floats:
        """y (G, S) of the goals that are `solved`: visits over z, from trips that begin in `rest` (G, S)."""
        begins = rest != 0
        if found is not None:
            visited = found.visits(np.ascontiguousarray(np.where(solved[:, None], rest, 0.0).T)).T
            return np.divide(visited, z, out=np.zeros_like(z), where=z > 0)
        right = np.where(begins, rest / np.where(begins, z, 1.0), 0.0)
        out, g = self._at(goals, self.moves.source)
        np.subtract.at(right, (g, self.moves.target[out]), (rest.sum(axis=1) / self.end[goals])[g] * self.gain[out])
        return np.asarray(self.lu.solve(np.asfortranarray(np.where(solved[:, None], right, 0.0).T), trans="T").T)

    def flows(self, goals: Ints, sources: Floats, iterate: bool = False) -> GoalFlows:
        """Values and flows towards each goal from its source (G, S), and which of them the shared system serves.

        iterate : as for `values`
        """
        at, begins = np.arange(goals.size), sources != 0
        z, solved, found = self._solved(goals, begins, iterate=iterate)
        if not solved.any():
            return GoalFlows(solved, z, z, z)
        with np.errstate(all="ignore"):
            least = np.where((sources >= 0.0).all(axis=1), 0.0, -np.inf)  # visits at least
            rest = np.array(sources)
            rest[at, goals] = 0.0  # trips that begin in their goal make no step
            arrivals, mass = rest.sum(axis=1), np.abs(rest).sum(axis=1)
            y = self._flows(goals, z, rest, solved, found)
            y[at, goals] = 0.0
            visited = y * z
            into, g = self._at(goals, self.moves.target)
            came = np.bincount(g, self.gain[into] * y[g, self.moves.source[into]], minlength=goals.size)
            solved &= np.isfinite(visited).all(axis=1) & (visited.min(axis=1) >= least - 1e-9)
            solved &= np.abs(self.end[goals] * came - arrivals) <= 1e-10 * np.maximum(mass, 1e-300)
        visited[at, goals] = sources.sum(axis=1)
        return GoalFlows(solved, z, y, np.maximum(visited, least[:, None]))

    def add(self, found: GoalFlows, sources: Floats, states: Floats, flows: Floats) -> float:
        """Add the goals that the shared system serves to `states` and `flows`; returns Σ source · V."""
        served, own = found.solved, sources[found.solved]
        y, z = (np.ascontiguousarray(table[served]) for table in (found.y, found.z))
        value = float(np.sum(np.where(own != 0, own * np.log(np.where(z > 0, z, 1.0)), 0.0)))
        states += found.visited[served].sum(axis=0)
        path_flows(self.moves.source, self.moves.target, self.gain, y, z, flows)
        return value


def _is_m_matrix(lu: Any) -> bool:
    """Whether the spectral radius of M is below one, well clear of it: then no step of the solves cancels digits.

    If only the moves out of the goals themselves push it to one or above, each goal is still fine on its own.
    """
    return bool(np.array_equal(lu.perm_r, lu.perm_c) and lu.U.diagonal().min() > 1e-6)
