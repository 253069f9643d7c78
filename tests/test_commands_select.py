"""`messirl select` and `messirl diagnose` on small folders: what they write is what the library says."""

from __future__ import annotations

import csv
import re
import shlex

import numpy as np
import pytest
from folders import grid, park, read_json, roads

import messirl
from messirl import MESSI, cli
from messirl.cli.common import Parser, filled
from messirl.cli.select import add
from messirl.diagnostics import diagnose
from messirl.io import read_problem
from messirl.selection import MESSICV, bootstrap, nested_score, stability
from messirl.similarity import RBF
from messirl.workflow.split import Split, divide

SPLIT = ["--expert", "role = expert", "--unlabelled", "role = unlabelled"]
SMALL = [*SPLIT, "--n-expert", "5", "--n-unlabelled", "8", "--lambdas", "0.1,10", "--cv", "3"]
SIMILARITY = RBF("median", standardise=True)

EPISODES = {
    "states__csv": "state,f_way,f_mud,terminal\ngate,1,0,0\npond,1,1,0\nwood,1,0,0\nhome,0,0,1\n",
    "edges__csv": "from,to,action\ngate,pond,a\ngate,wood,b\npond,home,a\npond,wood,b\nwood,home,a\nwood,pond,b\n",
    "trajectories__csv": "trajectory_id,step,state\n"
    + "".join(
        f"{name},{t},{state}\n"
        for name, way in {
            "anna": "gate wood home",
            "bob": "gate pond home",
            "cleo": "gate wood pond home",
            "dave": "gate pond wood home",
            "ed": "gate wood home",
        }.items()
        for t, state in enumerate(way.split())
    ),
    "trajectory_meta__csv": "trajectory_id,age\nanna,9\nbob,30\ncleo,31\ndave,32\ned,33\n",
    "problem__json": '{"discount": 1.0}',
}
ONE_EPISODE = ["--expert", "trajectory_id = anna", "--unlabelled", "trajectory_id != anna"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return grid(tmp_path_factory.mktemp("folders") / "grid")


@pytest.fixture
def fails(capsys):
    """A command that must end with exit code 2: its one line on standard error, progress aside."""

    def command(*words):
        assert cli.main([str(word) for word in words]) == 2
        return capsys.readouterr().err.splitlines()[-1]

    return command


def data_of(folder, *words):
    """The words, parsed, and how they divide the folder."""
    parser = Parser(prog="messirl select")
    add(parser)
    arguments = parser.parse_args([str(folder), *words])
    return arguments, divide(read_problem(folder), filled(Split, vars(arguments)))


# ------------------------------------------------------------ which rows


@pytest.mark.parametrize(
    "words",
    [
        SMALL,
        SPLIT,
        ["--unlabelled", "role = unlabelled", "--test", "role = test", "--seed", "7"],
        ["--expert", "role = expert", "--n-expert", "3", "--unlabelled", "role != test"],
        ["--n-expert", "4"],
    ],
)
def test_rows_are_those_that_were_read(folder, words):
    _, data = data_of(folder, *words)
    expert, unlabelled = data.rows["expert"], data.rows["unlabelled"]
    assert data.problem.trajectories[expert] == data.expert
    if data.unlabelled is not None:
        assert data.problem.trajectories[unlabelled] == data.unlabelled
        assert not np.intersect1d(expert, unlabelled).size


# ------------------------------------------------------------ select


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
@pytest.mark.parametrize("aim", ["imitation", "prediction"])
def test_select_chooses_what_the_library_chooses(folder, run, tmp_path, aim):
    said = run("select", folder, *SMALL, "--test", "role = test", "--aim", aim, "--out", tmp_path)
    _, data = data_of(folder, *SMALL)
    own = MESSICV(lambdas=(0.1, 10.0), cv=3, aim=aim, random_state=0)
    own.fit(data.problem.mdp, data.expert, data.unlabelled)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    assert found["chosen"]["candidate"] == str(own.candidate_)
    assert found["reason"] == own.reason_
    assert [row["candidate"] for row in found["candidates"]] == [str(c) for c in own.validation_.candidates]
    np.testing.assert_allclose(
        [row["calibrated"] for row in found["candidates"]], own.validation_.scores.mean(axis=1), rtol=1e-9
    )
    assert own.reason_ in said
    for row in found["candidates"]:
        assert row["candidate"] in said
    marked = [line for line in said.splitlines() if line.startswith("* ")]
    assert len(marked) == 1
    assert marked[0].endswith(str(own.candidate_))
    read = messirl.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(read.theta_, own.theta_)
    test = read_problem(folder).trajectories[np.flatnonzero(read_problem(folder).meta["role"] == "test")]
    assert found["held_out"] == pytest.approx(own.score(test), abs=1e-12)
    assert (tmp_path / "figures" / "gains.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "gains.svg").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures", "model.npz", "select.json"]


def test_json_is_all_there_is_on_standard_output(folder, capsys, tmp_path):
    words = ["select", str(folder), *SMALL, "--json", "--out", str(tmp_path)]
    assert cli.main(words) == 0
    written = capsys.readouterr()
    assert read_json(written.out) == read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    assert re.search(r"^select: 1 of 60$", written.err, re.MULTILINE)  # twelve candidates, five splits
    assert re.search(r"^select: done, 60 of 60 fits, [\d.]+ s$", written.err, re.MULTILINE)


def test_what_to_do_next_can_be_done(folder, run, tmp_path):
    words = ["select", folder, *SMALL, "--test", "role = test", "--seed", 2, "--theta-max", 50, "--out", tmp_path]
    found = read_json(run(*words, "--json"))
    kinds = [shlex.split(command)[:2] for command in found["next"]]
    assert [words[0] for words in kinds] == ["messirl"] * 3
    assert kinds[1:] == [["messirl", "diagnose"], ["messirl", "evaluate"]]
    for command in found["next"]:
        more = [] if " evaluate " in command or " show " in command else ["--out", str(tmp_path / "next")]
        run(*shlex.split(command)[1:], *more)
    assert "--seed 2" in found["next"][1]
    assert "--theta-max 50" in found["next"][1]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
def test_nested_and_bootstrap_are_the_library_s(folder, run, tmp_path):
    words = [*SPLIT, "--n-expert", "4", "--n-unlabelled", "8"]
    more = ["--aim", "prediction", "--lambdas", "10", "--nested", "--bootstrap", "5"]
    said = run("select", folder, *words, *more, "--out", tmp_path)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    _, data = data_of(folder, *words)
    mdp = data.problem.mdp
    own = MESSICV(lambdas=(10.0,), aim="prediction", random_state=0)
    nested = nested_score(own, mdp, data.expert, data.unlabelled)
    assert found["nested"]["mean"] == pytest.approx(nested.mean, rel=1e-9)
    assert found["nested"]["chosen"] == [str(c) for c in nested.chosen]
    assert f"nested: {nested.mean:.4f} ± {nested.standard_error:.4f} nats a step, choice included" in said
    own.fit(mdp, data.expert, data.unlabelled)
    drawn = bootstrap(own.best_estimator_, mdp, *own.fitted_to_, n=5, random_state=0)
    ends = drawn.interval(drawn.theta).T
    np.testing.assert_allclose(list(found["intervals"].values()), ends, rtol=1e-9)
    for name, (low, high) in zip(["f_right", "f_up", "f_mud"], ends, strict=True):
        shown = re.search(rf"\[ *(\S+) *, *(\S+) *\]  {name}$", said, re.MULTILINE)
        assert [float(end) for end in shown.groups()] == pytest.approx([low, high], rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
def test_groups_are_held_out_whole(folder, run, tmp_path):
    found = read_json(run("select", folder, *SMALL, "--groups", "x", "--json", "--out", tmp_path))
    _, data = data_of(folder, *SMALL)
    groups = data.problem.meta["x"][data.rows["expert"]]
    assert 1 < np.unique(groups).size < 5
    assert found["splits"] == min(3, np.unique(groups).size)
    own = MESSICV(lambdas=(0.1, 10.0), cv=3, random_state=0)
    own.fit(data.problem.mdp, data.expert, data.unlabelled, [str(g) for g in groups])
    np.testing.assert_allclose(
        [row["score"] for row in found["candidates"]], own.validation_.plain.mean(axis=1), rtol=1e-9
    )


def test_trips_without_unlabelled_ones_choose_among_the_ridges(run, tmp_path):
    place = roads(tmp_path / "roads")
    found = read_json(run(*f"select {place} --n-expert 5 --lambdas 1 --cv 2 --json --out {tmp_path / 'out'}".split()))
    assert [row["method"] for row in found["candidates"]] == ["MaxEnt", "Ridge", "RidgeStd"]
    assert not any(command.startswith("messirl diagnose") for command in found["next"])


def test_one_expert_trajectory_that_ends_is_told_what_cannot_be_chosen_and_given_the_stability(run, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    words = ["select", place, *ONE_EPISODE, "--lambdas", "0.1,10", "--out", tmp_path / "out"]
    said = run(*words)
    assert "neither lambda0 nor the similarity can be chosen by validation" in said
    assert "it ends where it should, and a part of it would not" in said
    found = read_json(run(*words, "--json"))
    assert found["chosen"] is None
    problem = read_problem(place)
    model = MESSI(SIMILARITY, max_iter=300)
    own = [
        stability(model, problem.mdp, problem.trajectories[[0]], problem.trajectories[1:], (x,), random_state=0)[0]
        for x in (0.1, 10.0)
    ]
    assert [row["lambda0"] for row in found["stability"]] == [0.1, 10.0]
    for row, expected in zip(found["stability"], own, strict=True):
        assert row["spread"] == pytest.approx(expected["spread"], abs=1e-9)
        assert f"{expected['spread']:8.4f}" in said
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["select.json"]


def test_one_expert_trajectory_that_ends_and_no_others_leave_nothing_to_do(fails, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    line = fails("select", place, "--expert", "trajectory_id = anna", "--out", tmp_path / "out")
    assert line.startswith("messirl: one expert trajectory: nothing can be held out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--groups", "mouse"], "--groups mouse: trajectory_meta has no such column; there are role, x"),
        (["--groups", "role"], "groups names one group only: nothing can be held out"),
        (["--cv", "1"], "cv=1: at least two folds are needed"),
        (["--features", "f_wings"], "--features: there is no feature 'f_wings'"),
    ],
)
def test_wrong_words_are_one_sentence(folder, fails, tmp_path, words, message):
    assert message in fails("select", folder, *SPLIT, *words, "--out", tmp_path)


@pytest.mark.parametrize("text", ["-1", "x", "0.1,", "nan"])
def test_strengths_that_are_none_are_refused(folder, capsys, text):
    with pytest.raises(SystemExit) as left:
        cli.main(["select", str(folder), f"--lambdas={text}"])
    assert left.value.code == 2
    assert "is not a number from 0 on" in capsys.readouterr().err


# ------------------------------------------------------------ diagnose


DIAGNOSE = [*SPLIT, "--n-unlabelled", "10", "--lambda0", "3", "--influential", "4"]


def test_diagnose_says_what_the_library_says(folder, run, tmp_path):
    said = run("diagnose", folder, *DIAGNOSE, "--out", tmp_path)
    _, data = data_of(folder, *DIAGNOSE[:6])
    mdp = data.problem.mdp
    model = MESSI(SIMILARITY, lambda0=3.0, max_iter=500, random_state=0).fit(mdp, data.expert, data.unlabelled)
    own = diagnose(model, mdp, data.expert, data.unlabelled, influential=4, random_state=0)
    found = read_json((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert found["verdict"] == own.verdict
    assert found["evidence"] == own.evidence
    assert found["degrees_of_freedom"] == pytest.approx(own.degrees_of_freedom, rel=1e-9)
    assert found["identified"] == own.identified
    assert len(found["directions"]) == len(own.directions)
    assert f"the unlabelled trajectories {own.verdict}" in said
    assert all(text in said for text in own.evidence)
    with (tmp_path / "diagnosis.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ids = [int(row["trajectory_id"]) for row in rows]
    assert read_problem(folder).trajectories[ids] == data.unlabelled
    np.testing.assert_allclose([float(row["likeness"]) for row in rows], own.likeness.unlabelled, rtol=1e-9)
    np.testing.assert_allclose([float(row["share"]) for row in rows], own.share, rtol=1e-6)
    assert sum(row["influence"] != "" for row in rows) == 4
    best = int(np.argmax(own.likeness.unlabelled))
    assert found["most_alike"][0]["trajectory_id"] == str(ids[best])
    worst = int(np.argmin(own.likeness.unlabelled))
    assert found["least_alike"][0]["trajectory_id"] == str(ids[worst])
    top = int(np.nanargmax(own.influence))
    assert found["most_influential"][0]["trajectory_id"] == str(ids[top])
    for name in ("likeness", "shares", "influence", "directions"):
        assert (tmp_path / "figures" / f"{name}.png").exists()
    assert str(ids[top]) in (tmp_path / "diagnosis.html").read_text(encoding="utf-8")


def test_diagnosis_as_json_is_all_there_is_on_standard_output(folder, run, tmp_path):
    found = read_json(run("diagnose", folder, *DIAGNOSE, "--influential", 0, "--json", "--out", tmp_path))
    assert found == read_json((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert found["most_influential"] == []
    assert found["trajectories"] == {"expert": 12, "unlabelled": 10}
    assert not (tmp_path / "figures" / "influence.png").exists()


def test_trajectories_have_their_own_names_and_episodes_are_diagnosed(run, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    words = ["--expert", "age < 31", "--unlabelled", "age >= 31", "--out", tmp_path / "out"]
    said = run("diagnose", place, *words)
    assert re.search(r"^.*  cleo$", said, re.MULTILINE)
    lines = (tmp_path / "out" / "diagnosis.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[0] for line in lines] == ["trajectory_id", "cleo", "dave", "ed"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--expert", "role = expert"], "there are no unlabelled trajectories to diagnose"),
        ([*SPLIT, "--method", "em"], "--method em has no penalty to diagnose: leave --method out"),
    ],
)
def test_what_cannot_be_diagnosed_is_one_sentence(folder, fails, tmp_path, words, message):
    assert message in fails("diagnose", folder, *words, "--out", tmp_path)


def test_one_expert_that_ends_has_nobody_to_be_judged_by(fails, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    line = fails("diagnose", place, *ONE_EPISODE, "--out", tmp_path / "out")
    assert "nothing can be held out to judge the others by; give at least two with --expert" in line


def test_two_experts_are_enough_to_choose(folder, run, tmp_path):
    words = [*SPLIT, "--n-expert", "2", "--n-unlabelled", "6", "--lambdas", "0.1", "--json"]
    assert read_json(run("select", folder, *words, "--out", tmp_path))["chosen"] is not None
