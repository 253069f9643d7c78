"""Solution of a model at one reward: values, the policy, and the expected visits from any source.

    ρ = m + γ P_πᵀ ρ

The source m is a start distribution, or any signed weights: visits are linear in it. They are non-negative if m is, and
may otherwise be of any sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning.memory_layout import layout_of

NO_VALUE = (
    "no finite value: with discount=1 an endless trajectory is worth infinitely much under this reward. "
    "Make the rewards of steps more negative, or use a discount below 1 or a horizon"
)

CANNOT_START = "a trajectory cannot start in state {}: from there every policy risks a dead end or may never end"


class NoFiniteValue(ValueError):
    """The values are not finite: endless trajectories are worth infinitely much under this reward."""

    def __init__(self, message: str = NO_VALUE) -> None:
        super().__init__(message)


@dataclass(frozen=True)
class Visits:
    """Expected visits Σ_t γ^t P(s_t = s), (S,), and Σ_t γ^t P(s_t = s, a_t = a), (S, A), if asked for."""

    states: Floats
    steps: Floats | None

    def counts(self, mdp: MDP) -> Floats:
        """Return expected feature counts, Eq. 8."""
        if not mdp.state_action:
            return mdp.counts(self.states)
        assert self.steps is not None
        return mdp.counts(self.steps)


@dataclass(frozen=True)
class Expectation:
    """Mean log Z over the starts, Σ_s start(s) V(s), the expected visits from them, and the solution.

    With goals there are many solutions and none is stored.
    """

    log_partition: float
    visits: Visits
    solution: Solution | None = None


class Solution:
    """Values (S,), or (H, S) with a horizon, and the policy, in the kernels' layout, of a model at one reward."""

    def __init__(self, mdp: MDP, values: Floats, policy: Floats | None = None) -> None:
        self.mdp, self.values, self._policy = mdp, values, policy

    @property
    def policy(self) -> Floats:
        """π, action-major: (A, S padded), or (H − 1, A, S padded)."""
        assert self._policy is not None
        return self._policy

    @property
    def table(self) -> Floats:
        """π (S, A), or (H − 1, S, A), in the public layout."""
        return layout_of(self.mdp).state_major(self.policy)

    def at(self, places: Ints) -> Floats:
        """Return V at these places, s or, with a horizon, t·S + s."""
        return self.values.ravel()[places]

    def visits(self, source: Floats, *, steps: bool = True) -> Visits:
        """Return expected visits from a source of any sign, of states and, if asked for, of (state, action) pairs.

        source : (S,); with a horizon also (H, S), where row t enters at step t and is not discounted further
        """
        raise NotImplementedError

    def expectation(self, start: Floats, *, steps: bool = True) -> Expectation:
        """Return Σ_s start(s) V(s) and the visits from `start`, (S,), or (H, S) with a horizon as in `visits`."""
        values = (self.values if start.ndim == self.values.ndim else self.mdp.first(self.values)).ravel()
        with np.errstate(invalid="ignore"):
            total = float(start.ravel() @ values)
        if not np.isfinite(total):  # a state without a value matters only if the source is not zero there
            at = np.flatnonzero(start)
            total = float(start.ravel()[at] @ values[at])
            if not np.isfinite(values[at]).all():
                s = int(at[np.argmin(values[at])]) % self.mdp.n_states
                raise ValueError(CANNOT_START.format(s))
        return Expectation(total, self.visits(start, steps=steps), self)
