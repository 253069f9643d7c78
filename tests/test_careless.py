"""What a careless user does: options that act on nothing, places that are no files, odd tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from folders import PARK, park

from messirl import MDP, MESSI, MESSICV, MaxEntIRL, Trajectories, estimation_table, load, weight_ratio
from messirl._files import atomic_path
from messirl.app import cli
from messirl.app.workflow.importing import import_recordings
from messirl.estimators import SSIRL, BehaviourCloning
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.inference import FewClustersWarning
from messirl.io import Hexagons, InputError, KMeans, Recording, read_problem, read_trajectories
from messirl.io.recordings.files import recordings_from_numpy
from messirl.io.recordings.recording import trajectories_from_recordings
from messirl.io.tables.table import load_table
from messirl.paper.experiments.result_store import Store, StoreError
from messirl.selection import bootstrap
from messirl.similarity import RBF, DynamicTimeWarping, EditDistance, FisherKernel, VisitedStates

COUNTS = ["--objective", "counts"]
PLAIN = ["--no-baselines", "--no-report"]
SQUARES = ["--grid", "1", "--coordinates", "--discount", "0.9"]


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


def test_what_stood_beside_an_earlier_result_is_not_written_over(run, tmp_path):
    folder, out = park(tmp_path / "park"), tmp_path / "out"
    out.mkdir()
    for name in ("report.html", "diagnosis.csv"):
        (out / name).write_text("mine")
    others = ["--unlabelled", "trajectory_id = bob", "--out", out, "--force"]
    assert run("fit", folder, *others, *PLAIN)[0] == 0
    code, _, said = run("fit", folder, *others, "--no-baselines")
    assert code == 2
    assert "contains report.html, which messirl did not write" in said
    code, _, said = run("diagnose", folder, *others, "--no-report")
    assert code == 2
    assert "contains diagnosis.csv, which messirl did not write" in said
    assert [(out / name).read_text() for name in ("report.html", "diagnosis.csv")] == ["mine", "mine"]


def test_a_device_is_never_replaced_by_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"), atomic_path(pipe) as part:
        part.write_text("new")
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_model_is_not_saved_in_place_of_a_folder(tmp_path):
    mdp = MDP(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2), np.eye(2), discount=1, horizon=3)
    with ignore_convergence_warnings():
        model = MaxEntIRL(ridge=1.0).fit(mdp, Trajectories.from_lists([[0, 0, 1], [0, 1, 1]]))
    with pytest.raises(IsADirectoryError, match="cannot write a file: a folder has this name"):
        model.save(tmp_path)


def test_a_folder_that_is_not_there_is_named_rather_than_a_part_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist: '.*nowhere'$"):
        MaxEntIRL(ridge=1.0).fit(*small()).save(tmp_path / "nowhere" / "model.npz")


def test_a_reproduction_leaves_nothing_in_a_folder_that_it_refuses(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="contains files but no manifest"):
        Store(tmp_path, None).open()
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("command", ["fit", "select", "diagnose"])
def test_pictures_of_somebody_else_are_not_written_over(run, tmp_path, command):
    (tmp_path / "out" / "figures").mkdir(parents=True)
    picture = tmp_path / "out" / "figures" / "weights.png"
    picture.write_text("mine")
    words = [park(tmp_path / "park"), "--unlabelled", "trajectory_id = bob", "--out", tmp_path / "out"]
    code, _, said = run(command, *words)
    assert code == 2
    assert "contains figures/weights.png, which messirl did not write: give another folder with --out" in said
    assert picture.read_text() == "mine"
    assert os.listdir(tmp_path / "out") == ["figures"]


def test_a_file_where_figures_are_to_be_written_is_found_before_the_work(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").write_text("mine")
    code, _, said = run("fit", park(tmp_path / "park"), "--out", tmp_path / "out")
    assert code == 2
    assert "figures is not a folder, but figures are written there" in said
    assert os.listdir(tmp_path / "out") == ["figures"]


# ------------------------------------------------------------ options that would act on nothing


@pytest.mark.parametrize(
    "words", [["--discount", "0.5"], ["--n-expert", "3"], ["--n-unlabelled", "3"], ["--seed", "1"]]
)
def test_convert_refuses_an_option_that_is_not_of_its_source(run, tmp_path, words):
    code, _, said = run("convert", park(tmp_path / "park"), tmp_path / "other", *words)
    assert code == 2
    assert f"{words[0]} has no effect on" in said
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_convert_makes_no_folder_that_is_named_like_a_table(run, tmp_path, name):
    code, _, said = run("convert", park(tmp_path / "park"), tmp_path / name)
    assert code == 2
    assert "is named like a table, but a problem has several tables: give a folder" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--method", "messi", "--ridge", "1"],
            "--ridge has no effect with --method messi, only with maxent",
        ),
        (["--method", "em", "--ridge", "1"], "--ridge has no effect with --method em, only with maxent"),
        (["--method", "messi", "--eta", "7"], "--eta has no effect with --method messi, only with em"),
        (["--method", "messi", "--step-size", "2"], "--step-size has no effect with --solver lbfgs, only with paper"),
        (["--similarity", "complete", "--sigma", "3"], "--sigma has no effect with --similarity complete"),
        (["--scale", "3"], "--scale has no effect with --similarity rbf, only with exponential"),
        (["--similarity", "complete", "--no-standardise"], "--no-standardise has no effect"),
        (["--method", "maxent", "--ridge", "0", "--standardise"], "--standardise has no effect without a ridge"),
        (["--reference-strength", "2"], "--reference-strength has no effect without --reference unlabelled"),
        (["--method", "em", "--unlabelled-weight", "0.1"], "--unlabelled-weight has no effect with --method em"),
        (["--method", "em", "--objective", "choices"], "--objective choices cannot be combined with --solver paper"),
        ([*COUNTS, "--solver", "paper", "--reference", "unlabelled"], "--reference cannot be combined with --solver"),
        ([*COUNTS, "--entropy", "noncausal", "--reference", "unlabelled"], "--reference cannot be combined with --ent"),
    ],
)
def test_an_option_of_another_method_is_refused(run, tmp_path, words, message):
    folder = park(tmp_path / "park")
    code, _, said = run("fit", folder, "--unlabelled", "trajectory_id = bob", *PLAIN, *words, "--out", tmp_path / "out")
    assert code == 2
    assert message in said
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------ a model and a folder that do not belong together


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("problem.json", PARK["problem.json"], '{"discount": 0.123}', "discount 0.123, not"),
        ("states.csv", "f_green", "f_blue", "no feature 'f_green'"),
    ],
)
def test_evaluate_says_in_what_the_folder_is_another_problem(run, tmp_path, name, old, new, message):
    assert run("fit", park(tmp_path / "park"), *PLAIN, "--out", tmp_path / "out")[0] == 0
    assert "another problem" not in run("evaluate", tmp_path / "out", tmp_path / "park", "--out", tmp_path / "e")[2]
    other = park(tmp_path / "other", **{name.replace(".", "__"): PARK[name].replace(old, new)})
    code, _, said = run("evaluate", tmp_path / "out", other, "--out", tmp_path / "f")
    assert code == 0
    assert "the folder differs from the problem that the model was fitted to" in said
    assert message in said


def test_evaluate_says_that_a_value_of_a_feature_is_another(run, tmp_path):
    assert run("fit", park(tmp_path / "park"), *PLAIN, "--out", tmp_path / "out")[0] == 0
    text = PARK["states.csv"]
    other = park(tmp_path / "other", states__csv=text.replace("pond,1", "pond,0.5"))
    assert other.joinpath("states.csv").read_text(encoding="utf-8") != text
    assert "other values of 'f_green'" in run("evaluate", tmp_path / "out", other, "--out", tmp_path / "e")[2]


# ------------------------------------------------------------ tables as spreadsheets leave them


def test_empty_columns_that_a_spreadsheet_leaves_at_the_right_do_not_count(tmp_path):
    changes = {name.replace(".", "__"): text.replace("\n", ",,\r\n") for name, text in PARK.items() if "csv" in name}
    wide, plain = read_problem(park(tmp_path / "wide", **changes)), read_problem(park(tmp_path / "plain"))
    assert wide.state_columns.keys() == plain.state_columns.keys()
    np.testing.assert_array_equal(wide.mdp.features, plain.mdp.features)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "state,",
            "sep=,\nstate,",
            "states.csv, row 1: begins with sep=, which is not a row of a table: delete this row",
        ),
        ("pond", "po\0nd", "states.csv, row 3: contains a NUL character: save it with the encoding UTF-8"),
        (
            "pond,1,0,1,0",
            "pond,1",
            "states.csv, row 3: has 2 cells, but there are 5 columns: fill in the missing cells",
        ),
    ],
)
def test_what_is_no_table_is_refused_by_its_cause(tmp_path, old, new, message):
    folder = park(tmp_path / "park", states__csv=PARK["states.csv"].replace(old, new))
    with pytest.raises(InputError, match=re.escape(message)):
        read_problem(folder)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("2.5", "trajectories.csv, row 4: column 'step' holds decimal numbers: write whole numbers"),
        (
            "9" * 25,
            "trajectories.csv, row 4: column 'step' holds whole numbers too large for 64 bits: write smaller ones",
        ),
    ],
)
def test_a_number_that_is_no_id_is_named_with_its_own_row(tmp_path, cell, message):
    text = PARK["trajectories.csv"].replace("anna,2,", f"anna,{cell},")
    with pytest.raises(InputError, match=re.escape(message)):
        read_problem(park(tmp_path / "park", trajectories__csv=text))


def test_starts_too_large_to_be_summed_are_told_to_be_smaller(tmp_path):
    rows = PARK["states.csv"].split("\n")
    text = "\n".join(row and f"{row},{'1e308' if i else 'start'}" for i, row in enumerate(rows))
    with pytest.raises(InputError, match="sum to inf: use smaller weights"):
        read_problem(park(tmp_path / "park", states__csv=text))


def test_coordinates_that_no_map_can_hold_are_faults_of_their_rows(run, tmp_path):
    far = PARK["states.csv"].replace("pond,1,0,1,0", "pond,1,0,-1e300,0").replace("wood,1,0,1,1", "wood,1,0,1,2e101")
    code, said, _ = run("check", park(tmp_path / "park", states__csv=far))
    assert code == 2
    assert "states.csv, row 3: x is -1e+300: give coordinates up to 1e+100" in said
    assert "states.csv, row 4: y is 2e+101: give coordinates up to 1e+100" in said


def test_a_folder_that_is_named_like_a_table_is_none_beside_it(tmp_path):
    folder = park(tmp_path / "park")
    (folder / "states.parquet").mkdir()
    assert read_problem(folder).mdp.n_states == PARK["states.csv"].count("\n") - 1


def test_a_file_that_cannot_be_written_is_called_as_it_was_given(tmp_path):
    (tmp_path / "tables").mkdir()
    new = tmp_path / "tables" / "new.csv"

    def written_too_late():
        with atomic_path(new) as part:
            new.parent.rmdir()
            part.write_text("")

    with pytest.raises(FileNotFoundError) as why:
        written_too_late()
    assert why.value.filename == str(new)


# ------------------------------------------------------------ what is said


def test_names_that_differ_in_blanks_only_are_told_apart(run, tmp_path):
    folder = park(tmp_path / "park", trajectory_meta__csv=PARK["trajectory_meta.csv"].replace("anna", "an  na"))
    code, said, _ = run("check", folder)
    assert code == 2
    assert "'an  na' is not a known trajectory" in said


def test_a_name_of_two_lines_is_printed_on_one(run, tmp_path):
    folder = park(tmp_path / "park", states__csv=PARK["states.csv"].replace("f_green", '"f_green\nand \x1b[31mred"'))
    code, said, _ = run("fit", folder, "--unlabelled", "trajectory_id = bob", *PLAIN, "--out", tmp_path / "out")
    assert code == 0
    assert "f_green and ?[31mred" in said


def test_an_empty_path_is_refused(run, tmp_path, monkeypatch):
    folder = park(tmp_path / "park")
    monkeypatch.chdir(tmp_path)
    code, _, said = run("fit", folder, *PLAIN, "--out", "")
    assert code == 2
    assert "--out: the path is empty" in said
    assert os.listdir(tmp_path) == ["park"]


@pytest.mark.slow
def test_a_standard_error_on_a_full_disk_ends_as_other_full_disks_do(tmp_path):
    words = ["fit", str(park(tmp_path / "park")), *PLAIN, "--out", str(tmp_path / "out")]
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "messirl.app.cli", *words], stdout=subprocess.PIPE, stderr=full)
    assert done.returncode == 2


# ------------------------------------------------------------ numbers


def small(offset=0.0, **options):
    """Three states in a ring, to be gone round either way, and trajectories that mostly go one way."""
    moves = np.zeros((3, 2, 3))
    for s in range(3):
        moves[s, 0, (s + 1) % 3] = moves[s, 1, (s + 2) % 3] = 1.0
    features = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]) + np.array([offset, 0.0])
    mdp = MDP(moves, features, discount=1, horizon=4, feature_names=["height", "shade"], **options)
    return mdp, Trajectories.from_lists([[0, 1, 2, 1], [0, 1, 0, 2], [0, 2, 1, 0], [0, 1, 2, 1]])


def test_a_feature_that_hardly_varies_beside_its_size_is_named_with_what_to_do(tmp_path, run):
    mdp, expert = small(offset=1e12)
    with ignore_convergence_warnings():
        said = MaxEntIRL(ridge=0.1).fit(mdp, expert).warnings_[-1]
    assert said.startswith("the values of 'height' vary by only 0.47 around 1e+12")
    assert "subtract a constant" in said
    for fine in (0.0, 1e3):
        assert not any("vary by only" in text for text in MaxEntIRL(ridge=0.1).fit(*small(offset=fine)).warnings_)
    text = PARK["states.csv"]
    for label, green in (("gate", 0), ("pond", 1), ("wood", 1), ("café", 0)):
        text = text.replace(f"{label},{green},", f"{label},{10**9 + green},")
    code, _, notes = run("check", park(tmp_path / "park", states__csv=text))
    assert code == 0
    assert "the values of 'f_green' vary by only 0.5 around 1e+09" in notes
    assert "differ in scale" not in notes


@pytest.mark.filterwarnings("ignore::messirl.inference.FewClustersWarning")
def test_a_table_of_estimates_is_refused_for_trajectories_that_were_not_fitted_to(tmp_path):
    mdp, expert = small(start=[1.0, 0.0, 0.0])
    model = MaxEntIRL().fit(mdp, expert)
    assert estimation_table(model, expert).n_trajectories == 4
    others = Trajectories.from_lists([[0, 2, 1, 0], [0, 2, 0, 2], [0, 1, 0, 1]])
    with pytest.raises(ValueError, match="other trajectories than the model was fitted to"):
        estimation_table(model, others)


# ------------------------------------------------------------ arguments in Python


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BehaviourCloning(by_step="no"), "by_step='no': it must be True or False"),
        (SSIRL(offset="no"), "offset='no': it must be True or False"),
        (MESSI(EditDistance), "similarity is the class EditDistance: give an instance"),
        (MESSI(FisherKernel(MaxEntIRL)), "FisherKernel needs a fitted model"),
    ],
)
def test_what_is_no_truth_value_and_what_is_only_a_class_is_refused(model, message):
    mdp, some = small()
    with pytest.raises(TypeError, match=re.escape(message)), ignore_convergence_warnings():
        model.fit(mdp, some, some)


@pytest.mark.parametrize("similarity", [EditDistance(), DynamicTimeWarping(np.eye(2)), VisitedStates()])
def test_similarities_of_no_trajectories_are_refused(similarity):
    with pytest.raises(ValueError, match="needs at least one trajectory"):
        similarity(Trajectories.from_lists([]), np.zeros((0, 2)))


def test_coordinates_of_no_dimension_are_refused():
    with pytest.raises(ValueError, match="one row per state and k >= 1"):
        DynamicTimeWarping(np.zeros((2, 0)))(Trajectories.from_lists([[0, 1]]), np.zeros((1, 2)))


# ------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("fit", "--expert", "age > 9"),
        ("fit", "--unlabelled", "age = 9"),
        ("fit", "--features", "f_green"),
        ("select", "--lambdas", "0.1"),
        ("compare", "--methods", "MESSI"),
        ("diagnose", "--by", "age"),
    ],
)
def test_an_option_that_would_be_overwritten_by_itself_is_refused(run, tmp_path, command, option, value):
    code, _, said = run(command, park(tmp_path / "park"), option, value, option, value, "--out", tmp_path / "out")
    assert code == 2
    assert f"{option}: is given twice: give it once" in said


@pytest.mark.parametrize("value", ["1_0", "\N{FULLWIDTH DIGIT FIVE}", "\N{MINUS SIGN}1", "1'000"])
@pytest.mark.parametrize("option", ["--lambda0", "--n-expert"])
def test_a_number_is_written_with_plain_signs(run, tmp_path, option, value):
    code, _, said = run("fit", park(tmp_path / "park"), option, value)
    assert code == 2
    assert f"{option}: {value!r} is not a" in said


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("-expert", "; did you mean '--expert'?"),
        ("\N{EM DASH}expert", "; did you mean '--expert'?"),
        ("\N{EN DASH}expert=x", "; did you mean '--expert'?"),
    ],
)
def test_an_option_with_a_dash_of_another_kind_is_recognised_in_the_error(run, tmp_path, word, said):
    code, _, written = run("fit", tmp_path, word, "age > 9")
    assert code == 2
    assert said in written


def test_a_known_option_in_a_place_for_none_is_not_suggested_again(run):
    code, _, said = run("fit", "--", "park", "--no-report")
    assert code == 2
    assert "unrecognized arguments: --no-report; see messirl fit" in said


def test_what_would_leave_a_part_of_the_order_undone_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, said = run("compare", park(tmp_path / "park"), "--methods", " , ")
    assert code == 2
    assert "--methods names no method: give at least one, or leave it out" in said
    code, _, said = run("reproduce", "--quick", "--sensitivity", "--learners")
    assert code == 2
    assert "--sensitivity and --learners cannot be combined: give one of them" in said
    assert [path.name for path in tmp_path.iterdir()] == ["park"]


def test_a_table_of_estimates_never_takes_the_place_of_a_table_of_the_problem(run, tmp_path):
    folder = park(tmp_path / "park")
    before = (folder / "states.csv").read_bytes()
    for name, more in (("states.csv", ["--force"]), ("edges.html", [])):
        code, _, said = run("fit", folder, *PLAIN, "--table", folder / name, *more, "--out", tmp_path / "out")
        assert code == 2
        assert "would be read as a table of the problem in this folder: give another name" in said
    assert (folder / "states.csv").read_bytes() == before
    assert not (tmp_path / "out").exists()


def test_a_prior_too_narrow_to_compute_with_is_named(run, tmp_path):
    folder = park(tmp_path / "park")
    code, _, said = run("fit", folder, *PLAIN, "--theta-prior", "1e-200", "--out", tmp_path / "out")
    assert code == 2
    assert "--theta-prior 1e-200 is too small to compute with: give a larger one" in said


def test_one_resample_makes_no_interval_and_few_are_remarked_on(run, tmp_path):
    folder = park(tmp_path / "park")
    code, _, said = run("select", folder, "--bootstrap", "1")
    assert code == 2
    assert "--bootstrap: '1' is not a whole number >= 2" in said
    some = ["--lambdas", "0.1", "--cv", "2", "--no-report", "--out", tmp_path / "out"]
    code, _, said = run("select", folder, "--bootstrap", "2", *some)
    assert code == 0
    assert "note: intervals from 2 resamples are rough and often too short: use more than 40" in said


def test_too_few_experts_to_hold_out_twice_are_found_before_the_work(run, tmp_path):
    folder = park(tmp_path / "park")
    code, _, said = run("select", folder, "--expert", "age > 9", "--nested", "--out", tmp_path / "out")
    assert code == 2
    assert "--nested needs at least three expert trajectories (or groups)" in said
    assert "select: " not in said  # no progress: no work was done
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["0", "abc", ""])
def test_a_number_of_threads_that_is_none_is_named_by_where_it_was_given(tmp_path, value):
    words = ["fit", str(park(tmp_path / "park")), *PLAIN, "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "messirl.app.cli", *words],
        env={**os.environ, "NUMBA_NUM_THREADS": value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"messirl: NUMBA_NUM_THREADS={value!r}: must be a whole number" in done.stderr
    assert len(done.stderr.splitlines()) == 1


# ------------------------------------------------------------ tables


@pytest.mark.parametrize(
    "cell", ["\N{MINUS SIGN}1", "1'000", "1\N{NO-BREAK SPACE}000", "1_000", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_what_only_looks_like_a_number_is_refused_by_its_signs(tmp_path, cell):
    folder = park(tmp_path / "park", states__csv=PARK["states.csv"].replace("pond,1", f"pond,{cell}"))
    with pytest.raises(InputError, match=r"row 3: f_green holds .*, not a number: use only the characters 0 to 9"):
        read_problem(folder)


@pytest.mark.parametrize("label", ["cafe\N{COMBINING ACUTE ACCENT}", "caf\N{ZERO WIDTH SPACE}é", "Café"])
def test_a_label_that_looks_like_another_is_told_from_it(tmp_path, label):
    folder = park(tmp_path / "park", states__csv=PARK["states.csv"].replace("café", label))
    with pytest.raises(InputError, match=r"edges.csv, row 8: from 'café' .*: write it exactly like '[cC]af"):
        read_problem(folder)


@pytest.mark.parametrize(
    ("name", "said"),
    [("F_food", "begin with 'f_'"), ("f food", "begin with 'f_'"), ("f-food", "begin with 'f_'"), ("food", None)],
)
def test_a_column_that_is_almost_a_feature_is_noted(tmp_path, name, said):
    states = PARK["states.csv"].replace("f_food", name)
    notes = read_problem(park(tmp_path / "park", states__csv=states)).notes
    wanted = [f"states.csv: column {name!r} is kept but is not a feature: names of features {said}"]
    assert list(notes) == (wanted if said else [])


def test_a_column_of_moves_that_is_almost_a_feature_is_noted(tmp_path):
    edges = "\n".join(f"{row},{'G_toll' if i == 0 else 1}" for i, row in enumerate(PARK["edges.csv"].splitlines()))
    (note,) = read_problem(park(tmp_path / "park", edges__csv=edges)).notes
    assert note == "edges.csv: column 'G_toll' is kept but is not a feature: names of features begin with 'g_'"


def test_states_without_a_row_are_the_only_fault(run, tmp_path):
    folder = park(tmp_path / "park", states__csv="state,f_a\n")
    code, said, _ = run("check", folder)
    assert code == 2
    assert said == f"states.csv: has no rows: give one row per state\n1 fault in {folder}\n"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("00:01", r"row 3: column 'step' holds text: write whole numbers, without a decimal point [^,]*$"),
        ("0.5", r"row 3: column 'step' holds decimal numbers: write whole numbers, without a decimal point [^,]*$"),
        ("1" + "0" * 20, r"row 3: column 'step' holds whole numbers too large for 64 bits: write smaller ones$"),
    ],
)
def test_a_step_that_is_no_number_is_named_with_its_own_row_and_needs_no_label(tmp_path, cell, message):
    steps = PARK["trajectories.csv"].replace("anna,1", f"anna,{cell}")
    with pytest.raises(InputError, match=message):
        read_problem(park(tmp_path / "park", trajectories__csv=steps))


def test_a_pipe_in_the_place_of_a_table_is_not_waited_for(tmp_path):
    folder = park(tmp_path / "park")
    (folder / "states.csv").unlink()
    os.mkfifo(folder / "states.csv")
    with pytest.raises(InputError, match=r"states.csv: is not a regular file: give a CSV"):
        read_problem(folder)


def test_a_feature_whose_name_has_two_lines_takes_one_of_the_table(run, tmp_path):
    states = PARK["states.csv"].replace("f_food", '"f_fine\nfood"')
    code, said, _ = run("fit", park(tmp_path / "park", states__csv=states), *PLAIN, "--out", tmp_path / "out")
    assert code == 0
    assert re.search(r"^f_fine food +[-0-9.]+", said, re.MULTILINE)


def test_a_header_in_the_middle_of_a_table_is_named_with_its_row(run, tmp_path):
    states = PARK["states.csv"] + PARK["states.csv"]
    with pytest.raises(InputError, match=r"states.csv, row 6: repeats the header: delete this row"):
        read_problem(park(tmp_path / "park", states__csv=states))
    track = "id,t,x,y\na,1,1,1\na,2,2,2\n"
    (tmp_path / "track.csv").write_text(track + track)
    code, _, said = run("import", tmp_path / "track.csv", tmp_path / "to", *SQUARES)
    assert code == 2
    assert "track.csv, row 4: repeats the header: delete this row" in said


@pytest.mark.parametrize("stamp", ["2026-02-30 10:00", "2026-01-01 24:00", "9999-12-31 10:00"])
def test_a_time_that_is_none_is_named_with_its_row(run, tmp_path, stamp):
    (tmp_path / "track.csv").write_text(f"id,t,x,y\na,2026-01-01 09:00,1,1\na,{stamp},2,2\n")
    code, _, said = run("import", tmp_path / "track.csv", tmp_path / "to", *SQUARES)
    assert code == 2
    assert f"track.csv, row 3: t holds '{stamp}', not a valid date and time from 1678 to 2261: correct it" in said


@pytest.mark.parametrize("noise", ["1e300", "1e-300"])
def test_noise_that_is_no_error_of_positions_is_refused(run, tmp_path, noise):
    (tmp_path / "track.csv").write_text("id,t,x,y\n" + "".join(f"a,{i},{i},{i % 3}\n" for i in range(9)))
    code, _, said = run("import", tmp_path / "track.csv", tmp_path / "to", *SQUARES, "--noise", noise)
    assert code == 2
    assert f"--noise: is {float(noise):g}, but places are 1 apart: give the error of positions" in said


def test_a_unit_that_cannot_be_computed_with_is_answered_with_one_remedy(tmp_path):
    folder = park(tmp_path / "park", states__csv=PARK["states.csv"].replace("pond,1", "pond,1e200"))
    with pytest.raises(InputError, match=r"outside the supported range: divide it by 1e200$"):
        read_problem(folder)


# ------------------------------------------------------------ arguments


def test_names_without_an_order_are_refused_and_those_of_numpy_are_plain_text():
    moves, features = np.ones((1, 1, 1)), np.ones((1, 1))
    for names in ({"a"}, {"a": 1}.keys()):
        with pytest.raises(TypeError, match="feature_names must be a sequence of strings, in order"):
            MDP(moves, features, discount=0.5, feature_names=names)
    mdp = MDP(moves, features, discount=0.5, feature_names=np.array(["a"]))
    assert mdp.feature_label(0) == "'a'"


def test_rows_of_different_lengths_are_refused_in_words():
    with pytest.raises(ValueError, match="transitions must be an array of numbers with rows of equal length"):
        MDP([[[1.0, 0.0]], [[1.0]]], np.ones((2, 1)), discount=0.5)
    with pytest.raises(ValueError, match="features must be an array of numbers with rows of equal length"):
        MDP(np.ones((1, 1, 1)), [[1.0], [1.0, 2.0]], discount=0.5)


def test_a_discount_next_to_1_needs_a_horizon(run, tmp_path):
    """Values without end are 1 / (1 − γ) times rewards: at 1 − 1e-12 rounding decides between choices."""
    code, said, _ = run("check", park(tmp_path / "park", problem__json='{"discount": 0.999999999999}'))
    assert code == 2
    assert "problem.json: discount is 0.999999999999, so close to 1 that values lose too many digits" in said
    moves, features = np.ones((1, 1, 1)), np.ones((1, 1))
    for some in ({"discount": 0.99999999}, {"discount": 1.0}, {"discount": 1 - 1e-12, "horizon": 3}):
        assert MDP(moves, features, **some).discount == some["discount"]


@pytest.mark.filterwarnings("ignore::messirl.inference.FewClustersWarning")
def test_what_has_no_standard_errors_or_intervals_says_so():
    mdp = MDP(np.eye(2)[[[0, 1], [1, 0]]], np.array([[0.0], [1.0]]), discount=0.5)
    expert = Trajectories.from_lists([[0, 1] * 9, [1, 1, 0] * 6, [0, 0, 1] * 6])
    with pytest.raises(TypeError, match="BehaviourCloning has no standard errors: give a maximum-entropy fit"):
        estimation_table(BehaviourCloning().fit(mdp, expert), expert)
    model = MaxEntIRL(ridge=0.1).fit(mdp, expert)
    with pytest.raises(ValueError, match="groups has labels that are NaN or None: give every trajectory a label"):
        estimation_table(model, expert, [None, "a", "b"])
    with pytest.raises(ValueError, match="there is no feature 0; there are 0"):
        weight_ratio(estimation_table(model, expert), 0, 1)
    with pytest.raises(ValueError, match="n=-1: it must be a whole number >= 0"):
        bootstrap(model, mdp, expert, n=-1)
    found = bootstrap(model, mdp, expert, n=2, random_state=0)
    for level in (95, -1.0):
        with pytest.raises(ValueError, match=f"level={level:g}: .*must be between 0 and 1"):
            found.interval(found.theta, level)
    with pytest.raises(ValueError, match="at least two resamples, not 1: draw more"):
        replace(found, theta=found.theta[:1]).interval(found.theta[:1])
    with pytest.raises(TypeError, match="warm_start='no': it must be True or False"):
        MaxEntIRL(warm_start="no").fit(mdp, expert)


def test_experts_may_be_lists_wherever_they_may_be_in_a_fit():
    mdp = MDP(np.eye(2)[[[0, 1], [1, 0]]], np.array([[0.0], [1.0]]), discount=0.5)
    expert = [[0, 1] * 9, [1, 1, 0] * 6, [0, 0, 1] * 6]
    model = MaxEntIRL().fit(mdp, expert)
    with pytest.warns(FewClustersWarning):
        assert estimation_table(model, expert).n_trajectories == 3
    with pytest.raises(TypeError, match="expert must be Trajectories, not NoneType"):
        estimation_table(model, None)


def python_calls(tmp_path):
    """Calls with arguments of another kind than is meant, each with what it says."""
    mdp = MDP(np.eye(2)[[[0, 1], [1, 0]]], np.array([[0.0], [1.0]]), discount=0.5)
    expert = Trajectories.from_lists([[0, 1] * 9, [1, 1, 0] * 6, [0, 0, 1] * 6])
    model = MaxEntIRL().fit(mdp, expert)
    twice = pd.DataFrame([[0, 1.0, 2.0]], columns=["state", "f_a", "f_a"])
    steps = pd.DataFrame({"trajectory_id": [0], "step": [0], "state": [0]})
    (tmp_path / "tracks.csv").write_text("id,t,x,y\na,0,1,1\n")
    points = np.arange(12.0).reshape(6, 2)
    one = Recording([[0.0], [1.0]], [0])
    return [
        (lambda: weight_ratio(model, "0", "1"), "table is of type MaxEntIRL: give estimation_table"),
        (lambda: MESSICV(RBF()).fit(mdp, expert), "similarities=RBF.*: give a list of them"),
        (lambda: load_table(twice, "states"), "states: has two columns named 'f_a': keep one of them"),
        (lambda: read_trajectories(steps, expert), "problem must be a Problem or an MDP, not Trajectories"),
        (lambda: Hexagons.fit(points, np.nan), "width=nan: it must be finite and > 0"),
        (lambda: Hexagons.fit(points, "1"), "width='1': it must be a number"),
        (lambda: KMeans.fit(points, "3"), "KMeans: n_states='3': give 1 … 6"),
        (lambda: KMeans.fit(points, 3.0), "KMeans: n_states=3.0: give 1 … 6"),
        (lambda: Trajectories.from_lists(None), "states is None: give a list of trajectories"),
        (lambda: Trajectories.from_lists(5), "states is 5: give a list of trajectories"),
        (lambda: import_recordings(tmp_path / "tracks.csv", None), "settings is of type NoneType: give Imp"),
        (
            lambda: recordings_from_numpy({"observations": [[0.0], [1.0, 2.0]], "actions": [0]}),
            "arrays: observations has rows of different lengths: give rows of one length",
        ),
        (lambda: model.predict_proba(expert), "states must be a flat .*, not Trajectories: give their .states"),
        (lambda: trajectories_from_recordings(one), "not one alone: give \\[recording\\]"),
        (lambda: load(tmp_path), "is a folder: give the file of a model, as in .*model.npz"),
        (lambda: load(""), "'' is a folder: give the file of a model, as in model.npz"),
    ]


def test_an_argument_of_another_kind_is_named(tmp_path):
    for call, said in python_calls(tmp_path):
        with pytest.raises((TypeError, ValueError), match=said):
            call()
