"""Are the intervals of `estimation_table` right with few experts?

python -m studies.few_experts --runs 1000: samples of 5 to 30 experts from a grid with known weights, in three kinds of
problem and two sizes. Every draw is fitted and gives 95 % intervals by `conf_int`, clustered by individual. A table
counts how often the interval of a feature without effect leaves out the truth ("false claims": it would be said to be
preferred or avoided), and how often intervals of the other features cover it.

Where individuals differ, the weights of each are drawn around the common ones, and the truth is the maximiser of the
expected likelihood: a fit to many individuals. Draws whose likelihood has no finite maximum make no claim; their share
is counted, and coverage is that of the other draws.
"""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any

import numpy as np

from messirl import MDP, MaxEntIRL, Trajectories, estimation_table, sample, soft_policy, state_visitation
from messirl.data.feature_scale import feature_spread
from messirl.planning import NoFiniteValue
from studies.common import column, options, resumed, write

EXPERTS = (5, 8, 16, 30)
FEWER = (2, 3)  # of the fit that sentences rest on
SIZES = {"one each": (1,), "three each": (3,), "1 to 8 each": (1, 2, 3, 8)}  # trajectories of an individual
KINDS = ("discounted", "horizon", "discount 1")
GRIDS = {"small": (5, 2), "large": (11, 4)}  # side, and number of features without effect
METHODS = {
    "choices": {"theta_max": None},
    "choices, weak prior": {"theta_prior": 10.0},
    "choices, ridge 0.05": {"ridge": 0.05},
    "counts": {"objective": "counts", "theta_max": None},
}
DIFFER = 0.25  # standard deviation of individual weights, in units of each feature
BOARDS = 8  # problems per cell
MANY = 2000  # individuals that the truth is fitted to where they differ


def board(kind: str, size: str, number: int) -> tuple[MDP, Any, int]:
    """A grid, the true weights, and how many features (the first ones) have no effect."""
    side, nulls = GRIDS[size]
    rng = np.random.default_rng([number, len(kind), side])
    at = np.array([(i % side, i // side) for i in range(side * side)])
    moves = np.zeros((side * side, 4, side * side))
    for s, (x, y) in enumerate(at):
        for a, (dx, dy) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
            moves[s, a, min(max(x + dx, 0), side - 1) + side * min(max(y + dy, 0), side - 1)] = 1.0
    marks = ((side - 2, side - 2), (1, 1))
    near = [np.linalg.norm(at - mark, axis=1) / side for mark in marks]
    texture = np.round(rng.beta(0.8, 0.8, (side * side, nulls + 1)), 1)
    features, truth = np.column_stack([texture, *near]), np.array([0.0] * nulls + [-1.5, -4.0, 2.0])
    extra: dict[str, Any] = {"discount": 0.8}
    if kind == "horizon":
        extra = {"discount": 1.0, "horizon": 10}
    if kind == "discount 1":
        extra = {"discount": 1.0, "terminal": np.arange(side * side) == side * side - 1}
        features, truth = (
            np.column_stack([features, np.ones(side * side)]),
            np.array([0.0] * nulls + [-1.0, -2.0, 0.5, -2.2]),
        )
    begin = np.ones(side * side)
    if kind == "discount 1":
        begin[-1] = 0.0
    return MDP(moves, features, start=begin / begin.sum(), **extra), truth, nulls


def individual(mdp: MDP, truth: Any, rng: np.random.Generator, *, differ: bool) -> Any:
    """The policy of an individual; weights by which trips hardly end (three crossings of the grid) are drawn again."""
    for _ in range(1000):
        own = truth + differ * DIFFER * rng.standard_normal(truth.size) / feature_spread(mdp)
        if mdp.discount == 1.0 and mdp.horizon is None:
            own[-1] = truth[-1]  # the cost of a step
        try:
            policy = soft_policy(mdp, mdp.reward(own))
        except NoFiniteValue:
            continue
        if mdp.discount < 1.0 or mdp.horizon is not None or state_visitation(mdp, policy).sum() < 3 * mdp.n_states**0.5:
            return policy
    raise ValueError("the problem has no value under these weights")


def drawn(mdp: MDP, truth: Any, n: int, sizes: Any, rng: np.random.Generator, *, differ: bool) -> tuple[Any, Any]:
    """Trajectories of n individuals, and whose each is."""
    length = 12 if mdp.horizon is None and mdp.discount < 1.0 else None
    common = None if differ else individual(mdp, truth, rng, differ=False)
    many, parts = rng.choice(sizes, n), []
    for k in many:
        policy = common if common is not None else individual(mdp, truth, rng, differ=True)
        found = sample(mdp, policy, int(k), length, random_state=int(rng.integers(2**31)))
        parts += [found[i] for i in range(len(found))]
    states, actions, _ = zip(*parts, strict=True)
    return Trajectories.from_lists(states, actions), np.repeat(np.arange(n), many)


@cache
def aim(kind: str, size: str, number: int, differ: bool) -> tuple[MDP, Any, int]:
    """The problem, what estimates aim at, and the number of features without effect."""
    mdp, truth, nulls = board(kind, size, number)
    if not differ:
        return mdp, truth, nulls
    every, _ = drawn(mdp, truth, MANY, (4,), np.random.default_rng([number, 99]), differ=True)
    return mdp, MaxEntIRL(theta_max=None).fit(mdp, every).theta_, nulls


def one(kind: str, size: str, sizes: str, differ: bool, n: int, method: str, number: int, runs: int) -> Any:
    """A row: of how many draws on one board, counts of claims and of what is covered."""
    mdp, goal, nulls = aim(kind, size, number, differ)
    true = board(kind, size, number)[1]
    rng = np.random.default_rng([number, n, len(sizes), int(differ), 2026])
    false = covered = finite = 0.0
    freedom = []
    for _ in range(runs):
        seen, whose = drawn(mdp, true, n, SIZES[sizes], rng, differ=differ)
        model = MaxEntIRL(**METHODS[method]).fit(mdp, seen)
        table = estimation_table(model, seen, groups=whose)
        low, high = table.conf_int().T
        known = np.isfinite(low) & model.converged_
        false += float(((low > goal) | (high < goal))[:nulls][known[:nulls]].sum()) / nulls
        finite += float(known.all())
        if known.all():
            covered += float(((low <= goal) & (goal <= high)).mean())
            freedom.append(float(np.median(table.degrees_of_freedom)))
    key = {"kind": kind, "size": size, "sizes": sizes, "differ": int(differ), "experts": n, "method": method}
    told = {"runs": runs, "false": false, "covered": covered, "finite": finite}
    return [key | {"board": number} | told | {"freedom": float(np.mean(freedom)) if freedom else 0.0}]


def cells() -> list[tuple[Any, ...]]:
    """All cells, but for the board and the number of draws."""
    out = []
    for kind in KINDS:
        for size in GRIDS:
            for sizes in SIZES:
                for differ in (False, True):
                    if differ and sizes == "one each":
                        continue
                    for n in (*FEWER, *EXPERTS):
                        for method in METHODS:
                            if n in FEWER and method != "choices, weak prior":
                                continue
                            if method != "choices" and (
                                sizes == "three each" or (differ and method != "choices, weak prior")
                            ):
                                continue
                            out.append((kind, size, sizes, differ, n, method))
    return out


def summary(rows: Any) -> list[dict[str, Any]]:
    """One row per cell, over its boards."""
    names = ("kind", "size", "sizes", "differ", "experts", "method")
    out = []
    for key in dict.fromkeys(tuple(row[name] for name in names) for row in rows):
        own = dict(zip(names, key, strict=True))
        runs, false, covered, finite = (
            float(column(rows, name, **own).sum()) for name in ("runs", "false", "covered", "finite")
        )
        told = {"draws": int(runs), "false claims": false / runs, "coverage": covered / max(finite, 1.0)}
        told |= {"finite": finite / runs, "degrees of freedom": float(column(rows, "freedom", **own).mean())}
        out.append(own | told)
    return out


def main() -> None:
    parser: argparse.ArgumentParser = options(__doc__ or "", runs=1000)
    parser.add_argument("--only", default="", help="cells whose text holds this")
    arguments = parser.parse_args()
    runs = arguments.runs // BOARDS
    tasks = [(*cell, b, runs) for cell in cells() for b in range(BOARDS) if arguments.select_kinds in repr(cell)]
    names = ("kind", "size", "sizes", "differ", "experts", "method", "board")
    about = [dict(zip(names, (*task[:3], int(task[3]), *task[4:7]), strict=True)) for task in tasks]
    rows = resumed(one, tasks, about, arguments.jobs, arguments.out / "few-experts-parts.csv")
    found = summary(rows)
    write(found, arguments.out / "few-experts.csv")
    for row in found:
        print(*(f"{value:.3f}" if isinstance(value, float) else value for value in row.values()))


if __name__ == "__main__":
    main()
