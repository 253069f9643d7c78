"""Finite horizon, causal entropy: one policy a step.

    V_{H−1}(s) = r(s)                (0 with state-action rewards)
    V_t(s) = log Σ_a exp(r(s,a) + γ Σ_s' p(s'|s,a) V_{t+1}(s')),     π_t(a|s) = exp(Q_t(s,a) − V_t(s))

A terminal state keeps V_t = r(s): it counts once, on entry.
"""

from __future__ import annotations

import numpy as np

from messirl._types import Floats, Ints
from messirl.planning.kernels import forward, hard_sweep, soft_backward
from messirl.planning.layout import Layout, layout_of
from messirl.planning.structure import lifespan
from messirl.planning.terms import NONE, Terms, Visits, terms_of, usable_actions
from messirl.problem.mdp import MDP

ROW_TOLERANCE = 1e-6


def solve_finite(mdp: MDP, reward: Floats) -> tuple[Floats, Floats]:
    """Soft values (H, S) and stored policies (H − 1, A, S padded)."""
    layout, horizon = layout_of(mdp), _horizon(mdp)
    values = np.empty((horizon, layout.padded))
    policy = np.empty((horizon - 1, mdp.n_actions, layout.padded))
    terms = terms_of(layout, reward, usable_actions(mdp))
    values[-1] = layout.pad(terms.end)
    if lifespan(mdp) is None:
        ends = np.flatnonzero(mdp.terminal)
        model = (terms.state, terms.action, mdp.discount, ends, terms.end[ends])
        soft_backward(*layout.dynamics, *model, values, policy)
        return values[:, : mdp.n_states], policy
    for t in range(horizon - 2, -1, -1):
        terms, fixed, kept = _survivors(mdp, layout, reward, horizon - 1 - t)
        model = (terms.state, terms.action, mdp.discount, fixed, kept)
        soft_backward(*layout.dynamics, *model, values[t : t + 2], policy[t : t + 1])
    return _with_dead_ends(mdp, values[:, : mdp.n_states]), policy


def solve_finite_hard(mdp: MDP, reward: Floats) -> tuple[Floats, Floats]:
    """Hard-max values (H, S) and stored one-hot policies."""
    layout, horizon = layout_of(mdp), _horizon(mdp)
    values = np.empty((horizon, layout.padded))
    policy = np.zeros((horizon - 1, mdp.n_actions, layout.padded))
    choice = np.empty(layout.padded, dtype=np.int64)
    terms = terms_of(layout, reward, usable_actions(mdp))
    fixed: Ints = np.flatnonzero(mdp.terminal)
    kept = terms.end[fixed]
    values[-1] = layout.pad(terms.end)
    for t in range(horizon - 2, -1, -1):
        if lifespan(mdp) is not None:
            terms, fixed, kept = _survivors(mdp, layout, reward, horizon - 1 - t)
        hard_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values[t + 1], values[t], choice)
        values[t, fixed] = kept
        policy[t, choice, np.arange(layout.padded)] = 1.0
        policy[t, :, fixed] = 0.0
    return _with_dead_ends(mdp, values[:, : mdp.n_states]), policy


def visit_finite(mdp: MDP, policy: Floats, start: Floats, *, steps: bool) -> Visits:
    """Expected visits under stored policies, one a step."""
    layout = layout_of(mdp)
    total = np.zeros(layout.padded)
    by_action = np.zeros((mdp.n_actions, layout.padded)) if steps else NONE
    moving = layout.pad(mdp.allowed.any(axis=1))
    worst = forward(*layout.dynamics, policy, moving, layout.pad(start), mdp.discount, total, by_action)
    if not worst <= ROW_TOLERANCE:
        raise ValueError(
            "the policy is not one for this MDP: in every state that is reached its probabilities must be >= 0 and sum "
            "to 1 (to 0 where an episode ends), and states that cannot avoid a dead end must not be reached"
        )
    return Visits(total[: mdp.n_states], by_action[:, : mdp.n_states].T if steps else None)


def _horizon(mdp: MDP) -> int:
    assert mdp.horizon is not None
    return mdp.horizon


def _survivors(mdp: MDP, layout: Layout, reward: Floats, left: int) -> tuple[Terms, Ints, Floats]:
    """Terms and fixed states where `left` choices are still to be made and dead ends are to be avoided."""
    spans = lifespan(mdp)
    assert spans is not None
    life, row_life = spans
    terms = terms_of(layout, reward, (row_life >= left - 1) | mdp.terminal[:, None])
    lost = life < left
    fixed: Ints = np.flatnonzero(mdp.terminal | lost)
    return terms, fixed, np.where(lost, 0.0, terms.end)[fixed]


def _with_dead_ends(mdp: MDP, values: Floats) -> Floats:
    spans = lifespan(mdp)
    if spans is None:
        return values
    left = np.arange(len(values) - 1, -1, -1)
    return np.where(spans[0][None, :] < left[:, None], -np.inf, values)
