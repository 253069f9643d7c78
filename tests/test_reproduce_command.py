"""The command `messirl reproduce`: what goes wrong is one sentence and exit code 2, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from messirl.app import cli
from messirl.paper.experiments import reproduction as whole
from messirl.paper.experiments.paper_settings import Setting

COMMAND = [sys.executable, "-m", "messirl.app.cli", "reproduce"]
SMALL = ["--quick", "--domain", "pit", "--figure", "em", "--runs", "1", "--jobs", "1"]

# The command with a small experiment in place of the paper's; its arguments follow.
CHILD = """
import sys

if __name__ == "__main__":
    from messirl.app import cli
    from messirl.paper.experiments import reproduction, result_store
    from messirl.paper.experiments.paper_settings import Setting

    result_store.commit = lambda: "abcdef"
    tiny = Setting("pit", 0.5, iterations=40, u=3, arguments={"pool": 4}, figures=("em",), sweeps={"em": (1, 5)})
    reproduction.SETTINGS = reproduction.QUICK = {"pit": tiny}
    sys.exit(cli.main(["reproduce", *sys.argv[1:]]))
"""
TINY = Setting("pit", 0.5, iterations=40, u=3, arguments={"pool": 4}, figures=("em",), sweeps={"em": (1, 5)})


def command(*words, **more):
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False, **more)


@pytest.fixture
def tiny(monkeypatch):
    """The command in this process, on a small experiment."""
    monkeypatch.setattr("messirl.paper.experiments.result_store.commit", lambda: "abcdef")
    monkeypatch.setattr(whole, "SETTINGS", {"pit": TINY})
    monkeypatch.setattr(whole, "QUICK", {"pit": TINY})

    def run(*words):
        return cli.main(["reproduce", "--domain", "pit", "--jobs", "1", *map(str, words)])

    return run


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def one_sentence(text):
    progress = r"(reproduction|sensitivity|learners): \d+ of \d+|messirl: stopping"
    lines = [line for line in text.splitlines() if not re.match(progress, line)]
    assert len(lines) == 1, text
    assert lines[0].startswith("messirl")
    assert "Traceback" not in text
    assert "internal error" not in text
    return lines[0]


# ------------------------------------------------------------ wrong words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--domain", "mars"], r"mars.*highway.*gridworld.*pit"),
        (["--figure", "mars"], r"mars.*iterations.*unlabelled.*nu.*lambda.*em"),
        (["--runs", "0"], r"--runs.*0"),
        (["--runs", "many"], r"--runs.*many"),
        (["--jobs", "-1"], r"--jobs.*-1"),
        (["--seed", "x"], r"--seed.*x"),
        (["--nonsense"], r"--nonsense"),
    ],
)
def test_a_wrong_word_is_named_with_the_right_ones_in_one_sentence(words, said, capsys, tmp_path):
    with pytest.raises(SystemExit) as left:
        cli.main(["reproduce", *words, "--out", str(tmp_path / "out")])
    assert left.value.code == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert re.search(said, one_sentence(written.err))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seed", ["-5", "4294967296"])
def test_a_seed_that_cannot_be_used_is_refused_before_anything_is_made(tiny, seed, capsys, tmp_path):
    try:
        code = tiny("--runs", 1, "--seed", seed, "--out", tmp_path / "out")
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert "--seed" in one_sentence(capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_a_domain_without_the_figure_is_refused_with_the_reason(capsys, tmp_path):
    out = str(tmp_path / "out")
    assert cli.main(["reproduce", "--domain", "highway-far", "--figure", "em", "--out", out]) == 2
    assert "highway-far has only iterations" in one_sentence(capsys.readouterr().err)


def test_a_domain_that_quick_leaves_out_is_refused_with_the_reason(capsys, tmp_path):
    assert cli.main(["reproduce", "--domain", "highway-far", "--quick", "--out", str(tmp_path / "out")]) == 2
    assert "--quick" in one_sentence(capsys.readouterr().err)


def test_a_domain_without_a_sensitivity_table_is_refused_with_the_reason(capsys, tmp_path):
    words = ["--sensitivity", "--domain", "highway-far", "--runs", "1", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert cli.main(["reproduce", *words]) == 2
    assert "highway-far" in one_sentence(capsys.readouterr().err)


# ------------------------------------------------------------ places


def test_a_folder_under_a_file_is_refused_in_one_sentence(tiny, capsys, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert tiny("--runs", 1, "--out", out) == 2
        assert str(tmp_path / "file") in one_sentence(capsys.readouterr().err)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place where nobody may write")
def test_a_place_where_nobody_may_write_is_refused_in_one_sentence(tiny, capsys):
    assert tiny("--runs", 1, "--out", "/proc/results") == 2
    assert "/proc/results" in one_sentence(capsys.readouterr().err)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused_in_one_sentence(tiny, capsys, tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert tiny("--runs", 1, "--out", tmp_path / "out") == 2
    finally:
        tmp_path.chmod(0o700)
    assert "Permission denied" in one_sentence(capsys.readouterr().err)


def test_a_store_of_another_seed_is_refused_with_the_way_out_and_nothing_is_changed(tiny, capsys, tmp_path):
    assert tiny("--runs", 1, "--out", tmp_path) == 0
    before = content(tmp_path)
    capsys.readouterr()
    assert tiny("--runs", 1, "--out", tmp_path, "--seed", 3000) == 2
    said = one_sentence(capsys.readouterr().err)
    assert "seed 2000" in said
    assert "3000" in said
    assert "--out" in said
    assert content(tmp_path) == before


def test_a_damaged_store_is_refused_in_one_sentence_and_mended_by_what_it_says(tiny, capsys, tmp_path):
    assert tiny("--runs", 1, "--out", tmp_path) == 0
    before = content(tmp_path)
    part = next((tmp_path / "parts").iterdir())
    part.write_bytes(part.read_bytes()[:200])
    capsys.readouterr()
    assert tiny("--runs", 1, "--out", tmp_path) == 2
    assert str(part) in one_sentence(capsys.readouterr().err)
    assert {k: v for k, v in content(tmp_path).items() if "parts" not in k} == {
        k: v for k, v in before.items() if "parts" not in k
    }
    part.unlink()
    assert tiny("--runs", 1, "--out", tmp_path) == 0
    assert content(tmp_path)["results.parquet"] == before["results.parquet"]


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # no file larger: as on a disk that is full


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_is_one_sentence_and_going_on_works(tmp_path, jobs, tiny):
    words = child_words(tmp_path, "--runs", "1", "--jobs", str(jobs))
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, preexec_fn=limited)
    assert done.returncode == 2, done.stderr
    said = one_sentence(done.stderr)
    assert re.search(r"File too large|No space left", said)
    assert str(tmp_path / "out") in said  # where room is needed
    assert not [name for name in content(tmp_path / "out") if Path(name).name.startswith(".")]
    assert tiny("--runs", 1, "--out", tmp_path / "out") == 0


# ------------------------------------------------------------ a run


def child_words(folder, *words):
    code = folder / "child.py"
    code.write_text(CHILD)
    return [sys.executable, str(code), "--out", str(folder / "out"), *words]


def test_a_run_writes_table_claims_figures_and_report(tiny, capsys, tmp_path):
    assert tiny("--runs", 2, "--out", tmp_path) == 0
    written = capsys.readouterr()
    assert "claims tested" in written.out
    assert str(tmp_path / "report.html") in written.out
    table = pq.read_table(tmp_path / "results.parquet")
    assert set(table["seed"].to_pylist()) == {2000, 2001}
    assert set(table["config_hash"].to_pylist()) == {TINY.config_hash}
    claims = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert claims
    assert list((tmp_path / "figures").glob("*.svg"))
    assert list((tmp_path / "figures").glob("*.png"))
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_learners_are_compared_with_seeds_of_their_own(tiny, capsys, tmp_path):
    assert tiny("--learners", "--runs", 1, "--out", tmp_path) == 0
    written = capsys.readouterr()
    assert str(tmp_path / "learners.csv") in written.out
    assert "12 claims tested" in written.out
    assert set(pq.read_table(tmp_path / "learners.parquet")["seed"].to_pylist()) == {6000}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"learners.png", "learners.svg"}
    assert not (tmp_path / "results.parquet").exists()


def test_one_run_gives_valid_json(tiny, tmp_path):
    assert tiny("--runs", 1, "--out", tmp_path) == 0
    json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_progress_is_plain_lines_on_standard_error_only(tiny, capsys, tmp_path):
    assert tiny("--runs", 2, "--out", tmp_path) == 0
    written = capsys.readouterr()
    begin, end = written.err.splitlines()
    assert begin == "reproduction: 0 of 2"
    assert re.fullmatch(r"reproduction: done, 2 of 2 parts, [\d.]+ s", end)
    assert "0 of 2" not in written.out
    assert "\x1b" not in written.err + written.out


@pytest.mark.slow
def test_more_runs_go_on_from_fewer_and_give_the_table_of_all_at_once(tiny, tmp_path):
    assert tiny("--runs", 1, "--out", tmp_path / "grown") == 0
    assert tiny("--runs", 2, "--out", tmp_path / "grown") == 0
    assert tiny("--runs", 2, "--out", tmp_path / "once") == 0
    grown, once = content(tmp_path / "grown"), content(tmp_path / "once")
    assert grown["results.parquet"] == once["results.parquet"]
    assert grown["claims.json"] == once["claims.json"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_what_is_finished_and_going_on_works(tmp_path, jobs, tiny):
    words = child_words(tmp_path, "--runs", "400", "--jobs", jobs)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    parts = tmp_path / "out" / "parts"
    until = time.monotonic() + 60
    while len(list(parts.glob("*.parquet"))) < 5 and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: parent and workers
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert out == ""
    assert "interrupted" in one_sentence(errors)
    finished = {p.name: p.stat().st_mtime_ns for p in parts.glob("*.parquet")}
    assert 5 <= len(finished) < 400
    assert not list(parts.glob(".*"))
    assert tiny("--runs", 3, "--out", tmp_path / "out") == 0
    assert {name: (parts / name).stat().st_mtime_ns for name in finished} == finished


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.8, 1.5])
def test_ctrl_c_while_the_workers_are_starting_is_one_sentence(tmp_path, seconds):
    words, heard = child_words(tmp_path, "--runs", "400", "--jobs", "2"), tmp_path / "heard"
    with heard.open("w") as errors:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
    until = time.monotonic() + 60
    while not heard.read_text() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=60) == 130, heard.read_text()
    assert "interrupted" in one_sentence(heard.read_text())


@pytest.mark.slow
def test_the_real_command_makes_a_small_reproduction(tmp_path):
    done = command(*SMALL, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "report:" in done.stdout
    assert all(re.match(r"reproduction: (done, )?\d+ of \d+", line) for line in done.stderr.splitlines()), done.stderr
    assert (tmp_path / "out" / "results.parquet").exists()


def test_help_comes_at_once_and_names_every_option():
    began = time.monotonic()
    done = command("--help")
    assert time.monotonic() - began < 2.0
    assert done.returncode == 0
    for word in (
        "--domain",
        "--figure",
        "--runs",
        "--seed",
        "--jobs",
        "--quick",
        "--sensitivity",
        "--learners",
        "--out",
    ):
        assert word in done.stdout
