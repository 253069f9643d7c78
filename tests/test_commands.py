"""The commands on small folders: what they write is what the library says."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from folders import ROLES, grid, park, read_json, roads
from pages import Page

import messirl
from messirl import MESSI, EMMaxEnt, MaxEntIRL
from messirl.app import cli
from messirl.app.report.common.number_format import as_sentence
from messirl.io import InputError, read_problem, read_trajectories, select
from messirl.similarity import RBF

SPLIT = ["--expert", "role = expert", "--unlabelled", "role = unlabelled"]
HELD_OUT = ["--test", "role = test"]
PLAIN = ["--no-baselines", "--no-report"]
HEAVY = ("numpy", "scipy", "numba", "sklearn", "matplotlib", "pyarrow", "rich")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folders, read by all tests and changed by none."""
    place = tmp_path_factory.mktemp("folders")
    return {"grid": grid(place / "grid"), "roads": roads(place / "roads"), "park": park(place / "park")}


@pytest.fixture
def fitted(made, run, tmp_path):
    """The path of a model fitted to the folder of that name."""

    def fit(name, *words):
        run("fit", made[name], *words, *PLAIN, "--out", tmp_path / name, "--force")
        return tmp_path / name / "model.npz"

    return fit


def parts(folder, *filters):
    """The MDP of a folder, and the trajectories that each filter takes."""
    problem = read_problem(folder)
    return problem.mdp, *(problem.trajectories[np.flatnonzero(select(problem.meta, text))] for text in filters)


# ------------------------------------------------------------ help


@pytest.mark.parametrize("words", [[], *([name] for name in cli.COMMANDS)], ids=lambda w: " ".join(w) or "messirl")
def test_help_explains_itself_and_imports_nothing_heavy(words):
    code = f"""
import sys
from messirl.app.cli import main
try:
    main({[*words, "--help"]!r})
except SystemExit as left:
    assert left.code == 0, left.code
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert done.stdout.startswith(f"usage: {' '.join(['messirl', *words])}")


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--help"])
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^ +{name}\b", said, re.MULTILINE) for name in cli.COMMANDS)


def test_the_version_is_the_package_s(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"messirl {messirl.__version__}\n"


# ------------------------------------------------------------ fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few experts may not settle a weight
def test_fit_is_the_estimator_s_own_fit(made, fitted):
    mdp, expert, unlabelled = parts(made["grid"], "role = expert", "role = unlabelled")
    wide = {"theta_max": 500.0, "max_iter": 500}
    own = {
        "messi": MESSI(RBF("median", standardise=True), lambda0=0.2, **wide).fit(mdp, expert, unlabelled),
        "maxent": MaxEntIRL(**wide).fit(mdp, expert),
        "em": EMMaxEnt(steps_per_round=7, theta_max=20.0, max_iter=30, solver="paper", step_size=0.05),
    }
    with pytest.warns(match="did not converge"):
        own["em"].fit(mdp, expert, unlabelled)
    words = {
        "messi": [*SPLIT, "--lambda0", "0.2"],
        "maxent": SPLIT[:2],
        "em": [*SPLIT, "--eta", "7", "--theta-max", "20", "--max-iter", "30", "--solver", "paper", "--step-size=0.05"],
    }
    for method, model in own.items():
        read = messirl.load(fitted("grid", "--method", method, *words[method]))
        assert type(read) is type(model)
        np.testing.assert_allclose(read.theta_, model.theta_, rtol=1e-12, atol=1e-12)


def test_the_method_follows_from_whether_there_are_unlabelled_trajectories(fitted):
    assert type(messirl.load(fitted("grid", *SPLIT))) is MESSI
    assert type(messirl.load(fitted("grid", *SPLIT[:2]))) is MaxEntIRL


def test_json_is_all_there_is_on_standard_output_and_progress_is_on_standard_error(made, capsys, tmp_path):
    words = ["fit", str(made["grid"]), *SPLIT, *HELD_OUT, "--json", "--out", str(tmp_path)]
    assert cli.main(words) == 0
    written = capsys.readouterr()
    found = read_json(written.out)
    assert found == read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))
    assert found["trajectories"] == ROLES
    assert found["method"] == "MESSI"
    assert found["command"] == f"messirl fit {made['grid']} --expert 'role = expert' --unlabelled " + (
        f"'role = unlabelled' --test 'role = test' --json --out {tmp_path}"
    )
    assert "fit: 0 of 500" in written.err.splitlines()
    assert all(line.startswith(("fit: ", "messirl: ")) for line in written.err.splitlines())


def test_a_fit_stands_beside_its_baselines_with_held_out_scores(made, run, tmp_path):
    said = run("fit", made["grid"], *SPLIT, *HELD_OUT, "--lambda0", 0.2, "--out", tmp_path)
    scores = read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))["scores"]
    names = ["MESSI", "MaxEnt-IRL", "L2", "L2, standardised", "complete graph", "base policy", "base policy with L2"]
    names += ["light pooling", "light pooling with L2", "pooling", "uniform policy"]
    assert [row["name"] for row in scores] == names
    assert all(name in said for name in names)
    _, expert, test = parts(made["grid"], "role = expert", "role = test")
    model = messirl.load(tmp_path / "model.npz")
    assert scores[0]["held_out"] == pytest.approx(model.score(test), abs=1e-12)
    assert scores[0]["expert"] == pytest.approx(model.score(expert), abs=1e-12)
    assert scores[0]["held_out"] > scores[-1]["held_out"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in names)
    assert (tmp_path / "figures" / "maps.png").exists()
    assert str(tmp_path / "report.html") in said
    verdict = read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))["verdict"]
    assert verdict["best"] == max(scores, key=lambda row: row["held_out"])["name"]
    assert verdict["sentence"] in said
    assert "over experts only" in said
    assert re.search(r"-\d\.\d{4} +[-+]\d\.\d{4} \[[-+]\d\.\d{4}, [-+]\d\.\d{4}\]  MESSI", said)


def test_a_model_with_a_base_policy_is_saved_shown_and_evaluated(made, fitted, run, tmp_path):
    place = fitted("grid", *SPLIT, "--reference", "unlabelled", "--objective", "choices", "--unlabelled-weight", 0.1)
    model, mdp = messirl.load(place), parts(made["grid"])[0]
    _, expert, others = parts(made["grid"], "role = expert", "role = unlabelled")
    own = MESSI(reference="unlabelled", objective="choices", unlabelled_weight=0.1).fit(mdp, expert, others)
    assert model.score(expert) == pytest.approx(own.score(expert), rel=1e-9)
    assert "reference           unlabelled" in run("show", place)
    said = run(
        "select", made["grid"], *SPLIT, "--reference", "unlabelled", "--lambdas", "0.1", "--out", tmp_path / "select"
    )
    assert "--reference unlabelled" in said
    assert "reference           array (16, 4)" in run("show", tmp_path / "select" / "model.npz")


def test_unlabelled_trajectories_are_no_part_of_a_maxent_fit(made, run, tmp_path):
    run("fit", made["grid"], *SPLIT, "--method", "maxent", *PLAIN, "--out", tmp_path)
    assert read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))["scores"][0]["fit_on"] == "expert"


def test_without_report_and_baselines_there_are_the_model_and_its_numbers(made, run, tmp_path):
    run("fit", made["grid"], *SPLIT, *PLAIN, "--out", tmp_path / "deep" / "place")
    assert sorted(p.name for p in (tmp_path / "deep" / "place").iterdir()) == ["fit.json", "model.npz"]


@pytest.mark.filterwarnings("ignore:MaxEntIRL did not converge")  # as chance may have it, hardly anything holds one
def test_trips_with_goals_are_fitted_with_standard_errors(made, run, tmp_path):
    said = run("fit", made["roads"], *SPLIT[:2], *HELD_OUT, "--out", tmp_path)
    found = read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))
    mdp, expert = parts(made["roads"], "role = expert")
    own = messirl.estimation_table(MaxEntIRL(max_iter=500).fit(mdp, expert), expert)
    for row, estimate, error in zip(found["estimates"], own.estimate, own.robust_std_error, strict=True):
        assert row["estimate"] == pytest.approx(estimate, rel=1e-9)
        assert row["robust_std_error"] == pytest.approx(error, rel=1e-6)
    assert "robust se" in said
    assert found["statistics"]["log-likelihood"] == pytest.approx(own.log_likelihood, rel=1e-9)


def test_only_the_features_asked_for_are_fitted(run, made, tmp_path):
    run("fit", made["roads"], "--features", "const, time", *PLAIN, "--out", tmp_path)
    assert messirl.load(tmp_path / "model.npz").mdp_.feature_names == ("const", "time")


def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_draws(fitted):
    drawn = [*SPLIT, "--n-expert", "5", "--n-unlabelled", "8"]
    first = fitted("grid", *drawn, "--seed", 3).read_bytes()
    again = fitted("grid", *drawn, "--seed", 3)
    assert again.read_bytes() == first
    theta = messirl.load(again).theta_
    assert not np.allclose(messirl.load(fitted("grid", *drawn, "--seed", 4)).theta_, theta)


def test_experts_are_those_not_named_otherwise(made, run, tmp_path):
    said = run("fit", made["grid"], *SPLIT[2:], *HELD_OUT, *PLAIN, "--json", "--out", tmp_path)
    assert read_json(said)["trajectories"] == ROLES


def test_what_is_expert_and_unlabelled_is_expert_alone_and_said(made, capsys, tmp_path):
    words = ["--expert", "role = expert", "--n-expert", "4", "--unlabelled", "role != test", *PLAIN, "--json"]
    assert cli.main(["fit", str(made["grid"]), *words, "--out", str(tmp_path)]) == 0
    written = capsys.readouterr()
    assert read_json(written.out)["trajectories"] == {"expert": 4, "unlabelled": 28}
    assert "messirl: note: 4 of the trajectories of --unlabelled are the expert's" in written.err


def test_filters_take_what_they_say(made, run, tmp_path):
    problem = read_problem(made["grid"])
    right = (problem.meta["role"] == "expert") & (problem.meta["x"] >= 2)
    assert 0 < right.sum() < ROLES["expert"]
    said = run("fit", made["grid"], "--expert", "role = expert and x >= 2", *PLAIN, "--json", "--out", tmp_path)
    assert read_json(said)["trajectories"] == {"expert": right.sum()}


def test_filters_know_the_ids_of_trajectories(made, run, tmp_path):
    said = run("fit", made["grid"], "--test", "trajectory_id >= 30", *PLAIN, "--json", "--out", tmp_path)
    assert read_json(said)["trajectories"] == {"expert": 30, "test": 10}
    words = ["--test", "trajectory_id = 31", "--json", "--out", tmp_path / "one"]
    said = run("evaluate", tmp_path / "model.npz", made["grid"], *words)
    assert read_json(said)["trajectories"] == 1
    said = run("fit", made["park"], "--test", "trajectory_id = bob", *PLAIN, "--json", "--out", tmp_path / "park")
    assert read_json(said)["trajectories"] == {"expert": 2, "test": 1}


def test_the_notes_of_a_fit_are_said_and_kept(made, capsys, tmp_path):
    assert cli.main(["fit", str(made["grid"]), *SPLIT, *PLAIN, "--max-iter", "1", "--out", str(tmp_path)]) == 0
    written = capsys.readouterr()
    assert re.search(r"^messirl: note: MESSI did not converge", written.err, re.MULTILINE)
    assert "did not converge" in written.out
    assert "did not converge" in read_json((tmp_path / "fit.json").read_text(encoding="utf-8"))["warnings"][0]


def test_a_folder_of_csv_with_labels_goes_all_the_way(made, run, tmp_path):
    run("check", made["park"])
    said = run("fit", made["park"], "--expert", "age < 35", "--unlabelled", "age >= 35", "--out", tmp_path)
    assert "f_green" in said
    assert "café" in (tmp_path / "report.html").read_text(encoding="utf-8")
    run("sample", tmp_path / "model.npz", "--length", 3, "--out", tmp_path / "drawn.csv")
    table, _ = read_trajectories(tmp_path / "drawn.csv", read_problem(made["park"]).mdp)
    assert table == messirl.load(tmp_path / "model.npz").sample(10, 3, random_state=0)
    assert "café" in (tmp_path / "drawn.csv").read_text(encoding="utf-8")


# ------------------------------------------------------------ evaluate, sample


@pytest.mark.parametrize("name", ["grid", "roads"])
def test_evaluate_gives_the_model_s_own_score(made, run, fitted, tmp_path, name):
    path = fitted(name, *SPLIT[:2])
    model = messirl.load(path)
    _, test = parts(made[name], "role = test")
    words = ["evaluate", path, made[name], *HELD_OUT, "--out", tmp_path / "evaluate"]
    found = read_json(run(*words, "--json"))
    assert found["score"] == pytest.approx(model.score(test), abs=1e-12)
    assert found["log_likelihood"] == pytest.approx(model.score(test) * (test.lengths - 1).sum(), abs=1e-9)
    assert found["next_state_accuracy"] == pytest.approx(messirl.next_state_accuracy(model, test), abs=1e-12)
    assert found["trajectories"] == len(test)
    assert f"{model.score(test):.4f}" in run(*words, "--force")
    assert read_json((tmp_path / "evaluate" / "evaluate.json").read_text(encoding="utf-8"))["score"] == found["score"]
    page = Page(tmp_path / "evaluate" / "report.html")
    assert as_sentence(found["in_words"][0]) in page.text
    assert len(page.of("img")) == 1


def test_evaluate_takes_all_trajectories_unless_told(made, run, fitted, tmp_path):
    words = ["--json", "--no-report", "--out", tmp_path / "evaluate"]
    found = read_json(run("evaluate", fitted("grid", *SPLIT[:2]), made["grid"], *words))
    assert found["trajectories"] == sum(ROLES.values())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_sample_writes_reads_back_as_what_was_drawn(run, fitted, tmp_path, suffix):
    path = fitted("grid", *SPLIT[:2])
    out = tmp_path / "new" / f"drawn{suffix}"
    run("sample", path, "-n", 7, "--length", 12, "--seed", 5, "--out", out)
    assert read_trajectories(out)[0] == messirl.load(path).sample(7, 12, random_state=5)


@pytest.mark.parametrize("goal", ["crossing 1-3", "8"])
def test_sample_goes_to_a_goal_by_name_or_number(made, run, fitted, tmp_path, goal):
    path = fitted("roads", *SPLIT[:2])
    run("sample", path, "-n", 4, "--goal", goal, "--out", tmp_path / "drawn.csv")
    found, _ = read_trajectories(tmp_path / "drawn.csv", read_problem(made["roads"]))
    assert found.last.tolist() == [8, 8, 8, 8]
    assert "crossing 1-3" in (tmp_path / "drawn.csv").read_text(encoding="utf-8")


# ------------------------------------------------------------ show, check


def test_show_says_what_a_folder_holds(made, run):
    said = run("show", made["grid"])
    assert re.search(r"^states +16$", said, re.MULTILINE)
    assert re.search(r"^horizon +none$", said, re.MULTILINE)
    assert re.search(r"^deterministic +yes$", said, re.MULTILINE)
    assert re.search(r"^  role +unlabelled \(20\), expert \(12\), test \(8\)$", said, re.MULTILINE)
    found = read_json(run("show", made["roads"], "--json"))
    assert (found["states"], found["trajectories"], found["goals"]) == (25, 60, 5)
    assert found["feature names"] == ["time", "turn", "const"]


def test_show_sums_up_columns_of_many_values(run, tmp_path):
    rows = "".join(f"{i},0,gate\n" for i in range(30))
    meta = "trajectory_id,age,who\n" + "".join(f"{i},{i + 0.5},v{i}\n" for i in range(30))
    steps = f"trajectory_id,step,state\n{rows}"
    said = run("show", park(tmp_path / "park", trajectories__csv=steps, trajectory_meta__csv=meta))
    assert re.search(r"age +0.5 to 29.5, 30 different values", said)
    assert re.search(r"who +v0 \(1\), .* and 22 more", said)


def test_show_says_what_a_model_learnt(run, fitted):
    path = fitted("grid", *SPLIT)
    found = read_json(run("show", path, "--json"))
    model = messirl.load(path)
    assert found["theta"] == dict(zip(["f_right", "f_up", "f_mud"], model.theta_.tolist(), strict=True))
    assert found["method"] == "MESSI"
    (shown,) = re.findall(r"f_mud +(\S+)", run("show", path))
    assert float(shown) == pytest.approx(found["theta"]["f_mud"], rel=1e-5)


@pytest.mark.drawn
@pytest.mark.parametrize(("suffix", "begin"), [(".png", b"\x89PNG"), (".svg", b"<?xml")])
def test_show_draws_where_a_folder_s_trajectories_go(made, run, tmp_path, suffix, begin):
    run("show", made["grid"], "--picture", tmp_path / "new" / f"visits{suffix}")
    assert (tmp_path / "new" / f"visits{suffix}").read_bytes().startswith(begin)


def test_a_folder_that_is_fine_is_said_to_be(made, run):
    assert "is fine: MDP(25 states" in run("check", made["roads"])
    found = read_json(run("check", made["grid"], "--json"))
    assert found["ok"] is True
    assert found["faults"] == []


def test_a_folder_that_one_stands_in_is_called_by_its_name(run, monkeypatch, tmp_path):
    for given, stood_in in ((".", park(tmp_path / "park")), ("..", tmp_path / "park" / "below")):
        stood_in.mkdir(exist_ok=True)
        monkeypatch.chdir(stood_in)
        assert run("check", given).startswith("park is fine: ")
        assert read_json(run("check", given, "--json"))["folder"] == "park"
    monkeypatch.chdir(tmp_path / "park" / "below")
    with pytest.raises(InputError, match=r"^below: holds neither states"):
        read_problem(".")


def test_check_says_everything_that_is_wrong_at_once(capsys, tmp_path):
    wrong = park(
        tmp_path / "park",
        edges__csv="from,to,action\ngate,moon,east\npond,gate,west\n",
        trajectories__csv="trajectory_id,step,state\nanna,0,gate\nanna,2,sea\n",
        trajectory_meta__csv="trajectory_id,age\nzoe,9\n",
        problem__json="{}",
    )
    assert cli.main(["check", str(wrong)]) == 2
    written = capsys.readouterr()
    for part in (
        "moon",
        "'sea'",
        "step 2 of trajectory 'anna' follows step 0",
        "zoe",
        "has no discount",
        "5 faults in",
    ):
        assert part in written.out
    assert "edges.csv, row 2: " in written.out
    assert "Traceback" not in written.err + written.out
    assert cli.main(["check", str(wrong), "--json"]) == 2
    found = read_json(capsys.readouterr().out)
    assert found["ok"] is False
    files = {row["file"] for row in found["faults"]}
    assert files == {"edges.csv", "trajectories.csv", "trajectory_meta.csv", "problem.json"}
    assert all(row["what"] and row["remedy"] for row in found["faults"])


# ------------------------------------------------------------ convert


def same(one, other):
    assert one.trajectories == other.trajectories
    assert (one.mdp.transitions != other.mdp.transitions).nnz == 0
    np.testing.assert_array_equal(one.mdp.features, other.mdp.features)
    for name in ("discount", "horizon", "state_names", "action_names", "feature_names"):
        assert getattr(one.mdp, name) == getattr(other.mdp, name)
    assert {k: v.tolist() for k, v in one.meta.items()} == {k: v.tolist() for k, v in other.meta.items()}


@pytest.mark.parametrize("name", ["grid", "roads", "park"])
def test_convert_to_csv_and_back_is_the_same_problem(made, run, tmp_path, name):
    run("convert", made[name], tmp_path / "csv", "--format", "csv")
    run("convert", tmp_path / "csv", tmp_path / "parquet")
    assert (tmp_path / "csv" / "states.csv").exists()
    assert (tmp_path / "parquet" / "states.parquet").exists()
    for folder in ("csv", "parquet"):
        same(read_problem(tmp_path / folder), read_problem(made[name]))


def test_a_gymnasium_environment_becomes_a_folder_that_can_be_fitted(run, tmp_path):
    pytest.importorskip("gymnasium")
    lake = tmp_path / "lake"
    words = ["--discount", 0.99, "--n-expert", 5, "--n-unlabelled", 15]
    run("convert", "gym:FrozenLake-v1", lake, *words)
    problem = read_problem(lake)
    assert (problem.mdp.n_states, problem.mdp.n_actions, problem.mdp.discount) == (17, 4, 0.99)
    assert problem.meta["role"].tolist() == ["expert"] * 5 + ["unlabelled"] * 15
    run("convert", "gym:FrozenLake-v1", tmp_path / "again", *words)
    same(read_problem(tmp_path / "again"), problem)
    found = read_json(run("fit", lake, *SPLIT, *PLAIN, "--json", "--out", tmp_path / "fit"))
    assert found["trajectories"] == {"expert": 5, "unlabelled": 15}


# ------------------------------------------------------------ as a program


@pytest.mark.slow
def test_the_program_writes_json_to_a_pipe_and_nothing_else(made, tmp_path):
    words = ["fit", made["park"], *PLAIN, "--json", "--out", tmp_path]
    done = subprocess.run([sys.executable, "-m", "messirl.app.cli", *words], capture_output=True, text=True, check=True)
    assert read_json(done.stdout)["method"] == "MaxEntIRL"
    assert all(line.startswith(("fit: ", "messirl: ")) for line in done.stderr.splitlines()), done.stderr


def test_a_pipe_that_is_closed_early_is_no_error_to_speak_of(made):
    code = "import os, sys; os.close(1); r, w = os.pipe(); os.close(r); assert w == 1 or os.dup2(w, 1); "
    code += f"from messirl.app.cli import main; sys.exit(main(['show', {str(made['grid'])!r}]))"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 141
    assert done.stderr == ""


def test_scores_without_held_out_trajectories_do_not_pretend_to_compare(made, run, tmp_path):
    said = run("fit", made["grid"], "--no-report", "--out", tmp_path / "out")
    assert "do not compare methods" in said
