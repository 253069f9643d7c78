"""Rooms of a museum: few guides, many tourists with the same taste, and school classes with another."""

from __future__ import annotations

import numpy as np

from messirl.data.mdp import MDP
from messirl.paper.synthetic.synthetic_problem import WAYS, Example, grid_moves, joined, labelled, walks, weights

PLAN = """
reptiles: fossil    | mammoth: fossil dark   | ice age: fossil view   | garden: sculpture    | tower: view
prints: painting    | armour: arms crowd     | castle: arms dark      | terrace: view crowd  | Japan: Asia painting
organ: music        | court: sculpture view  | Rubens: painting crowd | silk road: Asia dark | lacquer: Asia
violins: music dark | Rome: antiquity crowd  | Egypt: antiquity dark  | mirrors: glass view  | vault: glass dark
entrance: crowd     | Greece: antiquity      | portraits: painting    | jazz: music crowd    | swords: arms
"""  # the floor plan, north on top: the name of a room, and its features
TASTES = {  # of guides, of tourists, of school classes
    "f_painting": (1.3, 1.3, -1.5),
    "f_sculpture": (1.0, 1.0, -0.8),
    "f_antiquity": (1.1, 1.1, -0.8),
    "f_Asia": (0.8, 0.8, -0.6),
    "f_glass": (0.7, 0.7, -1.0),
    "f_music": (0.6, 0.6, 0.2),
    "f_arms": (-0.3, -0.3, 1.4),
    "f_fossil": (-0.4, -0.4, 2.0),
    "f_view": (0.5, 0.5, 0.0),
    "f_crowd": (-0.8, -0.8, 0.8),
    "f_dark": (-0.5, -0.5, 0.8),
}
PER_DAY = {"guide": 14, "tourist": 125, "class": 95}
DAYS, VISIT = 5, 9  # rooms of a visit


def museum(seed: int = 3) -> Example:
    """Make visits of nine rooms, starting anywhere, over five days; `who` is guide, tourist or class."""
    random = np.random.default_rng(seed)
    rooms = [cell.strip().split(": ") for line in PLAN.strip().splitlines() for cell in line.split("|")]
    names = [name for name, _ in rooms]
    features = [[float(taste.removeprefix("f_") in there.split()) for taste in TASTES] for _, there in rooms]
    moves, xy = grid_moves(5, 5)
    mdp = MDP(
        moves,
        np.array(features),
        discount=1.0,
        horizon=VISIT,
        feature_names=list(TASTES),
        state_names=names,
        action_names=WAYS,
    )
    theta = {who: weights(TASTES, [taste[i] for taste in TASTES.values()]) for i, who in enumerate(PER_DAY)}
    anywhere = np.full(len(names), 1.0 / len(names))
    every = joined(walks(mdp, theta[who], DAYS * n, random, start=anywhere) for who, n in PER_DAY.items())
    kinds, many = np.array(list(PER_DAY), dtype=object), list(PER_DAY.values())
    day = np.concatenate([np.repeat(np.arange(1, DAYS + 1), n) for n in many])
    meta = {"who": np.repeat(kinds, DAYS * np.array(many)), "day": day}
    return Example(
        "museum",
        "A museum of 25 rooms with the features `f_…`. Guides know what is worth seeing, and there are few of them; "
        "tourists have the same taste; school classes prefer other things. A visit is nine rooms, starting anywhere; "
        "trajectory_meta says `who` made it, on which `day`.",
        labelled(mdp, every, meta, xy),
        theta,
        {"tourist": "help: they have the guides' taste", "class": "hurt: they seek what guides avoid"},
        COMMANDS,
    )


FEW = '--expert "who = guide and day <= 2"'
COMMANDS = (
    ("messirl check {folder}", "Check the folder; it is valid, and small:"),
    (
        'messirl fit {folder} --expert "who = guide" --table out/museum.tex --force',
        "What do guides prefer? Every true weight lies in its 95 % interval. The table is also written as LaTeX, and "
        "out/fit/report.html shows the reward on the floor plan:",
    ),
    (
        f'messirl select {{folder}} {FEW} --unlabelled "who = tourist"',
        "With the guides of two days only, tourists help: held-out guides are better predicted with them:",
    ),
    (
        f'messirl diagnose {{folder}} {FEW} --unlabelled "who = class"',
        "School classes hurt, and hardly any of them behaves like a guide:",
    ),
    (
        f'messirl fit {{folder}} {FEW} --unlabelled "who = tourist" --test "who = guide and day > 2"',
        "How well are the guides of the other days predicted, with tourists and without?",
    ),
)
