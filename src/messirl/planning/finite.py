"""Finite horizon, causal entropy: one policy per step.

    V_{H−1}(s) = r(s)                (0 with state-action rewards)
    V_t(s) = log Σ_a exp(r(s,a) + γ Σ_s' p(s'|s,a) V_{t+1}(s')),     π_t(a|s) = exp(Q_t(s,a) − V_t(s))

A terminal state keeps V_t = r(s): it counts once, on entry.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.planning.arguments import check_allowed
from messirl.planning.kernels import forward, hard_sweep, soft_backward
from messirl.planning.layout import NONE, Terms, layout_of, terms_of, usable_actions
from messirl.planning.solution import Solution, Visits
from messirl.planning.structure import lifespan
from messirl.problem.mdp import MDP

ROW_TOLERANCE = 1e-6


class FiniteModel:
    """Values (H, S) and policies (H − 1, S, A) of a problem with a horizon."""

    def __init__(self, mdp: MDP) -> None:
        assert mdp.horizon is not None
        self.mdp, self.horizon = mdp, mdp.horizon

    def solve(self, reward: Floats) -> Solution:
        """Soft values and policies, from the last step to the first."""
        values, policy = self._tables(reward)
        for steps, terms, fixed, kept in self._stages(reward, self.mdp.log_reference):
            model = (terms.state, terms.action, self.mdp.discount, fixed, kept)
            ahead = values[steps.start : steps.stop + 1]
            soft_backward(*layout_of(self.mdp).dynamics, *model, ahead, policy[steps.start : steps.stop])
        return self._with_dead_ends(values, policy)

    def hard(self, reward: Floats) -> Solution:
        """Hard-max values and one-hot policies."""
        mdp, layout = self.mdp, layout_of(self.mdp)
        values, policy = self._tables(reward)
        policy[:] = 0.0
        choice = np.empty(layout.padded, dtype=np.int64)
        for steps, terms, fixed, kept in self._stages(reward):
            for t in reversed(steps):
                hard_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values[t + 1], values[t], choice)
                values[t, fixed] = kept
                policy[t, choice, np.arange(layout.padded)] = 1.0
                policy[t, :, fixed] = 0.0
        return self._with_dead_ends(values, policy)

    def follow(self, policy: Floats, start: Floats, *, steps: bool) -> Visits:
        """Expected visits of a stored policy that is given from outside."""
        if not usable_actions(self.mdp).all():
            check_allowed(self.mdp, layout_of(self.mdp).state_major(policy), self.mdp.terminal)
        return FiniteSolution(self.mdp, NONE, policy).visits(start, steps=steps)

    @property
    def live(self) -> Flags:
        """The actions that the model may take at one step or another, (S, A)."""
        return self.mdp.allowed

    def usable(self, states: Ints, step: Ints) -> Flags:
        """Which actions the model may take in these states at these steps, (n, A)."""
        spans = lifespan(self.mdp)
        if spans is None:
            return np.ones((states.size, self.mdp.n_actions), dtype=bool)
        return np.asarray(spans[1][states] >= (self.horizon - 2 - step)[:, None])

    def _tables(self, reward: Floats) -> tuple[Floats, Floats]:
        """Values (H, S padded), of which the last are known, and room for policies (H − 1, A, S padded)."""
        mdp, layout = self.mdp, layout_of(self.mdp)
        values = np.empty((self.horizon, layout.padded))
        values[-1] = layout.pad(reward if reward.ndim == 1 else np.zeros(mdp.n_states))
        return values, np.empty((self.horizon - 1, mdp.n_actions, layout.padded))

    def _stages(self, reward: Floats, base: Floats | None = None) -> Iterator[tuple[range, Terms, Ints, Floats]]:
        """Steps with their terms, fixed states and the values of these, the last first.

        All steps at once or, where dead ends are to be avoided, one by one.
        """
        mdp, layout, spans = self.mdp, layout_of(self.mdp), lifespan(self.mdp)
        if spans is None:
            terms, fixed = terms_of(layout, reward, usable_actions(mdp), base), np.flatnonzero(mdp.terminal)
            yield range(self.horizon - 1), terms, fixed, terms.end[fixed]
            return
        life, row_life = spans
        for left in range(1, self.horizon):  # choices still to be made
            t, lost = self.horizon - 1 - left, life < left
            terms = terms_of(layout, reward, (row_life >= left - 1) | mdp.terminal[:, None], base)
            fixed = np.flatnonzero(mdp.terminal | lost)
            yield range(t, t + 1), terms, fixed, np.where(lost, 0.0, terms.end)[fixed]

    def _with_dead_ends(self, values: Floats, policy: Floats) -> Solution:
        values, spans = values[:, : self.mdp.n_states], lifespan(self.mdp)
        if spans is not None:
            left = np.arange(len(values) - 1, -1, -1)
            values = np.where(spans[0][None, :] < left[:, None], -np.inf, values)
        return FiniteSolution(self.mdp, values, policy)


class FiniteSolution(Solution):
    """Values (H, S) and stored policies (H − 1, A, S padded)."""

    def visits(self, source: Floats, *, steps: bool = True) -> Visits:
        """Expected visits from a source (S,) or (H, S), under the MDP's own dynamics (Eq. 8)."""
        mdp, layout = self.mdp, layout_of(self.mdp)
        total = np.zeros(layout.padded)
        by_action = np.zeros((mdp.n_actions, layout.padded)) if steps else NONE
        moving = layout.pad(np.asarray(mdp.allowed.any(axis=1)))
        begin = layout.pad(np.atleast_2d(source))
        worst = forward(*layout.dynamics, self.policy, moving, begin, mdp.discount, total, by_action)
        if not worst <= ROW_TOLERANCE:
            raise ValueError(
                "the policy is not one for this MDP: in every state that is reached its probabilities must be >= 0 and "
                "sum to 1 (to 0 where an episode ends), and states that cannot avoid a dead end must not be reached"
            )
        return Visits(total[: mdp.n_states], by_action[:, : mdp.n_states].T if steps else None)
