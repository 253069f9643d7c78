"""Progress: elapsed and left cannot be confused, and its last line says how the work ended."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest
from folders import grid

from messirl.app import cli
from messirl.app.cli.progress import Progress, span

WORDS = ["--unlabelled", "role = unlabelled", "--no-baselines", "--no-report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return grid(tmp_path_factory.mktemp("folders") / "grid")


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


# ------------------------------------------------------------ in a pipe


def test_elapsed_and_left_are_both_named(capsys, clock):
    with Progress("work", plain=True) as progress:
        for done in range(11):
            progress(done, 10)
            clock[0] += 20.0
    assert capsys.readouterr().err.splitlines()[:3] == [
        "work: 0 of 10",
        "work: 1 of 10, 20 s elapsed, about 3 min left",
        "work: 2 of 10, 40 s elapsed, about 3 min left",
    ]


def test_the_time_left_of_a_fit_is_a_bound(capsys, clock):
    with Progress("fit", "iterations", at_most=True, plain=True) as progress:
        progress(0, 10)
        clock[0] += 20.0
        progress(5, 10)
    assert "fit: 5 of 10, 20 s elapsed, at most 20 s left" in capsys.readouterr().err.splitlines()


def test_all_that_was_to_be_done_is_said_to_be_done(capsys, clock):
    with Progress("work", "parts", plain=True) as progress:
        progress(0, 2)
        clock[0] += 34.0
        progress(2, 2)
    assert capsys.readouterr().err.splitlines()[-1] == "work: done, 2 of 2 parts, 34 s"


def test_a_fit_that_converges_early_is_said_to_be_done(capsys, clock):
    with Progress("fit", "iterations", at_most=True, plain=True) as progress:
        for done in range(61):
            progress(done, 500)
            clock[0] += 0.2
    assert capsys.readouterr().err.splitlines()[-1] == "fit: done after 60 iterations, 12 s"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_work_that_failed_or_was_stopped_is_not_said_to_be_done(capsys, error):
    with contextlib.suppress(error), Progress("work", plain=True) as progress:
        progress(1, 2)
        raise error
    assert capsys.readouterr().err == "work: 1 of 2\n"


def test_work_that_never_began_says_nothing(capsys):
    with Progress("work", plain=True):
        pass
    assert capsys.readouterr().err == ""


def test_the_end_of_a_fit_is_said_in_a_pipe(folder, capsys, tmp_path):
    assert cli.main(["fit", str(folder), *WORDS, "--out", str(tmp_path)]) == 0
    assert re.search(r"^fit: done after \d+ iterations, [\d.]+ s$", capsys.readouterr().err, re.MULTILINE)


def test_without_a_standard_error_there_is_no_progress_and_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("work") as progress:
        progress(1, 2)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.9, "9.9 s"), (12.3, "12 s"), (200, "3 min"), (9000, "2.5 h")]
)
def test_a_time_has_the_unit_that_suits_it(seconds, text):
    assert span(seconds) == text


# ------------------------------------------------------------ on a terminal


def on_terminal(words, columns=80, **environment):
    """What a program writes to its terminal, and its exit code; standard output goes elsewhere."""
    parent, child = pty.openpty()
    told = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **environment}
    with subprocess.Popen(words, stdin=child, stdout=subprocess.DEVNULL, stderr=child, env=told) as process:
        os.close(child)
        heard = b""
        while select.select([parent], [], [], 60)[0]:
            try:
                some = os.read(parent, 65536)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            heard += some
    os.close(parent)
    return heard.decode(), process.returncode


def frames(text):
    """The lines as they were drawn one over the other, without colours."""
    bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return [line for line in re.split(r"[\r\n]+", bare) if line.strip()]


STEPS = """
import sys, time
from messirl.app.cli.progress import Progress
with Progress("fit", "iterations", at_most=True) as progress:
    for done in range(5):
        progress(done, 100)
        time.sleep({pause})
    {end}
"""


def test_on_a_terminal_the_bar_names_its_times_and_ends_full():
    said, code = on_terminal([sys.executable, "-c", STEPS.format(end="", pause=0.3)])
    assert code == 0, said
    assert any(re.search(r"[1-4]/100  0:00:0\d elapsed, at most 0:0\d:\d\d left$", line) for line in frames(said)), said
    last = frames(said)[-1]
    assert re.fullmatch(r"fit  ━+  100 %  done after 4 iterations, [\d.]+ s", last)
    assert said.rstrip().endswith("\x1b[?25h")  # the cursor is back


def test_on_a_terminal_a_bar_that_was_stopped_says_so():
    said, code = on_terminal([sys.executable, "-c", STEPS.format(end="sys.exit(3)", pause=0.02)])
    assert code == 3
    assert re.fullmatch(r"fit  ━+  4/100  stopped after 0:00:0\d", frames(said)[-1])
    assert "done" not in said


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_the_bar_is_one_line_of_any_terminal(columns):
    said, _ = on_terminal([sys.executable, "-c", STEPS.format(end="", pause=0.02)], columns)
    assert all(len(line) <= columns for line in frames(said)), frames(said)
    assert "4 iterations" in frames(said)[-1] or columns == 20


def test_a_terminal_without_other_letters_has_a_plain_bar():
    said, code = on_terminal([sys.executable, "-c", STEPS.format(end="", pause=0.02)], PYTHONIOENCODING="ascii")
    assert code == 0, said
    assert re.fullmatch(r"fit  #+  100 %  done after 4 iterations, [\d.]+ s", frames(said)[-1])


def test_a_dumb_terminal_has_plain_lines():
    said, _ = on_terminal([sys.executable, "-c", STEPS.format(end="", pause=0.02)], TERM="dumb")
    assert frames(said)[0] == "fit: 0 of 100"
    assert frames(said)[-1].startswith("fit: done after 4 iterations")


@pytest.mark.slow
def test_a_fit_on_a_terminal_ends_at_100_per_cent(folder, tmp_path):
    words = [sys.executable, "-m", "messirl.app.cli", "fit", str(folder), *WORDS, "--out", str(tmp_path)]
    said, code = on_terminal(words)
    assert code == 0, said
    assert re.search(r"100 %  done after \d+ iterations", "\n".join(frames(said)))
