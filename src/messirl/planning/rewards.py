"""A reward split into the terms the kernels add: r(s) after the sum over actions, r(s, a) inside it.

A state reward counts every visited state, the last included: V_last = r. A state-action reward counts every step
taken: V_last = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Flags, Floats
from messirl.planning.layout import Layout
from messirl.problem.mdp import MDP

NONE: Floats = np.zeros((0, 0))


@dataclass(frozen=True)
class Terms:
    """state (S padded,), action (A, S padded) or empty, end (S,): the value of ending in a state."""

    state: Floats
    action: Floats
    end: Floats


def usable_actions(mdp: MDP) -> Flags:
    """Allowed actions, and all of those of terminal states, where none is taken anyway: often simply all."""
    return mdp.memo("usable", lambda: mdp.allowed | mdp.terminal[:, None])


def terms_of(layout: Layout, reward: Floats, usable: Flags) -> Terms:
    """The kernels' terms; actions that are not `usable` (S, A) get −inf."""
    all_usable = bool(usable.all())
    if reward.ndim == 1:
        action = NONE
        if not all_usable:
            action = np.zeros((layout.n_actions, layout.padded))
            action[:, : layout.n_states][~usable.T] = -np.inf
        return Terms(layout.pad(reward), action, reward)
    action = np.zeros((layout.n_actions, layout.padded))
    action[:, : layout.n_states] = reward.T if all_usable else np.where(usable, reward, -np.inf).T
    return Terms(np.zeros(layout.padded), action, np.zeros(layout.n_states))
