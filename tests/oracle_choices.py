"""The likelihood of choices, slowly and plainly; nothing here imports the library.

Values come from backward sweeps with a horizon, and without one from soft policy iteration with dense solves, begun at
the policy that takes every live action alike. The gradient is that of log pi itself, state by state:

    grad V = F:  F(s) = sum_a pi(a|s) (f(s,a) + gamma sum_s' p F(s')),     grad log pi = f + gamma p F - F
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import oracle
from oracle import INF, Evaluation, Problem, Trajectory
from scipy.optimize import minimize


def soft_values(problem: Problem, theta: np.ndarray, first: Sequence[int]) -> np.ndarray:
    """V, (H, S) with a horizon, else (S,), there -inf also where nothing that begins in `first` gets to."""
    if problem.horizon is None:
        return _stationary(problem, problem.reward(theta), first)
    reward = problem.reward(theta)
    dead = np.array([problem.dead(s) for s in range(problem.n_states)])
    values = np.zeros((problem.horizon, problem.n_states))
    if problem.by_state:
        values[:] = reward
    values[:, dead] = -INF
    for t in reversed(range(problem.horizon - 1)):
        going = ~problem.terminal
        values[t, going] = _log_sums(oracle.backup(problem, reward, values[t + 1]))[going]
    return values


def _log_sums(q: np.ndarray) -> np.ndarray:
    top = q.max(axis=1)
    known = np.isfinite(top)
    out = np.full(len(q), -INF)
    out[known] = top[known] + np.log(np.exp(q[known] - top[known, None]).sum(axis=1))
    return out


@cache
def _structure(key: tuple, first: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Live actions (S, A), states that `first` can meet (S,) and those of them that go on (S,)."""
    problem = _known[key]
    alive = oracle.living(problem)
    lost = ~alive
    live = problem.allowed & (problem.transitions.sum(axis=2) > 0) & ~((problem.transitions @ lost) > 0)
    live &= (alive & ~problem.terminal)[:, None]
    met = np.zeros(problem.n_states, dtype=bool)
    met[list(first)] = True
    while True:  # states that cannot be met need have no finite value
        more = met | (problem.transitions[met][live[met]] > 0).any(axis=0)
        if (more == met).all():
            return live, met, met & alive & ~problem.terminal
        met = more


_known: dict[tuple, Problem] = {}


def _stationary(problem: Problem, reward: np.ndarray, first: Sequence[int]) -> np.ndarray:
    """Soft policy iteration: each policy is that of the values of the one before."""
    arrays = (problem.transitions, problem.allowed, problem.terminal)
    key = (problem.discount, *(array.tobytes() for array in arrays), problem.allowed.shape)
    _known.setdefault(key, problem)
    live, met, going = _structure(key, tuple(first))
    values = np.full(problem.n_states, -INF)
    ends = met & problem.terminal
    values[ends] = reward[ends] if problem.by_state else 0.0
    if not going.any():
        return values
    p, gamma = problem.transitions[going], problem.discount
    at_once = oracle.backup(problem, reward, np.zeros(problem.n_states))[going]
    at_once, ended = np.where(live[going], at_once, 0.0), np.where(ends, values, 0.0)
    policy = live[going] / live[going].sum(axis=1, keepdims=True)
    for _ in range(60):
        chain = np.einsum("sa,saj->sj", policy, p)
        gain = (policy * (at_once - np.log(np.where(policy > 0, policy, 1.0)))).sum(axis=1) + gamma * (chain @ ended)
        try:
            new = np.linalg.solve(np.eye(len(gain)) - gamma * chain[:, going], gain)
        except np.linalg.LinAlgError:  # the policy stays away from every end
            break
        if not np.isfinite(new).all():
            break
        change = np.abs(new - values[going]).max()
        values[going] = new
        q = np.where(live[going], at_once + gamma * (p @ np.where(met & (going | ends), values, 0.0)), -INF)
        policy = np.exp(q - _log_sums(q)[:, None])
        if change <= 1e-12 * max(1.0, np.abs(new).max()):
            return values
    raise ArithmeticError("no finite value")


def tables(problem: Problem, theta: np.ndarray, first: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """log pi (N, S, A), and its gradient (N, S, A, d): N steps with a horizon, one without."""
    return solved(problem, theta, first)[:2]


def solved(problem: Problem, theta: np.ndarray, first: Sequence[int]) -> tuple[np.ndarray, ...]:
    """The same, and at the first step V (S,) and its gradient F (S, d)."""
    values = soft_values(problem, theta, first)
    reward, d = problem.reward(theta), problem.n_features
    f = problem.features if not problem.by_state else np.repeat(problem.features[:, None], problem.n_actions, axis=1)
    end = problem.features if problem.by_state else np.zeros((problem.n_states, d))
    if problem.horizon is None:
        log_policy, policy = _policies(problem, reward, values, values)
        going = policy.sum(axis=1) > 0
        slope = np.where(problem.terminal[:, None], end, 0.0)
        chain = np.einsum("sa,saj->sj", policy, problem.transitions)[going]
        gained = np.einsum("sa,sad->sd", policy, f)[going] + problem.discount * (chain @ slope)
        slope[going] = np.linalg.solve(np.eye(int(going.sum())) - problem.discount * chain[:, going], gained)
        ahead = f + problem.discount * (problem.transitions @ slope)
        return log_policy[None], (ahead - slope[:, None])[None], values, slope
    logs, slopes, slope = [], [], end
    for t in reversed(range(problem.horizon - 1)):
        log_policy, policy = _policies(problem, reward, values[t], values[t + 1])
        ahead = f + problem.discount * (problem.transitions @ slope)
        slope = np.where(problem.terminal[:, None], end, np.einsum("sa,sad->sd", policy, ahead))
        logs.append(log_policy)
        slopes.append(ahead - slope[:, None])
    return np.array(logs[::-1]), np.array(slopes[::-1]), values[0], slope


def _policies(problem: Problem, reward: np.ndarray, here: np.ndarray, ahead: np.ndarray) -> tuple:
    q = oracle.backup(problem, reward, ahead)
    known = np.isfinite(here) & ~problem.terminal
    log_policy = np.full(q.shape, -INF)
    log_policy[known] = (
        q[known] - _log_sums(q[known])[:, None]
    )  # not V: of thousands, the last digit is not to be trusted
    return log_policy, np.exp(log_policy)


def log_likelihoods(
    problem: Problem, theta: np.ndarray, trajectories: Sequence[Trajectory], *, actions: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The log-probability (n,) of what each trajectory chose, and its gradient (n, d)."""
    theta = np.asarray(theta, dtype=float)
    logs, slopes = np.zeros(len(trajectories)), np.zeros((len(trajectories), problem.n_features))
    for goal in {goal for _, _, goal in trajectories}:
        towards, which = problem.towards(goal), [i for i, x in enumerate(trajectories) if x[2] == goal]
        log_policy, slope = tables(towards, theta, sorted({s for i in which for s in trajectories[i][0]}))
        for i in which:
            states, taken, _ = trajectories[i]
            for t, a in enumerate(taken):
                step = t if problem.horizon is not None else 0
                if actions:
                    logs[i] += log_policy[step, states[t], a]
                    slopes[i] += slope[step, states[t], a]
                else:
                    joint = np.exp(log_policy[step, states[t]]) * problem.transitions[states[t], :, states[t + 1]]
                    can = joint > 0
                    logs[i] += np.log(joint.sum()) if can.any() else -np.inf
                    slopes[i] += joint[can] @ slope[step, states[t]][can] / (joint.sum() or 1.0)
    return logs, slopes


def mass(problem: Problem, trajectory: Trajectory) -> float:
    """The discounted mass of a trajectory's choices."""
    states, taken, goal = trajectory
    if problem.discount == 1.0:
        return float(len(taken))
    if problem.horizon is None and goal is None and not problem.terminal[states[-1]]:
        return 1 / (1 - problem.discount)
    return sum(problem.discount**t for t in range(len(taken)))


def scale(problem: Problem, trajectories: Sequence[Trajectory], weights: np.ndarray) -> float:
    """c: what a choice weighs."""
    made = sum(w * len(x[1]) for w, x in zip(weights, trajectories, strict=True))
    return sum(w * mass(problem, x) for w, x in zip(weights, trajectories, strict=True)) / made


def evaluate(
    problem: Problem,
    theta: np.ndarray,
    expert: Sequence[Trajectory],
    *,
    weights: np.ndarray | None = None,
    actions: bool = True,
    quadratic: np.ndarray | None = None,
) -> Evaluation:
    """c sum_i w_i sum_t log pi - 1/2 theta' Q theta and its gradient; no expected counts."""
    theta = np.asarray(theta, dtype=float)
    w = np.ones(len(expert)) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    logs, slopes = log_likelihoods(problem, theta, expert, actions=actions)
    c = scale(problem, expert, w)
    value, gradient = c * float(w @ logs), c * (w @ slopes)
    if quadratic is not None:
        value, gradient = value - 0.5 * float(theta @ quadratic @ theta), gradient - quadratic @ theta
    return Evaluation(value, gradient, np.full_like(theta, np.nan))


def evaluate_counts(
    problem: Problem,
    theta: np.ndarray,
    expert: Sequence[Trajectory],
    *,
    weights: np.ndarray | None = None,
    quadratic: np.ndarray | None = None,
) -> Evaluation:
    """What oracle.evaluate says of the causal model, by the values of this page: quick enough for a search."""
    theta = np.asarray(theta, dtype=float)
    w = np.ones(len(expert)) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    observed = sum(w[i] * oracle.data_counts(problem, x) for i, x in enumerate(expert))
    value, expected = float(theta @ observed), np.zeros(len(theta))
    for goal, start in beginnings(problem, expert, w).items():
        at = np.flatnonzero(start)
        *_, values, slope = solved(problem.towards(goal), theta, at.tolist())
        value, expected = value - float(start[at] @ values[at]), expected + start[at] @ slope[at]
    gradient = observed - expected
    if quadratic is not None:
        value, gradient = value - 0.5 * float(theta @ quadratic @ theta), gradient - quadratic @ theta
    return Evaluation(value, gradient, expected)


def beginnings(problem: Problem, expert: Sequence[Trajectory], weights: np.ndarray) -> dict:
    """Where trips to each goal begin, (S,), by weight; without goals, for None, the problem's start or their own."""
    found = {goal: np.zeros(problem.n_states) for goal in {goal for _, _, goal in expert}}
    for (states, _, goal), w in zip(expert, weights, strict=True):
        found[goal][states[0]] += w
    if None in found and problem.start is not None:
        found[None] = problem.start
    return found


def visits(problem: Problem, policy: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Expected discounted visits of every (state, action), (S, A), of a policy (N, S, A) as in `tables`."""
    if problem.horizon is None:
        return oracle.visits(problem, policy[0], start)[:, None] * policy[0]
    total, here = np.zeros(policy[0].shape), start
    for t, table in enumerate(policy):
        taken = here[:, None] * table
        total, here = total + problem.discount**t * taken, np.einsum("sa,saj->j", taken, problem.transitions)
    return total


def maximise(function, start: np.ndarray, box: float) -> tuple[np.ndarray, float]:
    """SciPy on an objective of this page, begun at `start`; a theta without a finite value is a wall."""

    def minus(theta):
        try:
            e = function(theta)
        except ArithmeticError:
            return 1e6, np.zeros_like(theta)
        return -e.value, -e.gradient

    theta = np.array(start, dtype=float)
    for _ in range(3):  # restarts clear a curvature estimate spoilt by rounding
        found = minimize(
            minus,
            theta,
            jac=True,
            method="L-BFGS-B",
            bounds=[(-box, box)] * len(theta),
            options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 500, "maxcor": 20},
        )
        theta = found.x
    return theta, -found.fun
