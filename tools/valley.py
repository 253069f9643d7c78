"""Make docs/tutorial/valley.csv, the tracks of the tutorial: made-up deer and dogs whose wishes are known.

    python -m tools.valley

Every half hour a collar writes down where an animal is, in metres, with what grows there and how steep it is. Yearlings
want what old does want, dogs what does avoid.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from messirl import MDP, sample, soft_policy
from messirl.paper.synthetic.synthetic_problem import grid_moves

FILE = Path(__file__).parents[1] / "docs" / "tutorial" / "valley.csv"
SIDE, SQUARE, STATES, DISCOUNT = 8, 100.0, 9, 0.75
MARKS = {"spring": (650.0, 600.0), "road": (150.0, 100.0), "hut": (150.0, 650.0)}
WISHES = {  # of does, per unit of cover and of slope, and per kilometre to the marks
    "f_cover": 1.5,
    "f_slope": -1.2,
    "f_grass": 1.0,
    "f_rock": -0.8,
    "f_noise": -1.5,
    "f_distance_spring": -4.0,
    "f_distance_road": 3.0,
    "f_distance_hut": 2.0,
}
KINDS = {"doe": (16, 1.0), "yearling": (200, 1.0), "dog": (100, -1.5)}  # how many, and how much of these wishes
FIRST = datetime(2026, 5, 4, 5, 0)


def rows(seed: int = 2) -> list[str]:
    """The table, line by line."""
    random = np.random.default_rng(seed)
    moves, at = grid_moves(SIDE, SIDE)
    centres = (at + 0.5) * SQUARE
    far = [np.linalg.norm(centres - mark, axis=1) / 1000 for mark in MARKS.values()]
    ground = np.round(random.beta(0.8, 0.8, (SIDE * SIDE, len(WISHES) - len(MARKS))), 1)
    anywhere = np.full(SIDE * SIDE, 1 / SIDE**2)
    mdp = MDP(moves, np.column_stack([ground, *far]), discount=DISCOUNT, start=anywhere)
    lines, name = ["animal,kind,time,x,y,cover,slope,grass,rock,noise"], 0
    for kind, (many, how_much) in KINDS.items():
        policy = soft_policy(mdp, mdp.reward(how_much * np.array(list(WISHES.values()))))
        for walk in sample(mdp, policy, many, STATES, random_state=int(random.integers(2**31))):
            name += 1
            begins = FIRST + timedelta(days=int(random.integers(20)))
            for step, state in enumerate(walk.states):
                x, y = centres[state] + random.uniform(-35, 35, 2)
                when = f"{begins + timedelta(minutes=30 * step):%Y-%m-%d %H:%M}"
                lines.append(f"{kind}-{name:03d},{kind},{when},{x:.0f},{y:.0f},{','.join(map(str, ground[state]))}")
    return lines


if __name__ == "__main__":
    FILE.write_text("\n".join(rows()) + "\n", encoding="utf-8")
