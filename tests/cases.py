"""Tiny random problems of every kind, with a θ to look at and trajectories: ragged, cut or ended, weighted.

Each has forbidden actions, dead ends that the model avoids and terminal states where its kind allows them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count
from typing import NamedTuple

import numpy as np
import oracle
import oracle_choices
from seeds import generator

from messirl import MDP, Trajectories

KINDS = {
    "finite": {"horizon": 4, "stochastic": True},
    "finite deterministic": {"horizon": 5, "terminal": True, "blocked": True},
    "finite discounted": {"horizon": 4, "stochastic": True, "terminal": True, "blocked": True, "discount": 0.8},
    "finite dead end": {"horizon": 4, "stochastic": True, "terminal": True, "dead_end": True, "discount": 0.9},
    "endless": {"stochastic": True, "discount": 0.8},
    "endless deterministic": {"discount": 0.9, "blocked": True},
    "endless ended": {"stochastic": True, "terminal": True, "dead_end": True, "discount": 0.7},
    "episodic": {"terminal": True, "positive": True, "blocked": True},
    "episodic stochastic": {"stochastic": True, "terminal": True, "positive": True, "dead_end": True},
    "goals": {"goals": True, "positive": True, "blocked": True},
    "goals stochastic": {"goals": True, "stochastic": True, "positive": True, "terminal": True},
    "goals discounted": {"goals": True, "stochastic": True, "positive": True, "discount": 0.8},
}
SAME_AS_COUNTS = ["finite deterministic", "episodic", "goals"]  # deterministic, γ = 1, every trajectory ends
CASES = [(kind, by_state, seed) for kind in KINDS for by_state in (True, False) for seed in (0, 1)]
NAMES = [f"{kind}-{'state' if by_state else 'step'}-{seed}".replace(" ", "-") for kind, by_state, seed in CASES]


class Case(NamedTuple):
    problem: oracle.Problem
    theta: np.ndarray  # a θ with finite values
    expert: list[oracle.Trajectory]
    others: list[oracle.Trajectory]
    weights: np.ndarray  # of the experts, not normalised


def mdp_of(problem: oracle.Problem) -> MDP:
    positional, keywords = problem.arguments()
    mdp = MDP(*positional, **keywords)
    return mdp if problem.reference is None else mdp.with_prior_policy(problem.reference)


def trajectories_of(data: list[oracle.Trajectory], actions: bool = True) -> Trajectories:
    states, taken, goals = oracle.columns(data)
    return Trajectories.from_lists(states, actions=taken if actions else None, goals=goals)


@cache
def case(kind: str, by_state: bool, seed: int) -> Case:
    """Five expert trajectories, six others of another θ; the problem's own start is given without goals.

    Very rare moves and very long ways to an end cost digits, here and in the library, and experts who have no choice
    tell nothing: such draws are left to others.
    """
    number = 97 * seed + 7 * list(KINDS).index(kind) + (3 if by_state else 0)
    drawn_anew = (_drawn_case(kind, by_state, number + 5003 * attempt) for attempt in count())
    return next(found for found in drawn_anew if found is not None and tame(found))


def tame(found: Case) -> bool:
    problem, theta, expert, others, _ = found
    if len(expert) < 5 or len(others) < 6:
        return False
    if len({tuple(states) for states, _, _ in expert}) == 1 or len({s for states, _, _ in expert for s in states}) == 1:
        return False  # what they count has no spread
    if problem.transitions[problem.transitions > 0].min() < 0.03:
        return False
    for goal in {goal for _, _, goal in expert + others}:
        first = sorted({x[0][0] for x in expert + others if x[2] == goal})
        values = oracle_choices.soft_values(problem.towards(goal), theta, first)
        if np.abs(values[np.isfinite(values)]).max() > 100.0:
            return False
    return bool(oracle_choices.log_likelihoods(problem, theta, expert)[0].min() < -1e-6)  # who has a choice


def _drawn_case(kind: str, by_state: bool, number: int) -> Case | None:
    """Of this number; None where values are not finite, as chance may have it with γ = 1."""
    options = dict(KINDS[kind])
    with_goals, discount = options.pop("goals", False), options.pop("discount", 1.0)
    rng = generator(number + 1)
    options |= {"by_state": by_state, "discount": 0.9 if with_goals else discount, "n_features": 2}
    options |= {"n_states": 5} if with_goals else {}
    problem = oracle.random_problem(number, **options)
    problem = replace(problem, discount=discount, start=None if with_goals else problem.start)  # ends are the goals'
    to_an_end = with_goals or (problem.horizon is None and discount == 1.0)

    def some_theta() -> np.ndarray:  # with γ = 1 every reward below −log 3: values are finite
        return -rng.uniform(1.3, 2.5, size=2) if to_an_end else rng.normal(size=2)

    good, bad = some_theta(), some_theta()
    try:
        expert = drawn(problem, good, 5, rng, with_goals)
        if expert and not with_goals:  # where no expert begins, nothing but a penalty says what is worth how much
            known = np.isin(np.arange(problem.n_states), [x[0][0] for x in expert])
            problem = replace(problem, start=problem.start * known / (problem.start @ known))
        others = drawn(problem, bad, 6, rng, with_goals)
    except ArithmeticError:
        return None
    return Case(problem, some_theta(), expert, others, rng.uniform(0.2, 2.0, size=5))


def drawn(problem: oracle.Problem, theta: np.ndarray, n: int, rng: np.random.Generator, goals: bool) -> list:
    """n trajectories of the soft policy, at most 25 long where they may be cut; fewer where too few get to an end."""
    found: list[oracle.Trajectory] = []
    pairs = trips(problem) if goals else [(int(s), None) for s in rng.choice(problem.n_states, 9, p=problem.start)]
    for _ in range(4 * n if pairs else 0):
        first, goal = pairs[int(rng.integers(len(pairs)))]
        cut = goal is None and problem.discount < 1.0
        length = problem.horizon or (int(rng.integers(2, 25)) if cut else 60)
        policy = np.exp(oracle_choices.tables(problem.towards(goal), theta, [first])[0])
        one = oracle.draw(problem, policy if problem.horizon is not None else policy[0], first, length, rng, goal)
        if cut or problem.horizon is not None or problem.towards(goal).terminal[one[0][-1]]:
            found.append(one)
        if len(found) == n:
            break
    return found


def trips(problem: oracle.Problem) -> list[tuple[int, int | None]]:
    """Every (start, goal) from which the goal is reached for certain without a chance of a dead end, if one tries."""
    found = []
    for goal in range(problem.n_states):
        if problem.terminal[goal]:
            continue
        alive = oracle.living(replace(problem.towards(goal), discount=1.0))
        found += [(s, goal) for s in np.flatnonzero(alive) if s != goal]
    return [(int(s), goal) for s, goal in found]


def some_reference(problem: oracle.Problem, seed: int) -> np.ndarray:
    """A random base policy, (S, A): positive where an action is allowed, zero elsewhere and where nothing goes on."""
    rng, usual = generator(4000 + seed), np.zeros((problem.n_states, problem.n_actions))
    for s in range(problem.n_states):
        can = [a for a, _ in problem.moves(s)]
        if can:
            usual[s, can] = 0.9 * rng.dirichlet(np.ones(len(can))) + 0.1 / len(can)
    return usual
