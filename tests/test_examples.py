"""The examples run, say what they found and draw their picture."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from messirl.io import read_problem
from messirl.paper.synthetic.roads import THETA

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DATA = Path(os.environ.get("MESSIRL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SLOW = pytest.mark.slow


@pytest.fixture
def run(capsys, monkeypatch):
    """An example as a program, in this process: its exit code, and what it printed."""

    def program(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        code = None
        try:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        except SystemExit as end:
            code = end.code
        plt.close("all")
        out, err = capsys.readouterr()
        if isinstance(code, str):  # as Python itself does it
            code, err = 1, f"{err}{code}\n"
        return subprocess.CompletedProcess(name, code or 0, out, err)

    return program


def found(done, picture):
    """What a good run printed."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"picture in {picture}" in done.stdout
    return done.stdout


def numbers(text, begin):
    """The numbers in the line that begins so."""
    line = next(line for line in text.splitlines() if line.startswith(begin))
    words = line.removeprefix(begin).replace("(", " ").replace(")", " ").split()
    return [float(word) for word in words if word.lstrip("-").replace(".", "", 1).isdigit()]


def test_every_example_is_run_here():
    here = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in here for path in EXAMPLES.glob("*.py"))


@SLOW
def test_the_quickstart_shows_a_gain(run, tmp_path):
    said = found(run("quickstart.py", tmp_path / "figure.png"), tmp_path / "figure.png")
    assert numbers(said, "MESSI - MaxEnt-IRL")[0] > 0


def test_frozenlake_is_learnt_far_better_than_chance(run, tmp_path):
    pytest.importorskip("gymnasium")
    said = found(run("frozenlake.py", tmp_path / "new"), tmp_path / "new" / "frozenlake.png")
    for name in ("MaxEnt-IRL", "MESSI"):
        score, chance = numbers(said, name)
        assert score > chance + 0.7


def test_the_truth_of_the_road_network_is_within_three_standard_errors(run, tmp_path):
    said = found(run("road_network.py", tmp_path), tmp_path / "road_network.png")
    for name, truth in THETA["commuter"].items():
        estimate, error = numbers(said, f"{name} ")[:2]
        assert abs(estimate - truth) < 3 * error
    worth, level, low, high = (float(word) for word in re.findall(r"\d+(?:\.\d+)?", said.split("a minute")[1])[:4])
    assert level == 95
    assert low < worth < high
    assert abs(worth - THETA["commuter"]["g_minutes"] / THETA["commuter"]["g_toll"]) < 0.8 * (high - low)


def test_the_museum_is_written_read_and_tells_guides_from_school_classes(run, tmp_path):
    said = found(run("museum.py", tmp_path), tmp_path / "museum.png")
    assert len(read_problem(tmp_path / "museum").trajectories) == 1170
    truth, guides, tourists, classes = numbers(said, "f_painting ")
    assert classes < 0 < min(truth, guides, tourists)
    found(run("museum.py", tmp_path), tmp_path / "museum.png")  # its own folder is replaced


def test_without_the_mice_the_example_says_what_to_do(run):
    for words in ([], ["nowhere"]):
        done = run("mice.py", *words)
        assert done.returncode == 1
        assert "run python examples/mice.py FOLDER" in done.stderr
        assert "Traceback" not in done.stderr


@SLOW
def test_messi_predicts_other_mice_best(run, tmp_path):
    mice = DATA / "labyrinth_segments"
    if not mice.exists():
        pytest.skip(f"there are no mice in {DATA}: set MESSIRL_DATA to the folder of the data")
    said = found(run("mice.py", mice, tmp_path), tmp_path / "mice.png")
    scores = {name: numbers(said, f"{name} ")[0] for name in ("MESSI", "Complete", "Ridge", "RidgeStd", "Pooling")}
    assert max(scores, key=scores.__getitem__) == "MESSI"
