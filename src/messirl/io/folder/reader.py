"""Problem folders: states, edges, trajectories, trajectory_meta (.parquet or .csv) and problem.json.

    states            state, f_*; optional terminal, start, x and y, name
    edges             from, to, action; optional probability, g_*
    trajectories      trajectory_id, step, state; optional action
    trajectory_meta   optional: trajectory_id and any columns; goal is used if present
    problem.json      discount; optional horizon, n_actions, state_names, action_names, feature_names, y_axis

State ids are 0 … S − 1 or labels. Features are f(s) of the states or, with `g_*` columns, f(s, a): those of the edge
and of the state entered, in expectation over the state entered. Further columns are kept. A key of problem.json that is
null means that there are no such names; if it is absent, the labels and the names of the columns serve as names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from messirl.data.errors import InputError
from messirl.data.problem import Problem
from messirl.io.folder.atomic_replace import REPLACING, current
from messirl.io.folder.build_problem import all_notes, build
from messirl.io.folder.problem_json import SETTINGS, read_settings
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.table import Table, load_table

TABLES = ("states", "edges", "trajectories", "trajectory_meta")
SUFFIXES = (".parquet", ".csv")


def read_problem(folder: str | os.PathLike[str]) -> Problem:
    """Read the problem in a folder; raise InputError at the first fault."""
    problem = _read(Path(folder), ErrorCollector(), {})
    assert problem is not None, "faults raise an error"
    return problem


def check_problem(folder: str | os.PathLike[str]) -> list[InputError]:
    """Return all faults of a folder: everything that prevents `read_problem` from reading it or a fit from using it."""
    return examine(folder)[1]


def examine(folder: str | os.PathLike[str]) -> tuple[Problem | None, list[InputError], tuple[str, ...]]:
    """Return the problem if it can be read, all faults, and notes on what was interpreted."""
    faults, tables = ErrorCollector(collect=True), dict[str, Table]()
    problem = _read(Path(folder), faults, tables)
    return problem, faults.found, all_notes(faults, tables)


def _read(folder: Path, faults: ErrorCollector, tables: dict[str, Table]) -> Problem | None:
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        faults.add(InputError(str(folder), what, "give a folder with states, edges and trajectories"))
        return None
    place = locate_tables(faults, folder)
    tables |= load_tables(faults, place, TABLES)
    settings = faults.attempt(read_settings, place / SETTINGS)
    problem = build(faults, tables, settings)
    return problem if problem is None or settings is None else replace(problem, y_down=settings.y_down)


def locate_tables(faults: ErrorCollector, folder: Path) -> Path:
    """Return the location of a folder's tables, with a note if their replacement was interrupted."""
    place = current(folder)
    if place != folder:
        faults.notes.append(
            f"{folder.resolve().name}: replacing its tables was interrupted; the new ones are read from "
            f"{REPLACING}; write the folder again to clean up"
        )
    return place


def load_tables(faults: ErrorCollector, folder: Path, names: Iterable[str]) -> dict[str, Table]:
    """Load the tables of these names; all but trajectory_meta are required."""
    found = {}
    for name in names:
        path = faults.attempt(find_table, folder, name, name != "trajectory_meta")
        table = None if path is None else faults.attempt(load_table, path)
        if table is not None:
            found[name] = table
    return found


def find_table(folder: Path, name: str, needed: bool = False) -> Path | None:
    """Return the file of a table, .parquet or .csv; None if there is none and none is needed."""
    found = [path for path in (folder / f"{name}{suffix}" for suffix in SUFFIXES) if path.exists()]
    found = [path for path in found if path.is_file()] or found  # folders of this name are not tables
    if len(found) > 1:
        raise InputError(folder.resolve().name, f"holds both {found[0].name} and {found[1].name}", "keep one of them")
    if not found and needed:
        raise InputError(folder.resolve().name, f"holds neither {name}.parquet nor {name}.csv", "add the table")
    return found[0] if found else None
