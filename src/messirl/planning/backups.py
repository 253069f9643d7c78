"""Sweeps of the kernels over all states of a problem, in parallel parts where it is large (multithreading.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.planning.kernels.bellman import arrive, forward, mean_sweep, merge, push, soft_backward, soft_sweep
from messirl.planning.memory_layout import NONE, Layout, Terms
from messirl.planning.multithreading import run_in_parts

NOTHING: Floats = np.empty(0)


def soft_backup(layout: Layout, terms: Terms, discount: float, ahead: Floats, here: Floats, policy: Floats) -> None:
    """Set here ← r + log Σ exp(r + γ P ahead), (S padded,), and the policy (A, S padded), unless it is empty."""
    given = (*layout.dynamics, terms.state, terms.action, discount, ahead, here, policy)
    run_in_parts(layout.parts, lambda _, lo, hi: soft_sweep(lo, hi, *given))


def backward(
    layout: Layout, terms: Terms, discount: float, fixed: Ints, kept: Floats, values: Floats, policy: Floats
) -> None:
    """Run the backward pass: values[:-1] (T, S padded) from the last, and policies (T, A, S padded), unless empty.

    fixed : states that keep their values `kept` and have no policy
    """
    if len(layout.parts) == 1:
        given = (terms.state, terms.action, discount, fixed, kept)
        soft_backward(*layout.dynamics, *given, values, policy)
        return
    for t in reversed(range(len(values) - 1)):
        here = policy[t] if len(policy) else NONE
        soft_backup(layout, terms, discount, values[t + 1], values[t], here)
        values[t, fixed] = kept
        if len(policy):
            here[:, fixed] = 0.0


def mean_backup(
    layout: Layout,
    terms: tuple[Floats, Floats],
    discount: float,
    policy: Floats,
    ahead: Floats,
    here: Floats,
    gaps: Floats,
) -> tuple[float, float]:
    """Set here ← r + Σ π (r + γ P ahead), and the gaps (A, S padded); return the largest gap and largest value."""
    given = (*layout.dynamics, *terms, discount, policy, ahead, here, gaps)
    largest, size = zip(*run_in_parts(layout.parts, lambda _, lo, hi: mean_sweep(lo, hi, *given)), strict=True)
    return max(largest), max(size)


def merged(layout: Layout, policy: Floats, weights: Floats) -> None:
    """Set weights ← P_π on the slots, of a policy (A, S padded)."""
    run_in_parts(layout.parts, lambda _, lo, hi: merge(lo, hi, *layout.dynamics, policy, weights))


class ForwardPass:
    """Forward pass ρ_t = m_t + γ P_πᵀ ρ_{t−1} under one policy per step; `total` is Σ_t ρ_t, each (S padded,).

    first : ρ_0
    once : whether all mass enters at the first step; ρ_t is then not discounted but weighted by γ^t
    steps : whether to add up visits of actions too, in `by_action` (A, S padded)
    """

    def __init__(
        self, layout: Layout, discount: float, moving: Floats, first: Floats, *, once: bool, steps: bool
    ) -> None:
        self.layout, self.discount, self.moving, self.once = layout, discount, moving, once
        self.now, self.total, self.weight, self.worst = first, first.copy(), 1.0, 0.0
        self.by_action = np.zeros((layout.n_actions, layout.padded)) if steps else NONE
        self._spans = np.array([(part.first, part.last) for part in layout.parts])
        self._then = np.zeros((len(layout.parts), int(np.diff(self._spans).max()))) if len(self._spans) > 1 else NONE

    def follow(self, policies: Floats, more: Any) -> None:
        """Take steps under policies (T, A, S padded); `more` (T, S), sparse or not, enters after each, unless once."""
        layout = self.layout
        if len(layout.parts) == 1:
            sources = NONE if self.once else layout.pad(more.toarray() if sp.issparse(more) else more)
            model = (self.moving, self.now, sources, self.discount, self.weight, self.total, self.by_action)
            faults = [forward(*layout.dynamics, policies, *model)]
            self.weight *= self.discount ** len(policies) if self.once else 1.0
        else:
            faults = []
            for t, policy in enumerate(policies):
                faults.append(self._step(policy))
                if not self.once:
                    self._enter(more[[t]] if sp.issparse(more) else more[t])
        self.worst = float(np.max([self.worst, *faults]))

    def _enter(self, source: Any) -> None:
        """Add the source of this step, (S,), or sparse (1, S)."""
        where: Any = slice(0, self.layout.n_states)
        if sp.issparse(source):
            where, source = source.indices, source.data
        self.now[where] += source
        self.total[where] += source

    def _step(self, policy: Floats) -> float:
        spans, then, parts = self._spans, self._then, self.layout.parts
        given = (*self.layout.dynamics, policy, self.moving, self.now)
        faults = run_in_parts(
            parts,
            lambda k, lo, hi: push(lo, hi, *given, parts[k].first, then[k], self.weight, self.by_action),
        )
        self.weight *= self.discount if self.once else 1.0
        rest = (spans, then, NOTHING, 1.0 if self.once else self.discount, self.weight, self.now, self.total)
        run_in_parts(parts, lambda _, lo, hi: arrive(lo, hi, *rest))
        return float(np.max(faults))
