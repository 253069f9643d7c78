"""Tables as people write them: read where there is no doubt, with a note of what was interpreted; else refused."""

from __future__ import annotations

import fuzz_readers
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folders import PARK, park, read_json

from messirl.app import cli
from messirl.io import InputError, check_problem, read_problem, read_trajectories

STATES = "state,f_a,f_b\n0,1,0.5\n1,0.5,2\n2,0,1\n"
EDGES = "from,to,action\n0,1,0\n1,2,0\n2,0,0\n0,2,1\n"
STEPS = "trajectory_id,step,state,action\n5,0,0,0\n5,1,1,0\n5,2,2,\n8,0,0,1\n8,1,2,\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "problem"
    made.mkdir()
    for name, text in (("states", STATES), ("edges", EDGES), ("trajectories", STEPS)):
        (made / f"{name}.csv").write_text(text)
    (made / "problem.json").write_text('{"discount": 0.9}')
    return made


@pytest.fixture
def plain(folder):
    """What the folder holds before anything is written in another way."""
    return fuzz_readers.content(read_problem(folder))


def read_as(folder, plain):
    """The notes of a folder that must be the same problem."""
    problem = read_problem(folder)
    assert check_problem(folder) == []
    assert fuzz_readers.same(fuzz_readers.content(problem), plain)
    return list(problem.notes)


def refusal(folder):
    with pytest.raises(InputError) as caught:
        read_problem(folder)
    assert str(caught.value) in [str(fault) for fault in check_problem(folder)]
    return str(caught.value)


# ------------------------------------------------------------ separators and decimals


@pytest.mark.parametrize(("sign", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_semicolons_and_tabs_separate_cells_and_are_noted(folder, plain, sign, word):
    for path in folder.glob("*.csv"):
        path.write_text(path.read_text().replace(",", sign))
    names = ("states", "edges", "trajectories")
    assert read_as(folder, plain) == [f"{name}.csv: the columns are separated by {word}" for name in names]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_decimal_commas_are_read_where_other_signs_separate_the_cells(folder, plain, sign):
    path = folder / "states.csv"
    path.write_text(path.read_text().replace(",", sign).replace(".", ","))
    notes = read_as(folder, plain)
    assert notes[1] == "states.csv: decimal commas are read as decimal points (f_a, f_b)"


def test_decimal_commas_between_commas_are_refused_by_their_cause(folder):
    (folder / "states.csv").write_text("state,f_a\n0,1,5\n1,2\n2,3\n")
    assert "states.csv, row 2: has 3 cells, but there are 2 columns: a comma cannot be both" in refusal(folder)
    (folder / "states.csv").write_text('state,f_a\n0,"1,5"\n1,2\n2,3\n')
    assert "states.csv, row 2: f_a holds '1,5', not a number: write decimals with a point" in refusal(folder)


def test_commas_that_may_mark_thousands_are_refused(folder):
    (folder / "states.csv").write_text("state;f_a\n0;1,250\n1;2,500\n2;3\n")
    assert "row 2: f_a holds '1,250', which may be 1.250 or 1250: write decimals with a point" in refusal(folder)
    (folder / "states.csv").write_text("state;f_a;f_b\n0;1,250;0,5\n1;2,500;1\n2;3;2\n")
    assert read_problem(folder).mdp.features[:, 0].tolist() == [1.25, 2.5, 3], "another column decides"


def test_decimal_commas_beside_decimal_points_are_refused(folder):
    (folder / "states.csv").write_text("state;f_a;f_b\n0;1,5;0.5\n1;2,5;1\n2;3;2\n")
    assert "row 2: holds decimal commas ('1,5') and decimal points ('0.5'): use one decimal mark throughout" in refusal(
        folder
    )


def test_labels_with_commas_are_labels_between_semicolons(tmp_path):
    made = park(
        tmp_path / "park",
        states__csv="state;f_a\n0,0;1\n0,1;2\n",
        edges__csv="from;to;action\n0,0;0,1;go\n0,1;0,0;go\n",
        trajectories__csv="trajectory_id;step;state\n1,5;0;0,0\n1,5;1;0,1\n",
        trajectory_meta__csv="trajectory_id;age\n1,5;2,5\n",
    )
    problem = read_problem(made)
    assert problem.state_ids.tolist() == ["0,0", "0,1"]
    assert problem.trajectory_ids.tolist() == ["1,5"]
    assert problem.meta["age"].tolist() == [2.5]


def test_a_column_that_every_table_has_decides_between_two_separators(folder, plain):
    (folder / "states.csv").write_text('state,f_a,f_b,"note; remark"\n0,1,0.5,a;b\n1,0.5,2,c\n2,0,1,d\n')
    assert read_problem(folder).state_columns["note; remark"].tolist() == ["a;b", "c", "d"]
    (folder / "states.csv").write_text("state;f_a;f_b,x\n0;1;0\n1;1;0\n2;1;0\n")
    assert read_problem(folder).mdp.feature_names == ("f_a", "f_b,x")
    (folder / "states.csv").write_text("State,f_a;f_b\n0,1;2\n")
    assert "states.csv: the first row contains commas and semicolons, and each could be the delimiter" in refusal(
        folder
    )


# ------------------------------------------------------------ cells


def test_blanks_around_cells_and_rows_of_nothing_do_not_count(folder, plain):
    (folder / "states.csv").write_bytes(
        b"\xef\xbb\xbf state , f_a,f_b \r\n 0 ,1 ,\t0.5\r\n\r\n1, 0.5,2\r\n2,0,1\r\n,,\r\n"
    )
    assert read_as(folder, plain) == []


def test_a_fault_is_in_the_row_that_a_spreadsheet_shows(folder):
    (folder / "states.csv").write_text('state,f_a,note\n\n0,1,"two\nlines"\n,,\n1,x,\n2,0,\n')
    assert "states.csv, row 5: f_a holds 'x', not a number" in refusal(folder)
    (folder / "states.csv").unlink()
    pq.write_table(pa.table({"state": [0, 1, 2], "f_a": [1.0, None, 2.0]}), folder / "states.parquet")
    assert "states.parquet, row 3: f_a is empty or not a number" in refusal(folder)


def test_yes_and_no_are_flags_and_features(folder):
    (folder / "states.csv").write_text("state,f_a,terminal\n0,yes,no\n1,No,NO\n2,YES,yes\n")
    mdp = read_problem(folder).mdp
    assert mdp.terminal.tolist() == [False, False, True]
    assert mdp.features[:, 0].tolist() == [1, 0, 1]
    (folder / "states.csv").write_text("state,f_a,terminal\n0,1,1.0\n1,1,0.0\n2,1,0.0\n")
    assert "goes on after terminal state 0" in refusal(folder)


def test_a_column_of_yes_and_no_that_is_only_kept_stays_text(folder):
    (folder / "states.csv").write_text("state,f_a,green\n0,1,yes\n1,1,no\n2,1,no\n")
    assert read_problem(folder).state_columns["green"].tolist() == ["yes", "no", "no"]


def test_whole_numbers_that_pandas_wrote_with_a_point_are_ids(folder, plain):
    (folder / "states.csv").write_text("state,f_a,f_b\n0.0,1,0.5\n1.0,0.5,2\n2.0,0,1\n")
    steps = "trajectory_id,step,state,action\n5.0,0.0,0.0,0.0\n5.0,1.0,1.0,0.0\n5.0,2.0,2.0,\n8.0,0.0,0.0,1.0\n"
    (folder / "trajectories.csv").write_text(steps + "8.0,1.0,2.0,\n")
    assert read_as(folder, plain) == []
    (folder / "trajectories.csv").write_text(steps + "8.0,1,2.0,\n")
    assert "row 2: column 'step' holds decimal numbers: write whole numbers" in refusal(folder)


# ------------------------------------------------------------ steps


def stored(folder, form, text):
    """The trajectories, written as CSV or, typed, as Parquet."""
    if form == "csv":
        (folder / "trajectories.csv").write_text(text)
        return "trajectories.csv"
    (folder / "trajectories.csv").unlink(missing_ok=True)
    head, *rows = [line.split(",") for line in text.splitlines()]
    columns = [[int(cell) if cell else None for cell in column] for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(head, columns, strict=True))), folder / "trajectories.parquet")
    return "trajectories.parquet"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_of_trajectories_may_stand_in_any_order_and_that_is_noted(folder, plain, form):
    where = stored(folder, form, "trajectory_id,step,state,action\n5,2,2,\n8,1,2,\n5,0,0,0\n8,0,0,1\n5,1,1,0\n")
    assert read_as(folder, plain) == [f"{where}: rows are not sorted; they are read by trajectory_id and step"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_steps_may_count_from_1_and_that_is_noted(folder, plain, form):
    where = stored(folder, form, "trajectory_id,step,state,action\n5,1,0,0\n5,2,1,0\n5,3,2,\n8,1,0,1\n8,2,2,\n")
    assert read_as(folder, plain) == [f"{where}: steps count from 1"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("5,1,0,0\n5,2,1,\n8,0,0,1\n8,1,2,\n", "row 2: trajectory 5 begins with step 1: number the steps of every"),
        ("5,2,0,0\n5,3,1,\n", "row 2: trajectory 5 begins with step 2"),
        ("5,0,0,0\n5,2,1,\n", "row 3: step 2 of trajectory 5 follows step 0: number steps 0, 1, 2, … without a gap"),
        ("5,1,1,\n8,0,0,1\n5,0,0,0\n8,1,2,\n5,1,1,\n", "row 6: trajectory 5 has step 1 twice: keep one row per step"),
        ("5,-1,0,0\n5,0,1,\n", "row 2: trajectory 5 begins with step -1"),
    ],
)
def test_steps_that_leave_a_doubt_are_refused_with_their_row(folder, form, steps, message):
    stored(folder, form, f"trajectory_id,step,state,action\n{steps}")
    assert message in refusal(folder)


def test_the_row_of_a_fault_is_the_one_in_the_unsorted_file_and_its_step_that_of_the_file(folder):
    steps = "trajectory_id,step,state\n8,1,0\n5,2,1\n5,1,0\n5,3,0\n8,2,2\n"
    (folder / "trajectories.csv").write_text(steps)
    assert "trajectories.csv, row 3: trajectory 5, step 2: the transition from state 1 to 0 has prob" in refusal(folder)


def test_trajectories_alone_warn_of_what_was_interpreted(folder):
    (folder / "trajectories.csv").write_text("trajectory_id;step;state\n5;1;0\n5;2;1\n")
    with pytest.warns(UserWarning, match="steps count from 1"), pytest.warns(UserWarning, match="by semicolons"):
        found, _ = read_trajectories(folder / "trajectories.csv")
    assert found.states.tolist() == [0, 1]


# ------------------------------------------------------------ names


@pytest.mark.parametrize(
    ("table", "head", "message"),
    [
        ("states", "State,f_a", "column 'state' is missing .*: add it, or rename one; did you mean 'State'?"),
        ("edges", "form,to,action", "column 'from' is missing .*; did you mean 'form'?"),
        ("trajectories", "trajectory,step,state", "'trajectory_id' is missing .*; did you mean 'trajectory'?"),
        ("trajectories", "id,step,state", "'trajectory_id' is missing .*; did you mean 'id'?"),
        ("trajectories", "traj_id,step,state", "'trajectory_id' is missing .*; did you mean 'traj_id'?"),
    ],
)
def test_a_column_that_is_missing_may_be_misspelt(folder, table, head, message):
    path = folder / f"{table}.csv"
    rows = [",".join(row.split(",")[: head.count(",") + 1]) for row in path.read_text().splitlines()[1:]]
    path.write_text("\n".join([head, *rows]) + "\n")
    with pytest.raises(InputError, match=message):
        read_problem(folder)


def test_a_column_that_is_almost_called_like_one_that_is_used_is_noted(folder):
    (folder / "states.csv").write_text("state,f_a,Terminal,colour\n0,1,no,a\n1,1,no,b\n2,1,yes,c\n")
    problem = read_problem(folder)
    assert problem.notes == ("states.csv: column 'Terminal' is kept but not used; did you mean 'terminal'?",)


def test_edges_that_are_not_used_are_noted(folder):
    (folder / "states.csv").write_text("state,f_a,terminal\n0,1,no\n1,1,no\n2,1,yes\n")
    assert read_problem(folder).notes == ("edges.csv: 1 row leaves a terminal state or has probability 0: not used",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"discuont": 0.9}', "problem.json: \"discuont\" is not a known key: did you mean 'discount'?"),
        ('{"gamma": 0.9}', "problem.json: \"gamma\" is not a known key: did you mean 'discount'?"),
        ('{"discount": 0.9, "horizn": 5}', "problem.json: \"horizn\" is not a known key: did you mean 'horizon'?"),
        ('{"discount": 0.9, "Horizon": 5}', "problem.json: \"Horizon\" is not a known key: did you mean 'horizon'?"),
    ],
)
def test_a_misspelt_key_is_an_error_since_its_value_would_be_ignored(folder, text, message):
    (folder / "problem.json").write_text(text)
    assert message in refusal(folder)


@pytest.mark.parametrize("key", ["source", "title", "author", "units", "url", "note", "created", "description", "map"])
def test_a_key_that_resembles_none_is_left_alone_and_noted_by_check(folder, capsys, key):
    (folder / "problem.json").write_text(f'{{"discount": 0.9, "{key}": 1}}')
    assert cli.main(["check", str(folder)]) == 0
    assert f"unknown key '{key}' is ignored" in capsys.readouterr().err


# ------------------------------------------------------------ selecting


def test_a_problem_is_selected_from_by_the_filters_of_the_commands(tmp_path):
    problem = read_problem(park(tmp_path / "park"))
    assert problem.select("age > 10 and trajectory_id != bob").trajectory_ids.tolist() == ["anna"]
    for which in (np.array([True, False, True]), [0, 2], [-3, -1], slice(None, None, 2), "age != 40"):
        assert problem.select(which).trajectory_ids.tolist() == ["anna", "cleo"]
    assert len(problem.select([]).trajectories) == 0


@pytest.mark.parametrize(
    ("which", "error", "message"),
    [
        ("age = 4", ValueError, r"the filter 'age = 4' matches no trajectory: 'age' holds 30 \(1\), 40 \(1\), 9 \(1\)"),
        ("aeg = 4", InputError, "there is no column 'aeg': the columns are age, trajectory_id; did you mean 'age'?"),
        ([3], IndexError, "trajectory 3 is not one of 0 … 2"),
        (
            [1, 0, 1],
            ValueError,
            "select takes trajectory 1 more than once: give each once, or a mask of True and False",
        ),
        ([True, False], ValueError, "the mask has 2 entries for 3 trajectories: give one per trajectory"),
        ([0.5], ValueError, "is not a selection of trajectories: give a filter such as 'role = expert', a mask"),
        (None, ValueError, "is not a selection of trajectories: give a filter"),
        (1, ValueError, "is not a selection of trajectories: give a filter"),
        (["anna"], ValueError, "is not a selection of trajectories: give a filter"),
    ],
)
def test_what_selects_nothing_is_refused_in_words(tmp_path, which, error, message):
    problem = read_problem(park(tmp_path / "park"))
    with pytest.raises(error, match=message):
        problem.select(which)


# ------------------------------------------------------------ what check and show say


def test_check_and_show_note_what_was_interpreted(tmp_path, capsys):
    steps = PARK["trajectories.csv"].replace(",", ";")
    made = park(tmp_path / "park", trajectories__csv=steps)
    for command in ("check", "show"):
        assert cli.main([command, str(made)]) == 0
        assert "messirl: note: trajectories.csv: the columns are separated by semicolons" in capsys.readouterr().err
        assert cli.main([command, str(made), "--json"]) == 0
        written = capsys.readouterr()
        assert written.err == ""
        assert read_json(written.out)["notes"] == ["trajectories.csv: the columns are separated by semicolons"]


def test_check_reports_every_fault_between_trajectories_and_mdp_with_labels_and_rows(tmp_path, capsys):
    made = park(
        tmp_path / "park",
        states__csv="state,f_green,terminal,start\ngate,0,no,1\npond,1,no,0\nwood,1,no,0\ncafé,0,yes,0\nsea,0,no,0\n",
        edges__csv="from,to,action\ngate,pond,east\npond,gate,west\npond,wood,north\nwood,café,west\ngate,sea,down\n",
        trajectories__csv="trajectory_id,step,state,action\n"
        "anna,0,gate,east\nanna,1,wood,west\nanna,2,café,\n"
        "bob,0,wood,west\nbob,1,café,west\nbob,2,gate,\n"
        "cleo,0,gate,down\ncleo,1,sea,\n"
        "dora,0,gate,north\ndora,1,pond,\n",
        trajectory_meta__csv="trajectory_id\nanna\nbob\ncleo\ndora\n",
    )
    assert cli.main(["check", str(made)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[0] for line in said[:-1]] == [
        f"trajectories.csv, row {row}" for row in (6, 9, 2, 10, 5)
    ]
    for line, part in zip(
        said,
        (
            "trajectory 'bob', step 1: it goes on after terminal state 'café': cut it there",
            "trajectory 'cleo', step 1: state 'sea' has no allowed action and is not terminal",
            "trajectory 'anna', step 0: the transition from state 'gate' to 'wood' by action 'east' has probability 0",
            "the transition from state 'gate' to 'pond' by action 'north' has probability 0 in the MDP, which does not",
            "trajectory 'bob', step 0: it begins in state 'wood', where start is 0: give the state a weight in start",
            "5 faults in",
        ),
        strict=True,
    ):
        assert part in line


def test_check_reports_wrong_lengths_and_goals_that_were_passed(tmp_path):
    made = park(tmp_path / "park", problem__json='{"discount": 0.5, "horizon": 3}')
    assert [(fault.row, fault.what) for fault in check_problem(made)] == [
        (5, "trajectory 'anna' has 4 states, but horizon=3"),
        (12, "trajectory 'cleo' has 4 states, but horizon=3"),
    ]
    goals = "trajectory_id,goal\nanna,café\nbob,gate\ncleo,pond\n"
    made = park(tmp_path / "goals", trajectory_meta__csv=goals)
    assert [(fault.row, fault.what) for fault in check_problem(made)] == [
        (6, "trajectory 'bob', step 0: it goes on after its goal 'gate'"),
        (10, "trajectory 'cleo', step 1: it goes on after its goal 'pond'"),
    ]


def test_a_start_where_none_begins_is_found_by_checking_and_read_all_the_same(tmp_path):
    states = "state,f_green,start\ngate,0,0\npond,1,1\nwood,1,0\ncafé,0,0\n"
    made = park(tmp_path / "park", states__csv=states)
    assert len(read_problem(made).trajectories) == 3
    assert [fault.row for fault in check_problem(made)] == [2, 6, 9]


def test_many_faults_of_one_kind_are_counted_beside_those_of_another(tmp_path):
    rows = "".join(f"t{i},0,gate\nt{i},1,wood\n" for i in range(25))
    meta = "trajectory_id\n" + "".join(f"t{i}\n" for i in range(25))
    states = "state,f_green,start\ngate,0,0\npond,1,1\nwood,1,0\ncafé,0,0\n"
    steps = f"trajectory_id,step,state\n{rows}"
    made = park(tmp_path / "park", states__csv=states, trajectories__csv=steps, trajectory_meta__csv=meta)
    found = [fault.what for fault in check_problem(made)]
    assert len(found) == 42
    assert found[-2:] == ["… and 5 more of this kind (move)", "… and 5 more of this kind (start)"]
