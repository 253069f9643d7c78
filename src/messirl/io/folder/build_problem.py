"""Construction of a problem from tables: each is checked against those before it, then all are combined."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from messirl._types import Array, Floats, Ints
from messirl.data.errors import InputError
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import entry_keys
from messirl.data.validation import Fault, goal_faults, start_faults, trajectory_faults
from messirl.io.folder.parse_tables import Edges, States, Steps, read_edges, read_meta, read_states, read_steps
from messirl.io.folder.problem_json import Settings
from messirl.io.tables.columns import SMALL_WHOLE
from messirl.io.tables.error_collector import LIMIT, ErrorCollector
from messirl.io.tables.label_index import ANY, Ids
from messirl.io.tables.table import Table, load_table, matches

DENSE = 50_000_000  # maximum number of entries of dense features


def problem_from_tables(
    states: Any, edges: Any, trajectories: Any, meta: Any = None, *, discount: float, horizon: int | None = None
) -> Problem:
    """Make a problem from tables: paths of CSV or Parquet files, data frames, Arrow tables, or mappings of columns.

    Interpretations (another delimiter, decimal commas, steps from 1, rows out of order) are listed in its `notes`.
    """
    sources = {"states": states, "edges": edges, "trajectories": trajectories, "trajectory_meta": meta}
    tables = {name: load_table(source, name) for name, source in sources.items() if source is not None}
    problem = build(ErrorCollector(), tables, Settings(discount, horizon, where="problem"))
    assert problem is not None, "faults raise an error"
    return problem


def read_trajectories(source: Any, problem: Problem | MDP | None = None) -> tuple[Trajectories, Array]:
    """Read trajectories and their ids from a table `trajectory_id`, `step`, `state`, optionally `action`.

    problem : defines the states and actions; without it both must be numbers, and nothing else is checked

    Interpretations (another delimiter, steps from 1, rows out of order) raise a UserWarning.
    """
    if not isinstance(problem, Problem | MDP | None):
        raise TypeError(f"problem must be a Problem or an MDP, not {type(problem).__name__}: leave it out, or give one")
    faults, table = ErrorCollector(), load_table(source, "trajectories")
    mdp = problem.mdp if isinstance(problem, Problem) else problem
    states, actions = Ids("state", ANY), Ids("action", ANY)
    if mdp is not None:
        own = problem if isinstance(problem, Problem) else Problem(mdp, Trajectories.from_lists([]))
        states = _known(table, "state", mdp.n_states, own.state_ids, mdp.state_names)
        actions = _known(table, "action", mdp.n_actions, own.action_ids, mdp.action_names)
    steps = read_steps(faults, table, states, actions)
    assert steps is not None, "faults raise an error"
    tracks = Tracks(Trajectories(steps.states, steps.order.offsets, steps.actions), steps)
    if mdp is not None:
        _check_fit(faults, mdp, tracks, table, (states, actions))
    for note in (*table.notes, *faults.notes):
        warnings.warn(note, UserWarning, stacklevel=2)
    return tracks.trajectories, tracks.ids


def _known(table: Table, noun: str, n: int, ids: Array | None, names: tuple[str, ...] | None) -> Ids:
    """Return the ids by which a table refers to states or actions: ids of the problem, else names, else numbers."""
    if ids is None and names is not None and noun in table.cells and table.column(noun).kind == "text":
        ids = np.array(names, dtype=object)
    return Ids.of(noun, n, ids)


def build(faults: ErrorCollector, tables: dict[str, Table], settings: Settings | None) -> Problem | None:
    """Check each table against those before it; without faults, build the problem."""
    states = read_states(faults, tables["states"]) if "states" in tables else States()
    edges = None
    given = faults.attempt(_given_actions, tables.get("edges"), settings)
    if "edges" in tables:
        edges = read_edges(faults, tables["edges"], states.ids, given)
    tracks = read_tracks(faults, tables, states.ids, None if edges is None else edges.actions)
    if faults.found or states.ids is None or edges is None or tracks is None or settings is None:
        return None
    if "goal" in tracks.steps.columns and tracks.trajectories.goals is None:
        where = tables["trajectories"].where
        faults.notes.append(f"{where}: column 'goal' is kept but not used; goals are read from trajectory_meta")
    mdp = faults.attempt(_mdp, states, states.ids, edges, settings, tables)
    if mdp is None:
        return None
    called = states.ids, edges.actions
    _check_fit(faults, mdp, tracks, tables["trajectories"], called)
    if faults.collect and not faults.found:
        _check_learnable(faults, mdp, tracks, tables, called, settings.where)
    at = _rows_of_moves(mdp, edges)
    if at.size < edges.source.size:
        n, where = edges.source.size - at.size, tables["edges"].where
        rows = f"{n} rows leave" if n > 1 else "1 row leaves"
        faults.notes.append(f"{where}: {rows} a terminal state or {'have' if n > 1 else 'has'} probability 0: not used")
    kept = {name: values[at] for name, values in edges.columns.items()}
    return assemble_problem(mdp, states, edges.actions, tracks, kept, all_notes(faults, tables))


@dataclass(frozen=True, eq=False)
class Tracks:
    """The trajectories of a folder, their table, and their metadata."""

    trajectories: Trajectories
    steps: Steps
    meta: dict[str, Array] = field(default_factory=dict)

    @property
    def ids(self) -> Array:
        """Ids of the trajectories; 0, 1, … if they have none."""
        ids = self.steps.order.ids
        labels = ids.array()
        return np.arange(ids.n) if labels is None else labels


def read_tracks(
    faults: ErrorCollector, tables: dict[str, Table], states: Ids | None, actions: Ids | None
) -> Tracks | None:
    """Read the table trajectories and, if it exists, trajectory_meta."""
    steps = read_steps(faults, tables["trajectories"], states, actions) if "trajectories" in tables else None
    meta: dict[str, Array] = {}
    goals: Ints | None = None
    if "trajectory_meta" in tables:
        ids = None if steps is None else steps.order.ids
        meta, goals = read_meta(faults, tables["trajectory_meta"], ids, states)
    if faults.found or steps is None:
        return None
    return Tracks(Trajectories(steps.states, steps.order.offsets, steps.actions, goals), steps, meta)


def assemble_problem(
    mdp: MDP,
    states: States,
    actions: Ids | None,
    tracks: Tracks,
    edge_columns: dict[str, Array],
    notes: tuple[str, ...],
) -> Problem:
    """Combine an MDP and the remaining content of the tables into a problem."""
    called = tracks.ids
    plain = called.dtype.kind == "i" and np.array_equal(called, np.arange(called.size))
    return Problem(
        mdp,
        tracks.trajectories,
        tracks.meta,
        None if plain else called,
        None if states.ids is None else states.ids.array(),
        None if actions is None else actions.array(),
        states.xy,
        states.columns,
        edge_columns,
        tracks.steps.columns,
        notes,
    )


def all_notes(faults: ErrorCollector, tables: dict[str, Table]) -> tuple[str, ...]:
    """Return the distinct notes on what was interpreted while the tables were read."""
    return tuple(dict.fromkeys([*(note for table in tables.values() for note in table.notes), *faults.notes]))


def _rows_of_moves(mdp: MDP, edges: Edges) -> Ints:
    """Return the row of the table of edges for every transition, in the order of `mdp.transitions`."""
    keys = (edges.source * mdp.n_actions + edges.action) * mdp.n_states + edges.target
    order = np.argsort(keys, kind="stable")
    return np.asarray(order[np.searchsorted(keys[order], entry_keys(mdp))])


def _given_actions(edges: Table | None, settings: Settings | None) -> Ids | None:
    """Return the actions given in problem.json: names (the labels, if edges are labelled), or their number."""
    names = None if settings is None else settings.names.get("action_names")
    if settings is None or (names is None and settings.n_actions is None):
        return None
    if names is not None and settings.n_actions not in (None, len(names)):
        what = f"n_actions is {settings.n_actions}, but there are {len(names)} action_names"
        raise InputError(settings.where, what, "drop n_actions")
    column = edges.column("action") if edges is not None and "action" in edges.cells else None
    labelled = column is not None and column.kind == "text"
    if names is None and column is not None and labelled and not matches(column.text, SMALL_WHOLE).any():
        what = f"n_actions is {settings.n_actions}, but the table of edges labels its actions ({column.show(0)})"
        raise InputError(settings.where, what, "drop n_actions, or number the actions in all tables")
    if names is None:
        return Ids("action", settings.n_actions or 0)
    return Ids("action", len(names), pa.array(names, pa.string()) if labelled else None)


def _mdp(states: States, ids: Ids, edges: Edges, settings: Settings, tables: dict[str, Table]) -> MDP:
    names = [*states.feature_names, *edges.feature_names]
    if not names:
        where = f"{tables['states'].where}, {tables['edges'].where}"
        raise InputError(where, "have no features", "add a column f_… to the states, or g_… to the edges")
    if states.terminal[edges.source].all():
        what = "no edge leaves a non-terminal state"
        raise InputError(tables["edges"].where, what, "add the transitions of non-terminal states")
    if states.names is not None and settings.names.get("state_names") is not None:
        raise InputError(settings.where, "state_names are given twice", "drop them, or the column name of the states")
    n_states, n_actions = ids.n, edges.actions.n
    choice = edges.source * n_actions + edges.action
    shape = (n_states * n_actions, n_states)
    transitions = sp.csr_array((edges.probability, (choice, edges.target)), shape=shape)
    features = states.features
    if edges.feature_names:
        features = _step_features(states, edges, choice, (n_states, n_actions))
    try:
        return MDP(
            transitions,
            features,
            start=states.start,
            discount=settings.discount,
            horizon=settings.horizon,
            terminal=states.terminal,
            state_names=states.names or settings.named("state_names", labels_of(ids)),
            action_names=settings.names.get("action_names", labels_of(edges.actions)),
            feature_names=settings.named("feature_names", names),
        )
    except (ValueError, TypeError) as error:
        of_tables = str(error).startswith("feature ")
        where = f"{tables['states'].where}, {tables['edges'].where}" if of_tables else settings.where
        what, _, remedy = str(error).rpartition(": ")  # most messages end with a remedy
        raise InputError(where, what or remedy, remedy if what else "correct it") from None


def labels_of(ids: Ids) -> list[str] | None:
    """Return labels as names; None if ids are numbers."""
    return None if ids.labels is None else ids.labels.to_pylist()


def _step_features(states: States, edges: Edges, choice: Ints, size: tuple[int, int]) -> Any:
    """Compute f(s, a) = Σ_s' p(s'|s,a) (f(s'), g(s, a, s')), shape (S, A, d); sparse (S·A, d) if that is too large.

    Computed as g₀ + Σ p (g − g₀) with g₀ of the first edge: exact if all edges of a choice have equal features.
    """
    open_ = ~states.terminal[edges.source]
    values = np.hstack([states.features[edges.target], edges.features])[open_]
    rows, first, group = np.unique(choice[open_], return_index=True, return_inverse=True)
    weight = edges.probability[open_] / np.bincount(group, edges.probability[open_], minlength=rows.size)[group]
    expected: Floats = values[first].copy()
    with np.errstate(over="ignore", invalid="ignore"):  # the MDP rejects non-finite values with a better message
        np.add.at(expected, group, (values - expected[group]) * weight[:, None])
    n_rows, d = size[0] * size[1], values.shape[1]
    if n_rows * d <= DENSE:
        dense = np.zeros((n_rows, d))
        dense[rows] = expected
        return dense.reshape(*size, d)
    column = np.tile(np.arange(d), rows.size)
    return sp.csr_array((expected.ravel(), (np.repeat(rows, d), column)), shape=(n_rows, d))


def _check_fit(faults: ErrorCollector, mdp: MDP, tracks: Tracks, table: Table, called: tuple[Ids, Ids]) -> None:
    """Report faults of the trajectories under the MDP, with the labels and rows of the table.

    A trajectory whose first state has zero `start` probability does not stop the reading, since the user may still give
    another start before a fit.
    """
    found = chain(goal_faults(tracks.trajectories), trajectory_faults(mdp, tracks.trajectories))
    if not faults.collect:
        first = next(found, None)
        if first is not None:
            faults.add(_located(first, tracks, table, called))
        return
    _report(faults, chain(found, start_faults(mdp, tracks.trajectories)), tracks, table, called)


def _report(
    faults: ErrorCollector, found: Iterable[Fault], tracks: Tracks, table: Table, called: tuple[Ids, Ids]
) -> None:
    """Collect the first faults of each kind, and the number of the rest."""
    often: Counter[str] = Counter()
    remedies: dict[str, str] = {}
    for fault in found:
        often[fault.kind] += 1
        remedies[fault.kind] = fault.remedy
        if often[fault.kind] <= LIMIT:
            faults.add(_located(fault, tracks, table, called))
    for kind, n in often.items():
        if n > LIMIT:
            faults.add(table.error(f"… and {n - LIMIT} more of this kind ({kind})", remedies[kind]))


def _check_learnable(
    faults: ErrorCollector, mdp: MDP, tracks: Tracks, tables: dict[str, Table], called: tuple[Ids, Ids], where: str
) -> None:
    """Report what every fit refuses: no choice, no step, trajectories that cannot end, no finite value at any θ."""
    from messirl.estimators._initialization import initial_theta  # reading alone needs none of these
    from messirl.objective import Objective
    from messirl.planning.dead_ends import dead_end_faults

    every, table = tracks.trajectories, tables["trajectories"]
    if mdp.allowed.sum(axis=1).max() < 2:
        what = "no state has more than one action, so that there is no choice to learn from"
        faults.add(InputError(tables["edges"].where, what, "add the transitions of the other actions"))
    if len(every) == 0 or every.lengths.max() < 2:
        what = "no trajectory makes a step" if len(every) else "there is no trajectory"
        faults.add(table.error(f"{what}, so that there is nothing to learn from", "add trajectories of two states"))
    if faults.found:
        return
    try:
        _report(faults, dead_end_faults(mdp, every), tracks, table, called)
    except ValueError as error:  # nothing ends
        what, _, remedy = str(error).rpartition(": ")
        faults.add(InputError(where, what, remedy))
    if mdp.must_end and not faults.found:
        try:
            initial_theta(mdp, Objective.from_trajectories(mdp, every, objective="choices", checked=True), np.inf)
        except ValueError as error:
            faults.notes.append(f"a fit without a prior policy refuses this problem: {error}")


def _located(fault: Fault, tracks: Tracks, table: Table, called: tuple[Ids, Ids]) -> InputError:
    """Express a fault in terms of the table: its labels, row and numbering of steps."""
    states, actions = called
    what = fault.what(states.show, actions.show)
    if fault.trajectory is None:
        return table.error(what, fault.remedy)
    i, step, order, offsets = fault.trajectory, fault.step, tracks.steps.order, tracks.trajectories.offsets
    entry = int(offsets[i + 1] - 1 if step is None else offsets[i] + step)
    place = fault.place(order.ids.show(i), None if step is None else step + order.first)
    return table.error(f"{place}{what}", fault.remedy, int(order.rows[entry]))
