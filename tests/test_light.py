"""A light install: what every fit needs is NumPy, SciPy, Numba and scikit-learn; the rest is asked for by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in ("pyarrow", "matplotlib", "rich", "pandas"):
    sys.modules[name] = None
"""
FIT = """
import numpy as np
import messirl
from messirl import MDP, MESSI
moves = np.stack([np.eye(5)[[0, 0, 1, 2, 3]], np.eye(5)[[1, 2, 3, 4, 4]]], axis=1)
mdp = MDP(moves, np.linspace(0, 1, 5)[:, None], discount=0.9, horizon=5)
expert, others = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 4], [0, 1, 0, 1, 2]], [[0, 1, 2, 1, 0], [4, 3, 4, 4, 3]]
model = MESSI().fit(mdp, expert, others)
model.save(sys.argv[1])
assert messirl.load(sys.argv[1]).score(expert) == model.score(expert)
assert len(model.sample(3, random_state=0)) == 3
try:
    messirl.read_problem
except ImportError as error:
    print(error)
"""
COMMAND = """
from messirl.app import cli
raise SystemExit(cli.main(["check", sys.argv[1]]))
"""


def run(code, *words):
    return subprocess.run([sys.executable, "-c", WITHOUT + code, *words], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_fit_needs_neither_pyarrow_nor_matplotlib_nor_rich(tmp_path):
    done = run(FIT, str(tmp_path / "model.npz"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "messirl.io.read_problem needs pyarrow, which is not installed: pip install pyarrow\n"


def test_a_command_names_the_package_that_it_lacks(tmp_path):
    done = run(COMMAND, str(tmp_path))
    assert done.returncode == 2
    assert "needs pyarrow, which is not installed: pip install pyarrow" in done.stderr
    assert done.stderr.count("\n") == 1
