"""`messirl fit --ratio`, `--without` and `--table`: what they say is what the library says, and what they refuse."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from folders import grid, park, read_json, roads
from roads import network, trips
from scipy.stats import chi2
from seeds import generator, pinned

import messirl
from messirl import MaxEntIRL, estimation_table, weight_ratio
from messirl.app import cli
from messirl.app.workflow.hypothesis_tests import parse_ratio
from messirl.io import Problem, read_problem, write_problem

PLAIN = ["--no-baselines", "--no-report"]
WIDE = {"theta_max": 500.0, "max_iter": 500}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders, read by all tests and changed by none."""
    place = tmp_path_factory.mktemp("folders")
    return {"grid": grid(place / "grid"), "roads": roads(place / "roads"), "park": park(place / "park")}


def summary(place):
    return read_json((place / "fit.json").read_text(encoding="utf-8"))


def test_ratios_are_those_of_the_library_in_terminal_file_and_page(made, run, tmp_path):
    words = ["--ratio", "time/turn", "--ratio", "const / time", "--no-baselines", "--out", tmp_path]
    said = run("fit", made["roads"], *words)
    problem = read_problem(made["roads"])
    model = MaxEntIRL(**WIDE).fit(problem.mdp, problem.trajectories)
    own = weight_ratio(estimation_table(model, problem.trajectories), "time", "turn")
    first, second = summary(tmp_path)["ratios"]
    assert (first["name"], second["name"]) == ("time/turn", "const/time")
    assert first["value"] == pytest.approx(own.value, rel=1e-9)
    for name in ("std_error", "robust_std_error", "low", "high", "fieller_low", "fieller_high"):
        wanted = getattr(own, name)  # an interval may have no end, for which JSON has no number
        assert first[name] == (pytest.approx(wanted, rel=1e-6) if np.isfinite(wanted) else None)
    ends = r"\[[-.\dinf]+, [-.\dinf]+\]"
    assert re.search(rf"^time/turn +-?\d+\.\d+ +\d+\.\d+ +{ends} +{ends}$", said, re.MULTILINE)
    assert ">time/turn</th>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_leaving_features_out_is_the_direct_likelihood_ratio_test(made, run, tmp_path):
    said = run(
        "fit", made["roads"], "--without", "turn", "--without", "turn, time", "--no-baselines", "--out", tmp_path
    )
    problem = read_problem(made["roads"])
    mdp, trips = problem.mdp, problem.trajectories
    steps = int((trips.lengths - 1).sum())

    def log_likelihood(columns):
        names = [mdp.feature_names[j] for j in columns]
        some = mdp.replace(features=mdp.features[..., columns], feature_names=names)
        return MaxEntIRL(**WIDE).fit(some, trips).score(trips) * steps

    full = log_likelihood([0, 1, 2])
    tests = summary(tmp_path)["tests"]
    assert [test["without"] for test in tests] == [["turn"], ["time", "turn"]]
    for test, kept, degrees in zip(tests, ([0, 2], [2]), (1, 2), strict=True):
        statistic = 2.0 * (full - log_likelihood(kept))
        assert test["statistic"] == pytest.approx(statistic, rel=1e-6)
        assert test["degrees"] == degrees
        assert test["p"] == pytest.approx(chi2.sf(statistic, degrees), rel=1e-5)
    assert re.search(r"^without turn: likelihood ratio [\d.]+ on 1 degree of freedom, p ", said, re.MULTILINE)
    assert re.search(r"^without time, turn: likelihood ratio [\d.]+ on 2 degrees of freedom, p ", said, re.MULTILINE)
    assert ">time, turn</th>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "begin"), [("t.csv", "name,estimate"), ("t.tex", "% needs"), ("T.HTML", "<table>")])
def test_a_table_has_the_format_of_its_ending_and_replaces_nothing_unasked(made, run, capsys, tmp_path, name, begin):
    place = tmp_path / "tables" / name
    words = ["fit", made["roads"], *PLAIN, "--ratio", "time/turn", "--out", tmp_path / "out", "--table", place]
    said = run(*words)
    text = place.read_text(encoding="utf-8")
    assert text.startswith(begin)
    assert "time/turn" in text
    assert f"table:  {place}" in said
    place.write_text("mine")
    assert cli.main([str(word) for word in words]) == 2
    assert "exists already: give another name, or --force to replace it" in capsys.readouterr().err
    assert place.read_text() == "mine"
    run(*words, "--force")
    assert place.read_text(encoding="utf-8") == text


def test_the_csv_holds_the_estimates(made, run, tmp_path):
    run("fit", made["roads"], *PLAIN, "--out", tmp_path, "--table", tmp_path / "t.csv")
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    theta = messirl.load(tmp_path / "model.npz").theta_
    assert [float(row["estimate"]) for row in rows] == pytest.approx(theta, rel=1e-12)


ERRORS = "needs standard errors, which are valid for a fit to the experts only without a penalty: use --method maxent"
REFUSED = [
    (["@roads", "--ratio", "time"], "--ratio time is not a ratio: give two features separated by a slash"),
    (
        ["@roads", "--ratio", "time/tun"],
        "--ratio time/tun: there is no feature 'tun'; there are time, turn, const; did",
    ),
    (["@roads", "--ratio", "time/time"], "--ratio time/time names one feature twice: name two"),
    (["@roads", "--without", "left"], "--without: there is no feature 'left'; there are time, turn, const"),
    (["@roads", "--without", "time,turn,const"], "--without time,turn,const leaves no feature to fit: name fewer"),
    (["@roads", "--without", "time", "--ridge", "1"], f"--without {ERRORS}"),
    (["@roads", "--ratio", "time/turn", "--theta-prior", "10"], f"--ratio {ERRORS}"),
    (["@grid", "--unlabelled", "role = unlabelled", "--table", "@t.tex"], f"--table {ERRORS}"),
    (["@park", "--expert", "age = 9", "--ratio", "f_green/f_food"], "at least two expert trajectories"),
    (["@roads", "--table", "@t.doc"], "t.doc: the name must end in .csv, .tex or .html"),
    (["@roads", "--table", "@t.csv", "--stars"], "--stars has no effect on a .csv table, which contains p"),
    (["@roads", "--stars"], "--stars has no effect without --table: give --table, or leave --stars out"),
    (
        ["@grid", "--expert", "role = expert", "--objective", "counts", "--without", "f_mud"],
        "fit with --objective choices",
    ),
    (
        ["@x.npz", "--dynamics", "fitted", "--ratio", "a/b"],
        "--ratio needs standard errors, which --dynamics fitted does not have",
    ),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_what_has_no_honest_answer_is_refused_in_one_sentence(made, capsys, tmp_path, words, message):
    places = {f"@{name}": str(place) for name, place in made.items()}
    given = [places.get(word, word.replace("@", f"{tmp_path}/")) for word in words]
    assert cli.main(["fit", *given, *PLAIN, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert message in said
    assert said.startswith("messirl: ")


def test_a_feature_with_a_slash_in_its_name_is_found_where_there_is_one_reading():
    assert parse_ratio("km/h/toll", ["km/h", "toll"]) == ("km/h", "toll")
    with pytest.raises(ValueError, match=r"`ratio` a/b/c can be read in 2 ways: rename a feature"):
        parse_ratio("a/b/c", ["a", "b/c", "a/b", "c"])


def test_a_denominator_that_may_be_zero_is_told(capsys, tmp_path):
    with pinned():  # one estimate in twenty of a weight of zero is clearly not zero
        mdp, random = network(), generator(5)
        some = trips(mdp, 60, 1)
        noise = random.normal(size=mdp.features.shape[:2])[..., None]
    mdp = mdp.replace(
        features=np.concatenate([mdp.features, noise], axis=2), feature_names=[*mdp.feature_names, "noise"]
    )
    write_problem(Problem(mdp, some), tmp_path / "folder")
    words = ["fit", str(tmp_path / "folder"), "--ratio", "time/noise", *PLAIN, "--out", str(tmp_path / "out")]
    assert cli.main(words) == 0
    written = capsys.readouterr()
    assert "the weight of noise may be zero, so time/noise is not bounded" in written.err
    assert "[-inf, inf]" in written.out
    found = summary(tmp_path / "out")
    assert found["ratios"][0]["fieller_low"] is None
    assert any("may be zero" in text for text in found["warnings"])
