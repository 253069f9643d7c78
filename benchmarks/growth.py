"""How the time grows with states, actions, trajectories, features and goals: time per piece of a problem, small: large.

A ratio of 1 means that the time grows with the size and no faster; 0.5 that a piece of the large problem takes twice as
long. Both sizes are timed in turns, like everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from benchmarks.problems import grid, true_theta
from benchmarks.routes import planner_of
from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import MDP, Trajectories, feature_counts, sample, soft_policy, state_visitation
from messirl.objective import Objective
from messirl.similarity import RBF, penalty_matrix

HORIZON, DISCOUNT = 50, 0.99
ROUNDS = 5


def rows() -> Iterator[Row]:
    yield from states()
    yield from actions()
    yield from trajectories()
    yield from features()
    yield from goals()


def _row(what: str, unit: str, sizes: tuple[int, int], calls: tuple[Callable[[], object], Callable[[], object]]) -> Row:
    """The large one against the small one, each divided by its size."""
    small, large = sizes
    times = compare(calls[1], calls[0], ROUNDS)
    ours, other = times.ours / large, times.other / small
    label = f"growth, {what}: {small:,} to {large:,} {unit}"
    return Row(label, f"{seconds(ours)} each", f"{seconds(other)} each", other / ours)


def _evaluation(mdp: MDP, reward: np.ndarray) -> Callable[[], object]:
    return lambda: state_visitation(mdp, soft_policy(mdp, reward))


def states() -> Iterator[Row]:
    for name, horizon in ((f"horizon {HORIZON}", HORIZON), ("endless, γ 0.99", None)):
        made = [grid(side, discount=DISCOUNT, horizon=horizon) for side in (32, 128)]
        calls = [_evaluation(mdp, mdp.reward(true_theta())) for mdp in made]
        sizes = made[0].n_states, made[1].n_states
        yield _row(f"one evaluation, {name}", "states", sizes, (calls[0], calls[1]))


def random_moves(n_states: int, n_actions: int, reached: int = 4, seed: int = 0) -> MDP:
    """Every action leads to a few states drawn at random."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, n_states, (n_states * n_actions, reached))
    chances = random.dirichlet(np.ones(reached), n_states * n_actions)
    row = np.repeat(np.arange(n_states * n_actions), reached)
    moves = sp.coo_array((chances.ravel(), (row, ends.ravel())), shape=(n_states * n_actions, n_states))
    features, start = random.normal(size=(n_states, 8)), np.full(n_states, 1.0 / n_states)
    return MDP(sp.csr_array(moves), features, start=start, discount=DISCOUNT, horizon=HORIZON)


def actions() -> Iterator[Row]:
    sizes = 2, 8
    made = [random_moves(2000, n) for n in sizes]
    calls = [_evaluation(mdp, mdp.reward(np.linspace(-1.0, 1.0, 8))) for mdp in made]
    yield _row("one evaluation, 2,000 states", "actions", sizes, (calls[0], calls[1]))


def trajectories() -> Iterator[Row]:
    mdp = grid(16, discount=DISCOUNT, horizon=HORIZON)
    many = sample(mdp, soft_policy(mdp, mdp.reward(true_theta())), 20_000, HORIZON, 0)
    sizes = 2_000, 20_000
    some = [many[:n] for n in sizes]
    yield _row(
        "feature counts", "trajectories", sizes, (lambda: _counted(mdp, some[0]), lambda: _counted(mdp, some[1]))
    )
    counts, sizes = feature_counts(mdp, many), (500, 2_000)
    parts = [counts[:n] for n in sizes]
    calls = (lambda: penalty_matrix(parts[0], RBF("median")), lambda: penalty_matrix(parts[1], RBF("median")))
    yield _row("exact penalty, by pairs", "pairs", (sizes[0] ** 2, sizes[1] ** 2), calls)


def _counted(mdp: MDP, some: Trajectories) -> np.ndarray:
    return feature_counts(mdp, some)


def features() -> Iterator[Row]:
    sizes, calls = (64, 512), []
    for d in sizes:
        plain = grid(32, discount=DISCOUNT, horizon=HORIZON)
        mdp = plain.replace(features=np.random.default_rng(0).normal(size=(plain.n_states, d)))
        theta = np.random.default_rng(1).normal(scale=0.05, size=d)
        expert = sample(mdp, soft_policy(mdp, mdp.reward(theta)), 50, HORIZON, 0)
        objective = Objective.from_trajectories(mdp, expert)
        calls.append(lambda objective=objective, theta=theta: objective(theta))
    yield _row("value and gradient, 32²", "features", sizes, (calls[0], calls[1]))


def goals() -> Iterator[Row]:
    sizes = 20, 180
    planners = [planner_of(n) for n in sizes]
    calls = [lambda planner=planner, reward=reward: planner(reward) for planner, reward in planners]
    yield _row("route choice, 50² crossings", "goals", sizes, (calls[0], calls[1]))
