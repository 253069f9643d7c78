"""Values, policies and visits of an MDP under a reward, whichever way its trajectories end.

    horizon=H                      one policy a step: values (H, S), policy (H − 1, S, A)
    horizon=None                   one policy: values (S,), policy (S, A); endless and discounted, or until an end
    horizon=None, goal=g           the same, with g as the only end

`optimal_values` and `optimal_policy` are the hard-max versions: max in place of log Σ exp.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Flags, Floats
from messirl.planning.finite import solve_finite, solve_finite_hard, visit_finite
from messirl.planning.layout import layout_of
from messirl.planning.noncausal import solve_noncausal
from messirl.planning.paths import PathSystem
from messirl.planning.stationary import met_stationary, solve_stationary, solve_stationary_hard, visit_stationary
from messirl.planning.structure import Structure, reachable, structure
from messirl.planning.terms import NoFiniteValue, Visits, checked_reward, usable_actions
from messirl.problem.mdp import MDP

ENTROPIES = ("causal", "noncausal")


def check_entropy(entropy: str) -> None:
    if entropy not in ENTROPIES:
        raise ValueError(f"entropy={entropy!r}: choose 'causal' or 'noncausal'")


def soft_values(mdp: MDP, reward: npt.ArrayLike, entropy: str = "causal", goal: int | None = None) -> Floats:
    """Soft values V, or log Z with entropy="noncausal": (H, S), or (S,) without a horizon."""
    return _soft(mdp, reward, entropy, goal)[0]


def soft_policy(mdp: MDP, reward: npt.ArrayLike, entropy: str = "causal", goal: int | None = None) -> Floats:
    """π(a|s) = exp(Q(s,a) − V(s)) (Eq. 3): (H − 1, S, A), or (S, A) without a horizon; zero rows where it has ended."""
    return layout_of(mdp).state_major(_soft(mdp, reward, entropy, goal)[1])


def optimal_values(mdp: MDP, reward: npt.ArrayLike, goal: int | None = None) -> Floats:
    """Hard-max values: (H, S), or (S,) without a horizon."""
    return _hard(mdp, reward, goal)[0]


def optimal_policy(mdp: MDP, reward: npt.ArrayLike, goal: int | None = None) -> Floats:
    """A policy that attains them, one action with probability 1 (the lowest of equals)."""
    return layout_of(mdp).state_major(_hard(mdp, reward, goal)[1])


def policy_where_met(mdp: MDP, reward: Floats, start: Floats, goal: int | None = None) -> Floats:
    """The soft policy (causal); where some state has no finite value, on those `start` can reach, zero elsewhere."""
    try:
        return soft_policy(mdp, reward, goal=goal)
    except NoFiniteValue:
        frame = structure(mdp, goal, reachable(mdp, start, goal))
        return layout_of(mdp).state_major(_to_the_end(mdp, reward, frame)[1])


def values_where_met(mdp: MDP, reward: Floats, start: Floats, goal: int | None = None) -> Floats:
    """Soft values (causal); where some state has none, those of the states that `start` can reach."""
    try:
        return soft_values(mdp, reward, goal=goal)
    except NoFiniteValue:
        return _to_the_end(mdp, reward, structure(mdp, goal, reachable(mdp, start, goal)))[0]


def _soft(mdp: MDP, reward: npt.ArrayLike, entropy: str, goal: int | None) -> tuple[Floats, Floats]:
    check_entropy(entropy)
    r = checked_reward(mdp, reward)
    check_goal(mdp, goal)
    if entropy == "noncausal":
        return solve_noncausal(mdp, r)
    if mdp.horizon is not None:
        return solve_finite(mdp, r)
    return _to_the_end(mdp, r, structure(mdp, goal))


def _to_the_end(mdp: MDP, reward: Floats, frame: Structure) -> tuple[Floats, Floats]:
    if mdp.discount == 1.0 and mdp.deterministic:
        system = PathSystem(mdp, reward, frame)
        return system.values, system.policy
    return solve_stationary(mdp, reward, frame)


def _hard(mdp: MDP, reward: npt.ArrayLike, goal: int | None) -> tuple[Floats, Floats]:
    r = checked_reward(mdp, reward)
    check_goal(mdp, goal)
    if mdp.horizon is not None:
        return solve_finite_hard(mdp, r)
    return solve_stationary_hard(mdp, r, structure(mdp, goal))


def check_goal(mdp: MDP, goal: int | None) -> None:
    """A goal is a state, and goes with horizon=None."""
    if goal is None:
        return
    if isinstance(goal, bool) or not isinstance(goal, int | np.integer):
        raise TypeError(f"goal must be a state, not {goal!r}")
    if not 0 <= goal < mdp.n_states:
        raise ValueError(f"goal {goal} is not one of the states 0 … {mdp.n_states - 1}")
    if mdp.horizon is not None:
        raise ValueError(
            f"goal={goal} with horizon={mdp.horizon}: a trajectory with a goal ends there, use horizon=None"
        )


def state_visitation(mdp: MDP, policy: npt.ArrayLike, goal: int | None = None, *, start: Any = None) -> Floats:
    """ρ(s) = Σ_t γ^t P(s_t = s) of a policy, (S,): the forward pass (Eq. 8). `start` overrides the MDP's own."""
    return visits(mdp, policy, goal, start=start, steps=False).states


def visits(
    mdp: MDP, policy: npt.ArrayLike, goal: int | None = None, *, start: Any = None, steps: bool = True
) -> Visits:
    """Expected discounted visits of states and, if asked for, of (state, action) pairs; 0 where it cannot get to."""
    check_goal(mdp, goal)
    stored = stored_policy(mdp, policy)
    begin = start_of(mdp, start)
    if mdp.horizon is not None:
        if not usable_actions(mdp).all():
            _check_allowed(mdp, (np.asarray(policy) > 0) & ~mdp.allowed & ~mdp.terminal[:, None])
        return visit_finite(mdp, stored, begin, steps=steps)
    ends = mdp.terminal if goal is None else np.arange(mdp.n_states) == goal
    moving = ~ends & (stored[:, : mdp.n_states].sum(axis=0) > 0)
    _check_rows(mdp, stored[:, : mdp.n_states], ends, moving)
    result = visit_stationary(mdp, stored, begin, moving, steps=steps)
    if not np.isfinite(result.states).all():
        raise ValueError("under this policy a trajectory need not end: with discount=1 it must reach an end")
    idle = ~ends & ~moving
    if idle.any():  # a state that has no value has no policy either; any other that is met must
        idle &= structure(mdp, goal).alive & met_stationary(mdp, stored, begin, moving)
    if idle.any():
        raise ValueError(f"state {int(np.argmax(idle))} is reached, but policy[{int(np.argmax(idle))}] is all zero")
    return result


def stored_policy(mdp: MDP, policy: npt.ArrayLike) -> Floats:
    """A policy of the right shape, as the kernels store it."""
    array = np.asarray(policy)
    shape: tuple[int, ...] = (mdp.n_states, mdp.n_actions)
    if mdp.horizon is not None:
        shape = (mdp.horizon - 1, *shape)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"policy must be numbers, not {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"policy has shape {array.shape}, not {shape} (states, actions; one a step with a horizon)")
    return layout_of(mdp).action_major(array)


def _check_rows(mdp: MDP, stored: Floats, ends: Flags, moving: Flags) -> None:
    low, sums = stored.min(axis=0), stored.sum(axis=0)
    wrong = ~(low >= 0.0) | ~np.isfinite(sums) | (moving & (np.abs(sums - 1.0) > 1e-6))
    if wrong.any():
        s = int(np.argmax(wrong))
        raise ValueError(f"policy[{s}] is {stored[:, s]}: probabilities must be >= 0 and sum to 1")
    _check_allowed(mdp, (stored.T > 0) & ~mdp.allowed & ~ends[:, None])


def _check_allowed(mdp: MDP, forbidden: Flags) -> None:
    if forbidden.any():
        s, a = np.argwhere(forbidden)[0][-2:]
        raise ValueError(f"the policy takes action {a} in state {s}, which is not allowed there")


def start_of(mdp: MDP, start: Any = None) -> Floats:
    """The start distribution given, or the MDP's own."""
    if start is not None:
        return mdp.start if start is mdp.start and mdp.start is not None else _given_start(mdp, start)
    if mdp.start is None:
        raise ValueError("this needs a start distribution and the MDP has none: use mdp.replace(start=...)")
    return mdp.start


def _given_start(mdp: MDP, start: npt.ArrayLike) -> Floats:
    array = np.asarray(start, dtype=np.float64)
    if array.shape != (mdp.n_states,) or not np.isfinite(array).all() or (array < 0).any() or not array.any():
        raise ValueError(f"start must be {mdp.n_states} weights, finite and not negative, and not all zero")
    return array
