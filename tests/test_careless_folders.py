"""Folders that can be read but not learnt from, and messages that name trajectories as the folder does."""

from __future__ import annotations

import pytest
from folders import PARK, park

from messirl.app import cli
from messirl.io import check_problem

EDGES = PARK["edges.csv"]
STEPS = PARK["trajectories.csv"]
TO_CAFE = {  # the café ends trajectories; whoever is not there yet has not finished
    "states__csv": "state,f_green,terminal\ngate,0,0\npond,1,0\nwood,1,0\ncafé,0,1\nbog,0,0\n",
    "edges__csv": EDGES.replace("café,gate,south\ncafé,wood,east\n", ""),
    "trajectories__csv": "trajectory_id,step,state\nbob,0,gate\nbob,1,café\ncleo,0,gate\ncleo,1,pond\ncleo,2,wood\n"
    "cleo,3,café\n",
    "trajectory_meta__csv": "trajectory_id,age\nbob,9\ncleo,3\n",
    "problem__json": '{"discount": 1}',
}
INTO_BOG = TO_CAFE["trajectories__csv"] + "dave,0,gate\ndave,1,pond\ndave,2,bog\n"


@pytest.fixture
def run(capsys):
    """Run a command; its exit code, and what it printed and remarked."""

    def command(*words):
        capsys.readouterr()
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def test_a_folder_that_every_fit_uses_has_no_fault(tmp_path):
    assert check_problem(park(tmp_path / "park")) == []
    assert check_problem(park(tmp_path / "café", **TO_CAFE)) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"problem__json": '{"discount": 1}'}, "problem.json: discount=1 with no horizon, no terminal state"),
        ({"trajectories__csv": "trajectory_id,step,state\nanna,0,gate\nbob,0,pond\ncleo,0,gate\n"}, "makes a step"),
        ({"edges__csv": "from,to,action\ngate,pond,on\npond,wood,on\nwood,pond,on\n",
          "trajectories__csv": "trajectory_id,step,state\nanna,0,gate\nanna,1,pond\nbob,0,pond\nbob,1,wood\n"
          "cleo,0,gate\ncleo,1,pond\n"}, "edges.csv: no state has more than one action"),
        (TO_CAFE | {"edges__csv": TO_CAFE["edges__csv"] + "pond,bog,out\nbog,bog,on\nbog,bog,stay\n",
                    "trajectories__csv": INTO_BOG, "trajectory_meta__csv": "trajectory_id\nbob\ncleo\ndave\n"},
         "row 9: trajectory 'dave', step 1: after the transition from state 'pond' nothing may end it"),
    ],
)  # fmt: skip
def test_check_reports_what_every_fit_refuses(run, tmp_path, changes, said):
    folder = park(tmp_path / "park", **changes)
    code, out, _ = run("check", folder)
    assert code == 2
    assert said in out
    assert run("fit", folder, "--out", tmp_path / "out", "--no-report")[0] == 2


def test_check_notes_where_no_weights_give_a_finite_value(run, tmp_path):
    folder = park(tmp_path / "park", **TO_CAFE | {"states__csv": TO_CAFE["states__csv"].replace(",1,0", ",0,0")})
    code, out, err = run("check", folder)
    assert (code, "is fine" in out) == (0, True)
    assert "a fit without a prior policy refuses this problem: no theta was found" in err
    plain = ["--unlabelled", "trajectory_id = bob", "--no-report", "--no-baselines", "--out", tmp_path / "out"]
    assert run("fit", folder, *plain, "--method", "maxent")[0] == 2
    assert run("fit", folder, *plain, "--reference", "unlabelled", "--method", "maxent")[0] == 0


SLIPPERY = TO_CAFE | {  # out of the pond one may slip into the bog, which cannot be left
    "edges__csv": "from,to,action,probability\ngate,pond,east,1\ngate,café,north,1\npond,wood,north,0.9\n"
    "pond,bog,north,0.1\npond,gate,west,1\nwood,café,west,1\nwood,pond,south,1\n"
}


def test_a_dead_end_ahead_is_named_with_the_trajectory_as_the_folder_names_them(run, tmp_path):
    folder = park(tmp_path / "park", **SLIPPERY)
    code, out, _ = run("check", folder)
    what = "the transition from state 'pond' can run into the dead end 'bog'"
    assert code == 2
    assert f"trajectories.csv, row 5: trajectory 'cleo', step 1: {what}" in out
    for command in ("fit", "select"):
        code, _, err = run(command, folder, "--out", tmp_path / "out", "--no-report")
        assert code == 2
        assert f"trajectory cleo of expert, step 1: {what}" in err
        assert "make the dead end terminal" in err


def test_an_unfinished_trajectory_is_named_and_the_remedy_is_one_of_the_command(run, tmp_path):
    steps = TO_CAFE["trajectories__csv"].replace("cleo,3,café\n", "") + "eve,0,gate\neve,1,café\n"
    ids = "trajectory_id\nbob\ncleo\neve\n"
    folder = park(tmp_path / "p", **TO_CAFE | {"trajectories__csv": steps, "trajectory_meta__csv": ids})
    parts = ["--expert", "trajectory_id = bob", "--unlabelled", "trajectory_id != bob"]
    code, _, err = run("fit", folder, *parts, "--out", tmp_path / "out", "--no-report")
    assert code == 2
    assert "trajectory cleo of unlabelled ends in state 'wood', which is not terminal" in err
    assert "--objective choices and no penalty on counts (--method maxent)" in err


def test_a_start_without_probability_is_named_as_check_names_it(run, tmp_path):
    states = "state,f_green,start\ngate,0,1\npond,1,0\nwood,1,0\ncafé,0,0\n"
    folder = park(tmp_path / "p", states__csv=states, trajectories__csv=STEPS.replace("anna,0,gate", "anna,0,wood"))
    what = "begins in state 'wood', where start is 0: give the state a weight in start, or drop start"
    assert what in run("check", folder)[1]
    code, _, err = run("fit", folder, "--unlabelled", "trajectory_id = bob", "--out", tmp_path / "out", "--no-report")
    assert code == 2
    assert f"trajectory anna of expert: it {what}" in err
