"""`messirl import`: a folder that is checked and fitted as it is, nothing lost, nothing guessed in silence."""

from __future__ import annotations

import numpy as np
import pytest
from folders import read_json
from seeds import generator, shifted

from messirl.app import cli
from messirl.io import check_problem, read_problem
from studies.raw_recordings import Case, imported, recorded, world

PNG = b"\x89PNG"
SQUARES = ["--grid", "1", "--coordinates", "--discount", "0.9"]
HEAD = "animal,frame,x,y"


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, and what it printed and remarked."""

    def command(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


@pytest.fixture
def tracks(tmp_path):
    """Twelve noisy walks over a plane of 6 × 6, every second of a hare."""
    random = generator(20)
    rows = [HEAD + ",species"]
    for i in range(12):
        at = np.clip(np.cumsum(random.normal(0, 0.6, size=(25, 2)), axis=0) + 3, 0, 5.99)
        kind = "hare" if i % 2 else "fox"
        rows += [f"{i},{t},{x:.3f},{y:.3f},{kind}" for t, (x, y) in enumerate(at)]
    path = tmp_path / "tracks.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


WAYS = {
    "squares": ["--grid", "1", "--distance", "3,3"],
    "eight neighbours": ["--grid", "1", "--neighbours", "8", "--turning"],
    "the whole grid": ["--grid", "1", "--area", "0,0,6,6", "--whole-grid", "--coordinates"],
    "hexagons": ["--hexagons", "1.2", "--count", "species=fox"],
    "k-means": ["--kmeans", "9", "--indicator"],
    "moves that were seen": ["--grid", "2", "--moves", "seen", "--coordinates"],
    "a clock": ["--grid", "2", "--step", "2", "--coordinates"],
    "noise": ["--grid", "1", "--step", "1", "--noise", "0.3", "--coordinates"],
}


@pytest.mark.parametrize(("way", "format"), [*((way, "parquet") for way in WAYS), ("squares", "csv")])
def test_the_folder_is_fine_and_can_be_fitted_as_it_is(run, tracks, tmp_path, way, format):
    made = tmp_path / "made"
    code, out, err = run("import", tracks, made, *WAYS[way], "--discount", "0.9", "--format", format)
    assert (code, err) == (0, "")
    assert "id:" in out
    assert "column 'animal' (recognised)" in out
    assert check_problem(made) == []
    assert run("check", made)[0] == 0
    words = ["--expert", "species = fox", "--unlabelled", "species = hare", "--out", tmp_path / "out"]
    code, _, err = run("fit", made, *words, "--no-baselines", "--no-report", "--ridge", "0.01", "--method", "maxent")
    assert code == 0, err


def test_trips_with_goals_are_fitted_at_discount_one(run, tracks, tmp_path):
    made = tmp_path / "made"
    words = ["--grid", "1", "--mean", "x", "--goals", "--discount", "1"]
    assert run("import", tracks, made, *words)[0] == 0
    assert check_problem(made) == []
    assert read_problem(made).trajectories.goals is not None


def test_a_dry_run_says_the_same_and_writes_nothing(run, tracks, tmp_path):
    made = tmp_path / "made"
    _, said, _ = run("import", tracks, made, *SQUARES, "--dry-run")
    assert "nothing was written (--dry-run)" in said
    assert not made.exists()
    _, told, _ = run("import", tracks, made, *SQUARES)
    assert told.splitlines()[:-1] == said.splitlines()[:-1]


@pytest.mark.drawn
def test_the_summary_and_the_picture_lie_beside_the_tables(run, tracks, tmp_path):
    made = tmp_path / "made"
    code, out, _ = run("import", tracks, made, *SQUARES, "--json")
    summary = read_json(out)
    assert code == 0
    assert summary == read_json((made / "import.json").read_text(encoding="utf-8"))
    assert summary["rows"] == {"read": 300, "used": 300, "dropped": {}, "kept": 300}
    assert summary["trips"]["kept"] == 12
    assert summary["settings"]["grid"] == 1.0
    assert (made / "import.png").read_bytes().startswith(PNG)


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("way", ["k-means", "hexagons"])
def test_the_picture_is_the_same_for_the_same_recordings(run, tracks, tmp_path, way):
    for name in ("one", "two"):
        run("import", tracks, tmp_path / name, *WAYS[way], "--discount", "0.9")
    assert (tmp_path / "one" / "import.png").read_bytes() == (tmp_path / "two" / "import.png").read_bytes()


def test_what_is_there_is_replaced_only_when_forced(run, tracks, tmp_path):
    made = tmp_path / "made"
    run("import", tracks, made, *SQUARES)
    before = content(made)
    code, _, err = run("import", tracks, made, *SQUARES, "--grid", "2")
    assert code == 2
    assert "--force" in err
    assert content(made) == before
    (made / "notes.txt").write_text("mine")
    assert run("import", tracks, made, *SQUARES, "--grid", "2", "--force")[0] == 0
    assert (made / "notes.txt").read_text() == "mine"
    assert read_json((made / "import.json").read_text())["settings"]["grid"] == 2.0


@pytest.mark.parametrize("name", ["import.json", "import.png"])
def test_a_file_that_is_of_no_import_is_never_replaced(run, tracks, tmp_path, name):
    made = tmp_path / "made"
    made.mkdir()
    (made / name).write_text('{"command": "mine"}')
    code, _, err = run("import", tracks, made, *SQUARES, "--force")
    assert code == 2
    assert f"{made}: holds {name}, which is of no import by messirl: give another folder, or move that away" in err
    assert content(made) == {name: b'{"command": "mine"}'}


def test_the_source_is_never_written_over(run, tracks):
    before = tracks.read_bytes()
    code, _, err = run("import", tracks, tracks, *SQUARES, "--force")
    assert code == 2
    assert "is both SOURCE and DEST: give another DEST" in err
    assert tracks.read_bytes() == before


# ------------------------------------------------------------ what must be given


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grid", "1", "--coordinates"], "--discount: is not given, and there is no default: give the weight"),
        (["--grid", "1", "--coordinates", "--discount", "1"], "--discount: is 1, but nothing ends a trajectory: give"),
        (["--grid", "1", "--discount", "0.9"], "features: none is given: give --mean COLUMN"),
        (["--coordinates", "--discount", "0.9"], "tracks.csv: positions need a discretisation into places: give"),
        ([*SQUARES, "--hexagons", "1"], "--grid: and --hexagons are both given: choose one of them"),
        ([*SQUARES, "--id", "tier"], "tracks.csv: there is no column 'tier' (--id): the columns are 'animal', 'frame'"),
        ([*SQUARES, "--x", "y", "--y", "y"], "tracks.csv: --x and --y are both column 'y': give each its own column"),
        (["--kmeans", "999", *SQUARES[2:]], "--kmeans: is 999, but there are only "),
        ([*SQUARES, "--mean", "heat"], "tracks.csv: there is no column 'heat' (--mean): correct the name"),
        ([*SQUARES, "--mean", "x"], "features: f_x is requested twice: request it once, or rename the column"),
        ([*SQUARES, "--count", "species"], "--count: 'species' has no value: write COLUMN=VALUE"),
        ([*SQUARES, "--count", "species=wolf"], "--count: no row has 'wolf' in column 'species': correct the value"),
        ([*SQUARES, "--distance", "nowhere.csv"], "--distance: 'nowhere.csv' is neither a table nor a point"),
        (["--kmeans", "5", *SQUARES[2:], "--whole-grid"], "--whole-grid: is given without a grid: give --grid"),
        ([*SQUARES, "--area", "0,0,1"], "--area: is 0,0,1: give x0,y0,x1,y1"),
        ([*SQUARES, "--area", "90,90,99,99"], "tracks.csv: every row lies outside --area"),
        ([*SQUARES, "--grid", "0.00001"], "--grid: 1e-05 makes"),
        ([*SQUARES, "--step", "1e-9"], "--step: 1e-09 makes"),
        ([*SQUARES, "--terminal", "den"], "--terminal: 'den' is not a named place"),
        ([*SQUARES, "--noise", "1", "--moves", "seen"], "--noise: needs positions and transitions between neighbours"),
        ([*SQUARES, "--grid", "100"], "tracks.csv: no trajectory is left (12 of fewer than 2 states)"),
        ([*SQUARES, "--min-states", "99"], "tracks.csv: no trajectory is left (12 of fewer than 99 states)"),
    ],
)
def test_what_would_have_to_be_guessed_is_asked_for_in_one_sentence(run, tracks, tmp_path, words, said):
    code, out, err = run("import", tracks, tmp_path / "made", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"messirl: {said}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "made").exists()


# ------------------------------------------------------------ bad files

ROWS = ["1,0,0.5,0.5", "1,1,1.5,0.5", "2,0,2.5,0.5", "2,1,2.5,1.5"]


def table(*rows, head=HEAD):
    return "\n".join([head, *rows]) + "\n"


REFUSED = {
    "mixed separators": (
        table(*ROWS[:2], "2;0;2.5;0.5", ROWS[3]),
        "tracks.csv, row 4: has 1 cell, but there are 4 columns: it contains semicolons; use the same delimiter",
    ),
    "decimal commas between commas": (
        table("1,0,0,5,0,5", "1,1,1,5,0,5"),
        "tracks.csv, row 2: has 6 cells, but there are 4 columns: a comma cannot be both delimiter and decimal mark",
    ),
    "a row cut short": (table(*ROWS, "3,0,1"), "tracks.csv, row 6: has 3 cells, but there are 4 columns: fill in"),
    "some stamps with a time zone": (
        table("1,2024-05-01T10:00Z,0.5,0.5", "1,2024-05-01T11:00,1.5,0.5", head="animal,time,x,y"),
        "tracks.csv, row 3: time holds '2024-05-01T11:00' without a time zone, but other rows have one: give either",
    ),
    "longitude and latitude swapped": (
        table("1,0,-33.9,151.2", "1,1,-33.8,151.3", head="animal,frame,lon,lat"),
        "tracks.csv: latitudes (y) reach 151.3 and longitudes (x) 33.9: x and y seem to be swapped; exchange --x",
    ),
    "units in cells": (
        table("1,0,0.5 m,0.5", "1,1,1.5 m,0.5"),
        "tracks.csv, row 2: x holds '0.5 m', not a number: write plain numbers, with their unit in the header",
    ),
    "two animals with one id": (
        table(*ROWS, "1,1,5.5,5.5"),
        "tracks.csv, row 6: track '1' is in two places at the same time: give each individual",
    ),
    "trips of one point only": (
        table("1,0,0.5,0.5", "2,0,1.5,0.5", "3,0,1.5,0.5"),
        "tracks.csv: no trajectory is left (3 of fewer than 2 states): check the columns",
    ),
    "no column of time": (
        table("1,0.5,0.5", "1,1.5,0.5", head="animal,x,y"),
        "tracks.csv: no column looks like the time (there are 'animal', 'x', 'y'): name it with --time, or give",
    ),
    "a position without y": (
        table("1,0,0.5", "1,1,1.5", head="animal,frame,x"),
        "tracks.csv: no column looks like the y (there are 'animal', 'frame', 'x'): name it with --y, or give a column",
    ),
    "empty": ("", "tracks.csv: is empty: give a file with recordings"),
    "a header alone": (table(), "tracks.csv: has a header but no rows: give a file with recordings"),
    "decimal commas and points": (
        table("1;0;0,5;0.5", "1;1;1,5;0.5", head=HEAD.replace(",", ";")),
        "tracks.csv, row 2: holds decimal commas ('0,5') and decimal points ('0.5'): give the decimal mark with",
    ),
    "a quote that is never closed": (table('1,0,"0.5,0.5', *ROWS), "tracks.csv"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_bad_file_is_refused_in_one_sentence(run, tmp_path, kind):
    text, said = REFUSED[kind]
    (tmp_path / "tracks.csv").write_text(text, encoding="utf-8")
    code, out, err = run("import", tmp_path / "tracks.csv", tmp_path / "made", *SQUARES)
    assert (code, out) == (2, "")
    assert err.startswith(f"messirl: {said}")
    assert len(err.splitlines()) == 1


def test_text_that_is_not_utf8_is_refused(run, tmp_path):
    (tmp_path / "tracks.csv").write_bytes(table(*ROWS, head="bête,frame,x,y").encode("latin-1"))
    _, _, err = run("import", tmp_path / "tracks.csv", tmp_path / "made", *SQUARES, "--id", "bête")
    assert err.startswith("messirl: tracks.csv, row 1: is not UTF-8 text: save it with the encoding UTF-8")


READ = {
    "units in headers": (table(*ROWS, head="Animal ID,Time (s),X [mm],Y [mm]"), [], "2, of which 2 are kept"),
    "time zones that differ": (
        table("1,2024-05-01T12:00+02:00,0.5,0.5", "1,2024-05-01T11:00Z,1.5,0.5", head="animal,time,x,y"),
        [],
        "stamps with a time zone, as UTC",
    ),
    "x and y exchanged on request": (table(*ROWS), ["--x", "y", "--y", "x"], "although its name suggests y"),
    "repeated rows": (table(*ROWS, *ROWS), [], "8 read, 4 dropped (4 repeated)"),
    "two animals with one id, settled": (table(*ROWS, "1,1,5.5,5.5"), ["--same-time", "first"], "at the same time"),
    "some trips of one point": (table(*ROWS, "3,0,0.5,0.5"), [], "3, of which 2 are kept (dropped: 1 of fewer"),
    "no column of time, but rows in order": (
        table("1,0.5,0.5", "1,1.5,0.5", head="animal,x,y"),
        ["--time", "order"],
        "--time order: rows in their order",
    ),
    "labels that are not Latin": (
        table("Лиса,0,厨房", "Лиса,1,庭", "Заяц,0,庭", "Заяц,1,厨房", head="животное,frame,место"),
        ["--id", "животное", "--place", "место", "--indicator"],
        "f_at_厨房, f_at_庭",
    ),
}


@pytest.mark.parametrize("kind", READ)
def test_a_bad_file_is_read_where_there_is_no_doubt_and_says_how(run, tmp_path, kind):
    text, words, said = READ[kind]
    (tmp_path / "tracks.csv").write_text(text, encoding="utf-8")
    usual = ["--discount", "0.9"] if "--place" in words else SQUARES
    code, out, err = run("import", tmp_path / "tracks.csv", tmp_path / "made", *usual, *words)
    assert code == 0, err
    assert said in out
    assert [fault for fault in check_problem(tmp_path / "made") if "no choice to learn from" not in fault.what] == []


@pytest.mark.slow
def test_a_million_rows_in_any_order_are_imported(run, tmp_path):
    random = generator(21)
    n, length = 2000, 500
    at = np.abs(np.cumsum(random.normal(0, 0.3, size=(n, length, 2)), axis=1) % 80 - 40)
    rows = np.array(
        [f"{i},{t},{x:.3f},{y:.3f}" for i, way in enumerate(at) for t, (x, y) in enumerate(way)], dtype=object
    )
    (tmp_path / "tracks.csv").write_text(table(*rows[random.permutation(rows.size)]))
    code, out, _ = run("import", tmp_path / "tracks.csv", tmp_path / "made", *SQUARES, "--json")
    assert code == 0
    assert read_json(out)["rows"] == {"read": n * length, "used": n * length, "dropped": {}, "kept": n * length}
    assert check_problem(tmp_path / "made") == []


# ------------------------------------------------------------ with truth


@pytest.mark.parametrize("stay", [False, True])
def test_exact_recordings_come_back_as_they_were(stay):
    case = Case(stay, 1, "none", 0.0, True)
    mdp, tracks = imported(recorded(case, shifted(5)), case)
    true, _ = world(stay)
    assert (mdp.transitions.sum(axis=0) == true.transitions.sum(axis=0)).all()
    np.testing.assert_allclose(mdp.features, true.features)
    walked = recorded_states(case, shifted(5))
    assert tracks.states.tolist() == walked.tolist()


def recorded_states(case, seed):
    rows = [line.split(",") for line in recorded(case, seed).splitlines()[1:]]
    return np.array([int(float(x)) * 10 + int(float(y)) for _, _, x, y in rows])


def test_noise_of_a_quarter_of_a_square_is_taken_out_almost_everywhere():
    exact, told, seed = Case(False, 1, "none", 0.0, True), Case(False, 1, "none", 0.25, True), shifted(6)
    walked, found = (imported(recorded(case, seed), case)[1] for case in (exact, told))
    assert found.lengths.tolist() == walked.lengths.tolist()
    assert (found.states != walked.states).mean() < 0.01
    assert (recorded_states(told, seed).clip(0, 99) != walked.states).mean() > 0.05
