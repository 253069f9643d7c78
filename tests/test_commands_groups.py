"""`--by COLUMN` and `--groups COLUMN`: in terminal, file and page what the library says, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from folders import read_json
from numpy.testing import assert_allclose
from pages import Page
from test_small_sample import by_definition

from messirl import MaxEntIRL, estimation_table, load, read_problem
from messirl.app import cli
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.split import Split
from messirl.inference.paired_gain import paired_gain
from messirl.io import write_problem
from messirl.paper.synthetic import maze, museum

GUIDES = ["--expert", "who = guide and day <= 2"]
THIRSTY = ["--expert", "thirsty = true"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders, read by all tests and changed by none."""
    place = tmp_path_factory.mktemp("folders")
    for example in (museum, maze):
        write_problem(example().problem, place / example.__name__)
    return {"museum": place / "museum", "maze": place / "maze"}


def summary(place, name="fit"):
    return read_json((place / f"{name}.json").read_text(encoding="utf-8"))


# ------------------------------------------------------------ --by


@pytest.mark.slow
def test_a_diagnosis_says_what_each_group_is_worth(made, run, tmp_path):
    words = ["--unlabelled", "who != guide", "--by", "who", "--influential", "0", "--out", tmp_path]
    said = run("diagnose", made["museum"], *GUIDES, *words)
    use, likeness = summary(tmp_path, "diagnosis")["by"]
    assert (use["measure"], likeness["measure"]) == ("use", "likeness")
    assert [group["name"] for group in use["groups"]] == ["class", "tourist"]
    assert "helps" in use["sentence"]
    assert f"{use['sentence']}." in summary(tmp_path, "diagnosis")["in_words"], "the verdict has it too"
    assert use["sentence"] in said
    assert "tourist" in likeness["sentence"].split(" is clearly above the others")[0]
    page = Page(tmp_path / "report.html")
    assert "groups" in {a["id"] for a in page.of("section")}
    assert "Using each group alone, by who" in page.text
    assert {"by_use.svg", "by_likeness.svg"} <= {path.name for path in (tmp_path / "figures").iterdir()}


@pytest.mark.slow
def test_a_fit_breaks_held_out_scores_and_likeness_down(made, run, tmp_path):
    words = ["--unlabelled", "who = tourist", "--test", "who = guide and day > 2", "--by", "day", "--out", tmp_path]
    said = run("fit", made["museum"], *GUIDES, *words)
    score, gain, likeness = summary(tmp_path)["by"]
    assert [group["name"] for group in score["groups"]] == ["3", "4", "5"]
    whole = sum(group["value"]["mean"] * group["steps"] for group in score["groups"])
    assert whole / sum(group["steps"] for group in score["groups"]) == pytest.approx(
        summary(tmp_path)["scores"][0]["held_out"]
    )
    gains = sum(group["value"]["mean"] * group["steps"] for group in gain["groups"])
    assert gains / sum(group["steps"] for group in gain["groups"]) == pytest.approx(
        summary(tmp_path)["scores"][0]["gain"]["mean"]
    )
    assert [group["trajectories"] for group in likeness["groups"]] == [125] * 5
    assert [group["steps"] for group in likeness["groups"]] == [1000] * 5
    for one in (score, gain, likeness):
        assert one["sentence"] in said
    assert "Score of held-out trajectories, by day" in Page(tmp_path / "report.html").text


def test_without_held_out_trajectories_the_scores_are_said_to_be_of_what_was_fitted(made, run, tmp_path):
    run("fit", made["maze"], *THIRSTY, "--by", "animal", "--no-baselines", "--out", tmp_path)
    [score] = summary(tmp_path)["by"]
    assert "fitted to" in score["told"]
    assert len(score["groups"]) == 8
    assert "on the trajectories it was fitted to" in Page(tmp_path / "report.html").text


def test_a_choice_breaks_likeness_down(made, run, tmp_path):
    words = ["--unlabelled", "who = tourist", "--by", "day", "--lambdas", "0.1", "--out", tmp_path]
    said = run("select", made["museum"], *GUIDES, *words)
    [likeness] = summary(tmp_path, "select")["by"]
    assert likeness["measure"] == "likeness"
    assert likeness["sentence"] in said
    page = Page(tmp_path / "report.html").text
    assert "Agreement with the expert policy, by day" in page
    assert "are of all experts together, not divided by day" in said
    assert "are of all experts together, not divided by day" in page
    assert any("--by day" in command for command in summary(tmp_path, "select")["next"] if "diagnose" in command)


# ------------------------------------------------------------ --groups


def test_robust_errors_are_by_individual(made, run, tmp_path):
    """Against the definition, with choices by differences of the policy."""
    said = run("fit", made["maze"], *THIRSTY, "--groups", "animal", "--no-baselines", "--no-report", "--out", tmp_path)
    thirsty = read_problem(made["maze"]).select("thirsty = true")
    labels = np.unique(thirsty.meta["animal"], return_inverse=True)[1]
    by_hand, freedom = by_definition(thirsty.mdp, thirsty.trajectories, load(tmp_path / "model.npz"), labels)
    found = summary(tmp_path)
    assert_allclose([row["degrees_of_freedom"] for row in found["estimates"]], freedom, rtol=2e-3)
    assert_allclose([row["robust_std_error"] for row in found["estimates"]], by_hand, rtol=2e-3)
    assert found["statistics"]["clusters of the robust errors"] == 8
    assert "; robust errors by 8 clusters of trajectories" in said
    assert any("8 different values of animal" in words for words in found["warnings"]), "few clusters are told"


def test_a_table_to_paste_says_how_many_clusters(made, run, tmp_path):
    words = ["--groups", "animal", "--no-baselines", "--no-report", "--out", tmp_path, "--table", tmp_path / "t.tex"]
    run("fit", made["maze"], *THIRSTY, *words)
    assert "Clusters of the robust errors & $8$" in (tmp_path / "t.tex").read_text(encoding="utf-8")


def test_held_out_gains_are_paired_by_individual():
    problem = maze().problem
    split = Split(expert="thirsty = true and animal != A7 and animal != A8", test="animal = A7 or animal = A8")
    split = Split(**{**vars(split), "unlabelled": "thirsty = false"})
    record = fit(problem, split, FitSettings(groups="animal"))
    plain = fit(problem, split, FitSettings())
    test = problem.select("animal = A7 or animal = A8")
    alone = next(i for i, score in enumerate(record.scores) if score.name == "MaxEnt-IRL")
    expert = problem.select(split.expert).trajectories
    base = MaxEntIRL(theta_max=500.0, max_iter=500).fit(problem.mdp, expert)
    logs = record.model._log_likelihood(test.trajectories), base._log_likelihood(test.trajectories)
    steps = test.trajectories.lengths - 1
    gain = paired_gain(*logs, steps, cluster=test.meta["animal"])
    own = record.scores[0].gain
    assert record.scores[alone].gain is None
    assert_allclose([own.mean, own.low, own.high], [gain.mean, gain.low, gain.high], rtol=1e-3)
    assert_allclose(plain.scores[0].gain.mean, own.mean)
    assert abs(plain.scores[0].gain.low - own.low) > 1e-4, "two animals are not twenty trajectories"


@pytest.mark.filterwarnings("ignore::messirl.inference.FewClustersWarning")
def test_clusters_are_counted_in_the_table():
    problem = maze().problem.select("thirsty = true")
    model = MaxEntIRL(theta_max=500.0).fit(problem.mdp, problem.trajectories)
    assert estimation_table(model, problem.trajectories).n_clusters is None
    assert estimation_table(model, problem.trajectories, problem.meta["animal"]).n_clusters == 8


# ------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("command", "folder", "words", "message"),
    [
        ("fit", "museum", ["--by", "dya"], "--by dya: trajectory_meta has no such column; .*did you mean 'day'"),
        ("fit", "maze", ["--groups", "animals"], "--groups animals: trajectory_meta has no such column"),
        (
            "fit",
            "museum",
            [*GUIDES, "--unlabelled", "who = tourist", "--groups", "day", "--method", "em"],
            "--groups has no effect with --method em and no --test",
        ),
        ("select", "museum", [*GUIDES, "--by", "day"], "--by has no effect without --test and --unlabelled"),
        ("fit", "maze", ["--expert", "animal = A1", "--groups", "animal"], "same value for every expert trajectory"),
    ],
)
def test_what_makes_no_groups_is_refused_in_one_sentence(made, capsys, tmp_path, command, folder, words, message):
    assert cli.main([command, str(made[folder]), *words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.search(message, said), said


def test_an_individual_that_is_not_known_is_not_one_more(made):
    problem = maze().problem
    animal = problem.meta["animal"].copy()
    animal[[0, 3]] = None
    unknown = type(problem)(problem.mdp, problem.trajectories, {**problem.meta, "animal": animal})
    with pytest.raises(ValueError, match="`groups` animal is empty for 2 expert trajectories: fill it in"):
        fit(unknown, Split(expert="thirsty = true"), FitSettings(groups="animal"))


def test_an_animal_in_experts_and_test_is_told():
    split = Split(expert="thirsty = true and trajectory_id < 40", test="thirsty = true and trajectory_id >= 35")
    with pytest.raises(ValueError, match="in both `test` and `expert`"):
        fit(maze().problem, split, FitSettings(groups="animal"))
    split = Split(expert="trajectory_id < 35", test="trajectory_id >= 35 and trajectory_id < 60")
    record = fit(maze().problem, split, FitSettings(groups="animal", baselines=False))
    assert any("1 of the values of animal are in both `expert` and `test`" in words for words in record.warnings)
