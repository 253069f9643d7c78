"""Gymnasium's MountainCar-v0 from recorded trajectories alone: five of an expert and fifty mixed ones.

The expert pushes the way the car moves, and is at the goal after about 120 steps. A mixed recording does so too, but
for a share ε ~ U(0, 1) of its steps, ε its own, takes an action at random instead: some nearly expert, some a random
walk. Every policy learnt drives the real car for 20 episodes of at most 200 steps; the return is minus their steps.

    FittedMESSI, λ0 = 0.05 or 0    fitted value iteration; RadialGrid features
    grid MaxEnt                    observations in 40 × 40 boxes, dynamics counted, the same features at their centres
    cloning                        a forest from observation to action, of the expert's steps or of all
    random, expert                 for comparison

Policies are stochastic and are followed as such ("drawn"), and once more by their likeliest action ("likeliest").

python -m studies.mountaincar --jobs 2
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from messirl._types import Floats
from messirl.app.report.common.method_style import WIDTH
from messirl.dynamics import FittedMESSI, estimate_mdp
from messirl.dynamics.state_features import RadialGrid
from messirl.estimators import MaxEntIRL
from messirl.io.recordings.discretise import Grid, discretise
from messirl.io.recordings.recording import Recording
from messirl.paper.experiments.curves import interval
from messirl.planning import soft_policy
from studies.common import Rows, column, draws, options, save_figure, write

Policy = Callable[[Floats], Floats]  # states (n, 2) to probabilities of the three actions (n, 3)

EXPERTS, MIXED, STEPS, EPISODES = 5, 50, 200, 20
DISCOUNT = 0.99  # an effective horizon of 100 steps, the time it takes
CENTRES, ITERATIONS = 6, 50  # no clear gain from 10 centres (pilot seeds 1, 2) or 150 iterations (pilot seed 1)
BOXES, ON_GRID = 40, 150  # the best of 10, 20, 40 and 60 boxes on the pilot seeds 1 to 3
WAYS = {
    "expert": "expert",
    "cloning expert": "cloning, expert's steps",
    "cloning all": "cloning, all steps",
    "fitted MESSI": "FittedMESSI, λ0 = 0.05",
    "fitted MaxEnt": "FittedMESSI, λ0 = 0",
    "grid MaxEnt": "MaxEnt on a grid",
    "random": "random",
}


def pump(states: Floats) -> Floats:
    """The expert: push the way the car moves."""
    return np.eye(3)[np.where(states[:, 1] >= 0, 2, 0)]


def uniform(states: Floats) -> Floats:
    return np.full((len(states), 3), 1.0 / 3.0)


def noisy(epsilon: float) -> Policy:
    """The expert, but for a share ε of the steps."""
    return lambda states: (1.0 - epsilon) * pump(states) + epsilon * uniform(states)


def drive(policies: list[Policy], seed: int, steps: int = STEPS, likeliest: bool = False) -> list[Recording]:
    """One episode of each policy in the environment; a policy in the list several times is asked once a step."""
    import gymnasium

    random = np.random.default_rng(seed)
    cars = [gymnasium.make("MountainCar-v0").unwrapped for _ in policies]
    seen = [[np.asarray(car.reset(seed=int(random.integers(2**31)))[0], dtype=float)] for car in cars]
    taken: list[list[int]] = [[] for _ in cars]
    ended = np.zeros(len(cars), dtype=bool)
    groups = [np.flatnonzero([other is policy for other in policies]) for policy in dict.fromkeys(policies)]
    for _ in range(steps):
        for group in groups:
            going = group[~ended[group]]
            if going.size == 0:
                continue
            chances = policies[going[0]](np.stack([seen[i][-1] for i in going]))
            draws_ = (random.random(going.size)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
            for i, action in zip(going, chances.argmax(axis=1) if likeliest else draws_, strict=True):
                after, _, ended[i], *_ = cars[i].step(int(action))
                seen[i].append(np.asarray(after, dtype=float))
                taken[i].append(int(action))
    return [
        Recording(np.stack(states), np.array(actions), bool(end), not end, id=i)
        for i, (states, actions, end) in enumerate(zip(seen, taken, ended, strict=True))
    ]


def recorded(seed: int, n_expert: int = EXPERTS, n_mixed: int = MIXED) -> tuple[list[Recording], list[Recording]]:
    """The data of one run: the expert's recordings and the mixed ones."""
    noise = np.random.default_rng(seed).uniform(size=n_mixed)
    return drive([pump] * n_expert, seed), drive([noisy(x) for x in noise], seed + 500_000)


def learn(way: str, expert: list[Recording], mixed: list[Recording], seed: int) -> Policy:
    """The policy that a method learns from the recordings."""
    if way in ("expert", "random"):
        return pump if way == "expert" else uniform
    if way.startswith("cloning"):
        data = expert if way == "cloning expert" else expert + mixed
        points, actions = (
            np.concatenate(x) for x in zip(*((r.observations[:-1], r.actions) for r in data), strict=True)
        )
        forest = ExtraTreesClassifier(100, min_samples_leaf=5, random_state=seed).fit(points, actions)
        return lambda states: forest.predict_proba(states) @ np.eye(3)[forest.classes_]
    features = RadialGrid.fit(np.concatenate([r.observations for r in expert + mixed]), CENTRES)
    if way == "grid MaxEnt":
        return _on_grid(features, expert, mixed)
    model = FittedMESSI(
        features,
        objective="counts",
        lambda0=0.05 if way == "fitted MESSI" else 0.0,
        discount=DISCOUNT,
        max_iter=ITERATIONS,
        random_state=seed,
    )
    return model.fit(expert, mixed).policy


def _on_grid(features: RadialGrid, expert: list[Recording], mixed: list[Recording]) -> Policy:
    """Maximum entropy IRL on boxes with counted dynamics; the goal is one more state."""
    grid = Grid.fit(expert + mixed, BOXES)
    every = discretise(expert + mixed, grid, end_state=grid.n_states)
    goal = np.concatenate([r.observations[-1:] for r in expert]).mean(axis=0)
    mdp = estimate_mdp(
        every,
        features(np.vstack([grid.centres, goal])),
        n_actions=3,
        prior=1.0,
        discount=DISCOUNT,
        terminal=np.arange(grid.n_states + 1) == grid.n_states,
    ).mdp
    theta = MaxEntIRL(objective="counts", max_iter=ON_GRID).fit(mdp, every[: len(expert)]).theta_
    table = soft_policy(mdp, mdp.reward(theta))
    table = np.where(table.sum(axis=1, keepdims=True) > 0.5, table, 1.0 / 3.0)
    return lambda states: table[grid.transform(states)]


def one(seed: int) -> Rows:
    expert, mixed = recorded(seed)
    rows = []
    for way in WAYS:
        policy = learn(way, expert, mixed, seed)
        for followed in ("drawn", "likeliest"):
            drives = drive([policy] * EPISODES, seed + 1_000_000, likeliest=followed == "likeliest")
            rows.append({"way": way, "followed": followed, "seed": seed,
                         "return": -float(np.mean([len(r) for r in drives])),
                         "arrived": float(np.mean([r.terminated for r in drives]))})  # fmt: skip
    return rows


def summary(rows: Rows) -> Rows:
    """Mean and 95 % interval over the seeds."""
    out = []
    for way in WAYS:
        for followed in ("drawn", "likeliest"):
            where = {"way": way, "followed": followed}
            found = interval(column(rows, "return", **where))
            arrived = float(column(rows, "arrived", **where).mean())
            out.append({**where, "seeds": found.n, "return": found.mean, "low": found.low, "high": found.high,
                        "arrived": arrived})  # fmt: skip
    return out


def draw(table: Rows) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    ax = figure.subplots()
    looks = (
        (-0.13, "drawn", "actions drawn", "#0072B2", "o"),
        (0.13, "likeliest", "likeliest action", "#D55E00", "s"),
    )
    for shift, followed, label, colour, marker in looks:
        here = [row for row in table if row["followed"] == followed]
        mean = np.array([row["return"] for row in here])
        error = [mean - [row["low"] for row in here], [row["high"] for row in here] - mean]
        at = np.arange(len(here)) + shift
        ax.errorbar(mean, at, xerr=error, fmt=marker, color=colour, capsize=2, label=label)
    ax.set_yticks(range(len(WAYS)), list(WAYS.values()))
    ax.invert_yaxis()
    ax.set_xlabel("return in MountainCar-v0 (minus the steps, 200 at most)")
    ax.legend(loc="lower right")
    return figure


def save(table: Rows, out: Path) -> None:
    write(table, out / "mountaincar.csv")
    save_figure("mountaincar", lambda: draw(table), out)


def main() -> None:
    arguments = options((__doc__ or "").splitlines()[0], runs=10).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    table = summary(draws(one, [(seed,) for seed in seeds], arguments.jobs))
    save(table, arguments.out)
    for row in table:
        print("{way:15} {followed:10} {return:8.1f} [{low:.1f}, {high:.1f}], {arrived:.0%} arrive".format(**row))


if __name__ == "__main__":
    main()
