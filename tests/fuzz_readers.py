"""Small problem folders, whole and damaged, read by messirl.io and by the reference reader.

    python tests/fuzz_readers.py --count 100000 --seed 0

A case is a generated folder, or one of fuzz_corpus/, damaged in up to three ways: cells, rows, columns, bytes, files,
keys of problem.json. Both readers must refuse it, or read the same; nothing but InputError may be raised. Parquet
folders are damaged in their bytes: they must be read or refused, and refused when cut short.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import reference_reader

from messirl.io import InputError, Problem, check_problem, read_problem, write_problem

CORPUS = Path(__file__).parent / "fuzz_corpus"
CELLS = [
    *("", " ", "0", "1", "2", "3", "-1", "1.0", "2.5", "-0", "+1", "007", "1e3", "1e999", "1e-400", "nan", "NaN"),
    *("yes", "No", "0,5", "1,234", "0.0", " 1 ", "2\t", "a;b"),
    *("inf", "true", "FALSE", "0x10", "1_000", "null", "None", "NA", "a", "b", "é", 'q"q', "a,b", "\0", "'", "-", "."),
    *("1.", ".5", "1e", "e1", "١", "²", "0.3", "0.7", "state", "x\ny", "=1+1", "../../etc", "\ufeff", "\u202e"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 40, "<script>alert(1)</script>"),
]
COLUMNS = [
    *("state", "f_a", "f_", "g_a", "terminal", "start", "x", "y", "name", "from", "to", "action", "probability"),
    *("step", "trajectory_id", "goal", "STATE", "", "other"),
]
NAMES = ([], {}, [1], ["a"], ["a", "b"], ["a", "b", "c"], ["a", "a"], ["\ud800"])
VALUES = (None, True, 0, 1, -1, 2, 3, 0.5, 1.5, 10**30, 1e400, math.nan, "0.9", *NAMES)
KEYS = ("discount", "horizon", "n_actions", "state_names", "action_names", "feature_names", "other")
Files = dict[str, bytes]


# ------------------------------------------------------------ folders


def table_bytes(rows: list[list[str]], end: str = "\n", separator: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=end, delimiter=separator).writerows(rows)
    return out.getvalue().encode()


def generated(rng: Random) -> Files:
    """A small folder that is nearly always a problem."""
    n, n_actions = rng.randint(1, 4), rng.randint(1, 3)
    state = [f"s{i}" for i in range(n)] if rng.random() < 0.4 else [str(i) for i in range(n)]
    action = ["up", "down", "stay"] if rng.random() < 0.3 else ["0", "1", "2"]
    terminal = [rng.random() < 0.2 for _ in range(n)]
    stochastic, by_step = rng.random() < 0.4, rng.random() < 0.4
    states = [["state", "f_a", "terminal"]]
    states += [[state[i], rng.choice(("0", "1", "0.5", "-2e-1")), str(terminal[i]).lower()] for i in range(n)]
    edges, moves = [["from", "to", "action"]], {}
    for i in range(n):
        for a in range(n_actions):
            ends = rng.sample(range(n), rng.randint(1, min(n, 2))) if stochastic else [rng.randrange(n)]
            moves[i, a] = ends
            share = ["1"] if len(ends) == 1 else ["0.25", "0.75"]
            for end, p in zip(ends, share, strict=True):
                edges.append([state[i], state[end], action[a], *([p] if stochastic else [])])
    if stochastic:
        edges[0].append("probability")
    if by_step:
        edges = [[*edges[0], "g_b"], *([*row, str(rng.randint(-3, 3))] for row in edges[1:])]
    steps, meta = [["trajectory_id", "step", "state"]], [["trajectory_id", "weight", "role"]]
    with_actions, goals = rng.random() < 0.4, rng.random() < 0.2 and not any(terminal)
    for k in range(rng.randint(0, 3)):
        s, t, last = rng.randrange(n), 0, rng.randint(0, 3)
        while True:
            over = terminal[s] or t == last
            a = rng.randrange(n_actions)
            steps.append([str(k), str(t), state[s], *([("" if over else action[a])] if with_actions else [])])
            if over:
                break
            s, t = rng.choice(moves[s, a]), t + 1
        meta.append([str(k), rng.choice(("", "1", "2.5")), rng.choice(("expert", "unknown", ""))])
        if goals:
            meta[-1].append(state[s])
    if with_actions:
        steps[0].append("action")
    if goals:
        meta[0].append("goal")
    settings = {"discount": rng.choice((0.5, 0.9, 1, 1.0))}
    files = {name: table_bytes(rows) for name, rows in (("states", states), ("edges", edges), ("trajectories", steps))}
    if rng.random() < 0.7:
        files["trajectory_meta"] = table_bytes(meta)
    return {**{f"{name}.csv": data for name, data in files.items()}, "problem.json": json.dumps(settings).encode()}


def corpus() -> list[Files]:
    folders = sorted(path for path in CORPUS.iterdir() if path.is_dir())
    return [{path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders]


# ------------------------------------------------------------ damage


def damaged(files: Files, rng: Random) -> Files:
    files = dict(files)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        name = rng.choice(sorted(files))
        way = rng.random()
        if way < 0.06:
            files[name] = spoilt_bytes(files[name], rng)
        elif way < 0.07:
            del files[name]
            if not files:
                return files
        elif name == "problem.json":
            files[name] = spoilt_settings(files[name], rng)
        else:
            files[name] = spoilt_table(files[name], rng)
    return files


def spoilt_bytes(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    way = rng.randrange(4)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([rng.choice((0, 10, 13, 34, 44, 255, 0xC3, rng.randrange(256)))]) + data[at:]
    if way == 2 and at < len(data):
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    return data[:at] + data[rng.randrange(len(data) + 1) :]


def spoilt_settings(data: bytes, rng: Random) -> bytes:
    try:
        content = json.loads(data)
        content[rng.choice(KEYS)] = rng.choice(VALUES)
        if rng.random() < 0.1:
            del content[rng.choice(sorted(content))]
    except (ValueError, TypeError, IndexError):
        return data
    return json.dumps(content).encode()


def spoilt_table(data: bytes, rng: Random) -> bytes:
    try:
        rows = [row for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")) if row]
    except (UnicodeDecodeError, csv.Error):
        return data
    if not rows or len({len(row) for row in rows}) > 1:
        return data
    width, way = len(rows[0]), rng.randrange(16)
    i, j = rng.randrange(len(rows)), rng.randrange(width)
    k = rng.randrange(1, len(rows)) if len(rows) > 1 else 0
    if way <= 3:
        rows[k or i][j] = rng.choice(CELLS)
    elif way == 4 and k:
        rows[k][j] = rows[rng.randrange(1, len(rows))][j]
    elif way == 5 and k:
        rows.insert(rng.randrange(1, len(rows) + 1), list(rows[k]))
    elif way == 6 and k:
        del rows[k]
    elif way == 7 and k:
        other = rng.randrange(1, len(rows))
        rows[k], rows[other] = rows[other], rows[k]
    elif way == 8:
        rows[0][j] = rng.choice(COLUMNS)
    elif way == 9:
        for row in rows:
            del row[j]
    elif way == 10:
        name, filler = rng.choice(COLUMNS), rng.choice(CELLS)
        free = rng.random() < 0.5
        rows = [[*rows[0], name], *([*row, rng.choice(CELLS) if free else filler] for row in rows[1:])]
    elif way == 11:
        for row in rows[1:]:
            row[j] = rng.choice(("", "1.0", "true", "x" + row[j], "0", row[j] + ".0"))
    elif way == 12 and k:
        body = rows[1:]
        rng.shuffle(body)
        rows = [rows[0], *body]
    elif way == 13 and "step" in rows[0]:
        at = rows[0].index("step")
        for row in rows[1:]:
            row[at] = str(int(row[at]) + 1) if row[at].isdigit() and row[at].isascii() else row[at]
    elif way == 14:
        words = {"true": "yes", "false": rng.choice(("no", "No", "NO"))}
        rows = [[words.get(cell, cell) for cell in row] for row in rows]
    separator = rng.choice((",", ",", ",", ";", "\t"))
    if separator != "," and rng.random() < 0.5:
        rows = [rows[0], *([cell.replace(".", ",") for cell in row] for row in rows[1:])]
    return table_bytes(rows, rng.choice(("\n", "\r\n", "\r")), separator)


# ------------------------------------------------------------ comparison


def put(files: Files, folder: Path) -> None:
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def same(a: object, b: object) -> bool:
    """Equal in type and value; floats within rounding, NaN like NaN."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def content(problem: Problem) -> dict[str, object]:
    """A problem as the plain lists of the reference reader."""

    def plain(array: object) -> list[object] | None:
        return None if array is None else np.asarray(array).tolist()

    mdp, trajectories = problem.mdp, problem.trajectories
    moves = mdp.transitions.tocoo()
    choices = {(r // mdp.n_actions, r % mdp.n_actions): r for r in sorted(set(moves.row.tolist()))}
    features: object = mdp.features.tolist()
    if mdp.state_action:
        features = {choice: mdp.feature_rows[row].tolist() for choice, row in choices.items()}
    ids = range(len(trajectories)) if problem.trajectory_ids is None else problem.trajectory_ids.tolist()
    return {
        "discount": mdp.discount,
        "horizon": mdp.horizon,
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "state_ids": plain(problem.state_ids),
        "action_ids": plain(problem.action_ids),
        "state_names": None if mdp.state_names is None else list(mdp.state_names),
        "action_names": None if mdp.action_names is None else list(mdp.action_names),
        "feature_names": None if mdp.feature_names is None else list(mdp.feature_names),
        "transitions": {
            (r // mdp.n_actions, r % mdp.n_actions, c): p
            for r, c, p in zip(moves.row.tolist(), moves.col.tolist(), moves.data.tolist(), strict=True)
        },
        "features": features,
        "terminal": mdp.terminal.tolist(),
        "start": plain(mdp.start),
        "xy": plain(problem.xy),
        "state_columns": {name: plain(column) for name, column in problem.state_columns.items()},
        "edge_columns": {name: plain(column) for name, column in problem.edge_columns.items()},
        "step_columns": {name: plain(column) for name, column in problem.step_columns.items()},
        "trajectory_ids": list(ids),
        "trajectories": [one.states.tolist() for one in trajectories],
        "actions": [plain(one.actions) for one in trajectories],
        "goals": plain(trajectories.goals),
        "meta": {name: plain(column) for name, column in problem.meta.items()},
    }


LATER = (  # faults that only a fit refuses
    "not terminal|where start is 0|of this kind|to learn from|probability 0 in the model|no terminal state and no goal"
)


def compare(files: Files, folder: Path, *, check: bool = True) -> str:
    """Read a folder with both readers; "read" or "refused", or an AssertionError that says how they differ."""
    put(files, folder)
    try:
        expected = reference_reader.read(files)
        expected["discount"] = float(expected["discount"])
    except reference_reader.Refused as refused:
        expected, reason = None, str(refused)
    faults = check_problem(folder) if check else None
    try:
        found = content(read_problem(folder))
    except InputError as error:
        found, reason = None, str(error)
    assert (found is None) == (expected is None), f"only one refuses: {reason}"
    if found is None or expected is None:
        assert faults != [], f"check_problem finds nothing, but reading says: {reason}"
        return "refused"
    later = [fault for fault in faults or () if not re.search(LATER, fault.what)]
    assert not later, f"it reads, but check_problem says {later}"
    for key, value in expected.items():
        assert same(value, found[key]), f"{key}: {value} in the reference, but {found[key]}"
    return "read"


def round_trip(folder: Path, copy: Path, form: str) -> str:
    """Write what was read, and read it again; "same", or "refused" where CSV cannot hold it."""
    problem = read_problem(folder)
    try:
        write_problem(problem, copy, format=form, overwrite=True)
    except InputError:
        if form == "csv":
            return "refused"
        raise
    before, after = content(problem), content(read_problem(copy))
    for key, value in before.items():
        assert same(value, after[key]), f"{key}: {value} was written, {after[key]} was read"
    return "same"


def parquet_case(whole: Files, folder: Path, rng: Random) -> str:
    """Damage the bytes of a folder of Parquet files; "read" or "refused"."""
    name = rng.choice(sorted(name for name in whole if name.endswith(".parquet")))
    cut = rng.random() < 0.2
    data = whole[name][: rng.randrange(len(whole[name]))] if cut else whole[name]
    for _ in range(0 if cut else rng.randint(1, 3)):
        data = spoilt_bytes(data, rng)
    put({**whole, name: data}, folder)
    try:
        read_problem(folder)
    except InputError:
        assert check_problem(folder), "check_problem finds nothing"
        return "refused"
    assert not cut, "a truncated file was read"
    return "read"


def one_case(rng: Random, seeds: list[Files], parquet: list[Files], place: Path) -> list[str]:
    """What happened to one case: a folder of CSV files, or every twentieth time one of Parquet files."""
    if rng.random() < 0.05:
        return [f"Parquet {parquet_case(rng.choice(parquet), place / 'binary', rng)}"]
    files = damaged(rng.choice(seeds) if rng.random() < 0.3 else generated(rng), rng)
    outcomes = [f"CSV {compare(files, place / 'folder', check=rng.random() < 0.25)}"]
    if outcomes == ["CSV read"] and rng.random() < 0.1:
        form = rng.choice(("parquet", "csv"))
        outcomes.append(f"{form} written, {round_trip(place / 'folder', place / 'copy', form)}")
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    tally, begun, slowest = Counter[str](), time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for made in ("folder", "binary"):
            (place / made).mkdir()
        seeds, parquet = corpus(), []
        for files in seeds:
            put(files, place / "folder")
            write_problem(read_problem(place / "folder"), place / "copy", overwrite=True)
            parquet.append({path.name: path.read_bytes() for path in (place / "copy").iterdir()})
        for case in range(arguments.count):
            at = time.perf_counter()
            try:
                tally.update(one_case(Random(f"{arguments.seed}-{case}"), seeds, parquet, place))
            except Exception as error:
                error.add_note(f"case {case} of seed {arguments.seed}")
                raise
            slowest = max(slowest, time.perf_counter() - at)
            if (case + 1) % 10_000 == 0:
                print(f"{case + 1} cases, {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"{arguments.count} cases, the slowest {slowest:.2f} s; {dict(sorted(tally.items()))}")


if __name__ == "__main__":
    main()
