"""`messirl select` and `messirl diagnose` on small folders: what they write is what the library says."""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from folders import grid, park, read_json, roads
from pages import Page
from seeds import pinned
from worlds import drawn

import messirl
from messirl import MDP, MESSI
from messirl.app import cli
from messirl.app.cli._parser import Parser, settings_from_options
from messirl.app.cli.select import add
from messirl.app.report.common.number_format import as_sentence
from messirl.app.workflow.split import Split, divide
from messirl.io import Problem, read_problem, write_problem
from messirl.selection import MESSICV, bootstrap, decision_rule, messicv, nested_score
from messirl.selection.diagnostics import diagnose
from messirl.selection.expert_agreement import ExpertAgreement
from messirl.selection.resampling import stability
from messirl.similarity import RBF

SPLIT = ["--expert", "role = expert", "--unlabelled", "role = unlabelled"]
SMALL = [*SPLIT, "--n-expert", "5", "--n-unlabelled", "8", "--lambdas", "0.1,10", "--cv", "3"]
SIMILARITY = RBF("median", standardise=True)
DEFAULT_CANDIDATE = "light pooling with L2 λ0=0.01 weight=0.01"

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
    return arguments, divide(read_problem(folder), settings_from_options(Split, vars(arguments)))


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
def test_select_chooses_what_the_library_chooses(folder, run, tmp_path):
    said = run("select", folder, *SMALL, "--test", "role = test", "--out", tmp_path)
    _, data = data_of(folder, *SMALL)
    own = MESSICV(lambdas=(0.1, 10.0), cv=3, random_state=0)
    own.fit(data.problem.mdp, data.expert, data.unlabelled)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    assert found["chosen"]["candidate"] == str(own.candidate_)
    assert found["reason"] == own.reason_
    assert [row["candidate"] for row in found["candidates"]] == [str(c) for c in own.validation_.candidates]
    np.testing.assert_allclose([row["score"] for row in found["candidates"]], own.validation_.scores, rtol=1e-9)
    gains = [own.validation_.gain(i, own.choice_.default) for i in range(len(found["candidates"]))]
    for row, gain in zip(found["candidates"], gains, strict=True):
        assert [row["gain"], row["gain_low"], row["gain_high"]] == pytest.approx(
            [gain.mean, gain.low, gain.high], abs=1e-9
        )
    assert found["units"] == 5
    assert own.reason_ in said
    for method in {row["method"] for row in found["candidates"]}:
        best = max((row for row in found["candidates"] if row["method"] == method), key=lambda row: row["score"])
        assert best["candidate"] in said
    marked = [line for line in said.splitlines() if line.startswith("* ")]
    assert len(marked) == 1
    assert marked[0].endswith(str(own.candidate_))
    read = messirl.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(read.theta_, own.theta_)
    test = read_problem(folder).trajectories[np.flatnonzero(read_problem(folder).meta["role"] == "test")]
    assert found["held_out"] == pytest.approx(own.score(test), abs=1e-12)
    assert (tmp_path / "figures" / "gains.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / "gains.svg").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["figures", "model.npz", "report.html", "select.json"]
    assert all(words in said for words in found["in_words"])


def test_json_is_all_there_is_on_standard_output(folder, capsys, tmp_path):
    words = ["select", str(folder), *SMALL, "--json", "--out", str(tmp_path)]
    assert cli.main(words) == 0
    written = capsys.readouterr()
    assert read_json(written.out) == read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    assert re.search(r"^select: 1 of 108$", written.err, re.MULTILINE)  # eighteen candidates, five splits and all
    assert re.search(r"^select: done, 108 of 108 fits, [\d.]+ s$", written.err, re.MULTILINE)


@pytest.mark.slow
def test_what_to_do_next_can_be_done(folder, run, tmp_path):
    words = ["select", folder, *SMALL, "--test", "role = test", "--seed", 2, "--theta-max", 50, "--out", tmp_path]
    found = read_json(run(*words, "--json"))
    kinds = [shlex.split(command)[:2] for command in found["next"]]
    assert [words[0] for words in kinds] == ["messirl"] * 3
    assert kinds[1:] == [["messirl", "diagnose"], ["messirl", "evaluate"]]
    for command in found["next"]:
        name = shlex.split(command)[1]
        more = [] if name in ("evaluate", "show") else ["--out", str(tmp_path / name)]
        run(*shlex.split(command)[1:], *more)
    assert "--seed 2" in found["next"][1]
    assert "--theta-max 50" in found["next"][1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
def test_nested_and_bootstrap_are_the_library_s(folder, run, tmp_path):
    words = [*SPLIT, "--n-expert", "4", "--n-unlabelled", "8"]
    more = ["--lambdas", "10", "--cv", "2", "--nested", "--bootstrap", "3"]
    said = run("select", folder, *words, *more, "--out", tmp_path)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    _, data = data_of(folder, *words)
    mdp = data.problem.mdp
    own = MESSICV(lambdas=(10.0,), cv=2, random_state=0)
    nested = nested_score(own, mdp, data.expert, data.unlabelled)
    assert found["nested"]["mean"] == pytest.approx(nested.mean, rel=1e-9)
    assert found["nested"]["chosen"] == [str(c) for c in nested.chosen]
    assert f"nested: {nested.mean:.4f} ± {nested.standard_error:.4f} nats per step, choice included" in said
    own.fit(mdp, data.expert, data.unlabelled)
    drawn = bootstrap(own.best_estimator_, mdp, *own.fitted_to_, n=3, random_state=0)
    ends = drawn.interval(drawn.theta).T
    np.testing.assert_allclose(list(found["intervals"].values()), ends, rtol=1e-9)
    for name, (low, high) in zip(["f_right", "f_up", "f_mud"], ends, strict=True):
        shown = re.search(rf"\[ *(\S+) *, *(\S+) *\]  {name}$", said, re.MULTILINE)
        assert [float(end) for end in shown.groups()] == pytest.approx([low, high], rel=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
def test_groups_are_held_out_whole(folder, run, tmp_path):
    found = read_json(run("select", folder, *SMALL, "--groups", "x", "--json", "--out", tmp_path))
    _, data = data_of(folder, *SMALL)
    groups = data.problem.meta["x"][data.rows["expert"]]
    assert 1 < np.unique(groups).size < 5
    assert found["units"] == np.unique(groups).size, "a group is one unit, however many trajectories it has"
    own = MESSICV(lambdas=(0.1, 10.0), cv=3, random_state=0)
    own.fit(data.problem.mdp, data.expert, data.unlabelled, [str(g) for g in groups])
    np.testing.assert_allclose([row["score"] for row in found["candidates"]], own.validation_.scores, rtol=1e-9)


def test_trips_without_unlabelled_ones_choose_among_the_ridges(run, tmp_path):
    place = roads(tmp_path / "roads")
    found = read_json(run(*f"select {place} --n-expert 5 --lambdas 1 --cv 2 --json --out {tmp_path / 'out'}".split()))
    assert [row["candidate"] for row in found["candidates"]] == [
        "MaxEnt-IRL",
        "L2, standardised λ0=1",
        "L2, standardised λ0=0.01",
    ]
    assert found["candidates"][found["default"]]["candidate"] == "L2, standardised λ0=0.01"
    assert found["use"] is None
    assert found["verdict"] is None
    assert not any(command.startswith("messirl diagnose") for command in found["next"])


@pytest.mark.slow
def test_one_expert_trajectory_that_ends_is_given_the_default_and_the_stability_beside_it(run, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    words = ["select", place, *ONE_EPISODE, "--lambdas", "0.1,10", "--out", tmp_path / "out"]
    said = run(*words)
    assert "it ends at a goal or terminal state, and its parts would not, so the fixed default is used" in said
    assert f"Chosen: {DEFAULT_CANDIDATE}; " in said
    assert "helps: nothing can be held out." in said
    found = read_json(run(*words, "--json", "--force"))
    assert found["chosen"]["is_default"]
    assert (found["candidates"], found["units"], found["use"], found["verdict"]) == ([], 0, None, None)
    assert [shlex.split(command)[1] for command in found["next"]] == ["fit"], "no held-out expert to diagnose with"
    problem = read_problem(place)
    model = MESSI(SIMILARITY, max_iter=300, theta_prior=MESSICV().theta_prior)
    own = [
        stability(model, problem.mdp, problem.trajectories[[0]], problem.trajectories[1:], (x,), random_state=0)[0]
        for x in (0.1, 10.0)
    ]
    assert [row["lambda0"] for row in found["stability"]] == [0.1, 10.0]
    for row, expected in zip(found["stability"], own, strict=True):
        assert row["spread"] == pytest.approx(expected["spread"], abs=1e-9)
        shown = re.search(rf"^ *{row['lambda0']:g} +(\S+) *$", said, re.MULTILINE)
        assert float(shown[1]) == pytest.approx(expected["spread"], rel=1e-3)
    there = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert there == ["model.npz", "report.html", "select.json"], "one expert gives no intervals to draw"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # one walk: its weights run on
def test_one_expert_trajectory_that_ends_and_no_others_are_given_the_ridge(run, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    words = ["select", place, "--expert", "trajectory_id = anna", "--json", "--out", tmp_path / "out"]
    found = read_json(run(*words))
    assert found["chosen"]["candidate"] == "L2, standardised λ0=0.01"
    assert found["reason"].startswith("one expert trajectory: nothing can be held out")
    assert "stability" not in found


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
    assert "is not a number >= 0" in capsys.readouterr().err


# ------------------------------------------------------------ the rule


@pytest.fixture(scope="module")
def contrary(tmp_path_factory):
    """Six places in a row: ten experts go to the right end, five hundred others to the left one."""
    moves = np.stack([np.eye(6)[np.maximum(np.arange(6) - 1, 0)], np.eye(6)[np.minimum(np.arange(6) + 1, 5)]], axis=1)
    mdp = MDP(moves, np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8, feature_names=["f_right"])
    expert = drawn(mdp, [4.0], 20, 0, start=np.ones(6))[:10]
    role = np.repeat(["expert", "unlabelled"], [10, 500])
    place = tmp_path_factory.mktemp("folders") / "contrary"
    write_problem(Problem(mdp, expert + drawn(mdp, [-4.0], 500, 1, start=np.ones(6)), {"role": role}), place)
    return place


@pytest.mark.slow
def test_what_hurts_is_left_out_and_the_verdict_is_said_with_its_interval(contrary, run, tmp_path):
    said = run("select", contrary, *SPLIT, "--lambdas", "0.1,1", "--out", tmp_path)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    chosen = found["candidates"][found["chosen"]["index"]]
    assert not found["chosen"]["is_default"]
    assert chosen["method"] == "RidgeStd", "the experts alone"
    assert chosen["gain_low"] > 0
    assert f"Chosen: {chosen['candidate']}; the unlabelled trajectories hurt: without them +" in said
    use = found["use"]
    assert found["verdict"] == "hurt"
    assert use["low"] < use["gain"] < use["high"] < 0
    for text in (f"({use['using']}) hurts", f"{use['gain']:+.4f} nats per step [{use['low']:.4f}, {use['high']:.4f}]"):
        assert text in use["sentence"]
    assert "Using the 500 unlabelled trajectories (role = unlabelled) hurt the prediction of held-out experts: " in said


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
def test_a_diagnosis_begins_with_what_held_out_experts_gain_and_its_interval(contrary, run, tmp_path):
    said = run("diagnose", contrary, *SPLIT, "--influential", "0", "--out", tmp_path)
    found = read_json((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    use, first = found["use"], found["evidence"][0]
    sign = "" if use["low"] > 0 else "+"
    ends = f"{use['gain']:+.4f} nats per step [{use['low']:{sign}.4f}, {use['high']:{sign}.4f}]"
    assert first.startswith(f"using the unlabelled trajectories ({use['using']}) ")
    assert f"over experts only ({use['alone']})" in first
    assert ends in first
    assert said.startswith("Using the 500 unlabelled trajectories (role = unlabelled) ")
    assert first in said
    assert found["verdict"] == ("help" if use["low"] > 0 else "hurt" if use["high"] < 0 else found["verdict"])
    assert found["verdict"] in ("help", "hurt", "no effect", "unclear")


def test_the_default_is_kept_where_nothing_is_clearly_better_and_how_many_experts_would_settle_it(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(ExpertAgreement, "is_significant", True)
    with pinned():  # whether anything does better is chance
        folder = grid(tmp_path / "grid")
    said = run("select", folder, *SMALL, "--out", tmp_path)
    found = read_json((tmp_path / "select.json").read_text(encoding="utf-8"))
    best = max(found["candidates"], key=lambda row: row["score"])
    assert found["chosen"]["is_default"]
    assert found["chosen"]["candidate"] == DEFAULT_CANDIDATE
    assert best["gain"] > 0, "something does better, by chance"
    assert f"; the fixed default; {best['candidate']} does best, but not significantly at 99.9 %: +" in said
    assert found["needed"] > found["units"]
    assert f"about {found['needed']:,} held-out experts would make a difference of this size significant" in said
    assert found["use"]["low"] < 0 < found["use"]["high"]
    assert "(role = unlabelled) made no clear difference to predicting held-out experts: " in said


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
def test_the_next_diagnosis_is_of_the_same_folds_and_prior(folder, run, tmp_path):
    words = [*SMALL, "--theta-prior", "none", "--json", "--out", tmp_path]
    (said,) = (line for line in read_json(run("select", folder, *words))["next"] if " diagnose " in line)
    assert said.endswith(" --cv 3 --theta-prior none")
    cli.main([*shlex.split(said)[1:], "--influential", "0", "--out", str(tmp_path / "diagnosis")])


def test_two_experts_are_too_few_to_choose_by_and_are_given_the_default(folder, run, tmp_path):
    words = [*SPLIT, "--n-expert", "2", "--n-unlabelled", "6", "--lambdas", "0.1", "--json"]
    found = read_json(run("select", folder, *words, "--out", tmp_path))
    assert found["chosen"]["method"] in ("LightPoolingStd", "RidgeStd"), "the default, with or without the others"
    assert found["reason"].startswith("2 held-out expert trajectories, groups or parts are too few to choose by")
    assert found["units"] == 2
    assert found["needed"] is None


def as_chosen(method, **knobs):
    """A rule that takes the candidate of a method and its knobs, whatever was held out."""

    def choose(validation, like=None, *, unlabelled=True):
        fits = [c.method == method and all(getattr(c, k) == v for k, v in knobs.items()) for c in validation.candidates]
        return replace(
            decision_rule.choose_candidate(validation, like, unlabelled=unlabelled),
            index=(i := fits.index(True)),
            candidate=validation.candidates[i],
        )

    return choose


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps in the mud: its weight runs on
@pytest.mark.parametrize(
    ("method", "knobs"),
    [
        ("LightPoolingStd", {"weight": 0.3}),
        ("MESSI", {"lambda0": 0.1}),
        pytest.param("RidgeStd", {"lambda0": 0.1}, marks=pytest.mark.slow),
        pytest.param("Complete", {"lambda0": 0.1}, marks=pytest.mark.slow),
        ("ReferenceStd", {"strength": 50.0}),
    ],
)
def test_the_next_command_fits_exactly_what_was_chosen(folder, run, tmp_path, monkeypatch, method, knobs):
    monkeypatch.setattr(messicv, "choose_candidate", as_chosen(method, **knobs))
    words = [*SPLIT, "--lambdas", "0.1", "--cv", "2", "--seed", "3", "--n-expert", "8", "--n-unlabelled", "8"]
    found = read_json(run("select", folder, *words, "--json", "--out", tmp_path / "s"))
    assert found["chosen"]["method"] == method
    again = [*shlex.split(found["next"][0])[1:], "--no-baselines", "--no-report", "--out", str(tmp_path / "f")]
    run(*again)
    own, new = (messirl.load(tmp_path / name / "model.npz") for name in ("s", "f"))
    np.testing.assert_allclose(new.theta_, own.theta_, rtol=1e-3)


# ------------------------------------------------------------ diagnose


DIAGNOSE = [*SPLIT, "--n-unlabelled", "10", "--lambda0", "3", "--influential", "4", "--cv", "2"]


@pytest.mark.usefixtures("few_strengths")
def test_diagnose_says_what_the_library_says(folder, run, tmp_path):
    said = run("diagnose", folder, *DIAGNOSE, "--out", tmp_path)
    _, data = data_of(folder, *DIAGNOSE[:6])
    mdp = data.problem.mdp
    model = MESSI(SIMILARITY, lambda0=3.0, max_iter=500, random_state=0).fit(mdp, data.expert, data.unlabelled)
    own = diagnose(model, mdp, data.expert, data.unlabelled, influential=4, cv=2, random_state=0)
    found = read_json((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert found["verdict"] == own.verdict
    assert found["evidence"] == own.evidence
    assert found["degrees_of_freedom"] == pytest.approx(own.degrees_of_freedom, rel=1e-9)
    assert found["identified"] == own.identified
    assert len(found["directions"]) == len(own.directions)
    assert f"verdict: {own.verdict}" in said
    assert all(text in said for text in own.evidence)
    with (tmp_path / "diagnosis.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ids = [int(row["trajectory_id"]) for row in rows]
    assert read_problem(folder).trajectories[ids] == data.unlabelled
    np.testing.assert_allclose(
        [float(row["likeness"]) for row in rows], own.agreement_with_experts.unlabelled, rtol=1e-9
    )
    np.testing.assert_allclose([float(row["share"]) for row in rows], own.share, rtol=1e-6)
    assert sum(row["influence"] != "" for row in rows) == 4
    best = int(np.argmax(own.agreement_with_experts.unlabelled))
    assert found["most_alike"][0]["trajectory_id"] == str(ids[best])
    worst = int(np.argmin(own.agreement_with_experts.unlabelled))
    assert found["least_alike"][0]["trajectory_id"] == str(ids[worst])
    top = int(np.nanargmax(own.influence))
    assert found["most_influential"][0]["trajectory_id"] == str(ids[top])
    for name in ("likeness", "shares", "influence", "directions"):
        assert (tmp_path / "figures" / f"{name}.png").exists()
    assert str(ids[top]) in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("few_strengths")
def test_diagnosis_as_json_is_all_there_is_on_standard_output(folder, run, tmp_path):
    found = read_json(run("diagnose", folder, *DIAGNOSE, "--influential", 0, "--json", "--out", tmp_path))
    assert found == read_json((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert found["most_influential"] == []
    assert found["trajectories"] == {"expert": 12, "unlabelled": 10}
    assert not (tmp_path / "figures" / "influence.png").exists()


@pytest.mark.usefixtures("few_strengths")
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
        ([*SPLIT, "--method", "em"], "--method em has no penalty of MESSI to diagnose: omit --method"),
    ],
)
def test_what_cannot_be_diagnosed_is_one_sentence(folder, fails, tmp_path, words, message):
    assert message in fails("diagnose", folder, *words, "--out", tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cv", "1"], "cv=1: at least two folds are needed"),
        (["--groups", "role"], "groups names one group only: nothing can be held out"),
    ],
)
def test_what_cannot_be_held_out_is_said_before_the_fit(folder, capsys, tmp_path, words, message):
    assert cli.main(["diagnose", str(folder), *SPLIT, *words, "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(tmp_path.iterdir())


def test_one_expert_that_ends_has_nobody_to_be_judged_by(fails, tmp_path):
    place = park(tmp_path / "park", **EPISODES)
    line = fails("diagnose", place, *ONE_EPISODE, "--out", tmp_path / "out")
    assert "nothing can be held out to judge the unlabelled ones; give at least two with --expert" in line


# ------------------------------------------------------------ pages


@pytest.mark.slow
@pytest.mark.usefixtures("few_strengths")
@pytest.mark.parametrize(
    ("words", "summary", "title"),
    [
        (["select", *SMALL], "select.json", "Candidates"),
        (
            ["diagnose", *SPLIT, "--n-unlabelled", "10", "--cv", "2", "--influential", "0"],
            "diagnosis.json",
            "Effect of the penalty",
        ),
    ],
)
def test_a_page_opens_with_the_words_of_the_summary_and_is_left_out_if_asked(
    folder, run, tmp_path, words, summary, title
):
    command, *rest = words
    run(command, folder, *rest, "--out", tmp_path / "a")
    found, page = (
        read_json((tmp_path / "a" / summary).read_text(encoding="utf-8")),
        Page(tmp_path / "a" / "report.html"),
    )
    for text in found["in_words"]:
        assert as_sentence(text) in page.text
    assert page.text.index(as_sentence(found["in_words"][0])) < page.text.index(title)
    assert {"figures/use.png", "figures/use.svg", "report.html"} <= set(found["files"])
    assert "Glossary" in page.text
    run(command, folder, *rest, "--no-report", "--out", tmp_path / "b")
    assert not (tmp_path / "b" / "report.html").exists()
    assert not (tmp_path / "b" / "figures").exists()


@pytest.mark.slow
def test_the_page_of_a_choice_with_intervals_says_what_they_settle(folder, run, tmp_path):
    said = run("select", folder, *SMALL, "--bootstrap", 3, "--out", tmp_path)
    assert "The chosen fit, penalty included, under resampling (not a test of any weight):" in said
    assert "95 % interval, resampled" in Page(tmp_path / "report.html").text
