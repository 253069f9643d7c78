"""The paper's own model (Eq. 3; Ziebart 2008): P(ζ|θ) ∝ exp(θᵀf_ζ) Π p(s_{t+1}|s_t, a_t), with a horizon.

    log Z_{H−1}(s) = γ^{H−1} r(s),     log Z_t(s) = log Σ_a exp(γ^t r(s,a)) Σ_s' p(s'|s,a) Z_{t+1}(s')

Under it not only the actions but also the next states depend on the reward: the dynamics are *tilted* by Z. Expected
counts under the tilted dynamics are the gradient of log Z; the paper's forward pass uses the true dynamics instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.planning.finite_horizon import FiniteModel, FiniteSolution
from messirl.planning.kernels.graph import noncausal_backward, noncausal_forward
from messirl.planning.memory_layout import layout_of
from messirl.planning.solution import Solution, Visits
from messirl.planning.solve_counter import counted


class NoncausalModel(FiniteModel):
    """The noncausal model: log Z (H, S) and policies (H − 1, S, A).

    tilted : whether visits follow the model's own tilted dynamics (the gradient of log Z) or the true ones (the
        paper's forward pass)
    """

    def __init__(self, mdp: MDP, tilted: bool = True) -> None:
        if mdp.horizon is None:
            raise ValueError("entropy='noncausal' needs a horizon: set horizon= of the MDP, or use entropy='causal'")
        if mdp.reference is not None:
            raise ValueError("entropy='noncausal' does not allow a prior policy: use entropy='causal', or no reference")
        super().__init__(mdp)
        self.tilted = tilted

    @counted
    def solve(self, reward: Floats) -> Solution:
        """Return log Z and the policies, by the backward pass (Eq. 3)."""
        mdp = self.mdp
        self._foresee(mdp.n_actions + 1)
        log_z = np.empty((self.horizon, mdp.n_states))
        policy = np.zeros((self.horizon - 1, mdp.n_actions, layout_of(mdp).padded))
        end = reward if reward.ndim == 1 else np.zeros(mdp.n_states)
        stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
        log_z[-1] = np.where(stuck, -np.inf, mdp.discount ** (self.horizon - 1) * end)
        at_end = np.where(mdp.terminal, end, -np.inf)
        moves, log_p = mdp.transitions, mdp.memo("log p", lambda: np.log(mdp.transitions.data))
        by_action = np.array(np.broadcast_to(reward.reshape(mdp.n_states, -1), mdp.allowed.shape), order="C")
        model = (moves.indptr, moves.indices, log_p, mdp.n_actions, by_action)
        noncausal_backward(*model, at_end, mdp.discount, log_z, policy)
        return TiltedSolution(mdp, log_z, policy, model) if self.tilted else FiniteSolution(mdp, log_z, policy)


class TiltedSolution(Solution):
    """Solution log Z (H, S) and stored policies (H − 1, A, S padded), with visits under the tilted dynamics.

    model : the dynamics and the reward, as the kernels of this model take them
    """

    def __init__(self, mdp: MDP, log_z: Floats, policy: Floats, model: tuple[Any, ...]) -> None:
        super().__init__(mdp, log_z, policy)
        self.model = model

    def visits(self, source: Floats, *, steps: bool = True) -> Visits:
        """Return expected visits from a source (S,) or (H, S), always with those of (state, action) pairs."""
        mdp, begin = self.mdp, np.atleast_2d(source)
        states, pairs = np.zeros(mdp.n_states), np.zeros((mdp.n_states, mdp.n_actions))
        noncausal_forward(*self.model, begin, mdp.discount, self.values, self.policy, states, pairs)
        return Visits(states, pairs)
