"""Files made to do harm, each read in a process of its own: they must be refused, or hold what passes every check.

    python tests/hostile_files.py models|recordings|json --count 500 --seed 0

A child has SECONDS and MEGABYTES; a crash, a hang, and any exception but ValueError is a fault, and is printed. The
parent imports everything once and forks, so that only reading counts.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from problems import problem
from sklearn.ensemble import ExtraTreesRegressor

import messirl
from messirl import MDP, MESSI, Trajectories
from messirl.data.problem import Problem
from messirl.dynamics import FittedMESSI
from messirl.estimators.registry import METHODS, baseline
from messirl.io import (
    Recording,
    episodes_from_hdf5,
    read_problem,
    recordings_from_numpy,
    recordings_from_table,
    write_problem,
)
from messirl.io.folder.labels import read_labels, save_model
from messirl.similarity import Precomputed

SECONDS, MEGABYTES = 5, 1000
BIG = 150_000_000  # entries of an array of zeros, which takes a megabyte compressed
IMPOSSIBLE = (TypeError, ValueError, OverflowError)  # such an array cannot be made
VALUES = [
    *(None, True, False, -1, 0, 1, 2, 1e9, 10**9, 10**30, 2**63, 1e308, -1e308, math.nan, math.inf, "yes", ""),
    *("x" * 99, [], {}, [[]], [None], {"array": "theta_"}, {"array": "nowhere"}, {"kind": "RBF", "arguments": {}}),
    "\ud800",
]


# ------------------------------------------------------------ a process for each


def outcome(work: Callable[[], Any]) -> str:
    """What becomes of the work in a child: read, refused, or what went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                work()
            said = "read"
        except ValueError as error:
            said = "refused" if len(str(error).strip().splitlines()) == 1 else f"fault: not one sentence: {error}"
        except BaseException:
            said = "fault: " + traceback.format_exc(limit=-4)
        os.write(writer, said[:60_000].encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, status, used = os.wait4(child, 0)
    if status:
        return f"fault: signal {status & 127}" if status & 127 != signal.SIGALRM else f"fault: over {SECONDS} seconds"
    if used.ru_maxrss > 1000 * MEGABYTES:
        return f"fault: {used.ru_maxrss // 1000} MB ({said[:40]})"
    return said


# ------------------------------------------------------------ arrays and keys


def spoilt_array(array: Any, rng: Random) -> Any:
    """Another array in the place of one: of another type or shape, or with other values."""
    ways: list[Callable[[], Any]] = [
        lambda: array.astype(rng.choice(["c16", "M8[s]", "m8[s]", "U8", "f4", "i1", "u8", "?", "f8", "S3"])),
        lambda: array.reshape(-1)[: rng.randrange(array.size + 1)],
        lambda: np.concatenate([array.reshape(-1)] * 2),
        lambda: array.reshape(1, *array.shape),
        lambda: array.T,
        lambda: array.reshape(-1)[0] if array.size else array,
        lambda: np.zeros(BIG, dtype=rng.choice(["f8", "i4", "?"])),
        lambda: np.zeros((0, *array.shape[1:]), dtype=array.dtype),
        lambda: -array,
        lambda: array[::-1].copy(),
    ]
    values = [0, -1, 1, 2, 7, 2**31, 2**62, 10**9, -(10**9), math.nan, math.inf, 1e308, 0.5]
    for _ in range(8):
        ways.append(lambda: with_value(array, rng.choice(values), rng))
    return rng.choice(ways)()


def with_value(array: Any, value: float, rng: Random) -> Any:
    changed = array.copy().reshape(-1)
    if changed.dtype.names:
        changed[rng.choice(changed.dtype.names)] = value
    elif changed.size:
        at = rng.randrange(changed.size)
        changed[at : at + rng.choice([1, 1, 3, changed.size])] = value
    return changed.reshape(array.shape)


def paths(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in nested lists and objects."""
    items = found.items() if isinstance(found, dict) else enumerate(found[:20]) if isinstance(found, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from paths(value, (*before, key))


def spoilt_json(found: Any, rng: Random) -> Any:
    """The same with one value changed, left out or added."""
    found = json.loads(json.dumps(found))
    *way, last = rng.choice(list(paths(found)))
    inner = found
    for key in way:
        inner = inner[key]
    kind = rng.random()
    if kind < 0.7:
        inner[last] = rng.choice(VALUES)
    elif kind < 0.85:
        del inner[last]
    elif isinstance(inner, dict):
        inner[rng.choice(["more", "theta_", "kind", "1", ""])] = rng.choice(VALUES)
    return found


def as_text(found: Any, rng: Random) -> bytes:
    """JSON of it, damaged or not."""
    text = json.dumps(found).encode()
    kind = rng.random()
    if kind < 0.04:
        return b"[" * 300_000 + text
    if kind < 0.08:
        return text[: rng.randrange(len(text))]
    if kind < 0.1:
        return text.replace(b":", b":1", 1)
    if kind < 0.12:
        return text + text
    if kind < 0.14:
        return text.decode().encode("utf-16")
    if kind < 0.16:
        return text.replace(b"0", b"9" * 5000, 1)
    if kind < 0.18:
        return b"[" + b"[]," * 15_000_000 + text + b"]"
    return text


def packed(parts: dict[str, Any], rng: Random) -> bytes:
    """An .npz file, sometimes with false claims or damaged bytes."""
    out, kind = io.BytesIO(), rng.random()
    method = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2])
    liar = rng.choice(sorted(parts))
    with (
        zipfile.ZipFile(out, "w", method if kind < 0.2 else zipfile.ZIP_DEFLATED) as archive,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for name, array in parts.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asanyarray(array), allow_pickle=False)
            data = content.getvalue()
            if name == liar and 0.2 <= kind < 0.3:
                data = lying(np.asarray(array), rng) + data[128:]
            archive.writestr(f"{name}.npy", data)
            if name == liar and 0.3 <= kind < 0.33:
                archive.writestr(f"{name}.npy", data)
    data = out.getvalue()
    if 0.33 <= kind < 0.43:
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 3, 30])):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    return data[: rng.randrange(len(data))] if 0.43 <= kind < 0.45 else data


def lying(array: Any, rng: Random) -> bytes:
    """A header that claims another shape or type."""
    shape = rng.choice([(10**12,), (-1,), (2**62, 2**62), (0,), (1,) * 60, (array.size + 1,), (10**8,)])
    kind = rng.choice([array.dtype.str, "|O", "<U100000000", "|V8", "<f8"])
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue()


# ------------------------------------------------------------ models


def models() -> list[bytes]:
    """Saved models of every method, on problems of several kinds, and one fitted without a model of the moves."""
    made = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.npz"
        for kind in ("finite", "endless", "goals", "sparse"):
            mdp, expert, unlabelled = problem(kind)
            for method in METHODS.values():
                try:
                    model, data = baseline(method.name, MESSI(lambda0=0.1), mdp, expert, unlabelled)
                    model.fit(*data)
                except (ValueError, TypeError):  # some methods do not know goals, or a horizon
                    continue
                model.save(path)
                made.append(path.read_bytes())
        mdp, expert, unlabelled = problem("finite")
        one = MESSI(Precomputed(np.eye(len(expert) + len(unlabelled)))).fit(mdp, expert, unlabelled)
        save_model(one, path, Problem(mdp, expert, {}))
        made.append(path.read_bytes())
        steps = np.linspace(0.0, 1.0, 6)[:, None]
        right, left = (
            Recording(steps, np.ones(5, dtype=int), True),
            Recording(steps[::-1], np.zeros(5, dtype=int), True),
        )
        for regressor in (None, ExtraTreesRegressor(3)):
            FittedMESSI(np.atleast_2d, regressor=regressor, discount=0.9).fit([right, right], [left, right]).save(path)
            made.append(path.read_bytes())
    return made


def hostile_model(seeds: list[bytes], rng: Random, folder: Path) -> None:
    with np.load(io.BytesIO(rng.choice(seeds))) as archive:
        parts = dict(archive)
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.4:
            described = spoilt_json(json.loads(parts["description"].tobytes()), rng)
            parts["description"] = np.frombuffer(as_text(described, rng), dtype=np.uint8)
        else:
            name = rng.choice(sorted(parts))
            try:
                parts[name] = spoilt_array(parts[name], rng)
            except IMPOSSIBLE:
                continue
    (folder / "hostile.npz").write_bytes(packed(parts, rng))


def read_model(folder: Path) -> None:
    """Load it, and use what was loaded."""
    path = folder / "hostile.npz"
    model = messirl.load(path)
    if isinstance(model, FittedMESSI):
        model.predict_proba(np.zeros((2, model.n_features_in_)))
    else:
        read_labels(path, model.mdp_)
        goals = getattr(model, "goals_", None)
        goal = None if goals is None or not len(goals) else int(goals[0])
        drawn = model.sample(3, 4 if model.mdp_.horizon is None else None, goal=goal, random_state=0)
        model.score(drawn)
    model._check_arguments()
    model.save(folder / "again.npz")
    messirl.load(folder / "again.npz")


# ------------------------------------------------------------ recordings


def hostile_recording(seeds: list[bytes], rng: Random, folder: Path) -> None:
    n = rng.randint(2, 9)
    arrays = {"observations": np.random.default_rng(0).normal(size=(2 * n, 2)), "actions": np.ones(2 * n - 2, int)}
    arrays |= {"lengths": np.array([n, n]), "terminated": np.array([True, False]), "ids": np.array(["a", "b"])}
    arrays["rewards"] = np.zeros(2 * n - 2)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(sorted(arrays))
        try:
            arrays[name] = spoilt_array(arrays[name], rng)
        except IMPOSSIBLE:
            continue
    kind = rng.random()
    if kind < 0.4:
        (folder / "hostile.npz").write_bytes(packed(arrays, rng))
    elif kind < 0.7:
        (folder / "hostile.parquet").write_bytes(hostile_parquet(rng))
    else:
        hostile_hdf5(folder / "hostile.hdf5", arrays, rng)


def read_recording(folder: Path) -> None:
    (path,) = folder.glob("hostile*")
    readers = {".npz": recordings_from_numpy, ".parquet": recordings_from_table, ".hdf5": episodes_from_hdf5}
    readers[path.suffix](path)


def hostile_parquet(rng: Random) -> bytes:
    rows, out = 12, io.BytesIO()
    columns: dict[str, Any] = {
        "trajectory_id": pa.array(np.repeat(["a", "b"], rows // 2)),
        "step": pa.array(np.tile(np.arange(rows // 2), 2)),
        "o_x": pa.array(np.linspace(0, 1, rows)),
        "action": pa.array(([1] * (rows // 2 - 1) + [None]) * 2),
    }
    kind, name = rng.random(), rng.choice(sorted(columns))
    if kind < 0.15:  # many rows that take no room
        rows = rng.choice([3_000_000, 30_000_000, 100_000_000])
        columns = {key: pa.DictionaryArray.from_arrays(np.zeros(rows, "i1"), [0]) for key in ("step", "o_x", "action")}
        columns["trajectory_id"] = pa.DictionaryArray.from_arrays(np.zeros(rows, "i1"), ["a"])
    elif kind < 0.25:  # one long text in all of them
        rows = 100_000
        columns = {key: pa.array(np.zeros(rows)) for key in ("step", "o_x", "action")}
        columns["trajectory_id"] = pa.DictionaryArray.from_arrays(np.zeros(rows, "i4"), ["a" * 30_000])
    elif kind < 0.7:
        other: list[Any] = [
            *([math.nan] * rows, [None] * rows, ["x"] * rows, [[1]] * rows, [{"a": 1}] * rows, [b"\xff"] * rows),
            *([2**62] * rows, [-1] * rows, [1e308] * rows, [True] * rows),
        ]
        columns[name] = pa.array(rng.choice(other))
    table = pa.table(columns)
    if kind < 0.1:
        table = table.cast(pa.schema([(key, pa.string() if key == "trajectory_id" else pa.int64()) for key in columns]))
    pq.write_table(table, out, compression=rng.choice(["snappy", "zstd", "none"]))
    data = bytearray(out.getvalue())
    if kind >= 0.7:
        for _ in range(rng.choice([1, 3, 30])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def hostile_hdf5(path: Path, arrays: dict[str, Any], rng: Random) -> None:
    import h5py

    size = min(len(arrays["actions"]) if arrays["actions"].ndim else 1, 1000)
    whole = {
        "observations": np.zeros((size + 1, 2)),
        "actions": np.zeros(size, int),
        "rewards": np.zeros(size),
        "terminations": np.zeros(size, bool),
        "truncations": np.zeros(size, bool),
    }
    name, kind = rng.choice(sorted(whole)), rng.random()
    with h5py.File(path, "w") as file:
        group = file.create_group("episode_0")
        for key, array in whole.items():
            if key != name or kind < 0.1:
                group[key] = array
            elif kind < 0.25:  # nothing of it is stored
                group.create_dataset(key, shape=(10 ** rng.choice([6, 8, 9, 12]),), dtype="f8", chunks=(10**6,))
            elif kind < 0.35:
                group.create_dataset(key, shape=(3,), maxshape=(None,), dtype="f8", chunks=(10**8,), compression="gzip")
            elif kind < 0.45:
                group[key] = h5py.ExternalLink("/etc/passwd", "/x")
            elif kind < 0.5:
                group[key] = h5py.SoftLink("/episode_0")
            elif kind < 0.55:
                group.create_dataset(key, shape=(8,), dtype="u1", external=[("/etc/hostname", 0, 8)])
            elif kind < 0.75:
                value = rng.choice([np.array(["a"] * 3, "S1"), np.zeros(3, "c16"), np.float64(1), np.zeros((0, 4))])
                group[key] = value
            elif kind < 0.8:
                group.create_group(key)
            else:
                try:
                    changed = spoilt_array(array, rng)  # what is large is compressed: else the file is honest
                    group.create_dataset(key, data=changed, compression="gzip" if changed.size > 10**6 else None)
                except IMPOSSIBLE:
                    group[key] = array
    if rng.random() < 0.2:
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice([1, 3, 30])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data))


# ------------------------------------------------------------ JSON


def hostile_json(seeds: list[bytes], rng: Random, folder: Path) -> None:
    """problem.json of a folder; or what a fit wrote, or a truth, or a manifest, which are passed over or refused."""
    known = folder / "problem"
    if not known.exists():
        mdp = MDP(np.stack([np.eye(3)] * 2, axis=1), np.eye(3), discount=0.9)
        write_problem(Problem(mdp, Trajectories.from_lists([[0, 0], [1, 1, 1]]), {}), known)
    found: dict[str, Any] = {"discount": 0.9, "horizon": None, "y_axis": "up", "state_names": ["a", "b", "c"]}
    found |= {"feature_names": ["x", "y", "z"], "action_names": ["l", "r"]}
    (known / "problem.json").write_bytes(as_text(spoilt_json(found, rng), rng))


def read_json(folder: Path) -> None:
    read_problem(folder / "problem")


MAKE = {"models": hostile_model, "recordings": hostile_recording, "json": hostile_json}
READ = {"models": read_model, "recordings": read_recording, "json": read_json}


def cases(kind: str, count: int, seed: int, folder: Path) -> Iterator[tuple[int, str]]:
    """The outcome of each file of a kind."""
    seeds = models() if kind == "models" else []
    for case in range(count):
        for old in folder.glob("hostile*"):
            old.unlink()
        outcome(partial(MAKE[kind], seeds, Random(f"{kind}-{seed}-{case}"), folder))  # in a child, for its memory
        if any(folder.glob("hostile*")) or kind == "json":
            yield case, outcome(partial(READ[kind], folder))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("models", "recordings", "json"))
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case, said in cases(arguments.kind, arguments.count, arguments.seed, Path(folder)):
            told[said.split(":")[0]] += 1
            if said.startswith("fault"):
                print(f"{arguments.kind} {arguments.seed} {case}: {said}", flush=True)
    print(", ".join(f"{many} {said}" for said, many in sorted(told.items())))
    return int(told["fault"] > 0)


if __name__ == "__main__":
    sys.exit(main())
