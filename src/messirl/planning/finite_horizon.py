"""Finite horizon, causal entropy: one policy per step.

    V_{H−1}(s) = r(s)                (0 with state-action rewards)
    V_t(s) = log Σ_a exp(r(s,a) + γ Σ_s' p(s'|s,a) V_{t+1}(s')),     π_t(a|s) = exp(Q_t(s,a) − V_t(s))

A terminal state keeps V_t = r(s): it counts once, on entry.

Where the policies of all steps would not fit (`MEMORY`), checkpoints keep the values at every k-th step only, and the
steps between are recomputed in the forward pass: k = √(H / (A + 1)) takes the least memory, about 2 √(H (A + 1))
numbers per state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._memory_guard import check_memory
from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning._validation import check_allowed
from messirl.planning.backups import ForwardPass, backward
from messirl.planning.kernels.bellman import hard_sweep
from messirl.planning.memory_layout import NONE, Terms, aligned, layout_of, terms_of, usable_actions
from messirl.planning.reachability import lifespan
from messirl.planning.solution import CANNOT_START, Expectation, Solution, Visits
from messirl.planning.solve_counter import counted

ROW_TOLERANCE = 1e-6
MEMORY = 2**29  # bytes of policies that are stored; larger ones are recomputed from checkpoints


class FiniteModel:
    """Values (H, S) and policies (H − 1, S, A) of a problem with a horizon."""

    def __init__(self, mdp: MDP) -> None:
        assert mdp.horizon is not None
        self.mdp, self.horizon = mdp, mdp.horizon

    @counted
    def solve(self, reward: Floats) -> Solution:
        """Return soft values and policies, by a backward pass."""
        if 8 * (self.horizon - 1) * self.mdp.n_actions * layout_of(self.mdp).padded > MEMORY:
            return CheckpointedSolution(self, reward)
        values, policy = self._tables(reward)
        self.backward(reward, 0, values, policy)
        return self._with_dead_ends(values, policy)

    def backward(self, reward: Floats, first: int, values: Floats, policy: Floats) -> None:
        """Fill in values[:-1] (T, S padded) and policies (T, A, S padded), unless empty, of the steps from `first` on.

        Values of states that cannot avoid a dead end are arbitrary.
        """
        here = range(first, first + len(values) - 1)
        for steps, terms, fixed, kept in self._stages(reward, here, self.mdp.log_reference):
            lo, hi = steps.start - first, steps.stop - first
            backward(layout_of(self.mdp), terms, self.mdp.discount, fixed, kept, values[lo : hi + 1], policy[lo:hi])

    @counted
    def hard(self, reward: Floats) -> Solution:
        """Return hard-max values and one-hot policies."""
        mdp, layout = self.mdp, layout_of(self.mdp)
        values, policy = self._tables(reward)
        policy[:] = 0.0
        choice = np.empty(layout.padded, dtype=np.int64)
        for steps, terms, fixed, kept in self._stages(reward, range(self.horizon - 1)):
            for t in reversed(steps):
                hard_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values[t + 1], values[t], choice)
                values[t, fixed] = kept
                policy[t, choice, np.arange(layout.padded)] = 1.0
                policy[t, :, fixed] = 0.0
        return self._with_dead_ends(values, policy)

    def follow(self, policy: Floats, start: Floats, *, steps: bool) -> Visits:
        """Return expected visits of a stored policy that the caller gave."""
        if not usable_actions(self.mdp).all():
            check_allowed(self.mdp, layout_of(self.mdp).state_major(policy), self.mdp.terminal)
        return FiniteSolution(self.mdp, NONE, policy).visits(start, steps=steps)

    @property
    def live(self) -> Flags:
        """The actions that the model may take at some step, (S, A)."""
        every = np.arange(self.mdp.n_states)
        return self.usable(every, np.full(every.size, self.horizon - 2))  # the last choice has the least ahead

    def usable(self, states: Ints, step: Ints) -> Flags:
        """Return the mask of actions that the model may take in these states at these steps, (n, A)."""
        spans = lifespan(self.mdp)
        if spans is None:
            return self.mdp.allowed[states]
        return np.asarray(spans[1][states] >= (self.horizon - 2 - step)[:, None])

    def last_values(self, reward: Floats) -> Floats:
        """Return V of the last step, (S padded,)."""
        return layout_of(self.mdp).pad(reward if reward.ndim == 1 else np.zeros(self.mdp.n_states))

    def _tables(self, reward: Floats) -> tuple[Floats, Floats]:
        """Return values (H, S padded), the last step filled in, and an empty array of policies (H − 1, A, S padded)."""
        layout = layout_of(self.mdp)
        self._foresee(self.mdp.n_actions + 1)
        values = aligned(self.horizon, layout.padded)
        values[-1] = self.last_values(reward)
        return values, aligned(self.horizon - 1, self.mdp.n_actions, layout.padded)

    def _foresee(self, tables: int) -> None:
        """Raise a MemoryError if `tables` numbers per state and step do not fit."""
        check_memory(
            f"values or policies of all {self.horizon} steps, {self.mdp.n_states} states and {self.mdp.n_actions} "
            "actions",
            8.0 * self.horizon * tables * layout_of(self.mdp).padded,
            "about {share:.0%} of the horizon would fit. A fit needs less, since its policy_ is computed step by step; "
            "without a horizon and with a discount below 1 there is only one policy",
        )

    def _stages(
        self, reward: Floats, steps: range, base: Floats | None = None
    ) -> Iterator[tuple[range, Terms, Ints, Floats]]:
        """Yield the steps, from last to first, with their terms, their fixed states and the values of these.

        All steps at once or, where dead ends must be avoided, one by one.
        """
        mdp, layout, spans = self.mdp, layout_of(self.mdp), lifespan(self.mdp)
        if spans is None:
            terms, fixed = terms_of(layout, reward, usable_actions(mdp), base), np.flatnonzero(mdp.terminal)
            yield steps, terms, fixed, terms.end[fixed]
            return
        life, row_life = spans
        for t in reversed(steps):
            left = self.horizon - 1 - t  # choices still to be made
            lost = life < left
            terms = terms_of(layout, reward, (row_life >= left - 1) | mdp.terminal[:, None], base)
            fixed = np.flatnonzero(mdp.terminal | lost)
            yield range(t, t + 1), terms, fixed, np.where(lost, 0.0, terms.end)[fixed]

    def _with_dead_ends(self, values: Floats, policy: Floats) -> FiniteSolution:
        values = values[:, : self.mdp.n_states]
        if lifespan(self.mdp) is not None:
            values = np.where(
                self.lost(np.arange(self.horizon)[:, None], np.arange(self.mdp.n_states)), -np.inf, values
            )
        return FiniteSolution(self.mdp, values, policy)

    def lost(self, steps: Ints, states: Ints) -> Flags:
        """Return the mask of states, at these steps, that cannot avoid a dead end, so that V is −inf."""
        spans = lifespan(self.mdp)
        if spans is None:
            return np.zeros(np.broadcast(steps, states).shape, dtype=bool)
        return np.asarray(spans[0][states] < self.horizon - 1 - steps)


class FiniteSolution(Solution):
    """Values (H, S) and stored policies (H − 1, A, S padded)."""

    def visits(self, source: Any, *, steps: bool = True) -> Visits:
        """Return expected visits from a source (S,) or (H, S), dense or sparse, under the MDP's dynamics (Eq. 8)."""
        return self._walk(source, steps=steps)

    def expectation(self, start: Any, *, steps: bool = True) -> Expectation:
        """Return Σ start · V and the visits from `start`, (S,) or (H, S), dense or sparse."""
        if not sp.issparse(start):
            return super().expectation(start, steps=steps)
        places, mass = _entries(start)
        return Expectation(self._weighed(places, mass, self.at(places)), self.visits(start, steps=steps), self)

    def _weighed(self, places: Ints, mass: Floats, found: Floats) -> float:
        """Return Σ mass · V over some places; V must be finite there."""
        if not np.isfinite(found).all():
            raise ValueError(CANNOT_START.format(int(places[np.argmin(found)]) % self.mdp.n_states))
        return float(mass @ found)

    def _pieces(self) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield, piece by piece: the first step, values of its steps and of the one after, and stored policies."""
        yield 0, self.values, self.policy

    def _walk(self, source: Any, *, steps: bool, seen: Callable[[int, Floats], None] | None = None) -> Visits:
        """Run the forward pass; `seen` is called with the first step and the values of every piece."""
        mdp, layout, once = self.mdp, layout_of(self.mdp), source.ndim == 1
        begin = source if once else np.asarray(source[:1].toarray() if sp.issparse(source) else source[:1])[0]
        moving = mdp.memo("moving", lambda: layout.pad(np.asarray(mdp.allowed.any(axis=1))))
        walk = ForwardPass(layout, mdp.discount, moving, layout.pad(begin), once=once, steps=steps)
        for first, values, policy in self._pieces():
            if seen is not None:
                seen(first, values)
            walk.follow(policy, None if once else source[first + 1 : first + 1 + len(policy)])
        if not walk.worst <= ROW_TOLERANCE:
            raise ValueError(
                "the policy is not one for this MDP: in every reached state its probabilities must be >= 0 and sum to "
                "1 (to 0 where an episode ends). It must not reach states that cannot avoid a dead end"
            )
        return Visits(walk.total[: mdp.n_states], walk.by_action[:, : mdp.n_states].T if steps else None)


class CheckpointedSolution(FiniteSolution):
    """A solution with checkpoints: values are kept at every k-th step, and k steps at a time are recomputed."""

    def __init__(self, model: FiniteModel, reward: Floats) -> None:
        mdp, horizon, padded = model.mdp, model.horizon, layout_of(model.mdp).padded
        self.mdp, self._model, self._reward = mdp, model, reward
        self._length = int(np.ceil(np.sqrt(horizon / (mdp.n_actions + 1))))
        self._firsts = range(0, horizon - 1, self._length)
        self._ahead = np.empty((len(self._firsts), padded))  # V at the step after each piece
        self._ahead[-1] = model.last_values(reward)
        self._values = aligned(self._length + 1, padded)
        self._policies = aligned(self._length, mdp.n_actions, padded)
        self._held = -1  # the piece that they hold
        for piece in reversed(range(1, len(self._firsts))):
            self._ahead[piece - 1] = self._computed(piece, self._policies[:0])[0]

    def _computed(self, piece: int, policies: Floats) -> Floats:
        """Compute the values of a piece, and its policies (T, A, S padded) unless that array is empty."""
        first = self._firsts[piece]
        values = self._values[: min(self._length, self._model.horizon - 1 - first) + 1]
        values[-1] = self._ahead[piece]
        self._model.backward(self._reward, first, values, policies)
        return values

    def _piece(self, piece: int) -> tuple[Floats, Floats]:
        """Return values and policies of a piece, valid until the next call for another one."""
        size = min(self._length, self._model.horizon - 1 - self._firsts[piece])
        if piece != self._held:
            self._computed(piece, self._policies[:size])
            self._held = piece
        return self._values[: size + 1], self._policies[:size]

    def _pieces(self) -> Iterator[tuple[int, Floats, Floats]]:
        for piece, first in enumerate(self._firsts):
            yield first, *self._piece(piece)

    def step(self, t: int) -> Floats:
        """Return π_t (S, A)."""
        _, policies = self._piece(t // self._length)
        return np.ascontiguousarray(layout_of(self.mdp).state_major(policies[t % self._length]))

    @property
    def values(self) -> Floats:  # type: ignore[override]
        """V (H, S), all steps at once."""
        self._model._foresee(1)
        out = np.empty((self._model.horizon, self.mdp.n_states))
        for first, values, _ in self._pieces():
            out[first : first + len(values)] = values[:, : self.mdp.n_states]
        return self._model._with_dead_ends(out, NONE).values

    @property
    def policy(self) -> Floats:
        """π (H − 1, A, S padded), all steps at once."""
        self._model._foresee(self.mdp.n_actions)
        out = np.empty((self._model.horizon - 1, *self._policies.shape[1:]))
        for first, _, policies in self._pieces():
            out[first : first + len(policies)] = policies
        return out

    def at(self, places: Ints) -> Floats:
        """Return V at these places t·S + s."""
        out = np.empty(places.size)
        for first, values, _ in self._pieces():
            self._pick(places, first, values, out)
        return out

    def expectation(self, start: Any, *, steps: bool = True) -> Expectation:
        """Return Σ start · V and the visits from `start`, in one pass."""
        places, mass = _entries(start)
        found = np.empty(places.size)
        visits = self._walk(start, steps=steps, seen=lambda first, values: self._pick(places, first, values, found))
        return Expectation(self._weighed(places, mass, found), visits, self)

    def _pick(self, places: Ints, first: int, values: Floats, out: Floats) -> None:
        """Set `out` at the places that lie in this piece."""
        step, state = np.divmod(places, self.mdp.n_states)
        inside = (step >= first) & (step < first + len(values))
        step, state = step[inside], state[inside]
        out[inside] = np.where(self._model.lost(step, state), -np.inf, values[step - first, state])


def _entries(start: Any) -> tuple[Ints, Floats]:
    """Return the places t·S + s where a source (S,) or (H, S) is not zero, and its entries there."""
    if not sp.issparse(start):
        places = np.flatnonzero(start)
        return places, start.ravel()[places]
    row, column = start.nonzero()
    places = row.astype(np.int64) * start.shape[1] + column
    return places, np.asarray(start[row, column])
