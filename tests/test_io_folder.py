"""Problem folders and plain tables: what is read, and what is said of what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import fuzz_readers
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from worlds import ROUNDING

import messirl.io
from messirl import Trajectories
from messirl.io import (
    InputError,
    check_problem,
    problem_from_tables,
    read_problem,
    read_trajectories,
)

DATA = Path(os.environ.get("MESSIRL_DATA", Path(__file__).parents[2] / "shared" / "data"))

STATES = "state,f_a,f_b\n0,1,0\n1,0.5,2\n2,0,1\n"
EDGES = "from,to,action\n0,1,0\n1,2,0\n2,0,0\n0,2,1\n"
STEPS = "trajectory_id,step,state,action\n5,0,0,0\n5,1,1,0\n5,2,2,\n8,0,0,1\n8,1,2,\n"
META = "trajectory_id,role\n5,expert\n8,unlabelled\n"
SETTINGS = '{"discount": 0.9}'


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "problem"
    made.mkdir()
    tables = {"states": STATES, "edges": EDGES, "trajectories": STEPS, "trajectory_meta": META}
    for name, text in tables.items():
        (made / f"{name}.csv").write_text(text)
    (made / "problem.json").write_text(SETTINGS)
    return made


def refusal(folder: Path) -> str:
    """What reading says; checking must say the same first, or more."""
    with pytest.raises(InputError) as caught:
        read_problem(folder)
    assert str(caught.value) in [str(fault) for fault in check_problem(folder)]
    return str(caught.value)


def frames() -> dict[str, dict[str, list]]:
    return {
        "states": {"state": [0, 1], "f_a": [1.0, 2.0]},
        "edges": {"from": [0, 1], "to": [1, 0], "action": [0, 0]},
        "trajectories": {"trajectory_id": [3, 3, 4], "step": [0, 1, 0], "state": [0, 1, 1]},
    }


# ------------------------------------------------------------ what is read


def test_a_folder_of_csv_is_read(folder):
    problem = read_problem(folder)
    assert check_problem(folder) == []
    assert_array_equal(problem.mdp.features, [[1, 0], [0.5, 2], [0, 1]])
    assert problem.mdp.feature_names == ("f_a", "f_b")
    assert problem.mdp.discount == 0.9
    assert problem.mdp.horizon is None
    assert problem.mdp.start is None
    assert problem.mdp.allowed.tolist() == [[True, True], [True, False], [True, False]]
    assert problem.trajectories == Trajectories.from_lists([[0, 1, 2], [0, 2]], [[0, 0], [1]])
    assert_array_equal(problem.trajectory_ids, [5, 8])
    assert problem.meta["role"].tolist() == ["expert", "unlabelled"]
    assert problem.state_ids is None
    assert problem.mdp.state_names is None


def label_states(folder: Path) -> None:
    """Call the states c, a and b."""
    for name, text in (("states", STATES), ("edges", EDGES), ("trajectories", STEPS)):
        head, *rows = text.splitlines()
        column = [i for i, title in enumerate(head.split(",")) if title in ("state", "from", "to")]
        cells = [row.split(",") for row in rows]
        for row in cells:
            for i in column:
                row[i] = "cab"[int(row[i])]
        (folder / f"{name}.csv").write_text("\n".join([head, *(",".join(row) for row in cells)]))


def test_labels_become_names_unless_there_is_a_name_column(folder):
    label_states(folder)
    problem = read_problem(folder)
    assert problem.state_ids.tolist() == ["c", "a", "b"]
    assert problem.mdp.state_names == ("c", "a", "b")
    assert problem.trajectories.states.tolist() == [0, 1, 2, 0, 2]
    (folder / "states.csv").write_text("state,f_a,name\nc,1,<b>sea</b>\na,2,2\nb,3,three\n")
    problem = read_problem(folder)
    assert problem.state_ids.tolist() == ["c", "a", "b"]
    assert problem.mdp.state_names == ("<b>sea</b>", "2", "three")


def test_a_label_may_be_nan(folder):
    for path in folder.glob("*.csv"):
        path.unlink()
    (folder / "states.csv").write_text("state,f_a\nnan,1\ninf,2\na,3\n")
    (folder / "edges.csv").write_text("from,to,action\nnan,inf,0\ninf,nan,0\n")
    (folder / "trajectories.csv").write_text("trajectory_id,step,state\n0,0,nan\n0,1,inf\n")
    assert read_problem(folder).trajectories.states.tolist() == [0, 1]


def test_rows_of_states_may_stand_in_any_order(folder):
    (folder / "states.csv").write_text("state,f_a,start,x,y,note\n2,20,0,2,0,c\n0,0,3,0,,a\n1,10,1,1,5,b\n")
    problem = read_problem(folder)
    assert_array_equal(problem.mdp.features[:, 0], [0, 10, 20])
    assert_array_equal(problem.mdp.start, [0.75, 0.25, 0])
    assert_array_equal(problem.xy, [[0, np.nan], [1, 5], [2, 0]])
    assert problem.state_columns["note"].tolist() == ["a", "b", "c"]


def test_features_of_a_step_are_the_edges_and_those_of_the_state_entered_in_expectation(folder):
    (folder / "edges.csv").write_text(
        "from,to,action,probability,g_c\n0,1,0,0.25,4\n0,2,0,0.75,8\n1,2,0,1,1\n2,0,0,1,2\n0,2,1,1,3\n"
    )
    mdp = read_problem(folder).mdp
    assert mdp.feature_names == ("f_a", "f_b", "g_c")
    assert_allclose(mdp.features[0, 0], [0.25 * 0.5, 0.25 * 2 + 0.75 * 1, 7.0], rtol=ROUNDING)
    assert_array_equal(mdp.features[1, 0], [0, 1, 1])
    assert_array_equal(mdp.features[1, 1], [0, 0, 0])


def test_edge_features_alone_are_state_action_features(folder):
    (folder / "states.csv").write_text("state\n0\n1\n2\n")
    (folder / "edges.csv").write_text("from,to,action,g_c\n0,1,0,4\n1,2,0,1\n2,0,0,2\n0,2,1,0.1\n")
    mdp = read_problem(folder).mdp
    assert mdp.state_action
    assert mdp.features[:, :, 0].tolist() == [[4.0, 0.1], [1.0, 0.0], [2.0, 0.0]]


def test_goals_come_from_the_meta_table_in_the_order_of_the_trajectories(folder):
    (folder / "trajectory_meta.csv").write_text("goal,trajectory_id\n2,8\n2,5\n")
    assert read_problem(folder).trajectories.goals.tolist() == [2, 2]
    (folder / "trajectory_meta.csv").write_text("trajectory_id,goal\n5,2\n8,\n")
    assert "trajectory_meta.csv, row 3: goal is empty, but other trajectories have one: give a goal" in refusal(folder)
    (folder / "trajectory_meta.csv").write_text("trajectory_id,goal\n5,\n8,\n")
    assert read_problem(folder).trajectories.goals is None


def test_columns_keep_their_kinds(folder):
    (folder / "trajectory_meta.csv").write_text(
        "trajectory_id,n,x,ok,zip,big,none,half\n5,1,1.5,true,007,1e3,,\n8,2,,FALSE,1,2,,3\n"
    )
    meta = read_problem(folder).meta
    kinds = {name: (column.dtype.kind, column.tolist()) for name, column in meta.items()}
    assert kinds.pop("x")[0] == "f"
    assert np.isnan(meta["x"][1])
    assert kinds == {
        "n": ("i", [1, 2]),
        "ok": ("b", [True, False]),
        "zip": ("O", ["007", "1"]),
        "big": ("f", [1000.0, 2.0]),
        "none": ("O", [None, None]),
        "half": ("O", [None, 3]),
    }


def test_problem_json_may_name_things(folder):
    (folder / "problem.json").write_text(
        '{"discount": 1, "horizon": null, "action_names": ["go", "jump", "rest"], "feature_names": ["a", "b"], '
        '"state_names": ["x", "y", "z"], "source": "left alone"}'
    )
    mdp = read_problem(folder).mdp
    assert (mdp.action_names, mdp.feature_names, mdp.state_names) == (("go", "jump", "rest"), ("a", "b"), tuple("xyz"))
    assert mdp.n_actions == 3


@pytest.mark.parametrize(
    ("key", "names", "what"),
    [
        ("feature_names", '["f_b", "f_a"]', "feature_names has 'f_b' in place 1, which is number 2 in the tables"),
        ("feature_names", '["b", "cost"]', "feature_names has 'b' in place 1, which is number 2 in the tables"),
        ("state_names", '["x", "b", "a"]', "state_names has 'b' in place 2, which is number 3 in the tables"),
    ],
)
def test_names_in_another_order_than_the_tables_are_refused(key, names, what, folder):
    label_states(folder)
    (folder / "problem.json").write_text(f'{{"discount": 0.9, "{key}": {names}}}')
    assert f"problem.json: {what}: give the names in the order of the tables" in refusal(folder)


@pytest.mark.parametrize("name", ["borlange", "labyrinth_mice", "labyrinth_segments"])
def test_real_folders_are_read_and_written_unchanged(name, tmp_path):
    if not (DATA / name).is_dir():
        pytest.skip(f"no {name}: set MESSIRL_DATA to the folder that holds it")
    assert fuzz_readers.round_trip(DATA / name, tmp_path / "copy", "parquet") == "same"
    problem = read_problem(DATA / name)
    expected = {"borlange": (7754, 1832), "labyrinth_mice": (128, 3318), "labyrinth_segments": (128, 3318)}
    assert (problem.mdp.n_states, len(problem.trajectories)) == expected[name]


def test_trips_where_nothing_can_end_are_read_but_fit_for_no_fit(folder):
    (folder / "problem.json").write_text('{"discount": 1}')
    assert len(read_problem(folder).trajectories) == 2
    assert [fault.what for fault in check_problem(folder)] == [
        "discount=1 with no horizon, no terminal state and no goal"
    ]


# ------------------------------------------------------------ tables in memory


def test_tables_in_memory_are_read_like_files():
    problem = problem_from_tables(**frames(), discount=0.5)
    arrow = {name: pa.table(columns) for name, columns in frames().items()}
    numpy = {name: {key: np.array(values) for key, values in columns.items()} for name, columns in frames().items()}
    for tables in (arrow, numpy):
        other = problem_from_tables(**tables, discount=0.5)
        assert other.trajectories == problem.trajectories
        assert_array_equal(other.mdp.features, problem.mdp.features)
        assert_array_equal(other.trajectory_ids, [3, 4])


def test_pandas_frames_are_read_like_files():
    pandas = pytest.importorskip("pandas")
    tables = {name: pandas.DataFrame(columns) for name, columns in frames().items()}
    tables["trajectories"]["action"] = pandas.array([0, None, None], dtype="Int64")
    problem = problem_from_tables(**tables, discount=0.5)
    assert problem.trajectories == Trajectories.from_lists([[0, 1], [1]], [[0], []])
    tables["trajectories"]["action"] = [0.0, np.nan, np.nan]
    with pytest.raises(InputError, match="column 'action' holds decimal numbers, not whole numbers"):
        problem_from_tables(**tables, discount=0.5)


def test_a_frame_is_known_by_its_shape():
    class Frame:
        def __init__(self, columns):
            self.columns = list(columns)
            self._data = columns

        def __getitem__(self, name):
            return self._data[name]

    tables = {name: Frame(columns) for name, columns in frames().items()}
    assert len(problem_from_tables(**tables, discount=0.5).trajectories) == 2


def test_text_that_is_not_a_table_is_refused():
    tables = frames()
    for wrong, message in (
        (3, "states: is a int: give a path, a data frame"),
        ({"state": [0, 1], "f_a": [1, "x"]}, "states: column 'f_a' mixes types"),
        ({"state": [0, 1], "f_a": [1]}, "states: has columns of 1 and of 2 rows"),
        ({"state": [0, 1], 5: [1, 2]}, "states: has a column named 5"),
        ({"state": [0, 1], "f_a": [[1], [2]]}, "states: column 'f_a' holds list<item: int64>"),
        ({"state": [True, False], "f_a": [1, 2]}, "states, row 2: column 'state' holds booleans"),
        ({"state": [0.0, 1.0], "f_a": [1, 2]}, "states, row 2: column 'state' holds decimal numbers"),
        (
            {"state": ["0", "1"], "f_a": [1, 2]},
            "edges, row 2: column 'from' holds whole numbers, not text: write",
        ),
    ):
        with pytest.raises(InputError, match=message):
            problem_from_tables(**{**tables, "states": wrong}, discount=0.5)
    with pytest.raises(InputError, match=r"problem: discount is 2, but must lie in \(0, 1\]"):
        problem_from_tables(**tables, discount=2)


def test_trajectories_alone_are_read(folder, tmp_path):
    path = folder / "trajectories.csv"
    trajectories, ids = read_trajectories(path)
    assert trajectories == Trajectories.from_lists([[0, 1, 2], [0, 2]], [[0, 0], [1]])
    assert ids.tolist() == [5, 8]
    problem = read_problem(folder)
    assert read_trajectories(path, problem)[0] == trajectories
    assert read_trajectories(str(path), problem.mdp)[0] == trajectories
    named = problem.mdp.replace(state_names=["a", "b", "c"])
    table = {"trajectory_id": ["t", "t"], "step": [0, 1], "state": ["a", "b"]}
    assert read_trajectories(table, named)[0].states.tolist() == [0, 1]
    with pytest.raises(InputError, match="trajectories, row 2: column 'state' holds text, not whole numbers: write"):
        read_trajectories(table)
    with pytest.raises(InputError, match="trajectories, row 2: trajectory 0, step 0: the transition from state 1 to 0"):
        read_trajectories({"trajectory_id": [0, 0], "step": [0, 1], "state": [1, 0]}, problem)
    with pytest.raises(InputError, match=r"steps.txt: has the suffix '.txt': name it .csv or .parquet"):
        read_trajectories(tmp_path / "steps.txt")
    with pytest.raises(InputError, match=r"steps.csv: does not exist: add the file"):
        read_trajectories(tmp_path / "steps.csv")


# ------------------------------------------------------------ what is wrong

TABLE_FAULTS = [
    ("states", "", "states.csv: is empty: write the table again"),
    ("states", "\n\n", "states.csv: is empty: write the table again"),
    ("states", "state,f_a\n", "states.csv: has no rows: give one row per state"),
    ("states", "id,f_a\n0,1\n", "states.csv: column 'state' is missing (there are 'id', 'f_a'): add it, or rename one"),
    ("states", "state,state\n0,1\n", "states.csv: has two columns named 'state': keep one of them"),
    ("states", "state,f_a\n0,1\n1\n2,1\n", "states.csv, row 3: has 1 cell, but there are 2 columns: fill in the"),
    (
        "states",
        'state,f_a\n0,1\n"1,1\n',
        "states.csv, row 3: is not valid CSV (unexpected end of data): close every quotation mark",
    ),
    ("states", "state,f_a\n0,1\n0,1\n1,1\n", "states.csv, row 3: state 0 occurs twice: give one row per state"),
    ("states", "state,f_a\n0,1\n1,1\n7,1\n", "states.csv, row 4: state 7 is not one of 0 … 2: number the 3 states"),
    ("states", "state,f_a\n0,1\n-1,1\n2,1\n", "states.csv, row 3: state -1 is not one of 0 … 2"),
    ("states", "state,f_a\n0,1\n,1\n2,1\n", "states.csv, row 3: state is empty: fill it in, or drop the row"),
    (
        "states",
        "state,f_a\n0.0,1\n1.5,1\n2.0,1\n",
        "states.csv, row 3: column 'state' holds decimal numbers: write whole",
    ),
    ("states", "state,f_a\ntrue,1\nfalse,1\n", "states.csv, row 2: column 'state' holds booleans"),
    ("states", f"state,f_a\n0,1\n{9**30},1\n", "states.csv, row 3: column 'state' holds whole numbers too large"),
    ("states", "state,f_a\n0,1\n1,x\n2,1\n", "states.csv, row 3: f_a holds 'x', not a number: write a number there"),
    ("states", "state,f_a\n0,1\n1,nan\n2,1\n", "states.csv, row 3: f_a is empty or not a number: fill it in"),
    ("states", "state,f_a\n0,1\n1,1e999\n2,1\n", "states.csv, row 3: f_a is inf: write a finite number"),
    ("states", "state,f_a\n0,1\n1,\n2,1\n", "states.csv, row 3: f_a is empty or not a number: fill it in"),
    ("states", "state\n0\n1\n2\n", "states.csv, edges.csv: have no features: add a column f_… to the states"),
    ("states", "state,f_a,terminal\n0,1,2\n1,1,0\n2,1,1\n", "states.csv, row 2: terminal holds 2, not a boolean"),
    (
        "states",
        "state,f_a,terminal\n0,1,no\n1,1,nay\n2,1,no\n",
        "row 3: terminal holds 'nay', not a boolean",
    ),
    (
        "states",
        "state,f_a,start\n0,1,-1\n1,1,0\n2,1,1\n",
        "states.csv, row 2: start is -1: weights must be >= 0",
    ),
    ("states", "state,f_a,start\n0,1,0\n1,1,0\n2,1,0\n", "states.csv: the weights in start sum to 0: give some state"),
    ("states", "state,f_a,name\n0,1,a\n1,1,b\n2,1,a\n", "states.csv, row 4: name 'a' occurs twice: use distinct names"),
    ("edges", "from,to,action\n", "edges.csv: has no rows: give one row per transition"),
    ("edges", "from,to\n0,1\n", "edges.csv: column 'action' is missing"),
    (
        "edges",
        EDGES + "0,1,0\n",
        "edges.csv, row 6: the same from, action and to occur in an earlier row: delete the row",
    ),
    (
        "edges",
        EDGES + "0,2,0\n",
        "edges.csv, row 6: the same from and action lead elsewhere in an earlier row: add a column prob",
    ),
    ("edges", EDGES + "0,9,0\n", "edges.csv, row 6: to 9 is not one of 0 … 2: correct it, or add the state"),
    ("edges", EDGES + "0,b,0\n", "edges.csv, row 6: to 'b' is not one of 0 … 2"),
    ("edges", EDGES + "1,0,3\n", "edges.csv, row 6: action 3 occurs, but 2 does not: number actions 0, 1, 2, …"),
    ("edges", EDGES + "1,0,-1\n", "edges.csv, row 6: action -1 occurs, but must not be negative"),
    (
        "edges",
        "from,to,action,probability\n0,1,0,0.5\n0,2,0,0.4\n1,2,0,1\n2,0,0,1\n",
        "edges.csv, row 2: the probabilities of this from and action sum to 0.9000, not 1: divide them by their sum",
    ),
    (
        "edges",
        "from,to,action,probability\n0,1,0,-0.5\n",
        "edges.csv, row 2: probability is -0.5: it must lie in [0, 1]",
    ),
    ("trajectories", "trajectory_id,step\n0,0\n", "trajectories.csv: column 'state' is missing"),
    ("trajectories", STEPS + "9,1,0,\n", "trajectories.csv, row 7: trajectory 9 begins with step 1: number the steps"),
    (
        "trajectories",
        STEPS + "5,0,0,\n",
        "row 7: trajectory 5 has step 0 twice: keep one row per step",
    ),
    (
        "trajectories",
        STEPS.replace("5,2,2", "5,3,2"),
        "row 4: step 3 of trajectory 5 follows step 1",
    ),
    ("trajectories", STEPS.replace("5,2,2", "5,1,2"), "trajectories.csv, row 4: trajectory 5 has step 1 twice"),
    ("trajectories", STEPS + "9,x,0,\n", "trajectories.csv, row 7: column 'step' holds text: write whole numbers"),
    ("trajectories", STEPS + "9,0,4,\n", "trajectories.csv, row 7: state 4 is not one of 0 … 2: correct it, or add"),
    ("trajectories", STEPS.replace("5,2,2,", "5,2,2,-1"), "trajectories.csv, row 4: action -1 is not one of 0 … 1"),
    ("trajectories", STEPS.replace("5,2,2,", "5,2,2,nan"), "trajectories.csv, row 4: action nan is not one of 0 … 1"),
    ("trajectories", STEPS.replace("5,2,2,", "5,2,2,1"), "trajectories.csv, row 4: action 1 follows the last state"),
    ("trajectories", STEPS.replace("5,1,1,0", "5,1,1,"), "trajectories.csv, row 3: action is empty: give one action"),
    (
        "trajectories",
        STEPS.replace("8,1,2", "8,1,1"),
        "row 5: trajectory 8, step 0: the transition from state 0 to",
    ),
    (
        "trajectory_meta",
        "trajectory_id,a\n5,1\n",
        "trajectory_meta.csv: trajectory 8 has no row: give one row per",
    ),
    ("trajectory_meta", META + "9,x\n", "trajectory_meta.csv, row 4: trajectory_id 9 is not a known trajectory"),
    ("trajectory_meta", META + "5,x\n", "trajectory_meta.csv, row 4: trajectory 5 occurs twice: give one row per traj"),
    ("trajectory_meta", "a\n5\n", "trajectory_meta.csv: column 'trajectory_id' is missing"),
    (
        "trajectory_meta",
        "trajectory_id,goal\n5,1\n8,2\n",
        "row 3: trajectory 5, step 1: it goes on after its goal 1",
    ),
    (
        "trajectory_meta",
        "trajectory_id,goal\n5,1\n8,1\n",
        "row 6: trajectory 8 ends in state 2, not in its goal 1",
    ),
]


@pytest.mark.parametrize(("table", "text", "message"), TABLE_FAULTS)
def test_a_faulty_table_is_refused_with_file_row_and_remedy(table, text, message, folder):
    (folder / f"{table}.csv").write_text(text)
    assert message in refusal(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "problem.json: is not JSON"),
        ("{", "problem.json: is not JSON"),
        ("[" * 100_000, "problem.json: is not JSON"),
        ("[0.9]", "problem.json: is not an object"),
        ("{}", 'problem.json: has no discount: add "discount", a number in (0, 1]'),
        ('{"discount": "0.9"}', 'problem.json: discount is "0.9": give a number in (0, 1]'),
        ('{"discount": NaN}', "problem.json: discount is NaN: give a number in (0, 1]"),
        ('{"discount": true}', "problem.json: discount is true: give a number in (0, 1]"),
        ('{"discount": 0}', "problem.json: discount is 0: give a number in (0, 1]"),
        ('{"discount": 0.9, "discount": 0.8}', "problem.json: is not JSON (a key occurs twice)"),
        ('{"discount": 0.9, "horizon": 2.5}', "problem.json: horizon is 2.5: give a whole number"),
        ('{"discount": 0.9, "horizon": 2}', "trajectories.csv, row 4: trajectory 5 has 3 states, but horizon=2"),
        ('{"discount": 0.9, "state_names": ["a"]}', "problem.json: state_names has length 1, but 3"),
        ('{"discount": 0.9, "action_names": "ab"}', "problem.json: action_names is not a list of text"),
        ('{"discount": 0.9, "action_names": ["a", "a"]}', "problem.json: action_names contains a name twice"),
        ('{"discount": 0.9, "action_names": ["a"]}', "edges.csv, row 5: action 1 is not one of 0 … 0"),
        ('{"discount": 0.9, "n_actions": 3, "action_names": ["a"]}', "problem.json: n_actions is 3, but there are 1"),
        ('{"discount": 0.9, "n_actions": 20000000}', "edges.csv: names 20000000 actions for 3 states"),
    ],
)
def test_a_faulty_problem_json_is_refused(text, message, folder):
    (folder / "problem.json").write_text(text)
    assert message in refusal(folder)


def test_a_folder_that_is_none_is_refused(folder, tmp_path):
    assert "does not exist: give a folder with states" in refusal(tmp_path / "nothing")
    assert "is a file, not a folder" in refusal(folder / "states.csv")
    (folder / "states.parquet").touch()
    assert "problem: holds both states.parquet and states.csv: keep one of them" in refusal(folder)
    (folder / "states.parquet").unlink()
    (folder / "problem.json").unlink()
    assert "problem.json: does not exist" in refusal(folder)
    (folder / "states.csv").unlink()
    (folder / "states.parquet").mkdir()
    assert "states.parquet: is a directory: give a CSV or Parquet file" in refusal(folder)
    (folder / "states.parquet").rmdir()
    assert "problem: holds neither states.parquet nor states.csv: add the table" in refusal(folder)


def test_text_that_is_not_utf8_is_refused_with_its_row(folder):
    (folder / "states.csv").write_bytes(b"state,f_a\n0,1\n1,\xff\n2,1\n")
    assert "states.csv, row 3: is not UTF-8 text: save it with the encoding UTF-8" in refusal(folder)


def test_damaged_parquet_is_refused(folder):
    (folder / "states.csv").unlink()
    path = folder / "states.parquet"
    pq.write_table(pa.table({"state": ["aaaa", "bbbb", "cccc"], "f_a": [1.0, 2.0, 3.0]}), path, compression="none")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "states.parquet: is not a readable Parquet file" in refusal(folder)
    path.write_bytes(whole.replace(b"bbbb", b"bb\xff\xff"))
    assert "states.parquet: is not a readable Parquet file" in refusal(folder)
    path.write_bytes(b"")
    assert "states.parquet: is empty" in refusal(folder)


def test_checking_finds_every_fault_at_once(folder):
    (folder / "states.csv").write_text("state,f_a,start\n0,x,1\n1,1,-1\n2,inf,0\n")
    (folder / "edges.csv").write_text(EDGES + "0,7,0\n0,1,0\n")
    (folder / "trajectories.csv").write_text(STEPS + "9,3,3,\n")
    (folder / "trajectory_meta.csv").write_text(META + "4,x\n")
    (folder / "problem.json").write_text("{}")
    found = [str(fault) for fault in check_problem(folder)]
    for message in (
        "states.csv, row 2: f_a holds 'x'",
        "states.csv, row 4: f_a is inf",
        "states.csv, row 3: start is -1",
        "edges.csv, row 6: to 7 is not",
        "trajectories.csv, row 7: state 3 is not",
        "trajectories.csv, row 7: trajectory 9 begins with step 3",
        "trajectory_meta.csv, row 4: trajectory_id 4 is not",
        "problem.json: has no discount",
    ):
        assert any(message in fault for fault in found), message


def test_many_faults_of_one_kind_are_counted(folder):
    rows = "".join(f"{i},0,9,\n" for i in range(100, 150))
    (folder / "trajectories.csv").write_text(STEPS + rows)
    (folder / "trajectory_meta.csv").unlink()
    found = check_problem(folder)
    assert len(found) == 21
    assert "trajectories.csv: … and 30 more rows like this" in str(found[-1])


def test_a_long_cell_is_cut_in_the_message(folder):
    (folder / "states.csv").write_text(f"state,f_a\n0,{'<script>' * 1000}\n1,1\n2,1\n")
    assert len(refusal(folder)) < 200


def test_public_names_are_there():
    for name in messirl.io.__all__:
        assert getattr(messirl.io, name) is not None
    assert set(messirl.io.__all__) <= set(dir(messirl.io))
    with pytest.raises(AttributeError, match=r"module 'messirl.io' has no attribute 'nonsense'"):
        messirl.io.nonsense  # noqa: B018
