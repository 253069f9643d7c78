"""Slow, plain, obviously right versions of everything the library computes.

Nothing here imports the library. Three ways to the truth, from the plainest on:

- enumeration: on a tiny problem with a horizon every trajectory is listed, and probabilities, log Z and expected
  feature counts are sums over that list;
- plain iteration: endless problems are swept, densely, until nothing moves;
- many digits: mpmath, where double precision cannot be trusted to judge itself.

What counts when.  State features f(s): every visited state counts, the last one too, so V_last = r and a terminal
state is worth r.  State-action features f(s, a): every step taken counts, so V_last = 0 and a terminal state is worth
nothing.  A dead end (no allowed action, not terminal, not the goal) is worth -inf, always.

A trajectory is a triple (states, actions, goal), goal None where there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import mpmath as mp
import numpy as np
from seeds import generator

INF = math.inf
Trajectory = tuple[list[int], list[int], "int | None"]


@dataclass(frozen=True)
class Problem:
    transitions: np.ndarray  # (S, A, S)
    features: np.ndarray  # (S, d) or (S, A, d)
    start: np.ndarray | None  # (S,)
    discount: float
    horizon: int | None
    terminal: np.ndarray  # (S,) bool
    allowed: np.ndarray  # (S, A) bool
    reference: np.ndarray | None = None  # (S, A), a base policy: its logarithm is added to what a choice is worth

    @property
    def n_states(self) -> int:
        return self.transitions.shape[0]

    @property
    def n_actions(self) -> int:
        return self.transitions.shape[1]

    @property
    def n_features(self) -> int:
        return self.features.shape[-1]

    @property
    def by_state(self) -> bool:
        return self.features.ndim == 2

    def arguments(self) -> tuple[tuple, dict]:
        """Positional and keyword arguments for the library's MDP."""
        keywords = {
            "start": self.start,
            "discount": self.discount,
            "horizon": self.horizon,
            "terminal": self.terminal if self.terminal.any() else None,
            "allowed": None if self.allowed.all() else self.allowed,
        }
        return (self.transitions, self.features), keywords

    def moves(self, s: int) -> list[tuple[int, list[tuple[int, float]]]]:
        """Allowed actions of s, each with its successors and their probabilities.  None from a terminal state."""
        if self.terminal[s]:
            return []
        moves = []
        for a in range(self.n_actions):
            successors = [(j, float(p)) for j, p in enumerate(self.transitions[s, a]) if p > 0]
            if self.allowed[s, a] and successors:
                moves.append((a, successors))
        return moves

    def dead(self, s: int) -> bool:
        return not self.terminal[s] and not self.moves(s)

    def reward(self, theta: np.ndarray) -> np.ndarray:
        """(S,) or (S, A)"""
        return self.features @ np.asarray(theta, dtype=float)

    def usual(self, s: int, a: int) -> float:
        """log of the base policy, 0 without one."""
        return 0.0 if self.reference is None else math.log(self.reference[s, a])

    def towards(self, goal: int | None) -> Problem:
        """The same problem with the goal as its only terminal state; other terminal states become dead ends."""
        if goal is None:
            return self
        terminal = np.zeros(self.n_states, dtype=bool)
        terminal[goal] = True
        allowed = self.allowed & ~self.terminal[:, None]
        return replace(self, terminal=terminal, allowed=allowed)


# ------------------------------------------------------------ random problems


def random_problem(
    seed: int,
    *,
    stochastic: bool = False,
    terminal: bool = False,
    blocked: bool = False,
    by_state: bool = True,
    horizon: int | None = None,
    discount: float = 1.0,
    dead_end: bool = False,
    n_states: int | None = None,
    n_actions: int | None = None,
    n_features: int | None = None,
    positive: bool = False,
) -> Problem:
    """A tiny problem: 2 to 5 states, 2 or 3 actions, at most two successors a move; start on states worth something.

    `positive` draws features from [0.5, 1.5], so that a negative theta makes every reward negative.
    """
    rng = generator(seed)
    n_states = n_states or int(rng.integers(4 if dead_end else 3 if terminal else 2, 6))
    n_actions = n_actions or int(rng.integers(2, 4))
    d = n_features or int(rng.integers(1, 4))
    while True:
        p = np.zeros((n_states, n_actions, n_states))
        for s in range(n_states):
            for a in range(n_actions):
                k = min(n_states, int(rng.integers(1, 3))) if stochastic else 1
                p[s, a, rng.choice(n_states, size=k, replace=False)] = rng.dirichlet(np.ones(k)) if k > 1 else 1.0
        is_terminal = np.zeros(n_states, dtype=bool)
        if terminal:
            is_terminal[rng.integers(n_states)] = True
        allowed = np.ones((n_states, n_actions), dtype=bool)
        if blocked:
            allowed = rng.random((n_states, n_actions)) > 0.3
            allowed[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
        if dead_end:
            allowed[rng.choice(np.flatnonzero(~is_terminal))] = False
        # Two spellings of "not allowed": the mask, and an all-zero row.  Use both, and both for terminal states.
        if rng.random() < 0.5:
            p[~allowed] = 0.0
            allowed = np.ones_like(allowed)
        if rng.random() < 0.5:
            p[is_terminal] = 0.0
        shape = (n_states, d) if by_state else (n_states, n_actions, d)
        features = rng.uniform(0.5, 1.5, size=shape) if positive else rng.normal(size=shape)
        problem = Problem(p, features, None, discount, horizon, is_terminal, allowed)
        worth = living(problem) & ~is_terminal
        if horizon is not None:
            worth = survivors(problem) & ~is_terminal
        if not worth.any() or (terminal and not reaches_terminal(problem, worth)):
            continue
        starts = rng.choice(np.flatnonzero(worth), size=min(2, int(worth.sum())), replace=False)
        start = np.zeros(n_states)
        start[starts] = rng.dirichlet(np.ones(len(starts))) if len(starts) > 1 else 1.0
        return replace(problem, start=start)


def reaches_terminal(problem: Problem, worth: np.ndarray) -> bool:
    """Whether some state worth starting in can move into a terminal state."""
    return any(
        problem.terminal[j] for s in np.flatnonzero(worth) for _, successors in problem.moves(s) for j, _ in successors
    )


def survivors(problem: Problem) -> np.ndarray:
    """States from which the whole horizon can be lived without a chance of a dead end."""
    end = alive = {s for s in range(problem.n_states) if not problem.dead(s)}
    for _ in range(problem.horizon - 1):
        alive = {
            s
            for s in end
            if problem.terminal[s] or any(all(j in alive for j, _ in successors) for _, successors in problem.moves(s))
        }
    return np.array([s in alive for s in range(problem.n_states)])


def living(problem: Problem) -> np.ndarray:
    """States of finite value in an endless problem, by shrinking a set until it stands.

    gamma < 1: the states that can avoid dead ends for ever.  gamma = 1: those that can also end with probability one,
    that is, reach a terminal state by moves that never leave the set.
    """
    n = problem.n_states
    alive = {s for s in range(n) if not problem.dead(s)}
    while True:
        kept = {
            s
            for s in alive
            if problem.terminal[s] or any(all(j in alive for j, _ in succ) for _, succ in problem.moves(s))
        }
        if problem.discount == 1.0:
            ending = {s for s in kept if problem.terminal[s]}
            while True:
                more = {
                    s
                    for s in kept - ending
                    for _, succ in problem.moves(s)
                    if all(j in kept for j, _ in succ) and any(j in ending for j, _ in succ)
                }
                if not more:
                    break
                ending |= more
            kept &= ending
        if kept == alive:
            return np.array([s in alive for s in range(n)])
        alive = kept


# ------------------------------------------------------------ enumeration


def add_logs(logs: Sequence[float]) -> float:
    """log of a sum of exponentials, plainly."""
    top = max(logs, default=-INF)
    if top == -INF:
        return -INF
    return top + math.log(math.fsum(math.exp(x - top) for x in logs))


def tails(problem: Problem, s: int, t: int = 0) -> Iterator[tuple[list[int], list[int], float]]:
    """Every way to live from s at step t to the horizon: states, actions and the log of the product of p.

    Ragged where a terminal state is entered.  A way that ends up in a dead end is no way.
    """
    if problem.dead(s):
        return
    if problem.terminal[s] or t == problem.horizon - 1:
        yield [s], [], 0.0
        return
    for a, successors in problem.moves(s):
        for j, p in successors:
            for states, actions, log_p in tails(problem, j, t + 1):
                yield [s, *states], [a, *actions], math.log(p) + log_p


def counts(problem: Problem, states: Sequence[int], actions: Sequence[int], t: int = 0) -> np.ndarray:
    """Discounted feature counts as they are, the first step weighing gamma^t."""
    total = np.zeros(problem.n_features)
    if problem.by_state:
        for k, s in enumerate(states):
            total = total + problem.discount ** (t + k) * problem.features[s]
    else:
        for k, (s, a) in enumerate(zip(states, actions, strict=False)):
            total = total + problem.discount ** (t + k) * problem.features[s, a]
    return total


def data_counts(problem: Problem, trajectory: Trajectory) -> np.ndarray:
    """Counts of a trajectory as data: one cut short in an endless discounted problem stands for an endless one."""
    states, actions, goal = trajectory
    total = counts(problem, states, actions)
    cut = problem.horizon is None and problem.discount < 1 and goal is None and not problem.terminal[states[-1]]
    if cut:
        terms = len(states) if problem.by_state else len(states) - 1
        total = total / (1 - problem.discount**terms)
    return total


@dataclass(frozen=True)
class Solution:
    """Value of each state, policy, expected discounted counts and visits from the start.

    values (H, S) and policy (H-1, S, A) with a horizon; (S,) and (S, A) without.  Policy rows of states without a
    finite value, or without a choice, are zero.
    """

    values: np.ndarray
    policy: np.ndarray
    expected_counts: np.ndarray
    visitation: np.ndarray
    trajectories: tuple = ()  # (states, actions, probability), every one of positive probability


def causal_value(problem: Problem, theta: np.ndarray, s: int, t: int) -> tuple[float, dict[int, float]]:
    """V_t(s) and Q_t(s, .) by walking the whole tree below s."""
    if problem.dead(s):
        return -INF, {}
    r = problem.reward(theta)
    here = float(r[s]) if problem.by_state else 0.0
    if problem.terminal[s] or t == problem.horizon - 1:
        return here, {}
    q = {}
    for a, successors in problem.moves(s):
        step = float(r[s]) if problem.by_state else float(r[s, a])
        ahead = sum(p * causal_value(problem, theta, j, t + 1)[0] for j, p in successors)
        q[a] = step + problem.usual(s, a) + problem.discount * ahead
    return add_logs(list(q.values())), q


def enumerate_causal(problem: Problem, theta: np.ndarray) -> Solution:
    """Maximum causal entropy: policies from the tree, all else from the list of every trajectory."""
    values = np.full((problem.horizon, problem.n_states), -INF)
    policy = np.zeros((problem.horizon - 1, problem.n_states, problem.n_actions))
    for t in range(problem.horizon):
        for s in range(problem.n_states):
            values[t, s], q = causal_value(problem, theta, s, t)
            for a, x in q.items():
                if values[t, s] > -INF:
                    policy[t, s, a] = math.exp(x - values[t, s])
    listed = []
    for s in np.flatnonzero(problem.start > 0):
        for states, actions, log_p in tails(problem, int(s)):
            probability = float(problem.start[s]) * math.exp(log_p)
            for t, a in enumerate(actions):
                probability *= policy[t, states[t], a]
            if probability > 0:
                listed.append((states, actions, probability))
    return _summed(problem, values, policy, listed)


def enumerate_noncausal(problem: Problem, theta: np.ndarray) -> Solution:
    """P(zeta | s_0) proportional to exp(theta' f_zeta) times the product of p, over every trajectory from s_0."""
    theta = np.asarray(theta, dtype=float)
    values = np.full((problem.horizon, problem.n_states), -INF)
    policy = np.zeros((problem.horizon - 1, problem.n_states, problem.n_actions))
    listed = []
    for t in range(problem.horizon):
        for s in range(problem.n_states):
            rest = list(tails(problem, s, t))
            logs = [float(theta @ counts(problem, states, actions, t)) + lp for states, actions, lp in rest]
            values[t, s] = add_logs(logs)
            for a in range(problem.n_actions):
                through = [x for x, (_, actions, _) in zip(logs, rest, strict=True) if actions and actions[0] == a]
                if through:
                    policy[t, s, a] = math.exp(add_logs(through) - values[t, s])
            if t == 0 and problem.start[s] > 0:
                for x, (states, actions, _) in zip(logs, rest, strict=True):
                    listed.append((states, actions, float(problem.start[s]) * math.exp(x - values[0, s])))
    return _summed(problem, values, policy, listed)


def _summed(problem: Problem, values: np.ndarray, policy: np.ndarray, listed: list) -> Solution:
    expected = np.zeros(problem.n_features)
    visitation = np.zeros(problem.n_states)
    for states, actions, probability in listed:
        expected += probability * counts(problem, states, actions)
        for t, s in enumerate(states):
            visitation[s] += probability * problem.discount**t
    return Solution(values, policy, expected, visitation, tuple(listed))


# ------------------------------------------------------------ plain iteration


def backup(problem: Problem, reward: np.ndarray, values: np.ndarray, *, hard: bool = False) -> np.ndarray:
    """Q(s, a), -inf where an action is not allowed or may lead to a state worth -inf; with log pi_0 unless `hard`."""
    r = reward[:, None] if problem.by_state else reward
    if problem.reference is not None and not hard:
        r = r + np.log(np.where(problem.reference > 0, problem.reference, 1.0))
    lost = np.isneginf(values)
    q = r + problem.discount * (problem.transitions @ np.where(lost, 0.0, values))
    q = np.broadcast_to(q, problem.allowed.shape).copy()
    q[(problem.transitions @ lost) > 0] = -INF
    q[~problem.allowed | (problem.transitions.sum(axis=2) == 0) | problem.terminal[:, None]] = -INF
    return q


def iterate(problem: Problem, reward: np.ndarray, *, hard: bool = False) -> np.ndarray:
    """The fixed point of the soft (or hard) Bellman equation of an endless problem, by sweeping till it stands.

    Without discount it may not exist: values that keep growing at the same pace are given up.
    """
    alive = living(problem)
    values = np.where(alive, 0.0, -INF)
    values[problem.terminal] = reward[problem.terminal] if problem.by_state else 0.0
    going = alive & ~problem.terminal
    if not going.any():
        return values
    pace = INF
    for sweep in range(1, 400_000):
        q = backup(problem, reward, values, hard=hard)[going]
        new = top = q.max(axis=1)
        if not hard:
            new = top + np.log(np.exp(q - top[:, None]).sum(axis=1))
        change = new - values[going]
        values[going] = new
        if np.abs(change).max() <= 1e-14 * max(1.0, np.abs(new).max()):
            return values
        if problem.discount == 1.0 and sweep % 500 == 0:
            if change.max() > 0.999 * pace > 0:
                break
            pace = change.max()
    raise ArithmeticError("no finite value, or too slow to converge")


def policy_of(problem: Problem, reward: np.ndarray, values: np.ndarray) -> np.ndarray:
    """exp(Q - V), rows summing to one; zero where there is no value or no choice."""
    q = backup(problem, reward, values)
    policy = np.zeros_like(q)
    going = ~np.isneginf(values) & ~problem.terminal
    policy[going] = np.exp(q[going] - values[going, None])
    policy[going] /= policy[going].sum(axis=1, keepdims=True)  # the last digit of V is not to be trusted
    return policy


def visits(problem: Problem, policy: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Sum over t of gamma^t P(s_t = s) of an endless problem, terminal states counted on entry: a dense solve."""
    step = np.einsum("sa,saj->sj", policy, problem.transitions)
    reached = start > 0
    while True:  # only states that can be visited, so that idle loops elsewhere do no harm
        more = reached | ((step[reached] > 0).any(axis=0))
        if (more == reached).all():
            break
        reached = more
    d = np.zeros(problem.n_states)
    block = np.eye(int(reached.sum())) - problem.discount * step[np.ix_(reached, reached)].T
    d[reached] = np.linalg.solve(block, start[reached])
    return d


def solve_endless(problem: Problem, theta: np.ndarray, start: np.ndarray, goal: int | None = None) -> Solution:
    """Soft values, policy, visits and expected counts without a horizon."""
    towards = problem.towards(goal)
    reward = towards.reward(theta)
    values = iterate(towards, reward)
    policy = policy_of(towards, reward, values)
    d = visits(towards, policy, start)
    expected = features_of(towards, policy, d)
    return Solution(values, policy, expected, d)


def features_of(problem: Problem, policy: np.ndarray, visitation: np.ndarray) -> np.ndarray:
    """Expected counts from visits under a stationary policy."""
    if problem.by_state:
        return visitation @ problem.features
    return np.einsum("s,sa,sad->d", visitation, policy, problem.features)


# ------------------------------------------------------------ objective


@dataclass(frozen=True)
class Evaluation:
    value: float
    gradient: np.ndarray
    expected_counts: np.ndarray


def evaluate(
    problem: Problem,
    theta: np.ndarray,
    expert: Sequence[Trajectory],
    *,
    entropy: str = "causal",
    quadratic: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Evaluation:
    """L(theta) - 1/2 theta' Q theta, L the mean of theta' f minus the value of the start, and its gradient."""
    theta = np.asarray(theta, dtype=float)
    n = len(expert)
    w = np.full(n, 1.0 / n) if weights is None else np.asarray(weights, dtype=float) / np.sum(weights)
    observed = sum(w[i] * data_counts(problem, expert[i]) for i in range(n))
    goals = {goal for _, _, goal in expert}
    value, expected = float(theta @ observed), np.zeros(problem.n_features)
    for goal in goals:
        start = np.zeros(problem.n_states)
        for i, (states, _, g) in enumerate(expert):
            if g == goal:
                start[states[0]] += w[i]
        if goal is None and problem.start is not None:
            start = problem.start
        if problem.horizon is None:
            solution = solve_endless(problem, theta, start, goal)
            first = solution.values
        else:
            solver = enumerate_causal if entropy == "causal" else enumerate_noncausal
            solution = solver(replace(problem, start=start), theta)
            first = solution.values[0]
        value -= float(sum(start[s] * first[s] for s in np.flatnonzero(start > 0)))
        expected = expected + solution.expected_counts
    gradient = observed - expected
    if quadratic is not None:
        value -= 0.5 * float(theta @ quadratic @ theta)
        gradient = gradient - quadratic @ theta
    return Evaluation(value, gradient, expected)


def finite_difference(function: Callable[[np.ndarray], float], theta: np.ndarray, h: float = 1e-3) -> np.ndarray:
    """Gradient by the five-point rule."""
    theta = np.asarray(theta, dtype=float)
    gradient = np.zeros_like(theta)
    for k in range(len(theta)):
        e = np.zeros_like(theta)
        e[k] = h
        gradient[k] = (
            function(theta - 2 * e) - 8 * function(theta - e) + 8 * function(theta + e) - function(theta + 2 * e)
        ) / (12 * h)
    return gradient


def double_sum(features: np.ndarray, similarity: np.ndarray, theta: np.ndarray) -> float:
    """Eq. 5 as printed: R = 1/(2n) sum over all pairs of s(i, j) (theta' (f_i - f_j))^2."""
    n = len(features)
    terms = [similarity[i, j] * float(theta @ (features[i] - features[j])) ** 2 for i in range(n) for j in range(n)]
    return math.fsum(terms) / (2 * n)


def pair_matrix(features: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """M with R = 1/2 theta' M theta, pair by pair: M = 1/n sum of s(i, j) (f_i - f_j)(f_i - f_j)'."""
    n, d = np.shape(features)
    total = np.zeros((d, d))
    for i in range(n):
        for j in range(n):
            delta = features[i] - features[j]
            total += similarity[i, j] * np.outer(delta, delta)
    return total / n


# ------------------------------------------------------------ data


def draw(
    problem: Problem,
    policy: np.ndarray,
    start: int,
    length: int,
    rng: np.random.Generator,
    goal: int | None = None,
) -> Trajectory:
    """One trajectory of at most `length` states; stops where it ends."""
    problem = problem.towards(goal)
    states, actions = [int(start)], []
    while len(states) < length and not problem.terminal[states[-1]]:
        s = states[-1]
        pi = policy[len(actions), s] if policy.ndim == 3 else policy[s]
        a = int(rng.choice(problem.n_actions, p=pi / pi.sum()))
        actions.append(a)
        states.append(int(rng.choice(problem.n_states, p=problem.transitions[s, a])))
    return states, actions, goal


def draw_some(problem: Problem, theta: np.ndarray, n: int, seed: int, length: int | None = None) -> list[Trajectory]:
    """n trajectories of the causal soft policy at theta, starts drawn from the problem's own."""
    rng = generator(seed)
    if problem.horizon is None:
        policy = solve_endless(problem, theta, problem.start).policy
    else:
        policy = enumerate_causal(problem, theta).policy
        length = problem.horizon
    starts = rng.choice(problem.n_states, size=n, p=problem.start)
    return [draw(problem, policy, int(s), length, rng) for s in starts]


def columns(trajectories: Sequence[Trajectory]) -> tuple[list[list[int]], list[list[int]], list[int] | None]:
    """States, actions and goals apart; goals None where there are none."""
    goals = [goal for _, _, goal in trajectories]
    return [t[0] for t in trajectories], [t[1] for t in trajectories], None if None in goals else goals


# ------------------------------------------------------------ many digits


def _mp_log_sum(logs: list) -> mp.mpf:
    finite = [x for x in logs if x != -mp.inf]
    if not finite:
        return -mp.inf
    top = max(finite)
    return top + mp.log(mp.fsum(mp.exp(x - top) for x in finite))


def mp_finite(
    problem: Problem, reward: np.ndarray, *, entropy: str = "causal", digits: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Values (H, S) and policy (H-1, S, A) by the backward recursion, in many digits, rounded at the very end."""
    n, horizon = problem.n_states, problem.horizon
    with mp.workdps(digits):
        gamma = mp.mpf(problem.discount)
        causal = entropy == "causal"
        values = [[-mp.inf] * n for _ in range(horizon)]
        policy = np.zeros((horizon - 1, n, problem.n_actions))
        for t in reversed(range(horizon)):
            scale = mp.mpf(1) if causal else gamma**t
            for s in range(n):
                if problem.dead(s):
                    continue
                if problem.terminal[s] or t == horizon - 1:
                    values[t][s] = scale * mp.mpf(float(reward[s])) if problem.by_state else mp.mpf(0)
                    continue
                q = {}
                for a, successors in problem.moves(s):
                    r = scale * mp.mpf(float(reward[s] if problem.by_state else reward[s, a]))
                    ahead = [(mp.mpf(p), values[t + 1][j]) for j, p in successors]
                    if not causal:
                        q[a] = r + _mp_log_sum([mp.log(p) + v for p, v in ahead])
                    elif any(v == -mp.inf for _, v in ahead):
                        q[a] = -mp.inf
                    else:
                        q[a] = r + gamma * mp.fsum(p * v for p, v in ahead)
                values[t][s] = _mp_log_sum(list(q.values()))
                for a, x in q.items():
                    if x != -mp.inf:
                        policy[t, s, a] = float(mp.exp(x - values[t][s]))
        rounded = np.array([[float(v) for v in row] for row in values])
    return rounded, policy


def mp_endless(
    problem: Problem, reward: np.ndarray, *, digits: int = 40, rounds: int = 500
) -> tuple[np.ndarray, np.ndarray]:
    """Values and policy of an endless discounted problem by soft policy iteration (Newton) in many digits."""
    n = problem.n_states
    alive = living(problem)
    with mp.workdps(digits):
        gamma = mp.mpf(problem.discount)
        r = [
            [mp.mpf(float(reward[s] if problem.by_state else reward[s, a])) for a in range(problem.n_actions)]
            for s in range(n)
        ]
        end = [mp.mpf(float(reward[s])) if problem.by_state else mp.mpf(0) for s in range(n)]
        moves = [
            [(a, successors) for a, successors in problem.moves(s) if all(alive[j] for j, _ in successors)]
            for s in range(n)
        ]
        going = [s for s in range(n) if alive[s] and not problem.terminal[s]]
        place = {s: i for i, s in enumerate(going)}
        pi = {(s, a): mp.mpf(1) / len(moves[s]) for s in going for a, _ in moves[s]}
        previous = None
        for _ in range(rounds):
            matrix, right = mp.eye(len(going)), mp.zeros(len(going), 1)
            for s in going:
                for a, successors in moves[s]:
                    w = pi[s, a]
                    if w == 0:
                        continue
                    right[place[s]] += w * (r[s][a] - mp.log(w))
                    for j, p in successors:
                        if problem.terminal[j]:
                            right[place[s]] += w * gamma * mp.mpf(p) * end[j]
                        else:
                            matrix[place[s], place[j]] -= w * gamma * mp.mpf(p)
            solved = mp.lu_solve(matrix, right)
            values = [end[s] if problem.terminal[s] else -mp.inf for s in range(n)]
            for s in going:
                values[s] = solved[place[s]]
            q = {
                (s, a): r[s][a] + gamma * mp.fsum(mp.mpf(p) * values[j] for j, p in successors)
                for s in going
                for a, successors in moves[s]
            }
            improved = {s: _mp_log_sum([q[s, a] for a, _ in moves[s]]) for s in going}
            pi = {(s, a): mp.exp(x - improved[s]) for (s, a), x in q.items()}
            moved = max(abs(improved[s] - values[s]) for s in going)
            if moved < mp.mpf(10) ** (-digits // 2) and previous is not None:
                break
            previous = values
        else:
            raise ArithmeticError("policy iteration did not converge")
        rounded = np.array([float(improved[s]) if s in improved else float(values[s]) for s in range(n)])
        policy = np.zeros((n, problem.n_actions))
        for (s, a), w in pi.items():
            policy[s, a] = float(w)
    return rounded, policy


def mp_path_sums(
    problem: Problem, reward: np.ndarray, goal: int | None = None, *, digits: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Deterministic moves, gamma = 1: z = exp(V) solves a linear system, here in many digits; values and policy.

    z may be far below the smallest double; log z is not.
    """
    problem = problem.towards(goal)
    n = problem.n_states
    states = [int(s) for s in np.flatnonzero(living(problem))]
    place = {s: i for i, s in enumerate(states)}
    values = np.full(n, -INF)
    policy = np.zeros((n, problem.n_actions))
    with mp.workdps(digits):
        rows = [{i: mp.mpf(1)} for i in range(len(states))]  # of I - M, sparse
        right = [mp.mpf(0)] * len(states)
        weight = {}
        for s in states:
            if problem.terminal[s]:
                right[place[s]] = mp.exp(mp.mpf(float(reward[s]))) if problem.by_state else mp.mpf(1)
            for a, successors in problem.moves(s):
                ((j, _),) = successors
                if j in place:
                    weight[s, a] = (mp.exp(mp.mpf(float(reward[s] if problem.by_state else reward[s, a]))), j)
                    rows[place[s]][place[j]] = rows[place[s]].get(place[j], mp.mpf(0)) - weight[s, a][0]
        z = _eliminate(rows, right)
        for s in states:
            values[s] = float(mp.log(z[place[s]]))
        for (s, a), (w, j) in weight.items():
            policy[s, a] = float(w * z[place[j]] / z[place[s]])
    return values, policy


def _eliminate(rows: list[dict], right: list) -> list:
    """Gauss without pivoting: of I - M, M >= 0, every pivot is positive if and only if the path sums are finite."""
    n = len(rows)
    for k in range(n):
        if rows[k][k] <= 0:
            raise ArithmeticError("no finite value")
        for i in range(k + 1, n):
            if k in rows[i]:
                factor = rows[i].pop(k) / rows[k][k]
                for j, x in rows[k].items():
                    if j > k:
                        rows[i][j] = rows[i].get(j, mp.mpf(0)) - factor * x
                right[i] -= factor * right[k]
    z = [mp.mpf(0)] * n
    for k in reversed(range(n)):
        z[k] = (right[k] - mp.fsum(x * z[j] for j, x in rows[k].items() if j > k)) / rows[k][k]
    return z
