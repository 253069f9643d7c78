"""Messages and refusals that used to mislead: odd recordings and settings, options that act on nothing."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from folders import PARK, grid, park

from messirl import MDP, MaxEntIRL, Trajectories
from messirl.app import cli
from messirl.app.workflow.narrative import FeatureSigns, _preferences
from messirl.io import InputError, Problem, check_problem
from messirl.io.recording_sources import read_recordings
from messirl.io.recordings.files import recordings_from_numpy

OUT = ["--no-report", "--no-baselines"]


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, and what it printed and remarked."""

    def command(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


# ------------------------------------------------------------ recordings and tables


@pytest.mark.parametrize("name", ["observations", "actions", "lengths", "ids"])
def test_an_array_that_is_a_single_value_is_named(tmp_path, name):
    arrays = {"observations": np.zeros((6, 1)), "actions": np.zeros(5, int), "lengths": np.array([6])}
    np.savez(tmp_path / "r.npz", **arrays | {name: np.array(6)})
    with pytest.raises(InputError, match=f"{name} is the single value 6: give an array"):
        recordings_from_numpy(tmp_path / "r.npz")


def test_whole_actions_and_flags_that_pandas_made_floats_are_read(tmp_path):
    frame = pd.DataFrame(
        {"trajectory_id": [0, 0, 0], "step": [0, 1, 2], "o_x": [0.0, 1.0, 2.0], "action": [0.0, 1.0, np.nan]}
    )
    frame["terminated"] = [0, 0, 1]
    frame.to_parquet(tmp_path / "r.parquet")
    [one], _ = read_recordings(tmp_path / "r.parquet")
    assert one.actions.tolist() == [0, 1]
    assert one.actions.dtype.kind == "i"
    assert one.terminated
    replace_action = frame.assign(action=[0.5, 1.0, np.nan])
    replace_action.to_parquet(tmp_path / "half.parquet")
    with pytest.raises(InputError, match="its actions are float64"):
        read_recordings(tmp_path / "half.parquet")
    frame.assign(terminated=[0, 0, 2]).to_parquet(tmp_path / "two.parquet")
    with pytest.raises(InputError, match="terminated holds 2, not a boolean"):
        read_recordings(tmp_path / "two.parquet")


def test_a_number_of_actions_beside_labels_is_refused_as_that(tmp_path):
    folder = park(tmp_path / "park", problem__json='{"discount": 0.5, "n_actions": 5}')
    [fault] = check_problem(folder)
    assert "n_actions is 5, but the table of edges labels its actions ('east')" in str(fault)
    slip = park(tmp_path / "slip", problem__json='{"discount": 0.5, "n_actions": 5}',
                edges__csv=re.sub("north|west|south", "1", PARK["edges.csv"]).replace("east", "O"))  # fmt: skip
    assert any("action 'O' is not one of 0 … 4" in str(fault) for fault in check_problem(slip))


def test_numbers_that_64_bits_cannot_hold_are_no_states():
    with pytest.raises(ValueError, match="trajectory 0 has 18446744073709551615, too large for 64 bits"):
        Trajectories.from_lists([np.array([0, 2**64 - 1], dtype=np.uint64)])


@pytest.mark.parametrize(
    ("change", "said"),
    [({"observations": 1e200}, "recording 0: state .* outside the supported range"),
     ({"actions": -1}, "action -1 is not one of 0, 1, 2, …: number the actions from 0")],
)  # fmt: skip
def test_recordings_beyond_computing_are_refused(run, tmp_path, change, said):
    random = np.random.default_rng(0)
    arrays = {"observations": random.normal(size=(60, 2)), "actions": random.integers(0, 2, 54)}
    arrays |= {name: np.full_like(arrays[name], value) for name, value in change.items()}
    np.savez(tmp_path / "r.npz", lengths=np.full(6, 10), **arrays)
    words = ["--dynamics", "fitted", "--discount", "0.9", "--out", tmp_path / "o", "--no-report"]
    code, _, err = run("fit", tmp_path / "r.npz", *words)
    assert code == 2
    assert re.search(said, err)


def test_places_named_as_missing_values_are_said_to_count_as_missing(run, tmp_path):
    (tmp_path / "t.csv").write_text("id,t,page\na,0,nan\na,1,NA\na,2,None\n")
    words = ["--place", "page", "--indicator", "--discount", "0.9"]
    code, _, err = run("import", tmp_path / "t.csv", tmp_path / "o", *words)
    assert code == 2
    assert "3 without a place; NA, nan, none, null" in err


# ------------------------------------------------------------ sentences


def test_a_prior_policy_is_compared_with_in_grammatical_sentences():
    who, versus = "the experts (6 trajectories)", "compared with the unlabelled trajectories"
    none = FeatureSigns([], [], ["cost"], [])
    assert _preferences(who, none, "b", versus).startswith(f"No preference of {who} {versus} is significant at 5 %")
    assert _preferences(who, replace(none, unclear=[]), "b", versus).startswith(
        f"No preference of {who} {versus} can be claimed"
    )
    some = replace(none, preferred=["cost"])
    assert _preferences(who, some, "b", versus).startswith(f"C{versus[1:]}, {who} prefer cost (b).")
    assert _preferences(who, some, "b", "").startswith("The experts (6 trajectories) prefer cost (b).")


def test_a_search_that_could_not_confirm_its_optimum_claims_no_distance_beyond_tol():
    moves = np.zeros((3, 2, 3))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1, :, 0] = moves[2, :, 0] = 1.0
    mdp = MDP(moves, np.eye(3), discount=1e-9)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        MaxEntIRL().fit(mdp, [[0, 1, 0, 1], [0, 2, 0, 1]])
    [said] = [str(one.message) for one in heard if "did not converge" in str(one.message)]
    assert "every weight seems to be within tol=1e-06 of its optimum, but too little is known of the curvature" in said
    assert "from its optimum, relative" not in said


# ------------------------------------------------------------ options that act on nothing


@pytest.mark.parametrize(
    "option",
    [["--lambda0", "5"], ["--similarity", "edit"], ["--sigma", "3"], ["--no-standardise"]],
    ids=lambda option: option[0],
)
def test_a_penalty_that_nothing_has_is_refused(run, tmp_path, option):
    folder = grid(tmp_path / "grid")
    alone = ["fit", folder, "--expert", "role = expert", "--out", tmp_path / "o", *OUT, *option]
    code, _, err = run(*alone)
    assert code == 2
    assert f"{option[0]} has no effect without unlabelled trajectories, since only messi has a penalty" in err
    both = [*alone, "--unlabelled", "role = unlabelled", "--method", "maxent"]
    code, _, err = run(*both)
    assert code == 2
    assert f"{option[0]} has no effect without baselines, since only messi has a penalty" in err
    both.remove("--no-baselines")
    assert run(*both)[0] == 0


def test_a_method_is_compared_once(run, tmp_path):
    code, _, err = run("compare", grid(tmp_path / "grid"), "--methods", "MESSI, messi", "--out", tmp_path / "o")
    assert code == 2
    assert "--methods names 'MESSI' twice: name it once" in err


def test_a_sample_never_replaces_a_file_unasked(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = grid(tmp_path / "grid")
    assert run("fit", folder, "--expert", "role = expert", "--out", "fit", *OUT)[0] == 0
    (tmp_path / "out").mkdir()
    mine = tmp_path / "out" / "sample.csv"
    mine.write_text("mine")
    code, _, err = run("sample", "fit", "--length", 3)
    assert (code, mine.read_text()) == (2, "mine")
    assert "out/sample.csv: already exists" in err
    assert run("sample", "fit", "--length", 3, "--force")[0] == 0
    assert mine.read_text() != "mine"


def test_columns_of_a_problem_that_are_no_mapping_are_named():
    mdp, walks = MDP([[[0, 1]], [[1, 0]]], [[0.0], [1.0]], discount=0.9), Trajectories.from_lists([[0, 1, 0], [1, 0]])
    with pytest.raises(TypeError, match="meta is of type list: give a mapping of columns"):
        Problem(mdp, walks, meta=["expert", "other"])
    assert Problem(mdp, walks, meta=pd.DataFrame({"role": ["expert", "other"]})).facts["role"].tolist()[0] == "expert"


def test_one_table_of_agreement_where_trajectories_do_not_differ(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("example", "museum", "m")[0] == 0
    parts = ["--expert", "who = guide and day <= 2", "--unlabelled", "who = class", "--influential", "0"]
    code, out, _ = run("diagnose", "m", *parts, "--no-report")
    assert code == 0
    assert "trajectories do not differ by more than noise" in out
    assert "lowest agreement" not in out
    assert json.loads((tmp_path / "out" / "diagnosis" / "diagnosis.json").read_text())["agreement"]["between"] == 0.0
