"""Writing problem folders: nothing changes on the way there and back, and nothing of others is touched."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

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
    with pytest.raises(InputError, match=r"states.csv: column '' would read back as another type: use format"):
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
    with pytest.raises(InputError, match=r"trajectory_meta.csv: column 'day' would read back as another type"):
        write_problem(problem, tmp_path / "b", format="csv")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writing_refuses_a_folder_that_holds_a_problem_unless_told(rich, tmp_path):
    folder = tmp_path / "problem"
    rich.state_columns.pop("")
    write_problem(rich, folder, format="csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for form in ("csv", "parquet"):
        with pytest.raises(InputError, match=r"already contains edges.csv: give another folder, or `force`"):
            write_problem(rich, folder, format=form)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "thesis.tex").write_text("precious")
    (folder / "sub").mkdir()
    write_problem(rich, folder, overwrite=True)
    assert names(folder) == [
        "edges.parquet",
        "problem.json",
        "states.parquet",
        "sub",
        "thesis.tex",
        "trajectories.parquet",
        "trajectory_meta.parquet",
    ]
    assert (folder / "thesis.tex").read_text() == "precious"


def test_writing_refuses_a_folder_of_other_things(rich, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match=r"contains thesis.tex, which is not part of a problem: give another folder"):
        write_problem(rich, tmp_path)
    with pytest.raises(InputError, match="is a file: give another folder"):
        write_problem(rich, tmp_path / "thesis.tex", overwrite=True)
    with pytest.raises(ValueError, match="format is 'xlsx': choose parquet or csv"):
        write_problem(rich, tmp_path / "new", format="xlsx")
    (tmp_path / "other" / "states.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"contains a folder named states.csv: give another folder"):
        write_problem(rich, tmp_path / "other", overwrite=True)


def test_an_interrupted_write_leaves_the_old_files(rich, tmp_path, monkeypatch):
    folder = tmp_path / "problem"
    rich.state_columns.pop("")
    write_problem(rich, folder, format="csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_problem(rich, folder, format="parquet", overwrite=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.raises(OSError, match="no space left"):
        write_problem(rich, tmp_path / "new")
    assert not (tmp_path / "new").exists()


class Killed(BaseException):
    """Stands for a kill -9: nothing after it is run."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_write_that_is_killed_at_any_moment_leaves_the_old_problem_or_the_new_one(rich, tmp_path, monkeypatch, form):
    """Every call that changes a file is the last one, once: what is read then is the old problem or the new one."""
    rich.state_columns.pop("")
    new = rich.select([2, 0])
    contents = [fuzz_readers.content(problem) for problem in (rich, new)]
    calls = [(os, "replace"), (os, "link"), (Path, "write_bytes"), (Path, "mkdir"), (Path, "unlink"), (os, "rmdir")]
    seen, moment, done = set(), 0, False
    while not done:
        folder = tmp_path / str(moment)
        write_problem(rich, folder, format="csv")
        (folder / "mine.txt").write_text("mine")
        left = moment
        with monkeypatch.context() as patch:

            def counted(call):
                def run(*arguments, **options):
                    nonlocal left
                    if left == 0:
                        raise Killed
                    left -= 1
                    return call(*arguments, **options)

                return run

            for owner, name in calls:
                patch.setattr(owner, name, counted(getattr(owner, name)))
            patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # who is killed tidies nothing up
            try:
                write_problem(new, folder, format=form, overwrite=True)
                done = True
            except Killed:
                pass
        read = fuzz_readers.content(read_problem(folder))
        which = [k for k in (0, 1) if fuzz_readers.same(read, contents[k])]
        assert len(which) == 1, f"a mix after {moment} calls"
        seen.add(which[0])
        assert (folder / "mine.txt").read_text() == "mine"
        write_problem(rich, folder, format="csv", overwrite=True)
        assert not [name for name in names(folder) if name.startswith(".")]
        assert fuzz_readers.same(fuzz_readers.content(read_problem(folder)), contents[0]), "the next one tidies up"
        moment += 1
    assert seen == {0, 1}
    assert moment > 8


def test_an_interrupted_replacement_is_noted_by_whoever_reads(rich, tmp_path):
    write_problem(rich, tmp_path)
    hidden = tmp_path / ".messirl-replacing"
    write_problem(rich.select([0]), tmp_path / "new")
    (tmp_path / "new").rename(hidden)
    problem = read_problem(tmp_path)
    assert len(problem.trajectories) == 1
    assert "replacing its tables was interrupted" in problem.notes[0]
    with pytest.raises(InputError, match="already"):
        write_problem(rich, tmp_path)


def with_more_columns(rich):
    nnz, entries = rich.mdp.transitions.nnz, rich.trajectories.states.size
    return replace(
        rich,
        state_columns={},
        edge_columns={"road": np.array([f"r{i}" for i in range(nnz)], dtype=object), "lanes": np.arange(nnz)},
        step_columns={"speed": np.arange(entries) / 8, "seen": np.arange(entries) % 2 == 0},
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_further_columns_of_edges_and_steps_are_kept(rich, tmp_path, form):
    problem = with_more_columns(rich)
    write_problem(problem, tmp_path / "a", format=form)
    read = read_problem(tmp_path / "a")
    assert fuzz_readers.same(fuzz_readers.content(problem), fuzz_readers.content(read))
    assert read.edge_columns["road"].tolist() == ["r0", "r1", "r2"]
    assert read.step_columns["speed"].tolist() == [0, 0.125, 0.25, 0.375, 0.5, 0.625]
    assert fuzz_readers.round_trip(tmp_path / "a", tmp_path / "b", "parquet") == "same"


def test_further_columns_belong_to_their_moves_and_steps_whatever_the_order_of_rows(tmp_path):
    (tmp_path / "states.csv").write_text("state,f_a,terminal\na,1,no\nb,2,no\nc,3,yes\n")
    edges = "from,to,action,probability,road\nc,a,x,1,lost\nb,c,y,1,bc\na,c,x,0.5,ac\na,b,x,0.5,ab\nb,a,x,1,ba\n"
    (tmp_path / "edges.csv").write_text(edges)
    steps = "trajectory_id,step,state,speed\nt,2,c,30\nu,0,b,7\nt,0,a,10\nt,1,b,20\nu,1,a,8\n"
    (tmp_path / "trajectories.csv").write_text(steps)
    (tmp_path / "problem.json").write_text('{"discount": 0.9}')
    problem = read_problem(tmp_path)
    moves = problem.mdp.transitions.tocoo()
    source = ["abc"[row // problem.mdp.n_actions] for row in moves.row]
    assert problem.edge_columns["road"].tolist() == [s + "abc"[c] for s, c in zip(source, moves.col, strict=True)]
    assert problem.step_columns["speed"].tolist() == [10, 20, 30, 7, 8]
    assert problem.select("trajectory_id = u").step_columns["speed"].tolist() == [7, 8]
    assert problem.select([1, 0]).step_columns["speed"].tolist() == [7, 8, 10, 20, 30]


def test_what_cannot_be_written_is_refused(rich, tmp_path):
    for change, message in (
        ({"meta": {"goal": np.array(["a", "a", "a"])}}, None),
        ({"meta": {"trajectory_id": np.arange(3)}}, "meta: has a column trajectory_id"),
        ({"meta": {"x": np.array([1, "a", None], dtype=object)}}, "meta column 'x': cannot be written"),
        ({"state_columns": {"f_new": np.arange(3)}}, "state_columns: column 'f_new' has another meaning: rename it"),
        ({"action_ids": np.array(["p", "q", "r"])}, "action_names: differ from action_ids"),
        ({"edge_columns": {"g_new": np.arange(3)}}, "edge_columns: column 'g_new' has another meaning: rename it"),
        ({"state_ids": np.array(["a", "b", "a"])}, "state_ids: 'a' is there 2 times: give each an id of its own"),
        ({"trajectory_ids": np.array([7, 7, 7])}, "trajectory_ids: '7' is there 3 times: give each an id of its own"),
        ({"step_columns": {"step": np.arange(6)}}, "step_columns: column 'step' has another meaning: rename it"),
    ):
        fields = {name: getattr(rich, name) for name in rich.__dataclass_fields__}
        problem = Problem(**{**fields, **change})
        if message is None:
            write_problem(problem, tmp_path / "fine")
            assert read_problem(tmp_path / "fine").meta["goal"].tolist() == ["c", "c", "c"]
        else:
            with pytest.raises(InputError, match=message):
                write_problem(problem, tmp_path / "wrong")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"mdp": Trajectories.from_lists([[0]])},
            TypeError,
            r"mdp is of type Trajectories, not MDP: give Problem\(mdp, traj",
        ),
        ({"trajectories": 5}, TypeError, "trajectories is of type int, not Trajectories: give"),
        (
            {"meta": {"age": np.arange(2)}},
            InputError,
            "meta: column 'age' has 2 entries, not 3: give 3, or leave it out",
        ),
        ({"meta": {"age": "old"}}, InputError, "meta: column 'age' has the one value 'old', not 3"),
        ({"trajectory_ids": np.arange(4)}, InputError, "trajectory_ids: it has 4 entries, not 3"),
        ({"state_ids": ["a"]}, InputError, "state_ids: it has 1 entry, not 3"),
        ({"action_ids": ["a"]}, InputError, "action_ids: it has 1 entry, not 3"),
        ({"xy": np.zeros((2, 2))}, InputError, "xy: it has 2 entries, not 3"),
        ({"xy": np.zeros((3, 3))}, InputError, r"xy: has shape \(3, 3\): give x and y of each state, \(3, 2\)"),
        ({"state_columns": {"size": np.arange(4)}}, InputError, "state_columns: column 'size' has 4 entries, not 3"),
        ({"edge_columns": {"road": np.arange(2)}}, InputError, "edge_columns: column 'road' has 2 entries, not 3"),
        ({"step_columns": {"speed": np.arange(5)}}, InputError, "step_columns: column 'speed' has 5 entries, not 6"),
    ],
)
def test_a_problem_whose_parts_do_not_fit_is_refused(rich, change, error, message):
    with pytest.raises(error, match=message):
        replace(rich, **change)


def test_lists_are_columns_and_trajectories_of_a_problem(rich):
    made = Problem(rich.mdp, [[0, 1, 2], [1, 2]], {"role": ["expert", "other"]})
    assert made.select("role = other").trajectories == Trajectories.from_lists([[1, 2]])
