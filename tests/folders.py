"""Small problem folders for the tests of the commands, made anew each time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from roads import network, trips
from worlds import drawn, maze

from messirl import plot
from messirl.data.problem import Problem
from messirl.io.folder.writer import write_problem

ROLES = {"expert": 12, "unlabelled": 20, "test": 8}

PARK = {
    "states.csv": """state,f_green,f_food,x,y
gate,0,0,0,0
pond,1,0,1,0
wood,1,0,1,1
café,0,1,0,1
""",
    "edges.csv": """from,to,action
gate,pond,east
gate,café,north
pond,gate,west
pond,wood,north
wood,pond,south
wood,café,west
café,gate,south
café,wood,east
""",
    "trajectories.csv": """trajectory_id,step,state
anna,0,gate
anna,1,pond
anna,2,wood
anna,3,pond
bob,0,gate
bob,1,café
bob,2,gate
cleo,0,gate
cleo,1,pond
cleo,2,wood
cleo,3,café
""",
    "trajectory_meta.csv": """trajectory_id,age
cleo,9
anna,30
bob,40
""",
    "problem.json": '{"discount": 0.5}',
}


def park(folder: Path, **changes: str) -> Path:
    """A folder of CSV written by hand: labels for ids, three visitors. `changes`: other content of states.csv, …"""
    folder.mkdir(parents=True)
    for name, text in {**PARK, **{key.replace("__", "."): text for key, text in changes.items()}}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def grid(folder: Path, format: str = "parquet") -> Path:
    """4 × 4 tiles with coordinates; experts go right and up, others anywhere. Columns role, and x of the first tile."""
    at = plot.grid(4, 4)
    features = np.column_stack([at[:, 0] / 3, at[:, 1] / 3, (at == [1, 1]).all(axis=1)])
    mdp = maze(4, 4, features, discount=0.9, feature_names=["f_right", "f_up", "f_mud"])
    every, role = None, []
    wants = {"expert": [3.0, 2.0, -2.0], "unlabelled": [1.0, -1.0, 0.0], "test": [3.0, 2.0, -2.0]}
    for seed, (name, n) in enumerate(ROLES.items()):
        some = drawn(mdp, wants[name], n, seed, length=30, start=np.full(16, 1 / 16))
        every = some if every is None else every + some
        role += [name] * n
    assert every is not None
    meta = {"role": np.array(role, dtype=object), "x": at[every.first, 0]}
    write_problem(Problem(mdp, every, meta, xy=at), folder, format=format)
    return folder


def roads(folder: Path) -> Path:
    """5 × 5 crossings with names, features of roads, γ = 1; 60 trips to five goals."""
    mdp = network()
    names = [f"crossing {r}-{c}" for r in range(5) for c in range(5)]
    mdp = mdp.replace(state_names=names)
    some = trips(mdp, 60, 1)
    role = np.array(["expert", "test"] * 30, dtype=object)
    write_problem(Problem(mdp, some, {"role": role}, state_ids=np.array(names, dtype=object)), folder)
    return folder


def read_json(text: str) -> dict[str, object]:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(word: str) -> object:
        raise AssertionError(f"{word} is not JSON")

    found: dict[str, object] = json.loads(text, parse_constant=refuse)
    return found
