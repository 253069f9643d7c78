"""Writing problem folders: nothing changes on the way there and back, and nothing of others is touched."""

from __future__ import annotations

import os

import fuzz_readers
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from messirl import MDP, Trajectories
from messirl.io import InputError, Problem, read_problem, write_problem


@pytest.fixture
def rich():
    """A problem with everything: labels, names, actions out of order and unused, columns with gaps, goals."""
    transitions = np.zeros((3, 3, 3))
    transitions[0, 2, [1, 2]] = [1 / 3, 2 / 3]
    transitions[1, 0, 2] = 1
    features = np.where(transitions.any(axis=2)[:, :, None], np.arange(18).reshape(3, 3, 2) / 7, 0)
    mdp = MDP(
        transitions,
        features,
        start=[1 / 3, 2 / 3, 0],
        discount=0.97,
        terminal=[False, False, True],
        state_names=["one", "<i>two</i>", "three"],
        action_names=["z", "unused", "a"],
        feature_names=["f_x", "plain"],
    )
    return Problem(
        mdp,
        Trajectories.from_lists([[0, 1, 2], [1, 2], [2]], [[2, 0], [0], []], goals=[2, 2, 2]),
        meta={
            "role": np.array(["expert", None, "a,b"], dtype=object),
            "n": np.array([1, None, 3], dtype=object),
            "share": np.array([0.1, np.nan, 1e300]),
            "ok": np.array([True, False, True]),
            "goal": np.array(["c", "c", "c"], dtype=object),
        },
        trajectory_ids=np.array(["t1", "t 2", "t\n3"], dtype=object),
        state_ids=np.array(["a", "b", "c"], dtype=object),
        action_ids=np.array(["z", "unused", "a"], dtype=object),
        xy=np.array([[0, 1], [np.nan, 2], [0.5, -3]]),
        state_columns={"size": np.array([1, 2, 3]), "": np.array(["", "q", None], dtype=object)},
    )


def test_writing_and_reading_changes_nothing(rich, tmp_path):
    write_problem(rich, tmp_path / "a")
    read = read_problem(tmp_path / "a")
    assert fuzz_readers.same(fuzz_readers.content(rich), fuzz_readers.content(read))
    assert fuzz_readers.round_trip(tmp_path / "a", tmp_path / "b", "parquet") == "same"


def test_csv_refuses_what_would_read_back_as_something_else(rich, tmp_path):
    with pytest.raises(InputError, match=r"states.csv: column '' would read back as another kind of value: use format"):
        write_problem(rich, tmp_path / "a", format="csv")
    assert not (tmp_path / "a").exists(), "nothing is written"
    rich.state_columns.pop("")
    write_problem(rich, tmp_path / "a", format="csv")
    assert fuzz_readers.same(fuzz_readers.content(rich), fuzz_readers.content(read_problem(tmp_path / "a")))


def test_a_problem_without_trajectories_is_written(rich, tmp_path):
    none = rich.select(np.zeros(3, dtype=bool))
    none.state_columns.pop("")
    for form in ("parquet", "csv"):
        write_problem(none, tmp_path / form, format=form)
        assert len(read_problem(tmp_path / form).trajectories) == 0


def test_features_without_names_stay_without(tmp_path):
    problem = Problem(MDP(np.ones((1, 1, 1)), [[1.0, 2.0]], discount=0.5), Trajectories.from_lists([[0, 0]]))
    write_problem(problem, tmp_path)
    assert read_problem(tmp_path).mdp.feature_names is None


def test_times_are_kept_in_parquet_and_refused_in_csv(tmp_path):
    mdp = MDP(np.ones((1, 1, 1)), [[1.0]], discount=0.5)
    problem = Problem(mdp, Trajectories.from_lists([[0, 0], [0]]))
    problem.meta["day"] = np.array(["2024-01-31", "NaT"], dtype="datetime64[D]")
    write_problem(problem, tmp_path / "a")
    assert_array_equal(read_problem(tmp_path / "a").meta["day"], problem.meta["day"])
    with pytest.raises(InputError, match=r"trajectory_meta.csv: column 'day' would read back as another kind"):
        write_problem(problem, tmp_path / "b", format="csv")


def test_writing_replaces_a_problem_and_nothing_else(rich, tmp_path):
    folder = tmp_path / "problem"
    rich.state_columns.pop("")
    write_problem(rich, folder, format="csv")
    write_problem(rich, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "edges.parquet",
        "problem.json",
        "states.parquet",
        "trajectories.parquet",
        "trajectory_meta.parquet",
    ]
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"holds thesis.tex, which is no part of a problem: give another folder"):
        write_problem(rich, folder)
    with pytest.raises(InputError, match="is a file: give another folder"):
        write_problem(rich, folder / "thesis.tex")
    with pytest.raises(ValueError, match="format is 'xlsx': choose parquet or csv"):
        write_problem(rich, tmp_path / "new", format="xlsx")


def test_an_interrupted_write_leaves_the_old_file(rich, tmp_path, monkeypatch):
    folder = tmp_path / "problem"
    rich.state_columns.pop("")
    write_problem(rich, folder, format="csv")
    before = (folder / "states.csv").read_bytes()

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_problem(rich, folder, format="parquet")
    assert (folder / "states.csv").read_bytes() == before
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_what_cannot_be_written_is_refused(rich, tmp_path):
    for change, message in (
        ({"meta": {"goal": np.array(["a", "a", "a"])}}, None),
        ({"meta": {"trajectory_id": np.arange(3)}}, "meta: has a column trajectory_id"),
        ({"meta": {"x": np.array([1, "a", None], dtype=object)}}, "meta column 'x': cannot be written"),
        ({"state_columns": {"f_new": np.arange(3)}}, "state_columns: column 'f_new' means something else: rename it"),
        ({"action_ids": np.array(["p", "q", "r"])}, "action_names: differ from action_ids"),
    ):
        fields = {name: getattr(rich, name) for name in rich.__dataclass_fields__}
        problem = Problem(**{**fields, **change})
        if message is None:
            write_problem(problem, tmp_path / "fine")
            assert read_problem(tmp_path / "fine").meta["goal"].tolist() == ["c", "c", "c"]
        else:
            with pytest.raises(InputError, match=message):
                write_problem(problem, tmp_path / "wrong")
