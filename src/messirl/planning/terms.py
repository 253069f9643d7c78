"""A reward split into the terms the kernels add: r(s) after the sum over actions, r(s, a) inside it.

A state reward counts every visited state, the last included: V_last = r. A state-action reward counts every step
taken: V_last = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from messirl._types import Flags, Floats
from messirl.planning.layout import Layout
from messirl.problem.mdp import MDP

NONE: Floats = np.zeros((0, 0))


class NoFiniteValue(ValueError):
    """Endless trajectories are worth infinitely much under this reward."""


@dataclass(frozen=True)
class Terms:
    """state (S padded,), action (A, S padded) or empty, end (S,): the value of ending in a state."""

    state: Floats
    action: Floats
    end: Floats


def checked_reward(mdp: MDP, reward: npt.ArrayLike) -> Floats:
    """The reward as floats of shape (S,) or (S, A), all finite."""
    array = np.asarray(reward)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"reward must be numbers, not {array.dtype}")
    array = array.astype(np.float64, copy=False)
    if array.shape not in ((mdp.n_states,), (mdp.n_states, mdp.n_actions)):
        raise ValueError(
            f"reward has shape {array.shape}: give ({mdp.n_states},), one a state, or "
            f"({mdp.n_states}, {mdp.n_actions}), one a state and action"
        )
    if not np.isfinite(array).all():
        where = ", ".join(str(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"reward[{where}] is not finite: forbid actions with allowed=, not with infinite rewards")
    return array


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


@dataclass(frozen=True)
class Visits:
    """Σ_t γ^t P(s_t = s), (S,), and Σ_t γ^t P(s_t = s, a_t = a), (S, A), where it was asked for."""

    states: Floats
    steps: Floats | None

    def counts(self, mdp: MDP) -> Floats:
        """Expected feature counts, Eq. 8."""
        if not mdp.state_action:
            return mdp.counts(self.states)
        assert self.steps is not None
        return mdp.counts(self.steps)
