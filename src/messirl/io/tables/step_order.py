"""Row order of tables of steps: sorted by trajectory and step, with steps numbered without a gap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from messirl._types import Flags, Ints
from messirl.io.tables.columns import codes, id_column
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.label_index import Ids
from messirl.io.tables.table import Column, Table


@dataclass(frozen=True, eq=False)
class Order:
    """Rows of a table sorted by trajectory and step.

    ids : ids of the trajectories, in order of first occurrence
    rows : the row of the table at each sorted position
    begins : mask of the first position of each trajectory
    first : the number of the first step in the table, 0 or 1
    """

    ids: Ids
    rows: Ints
    begins: Flags
    first: int

    @property
    def offsets(self) -> Ints:
        """Offsets: trajectory i has the positions offsets[i] : offsets[i + 1]."""
        return np.append(np.flatnonzero(self.begins), self.begins.size)

    @property
    def ends(self) -> Flags:
        """Mask of the last position of each trajectory."""
        return np.append(self.begins[1:], True)[: self.begins.size]


def read_order(faults: ErrorCollector, table: Table) -> Order | None:
    """Read `trajectory_id` and `step`: rows in any order, steps without a gap from 0, or all of them from 1."""
    name = id_column(faults, table, "trajectory_id")
    step = id_column(faults, table, "step", labels=False)
    if name is None or step is None:
        return None
    _, rank, code = np.unique(codes(name), return_index=True, return_inverse=True)
    came = rank[code]  # the first row of its trajectory
    order = np.lexsort((step.values, came))
    if not np.array_equal(order, np.arange(table.n_rows)):
        faults.notes.append(f"{table.where}: rows are not sorted; they are read by trajectory_id and step")
    came = came[order]
    begins = np.ones(table.n_rows, dtype=bool)
    begins[1:] = came[1:] != came[:-1]
    base = _check_steps(faults, table, name, step.values[order], begins, order)
    named = order[begins]
    labels = name.text.take(pa.array(named)) if name.kind == "text" else pa.array(name.values[named])
    return Order(Ids("trajectory", named.size, labels), order, begins, base)


def _check_steps(faults: ErrorCollector, table: Table, name: Column, step: Ints, begins: Flags, order: Ints) -> int:
    """Check that sorted steps count without a gap from 0, or all of them from 1; return which."""
    base = int(step.size > 0 and (step[begins] == 1).all())
    if base:
        faults.notes.append(f"{table.where}: steps count from 1")
    before = np.roll(step, 1)
    again, jump = ~begins & (step == before), ~begins & (step - 1 != before)
    place = np.argsort(order)

    def flagged(wrong: Flags) -> Flags:
        rows = np.zeros(table.n_rows, dtype=bool)
        rows[order[wrong]] = True
        return rows

    faults.rows(
        table,
        flagged(again),
        lambda row: f"trajectory {name.show(row)} has step {step[place[row]]} twice",
        "keep one row per step, or use different trajectory_ids",
    )
    faults.rows(
        table,
        flagged(begins & (step != base)),
        lambda row: f"trajectory {name.show(row)} begins with step {step[place[row]]}",
        "number the steps of every trajectory 0, 1, 2, … (or 1, 2, 3, … in all of them)",
    )
    faults.rows(
        table,
        flagged(jump & ~again),
        lambda row: f"step {step[place[row]]} of trajectory {name.show(row)} follows step {step[place[row] - 1]}",
        "number steps 0, 1, 2, … without a gap",
    )
    return base
