"""Work on a Dask cluster: the same answers as here, whoever is killed, and clear words where it cannot be used."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from errands import LIMIT, do_all_slowly, forgotten, hold, nap, square, square_later, wait_until
from folders import grid as grid_folder
from numpy.testing import assert_allclose
from test_execution import chosen, left_out, resampled
from test_reproduce_command import one_sentence
from test_runner import TINY, opened, silent, table_bytes, tasks
from test_streamed import spread, table_of

import messirl
from messirl import MESSI, cluster, parallel
from messirl.app import cli
from messirl.data.feature_counts import feature_counts
from messirl.data.streamed_summary import gather_statistics
from messirl.io import StreamedTrajectories, read_problem, write_trajectories
from messirl.io.folder.labels import Labels
from messirl.paper.experiments import reproduction as whole, runner
from messirl.paper.experiments.reproduction import Plan
from messirl.similarity import RBF

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
]
SILENT = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
WHILE_WE_LIVE = """
import os, runpy, sys, threading, time

def end_with_parent(parent=os.getppid()):
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)

threading.Thread(target=end_with_parent, daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""


class Dask:
    """A scheduler and workers on this machine, each a process of its own."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.workers = []
        self.environment = {**os.environ, **dict.fromkeys(parallel.THREADS, "1")}
        here = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment |= {"PYTHONPATH": here, "DASK_TEMPORARY_DIRECTORY": str(folder)}
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)]
        self.scheduler = self._begun("dask_scheduler", words, self.environment)
        wait_until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"]

    def _begun(self, name, words, environment):
        command = [sys.executable, "-c", WHILE_WE_LIVE, f"distributed.cli.{name}", *words]
        return subprocess.Popen(command, env=environment, **SILENT)

    def add_worker(self, path=None, threads=1):
        """Another worker, which finds packages in the folder `path` first."""
        more = {} if path is None else {"PYTHONPATH": os.pathsep.join([str(path), self.environment["PYTHONPATH"]])}
        words = [self.address, "--no-nanny", "--no-dashboard", "--nthreads", str(threads), "--host", "127.0.0.1"]
        self.workers.append(self._begun("dask_worker", words, self.environment | more))
        return self

    def end(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait(LIMIT)


@contextlib.contextmanager
def started(folder, workers=2):
    dask = Dask(folder)
    try:
        for _ in range(workers):
            dask.add_worker()
        yield dask
    finally:
        dask.end()


def connected(dask, workers=2):
    """An executor that has all workers."""
    found = cluster.connect(dask.address, LIMIT)
    found.client.wait_for_workers(workers, timeout=LIMIT)
    return found


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with started(tmp_path_factory.mktemp("dask")) as found:
        yield found


@pytest.fixture(scope="module")
def two(dask):
    with connected(dask) as executor:
        yield executor


# ------------------------------------------------------------ the same answers


@pytest.mark.parametrize("work", [chosen, resampled, left_out], ids=lambda f: f.__name__)
def test_the_answers_do_not_depend_on_the_cluster(work, two):
    for here, there in zip(work(None), work(two), strict=True):
        assert_allclose(here, there, rtol=1e-4, atol=1e-6)  # sums over threads round otherwise


def test_answers_come_in_the_order_of_the_tasks_and_each_is_told(two):
    told = []
    assert list(parallel.run(square, range(7), two, lambda *now: told.append(now))) == [0, 1, 4, 9, 16, 25, 36]
    assert told == [(i, 7) for i in range(1, 8)]


def test_a_function_is_sent_once_however_many_tasks_it_has(two):
    work = Heavy()
    assert list(parallel.run(work, range(5), two)) == list(range(5))
    assert work.packed == 1


class Heavy:
    """A function that counts how often it is packed."""

    packed = 0

    def __call__(self, x):
        return x

    def __getstate__(self):
        self.packed += 1
        return {}


def test_a_failure_is_raised_where_its_answer_was_due(two):
    found = parallel.run(int, ["1", "2", "three", "4"], two)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="invalid literal for int"):
        next(found)


def test_what_is_done_is_handed_on_before_a_failure_is_raised():
    kept = []
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="invalid literal for int"):
        kept.extend(parallel.completed(int, ["1", "2", "three"], pool))
    assert sorted(kept) == [("1", 1), ("2", 2)]


def test_the_same_table_bit_for_bit_as_without_a_cluster(tmp_path, two):
    todo, found = tasks(1, pit=TINY), []
    for name, executor in (("here", None), ("there", two)):
        store, heard = opened(tmp_path / name), []
        runner.run(store, todo, 1, lambda *now, heard=heard: heard.append(now), executor)
        assert heard == [(i, len(todo)) for i in range(len(todo) + 1)]
        found.append(table_bytes(store, todo))
    assert found[0] == found[1]


def test_the_commands_say_the_same_with_a_cluster(tmp_path, run, dask):
    folder = grid_folder(tmp_path / "grid")
    data = [folder, "--expert", "role = expert", "--unlabelled", "role = unlabelled"]
    choice = ["select", *data, "--bootstrap", 2, "--lambdas", "0.1", "--cv", 2]
    for words in (choice, ["diagnose", *data, "--influential", 2, "--cv", 2]):
        here, there = (
            json.loads(run(*words, "--json", "--out", tmp_path / f"{words[0]}{len(more)}", *more))
            for more in ([], ["--cluster", dask.address])
        )
        names = ("chosen", "intervals") if words[0] == "select" else ("verdict", "most_influential")
        for name in names:
            assert_nearly(here[name], there[name])


def test_files_are_read_by_the_workers_with_the_same_result(tmp_path, run, dask, monkeypatch):
    folder = grid_folder(tmp_path / "grid")
    some = read_problem(folder).select("role = unlabelled")
    write_trajectories(some.trajectories, tmp_path / "some.parquet", labels=Labels.of(some))
    monkeypatch.setattr("messirl.data.streamed_trajectories.PART", 0)  # every file is a part
    spread(pq.read_table(tmp_path / "some.parquet"), tmp_path / "files")
    words = ["fit", folder, "--expert", "role = expert", "--unlabelled-from", tmp_path / "files", "--no-baselines"]
    here, there = (
        json.loads(run(*words, "--json", "--no-report", "--out", tmp_path / f"out{len(more)}", *more))
        for more in ([], ["--cluster", dask.address])
    )
    assert_nearly(here["theta"], there["theta"])


def in_files(folder, monkeypatch):
    """An MDP, experts, and others in memory and in files that are parts of their own; too many for all pairs."""
    monkeypatch.setattr("messirl.data.streamed_trajectories.PART", 0)
    monkeypatch.setattr("messirl.similarity.penalty_blocks.EXACT", 20)
    given = read_problem(grid_folder(folder / "grid"))
    expert, others = (given.select(f"role = {role}").trajectories for role in ("expert", "unlabelled"))
    return given.mdp, expert, others, spread(table_of(others), folder / "files", 5)


def test_the_penalty_is_added_up_by_the_workers_with_the_same_result(tmp_path, two, monkeypatch):
    mdp, expert, walks, files = in_files(tmp_path, monkeypatch)
    here = MESSI(lambda0=0.1).fit(mdp, expert, walks)
    streamed = StreamedTrajectories(files, executor=two)
    there = MESSI(lambda0=0.1).fit(mdp, expert, streamed)
    counts = gather_statistics(mdp, streamed, counted=True).counts
    assert sum(isinstance(block, parallel.KeptResult) for block in counts.blocks) == 5
    assert_allclose(there.penalty_matrix_, here.penalty_matrix_, rtol=1e-8, atol=1e-10)
    assert_allclose(there.theta_, here.theta_, rtol=1e-4, atol=1e-6)


def assert_nearly(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_nearly(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_nearly(a, b)
    else:
        assert other == (pytest.approx(one, rel=1e-4, abs=1e-6) if isinstance(one, float) else one)


# ------------------------------------------------------------ clusters that cannot be used


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_scheduler_that_is_not_there_is_said_soon():
    began = time.monotonic()
    with pytest.raises(cluster.ClusterError, match=r"no scheduler answers at tcp://127\.0\.0\.1:\d+ within 0\.5 s"):
        cluster.connect(f"tcp://127.0.0.1:{free_port()}", 0.5)
    assert time.monotonic() - began < LIMIT


def test_one_who_listens_and_never_answers_is_no_scheduler():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(cluster.ClusterError, match="no scheduler answers at"),
    ):
        cluster.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}", 0.5)


@pytest.mark.parametrize("address", ["foo://x:1", "tcp://127.0.0.1:x", ""])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(cluster.ClusterError, match="is not the address of a scheduler: give one such as"):
        cluster.connect(address, 0.5)


def test_without_dask_the_error_names_the_extra(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'messirl\[cluster\]'"):
        cluster.connect("tcp://127.0.0.1:1")
    folder = grid_folder(tmp_path / "grid")
    assert cli.main(["select", str(folder), "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "messirl[cluster]" in capsys.readouterr().err


def test_after_closing_nothing_is_taken_and_the_cluster_runs_on(dask, two):
    with connected(dask) as executor:
        left = executor.submit(time.sleep, 30)
    with pytest.raises(cluster.ClusterError, match="was closed"):
        left.result(LIMIT)
    with pytest.raises(cluster.ClusterError, match="is closed: connect again"):
        executor.submit(abs, 1)
    assert len(two.client.nthreads()) == 2


def test_tasks_that_are_cancelled_before_they_begin_are_not_done(two, tmp_path):
    client = two.client
    busy = [client.submit(hold, tmp_path / "go", workers=[name], pure=False) for name in client.nthreads()]
    wait_until(lambda: sum(map(len, client.processing().values())) == len(busy))
    late = [two.submit(Path.touch, tmp_path / f"done {i}") for i in range(100)]
    keys = [two._waiting[future][0].key for future in late]
    assert all(future.cancel() for future in late)
    wait_until(lambda: client.run_on_scheduler(forgotten, keys))
    (tmp_path / "go").touch()
    for future in busy:
        future.result(LIMIT)
    assert list(parallel.run(abs, range(4), two)) == [0, 1, 2, 3]
    assert not list(tmp_path.glob("done*"))


def test_a_function_may_change_with_every_task(two):
    found = [two.submit([abs, int, square][i % 3], -i) for i in range(30)]
    assert [future.result(LIMIT) for future in found] == [[i, -i, i * i][i % 3] for i in range(30)]


def test_any_source_file_changes_the_fingerprint(tmp_path, monkeypatch):
    home = copied(tmp_path)
    monkeypatch.setattr(cluster, "__file__", str(home / "cluster.py"))
    assert cluster.fingerprint.__wrapped__() == cluster.fingerprint()
    with (home / "objective.py").open("a") as file:
        file.write("\n")
    assert cluster.fingerprint.__wrapped__() != cluster.fingerprint()


def copied(folder):
    """A copy of the package."""
    home = Path(messirl.__file__).parent
    return Path(shutil.copytree(home, folder / "messirl", ignore=shutil.ignore_patterns("__pycache__")))


# ------------------------------------------------------------ other versions


def with_another_version(folder):
    (folder / "messirl-9.9.9.dist-info").mkdir()
    (folder / "messirl-9.9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: messirl\nVersion: 9.9.9\n"
    )


def with_other_files(folder):
    with (copied(folder) / "objective.py").open("a") as file:
        file.write("# another solver\n")


def without(folder):
    (folder / "messirl.py").write_text("raise ModuleNotFoundError('messirl')\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            with_another_version,
            rf"the worker tcp://\S+ has messirl 9\.9\.9, but this is {messirl.__version__}: install",
        ),
        (with_other_files, rf"the worker tcp://\S+ has messirl {messirl.__version__} with different files"),
        (without, r"the worker tcp://\S+ has no messirl: install"),
    ],
)
def test_a_worker_with_another_messirl_is_refused(make, said, tmp_path):
    make(tmp_path)
    with started(tmp_path, workers=0) as dask:
        dask.add_worker(tmp_path)
        with pytest.raises(cluster.ClusterError, match=said):
            cluster.connect(dask.address, LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("make", [with_other_files, without])
def test_a_worker_with_another_messirl_that_comes_later_is_refused(make, tmp_path):
    make(tmp_path)
    with started(tmp_path, workers=1) as dask, connected(dask, 1) as executor:
        assert list(parallel.run(square, range(3), executor)) == [0, 1, 4]
        dask.add_worker(tmp_path)
        executor.client.wait_for_workers(2, timeout=LIMIT)
        with pytest.raises(cluster.ClusterError, match="messirl"):
            list(parallel.run(square_later, range(50), executor))


@pytest.mark.slow
def test_threads_of_one_worker_take_turns_and_the_user_is_told(tmp_path):
    with started(tmp_path, workers=0) as dask:
        dask.add_worker(threads=2)
        with pytest.warns(UserWarning, match="has several threads, of which only one works at a time"):
            executor = cluster.connect(dask.address, LIMIT)
        with executor:
            times = list(parallel.run(nap, range(4), executor))
    assert all(before[1] <= after[0] for before, after in zip(sorted(times), sorted(times)[1:], strict=False))


# ------------------------------------------------------------ killed


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_does_not_change_the_table(tmp_path, monkeypatch):
    todo = tasks(5, pit=TINY)
    here, there = opened(tmp_path / "here"), opened(tmp_path / "there")
    runner.run(here, todo, 1, silent)
    monkeypatch.setattr(runner, "run_tasks", do_all_slowly)
    with started(tmp_path) as dask, connected(dask) as executor:
        heard = []

        def progress(done, total):
            heard.append(done)
            if done == 3:
                os.kill(dask.workers[0].pid, signal.SIGKILL)

        runner.run(there, todo, 1, progress, executor)
        assert len(executor.client.nthreads()) == 1
    assert heard == list(range(len(todo) + 1))
    assert table_bytes(here, todo) == table_bytes(there, todo)


@pytest.mark.slow
def test_counts_that_are_lost_with_a_worker_are_made_again(tmp_path, monkeypatch):
    mdp, _, walks, files = in_files(tmp_path, monkeypatch)
    with started(tmp_path) as dask, connected(dask) as executor:
        streamed = StreamedTrajectories(files, executor=executor)
        counts = gather_statistics(mdp, streamed, counted=True).counts
        before = counts.sum()
        os.kill(dask.workers[0].pid, signal.SIGKILL)
        wait_until(lambda: len(executor.client.nthreads()) == 1)
        assert_allclose(counts.sum(), before, rtol=1e-12)
        found = RBF("median", standardise=True).penalty(None, counts)
    wanted = RBF("median", standardise=True).penalty(None, feature_counts(mdp, walks))
    assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_without_any_worker_left_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    with started(tmp_path) as dask, connected(dask) as executor:
        found = parallel.run(square_later, range(200), executor)
        next(found)
        for worker in dask.workers:
            worker.kill()
        with pytest.raises(cluster.ClusterError, match="no worker is left at tcp://"):
            list(found)


@pytest.mark.slow
def test_a_task_that_kills_every_worker_it_meets_is_named(tmp_path):
    said = r"one task killed several workers .* \(out of memory\?\)"
    with (
        started(tmp_path, workers=4) as dask,
        connected(dask, 4) as executor,
        pytest.raises(cluster.ClusterError, match=said),
    ):
        executor.submit(os._exit, 1).result(LIMIT)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_scheduler_that_is_gone_is_noticed(tmp_path, number):
    with started(tmp_path, workers=1) as dask, connected(dask, 1) as executor:
        left = executor.submit(hold, tmp_path / "never")
        dask.scheduler.send_signal(number)
        with pytest.raises(cluster.ClusterError, match="no longer answers: start it and its workers again"):
            left.result(LIMIT)
        dask.scheduler.wait(LIMIT)


@pytest.mark.slow
def test_with_the_scheduler_killed_finished_work_is_kept_and_the_command_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("messirl.paper.experiments.result_store.commit", lambda: "abcdef")
    monkeypatch.setattr(whole, "SETTINGS", {"pit": TINY})
    monkeypatch.setattr(whole, "evaluate_claims", lambda table: [])
    monkeypatch.setattr("messirl.app.report.paper.reproduction_page.write_report", lambda *_: "page")
    whole.reproduce(Plan(tmp_path / "here", runs=6), silent)
    monkeypatch.setattr(runner, "run_tasks", do_all_slowly)
    wanted, out = (tmp_path / "here" / "results.parquet").read_bytes(), tmp_path / "there"

    def command(address):
        return cli.main(["reproduce", "--domain", "pit", "--runs", "6", "--out", str(out), "--cluster", address])

    parts = out / "parts"
    (tmp_path / "first").mkdir()
    with started(tmp_path / "first") as dask:

        def kill_in_the_middle():
            wait_until(lambda: len(list(parts.glob("*.parquet"))) >= 3)
            dask.scheduler.kill()

        killer = threading.Thread(target=kill_in_the_middle)
        killer.start()
        code = command(dask.address)
        killer.join()
    said = one_sentence(capsys.readouterr().err)
    assert code == 2
    assert "no longer answers" in said
    assert "finished work is kept: run the same command to continue" in said
    kept = {place: place.stat().st_mtime_ns for place in parts.glob("*.parquet")}
    assert 3 <= len(kept) < 30
    assert not (out / "results.parquet").exists()
    (tmp_path / "second").mkdir()
    with started(tmp_path / "second", workers=1) as dask:
        assert command(dask.address) == 0
    assert {place: place.stat().st_mtime_ns for place in kept} == kept
    assert (out / "results.parquet").read_bytes() == wanted
