"""What goes wrong with a command is one line that says what to do, and an exit code."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from folders import PARK, grid, park, read_json, roads

from messirl.app import cli

PLAIN = ["--no-baselines", "--no-report"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders and models, good and bad: read by all tests and changed by none."""
    here = tmp_path_factory.mktemp("place")
    grid(here / "grid")
    roads(here / "roads")
    park(here / "park")
    park(here / "endless", problem__json='{"discount": 1}')
    head = "trajectory_id,step,state\n"
    park(here / "none", trajectories__csv=head, trajectory_meta__csv="trajectory_id,age\n")
    park(here / "still", trajectories__csv=f"{head}a,0,gate\n", trajectory_meta__csv="trajectory_id,age\na,1\n")
    renamed = {key.replace(".", "__"): text.replace("gate", "door") for key, text in PARK.items()}
    park(here / "other", **renamed)
    for name in ("grid", "roads", "park"):
        out = str(here / f"{name}-fit")
        assert cli.main(["fit", str(here / name), *PLAIN, "--out", out]) == 0
    model = (here / "grid-fit" / "model.npz").read_bytes()
    (here / "cut.npz").write_bytes(model[: len(model) // 2])
    (here / "flipped.npz").write_bytes(model[:100] + bytes(byte ^ 255 for byte in model[100:300]) + model[300:])
    (here / "empty.npz").write_bytes(b"")
    (here / "notes.txt").write_text("mine")
    return here


def wrong(capsys, place, words, code=2):
    """Run a command that must fail; what it says, on one line."""
    named = [str(place / word[1:]) if word.startswith("@") else word for word in words]
    try:
        left = cli.main(named)
    except SystemExit as stop:
        left = stop.code
    written = capsys.readouterr()
    assert left == code, written
    assert written.out == ""
    lines = [line for line in written.err.splitlines() if not re.match(r"fit: \d+ of \d+|messirl: note: ", line)]
    assert len(lines) == 1, written.err
    assert lines[0].startswith("messirl")
    assert "Traceback" not in written.err
    return lines[0]


EXPERT = ["--expert", "role = expert"]
WRONG = [
    # words, what is said
    (["fitt"], "unknown command 'fitt'; did you mean 'fit'. see messirl --help"),
    (["walk"], "unknown command 'walk'; the commands are fit, .*evaluate, .*reproduce"),
    (["--verison"], "unrecognized arguments: --verison; did you mean '--version'"),
    (
        ["fit", "@grid", "--lamda0", "3"],
        "unrecognized arguments: --lamda0 3; did you mean '--lambda0'. see messirl fit",
    ),
    (["fit", "@grid", "--lamda0=3"], "did you mean '--lambda0'"),
    (["fit"], "FOLDER"),
    (["fit", "@nowhere"], "nowhere: does not exist: give a folder"),
    (["fit", "@notes.txt"], "notes.txt: is a file, not a folder"),
    (["fit", "@grid-fit"], "holds neither states.parquet nor states.csv"),
    (["fit", "@grid", "--nonsense"], "--nonsense"),
    (["fit", "@grid", "@roads"], "unrecognized arguments: .*roads"),
    (["fit", "@none"], "none has no trajectories"),
    (["fit", "@still"], "no expert trajectory makes a step"),
    (["fit", "@endless"], "discount=1 with no horizon, no terminal state and no goal: no trajectory ends"),
    (
        ["fit", "@grid", "--expert", "role = nobody"],
        r"--expert 'role = nobody' matches no trajectory: 'role' holds unlabelled \(20\), expert \(12\), test \(8\)",
    ),
    (["fit", "@grid", "--expert", "role"], "filter 'role'"),
    (["fit", "@grid", "--expert", "role = 'x"], "close every quote"),
    (["fit", "@grid", "--expert", "colour = red"], "no column 'colour': the columns are role, trajectory_id, x"),
    (["fit", "@grid", "--expert", "x = red"], "'x' cannot be compared with 'red': give a number"),
    (["fit", "@grid", "--expert", "role > expert"], "no order: compare it with = or !="),
    (["fit", "@grid", *EXPERT, "--test", "role != unlabelled"], "12 trajectories are in both --test and --expert"),
    (["fit", "@grid", *EXPERT, "--unlabelled", "role != expert", "--test", "role = test"], "8 .* and --unlabelled"),
    (["fit", "@park", "--expert", "age > 9", "--test", "age >= 40"], "1 trajectory is in both --test and --expert"),
    (["fit", "@grid", "--unlabelled", "role = expert", "--test", "role != expert"], "select every trajectory"),
    (["fit", "@grid", *EXPERT, "--unlabelled", "role = expert"], "all trajectories of --unlabelled are the expert's"),
    (["fit", "@grid", "--n-unlabelled", "3"], "--n-unlabelled has no effect without --unlabelled"),
    (["fit", "@grid", *EXPERT, "--n-expert", "13"], "--n-expert 13, but there are only 12"),
    (["fit", "@grid", "--n-expert", "0"], "--n-expert: '0' is not a whole number >= 1"),
    (["fit", "@grid", "--n-expert", "2.5"], "--n-expert: '2.5'"),
    (["fit", "@grid", "--seed", "-1"], "--seed: '-1' is not a whole number"),
    (["fit", "@grid", "--method", "messi"], "--method messi needs unlabelled trajectories: .*--unlabelled"),
    (["fit", "@grid", "--method", "em"], "--method em needs unlabelled trajectories: .*--unlabelled"),
    (["fit", "@grid", "--reference", "unlabelled"], "--reference unlabelled needs unlabelled .*--unlabelled"),
    (["select", "@grid", "--reference", "unlabelled"], "--reference unlabelled needs unlabelled .*--unlabelled"),
    (["fit", "@grid", *EXPERT, "--groups", "role", *PLAIN], "--groups role has the same value for every expert"),
    (["fit", "@grid", "--table", "@grid/report.html", "--out", "@grid"], "is the path of the report: give another"),
    (["example", "musem"], "NAME: invalid choice: 'musem' .*; did you mean 'museum'. see messirl example"),
    (["fit", "@grid", "--reference", "expert"], "--reference: invalid choice: 'expert' \\(choose from '?unlabelled"),
    (["fit", "@grid", "--reference-strength", "0"], "--reference-strength: '0' is not a number > 0"),
    (["fit", "@grid", "--objective", "steps"], "--objective: invalid choice: 'steps' .*choices.*counts"),
    (["fit", "@grid", "--unlabelled-weight", "0.1"], "--unlabelled-weight needs unlabelled trajectories"),
    (["fit", "@grid", "--unlabelled-weight", "-1"], "--unlabelled-weight: '-1' is not a number >= 0"),
    (["fit", "@grid", "--method", "magic"], "choose from 'messi', 'maxent', 'em'"),
    (["fit", "@grid", "--unlabelled", "role = unlabelled", "--theta-max", "none"], "none needs --method maxent"),
    (["fit", "@grid", "--theta-max", "0"], "'0' is not none or a number > 0"),
    (["fit", "@grid", "--sigma", "wide"], "'wide' is not median or a number > 0"),
    (["fit", "@grid", "--lambda0", "-1"], "--lambda0: '-1' is not a number >= 0"),
    (["fit", "@grid", "--tol", "nan"], "--tol: 'nan'"),
    (["fit", "@grid", "--features", "f_left"], "no feature 'f_left'; there are f_right, f_up, f_mud"),
    (["fit", "@grid", "--features", "f_rihgt"], "no feature 'f_rihgt'; .*; did you mean 'f_right'?"),
    (["fit", "@grid", "--expert", "Role = expert"], "there is no column 'Role': .*; did you mean 'role'?"),
    (
        ["select", "@grid", "--unlabelled", "role = unlabelled", "--groups", "rol"],
        "--groups rol: .* mean 'role'?",
    ),
    (["fit", "@grid", "--features", ","], "--features names no feature"),
    (["fit", "@grid", "--features", "f_up,f_up"], "--features names 'f_up' twice: name it once"),
    (["fit", "@grid", "--entropy", "noncausal"], "needs a horizon"),
    (["fit", "@grid", "--out", "@notes.txt"], "notes.txt is a file, but a folder is needed"),
    (["fit", "@grid", "--out", "@notes.txt/below"], "notes.txt is a file, but a folder is needed"),
    (["diagnose", "@grid", "--influential", "-1"], "--influential: '-1' is not a whole number >= 0"),
    (["evaluate", "@grid-fit"], "FOLDER"),
    (["evaluate", "@nowhere.npz", "@grid"], "nowhere.npz does not exist: give the model.npz"),
    (["evaluate", "@grid", "@grid"], "grid/model.npz does not exist: give the model.npz"),
    (["evaluate", "@notes.txt", "@grid"], "notes.txt is not a model or is damaged: give the model.npz"),
    (["evaluate", "@empty.npz", "@grid"], "empty.npz is not a model or is damaged"),
    (["evaluate", "@cut.npz", "@grid"], "cut.npz is not a messirl model, or is damaged"),
    (["evaluate", "@flipped.npz", "@grid"], "flipped.npz is .*damaged"),
    (["evaluate", "@grid-fit", "@nowhere"], "nowhere: does not exist"),
    (["evaluate", "@grid-fit", "@roads"], "the model has 16 states and 4 actions, the folder 25 and 4"),
    (["evaluate", "@park-fit", "@other"], "the folder names its states differently"),
    (["evaluate", "@grid-fit", "@grid", "--test", "role = nobody"], "--test 'role = nobody' matches no trajectory"),
    (["evaluate", "@park-fit", "@none"], "no step: there is nothing to score"),
    (["sample", "@cut.npz", "--length", "3"], "cut.npz is not a messirl model, or is damaged"),
    (["sample", "@grid-fit"], "nothing ends these trajectories: give --length"),
    (["sample", "@grid-fit", "-n", "0"], "-n: '0'"),
    (["sample", "@grid-fit", "--length", "3", "--out", "@drawn.txt"], "neither .csv nor .parquet"),
    (["sample", "@grid-fit", "--length", "3", "--out", "@notes.txt/drawn.csv"], "notes.txt is a file, but a folder"),
    (["sample", "@grid-fit", "--length", "3", "--goal", "2"], "--goal has no effect on a model .* without goals"),
    (["sample", "@roads-fit"], r"trajectories with goals \(crossing 0-4, .*\): give --goal"),
    (["sample", "@roads-fit", "--goal", "moon"], "--goal 'moon' is not a state"),
    (["sample", "@roads-fit", "--goal", "25"], "--goal '25' is not a state: .* from 0 to 24"),
    (["show", "@nowhere"], "nowhere does not exist: give a problem folder, or a model.npz"),
    (["show", "@notes.txt"], "notes.txt is not a model"),
    (["show", "@grid-fit", "--picture", "@a.png"], "--picture needs a problem folder"),
    (["show", "@roads", "--picture", "@a.png"], "coordinates.*columns x and y"),
    (["show", "@grid", "--picture", "@a.gif"], "a.gif: unknown image format.*.png or .svg"),
    (["convert", "@grid"], "DEST"),
    (["convert", "@nowhere", "@there"], "nowhere: does not exist"),
    (["convert", "@grid", "@grid"], "grid is both SOURCE and DEST: give another DEST"),
    (["convert", "@grid", "@grid/"], "is both SOURCE and DEST: give another DEST"),
    (["convert", "@grid", "@park/../grid", "--force"], "is both SOURCE and DEST: give another DEST"),
    (["convert", "@grid", "@roads"], "roads: already contains edges.parquet: give another folder, or --force"),
    (
        ["sample", "@grid-fit", "--length", "3", "--out", "@park/trajectories.csv"],
        "already exists: give another name",
    ),
    (["convert", "@grid", "@grid-fit"], "contains fit.json, which is not part of a problem"),
    (["convert", "@grid", "@notes.txt"], "notes.txt: is a file"),
    (["convert", "@grid", "@there", "--format", "xml"], "'xml' .choose from 'parquet', 'csv'"),
    (["convert", "gym:", "@there"], "as in gym:FrozenLake-v1"),
    (["convert", "gym:FrozenLake-v1", "@there"], "no discount factor: give --discount"),
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_is_wrong_is_one_line_that_says_what_to_do(capsys, place, words, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where out/… would be made
    before = sorted(str(path) for path in place.rglob("*"))
    line = wrong(capsys, place, words)
    assert re.search(said, line), line
    assert sorted(str(path) for path in place.rglob("*")) == before
    assert (place / "notes.txt").read_text() == "mine"
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gym:Nothing-v1", "@there", "--discount", "0.9"], "Nothing-v1: gymnasium cannot create it"),
        (["gym:CartPole-v1", "@there", "--discount", "0.9"], "CartPole-v1: it has no table P"),
        (["gym:FrozenLake-v1", "@there", "--discount", "2"], r"discount is 2.0, but must lie in \(0, 1\]"),
        (["gym:FrozenLake-v1", "@there", "--discount", "0"], "--discount: '0'"),
    ],
)
def test_an_environment_that_cannot_be_converted_is_refused_with_the_reason(capsys, place, words, said):
    pytest.importorskip("gymnasium")
    assert re.search(said, wrong(capsys, place, ["convert", *words]))
    assert not (place / "there").exists()


def test_a_package_that_is_missing_is_named_with_how_to_get_it(capsys, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    said = wrong(capsys, place, ["convert", "gym:FrozenLake-v1", "@there", "--discount", "0.9"])
    assert "needs gymnasium: pip install 'messirl[gym]'" in said


def test_the_row_of_a_table_that_is_wrong_is_named(capsys, tmp_path):
    edges = "from,to,action\ngate,pond,east\npond,moon,west\n"
    park(tmp_path / "park", edges__csv=edges)
    assert "edges.csv, row 3: to 'moon' is not a known state" in wrong(capsys, tmp_path, ["fit", "@park"])


# ------------------------------------------------------------ faults of ours


def broken(*_arguments, **_more):
    raise RuntimeError("the\nwheel\x1b[31m came off")


def test_a_fault_of_ours_is_one_line_and_exit_code_1(capsys, place, monkeypatch):
    monkeypatch.setattr("messirl.io.folder.reader.read_problem", broken)
    said = wrong(capsys, place, ["show", "@grid"], code=1)
    assert said == (
        "messirl: internal error, RuntimeError: the wheel?[31m came off; run again with --debug and report it"
    )


def test_an_import_that_fails_inside_is_a_fault_of_ours(capsys, place, monkeypatch):
    monkeypatch.setitem(sys.modules, "messirl.io.folder.reader", None)
    assert "internal error, ModuleNotFoundError" in wrong(capsys, place, ["show", "@grid"], code=1)


def test_too_little_memory_is_said_with_a_way_out(capsys, place, monkeypatch):
    def full(*_arguments):
        raise MemoryError

    monkeypatch.setattr("messirl.io.folder.reader.read_problem", full)
    assert "not enough memory" in wrong(capsys, place, ["show", "@grid"])


@pytest.mark.parametrize(("words", "code"), [(["show", "@grid"], 1), (["show", "@nowhere"], 2)])
def test_debug_shows_the_traceback(capsys, place, monkeypatch, words, code):
    monkeypatch.setattr("messirl.io.folder.reader.read_problem", broken)
    named = [str(place / word[1:]) if word.startswith("@") else word for word in words]
    assert cli.main([*named, "--debug"]) == code
    written = capsys.readouterr()
    assert written.err.startswith("Traceback")
    assert written.err.splitlines()[-1].startswith("messirl: ")
    assert written.out == ""


def test_an_interrupted_command_says_so(capsys, place, monkeypatch):
    def stop(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("messirl.io.folder.reader.read_problem", stop)
    assert "interrupted" in wrong(capsys, place, ["show", "@grid"], code=130)


def test_a_warning_becomes_a_note_of_one_line(place):
    code = (
        "import sys, warnings\nfrom messirl.app import cli\nimport messirl.io.folder.reader as folder\n"
        "read = folder.read_problem\n"
        "folder.read_problem = lambda path: warnings.warn('look\\nout') or read(path)\n"
        f"sys.exit(cli.main(['show', {str(place / 'park')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "messirl: note: look out\n"


# ------------------------------------------------------------ names that mean harm

EVIL = "<script>alert(1)</script>"


def test_names_are_text_in_a_report_and_nothing_else(capsys, tmp_path):
    states = f'state,"f_{EVIL}",x,y\n"{EVIL}",0,0,0\npond,1,1,0\n'
    edges = f'from,to,action\n"{EVIL}",pond,"{EVIL}"\npond,"{EVIL}",west\npond,pond,"{EVIL}"\n'
    steps = f'trajectory_id,step,state\n0,0,"{EVIL}"\n0,1,pond\n0,2,"{EVIL}"\n1,0,pond\n1,1,"{EVIL}"\n'
    folder = tmp_path / "<script>alert(1)"
    files = {"states__csv": states, "edges__csv": edges, "trajectories__csv": steps}
    park(folder, **files, trajectory_meta__csv=f'trajectory_id,role\n0,"{EVIL}"\n1,b\n')
    words = ["fit", str(folder), "--expert", f'role = "{EVIL}"', "--unlabelled", "role = b", "--json"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    found = read_json(capsys.readouterr().out)
    assert f"f_{EVIL}" in found["theta"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page


def test_signs_that_a_terminal_would_obey_are_not_shown(capsys, tmp_path):
    folder = park(tmp_path / "park", trajectory_meta__csv='trajectory_id,"a\x1b[2Jb"\nanna,"\x1b[31m"\nbob,x\ncleo,y\n')
    assert cli.main(["show", str(folder)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert cli.main(["fit", str(folder), "--expert", "\x1b[2J = 3"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_folder_without_a_choice_of_moves_is_refused(capsys, tmp_path):
    edges = "from,to,action\ngate,pond,on\npond,wood,on\nwood,café,on\ncafé,gate,on\n"
    steps = "trajectory_id,step,state\nanna,0,gate\nanna,1,pond\nbob,0,pond\nbob,1,wood\ncleo,0,wood\ncleo,1,café\n"
    folder = park(tmp_path / "park", edges__csv=edges, trajectories__csv=steps)
    assert cli.main(["fit", str(folder)]) == 2
    assert "allows more than one action: there is nothing to learn" in capsys.readouterr().err


def test_everything_wrong_with_the_meta_table_is_said_at_once(capsys, tmp_path):
    folder = park(tmp_path / "park", trajectory_meta__csv="trajectory_id,age\nanna,1\nanna,2\nzoe,3\n")
    assert cli.main(["check", str(folder)]) == 2
    said = capsys.readouterr().out
    for fault in ("occurs twice", "zoe", "has no row"):
        assert fault in said
