"""What a careless user does: options that act on nothing, places that are no files, tables as spreadsheets leave them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from messirl import MDP, MaxEntIRL, Trajectories, cli
from messirl.estimators.base import quietly
from messirl.experiments.store import Store, StoreError
from messirl.problem.files import beside

PLAIN = ["--no-baselines", "--no-report"]


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, and what it printed and remarked."""

    def command(*words):
        capsys.readouterr()
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


# ------------------------------------------------------------ places


def test_a_device_is_never_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="no file, but a device or the like"), beside(pipe) as part:
        part.write_text("new")
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_model_is_not_saved_in_place_of_a_folder(tmp_path):
    mdp = MDP(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2), np.eye(2), discount=1, horizon=3)
    with quietly():
        model = MaxEntIRL(ridge=1.0).fit(mdp, Trajectories.from_lists([[0, 0, 1], [0, 1, 1]]))
    with pytest.raises(IsADirectoryError, match="a folder stands where a file is to be written"):
        model.save(tmp_path)


def test_a_reproduction_leaves_nothing_in_a_folder_that_it_refuses(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="holds files but manifest.json is missing"):
        Store(tmp_path, None).open()
    assert os.listdir(tmp_path) == ["notes.txt"]
