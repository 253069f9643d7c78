"""The comparison of learners: which there are, what each is fitted to, what its table says, and that it can go on."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from seeds import shifted

from messirl import state_visitation
from messirl.app.report.paper.ablation_figure import learners_figure
from messirl.estimators import MESSI, MaxEntIRL
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators.registry import METHODS
from messirl.objective import OBJECTIVES
from messirl.paper.domains import gridworld, mixture, pit
from messirl.paper.experiments import reproduction as whole
from messirl.paper.experiments.ablation import (
    EXPERT_ONLY,
    FIGURE,
    LEARNERS,
    MIXTURES,
    POOLING,
    RIDGE,
    WAYS,
    Learner,
    canonical,
    estimator,
    expert_only_learner,
    learn,
    learners,
    with_unlabelled,
)
from messirl.paper.experiments.ablation_tables import ASKED, claims_of, rows_of
from messirl.paper.experiments.curves import Curves
from messirl.paper.experiments.paper_settings import SETTINGS, Setting
from messirl.paper.experiments.reproduction import Plan, compare_learners
from messirl.paper.experiments.runner import Task, run_task
from messirl.paper.experiments.training_runs import Trial, estimator as paper_estimator
from messirl.similarity import CompleteGraph

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from studies import garnet

TINY = Setting("pit", lambda0=0.5, u=3, arguments={"pool": 4})


@pytest.fixture(scope="module")
def scene():
    return pit(pool=4).scene(shifted(3))


# ------------------------------------------------------------ which


def test_the_expert_alone_is_fitted_with_every_objective_start_and_ridge():
    found = {(one.objective, one.start, one.ridge) for one in LEARNERS if one.way == EXPERT_ONLY}
    assert found == {(o, s, r) for o in OBJECTIVES for s in ("given", "own") for r in (0.0, RIDGE)}


def test_every_way_has_every_mixture_and_objective_from_the_own_start():
    found = {(one.way, one.mixture, one.objective) for one in LEARNERS if one.mixture and one.start == "own"}
    assert found == {(way, mix, o) for way in WAYS for mix in MIXTURES for o in OBJECTIVES}
    assert len({one.name for one in LEARNERS}) == len(set(LEARNERS)) == len(LEARNERS)


def test_all_but_penalties_have_the_ridge():
    ridges = {way: {one.ridge for one in LEARNERS if one.way == way} for way in WAYS}
    bare = {METHODS[name].label for name in ("MESSI", "Complete", "RidgeStd")}
    assert ridges == {way: {0.0} if way in bare else {RIDGE} for way in WAYS}


def test_only_the_gridworld_goes_without_the_complete_graph():
    assert learners(SETTINGS["highway"]) == learners(SETTINGS["pit"]) == list(LEARNERS)
    assert set(LEARNERS) - set(learners(SETTINGS["gridworld"])) == {
        one for one in LEARNERS if one.way == METHODS["Complete"].label
    }


# ------------------------------------------------------------ what is fitted


def test_a_learner_is_the_estimator_that_its_fields_name(scene):
    few = mixture(scene, "mu1", 3, 0.5)
    for way in WAYS:
        for objective in OBJECTIVES:
            model, data = estimator(with_unlabelled(way, "mu1", objective), TINY, scene)
            assert (model.objective, model.solver, model.theta_max) == (objective, "lbfgs", 500.0)
            assert data == (scene.expert, few)
            assert getattr(model, "unlabelled_weight", 0.0) == POOLING.get(way, 0.0)
            assert model.reference == ("unlabelled" if way == "reference" else None)
    assert isinstance(estimator(with_unlabelled("MESSI", "mu1", "counts"), TINY, scene)[0], MESSI)
    assert estimator(with_unlabelled("MESSI", "mu1", "counts"), TINY, scene)[0].lambda0 == 0.5
    full, _ = estimator(with_unlabelled(METHODS["Complete"].label, "mu1", "counts"), TINY, scene)
    assert isinstance(full.similarity, CompleteGraph)
    model, data = estimator(expert_only_learner("choices"), TINY, scene)
    assert isinstance(model, MaxEntIRL)
    assert (model.ridge, model.objective, data) == (RIDGE, "choices", (scene.expert,))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_policy_is_measured_from_the_domains_start(objective):
    scene = gridworld(side=6, block=3, pool=2, length=40).scene(shifted(4))
    setting = Setting("gridworld", lambda0=1.0, u=2)
    row = learn(expert_only_learner(objective), setting, scene)
    with ignore_convergence_warnings():
        model = MaxEntIRL(objective=objective, ridge=RIDGE, max_iter=400).fit(
            scene.mdp.replace(start=None), scene.expert
        )
    assert np.count_nonzero(model.start_) == 1  # learnt from where the expert began
    assert row["performance"] == pytest.approx(scene.performance(state_visitation(scene.mdp, model.policy_)))
    assert row["objective"] == pytest.approx(model.objective_)


def test_counts_look_at_the_start_and_choices_do_not():
    scene = gridworld(side=6, block=3, pool=2, length=40).scene(shifted(4))
    setting = Setting("gridworld", lambda0=1.0, u=2)
    same, other = (
        [learn(Learner(EXPERT_ONLY, None, o, start, RIDGE), setting, scene) for start in ("given", "own")]
        for o in ("choices", "counts")
    )
    for what in ("performance", "objective"):
        assert same[0][what] == pytest.approx(same[1][what], abs=1e-6)
    assert other[0]["objective"] != pytest.approx(other[1]["objective"], rel=1e-3)  # if not performance
    given = Learner(EXPERT_ONLY, None, "choices", "given", RIDGE)
    assert canonical(given) == expert_only_learner("choices")
    assert canonical(replace(given, objective="counts")) == replace(given, objective="counts")


def test_the_papers_figures_keep_counts_and_no_ridge_whatever_the_defaults(monkeypatch, scene):
    monkeypatch.setitem(MaxEntIRL.__init__.__kwdefaults__, "ridge", 7.0)
    monkeypatch.setitem(MESSI.__init__.__kwdefaults__, "objective", "choices")
    assert (MaxEntIRL().ridge, MESSI().objective) == (7.0, "choices")
    for name in ("MaxEnt", "Pooling", "MESSI-mu1"):
        model, _ = paper_estimator(Trial(name, "mu1", 3, 0.5, 0.5), TINY, scene, None)
        assert model.objective == "counts"
        assert getattr(model, "ridge", 0.0) == 0.0


# ------------------------------------------------------------ table


def planted(gains):
    """A table in which learner k has `gains.get(name, 0)` on top of noise that all learners of a run share."""
    names = [one.name for one in LEARNERS]
    wobble = 0.01 * np.tile([1.0, -1.0, -1.0, 1.0], 5)
    rows = [
        {
            "domain": "pit",
            "figure": FIGURE,
            "method": name,
            "x": 0.0,
            "run": run,
            "performance": wobble[run] + gains.get(name, 0.0) + 1e-4 * wobble[(run + k) % 20],
            "theta_norm": 1.0,
            "converged": run > 0,
        }
        for k, name in enumerate(names)
        for run in range(20)
    ]
    return pa.Table.from_pylist(rows)


def mean_of(cell):
    return float(cell.split(" ")[0])


def test_gains_are_those_planted():
    pooled = with_unlabelled("pooling at 1", "mu1", "choices")
    gains = {pooled.name: 0.5, expert_only_learner("choices").name: 0.2, replace(pooled, objective="counts").name: 0.1}
    rows = {
        tuple(row[k] for k in ("way", "mixture", "objective", "start", "ridge")): row for row in rows_of(planted(gains))
    }
    assert len(rows) == len(LEARNERS)
    mine = rows["pooling at 1", "mu1", "choices", "own", "0.001"]
    assert (mine["runs"], mine["converged"]) == ("20", "0.95")
    found = [mean_of(mine[k]) for k in ("performance", "over experts alone", "over MESSI", "over counts")]
    assert found == pytest.approx([0.5, 0.3, 0.5, 0.4], abs=2e-4)
    base = rows[EXPERT_ONLY, "", "choices", "own", "0.001"]
    assert (base["over experts alone"], base["over MESSI"]) == ("", "")
    assert mean_of(base["over counts"]) == pytest.approx(0.2, abs=2e-4)


@pytest.mark.parametrize("label", ASKED)
def test_the_papers_order_is_found_where_it_was_planted_and_nowhere_else(label):
    _, messi = ASKED[label]
    order = {"MAX": 0.2, "mu1": 0.1, "mu3": -0.1}
    claims = claims_of(planted({replace(messi, mixture=mix).name: gain for mix, gain in order.items()}))
    assert len(claims) == 4 * len(ASKED)
    assert {c["verdict"] for c in claims if c["learner"] == label} == {"holds"}
    turned = claims_of(planted({replace(messi, mixture=mix).name: -gain for mix, gain in order.items()}))
    assert {c["verdict"] for c in turned if c["learner"] == label} == {"does not hold"}


def test_the_figure_has_a_column_for_each_domain_that_the_table_has():
    figure = learners_figure(Curves(planted({})))
    assert [ax.get_title() for ax in figure.axes][:1] == ["Pit"]
    assert len(figure.axes) == len(OBJECTIVES)
    assert learners_figure(Curves(planted({}).slice(0, 0))) is None


# ------------------------------------------------------------ running


def test_a_task_of_learners_gives_one_row_per_learner():
    rows = run_task(Task("pit", TINY, FIGURE, 2, shifted(9)))
    assert [row["method"] for row in rows] == [one.name for one in LEARNERS]
    assert {(row["domain"], row["run"], row["seed"]) for row in rows} == {("pit", 2, shifted(9))}
    assert np.isfinite([row["performance"] for row in rows]).all()


@pytest.mark.slow
def test_a_comparison_goes_on_where_it_was_and_writes_its_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("messirl.paper.experiments.result_store.commit", lambda: "abcdef")
    monkeypatch.setattr(whole, "SETTINGS", {"pit": TINY})
    heard = []
    plan = Plan(tmp_path, runs=1, seed=shifted(5))
    compare_learners(plan, lambda done, total: heard.append((done, total)))
    table, claims = compare_learners(replace(plan, runs=2), lambda done, total: heard.append((done, total)))
    assert heard == [(0, 1), (1, 1), (1, 2), (2, 2)]
    assert table.num_rows == 2 * len(LEARNERS)
    written = list(csv.DictReader((tmp_path / "learners.csv").read_text(encoding="utf-8").splitlines()))
    assert written == rows_of(table)
    assert len(claims) == 4 * len(ASKED)
    assert (tmp_path / "learners.parquet").exists()


def test_the_far_highway_has_no_comparison(tmp_path):
    with pytest.raises(ValueError, match="highway, gridworld and pit"):
        compare_learners(Plan(tmp_path, ("highway-far",), runs=1), lambda done, total: None)


# ------------------------------------------------------------ the study of random problems


def test_a_garnet_has_the_branching_and_features_that_it_says():
    mdp, star = garnet.garnet(np.random.default_rng(shifted(1)), state_action=True)
    moves = mdp.transitions.toarray()
    assert (np.count_nonzero(moves, axis=1) == garnet.BRANCHING).all()
    assert mdp.state_action
    assert star.shape == (mdp.n_features,) == (garnet.FEATURES,)


def test_the_study_compares_every_fit_and_starts_elsewhere(monkeypatch):
    monkeypatch.setattr(garnet, "EXPERTS", (1, 2))
    monkeypatch.setattr(garnet, "SCALES", (0.3,))
    with ignore_convergence_warnings():
        rows = garnet.compare(shifted(2))
        begun = garnet.starts(shifted(2), "actions unrecorded")
    fits = {(row["experts"], row["objective"], row["ridge"]) for row in rows}
    assert fits == {(n, o, r) for n in (1, 2) for o in OBJECTIVES for r in garnet.RIDGES}
    assert all(row["loss"] < 5 and row["score"] < 0 for row in rows)
    assert len(begun) == 4
    assert all(row["score of the highest"] == row["score"] or row["gain from scale 0.3"] > 1e-6 for row in begun)
