"""Problem folders: states, edges, trajectories, trajectory_meta (.parquet or .csv) and problem.json.

    states            state, f_*; optional terminal, start, x and y, name; further columns are kept
    edges             from, to, action; optional probability, g_*
    trajectories      trajectory_id, step, state; optional action; sorted
    trajectory_meta   optional: trajectory_id and any columns; goal is used if present
    problem.json      discount; optional horizon, n_actions, state_names, action_names, feature_names

States are called 0 … S − 1 or by labels. Features are f(s) of the states or, with `g_*` columns, of the steps: what the
edge has, and what the state entered has, in expectation over the state entered. A key of problem.json that is null says
that there are no such names; one that is absent, that labels and the names of columns are the names.
"""

from __future__ import annotations

import os
from pathlib import Path

from messirl.io.build import build
from messirl.io.checks import Faults
from messirl.io.errors import InputError
from messirl.io.problem import Problem
from messirl.io.settings import SETTINGS, read_settings
from messirl.io.tables import Table, load_table

TABLES = ("states", "edges", "trajectories", "trajectory_meta")
SUFFIXES = (".parquet", ".csv")


def read_problem(folder: str | os.PathLike[str]) -> Problem:
    """The problem in a folder; InputError at the first thing that is wrong with it."""
    problem = _read(Path(folder), Faults())
    assert problem is not None, "what is wrong was raised"
    return problem


def check_problem(folder: str | os.PathLike[str]) -> list[InputError]:
    """Everything that is wrong with a folder; an empty list if `read_problem` reads it."""
    faults = Faults(collect=True)
    _read(Path(folder), faults)
    return faults.found


def _read(folder: Path, faults: Faults) -> Problem | None:
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "is not there"
        faults.add(InputError(str(folder), what, "give the folder that holds states, edges and trajectories"))
        return None
    tables: dict[str, Table] = {}
    for name in TABLES:
        path = faults.attempt(_find, folder, name)
        table = None if path is None else faults.attempt(load_table, path)
        if table is not None:
            tables[name] = table
    settings = faults.attempt(read_settings, folder / SETTINGS)
    return build(faults, tables, settings)


def _find(folder: Path, name: str) -> Path | None:
    found = [path for path in (folder / f"{name}{suffix}" for suffix in SUFFIXES) if path.exists()]
    if len(found) > 1:
        raise InputError(folder.name, f"holds both {found[0].name} and {found[1].name}", "keep one of them")
    if not found and name != "trajectory_meta":
        raise InputError(folder.name, f"holds neither {name}.parquet nor {name}.csv", "add the table")
    return found[0] if found else None
