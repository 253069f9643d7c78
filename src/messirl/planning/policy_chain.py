"""The Markov chain P_π(s, s') = Σ_a π(a|s) p(s'|s,a) that a policy induces on an MDP.

Its transition matrix, its linear systems for values and for visits, and the Gram matrix of what its choices collect.
`Chain` works on the layout of the kernels, the functions on policies (S, A).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.backups import merged
from messirl.planning.iterative_paths import as_csr, fills_in
from messirl.planning.kernels.bellman import B, bicgstab, contract, reached
from messirl.planning.kernels.multi_goal import solve_columns, times
from messirl.planning.memory_layout import layout_of
from messirl.planning.reachability import reach
from messirl.planning.solution import NoFiniteValue

MAX_KRYLOV = 2000
MAX_SIGNED = 200  # iterations from a warm start that may no longer be close
PASSES = 6
MANY = 100_000  # number of states above which factors take gigabytes
MAX_SWEEPS = 20_000
UNSCALED: Floats = np.zeros(0)
UNSURE = 1e-3  # a solution whose rounding error, relative to its right-hand side, is larger is rejected
LOSS = 1e-12  # probability missing from a row of a chain below which it is rounding
EPS = float(np.finfo(np.float64).eps)


def choices(mdp: MDP, rows: Floats, states: Ints | None = None) -> sp.csr_array:
    """Return π as a matrix (n, S·A): row i has the probabilities rows[i] of the actions in states[i].

    states : None for all states in their order
    """
    first = np.arange(len(rows)) if states is None else states
    columns = (first[:, None] * mdp.n_actions + np.arange(mdp.n_actions)).ravel()
    pointer = np.arange(0, rows.size + 1, mdp.n_actions)
    return sp.csr_array((rows.ravel(), columns, pointer), shape=(len(rows), mdp.transitions.shape[0]))


def chain_matrix(mdp: MDP, policy: Floats) -> sp.csr_array:
    """Return P_π (S, S) of a policy (S, A), or of any action weights; states without any have empty rows."""
    matrix = sp.csr_array(choices(mdp, policy) @ mdp.transitions)
    matrix.eliminate_zeros()
    return matrix


def factorised(chain: sp.csr_array, discount: float) -> Any:
    """Return I − γ P with `solve(b, trans)`, for values and, transposed, for visits: sparse LU unless it fills in."""
    return _WithoutFactors(chain, discount) if fills_in(chain) else _factors(chain, discount)


def _factors(chain: sp.csr_array, discount: float) -> Any:
    try:
        return splu(sp.csc_array(sp.eye_array(chain.shape[0]) - discount * chain))
    except RuntimeError as error:  # exactly singular
        raise NoFiniteValue from error


class _WithoutFactors:
    """I − γ P solved by iteration, all columns of b at once, or by factors where that does not reach rounding."""

    def __init__(self, chain: sp.csr_array, discount: float) -> None:
        self.chain, self.discount = chain, discount

    def solve(self, b: Floats, trans: str = "N") -> Floats:
        """Return x with (I − γ P) x = b, or with its transpose; b is (S,) or (S, k).

        Raises NoFiniteValue where the system is singular.
        """
        right = np.ascontiguousarray(b.reshape(len(b), -1), dtype=np.float64)
        x = self._found(right, sp.csr_array(self.chain.T) if trans == "T" else self.chain) if self._regular else None
        return np.asarray(self._factors.solve(np.asarray(b), trans) if x is None else x.reshape(b.shape))

    def _found(self, right: Floats, chain: sp.csr_array) -> Floats | None:
        rows, ones = as_csr(self.discount * chain), np.ones_like(right)
        x, residual, before = np.zeros_like(right), right, np.full(right.shape[1], np.inf)
        for _ in range(PASSES):  # each pass starts from the true residual: rounding does not build up
            worst = np.abs(residual).max(axis=0)
            least = 64.0 * EPS * np.abs(x).max(axis=0)
            if (worst <= least).all():
                sure = least <= UNSURE * np.abs(right).max(axis=0)  # a larger solution may consist of rounding alone
                return x if sure.all() else None
            if not ((worst <= least) | (worst < 0.5 * before)).all():
                return None
            before = worst
            x = x + solve_columns(*rows, ones, ones, residual, np.maximum(1e-10 * worst, 0.5 * least), MAX_KRYLOV)
            residual = right - x + times(*rows, x)
        return None

    @cached_property
    def _regular(self) -> bool:
        """True where mass leaves the chain eventually from every state; otherwise the system is singular."""
        if self.discount < 1.0:
            return True
        source = np.repeat(np.arange(self.chain.shape[0]), np.diff(self.chain.indptr))
        loses = np.asarray(self.chain.sum(axis=1)).ravel() < 1.0 - LOSS
        return bool(reach((self.chain.indices, source), loses).all())

    @cached_property
    def _factors(self) -> Any:
        return _factors(self.chain, self.discount)


def feature_table(mdp: MDP) -> Floats:
    """Return the features as a dense (S, A, d), or (S, 1, d) for features of states."""
    dense = mdp.features.toarray() if sp.issparse(mdp.features) else mdp.features
    return np.asarray(dense.reshape(mdp.n_states, -1, mdp.n_features))


def collected(features: Floats, policy: Floats) -> Floats:
    """Return Σ_a π(a|s) f(s,a), (S, d), of a `feature_table`."""
    if features.shape[1] == 1:
        return np.asarray(policy.sum(axis=1, keepdims=True) * features[:, 0])
    return np.asarray(np.einsum("sa,sad->sd", policy, features))


def gram(mdp: MDP, features: Floats, ahead: Floats, here: Floats, weights: Floats) -> Floats:
    """Return Σ_{s,a} w(s,a) A_f A_fᵀ, (d, d), with A_f(s,a) = f(s,a) + γ Σ_s' p(s'|s,a) F'(s') − F(s).

    features is a `feature_table`; ahead F' and here F are (S, d), weights (S, A). The sum goes action by action, so
    nothing larger than (S, d) is stored.
    """
    moves = mdp.memo(
        "moves of each action", lambda: [mdp.transitions[a :: mdp.n_actions] for a in range(mdp.n_actions)]
    )
    total = np.zeros((mdp.n_features, mdp.n_features))
    for a, move in enumerate(moves):
        gap = features[:, a if features.shape[1] > 1 else 0] + mdp.discount * (move @ ahead) - here
        total += gap.T @ (weights[:, a, None] * gap)
    return total


class Chain:
    """P_π of a stored policy on the kernels' slots, with the linear systems of values and visits."""

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.layout = mdp, layout_of(mdp)
        self._weights = np.empty_like(self.layout.idx, dtype=np.float64)

    def follow(self, policy: Floats) -> Chain:
        """Set this to the chain of a policy (A, S padded), and return it."""
        merged(self.layout, policy, self._weights)
        return self

    @property
    def matrix(self) -> sp.csr_array:
        """P_π (S, S)."""
        n, layout, weights = self.mdp.n_states, self.layout, self._weights
        block = np.repeat(np.arange(layout.off.size - 1), np.diff(layout.off))
        source = block[:, None] * B + np.arange(B)
        keep = (weights != 0.0) & (source < n)
        return sp.csr_array(sp.coo_array((weights[keep], (source[keep], layout.idx[keep])), shape=(n, n)))

    def reach(self, start: Floats) -> Flags:
        """Return the states reachable from those where `start` > 0, (S,)."""
        seen = reached(self.layout.off, self.layout.idx, self._weights, np.flatnonzero(start > 0.0))
        return np.asarray(seen[: self.mdp.n_states])

    def solve(self, b: Floats, *, tolerance: float) -> Floats:
        """Return x with (I − γ P) x = b, both (S padded,), to a residual of `tolerance` or of rounding."""
        layout = self.layout
        if self.mdp.discount < 1.0:
            x = np.zeros(layout.padded)
            system = (*self._dynamics, UNSCALED, b, x)
            size = before = float(np.abs(b).max())
            for _ in range(PASSES):  # each pass starts from the true residual: rounding does not build up
                bicgstab(*system, max(tolerance, 1e-10 * before), MAX_KRYLOV)
                residual = bicgstab(*system, np.inf, 0)
                if residual <= max(tolerance, 64.0 * EPS * float(np.abs(x).max())):
                    return x
                if not residual < 0.5 * before:
                    break
                before = residual
            if self._sweeps_do(max(tolerance / max(size, np.finfo(float).tiny), 64.0 * EPS)):
                x[:] = 0.0
                residual = contract(*system, tolerance, MAX_SWEEPS)
                if residual <= max(tolerance, 64.0 * EPS * float(np.abs(x).max())):
                    return x
        return layout.pad(factorised(self.matrix, self.mdp.discount).solve(b[: self.mdp.n_states]))

    def visits(self, source: Floats, guess: Floats | None = None) -> Floats:
        """Return the expected visits ρ (S,), the forward pass (Eq. 8): (I − γ Pᵀ) ρ = source.

        guess : warm start, the visits that an earlier chain gave for the same source

        With γ < 1 and a source that is nowhere negative, the system is solved for y = ρ/m with m close to ρ: m⁻¹ Pᵀ m
        is the time-reversed chain, whose rows sum to about one again. There BiCGSTAB is as quick as for the values,
        while it fails on Pᵀ itself. Unreachable states start at zero and stay there, exactly.
        """
        b, positive = self.layout.pad(source), bool((source >= 0.0).all())
        if positive and not source.any():
            return np.zeros(self.mdp.n_states)
        if self.mdp.discount < 1.0 and positive:
            mean = float(source.sum()) / ((1.0 - self.mdp.discount) * self.mdp.n_states)
            visits = self.layout.pad(guess) if guess is not None else mean * self.layout.pad(self.reach(source))
            for _ in range(PASSES):
                visits, residual = self._scaled_visits(b, visits, visits + 1e-3 * mean)
                visits = np.maximum(visits, 0.0)
                if residual <= 1e-13:
                    return visits[: self.mdp.n_states]
                if not np.isfinite(residual):
                    break
            rounding = EPS / (1.0 - self.mdp.discount)  # error of the sum of all visits, relative to the source
            if self._sweeps_do(64.0 * rounding):
                visits, mass = np.zeros(self.layout.padded), float(source.sum())
                left = contract(*self._dynamics, np.ones_like(b), b, visits, 4.0 * rounding * mass, MAX_SWEEPS)
                if left <= 64.0 * rounding * mass:
                    return visits[: self.mdp.n_states]
        found: Floats = factorised(self.matrix, self.mdp.discount).solve(source, trans="T")
        least = 0.0 if positive else -np.inf
        return np.where(self.reach(np.abs(source)), np.maximum(found, least), 0.0)

    def signed_visits(self, source: Floats, guess: Floats, size: Floats) -> Floats | None:
        """Return the visits from a signed source by a warm start at `guess` (γ < 1); None if that does not converge.

        size : (S,) the unit of ρ, roughly the visits from its positive part plus those from its negative part
        """
        pad, least = self.layout.pad, 1e-3 * float(size.mean())
        visits, residual = self._scaled_visits(pad(source), pad(guess), pad(size) + least, MAX_SIGNED)
        return visits[: self.mdp.n_states] if residual <= 1e-13 else None

    def _sweeps_do(self, wanted: float) -> bool:
        """Return whether factors would be large and sweeps can reduce a residual to a share `wanted` (γ < 1)."""
        return self.mdp.n_states > MANY and self.mdp.discount**MAX_SWEEPS <= wanted

    @property
    def _dynamics(self) -> tuple[Any, ...]:
        """The first arguments of the kernels that loop over slots."""
        return self.layout.off, self.layout.idx, self._weights, self.mdp.discount

    def _scaled_visits(self, b: Floats, guess: Floats, scale: Floats, most: int = MAX_KRYLOV) -> tuple[Floats, float]:
        """Return ρ, solved for y = ρ/scale, all (S padded,), and the residual of y."""
        y, system = guess / scale, (*self._dynamics, scale, b / scale)
        bicgstab(*system, y, 1e-14, most)
        return scale * y, bicgstab(*system, y, np.inf, 0)
