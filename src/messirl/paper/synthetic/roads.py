"""Streets of a town: trips of commuters, each to its own goal, and of visitors with weaker preferences."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.paper.synthetic.synthetic_problem import WAYS, Example, grid_moves, joined, labelled, walks, weights

STREETS = ("Mill", "Abbey", "Castle", "Station", "River")  # from west to east
CROSS = ("North", "Park", "High", "Church", "South")  # from north to south
GOALS = ("Mill & North", "Castle & High", "Station & South", "River & Park")
NAMES = ("g_minutes", "g_toll", "g_left", "g_road")
THETA = {
    "commuter": weights(NAMES, (-1.2, -1.5, -0.6, -0.8)),
    "visitor": weights(NAMES, (-0.8, -1.0, -0.3, -1.0)),
}
TRIPS = {"commuter": 240, "visitor": 400}


def roads(seed: int = 3) -> Example:
    """Make trips between 25 junctions; `who` is commuter or visitor, `goal` the junction where a trip ends."""
    random = np.random.default_rng(seed)
    moves, xy = grid_moves(len(CROSS), len(STREETS))
    names = [f"{street} & {cross}" for cross in CROSS for street in STREETS]
    mdp = MDP(
        moves,
        _features(moves, xy, random),
        discount=1.0,
        feature_names=NAMES,
        state_names=names,
        action_names=WAYS,
    )
    every = joined(trips(mdp, THETA[who], n, random) for who, n in TRIPS.items())
    kinds = np.repeat(np.array(list(TRIPS), dtype=object), list(TRIPS.values()))
    meta = {"who": kinds, "day": random.integers(1, 6, kinds.size)}
    return Example(
        "roads",
        "A town of 25 junctions. A road takes some minutes, may cost a toll, may have to be entered by a left turn, "
        "and counts as one road (`g_…`). Commuters know all that; visitors have weaker preferences. A trip goes from "
        "anywhere to its own goal; trajectory_meta says `who` made it, on which `day`, and the `goal`.",
        labelled(mdp, every, meta, xy),
        THETA,
        {"visitor": "no effect: the commuters alone determine the weights well enough"},
        COMMANDS,
    )


def trips(mdp: MDP, theta: Mapping[str, float], n: int, random: np.random.Generator) -> Trajectories:
    """Draw n trips from anywhere, as many to each goal, from the soft policy of weights."""
    every, names = np.arange(mdp.n_states), mdp.state_names or ()

    def to(goal: int) -> Trajectories:
        elsewhere = (every != goal) / (mdp.n_states - 1)
        return walks(mdp, theta, n // len(GOALS), random, goal=goal, start=elsewhere)

    return joined(to(names.index(goal)) for goal in GOALS)


def _features(moves: np.ndarray, xy: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw the features of every road: High and Station are quick, and some of their roads cost a toll."""
    features = np.zeros((*moves.shape[:2], len(NAMES)))
    for s, a, to in zip(*np.nonzero(moves), strict=True):
        quick = xy[s, 1] == xy[to, 1] == 2 or xy[s, 0] == xy[to, 0] == 3
        minutes = round(random.uniform(0.8, 2.2) * (0.5 if quick else 1.0), 1)
        toll, left = quick and random.random() < 0.6, random.random() < 0.3
        features[s, a] = minutes, toll, left, 1.0
    return features


COMMUTERS = '--expert "who = commuter"'
COMMANDS = (
    ("messirl show {folder}", "Show the folder's contents, and the columns to filter by:"),
    (
        f"messirl fit {{folder}} {COMMUTERS} --ratio g_minutes/g_toll --table out/roads.tex --force",
        "What do commuters avoid? Every true weight lies in its 95 % interval, and so does the true ratio, 0.8 tolls "
        "per minute:",
    ),
    (
        f"messirl fit {{folder}} {COMMUTERS} --without g_left --no-report",
        "Do left turns matter at all? Without them the likelihood is significantly lower:",
    ),
    (
        f'messirl select {{folder}} {COMMUTERS} --unlabelled "who = visitor"',
        "Visitors have no effect: there are enough commuters:",
    ),
    (
        'messirl sample out/fit -n 20 --goal "Castle & High" --out out/trips.csv --force',
        "New trips to the centre, as commuters would make them:",
    ),
)
