"""Recursive logit: with deterministic transitions, γ = 1 and no horizon the values solve a sparse linear system.

With z = exp V, and action a in s leading to s',

    z(s) = Σ_a exp(r(s,a)) z(s') = (M z)(s),     z(end) = exp(r(end))        (1 with state-action rewards)

Towards one goal, or all terminal states, it is solved for exp(V − W), where W is the hard-max value. All coefficients
are at most 1 and all unknowns at least 1, so nothing under- or overflows, however far the end. It is solved by a sparse
LU factorisation or, where the factors would fill in, by iteration (iterative_paths.py). Many goals share one system:
goal_conditioned.py.
"""

from __future__ import annotations

import contextlib
import warnings
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.infinite_horizon import StationaryModel
from messirl.planning.iterative_paths import IterativeSolution, NotCertified, as_csr, fills_in
from messirl.planning.kernels.graph import best_paths
from messirl.planning.memory_layout import layout_of
from messirl.planning.reachability import Arcs, Structure, arcs_of
from messirl.planning.solution import NoFiniteValue, Solution, Visits
from messirl.planning.solve_counter import counted

PANEL = 2  # SuperLU's panel size: on sparse factors its default of twenty takes half as long again


def arcs_by_state(mdp: MDP) -> Arcs:
    """Return every transition of a deterministic problem, cached."""
    return mdp.memo("arcs", lambda: arcs_of(mdp))


class PathModel(StationaryModel):
    """Recursive logit towards one goal or the terminal states: values (S,) and a policy (S, A)."""

    @counted
    def solve(self, reward: Floats) -> Solution:
        """Return soft values and the policy, by one factorisation or by iteration."""
        return PathSolution(self.mdp, reward, self.path_structure, iterate=self.iterates)

    @cached_property
    def path_structure(self) -> PathStructure:
        """The transitions that may be made, and their places in the system."""
        if self.goal is None and self.within is None:
            return self.mdp.memo("ways", lambda: PathStructure(self.mdp, self.structure))
        return PathStructure(self.mdp, self.structure)

    @cached_property
    def iterates(self) -> bool:
        """True if factors over the transitions between states that do not end would fill in."""
        return connections_fill_in(self.mdp, self.structure.alive & ~self.structure.ends)


class PathStructure:
    """Sparsity structure of the system, the same for all rewards: allowed transitions, and the place of each."""

    def __init__(self, mdp: MDP, structure: Structure) -> None:
        self.ends, every = structure.ends, arcs_by_state(mdp)
        self.arcs = every.where(structure.live[every.source, every.action])
        self.first = np.searchsorted(self.arcs.source, np.arange(mdp.n_states + 1))
        self.inner = np.flatnonzero(structure.alive & ~structure.ends)
        number = np.full(mdp.n_states, -1)
        number[self.inner] = np.arange(self.inner.size)
        self.onwards = ~structure.ends[self.arcs.target]  # to a state that does not end
        self.source, target = number[self.arcs.source], number[self.arcs.target]
        self.between = SystemAssembly(self.source[self.onwards], target[self.onwards], self.inner.size)


class SystemAssembly:
    """Assembly of I − M by columns, where M (n, n) sums the gains of transitions: places once, entries per reward."""

    def __init__(self, source: Ints, target: Ints, n: int) -> None:
        self.shape, self._moves = (n, n), (source, target)
        taken, slot = np.unique(np.concatenate([np.arange(n) * (n + 1), target * n + source]), return_inverse=True)
        self._diagonal, self._slot = slot[:n], slot[n:]
        self._indices = (taken % n).astype(np.int32)
        self._indptr = np.searchsorted(taken, np.arange(n + 1) * n).astype(np.int32)

    def system(self, gain: Floats) -> sp.csc_array:
        """Return I − M of these gains, one per transition."""
        data = -_summed(self._slot, gain, self._indices.size)
        data[self._diagonal] += 1.0
        return sp.csc_array((data, self._indices, self._indptr), shape=self.shape)

    @cached_property
    def _ranked(self) -> tuple[Ints, SystemAssembly]:
        """The rank of every state in a fill-reducing order, and the system in that order."""
        source, target = self._moves
        often = max(int(np.bincount(source, minlength=1).max()), 1)
        rank = m_matrix_lu(self.system(np.full(source.size, 0.5 / often))).perm_c
        return rank, SystemAssembly(rank[source], rank[target], self.shape[0])

    def factors(self, gain: Floats) -> OrderedFactors:
        """Return the factors of I − M of these gains, in a fill-reducing order that is found once."""
        rank, places = self._ranked
        return OrderedFactors(m_matrix_lu(places.system(gain), "NATURAL", 1), rank)

    def matrix(self, gain: Floats) -> sp.csr_array:
        """Return M of these gains, by rows."""
        return sp.csr_array(sp.coo_array((gain, self._moves), shape=self.shape))


def connections_fill_in(mdp: MDP, within: Flags) -> bool:
    """Return whether factors over the transitions among the states `within` (S,) would fill in; usually cached."""
    if not within.any():
        return False

    def build() -> bool:
        moves = arcs_by_state(mdp)
        inner = moves.where(within[moves.source] & within[moves.target])
        number = np.cumsum(within) - 1
        ends = (number[inner.source], number[inner.target])
        size = int(within.sum())
        return fills_in(sp.csr_array(sp.coo_array((np.ones(inner.source.size), ends), shape=(size, size))))

    # All goals have the same answer, except where only few states can be reached.
    return mdp.memo("fills in", build) if 2 * int(within.sum()) > within.size else build()


class PathSolution(Solution):
    """Values, policy and visits from one linear system, factorised or, where that is cheaper, solved by iteration."""

    def __init__(self, mdp: MDP, reward: Floats, ways: PathStructure, *, iterate: bool = False) -> None:
        self.path_structure, self.arcs, self.inner = ways, ways.arcs, ways.inner
        gains = self.arcs.rewards(reward, mdp.log_reference)
        potential = np.where(ways.ends, reward if reward.ndim == 1 else 0.0, -np.inf)
        if not best_paths(ways.first, self.arcs.target, gains, potential):
            raise NoFiniteValue
        self.gain = np.exp(gains + potential[self.arcs.target] - potential[self.arcs.source])
        arriving = _summed(ways.source, np.where(ways.onwards, 0.0, self.gain), self.inner.size)
        self.lift = np.ones(mdp.n_states)
        self._iterated = self._iterate(arriving[:, None]) if iterate and self.inner.size else None
        if self._iterated is not None:
            self.lift[self.inner] = self._iterated.z[:, 0]
        elif self.inner.size:
            self.lift[self.inner] = self._lu.solve(arriving)
        if not (np.isfinite(self.lift).all() and self.lift.min() > 1.0 - 1e-6):  # V ≥ W, or there is no V
            raise NoFiniteValue
        super().__init__(mdp, np.asarray(potential + np.log(self.lift)))

    def _iterate(self, arriving: Floats) -> IterativeSolution | None:
        """Return the solution by iteration, or None if it finds no certificate."""
        between = self.path_structure.between.matrix(self.gain[self.path_structure.onwards])
        try:
            found = IterativeSolution(
                as_csr(between), as_csr(sp.csr_array(between.T)), arriving, np.ones_like(arriving)
            )
        except NotCertified:
            return None
        if found.diverges.any():
            raise NoFiniteValue
        return found

    @cached_property
    def _lu(self) -> Any:
        return self.path_structure.between.factors(self.gain[self.path_structure.onwards])

    @cached_property
    def policy(self) -> Floats:
        """π (A, S padded)."""
        policy = np.zeros((self.mdp.n_actions, layout_of(self.mdp).padded))
        share = self.gain * self.lift[self.arcs.target] / self.lift[self.arcs.source]
        policy[self.arcs.action, self.arcs.source] = share
        return np.asarray(policy / np.maximum(policy.sum(axis=0), np.finfo(float).tiny))

    @property
    def factors(self) -> PolicySystem | None:
        """I − P of the policy's chain, by the existing factors; None where the system was solved by iteration."""
        return None if self._iterated is not None or not self.inner.size else PolicySystem(self)

    def visits(self, source: Floats, *, steps: bool = True) -> Visits:
        """Return expected visits from a source (S,), always with those of (state, action) pairs."""
        y = np.zeros(self.mdp.n_states)
        if self.inner.size:
            y[self.inner] = self._inner_visits(source[self.inner]) / self.lift[self.inner]
        flow = y[self.arcs.source] * self.gain * self.lift[self.arcs.target]
        states = y * self.lift
        entered = np.bincount(self.arcs.target, weights=flow, minlength=self.mdp.n_states)
        states[self.path_structure.ends] = (source + entered)[self.path_structure.ends]
        pairs = np.zeros((self.mdp.n_states, self.mdp.n_actions))
        pairs[self.arcs.source, self.arcs.action] = flow
        return Visits(states, pairs)

    def _inner_visits(self, source: Floats) -> Floats:
        """Return visits of the states that do not end, from a source there."""
        if self._iterated is not None:
            with contextlib.suppress(NotCertified):
                return self._iterated.visits(source[:, None])[:, 0]
        lift = self.lift[self.inner]
        return np.asarray(self._lu.solve(source / lift, trans="T") * lift)


class PolicySystem:
    """I − P with `solve(b, trans)`, P the policy's chain: D (I − P) D⁻¹ = I − M, with D = diag(z) in units of W."""

    def __init__(self, solution: PathSolution) -> None:
        self._lu, self._inner, self._lift = solution._lu, solution.inner, solution.lift[solution.inner]
        arcs, last = solution.arcs, ~solution.path_structure.onwards
        share = (solution.gain * solution.lift[arcs.target] / solution.lift[arcs.source])[last]
        shape = (solution.mdp.n_states,) * 2
        self._to_ends = sp.csr_array(sp.coo_array((share, (arcs.source[last], arcs.target[last])), shape=shape))

    def solve(self, b: Floats, trans: str = "N") -> Floats:
        """Return x with (I − P) x = b, or with its transpose; b is (S,) or (S, k)."""
        x, lift = np.array(b, dtype=np.float64), self._lift.reshape(-1, *[1] * (b.ndim - 1))
        if trans == "T":
            x[self._inner] = self._lu.solve(x[self._inner] / lift, trans="T") * lift
            own = np.zeros_like(x)
            own[self._inner] = x[self._inner]
            return np.asarray(x + self._to_ends.T @ own)
        x[self._inner] = self._lu.solve((b + self._to_ends @ b)[self._inner] * lift) / lift
        return x


def _summed(place: Ints, numbers: Floats, n: int) -> Floats:
    """Return the sum of the numbers at each of n places; of no numbers bincount would return integers."""
    return np.bincount(place, weights=numbers, minlength=n).astype(np.float64, copy=False)


def m_matrix_lu(matrix: sp.csc_array, order: str = "MMD_AT_PLUS_A", panel: int = PANEL) -> Any:
    """Return the LU factors with diagonal pivots: of an M-matrix they add numbers of one sign only, without loss."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return splu(matrix, order, 0.0, panel_size=panel, options={"SymmetricMode": True})
        except (RuntimeError, Warning) as error:
            raise NoFiniteValue from error


class OrderedFactors:
    """Factors of a permuted matrix, with solves in its original order.

    rank : (n,) the place of every row in the order of the factors
    """

    def __init__(self, lu: Any, rank: Ints) -> None:
        self._lu, self._rank, self._order = lu, rank, np.argsort(rank)
        self.perm_r, self.perm_c = lu.perm_r, lu.perm_c

    @property
    def U(self) -> Any:  # noqa: N802
        """The upper factor, in the order of the factors."""
        return self._lu.U

    def solve(self, right: Floats, trans: str = "N") -> Floats:
        """Return x with A x = b, or Aᵀ x = b; b is (n,) or (n, k)."""
        return np.asarray(self._lu.solve(right[self._order], trans)[self._rank])
