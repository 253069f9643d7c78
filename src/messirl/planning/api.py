"""Values, policies and visits of an MDP under a reward, for finite, infinite and episodic horizons.

    horizon=H                      one policy per step: values (H, S), policy (H − 1, S, A)
    horizon=None                   one policy: values (S,), policy (S, A); infinite discounted, or episodic
    horizon=None, goal=g           the same, with g as the only terminal state

`optimal_values` and `optimal_policy` are the hard-max versions: max in place of log Σ exp.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.planning._validation import checked_policy, checked_reward, start_of
from messirl.planning.memory_layout import layout_of
from messirl.planning.planner import model_for
from messirl.planning.solution import Visits


def soft_values(mdp: MDP, reward: npt.ArrayLike, entropy: str = "causal", goal: int | None = None) -> Floats:
    """Return soft values V, or log Z with entropy="noncausal": (H, S), or (S,) without a horizon."""
    return model_for(mdp, entropy, goal=goal).solve(checked_reward(mdp, reward)).values


def soft_policy(mdp: MDP, reward: npt.ArrayLike, entropy: str = "causal", goal: int | None = None) -> Floats:
    """Return the soft policy π(a|s) = exp(Q(s,a) − V(s)) (Eq. 3): (H − 1, S, A), or (S, A) without a horizon.

    Rows of states where trajectories end are zero.
    """
    return model_for(mdp, entropy, goal=goal).solve(checked_reward(mdp, reward)).table


def optimal_values(mdp: MDP, reward: npt.ArrayLike, goal: int | None = None) -> Floats:
    """Return hard-max values: (H, S), or (S,) without a horizon."""
    return model_for(mdp, goal=goal).hard(checked_reward(mdp, reward)).values


def optimal_policy(mdp: MDP, reward: npt.ArrayLike, goal: int | None = None) -> Floats:
    """Return a deterministic optimal policy, one-hot; ties go to the lowest action."""
    return model_for(mdp, goal=goal).hard(checked_reward(mdp, reward)).table


def state_visitation(mdp: MDP, policy: npt.ArrayLike, goal: int | None = None, *, start: Any = None) -> Floats:
    """Return ρ(s) = Σ_t γ^t P(s_t = s) of a policy, (S,), by the forward pass (Eq. 8); `start` overrides the MDP's."""
    return visits(mdp, policy, goal, start=start, steps=False).states


def visits(
    mdp: MDP, policy: npt.ArrayLike, goal: int | None = None, *, start: Any = None, steps: bool = True
) -> Visits:
    """Return expected discounted visits of states and, if asked for, of (state, action) pairs; 0 if unreachable."""
    stored = layout_of(mdp).action_major(checked_policy(mdp, policy))
    return model_for(mdp, goal=goal).follow(stored, start_of(mdp, start), steps=steps)
