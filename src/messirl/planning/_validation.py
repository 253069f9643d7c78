"""Validation of what a caller passes in: the entropy model, a reward, a goal, a start distribution, a policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._checks import is_whole
from messirl._types import Flags, Floats
from messirl.data.mdp import MDP
from messirl.data.mdp_validation import SUM_TOLERANCE


def check_entropy(entropy: str) -> None:
    """Raise a ValueError unless the name is one of the two models."""
    if entropy not in ("causal", "noncausal"):
        raise ValueError(f"entropy={entropy!r}: choose 'causal' or 'noncausal'")


def checked_reward(mdp: MDP, reward: npt.ArrayLike) -> Floats:
    """Return the reward as floats of shape (S,) or (S, A), all finite."""
    array = _numbers(reward, "reward")
    if array.shape not in ((mdp.n_states,), (mdp.n_states, mdp.n_actions)):
        raise ValueError(
            f"reward has shape {array.shape}: it must be ({mdp.n_states},), one per state, or "
            f"({mdp.n_states}, {mdp.n_actions}), one per state and action"
        )
    if not np.isfinite(array).all():
        where = ", ".join(str(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"reward[{where}] is not finite: to forbid actions use allowed=, not infinite rewards")
    return array


def check_goal(mdp: MDP, goal: int | None) -> None:
    """Raise an error unless the goal is None, or a state of an MDP with horizon=None."""
    if goal is None:
        return
    if not is_whole(goal):
        raise TypeError(f"goal must be a state, not {' '.join(repr(goal).split()):.60}")
    if not 0 <= goal < mdp.n_states:
        raise ValueError(f"goal {goal} is not one of the states 0 … {mdp.n_states - 1}")
    if mdp.horizon is not None:
        raise ValueError(
            f"goal={goal} with horizon={mdp.horizon}: a trajectory with a goal ends there, use horizon=None"
        )


def checked_policy(mdp: MDP, policy: npt.ArrayLike) -> Floats:
    """Return a policy as floats, of the right shape; its rows are not checked to be probabilities."""
    if hasattr(policy, "score"):
        raise TypeError(f"policy is a {type(policy).__name__}: give its policy_, or score trajectories by model.score")
    array = _numbers(policy, "policy")
    if array.shape != mdp.policy_shape:
        raise ValueError(
            f"policy has shape {array.shape}, not {mdp.policy_shape} (states, actions; one per step with a horizon)"
        )
    return array


def check_probabilities(policy: Floats, met: Flags, name: str = "policy") -> None:
    """Refuse a policy (…, S, A) with rows, where it is `met` (…, S), that are neither probabilities nor all zero."""
    rows = policy[met]
    sums = rows.sum(axis=-1)
    wrong = ~((rows >= 0).all(axis=-1) & ((sums == 0) | (np.abs(sums - 1.0) < SUM_TOLERANCE)))
    if wrong.any():
        first = int(np.argmax(wrong))
        where = ", ".join(map(str, np.argwhere(met)[first]))
        raise ValueError(f"{name}[{where}] is {rows[first]}: probabilities must be >= 0 and sum to 1")


def _numbers(given: npt.ArrayLike, name: str) -> Floats:
    array = np.asarray(given)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, not {array.dtype}")
    return array.astype(np.float64, copy=False)


def check_allowed(mdp: MDP, policy: Floats, ends: Flags) -> None:
    """Raise a ValueError if a policy (…, S, A) takes an action that is not allowed; states in `ends` do not count."""
    forbidden = (policy > 0) & ~mdp.allowed & ~ends[:, None]
    if forbidden.any():
        s, a = np.argwhere(forbidden)[0][-2:]
        raise ValueError(f"the policy takes action {a} in state {s}, which is not allowed there")


def start_of(mdp: MDP, start: Any = None) -> Floats:
    """Return the start distribution given, or the MDP's own."""
    if mdp.start is not None and (start is None or start is mdp.start):
        return mdp.start
    if start is None:
        raise ValueError("a start distribution is needed and the MDP has none: use mdp.replace(start=...)")
    array = np.asarray(start, dtype=np.float64)
    if array.shape != (mdp.n_states,) or not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ValueError(f"start must be {mdp.n_states} weights, finite and not negative, and not all zero")
    return array
