"""The store: parts whole or not there, one table whoever wrote them, and nothing mixed, lost or overwritten."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import messirl
from messirl.paper.experiments.result_store import SCHEMA, Origin, Store, StoreError, commit, origin

MADE = Origin("1.0", "abcdef", 7, "0123456789ab")
COLUMNS = [
    "domain",
    "figure",
    "method",
    "x",
    "run",
    "iteration",
    "performance",
    "theta_norm",
    "objective",
    "seed",
    "config_hash",
    "version",
    "commit",
]


def rows(run, n=4, seed=0):
    random = np.random.default_rng([run, seed])
    return [
        {
            "domain": "pit",
            "figure": "iterations",
            "method": "MaxEnt",
            "x": float(k),
            "run": run,
            "iteration": k,
            "performance": random.normal(),
            "theta_norm": random.random(),
            "objective": random.normal(),
            "converged": False,
            "seed": 7 + run,
            "config_hash": "0123456789ab",
        }
        for k in range(n)
    ]


def content(folder):
    """Every file below a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "out", MADE)
    made.open()
    for run in range(3):
        made.put(f"pit-iterations-{run:03d}", rows(run))
    return made


KEYS = [f"pit-iterations-{run:03d}" for run in range(3)]


# ------------------------------------------------------------ parts and table


def test_the_table_has_the_columns_everything_relies_on_and_its_origin(store):
    table = store.table(KEYS)
    assert set(COLUMNS) <= set(table.column_names)
    assert table.num_rows == 12
    assert set(table["version"].to_pylist()) == {"1.0"}
    assert set(table["commit"].to_pylist()) == {"abcdef"}
    assert set(table["seed"].to_pylist()) == {7, 8, 9}


def test_numbers_come_back_bit_for_bit(store):
    found = [r["performance"] for r in store.table(KEYS[1:2]).to_pylist()]
    assert found == [r["performance"] for r in rows(1)]


def test_the_table_and_its_file_do_not_depend_on_who_wrote_what_when(store, tmp_path):
    other = Store(tmp_path / "other", MADE)
    other.open()
    for run in (2, 0, 1):
        other.put(f"pit-iterations-{run:03d}", list(reversed(rows(run))))
    assert other.table(KEYS).equals(store.table(KEYS[::-1]))
    for s in (store, other):
        s.write_table(s.table(KEYS), s.folder / "results.parquet")
    assert content(store.folder)["results.parquet"] == content(other.folder)["results.parquet"]


def test_a_store_that_exists_is_gone_on_with(store):
    before = content(store.folder)
    again = Store(store.folder, MADE)
    again.open()
    assert again.has(KEYS[0])
    assert not again.has("pit-iterations-003")
    assert content(store.folder) == before


def test_a_part_that_cannot_be_written_leaves_the_old_one_and_no_litter(store, monkeypatch):
    before = content(store.folder)

    def full(table, where, **arguments):
        with open(where, "wb") as file:
            file.write(b"PAR1 half a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space"):
        store.put(KEYS[0], rows(0))
    assert content(store.folder) == before


@pytest.mark.parametrize("moment", ["writing", "renaming"])
def test_dying_at_any_moment_of_a_write_leaves_whole_parts_only(store, moment, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*arguments, **more):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*((pq, "write_table") if moment == "writing" else (os, "replace")), die)
        with pytest.raises(Killed):
            store.put("pit-iterations-003", rows(3))
    assert not store.has("pit-iterations-003")
    Store(store.folder, MADE).open()
    store.put("pit-iterations-003", rows(3))
    assert store.table([*KEYS, "pit-iterations-003"]).num_rows == 16


def test_a_leftover_of_a_killed_process_is_harmless(store):
    for name in (f".{KEYS[0]}.parquet.4321", ".pit-iterations-009.parquet.4321"):
        (store.parts / name).write_bytes(b"PAR1 half")
    (store.folder / ".manifest.json.4321").write_text("{")
    (store.folder / ".results.parquet.4321").write_bytes(b"PAR1")
    again = Store(store.folder, MADE)
    again.open()
    assert not again.has("pit-iterations-009")
    assert again.table(KEYS).num_rows == 12


def test_a_leftover_in_a_store_that_had_only_begun_is_harmless(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / ".manifest.json.4321").write_text('{"version": ')
    store = Store(tmp_path, MADE)
    store.open()
    assert json.loads((tmp_path / "manifest.json").read_text()) == asdict(MADE)


@pytest.mark.slow
def test_two_writers_of_the_same_part_do_no_harm(store):
    wanted = store.table(KEYS)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; import test_store as t\n"
        "s = t.Store(Path(sys.argv[2]), t.MADE); s.open()\n"
        "for _ in range(40): [s.put(k, t.rows(i)) for i, k in enumerate(t.KEYS)]\n"
    )
    here = os.path.dirname(__file__)
    other = subprocess.Popen([sys.executable, "-c", code, here, str(store.folder)], stderr=subprocess.PIPE, text=True)
    try:
        while other.poll() is None:
            for i, key in enumerate(KEYS):
                store.put(key, rows(i))
            assert store.table(KEYS).equals(wanted)
    finally:
        other.kill()
        _, errors = other.communicate()
    assert other.returncode == 0, errors
    assert store.table(KEYS).equals(wanted)
    assert not [p for p in store.parts.iterdir() if p.name.startswith(".")]


def test_a_file_system_without_hard_links_serves_too(tmp_path, monkeypatch):
    def refused(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    Store(tmp_path / "out", MADE).open()
    assert json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8")) == asdict(MADE)
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".manifest")] == []
    with pytest.raises(StoreError, match="results are never mixed"):
        Store(tmp_path / "out", replace(MADE, seed=MADE.seed + 1)).open()


def test_two_that_begin_at_once_with_different_origins_are_not_mixed(tmp_path, monkeypatch):
    """Both find no manifest; one of them must still be refused."""
    both, one = threading.Barrier(2, timeout=2), threading.Lock()
    write = Store.write_text

    def together(target, text):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait()
        with one:
            write(target, text)

    monkeypatch.setattr(Store, "write_text", staticmethod(together))
    refused = []

    def begin(seed):
        try:
            Store(tmp_path / "out", replace(MADE, seed=seed)).open()
        except StoreError:
            refused.append(seed)

    threads = [threading.Thread(target=begin, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = json.loads((tmp_path / "out" / "manifest.json").read_text())["seed"]
    assert refused == [3 - left]


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("field", "value"), [("version", "2.0"), ("commit", "fedcba"), ("seed", 8), ("config", "ba9876543210")]
)
def test_another_origin_is_refused_with_the_way_out_and_nothing_is_changed(store, field, value):
    before = content(store.folder)
    with pytest.raises(StoreError) as caught:
        Store(store.folder, replace(MADE, **{field: value})).open()
    said = str(caught.value)
    assert str(store.folder) in said
    assert f"{field} {getattr(MADE, field)}" in said
    assert str(value) in said
    assert "another `out`" in said
    assert "remove" in said
    assert content(store.folder) == before


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b"7", b"{}", b'{"version": "1.0"}', b"\xff\xfe\x00", b'{"version": 1, "nonsense": 2}'],
)
def test_a_damaged_manifest_is_refused_with_the_way_out_and_nothing_is_changed(store, damage):
    (store.folder / "manifest.json").write_bytes(damage)
    before = content(store.folder)
    with pytest.raises(StoreError, match=r"manifest\.json.*damaged.*another `out`"):
        store.open()
    assert content(store.folder) == before


def test_parts_without_a_manifest_are_refused(store):
    (store.folder / "manifest.json").unlink()
    before = content(store.folder)
    with pytest.raises(StoreError, match=r"no manifest\.json.*another `out`"):
        store.open()
    assert content(store.folder) == before


@pytest.mark.parametrize("name", ["results.parquet", "claims.json", "report.html"])
def test_a_folder_with_results_of_somebody_else_is_refused_before_they_are_overwritten(tmp_path, name):
    (tmp_path / name).write_bytes(b"years of work")
    with pytest.raises(StoreError, match=r"another `out`"):
        Store(tmp_path, MADE).open()


def damaged(path, how):
    data = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "text":
        path.write_text("not a table")
    elif how == "columns":
        pq.write_table(pa.table({"a": [1, 2]}), path)
    elif how == "no rows":
        pq.write_table(SCHEMA.empty_table(), path)
    elif how == "another store's":
        table = pq.read_table(path)
        at = table.column_names.index("commit")
        pq.write_table(table.set_column(at, "commit", pa.array(["fedcba"] * len(table))), path)


@pytest.mark.parametrize("how", ["empty", "cut", "text", "columns", "no rows", "another store's"])
def test_a_damaged_part_is_named_with_the_way_out_and_the_others_are_left(store, how):
    damaged(store.path(KEYS[1]), how)
    before = content(store.folder)
    with pytest.raises(StoreError) as caught:
        store.table(KEYS)
    assert str(store.path(KEYS[1])) in str(caught.value)
    assert "remove it and run again" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert content(store.folder) == before


def test_a_flipped_bit_anywhere_in_a_part_is_never_read_as_another_number(store):
    path, wanted = store.path(KEYS[0]), store.table(KEYS[:1])
    data = path.read_bytes()
    wrong = []
    for at in range(0, len(data), 11):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        try:
            found = store.table(KEYS[:1])
        except StoreError:
            continue
        if not found.select(COLUMNS).equals(wanted.select(COLUMNS)):
            wrong.append(at)
    assert wrong == []


def test_foreign_files_beside_the_parts_do_not_get_into_the_table(store):
    (store.parts / "notes.txt").write_text("mine")
    pq.write_table(store.table(KEYS), store.parts / "pit-iterations-000 (copy).parquet")
    store.open()
    assert store.table(KEYS).num_rows == 12


# ------------------------------------------------------------ text, origin


def test_text_is_written_the_same_whatever_the_language_of_the_machine(tmp_path):
    code = (
        "import sys; from pathlib import Path; from messirl.paper.experiments.result_store import Store\n"
        "Store.write_text(Path(sys.argv[1]), 'MESSI on \\u03bc1: \\u03b8')\n"
    )
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    target = tmp_path / "claims.json"
    done = subprocess.run(
        [sys.executable, "-c", code, str(target)], env=plain, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert target.read_bytes().decode() == "MESSI on μ1: θ"


def test_the_origin_names_version_commit_seed_and_configuration():
    made = origin(1000, "0123456789ab")
    assert made == Origin(messirl.__version__, commit(), 1000, "0123456789ab")


def test_without_git_the_commit_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() == "unknown"
