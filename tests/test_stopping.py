"""Ctrl-C is answered at once whatever a command is doing, ends it soon, and leaves nothing half done."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from folders import grid
from test_runner import in_session
from worlds import drawn, maze

from messirl.app import cli
from messirl.data.problem import Problem
from messirl.io.folder.writer import write_problem

STOPPING = "messirl: stopping (Ctrl-C again to stop at once)"

# A command of its own: prints that it has begun, then does {work}.
COMMAND = """
import sys, time, types
from messirl.app import cli

def run(arguments):
    print("begun", flush=True)
    {work}
    return 0

made = types.ModuleType("messirl.app.cli.nap")
made.DESCRIPTION, made.add, made.run = "", lambda parser: None, run
sys.modules["messirl.app.cli.nap"] = made
cli.COMMANDS["nap"] = ""
sys.argv[1:] = ["nap"]
if __name__ == "__main__":
    sys.exit(cli.main())
"""
PYTHON = "time.sleep(60)"
COMPILED = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)"  # minutes without a step of Python's
DEAF = """
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
AS_A_TERMINAL_DOES, THE_PARENT_ALONE = os.killpg, os.kill


class Program:
    """A process of which every line is heard with its time."""

    def __init__(self, words, **more):
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **more
        )
        self.heard: list[tuple[float, str]] = []
        self._threads = [
            threading.Thread(target=self._listen, args=(pipe,)) for pipe in (self.process.stdout, self.process.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, pipe):
        for line in pipe:
            self.heard.append((time.monotonic(), line.rstrip("\n")))

    def wait_for(self, begin, seconds=90):
        until = time.monotonic() + seconds
        while not any(line.startswith(begin) for _, line in self.heard):
            assert self.process.poll() is None, self.heard
            assert time.monotonic() < until, self.heard
            time.sleep(0.01)

    def press(self, kill=AS_A_TERMINAL_DOES, number=signal.SIGINT):
        """Ctrl-C; returns when that was."""
        now = time.monotonic()
        kill(self.process.pid, number)
        return now

    def end(self, seconds=60):
        """The exit code, when it ended, and the lines that were heard."""
        try:
            code = self.process.wait(seconds)
        finally:
            ended = time.monotonic()
            while (left := in_session(self.process.pid)) and time.monotonic() < ended + 1.0:
                time.sleep(0.02)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        assert not left, "nobody outlives the program"
        for thread in self._threads:
            thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, ended, [line for _, line in self.heard]

    def when(self, text):
        return next(when for when, line in self.heard if line == text)


def program(work):
    started = Program([sys.executable, "-c", COMMAND.format(work=work)])
    started.wait_for("begun")
    time.sleep(0.5)  # it is now where it stays
    return started


@pytest.mark.slow
@pytest.mark.parametrize("work", [PYTHON, COMPILED, DEAF], ids=["python", "compiled", "deaf"])
@pytest.mark.parametrize("kill", [AS_A_TERMINAL_DOES, THE_PARENT_ALONE], ids=["terminal", "kill"])
def test_ctrl_c_is_answered_at_once_and_ends_the_command_soon(work, kill):
    started = program(work)
    pressed = started.press(kill)
    code, ended, heard = started.end()
    assert code == 130, heard
    assert heard[1] == STOPPING
    assert heard[2:] == (["messirl: interrupted"] if work == PYTHON else [])
    assert started.when(STOPPING) - pressed < 1.0  # a hundredth of a second where nobody else is at work
    assert ended - pressed < (1.0 if work == PYTHON else 4.0)


def test_a_second_ctrl_c_ends_it_at_once():
    started = program(DEAF)
    started.press()
    time.sleep(0.4)
    pressed = started.press()
    code, ended, heard = started.end()
    assert (code, heard) == (130, ["begun", STOPPING])
    assert ended - pressed < 1.0


@pytest.mark.slow
def test_one_ctrl_c_that_comes_twice_is_one():
    """From the terminal, and once more from a parent that passes it on."""
    started = program(DEAF)
    pressed = started.press()
    started.press()
    code, ended, heard = started.end()
    assert (code, heard) == (130, ["begun", STOPPING])
    assert ended - pressed > 1.5


def test_being_told_to_terminate_is_answered_too():
    started = program(PYTHON)
    started.press(number=signal.SIGTERM)
    code, _, heard = started.end()
    assert (code, heard) == (143, ["begun", "messirl: stopping", "messirl: interrupted"])


def test_an_error_of_work_that_was_cut_off_is_not_reported():
    broken = """
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        raise RuntimeError("the wheel came off")
"""
    started = program(broken)
    started.press()
    assert started.end()[0::2] == (130, ["begun", STOPPING, "messirl: interrupted"])


@pytest.mark.slow
def test_an_interrupt_that_a_callback_cannot_pass_on_is_not_complained_of():
    """As of compiled code that calls Python: the exception ends there, with a traceback as Python has it."""
    work = "import ctypes; call = ctypes.CFUNCTYPE(None)(lambda: time.sleep(60)); call(); time.sleep(60)"
    started = program(work)
    started.press()
    assert started.end()[0::2] == (130, ["begun", STOPPING])


def test_a_command_that_nobody_may_interrupt_goes_on():
    words = [sys.executable, "-c", COMMAND.format(work="time.sleep(1)")]
    started = Program(words, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))  # as nohup does
    started.wait_for("begun")
    started.press()
    assert started.end()[0::2] == (0, ["begun"])


@pytest.mark.slow
def test_a_standard_error_that_is_full_does_not_keep_it_from_ending():
    work = "sys.stderr.write('x' * 10**6)"
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND.format(work=work)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.stdout.close()
        process.stderr.close()


def test_a_command_in_a_program_of_somebody_else_leaves_its_signals_alone(capsys, tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook
    assert cli.main(["show", str(tmp_path / "nowhere")]) == 2
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), sys.unraisablehook) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_signals_that_were_ignored_stay_so(capsys, tmp_path):
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert cli.main(["show", str(tmp_path / "nowhere")]) == 2
        assert all(signal.getsignal(number) == signal.SIG_IGN for number in before)
        assert signal.set_wakeup_fd(-1) == -1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_a_command_runs_in_any_thread(tmp_path, capsys):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(cli.main(["show", str(tmp_path / "nowhere")])))
    thread.start()
    thread.join()
    assert codes == [2]


# ------------------------------------------------------------ the real commands


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder that keeps every command busy for a while, and a model of a smaller one."""
    here = tmp_path_factory.mktemp("place")
    random, side = np.random.default_rng(0), 60
    mdp = maze(side, side, random.normal(size=(side**2, 20)), discount=0.99)
    anywhere = np.full(side**2, side**-2.0)
    expert, others = (drawn(mdp, random.normal(size=20), n, n, length=600, start=anywhere) for n in (100, 300))
    role = np.array(["expert"] * 100 + ["unlabelled"] * 300, dtype=object)
    write_problem(Problem(mdp, expert + others, {"role": role}), here / "large")
    many = np.resize(np.arange(len(role)), 6 * len(role))
    write_problem(Problem(mdp, (expert + others)[many], {"role": role[many]}), here / "larger")
    small = grid(here / "small")
    assert cli.main(["fit", str(small), "--no-baselines", "--no-report", "--out", str(here / "model")]) == 0
    return here


SPLIT = ["@large", "--expert", "role = expert", "--unlabelled", "role = unlabelled"]
REAL = {
    # words, the line after which Ctrl-C is pressed, seconds after it
    "fit": (["fit", *SPLIT, "--out", "@new"], "fit: 0 of", 0.3),
    "baselines": (["fit", *SPLIT, "--out", "@new"], "messirl: fitting the baselines", 0.3),
    "select": (["select", *SPLIT, "--out", "@new"], "", 4.0),
    "diagnose": (["diagnose", *SPLIT, "--out", "@new"], "messirl: measuring what held-out experts gain from them", 0.5),
    "sample": (["sample", "@model", "-n", "2000000", "--length", "60", "--out", "@new/drawn.csv"], "", 3.0),
    "convert": (["convert", "@larger", "@new", "--format", "csv"], "", 0.9),
    "reproduce": (["reproduce", "--quick", "--jobs", "2", "--out", "@new"], "reproduction: 0 of", 6.0),
    "reproduce, starting": (["reproduce", "--quick", "--jobs", "2", "--out", "@new"], "reproduction: 0 of", 0.5),
    "reproduce, one job": (["reproduce", "--quick", "--jobs", "1", "--out", "@new"], "reproduction: 0 of", 3.0),
}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kill", [AS_A_TERMINAL_DOES, THE_PARENT_ALONE], ids=["terminal", "kill"])
@pytest.mark.parametrize("name", REAL)
def test_every_command_answers_ctrl_c_at_once_and_leaves_nothing_half_done(place, tmp_path, name, kill):
    words, begin, seconds = REAL[name]
    named = [word.replace("@new", str(tmp_path / "new")).replace("@", f"{place}/", 1) for word in words]
    started = Program([sys.executable, "-m", "messirl.app.cli", *named])
    if begin:
        started.wait_for(begin)
    time.sleep(seconds)
    assert started.process.poll() is None, started.heard
    pressed = started.press(kill)
    code, ended, heard = started.end()
    assert code == 130, heard
    assert started.when(STOPPING) - pressed < 1.0
    assert ended - pressed < 4.0
    assert heard[-1].startswith("messirl: interrupted") or heard[-1] == STOPPING
    assert not any(re.search("Traceback|Error|done|leaked", line) for line in heard[heard.index(STOPPING) :]), heard
    assert not list(tmp_path.rglob(".*"))


HUNG = """
import sys, time
if __name__ == "__main__":
    from messirl.app import cli
    from messirl import parallel as execution
    execution._end = lambda workers: time.sleep(60)
    sys.argv[1:] = ["reproduce", "--quick", "--jobs", "2", "--out", sys.argv[1]]
    sys.exit(cli.main())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_second_ctrl_c_ends_the_workers_as_well(tmp_path):
    code = tmp_path / "hung.py"
    code.write_text(HUNG)
    started = Program([sys.executable, str(code), str(tmp_path / "out")])
    started.wait_for("reproduction: 0 of")
    time.sleep(4.0)
    started.press()
    time.sleep(0.4)
    pressed = started.press()
    code, ended, heard = started.end()
    assert (code, heard[1:]) == (130, [STOPPING])
    assert ended - pressed < 2.0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_worker_that_was_killed_is_reported_in_one_sentence(tmp_path):
    started = Program(
        [sys.executable, "-m", "messirl.app.cli", "reproduce", "--quick", "--jobs", "2", "--out", str(tmp_path)]
    )
    started.wait_for("reproduction: 0 of")
    time.sleep(4.0)
    workers = [pid for pid in in_session(started.process.pid) if b"spawn_main" in command_line(pid)]
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    code, _, heard = started.end()
    assert code == 1
    assert heard[1:] == [
        "messirl: a worker process was killed (out of memory?): run the same command again, perhaps with --jobs 1"
    ]


def command_line(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()
