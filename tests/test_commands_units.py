"""What the commands say where units, box, penalty or data decide more than the experts do."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from folders import grid, read_json
from pages import Page

from messirl.app import cli
from messirl.io import read_problem, write_problem

DATA = ["--expert", "role = expert"]
BOTH = [*DATA, "--unlabelled", "role = unlabelled", "--cv", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return grid(tmp_path_factory.mktemp("units") / "grid")


def in_units(folder: Path, target: Path, factor: list[float], **changes: object) -> Path:
    """The folder once more, its features multiplied."""
    problem = read_problem(folder)
    mdp = problem.mdp.replace(
        features=problem.mdp.features * np.array(factor), feature_names=problem.mdp.feature_names, **changes
    )
    write_problem(type(problem)(mdp, problem.trajectories, problem.meta, xy=problem.xy), target)
    return target


def fitted(capsys, folder, out, *words):
    code = cli.main(["fit", str(folder), *DATA, "--out", str(out), *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return read_json((out / "fit.json").read_text(encoding="utf-8")), said


def test_a_weight_on_theta_max_is_named_in_the_terminal_in_fit_json_and_on_the_page(folder, tmp_path, capsys):
    small = in_units(folder, tmp_path / "small", [1.0, 1e-4, 1.0])
    found, said = fitted(capsys, small, tmp_path / "out")
    assert found["held"]["box"] == ["f_up"]
    assert "500: the weight of 'f_up' is at its bound" in said.err
    page = Page(tmp_path / "out" / "report.html").text
    assert "theta_max=500: the weight of 'up' is at its bound" in page  # as everywhere on the page
    assert "f_up" not in page
    found, said = fitted(capsys, folder, tmp_path / "plain", "--no-report")
    assert found["held"]["box"] == []
    assert "theta_max" not in said.err


@pytest.mark.parametrize("factor", [1e-5, 1e6])
def test_a_feature_in_another_unit_changes_no_other_weight(folder, tmp_path, capsys, factor):
    other = in_units(folder, tmp_path / "other", [1.0, factor, 1.0])
    options = ["--no-report", "--no-baselines", "--theta-max", "none"]
    plain, _ = fitted(capsys, folder, tmp_path / "a", *options)
    found, _ = fitted(capsys, other, tmp_path / "b", *options)
    for name in ("f_right", "f_mud"):
        assert found["theta"][name] == pytest.approx(plain["theta"][name], rel=1e-4)
    assert found["theta"]["f_up"] * factor == pytest.approx(plain["theta"]["f_up"], rel=1e-4)
    assert found["statistics"]["log-likelihood"] == pytest.approx(plain["statistics"]["log-likelihood"], rel=1e-6)


def test_a_weight_that_the_penalty_holds_is_named(folder, tmp_path, capsys):
    small = in_units(folder, tmp_path / "small", [1.0, 1e-3, 1.0])
    found, said = fitted(capsys, small, tmp_path / "out", "--ridge", "0.1", "--no-report")
    assert found["held"]["penalty"] == ["f_up"]
    assert "the penalty shrinks the weight of 'f_up'" in said.err


def test_check_says_where_features_differ_in_scale(folder, tmp_path, capsys):
    unequal = in_units(folder, tmp_path / "unequal", [1.0, 1e5, 1.0])
    assert cli.main(["check", str(unequal)]) == 0
    said = capsys.readouterr().err
    assert "the features differ in scale by" in said
    assert "'f_up'" in said
    assert cli.main(["check", str(folder)]) == 0
    assert "differ in scale" not in capsys.readouterr().err


def test_a_start_that_excludes_what_was_seen_is_reported_by_check_and_refused_by_fit(folder, tmp_path, capsys):
    odd = in_units(folder, tmp_path / "odd", [1.0, 1.0, 1.0], start=np.eye(16)[5])
    assert cli.main(["check", str(odd)]) == 2
    assert "start" in capsys.readouterr().out
    assert cli.main(["fit", str(odd), *DATA, "--out", str(tmp_path / "out")]) == 2
    assert "where start is 0 (as do 11 others): give the state a weight" in capsys.readouterr().err


def test_values_of_1e200_are_named_by_their_column(folder, tmp_path, capsys):
    huge = tmp_path / "huge"
    shutil.copytree(grid(tmp_path / "csv", "csv"), huge)
    states = (huge / "states.csv").read_text(encoding="utf-8").replace(",1.0,", ",1e200,", 1)
    (huge / "states.csv").write_text(states, encoding="utf-8")
    assert cli.main(["check", str(huge)]) == 2
    assert "1e+200, outside the supported range: divide it by 1e200" in capsys.readouterr().out


@pytest.mark.slow
def test_select_and_diagnose_recommend_the_same(folder, tmp_path, capsys):
    assert cli.main(["select", str(folder), *BOTH, "--out", str(tmp_path / "s")]) == 0
    selected = capsys.readouterr().out
    assert cli.main(["diagnose", str(folder), *BOTH, "--influential", "0", "--out", str(tmp_path / "d")]) == 0
    diagnosed = capsys.readouterr().out
    choice = read_json((tmp_path / "s" / "select.json").read_text(encoding="utf-8"))
    found = read_json((tmp_path / "d" / "diagnosis.json").read_text(encoding="utf-8"))
    assert found["recommended"] == {"candidate": choice["chosen"]["candidate"], "reason": choice["reason"]}
    assert found["verdict"] == choice["verdict"]
    assert found["use"] == {name: value for name, value in choice["use"].items() if name != "sentence"}
    assert choice["in_words"][1] in selected
    assert choice["in_words"][1] == found["in_words"][0]
    assert choice["use"]["sentence"] in diagnosed
    assert f"recommended: {choice['chosen']['candidate']}" in diagnosed


def test_a_score_below_chance_is_explained_where_it_appears(folder, tmp_path, capsys):
    steps = ["--theta-max", "none", "--solver", "paper", "--max-iter", "3", "--step-size", "40"]
    found, said = fitted(capsys, folder, tmp_path / "out", *steps)
    own, chance = (row["expert"] for row in (found["scores"][0], found["scores"][-1]))
    assert own < chance
    for place in (said.err, Page(tmp_path / "out" / "report.html").text, " ".join(found["warnings"])):
        assert "of the uniform policy: the fit did not converge" in place
