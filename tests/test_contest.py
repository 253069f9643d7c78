"""Methods side by side: what they are judged by, how knobs are chosen, what is kept, and what the table says."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from worlds import random_mdp

from messirl import Trajectories, sample, soft_policy
from messirl.app import cli
from messirl.app.workflow import comparison
from messirl.app.workflow.comparison import CompareSettings, FolderCase, benchmark
from messirl.app.workflow.comparison_record import ComparisonRecord
from messirl.estimators import BehaviourCloning, DemoDICE, UniformPolicy
from messirl.estimators.registry import BOTH, EXPERT, METHODS, Method
from messirl.estimators.uniform import uniform_policy
from messirl.inference.metrics import policy_value
from messirl.inference.paired_gain import Gain
from messirl.io.interop.gym import gym_reward
from messirl.paper.domains import garnet, network
from messirl.paper.experiments import hyperparameter_grids, method_comparison, rankings
from messirl.paper.experiments.benchmark_tasks import TASKS, Case
from messirl.paper.experiments.method_comparison import SCHEMA, UNKNOWN, Scale, evaluate_method, find_methods, origin_of
from messirl.paper.experiments.rankings import Cell
from messirl.paper.experiments.toy_text import TOYS, environment, toy_text
from messirl.planning.solve_counter import tally

CASE = Case("network", "half good", 2, 0, 7)


class Oracle(UniformPolicy):
    """Knows what the expert follows: a method of one's own, in ten lines."""

    def fit(self, mdp, expert):
        """Look up the answer."""
        super().fit(mdp, expert)
        self.policy_ = CASE.task().truth.policy
        return self

    def _log_likelihood(self, trajectories):
        return np.zeros(len(trajectories))


class Refuses(UniformPolicy):
    """Cannot do it."""

    def fit(self, mdp, expert):
        """Say why."""
        raise ValueError("this expert is left-handed")


ORACLE, REFUSES = (Method(kind.__name__, kind.__name__.lower(), EXPERT, kind) for kind in (Oracle, Refuses))


def held(folder, methods, cases=(CASE,), seed=7):
    return method_comparison.run_comparison(folder, cases, methods, origin_of(cases, methods, seed)).to_pylist()


# ------------------------------------------------------------ measures


def test_a_method_of_ones_own_takes_part_and_the_truth_is_one_and_chance_zero(tmp_path):
    rows = {row["method"]: row for row in held(tmp_path, [METHODS["uniform"], ORACLE])}
    assert_allclose([rows["uniform"]["performance"], rows["Oracle"]["performance"]], [0.0, 1.0], atol=1e-12)
    assert_allclose(rows["uniform"]["distance"], 1.0)
    assert rows["Oracle"]["distance"] < 0.2
    task = CASE.task()
    assert_allclose(rows["Oracle"]["value"], policy_value(task.truth.mdp, task.truth.reward, task.truth.policy))


def test_who_cannot_do_it_says_why_and_the_table_goes_on(tmp_path):
    alone = replace(CASE, u=0)
    rows = {row["method"]: row for row in held(tmp_path, [REFUSES, METHODS["ISWBC"], METHODS["Cloning"]], [alone])}
    assert rows["Refuses"]["failure"] == "this expert is left-handed"
    assert rows["ISWBC"]["failure"] == "needs unlabelled trajectories, and there are none"
    assert rows["Cloning"]["failure"] == ""
    assert np.isnan(rows["Refuses"]["performance"])


@pytest.mark.parametrize("world", [garnet, network])
def test_a_world_is_the_same_for_the_same_seed_and_its_experts_do_better_than_others(world):
    one, again = (world(11, experts=3, pool=5) for _ in range(2))
    assert one.expert.states.tolist() == again.expert.states.tolist()
    values = [policy_value(one.mdp, one.truth, policy) for policy in (one.policy, soft_policy(one.mdp, 0 * one.truth))]
    assert values[0] > values[1]


@pytest.mark.parametrize("name", TOYS)
def test_the_reward_of_a_gymnasium_problem_is_linear_in_its_features(name):
    pytest.importorskip("gymnasium")
    world = toy_text(name, 3, experts=2, pool=2)
    wanted, policies = gym_reward(environment(TOYS[name].ids)), (world.policy, uniform_policy(world.mdp, None))
    expert, chance = (policy_value(world.mdp, world.truth, policy) for policy in policies)
    assert_allclose([policy_value(world.mdp, wanted, policy) for policy in policies], [expert, chance], rtol=1e-9)
    assert expert > chance


def test_every_solved_mdp_is_counted():
    mdp = random_mdp(5, 4, 2, 2, discount=0.8)
    with tally() as count:
        for _ in range(3):
            soft_policy(mdp, mdp.reward(np.ones(2)))
    assert count.solved == 3


# ------------------------------------------------------------ knobs


def test_with_few_experts_the_default_is_taken_and_with_more_the_best_held_out(monkeypatch):
    monkeypatch.setitem(hyperparameter_grids.GRIDS, "Cloning", ({"smoothing": 1e6}, {"smoothing": 0.5}))
    cloning = METHODS["Cloning"]
    assert hyperparameter_grids.choose_hyperparameters(cloning, CASE.task()) == (
        {"smoothing": 1e6},
        "default: 2 experts are too few to choose by",
    )
    assert hyperparameter_grids.choose_hyperparameters(cloning, replace(CASE, experts=20).task()) == (
        {"smoothing": 0.5},
        "held-out experts",
    )


def test_every_knob_named_is_one_of_its_method():
    for name, every in hyperparameter_grids.GRIDS.items():
        method = METHODS[name]
        known = {*method.estimator()._get_param_names(), *(["lambda0"] if method.penalised else [])}
        assert {knob for one in every for knob in one} <= known, name


# ------------------------------------------------------------ the table


def test_what_is_there_is_not_made_again_and_runs_can_be_added(tmp_path, monkeypatch):
    cases = [replace(CASE, run=run, seed=7 + run) for run in range(2)]
    methods = [METHODS["Cloning"]]
    first = held(tmp_path, methods, cases[:1])
    seen = []
    monkeypatch.setattr(
        method_comparison, "evaluate_method", lambda *given: seen.append(given) or evaluate_method(*given)
    )
    rows = held(tmp_path, methods, cases)
    assert len(seen) == 1
    assert rows[0] == first[0]
    assert [row["run"] for row in rows] == [0, 1]


def test_rows_of_a_folder_are_kept_for_the_very_same_data_alone():
    mdp = random_mdp(0, 3, 2, 2, discount=0.9)
    expert = Trajectories.from_lists([[0, 1, 2], [1, 2]], actions=[[0, 1], [0]])
    case = FolderCase("mine", "none", 2, 0, 0, mdp, expert, None, expert)
    others = [
        replace(case, mdp=mdp.replace(**change))
        for change in (
            {"discount": 0.8},
            {"horizon": 3},
            {"terminal": [False, False, True]},
            {"start": [1.0, 0.0, 0.0]},
            {"features": mdp.features[:, ::-1]},
        )
    ]
    others += [replace(case, expert=Trajectories.from_lists([[0, 1, 2], [1, 2]], actions=[[1, 1], [0]]))]
    others += [replace(case, others=expert)]
    assert len({one.data for one in (case, *others)}) == 1 + len(others)
    assert replace(case, mdp=random_mdp(0, 3, 2, 2, discount=0.9)).data == case.data


def test_who_looks_at_experts_alone_is_fitted_once_for_all_unlabelled(tmp_path, monkeypatch):
    cases = [replace(CASE, unlabelled=quality) for quality in ("all good", "none good")]
    seen = []
    monkeypatch.setattr(
        method_comparison,
        "evaluate_method",
        lambda method, *given: seen.append(method.name) or evaluate_method(method, *given),
    )
    rows = held(tmp_path, [METHODS["Cloning"], METHODS["ISWBC"]], cases)
    assert sorted(seen) == ["Cloning", "ISWBC", "ISWBC"]
    assert len(rows) == 4


def test_an_executor_gives_the_same_rows(tmp_path):
    cases, methods = [CASE, replace(CASE, unlabelled="none good")], [METHODS["Cloning"], METHODS["MESSI"]]
    origin = origin_of(cases, methods, 7)
    with ThreadPoolExecutor(1) as executor:
        there = method_comparison.run_comparison(
            tmp_path / "there", cases, methods, origin, executor=executor
        ).to_pylist()
    here = method_comparison.run_comparison(tmp_path / "here", cases, methods, origin).to_pylist()
    assert [row | {"cpu": 0} for row in there] == [row | {"cpu": 0} for row in here]


def made(method, run, performance, failure="", log=-1.0):
    known = {"performance": performance, "logs": str(log), "steps": "2", "solved": 1, "cpu": 0.5, "converged": True}
    own = {"method": method, "run": run, "failure": failure, "knobs": "", "distance": 0.5}
    return {"problem": "p", "unlabelled": "half good", "experts": 1, **UNKNOWN, **own, **({} if failure else known)}


def test_ranks_and_paired_differences_are_those_made_by_hand():
    rows = [made("MaxEnt", 0, 0.5), made("MESSI", 0, 0.7), made("SSIRL", 0, None, "why"), made("MaxEnt", 1, 0.2)]
    rows += [made("MESSI", 1, 0.2, log=-2.0), made("SSIRL", 1, 0.1)]
    names = ["MaxEnt", "MESSI", "SSIRL"]
    (cell,) = rankings.cells_of(pa.Table.from_pylist(rows, schema=SCHEMA), names)
    assert [one.method for one in cell.standings] == ["MESSI", "MaxEnt", "SSIRL"]
    assert [cell.of(name).rank for name in names] == [1.75, 1.25, 3.0]
    assert_allclose(cell.of("MESSI").over.mean, 0.1)
    assert_allclose(cell.of("MESSI").over.high, 0.1 + 12.7062 * 0.1, rtol=1e-5)
    assert_allclose(cell.of("MESSI").score_over.mean, -0.25)
    assert (cell.of("SSIRL").runs, cell.of("SSIRL").failure) == (1, "why")


def test_an_unknown_method_is_an_error_that_knows_better():
    with pytest.raises(ValueError, match=r"unknown method 'Mesi': .*did you mean 'MESSI'"):
        find_methods(["MESSI", "Mesi"])
    assert [method.name for method in find_methods(["messi", "MESSI", "cloning"])] == ["MESSI", "Cloning"]


# ------------------------------------------------------------ commands


def test_compare_writes_its_table_and_page_and_says_which_is_best(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["compare", "network", "--methods", "MaxEnt,Cloning,SSIRL", "--runs", "2", "--jobs", "1", "--out", str(out)]
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("Of 3 methods, ")
    summary = json.loads((out / "compare.json").read_text())
    assert [one["method"] for one in summary["cells"][0]["standings"]][-1] == "Cloning"
    page = (out / "report.html").read_text()
    assert "methods compared" in page
    assert "Of 3 methods, " in page


def test_compare_judges_by_held_out_experts_on_a_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["example", "museum"]) == 0
    data = ["--expert", "who = guide and day = 1", "--unlabelled", "who = class", "--test", "who = guide and day = 3"]
    words = ["compare", "museum", *data, "--methods", "RidgeStd,Cloning", "--jobs", "1", "--no-report", "--json"]
    capsys.readouterr()
    assert cli.main(words) == 0
    cell = json.loads(capsys.readouterr().out)["cells"][0]
    assert cell["truth"] is False
    assert [one["method"] for one in cell["standings"]] == ["RidgeStd", "Cloning"]
    assert cell["standings"][1]["score_over"]["mean"] < 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "nonsense is neither a folder nor a problem: choose from gridworld"),
        (["pit", "--test", "day = 1"], "--test has no effect on the built-in problem pit"),
        (["pit", "--methods", "mesi"], "unknown method 'mesi'"),
        ([".", "--runs", "3"], "--runs has no effect on the folder"),
    ],
)
def test_compare_says_what_does_not_go_together(words, message, capsys, tmp_path):
    assert cli.main(["compare", *words, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def test_the_benchmark_ranks_methods_cell_by_cell(tmp_path):
    settings = CompareSettings(methods=("MaxEnt", "Cloning"), runs=2)
    record = benchmark(settings, tmp_path, experts=(1,), problems=("network",))
    assert [cell.unlabelled for cell in record.cells] == ["all good", "half good", "none good"]
    assert record.ranks["overall"]["MaxEnt"].mean == 1.0
    assert "best mean rank" in record.in_words[0]
    lines = rankings.as_csv(record.cells).splitlines()
    assert len(lines) == 1 + 6


def test_a_best_rank_that_its_interval_does_not_carry_is_said_to_be_unclear():
    ranks = {"overall": {"MaxEnt": Gain(1.56, 0.77, 2.36), "MESSI": Gain(1.57, 1.44, 1.71)}}
    cells = [Cell("pit", quality, 1, 2, True, "MaxEnt") for quality in ("all good", "none good")]
    said = ComparisonRecord("benchmark", ["MaxEnt", "MESSI"], cells, ranks, "").in_words[0]
    assert said.endswith("then MESSI, 1.570 [1.440, 1.710]: there is no clear difference between the two.")
    assert "MaxEnt-IRL has the best mean rank of 2 methods, 1.560 [1.000, 2.000]" in said, "ranks end there"
    ranks["overall"]["MaxEnt"] = Gain(1.1, 1.05, 1.15)
    said = ComparisonRecord("benchmark", ["MaxEnt", "MESSI"], cells, ranks, "").in_words[0]
    assert said.endswith("[1.440, 1.710].")


def test_without_gymnasium_its_problems_are_left_out_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "without_gymnasium", lambda: "Taxi is left out")
    settings = CompareSettings(methods=("Cloning",), runs=1)
    record = benchmark(settings, tmp_path, experts=(1,), problems=("network", "Taxi"))
    assert record.notes == ["Taxi is left out"]
    assert {cell.problem for cell in record.cells} == {"network"}
    with pytest.raises(ValueError, match="Taxi is left out"):
        comparison.compare_synthetic("Taxi", settings, tmp_path)


def test_the_commands_know_every_world():
    from messirl.app.cli.compare import PROBLEMS

    assert PROBLEMS == TASKS


def test_the_ten_lines_of_the_document_add_a_method(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[1] / "docs" / "benchmark.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1], {"__name__": "ten_lines"})
    said = capsys.readouterr().out
    assert said.startswith("Of 2 methods, ")
    assert "Bold" in said


# ------------------------------------------------------------ what a comparison has found


def test_with_a_horizon_demodice_takes_only_actions_that_are_allowed():
    moves = np.zeros((3, 2, 3))
    moves[[0, 0, 1, 2, 2], [0, 1, 0, 0, 1], [1, 2, 2, 0, 1]] = 1.0  # the second action is not there in state 1
    mdp = random_mdp(3, 3, 2, 2, discount=0.9).replace(transitions=moves, horizon=4, start=np.eye(3)[0], allowed=None)
    expert, others = (sample(mdp, soft_policy(mdp, mdp.reward(x * np.ones(2))), 8, random_state=1) for x in (2.0, 0.0))
    model = DemoDICE().fit(mdp, expert, others)
    assert model.converged_
    assert (model.policy_[:, 1, 1] == 0).all()


def test_cloning_in_a_contest_is_cloning():
    task = CASE.task()
    model = hyperparameter_grids.fit_method(METHODS["Cloning"], {"smoothing": 1.0}, task, task.expert)
    assert_allclose(model.policy_, BehaviourCloning().fit(task.mdp, task.expert).policy_)
    row = evaluate_method(METHODS["Cloning"], task, Scale.of(task))
    assert_allclose(sum(map(float, row["logs"].split())), model._log_likelihood(task.held_out).sum())
    assert METHODS["ISWBC"].fitted_to == BOTH
