"""Writer of problem folders that read back as the same problem.

Existing files are replaced only on request, and then all tables at once: a process that is killed leaves either the old
problem or the new one. State-action features are written as columns `g_*` of the edges, whatever tables they came from;
`feature_names` in problem.json keeps their names if column names cannot.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from messirl._files import check_writable
from messirl._types import Array
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.io.folder.atomic_replace import REPLACING, replace_files
from messirl.io.folder.labels import Labels, called
from messirl.io.folder.parse_tables import EDGE_COLUMNS, STATE_COLUMNS, STEP_COLUMNS
from messirl.io.folder.problem_json import SETTINGS
from messirl.io.folder.reader import SUFFIXES, TABLES
from messirl.io.folder.trajectory_table import step_columns
from messirl.io.tables.csv_dialect import BLANKS
from messirl.io.tables.table import Column, column_of_arrow, column_of_text

OURS = {SETTINGS, *(f"{name}{suffix}" for name in TABLES for suffix in SUFFIXES)}
Columns = dict[str, Any]  # name -> pyarrow.Array


def write_problem(
    problem: Problem,
    folder: str | os.PathLike[str],
    *,
    format: str = "parquet",
    overwrite: bool = False,
    further: Mapping[str, bytes] | None = None,
) -> None:
    """Write the tables of a problem ("parquet" or "csv") and problem.json into a new or empty folder.

    overwrite : replace the problem in the folder, all tables at once; any other file stays
    further : other files, by name, written at the same time

    Tables of states and edges do not keep transitions out of terminal states, nor features of actions that are not
    allowed. Integer ids other than 0 … n − 1 become text. CSV rejects text that looks like a number, empty text, text
    with blanks around it, and times.
    """
    if format not in ("parquet", "csv"):
        raise ValueError(f"format is {format!r}: choose parquet or csv")
    place = Path(folder)
    check_place(place, overwrite=overwrite)
    replace_files(place, {**problem_files(problem, format), **(further or {})}, OURS)


def problem_files(problem: Problem, format: str) -> dict[str, bytes]:
    """Return the files of a problem folder with their content: the tables ("parquet" or "csv"), and problem.json."""
    tables = _tables(problem)
    settings = json.dumps(_settings(problem, tables), ensure_ascii=False, indent=2).encode() + b"\n"
    write = _parquet if format == "parquet" else _csv
    files = {f"{name}.{format}": write(f"{name}.{format}", columns) for name, columns in tables.items()}
    return {**files, SETTINGS: settings}


def check_place(place: Path, *, overwrite: bool) -> None:
    """Raise InputError if a problem may not be written into the folder, OSError if it cannot be."""
    if place.exists() and not place.is_dir():
        raise InputError(str(place), "is a file", "give another folder")
    for entry in sorted(place.iterdir()) if place.exists() else []:
        ours = entry.name in OURS or entry.name == REPLACING
        if entry.name in OURS and entry.is_dir():
            raise InputError(str(place), f"contains a folder named {entry.name}", "give another folder")
        if ours and not overwrite:
            remedy = "give another folder, or `force` (overwrite=True in Python) to replace the problem in it"
            raise InputError(str(place), f"already contains {entry.name}", remedy)
        if not ours and not overwrite and not entry.name.startswith("."):
            what = f"contains {entry.name}, which is not part of a problem"
            raise InputError(str(place), what, "give another folder, or move that file")
    check_writable(place / SETTINGS)


def _tables(problem: Problem) -> dict[str, Columns]:
    for name in ("trajectory_ids", "state_ids", "action_ids"):
        ids = getattr(problem, name)
        often = Counter([] if ids is None else map(str, ids.tolist()))
        if often and (most := often.most_common(1)[0])[1] > 1:
            raise InputError(name, f"{most[0]!r} is there {most[1]} times", "give each an id of its own")
    trajectories, labels = problem.trajectories, Labels.of(problem)
    n = len(trajectories)
    ids = np.arange(n) if problem.trajectory_ids is None else problem.trajectory_ids
    steps = step_columns(trajectories, labels)
    steps["trajectory_id"] = _arrow("trajectory_ids", np.repeat(ids, trajectories.lengths))
    _add_kept(steps, "step", problem.step_columns, STEP_COLUMNS)
    tables = {"states": _states(problem, labels), "edges": _edges(problem, labels), "trajectories": steps}
    meta = {name: _arrow(f"meta column {name!r}", column) for name, column in problem.meta.items()}
    if trajectories.goals is not None:
        meta["goal"] = called(trajectories.goals, labels.states)
    elif "goal" in meta and meta["goal"].null_count < n:
        raise InputError("meta", "has goals, but the trajectories have none", "give both, or drop the column goal")
    if "trajectory_id" in meta:
        raise InputError("meta", "has a column trajectory_id", "rename it: Problem.trajectory_ids is written there")
    if meta:
        tables["trajectory_meta"] = {"trajectory_id": _arrow("trajectory_ids", ids), **meta}
    return tables


def _states(problem: Problem, labels: Labels) -> Columns:
    mdp = problem.mdp
    columns: Columns = {"state": called(np.arange(mdp.n_states), labels.states)}
    if not mdp.state_action:
        for name, values in zip(_feature_columns(mdp), _dense(mdp.features).T, strict=True):
            columns[name] = pa.array(values)
    if mdp.terminal.any():
        columns["terminal"] = pa.array(mdp.terminal)
    if mdp.start is not None:
        columns["start"] = pa.array(mdp.start)
    if problem.xy is not None:
        for name, values in zip("xy", np.asarray(problem.xy, dtype=np.float64).T, strict=True):
            columns[name] = pa.array(values, from_pandas=True)
    if mdp.state_names is not None and list(mdp.state_names) != labels.states:
        columns["name"] = pa.array(mdp.state_names, pa.string())
    meant = [name for name in STATE_COLUMNS if name not in ("x", "y")]  # x or y without the other is an ordinary column
    _add_kept(columns, "state", problem.state_columns, meant, prefix="f_")
    return columns


def _edges(problem: Problem, labels: Labels) -> Columns:
    mdp = problem.mdp
    moves = mdp.transitions.tocoo()
    if moves.nnz == 0:
        raise InputError("mdp", "has no transitions", "give an action to some state that is not terminal")
    source, taken = moves.row.astype(np.int64) // mdp.n_actions, moves.row.astype(np.int64) % mdp.n_actions
    columns: Columns = {
        "from": called(source, labels.states),
        "to": called(moves.col.astype(np.int64), labels.states),
        "action": called(taken, labels.actions),
    }
    if not mdp.deterministic:
        columns["probability"] = pa.array(moves.data)
    if mdp.state_action:
        for name, values in zip(_feature_columns(mdp), _dense(mdp.feature_rows[moves.row]).T, strict=True):
            columns[name] = pa.array(values)
    _add_kept(columns, "edge", problem.edge_columns, EDGE_COLUMNS, prefix="g_")
    return columns


def _add_kept(
    columns: Columns, noun: str, kept: Mapping[str, Array], meant: Sequence[str], prefix: str | None = None
) -> None:
    """Add the columns of the original table that messirl does not use."""
    for name, values in kept.items():
        if name in meant or name in columns or (prefix is not None and name.startswith(prefix)):
            raise InputError(f"{noun}_columns", f"column {name!r} has another meaning", "rename it")
        columns[name] = _arrow(f"{noun} column {name!r}", values)


def _dense(features: Any) -> Array:
    return features.toarray() if sp.issparse(features) else np.asarray(features)


def _feature_columns(mdp: MDP) -> list[str]:
    """Return the column names of features: f_… of states, g_… of state-action pairs."""
    prefix = "g_" if mdp.state_action else "f_"
    columns = [name if name.startswith(prefix) else f"{prefix}{name}" for name in mdp.feature_ids]
    return columns if len(set(columns)) == len(columns) else [f"{prefix}{i}" for i in range(mdp.n_features)]


def _settings(problem: Problem, tables: Mapping[str, Columns]) -> dict[str, Any]:
    """Return the content of problem.json; names are included only if they differ from what the tables imply."""
    mdp = problem.mdp
    settings: dict[str, Any] = {"discount": mdp.discount, "horizon": mdp.horizon}
    if problem.state_ids is not None and mdp.state_names is None:
        settings["state_names"] = None
    labels, names = Labels.of(problem).actions, mdp.action_names
    if labels is not None and names is not None and list(names) != labels:
        raise InputError("action_names", "differ from action_ids", "drop one of them: a table has one name per action")
    used = set(tables["edges"]["action"].to_pylist())
    if labels is None and names is not None:
        settings["action_names"] = list(names)
    elif labels is not None and (names is None or sorted(used) != labels):
        settings["action_names"] = None if names is None else labels
    elif labels is None and used != set(range(mdp.n_actions)):
        settings["n_actions"] = mdp.n_actions
    named = None if mdp.feature_names is None else list(mdp.feature_names)
    if named != _feature_columns(mdp):
        settings["feature_names"] = named
    return {**settings, "y_axis": "down"} if problem.y_down else settings


def _arrow(what: str, values: Any) -> Any:
    try:
        return pa.array(np.asarray(values), from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(what, f"cannot be written ({reason})", "use values of one type") from None


def _parquet(where: str, columns: Columns) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def _csv(where: str, columns: Columns) -> bytes:
    """Encode columns as CSV: UTF-8, commas, quoted text. Reject columns that would read back differently."""
    cells = [_cells(where, name, column_of_arrow(values, where, name)) for name, values in columns.items()]
    lines = [",".join(_quote(name) for name in columns), *(",".join(row) for row in zip(*cells, strict=True))]
    return ("\n".join(lines) + "\n").encode()


def _cells(where: str, name: str, column: Column) -> Sequence[str]:
    kept = column.array().tolist()
    if column.kind == "flag":
        plain = ["" if cell is None else str(cell).lower() for cell in kept]
    elif column.kind == "number":
        plain = ["" if cell != cell else repr(cell) for cell in kept]
    else:
        plain = ["" if cell is None else str(cell) for cell in kept]
    back = column_of_text(pa.array(plain, pa.string()))
    nothing = column.null.all() and column.kind not in ("number", "time")
    same = np.array_equal(back.null, column.null) and (back.kind == column.kind or nothing or name == "name")
    same &= all(cell == cell.strip(BLANKS) for cell in plain)
    if not same and plain:
        what = f"column {name!r} would read back as another type"
        raise InputError(where, what, 'use format="parquet"')
    return [_quote(cell) for cell in plain] if column.kind in ("text", "huge") else plain


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if text else ""
