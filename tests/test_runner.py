"""The runner: one table whatever the number of jobs and however often it was killed on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from messirl.paper.experiments import reproduction as whole, runner
from messirl.paper.experiments.paper_settings import QUICK, SETTINGS, Setting
from messirl.paper.experiments.reproduction import Plan
from messirl.paper.experiments.result_store import Origin, Store
from messirl.paper.experiments.runner import Task, configuration, run, run_task

MADE = Origin("1.0", "abcdef", 7, "0123456789ab")
SWEEPS = {"unlabelled": (0, 2), "nu": (0.0, 1.0), "lambda": (0.0, 0.5), "em": (1, 2)}
TINY = Setting("pit", lambda0=0.5, iterations=3, u=3, arguments={"pool": 4}, sweeps=SWEEPS)
GRID = Setting("gridworld", lambda0=2.0, iterations=12, u=4, arguments={"pool": 4}, figures=("em",), sweeps=SWEEPS)

# A small reproduction as its own process: arguments are the folder, the number of jobs and of runs.
CHILD = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[4])
import test_runner
import messirl.paper.experiments.reproduction as whole
import messirl.paper.experiments.result_store as store

if __name__ == "__main__":
    store.commit = lambda: "abcdef"
    whole.SETTINGS = {"pit": test_runner.TINY}
    whole.decide = lambda table: []
    plan = whole.Plan(Path(sys.argv[1]), jobs=int(sys.argv[2]), runs=int(sys.argv[3]))
    whole.reproduce(plan, lambda done, total: print(done, total, flush=True))
"""


def tasks(runs, **settings):
    return [Task(n, s, f, k, 7 + k) for k in range(runs) for n, s in settings.items() for f in s.figures]


def opened(folder):
    store = Store(folder, MADE)
    store.open()
    return store


def silent(done, total):
    pass


def table_bytes(store, todo):
    store.write_table(store.table([task.key for task in todo]), store.folder / "results.parquet")
    return (store.folder / "results.parquet").read_bytes()


# ------------------------------------------------------------ tasks


def test_a_task_depends_on_itself_alone():
    task = tasks(1, pit=TINY)[0]
    first = run_task(task)
    run_task(replace(task, seed=99))
    assert run_task(task) == first
    assert run_task(replace(task, seed=99, run=0)) != first


def test_rows_say_where_they_come_from():
    for row in run_task(Task("pit", TINY, "nu", 4, 11)):
        found = {k: row[k] for k in ("domain", "figure", "run", "seed", "config_hash")}
        assert found == {"domain": "pit", "figure": "nu", "run": 4, "seed": 11, "config_hash": TINY.config_hash}


def test_figures_of_one_run_share_their_scene():
    """MaxEnt is the same number in every figure of a run."""
    by_figure = [
        {
            r["performance"]
            for r in run_task(Task("pit", TINY, f, 0, 7))
            if r["method"] == "MaxEnt" and r["iteration"] == 3
        }
        for f in ("iterations", "nu", "lambda")
    ]
    assert len(set.union(*by_figure)) == 1


def test_keys_are_file_names_and_all_different():
    for quick in (False, True):
        keys = [task.key for task in Plan(Path("x"), runs=3, quick=quick).tasks()]
        assert len(set(keys)) == len(keys)
        assert all(not set(key) & set("/\\: ") for key in keys)


def test_a_plan_has_every_figure_of_every_setting_and_its_own_seeds():
    todo = Plan(Path("x"), runs=2, seed=5).tasks()
    assert {(t.name, t.figure) for t in todo} == {(n, f) for n, s in SETTINGS.items() for f in s.figures}
    assert {(t.run, t.seed) for t in todo} == {(0, 5), (1, 6)}
    chosen = Plan(Path("x"), ("pit",), ("nu", "em"), runs=1).tasks()
    assert [(t.name, t.figure) for t in chosen] == [("pit", "nu"), ("pit", "em")]
    assert {t.setting.config_hash for t in Plan(Path("x"), ("pit",), quick=True).tasks()} == {QUICK["pit"].config_hash}


def test_the_configuration_changes_with_any_setting():
    base = configuration({"pit": TINY, "gridworld": GRID})
    assert configuration({"pit": TINY, "gridworld": GRID}) == base
    assert configuration({"pit": replace(TINY, nu=0.4), "gridworld": GRID}) != base
    assert configuration({"pit": TINY}) != base
    assert configuration(QUICK) != configuration(SETTINGS)


# ------------------------------------------------------------ running


def test_progress_counts_from_what_is_there_to_all(tmp_path):
    store, todo, heard = opened(tmp_path), tasks(1, pit=TINY), []
    run(store, todo[:2], 1, lambda done, total: heard.append((done, total)))
    assert heard == [(0, 2), (1, 2), (2, 2)]
    heard.clear()
    run(store, todo, 1, lambda done, total: heard.append((done, total)))
    assert heard == [(2, 5), (3, 5), (4, 5), (5, 5)]


def test_what_is_there_is_not_done_again(tmp_path, monkeypatch):
    store, todo = opened(tmp_path), tasks(1, pit=TINY)
    run(store, todo, 1, silent)
    before = {p: p.stat().st_mtime_ns for p in store.parts.iterdir()}
    monkeypatch.setattr(runner, "run_task", lambda task: pytest.fail(f"{task.key} was done again"))
    run(store, todo, 1, silent)
    assert {p: p.stat().st_mtime_ns for p in store.parts.iterdir()} == before


@pytest.mark.slow
def test_the_same_table_bit_for_bit_whatever_the_number_of_jobs(tmp_path):
    todo = tasks(1, pit=replace(TINY, figures=("em",)), gridworld=GRID)
    found = []
    for jobs in (1, 2):
        store = opened(tmp_path / str(jobs))
        run(store, todo, jobs, silent)
        found.append(table_bytes(store, todo))
    assert found[0] == found[1]


THREADED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import test_runner
from messirl.paper.experiments.runner import Task, run_task
print(json.dumps(run_task(Task("gridworld", test_runner.GRID, "em", 0, 1000)), default=float))
"""


@pytest.mark.slow
def test_the_same_numbers_whatever_the_number_of_threads():
    """A job more or less changes how many threads linear algebra has; so does another computer.

    The same but for rounding: threads add up a sum in parts.
    """
    found = []
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", THREADED, str(Path(__file__).parent)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert len(found[0]) == len(found[1]) > 0
    for one, other in zip(*found, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            close = isinstance(value, float)
            assert other[name] == (pytest.approx(value, rel=1e-9, abs=1e-12) if close else value), name


def test_dying_after_any_number_of_parts_and_going_on_gives_the_same_table(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    todo = tasks(1, pit=TINY)
    whole_store = opened(tmp_path / "whole")
    run(whole_store, todo, 1, silent)
    wanted, store, put = table_bytes(whole_store, todo), opened(tmp_path / "killed"), Store.put
    for _ in todo:  # every life does one part and dies in the next

        def once(self, key, rows, lives=iter([True])):  # noqa: B008
            if next(lives, False):
                return put(self, key, rows)
            (self.parts / f".{key}.parquet.1").write_bytes(b"PAR1 half")
            raise Killed

        monkeypatch.setattr(Store, "put", once)
        try:
            run(opened(store.folder), todo, 1, silent)
        except Killed:
            continue
    monkeypatch.setattr(Store, "put", put)
    run(opened(store.folder), todo, 1, silent)
    assert table_bytes(store, todo) == wanted


@pytest.mark.slow
def test_the_environment_is_as_it_was_after_a_failure_in_a_worker(tmp_path):
    before = dict(os.environ)
    wrong = replace(TINY, arguments={"pool": 0})  # u = 3 of 0 draws
    with pytest.raises(ValueError, match="u=3: must be at most 0"):
        run(opened(tmp_path), [Task("pit", wrong, "nu", 0, 7)], 2, silent)
    assert dict(os.environ) == before


# ------------------------------------------------------------ killed


def child(folder, jobs, runs=6):
    code = folder.parent / "child.py"
    code.write_text(CHILD)
    return subprocess.Popen(
        [sys.executable, str(code), str(folder), str(jobs), str(runs), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def uninterrupted(folder, monkeypatch, runs=6):
    monkeypatch.setattr("messirl.paper.experiments.result_store.commit", lambda: "abcdef")
    monkeypatch.setattr(whole, "SETTINGS", {"pit": TINY})
    monkeypatch.setattr(whole, "evaluate_claims", lambda table: [])
    whole.reproduce(Plan(folder, runs=runs), silent)
    return (folder / "results.parquet").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_again_and_again_at_random_moments_the_table_is_that_of_an_uninterrupted_run(
    tmp_path, monkeypatch, jobs
):
    wanted = uninterrupted(tmp_path / "whole", monkeypatch)
    chance, lives, folder = random.Random(jobs), 0, tmp_path / "killed"
    while lives < 5:
        process = child(folder, jobs)
        try:
            process.stdout.readline()  # it has begun
            time.sleep(chance.uniform(0.0, 0.4) * (1 if jobs == 1 else 12))
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            break
        finally:
            process.communicate()
        lives += 1
    last = child(folder, jobs)
    _, errors = last.communicate(timeout=200)
    assert last.returncode == 0, errors
    assert (folder / "results.parquet").read_bytes() == wanted


@pytest.mark.slow
def test_two_processes_on_one_store_at_once_do_no_harm(tmp_path, monkeypatch):
    wanted = uninterrupted(tmp_path / "whole", monkeypatch)
    both = [child(tmp_path / "shared", 1) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
    assert (tmp_path / "shared" / "results.parquet").read_bytes() == wanted


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = child(tmp_path / "out", 2, runs=40)
    for _ in range(4):
        process.stdout.readline()  # both workers are at work
    process.kill()  # the parent alone
    process.wait()
    until = time.monotonic() + 15
    while (left := in_session(process.pid)) and time.monotonic() < until:
        time.sleep(0.3)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    assert left == []


def in_session(leader):
    """Processes of a session, by their id."""
    out = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            out.append(int(path.parent.name))
    return out
