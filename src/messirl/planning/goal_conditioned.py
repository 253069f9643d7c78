"""Route choice: trajectories that each end in their own goal, and one model for all goals (recursive logit).

Where transitions are deterministic and γ = 1 (see recursive_logit.py for M), x_g = (I − M)⁻¹ e_g comes from one
factorisation for all goals g. Rows other than g of (I − M) x_g vanish, so z_g = ζ_g x_g / x_g(g) whether or not the
goal has transitions of its own. The expected visits are D_g = y_g z_g with (I − M)ᵀ y_g = m_g / z_g − (n_g/ζ_g) M[g,
:]ᵀ, because all of the source m_g, n_g in sum, ends in g once. Where the factors would fill in, blocks of goals are
solved by iteration (iterative_paths.py), each without its own row of M. Goals whose z leaves the range of doubles, and
all goals of other problems, are solved one by one.
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
from messirl.planning.iterative_paths import IterativeSolution, NotCertified, Rows, as_csr
from messirl.planning.kernels.graph import path_flows
from messirl.planning.multithreading import MOST, run_on_threads
from messirl.planning.reachability import Arcs, reach, reachable
from messirl.planning.recursive_logit import PathModel, SystemAssembly, arcs_by_state, connections_fill_in, m_matrix_lu
from messirl.planning.solution import Expectation, NoFiniteValue, Visits
from messirl.planning.solve_counter import counted

SMALLEST = 1e-250  # z below this at a start: solve the goal on its own
KEPT = 1_000_000  # transitions of separately solved goals whose models are cached
FEW = 16  # goals up to which the elimination order is reused: for more, permuting right-hand sides costs more
CHUNK = 16  # goals solved at once: more do not fit the processor's cache, and a solve then takes three times as long
ITERATED = 32  # goals per block solved by iteration
HELD = 4_000_000  # entries of goal × state tables that all threads may hold in total

T = TypeVar("T")


@dataclass(frozen=True)
class GoalGroups:
    """Distinct goals (G,), weights of the start states of their trajectories (G, S), and all reachable states (S,)."""

    goals: Ints
    starts: sp.csr_array
    within: Flags


def group_by_goal(mdp: MDP, first: Ints, goals: Ints, weights: Floats) -> GoalGroups:
    """Group trajectories by goal."""
    distinct, column = np.unique(goals, return_inverse=True)
    shape = (distinct.size, mdp.n_states)
    starts = sp.csr_array(sp.coo_array((weights, (column, first)), shape=shape))
    return GoalGroups(distinct, starts, reachable(mdp, np.bincount(first, weights, mdp.n_states).astype(np.float64)))


class GoalsModel:
    """Values and visits towards many goals.

    goals : (G,) distinct; within : (S,) the states that trajectories can reach
    kind : the model of a single goal
    starts : (G, S) not zero where trajectories to each goal begin; None: anywhere within
    """

    def __init__(
        self, mdp: MDP, goals: Ints, within: Flags, kind: type[StationaryModel], starts: sp.csr_array | None = None
    ) -> None:
        self.mdp, self.goals, self.within, self.kind, self.starts = mdp, goals, within, kind, starts
        self.shared = kind is PathModel  # one system for all
        self._cached: dict[int, StationaryModel] = {}
        self._met: dict[int, Flags] = {}

    def model_of_goal(self, goal: int) -> StationaryModel:
        """Return the model of one goal; it is cached where it warm-starts, and otherwise while memory allows."""
        found = self._cached.get(goal)
        if found is None:
            found = self.kind(self.mdp, goal, self._within(goal))
            if not self.shared or len(self._cached) * self.mdp.transitions.nnz < KEPT:
                self._cached[goal] = found
        return found

    def _within(self, goal: int) -> Flags:
        """Return the states that trajectories to this goal can reach; with γ = 1 those beyond it may have no value."""
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
            live |= self.model_of_goal(goal).live
        return live

    def uniform_start(self) -> sp.csr_array:
        """Return starts (G, S), for each goal uniform over the reachable states that can still reach it."""
        assert self.starts is not None
        arcs, rows = self.reachable_transitions[0], []
        for number, goal in enumerate(self.goals.tolist()):
            before = arcs.source != goal
            begin, end = np.zeros(self.mdp.n_states, dtype=bool), np.arange(self.mdp.n_states) == goal
            begin[self.starts[[number]].indices] = True
            met = reach((arcs.source[before], arcs.target[before]), begin) & ~end
            if self.shared:
                met &= reach((arcs.target[before], arcs.source[before]), end)
            else:
                met &= self.model_of_goal(goal).structure.alive
            rows.append(sp.csr_array(float(self.starts[[number]].sum()) * met[None] / max(int(met.sum()), 1)))
        return sp.csr_array(sp.vstack(rows))

    @cached_property
    def iterates(self) -> bool:
        """True if factors of the shared system would fill in, so that it is solved by iteration."""
        return self.shared and connections_fill_in(self.mdp, self.within)

    @cached_property
    def reachable_transitions(self) -> tuple[Arcs, SystemAssembly]:
        """The transitions that trajectories can reach and their places in the shared system, cached."""
        kept: dict[bytes, tuple[Arcs, SystemAssembly]] = self.mdp.memo("meetings", dict)
        key = self.within.tobytes()
        if key not in kept:
            kept.clear()
            moves = arcs_by_state(self.mdp)
            moves = moves.where(self.within[moves.source])
            kept[key] = moves, SystemAssembly(moves.source, moves.target, self.mdp.n_states)
        return kept[key]

    @counted
    def solve(self, reward: Floats) -> GoalsSolution:
        """Return the solution at one reward, by one factorisation where that serves all goals."""
        return GoalsSolution(self, reward)


class GoalsSolution:
    """Solution of a model of many goals at one reward: values goal by goal, and visits summed over goals."""

    def __init__(self, model: GoalsModel, reward: Floats) -> None:
        self.model, self.reward = model, reward
        self.system = None
        if model.shared:
            few = model.goals.size <= FEW
            self.system = GoalSystem(model.mdp, reward, *model.reachable_transitions, iterate=model.iterates, few=few)

    def expectation(self, starts: Any, *, steps: bool = True) -> Expectation:
        """Return Σ starts · V over goals and states, and the visits from `starts` summed over goals.

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
                alone = self.model.model_of_goal(int(goals[g])).solve(self.reward).expectation(sources[g], steps=steps)
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
        """Yield goals, their rows of a table (G, S) and the result of the shared system, None without one.

        Chunks that are solved by iteration run on several threads.
        """
        chunks, system = self.chunks(table), self.system
        at_once = max(1, min(MOST, HELD // (ITERATED * self.model.mdp.n_states)))

        def iterated(chunk: tuple[Ints, Floats]) -> T | None:
            assert system is not None
            with contextlib.suppress(NotCertified):
                return asked(system, *chunk, True)
            return None

        while some := list(islice(chunks, at_once if self.model.iterates else 1)):
            found: list[T | None] = [None] * len(some)
            if system is not None:
                if system.iterates:
                    found = run_on_threads(iterated, some)
                    system.iterates = None not in found  # a slow iteration is not tried again
                found = [
                    asked(system, *chunk, False) if part is None else part
                    for chunk, part in zip(some, found, strict=True)
                ]
            yield from ((*chunk, part) for chunk, part in zip(some, found, strict=True))

    def values(self, needed: Any) -> Iterator[tuple[int, Floats]]:
        """Yield each goal and V (S,) towards it, valid where `needed` (G, S) is not zero."""
        for goals, sources, found in self._found(needed, GoalSystem.values):
            z, solved = (sources, np.zeros(goals.size, dtype=bool)) if found is None else found
            for g, goal in enumerate(goals.tolist()):
                if solved[g]:
                    with np.errstate(divide="ignore"):
                        yield goal, np.log(z[g])
                else:
                    yield goal, self.model.model_of_goal(goal).solve(self.reward).values

    def chunks(self, table: Any) -> Iterator[tuple[Ints, Floats]]:
        """Yield chunks of goals and their rows of a table (G, S)."""
        rows, n = sp.csr_array(table), self.model.goals.size
        parts = -(-n // (ITERATED if self.model.iterates else CHUNK))
        edges = np.linspace(0, n, parts + 1).round().astype(int).tolist()
        for lo, hi in pairwise(edges):
            yield self.model.goals[lo:hi], rows[lo:hi].toarray()


@dataclass(frozen=True)
class GoalFlows:
    """Results of the shared system for some goals: which of them it solved, (G,), and z, y and visits, (G, S) each."""

    solved: Flags
    z: Floats
    y: Floats
    visited: Floats


class GoalSystem:
    """I − M over the transitions that trajectories can reach, factorised once for all goals or solved by iteration."""

    def __init__(
        self, mdp: MDP, reward: Floats, moves: Arcs, places: SystemAssembly, *, iterate: bool = False, few: bool = False
    ) -> None:
        self.moves, self.places, self.few = moves, places, few
        with np.errstate(over="ignore"):
            self.gain = np.exp(self.moves.rewards(reward, mdp.log_reference))
            self.end = np.exp(reward) if reward.ndim == 1 else np.ones(mdp.n_states)
            self._finite = bool(np.isfinite(self.gain.sum()))
        self.iterates = iterate and self._finite

    @cached_property
    def lu(self) -> Any:
        """The factors of I − M; None where it is singular or leaves the range of doubles."""
        if not self._finite:
            return None
        try:
            lu = self.places.factors(self.gain) if self.few else m_matrix_lu(self.places.system(self.gain))
        except NoFiniteValue:  # singular with the transitions of every goal; without them it need not be
            return None
        return lu if _is_m_matrix(lu) else None

    @cached_property
    def _both_ways(self) -> tuple[Rows, Rows]:
        """M and its transpose, by rows."""
        matrix = self.places.matrix(self.gain)
        return as_csr(matrix), as_csr(sp.csr_array(matrix.T))

    def _at(self, goals: Ints, states: Ints) -> tuple[Ints, Ints]:
        """Return which of the `states`, left or entered by transitions, are goals, and the index of each goal."""
        number = np.full(self.end.size, -1)
        number[goals] = np.arange(goals.size)
        which = np.flatnonzero(number[states] >= 0)
        return which, number[states[which]]

    def values(self, goals: Ints, needed: Any, iterate: bool = False) -> tuple[Floats, Flags]:
        """Return z towards each goal, (G, S), and for which goals it is valid where `needed` (G, S) is not zero.

        iterate : by iteration, on any thread; raises Slow where that does not converge soon
        """
        z, solved, _ = self._solved(goals, needed != 0, iterate=iterate)
        return z, solved

    def _solved(self, goals: Ints, needed: Flags, *, iterate: bool) -> tuple[Floats, Flags, IterativeSolution | None]:
        """Return `values` and the iteration that found them, or None after a factorisation."""
        at = np.arange(goals.size)
        if iterate:
            right = np.zeros((needed.shape[1], goals.size))
            right[goals, at] = self.end[goals]
            found = IterativeSolution(*self._both_ways, right, right, goals)
            z = found.z.T
            return z, ~found.diverges & (np.where(needed, z, 1.0).min(axis=1) > SMALLEST), found
        if self.lu is None:
            return np.zeros(needed.shape), np.zeros(goals.size, dtype=bool), None
        unit = np.zeros((needed.shape[1], goals.size), order="F")
        unit[goals, at] = 1.0
        with np.errstate(all="ignore"):
            z = self.lu.solve(unit).T
            z *= (self.end[goals] / z[at, goals])[:, None]
            reached = np.where(needed, z, 1.0).min(axis=1) > SMALLEST
            return z, reached & np.isfinite(z).all(axis=1) & (z.min(axis=1) >= 0.0), None

    def _flows(self, goals: Ints, z: Floats, rest: Floats, solved: Flags, found: IterativeSolution | None) -> Floats:
        """Return y (G, S), visits over z, of the goals that are `solved`, from the source `rest` (G, S)."""
        begins = rest != 0
        if found is not None:
            visited = found.visits(np.ascontiguousarray(np.where(solved[:, None], rest, 0.0).T)).T
            return np.divide(visited, z, out=np.zeros_like(z), where=z > 0)
        right = np.where(begins, rest / np.where(begins, z, 1.0), 0.0)
        out, g = self._at(goals, self.moves.source)
        np.subtract.at(right, (g, self.moves.target[out]), (rest.sum(axis=1) / self.end[goals])[g] * self.gain[out])
        return np.asarray(self.lu.solve(np.asfortranarray(np.where(solved[:, None], right, 0.0).T), trans="T").T)

    def flows(self, goals: Ints, sources: Floats, iterate: bool = False) -> GoalFlows:
        """Return values and flows towards each goal from its source (G, S), and which goals the shared system solved.

        iterate : as for `values`
        """
        at, begins = np.arange(goals.size), sources != 0
        z, solved, found = self._solved(goals, begins, iterate=iterate)
        if not solved.any():
            return GoalFlows(solved, z, z, z)
        with np.errstate(all="ignore"):
            least = np.where((sources >= 0.0).all(axis=1), 0.0, -np.inf)  # lower bound on visits
            rest = np.array(sources)
            rest[at, goals] = 0.0  # trajectories that start in their goal make no step
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
        """Add the goals that the shared system solved to `states` and `flows`, and return their Σ source · V."""
        served, own = found.solved, sources[found.solved]
        y, z = (np.ascontiguousarray(table[served]) for table in (found.y, found.z))
        value = float(np.sum(np.where(own != 0, own * np.log(np.where(z > 0, z, 1.0)), 0.0)))
        states += found.visited[served].sum(axis=0)
        path_flows(self.moves.source, self.moves.target, self.gain, y, z, flows)
        return value


def _is_m_matrix(lu: Any) -> bool:
    """Return whether the spectral radius of M is well below one, so that no step of the solves cancels digits.

    If only the transitions out of the goals push it to one or above, each goal can still be solved on its own.
    """
    return bool(np.array_equal(lu.perm_r, lu.perm_c) and lu.U.diagonal().min() > 1e-6)
