"""The four tables of a problem: states, edges, steps of trajectories, and metadata of trajectories.

One function per table. Each checks its table by itself and against the ids in the tables read before.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from messirl._types import Array, Flags, Floats, Ints
from messirl.data.mdp_validation import SUM_TOLERANCE
from messirl.io.folder.problem_json import LARGEST
from messirl.io.tables.columns import (
    codes,
    flag_column,
    has_columns,
    id_column,
    note_misspelt_columns,
    note_misspelt_features,
    number_column,
    repeated,
    text_column,
)
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.label_index import Ids
from messirl.io.tables.step_order import Order, read_order
from messirl.io.tables.table import Table

FARTHEST = 1e100  # largest coordinate: keeps squared distances finite
STATE_COLUMNS = ("state", "terminal", "start", "x", "y", "name")
EDGE_COLUMNS = ("from", "to", "action", "probability")
STEP_COLUMNS = ("trajectory_id", "step", "state", "action")


@dataclass(eq=False)
class States:
    """The table of states, in the order of their indices."""

    ids: Ids | None = None
    features: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    feature_names: list[str] = field(default_factory=list)
    terminal: Flags = field(default_factory=lambda: np.zeros(0, dtype=bool))
    start: Floats | None = None
    names: list[str] | None = None
    xy: Floats | None = None
    columns: dict[str, Array] = field(default_factory=dict)


@dataclass(eq=False)
class Edges:
    """The table of edges: indices of states and actions, probabilities, and features (E, d)."""

    actions: Ids
    source: Ints
    target: Ints
    action: Ints
    probability: Floats
    features: Floats
    feature_names: list[str]
    columns: dict[str, Array]


@dataclass(eq=False)
class Steps:
    """The table of trajectories, in its order: states, actions, and further columns, one entry per state."""

    order: Order
    states: Ints
    actions: Ints | None
    columns: dict[str, Array]


def read_states(faults: ErrorCollector, table: Table) -> States:
    """Read `state`, `f_*`, and optionally `terminal`, `start`, `x` and `y`, `name`; any further column is kept."""
    found = States(feature_names=[name for name in table.names if name.startswith("f_")])
    order: Any = slice(None)
    if table.n_rows == 0:
        faults.add(table.error("has no rows", "give one row per state"))
    elif has_columns(faults, table, "state"):
        found.ids, order = _state_ids(faults, table)
    found.features = _matrix(faults, table, found.feature_names)[order]
    found.terminal = np.zeros(table.n_rows, dtype=bool)
    if "terminal" in table.cells:
        found.terminal = flag_column(faults, table, "terminal")[order]
    if "start" in table.cells:
        found.start = _distribution(faults, table)[order]
    if "name" in table.cells:
        names = text_column(faults, table, "name")
        if names is not None:
            shown = table.column("name").show
            again = repeated(np.array(names, dtype=object))
            faults.rows(table, again, lambda row: f"name {shown(row)} occurs twice", "use distinct names")
            found.names = np.array(names, dtype=object)[order].tolist()
    used = {*STATE_COLUMNS, *found.feature_names}
    if "x" in table.cells and "y" in table.cells:
        found.xy = np.column_stack([_coordinates(faults, table, name)[order] for name in ("x", "y")])
    else:
        used -= {"x", "y"}
    found.columns = {name: values[order] for name, values in _kept(faults, table, used).items()}
    note_misspelt_columns(faults, table, found.columns, STATE_COLUMNS[1:])
    note_misspelt_features(faults, table, found.columns, "f_")
    return found


def _coordinates(faults: ErrorCollector, table: Table, name: str) -> Floats:
    """Read a column of coordinates, NaN where empty; values too large to draw a map are faults."""
    values = number_column(faults, table, name, null_ok=True)
    far = np.isfinite(values) & (np.abs(values) > FARTHEST)
    faults.rows(table, far, lambda row: f"{name} is {values[row]:g}", f"give coordinates up to {FARTHEST:g}")
    return values


def _kept(faults: ErrorCollector, table: Table, used: Container[str]) -> dict[str, Array]:
    """Return the columns that messirl does not use, unchanged."""
    columns = {name: faults.attempt(table.column, name) for name in table.names if name not in used}
    return {name: column.array() for name, column in columns.items() if column is not None}


def _state_ids(faults: ErrorCollector, table: Table) -> tuple[Ids | None, Any]:
    """Return the ids of the states, and the rows in the order of their indices."""
    column, n = id_column(faults, table, "state"), table.n_rows
    if column is None:
        return None, slice(None)
    again = repeated(codes(column))
    faults.rows(table, again, lambda row: f"state {column.show(row)} occurs twice", "give one row per state")
    if column.kind == "text":
        return Ids("state", n, column.text), slice(None)
    outside = (column.values < 0) | (column.values >= n)
    remedy = f"number the {n} states from 0 to {n - 1}, or label them with text"
    faults.rows(table, outside, lambda row: f"state {column.show(row)} is not one of 0 … {n - 1}", remedy)
    return Ids("state", n), np.argsort(column.values, kind="stable")


def _matrix(faults: ErrorCollector, table: Table, names: list[str]) -> Floats:
    columns = [number_column(faults, table, name) for name in names]
    return np.column_stack(columns) if columns else np.zeros((table.n_rows, 0))


def _distribution(faults: ErrorCollector, table: Table) -> Floats:
    """Read the weights of the initial state, normalised to sum to one."""
    weights = number_column(faults, table, "start")
    faults.rows(table, weights < 0, lambda row: f"start is {weights[row]:g}", "weights must be >= 0")
    if not np.all(weights >= 0):
        return weights
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not 0 < total < np.inf:
        remedy = "give some state a positive weight" if total == 0 else "use smaller weights"
        faults.add(table.error(f"the weights in start sum to {total:g}", remedy))
        return weights
    return weights if abs(total - 1.0) <= 1e-12 else weights / total


def read_edges(faults: ErrorCollector, table: Table, states: Ids | None, given: Ids | None) -> Edges | None:
    """Read `from`, `to`, `action`, and optionally `probability` and `g_*`.

    given : the actions, if problem.json gives their names or number
    """
    if table.n_rows == 0:
        faults.add(table.error("has no rows", "give one row per transition"))
        return None
    names = [name for name in table.names if name.startswith("g_")]
    features = _matrix(faults, table, names)
    probability = np.ones(table.n_rows)
    stochastic = "probability" in table.cells
    if stochastic:
        probability = number_column(faults, table, "probability")
        wrong = (probability < 0) | (probability > 1 + SUM_TOLERANCE)
        faults.rows(table, wrong, lambda row: f"probability is {probability[row]:g}", "it must lie in [0, 1]")
    kept = _kept(faults, table, {*EDGE_COLUMNS, *names})
    note_misspelt_columns(faults, table, kept, ("probability",))
    note_misspelt_features(faults, table, kept, "g_")
    if not has_columns(faults, table, "from", "to", "action") or states is None:
        return None
    before = len(faults.found)
    source, target = (states.find(faults, table, name) for name in ("from", "to"))
    actions = given if given is not None else _action_ids(faults, table)
    if actions is None:
        return None
    action = actions.find(faults, table, "action")
    if states.n * actions.n > LARGEST:
        what = f"names {actions.n} actions for {states.n} states"
        faults.add(table.error(what, "number the actions of each state from 0, so that states share them"))
    if len(faults.found) == before:
        _check_moves(faults, table, source * actions.n + action, target, states.n, probability if stochastic else None)
    return Edges(actions, source, target, action, probability, features, names, kept)


def _action_ids(faults: ErrorCollector, table: Table) -> Ids | None:
    """Return the ids of the actions: 0 … A − 1, all of which must occur, or sorted labels."""
    column = id_column(faults, table, "action")
    if column is None:
        return None
    if column.kind == "text":
        labels = sorted(set(column.text.to_pylist()))
        return Ids("action", len(labels), pa.array(labels, pa.string()))
    used = np.unique(column.values)
    gap = np.flatnonzero(used != np.arange(used.size))
    if gap.size:
        row = int(np.flatnonzero(column.values == used[gap[0]])[0])
        what = f"action {used[gap[0]]} occurs, but {'must not be negative' if used[0] < 0 else f'{gap[0]} does not'}"
        remedy = "number actions 0, 1, 2, …, or give n_actions in problem.json"
        faults.add(table.error(what, remedy, row))
        return None
    return Ids("action", used.size)


def _check_moves(
    faults: ErrorCollector, table: Table, choice: Ints, target: Ints, n_states: int, probability: Floats | None
) -> None:
    """Check that no transition occurs twice, and that each (from, action) has one, or probabilities that sum to one."""
    again = repeated(choice * n_states + target)
    faults.rows(table, again, lambda row: "the same from, action and to occur in an earlier row", "delete the row")
    if probability is None:
        remedy = "add a column probability, or use another action"
        twice = repeated(choice) & ~again
        faults.rows(table, twice, lambda row: "the same from and action lead elsewhere in an earlier row", remedy)
        return
    _, first, group = np.unique(choice, return_index=True, return_inverse=True)
    sums = np.bincount(group, weights=probability)
    off = np.zeros(choice.size, dtype=bool)
    off[first] = ~(np.abs(sums - 1.0) <= SUM_TOLERANCE)
    faults.rows(
        table,
        off,
        lambda row: f"the probabilities of this from and action sum to {sums[group[row]]:.4f}, not 1",
        "divide them by their sum, or add the missing transition",
    )


def read_steps(faults: ErrorCollector, table: Table, states: Ids | None, actions: Ids | None) -> Steps | None:
    """Read `trajectory_id`, `step`, `state`, and optionally `action`, empty in the last row of a trajectory.

    Rows may be in any order. Steps count 0, 1, 2, … in every trajectory, or 1, 2, 3, … in every trajectory.
    """
    if not has_columns(faults, table, "trajectory_id", "step", "state"):
        return None
    visited = np.zeros(table.n_rows, dtype=np.int64) if states is None else states.find(faults, table, "state")
    kept = _kept(faults, table, STEP_COLUMNS)
    note_misspelt_columns(faults, table, kept, ("action",))
    found = read_order(faults, table)
    if found is None:
        return None
    taken = None
    if "action" in table.cells and actions is not None:
        taken = _actions(faults, table, actions, found)
    columns = {key: values[found.rows] for key, values in kept.items()}
    return Steps(found, visited[found.rows], taken, columns)


def _actions(faults: ErrorCollector, table: Table, actions: Ids, order: Order) -> Ints:
    last = np.zeros(table.n_rows, dtype=bool)
    last[order.rows] = order.ends
    taken = actions.find(faults, table, "action", null_ok=True)
    column = faults.attempt(table.column, "action")
    if column is not None:
        remedy = "give one action per step, or drop the column"
        faults.rows(table, column.null & ~last, lambda row: "action is empty", remedy)
        remedy = "leave the last action empty"
        faults.rows(table, ~column.null & last, lambda row: f"action {column.show(row)} follows the last state", remedy)
    return np.asarray(taken[order.rows][~order.ends])


def read_meta(
    faults: ErrorCollector, table: Table, trajectories: Ids | None, states: Ids | None
) -> tuple[dict[str, Array], Ints | None]:
    """Read metadata, one row per trajectory: the columns in the order of the trajectories, and the goals if any."""
    if not has_columns(faults, table, "trajectory_id") or trajectories is None:
        return {}, None
    before = len(faults.found)
    at = trajectories.find(faults, table, "trajectory_id")
    if len(faults.found) > before and (at < 0).all():  # no cell is a known id: one fault is enough
        return {}, None
    names = table.column("trajectory_id")
    again = repeated(at) & (at >= 0)
    remedy = "give one row per trajectory"
    faults.rows(table, again, lambda row: f"trajectory {names.show(row)} occurs twice", remedy)
    lacking = np.setdiff1d(np.arange(trajectories.n), at)
    if lacking.size:
        first = trajectories.labels[int(lacking[0])].as_py()
        more = "" if lacking.size == 1 else f", and {lacking.size - 1} more have none"
        faults.add(table.error(f"trajectory {first!r} has no row{more}", remedy))
    goals = _goals(faults, table, states)
    columns = _kept(faults, table, ("trajectory_id",))
    note_misspelt_columns(faults, table, columns, ("goal",))
    if len(faults.found) > before:
        return {}, None
    order = np.argsort(at, kind="stable")
    kept = {name: values[order] for name, values in columns.items()}
    return kept, None if goals is None else goals[order]


def _goals(faults: ErrorCollector, table: Table, states: Ids | None) -> Ints | None:
    column = faults.attempt(table.column, "goal") if "goal" in table.cells and states is not None else None
    if column is None or states is None or column.null.all():
        return None
    remedy = "give a goal to every trajectory, or to none"
    faults.rows(table, column.null, lambda row: "goal is empty, but other trajectories have one", remedy)
    return states.find(faults, table, "goal", null_ok=True)
