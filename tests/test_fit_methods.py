"""`messirl fit --method NAME` takes every method of the registry that fits the data, and says why another does not."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from folders import grid, roads
from problems import problem

from messirl import read_problem
from messirl.app import cli
from messirl.data.problem import Problem
from messirl.estimators.registry import METHODS
from messirl.io.folder.writer import write_problem

DATA = ["--expert", "role = expert", "--unlabelled", "role = unlabelled", "--test", "role = test"]
QUICK = {  # options that make a fit short, and one that is needed
    "Bayesian": ["--n-samples", "20", "--n-warm-up", "20"],
    "Mixture": ["--n-starts", "1", "--max-rounds", "3"],
    "OwnPolicy": ["--n-draws", "10", "--max-rounds", "2"],
    "EM": ["--max-iter", "20"],
    "Several": ["--groups", "half"],
    "AbbeelNg": ["--max-policies", "10"],
    "MaxMargin": ["--max-policies", "10"],
    "MWAL": ["--rounds", "20"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The problem of `folders.grid`, with a column that names one of two individuals."""
    place = tmp_path_factory.mktemp("methods")
    found = read_problem(grid(place / "plain"))
    half = np.array([f"n{i % 2}" for i in range(len(found.trajectories))], dtype=object)
    write_problem(Problem(found.mdp, found.trajectories, {**found.meta, "half": half}, xy=found.xy), place / "halves")
    return place / "halves"


def refused(words, capsys):
    """The error of a command that ends with exit code 2, which is one line."""
    try:
        code = cli.main(words)
    except SystemExit as stop:
        code = stop.code
    err = capsys.readouterr().err
    lines = [line for line in err.splitlines() if ": note: " not in line]
    assert code == 2, err
    return lines[-1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_fitted_saved_shown_and_reported(name, folder, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["fit", str(folder), *DATA, "--method", name.upper(), *QUICK.get(name, []), "--out", str(out)]
    assert cli.main([*words, "--json"] + ["--no-baselines"] * METHODS[name].maximum_entropy) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((out / "fit.json").read_text(encoding="utf-8"))
    assert found["method"] == METHODS[name].estimator().__name__
    assert len(found["theta"]) in (0, 3)
    assert np.isfinite(found["scores"][0]["held_out"])
    if not METHODS[name].maximum_entropy:
        others = {"MaxEnt-IRL", "uniform policy"} - {METHODS[name].label}
        assert {score["name"] for score in found["scores"][1:]} == others
    page = (out / "report.html").read_text(encoding="utf-8")
    assert METHODS[name].option in page.lower()
    assert cli.main(["show", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["theta"], shown["converged"]) == (found["theta"], found["converged"])
    assert shown["settings"].keys() >= found["settings"].keys()
    words = ["evaluate", str(out), str(folder), "--test", "role = test", "--no-report", "--json", "--out"]
    assert cli.main([*words, str(tmp_path / "evaluate")]) == 0
    assert json.loads(capsys.readouterr().out)["score"] == pytest.approx(found["scores"][0]["held_out"])
    assert cli.main(["sample", str(out), "-n", "2", "--length", "5", "--out", str(tmp_path / "drawn.csv")]) == 0


@pytest.mark.filterwarnings("ignore")
def test_options_of_a_method_reach_its_estimator(folder, tmp_path, capsys):
    def settings(*words):
        asked = ["fit", str(folder), *DATA, *words, "--out", str(tmp_path / words[1]), "--no-report", "--json"]
        assert cli.main(asked) == 0
        return json.loads(capsys.readouterr().out)["settings"]

    assert settings("--method", "dwbc", "--expert-share", "0.25", "--ridge", "0.3")["eta"] == "0.25"
    found = settings("--method", "demodice", "--smoothing", "0.2", "--max-iter", "500")
    assert (found["smoothing"], found["max_iter"], found["alpha"]) == ("0.2", "500", "0.05")
    assert settings("--method", "ssirl", "--no-offset")["offset"] == "False"
    assert settings("--method", "lpal")["lapse"] == "0.01"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "cloning", "--ridge", "1"], "--ridge has no effect with --method cloning, only with maxent"),
        (["--method", "cloning", "--lambda0", "1"], "--lambda0 has no effect with --method cloning, only with messi"),
        (["--method", "messi", "--smoothing", "2"], "--smoothing has no effect with --method messi, only with cloning"),
        (["--method", "ridge", "--ridge", "2"], "--ridge has no effect with --method ridge"),
        (["--method", "lightpooling", "--unlabelled-weight", "0.3"], "--unlabelled-weight has no effect with --method"),
        (["--method", "several"], "--method several fits a reward per expert: name the column .* with --groups"),
        (["--method", "dwbc", "--ridge", "0"], "--ridge 0.0: it must be finite and > 0"),
        (["--method", "demodise"], "did you mean 'demodice'"),
        (["--method", "lpal", "--ratio", "f_up/f_mud"], "--ratio needs standard errors"),
        (["--method", "lpal", "--lapse", "2"], "argument --lapse: '2' is not a number >= 0 and <= 1"),
    ],
)
def test_what_does_not_apply_to_a_method_is_refused(words, message, folder, tmp_path, capsys):
    said = refused(["fit", str(folder), *DATA, *words, "--out", str(tmp_path / "out")], capsys)
    assert re.search(message, said), said


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.unlabelled])
def test_a_method_that_needs_unlabelled_trajectories_says_so(name, folder, capsys, tmp_path):
    words = ["fit", str(folder), "--expert", "role = expert", "--method", name, "--out", str(tmp_path / "out")]
    said = f"--method {name.lower()} needs unlabelled trajectories: name them with --unlabelled"
    assert said in refused(words, capsys)


WITH_GOALS = {name for name, method in METHODS.items() if method.maximum_entropy} - {"OwnPolicy"} | {"uniform"}
UNBOUNDED = ["DemoDICE", "RelativeEntropy", "AbbeelNg", "MaxMargin", "SSIRL", "MWAL", "LPAL", "NgRussell", "Bayesian"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_knows_no_goals_says_so(name, capsys, tmp_path):
    words = ["fit", str(roads(tmp_path / "roads")), "--expert", "role = expert", "--unlabelled", "role = test"]
    groups = ["--groups", "role"] if name == "Several" else []
    words += ["--method", name, *QUICK.get(name, groups)[: len(groups) or None], "--no-baselines", "--no-report"]
    words = [word if word != "half" else "role" for word in words] + ["--out", str(tmp_path / "out")]
    if name in WITH_GOALS:
        assert cli.main(words) == 0
        return
    said = refused(words, capsys)
    assert METHODS[name].estimator().__name__ in said
    assert re.search("goal", said)
    assert re.search("use (MaxEntIRL or )?MESSI|fit one goal at a time", said), said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_method_that_needs_a_discount_or_a_horizon_says_so(name, capsys, tmp_path):
    mdp, expert, unlabelled = problem("episodic")
    role = np.repeat(np.array(["expert", "unlabelled"], dtype=object), [len(expert), len(unlabelled)])
    write_problem(Problem(mdp, expert + unlabelled, {"role": role}), tmp_path / "p")
    said = refused(["fit", str(tmp_path / "p"), *DATA[:4], "--method", name, "--out", str(tmp_path / "out")], capsys)
    assert METHODS[name].estimator().__name__ in said
    assert "a discount below 1, or a horizon" in said or "a discount below 1 or a horizon" in said
