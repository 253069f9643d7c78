"""Animals in a labyrinth that branches like a tree: thirsty ones look for water, the others explore."""

from __future__ import annotations

from itertools import product

import numpy as np

from messirl.data.mdp import MDP
from messirl.paper.synthetic.synthetic_problem import Example, joined, labelled, walks, weights

LEVELS, WATER = 5, "LRLR"  # levels of junctions, the last of them dead ends; the junction with the water
WAYS = ["left", "right", "back"]
NAMES = ("f_water", "f_step", "f_deep", "f_dead_end", "f_lit")
THETA = {
    "thirsty": weights(NAMES, (6.0, -1.1, 0.6, -0.6, -0.5)),
    "not thirsty": weights(NAMES, (0.0, -1.1, 0.6, -0.6, -0.5)),
}
ANIMALS, BOUTS, LONGEST = {"thirsty": 8, "not thirsty": 12}, 10, 60


def maze(seed: int = 0) -> Example:
    """Make bouts from the first junction to the water or home, with the columns `animal` and `thirsty`."""
    random = np.random.default_rng(seed)
    turns = ["".join(way) for level in range(LEVELS) for way in product("LR", repeat=level)]
    names, at = ["start", *turns[1:], "home", "water"], {way: s for s, way in enumerate(turns)}
    home, water = len(turns), len(turns) + 1
    moves, features = np.zeros((len(names), 3, len(names))), np.zeros((len(names), len(NAMES)))
    for way, s in at.items():
        dead_end = len(way) == LEVELS - 1
        moves[s, 2, at[way[:-1]] if way else home] = 1.0
        for a, turn in enumerate("" if dead_end else "LR"):
            moves[s, a, at[way + turn]] = 1.0
        features[s, 1:] = 1.0, len(way) / (LEVELS - 1), dead_end, random.random() < 0.35
    moves[at[WATER], 0, water] = features[water, 0] = 1.0
    mdp = MDP(
        moves,
        features,
        discount=0.95,
        terminal=np.arange(len(names)) >= home,
        feature_names=NAMES,
        state_names=names,
        action_names=WAYS,
    )
    begin = np.eye(len(names))[0]
    every = joined(
        walks(mdp, THETA[how], many * BOUTS, random, start=begin, length=LONGEST) for how, many in ANIMALS.items()
    )
    thirsty = np.repeat([True, False], list(ANIMALS.values()))
    called = [f"{'A' if dry else 'B'}{i}" for dry in (True, False) for i in range(1, (thirsty == dry).sum() + 1)]
    meta = {"animal": np.repeat(np.array(called, dtype=object), BOUTS), "thirsty": np.repeat(thirsty, BOUTS)}
    return Example(
        "maze",
        "A labyrinth of 31 junctions, named by the turns that lead there: LR is left, then right. Bouts begin at the "
        f"first junction and end at home or at the water, behind {WATER}. Eight animals were thirsty, twelve were not; "
        "all of them avoid steps, light and dead ends alike (`f_…`). trajectory_meta says which `animal` it was, and "
        "whether it was `thirsty`.",
        labelled(mdp, every, meta, _places(turns)),
        THETA,
        {"not thirsty": "no effect: they avoid the same things, but do not look for water"},
        COMMANDS,
    )


def _places(turns: list[str]) -> np.ndarray:
    """Return coordinates of the junctions, level below level, of home above and of the water below its dead end."""
    xy = [
        (sum((1 if t == "R" else -1) * 2.0 ** (LEVELS - 2 - i) for i, t in enumerate(way)), -len(way)) for way in turns
    ]
    x, y = xy[turns.index(WATER)]
    return np.array([*xy, (0.0, 1.0), (x, y - 1)], dtype=float)


THIRSTY = '--expert "thirsty = true"'
COMMANDS = (
    ("messirl show {folder}", "Show the folder's contents, and the columns to filter by:"),
    (
        f"messirl fit {{folder}} {THIRSTY}",
        "What do thirsty animals prefer? Water. Every true weight lies in its 95 % interval, and out/fit/report.html "
        "shows the routes they take:",
    ),
    (
        'messirl evaluate out/fit {folder} --test "thirsty = false"',
        "The others prefer something else: a uniform policy predicts them better than the fit to thirsty animals:",
    ),
    (
        f'messirl select {{folder}} {THIRSTY} --unlabelled "thirsty = false" --groups animal',
        "Do they help nevertheless? Whole animals are held out, and the unlabelled trajectories have no effect:",
    ),
    (
        f'messirl fit {{folder}} {THIRSTY} --unlabelled "thirsty = false" --reference unlabelled --method maxent',
        "How do thirsty animals differ from the others? Relative to a prior policy estimated from the others, only "
        "water matters:",
    ),
)
