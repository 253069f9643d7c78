"""One figure's trainings as data: which there are, which are one and the same, and what one of them gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from messirl import feature_counts
from messirl.estimators import MESSI, EMMaxEnt, MaxEntIRL
from messirl.paper.domains import gridworld, mixture, pit
from messirl.paper.experiments.paper_settings import (
    CHOICES,
    ETA,
    FRESH,
    LAMBDA0,
    NU,
    QUICK,
    SETTINGS,
    UNLABELLED,
    Setting,
    sensitivity,
)
from messirl.paper.experiments.training_runs import (
    EXACTLY,
    FIGURES,
    Trial,
    canonical,
    estimator,
    run_trials,
    train,
    trials,
)
from messirl.similarity import CompleteGraph, penalty_matrix
from messirl.similarity.penalty import similarity_penalty

TINY = Setting("pit", lambda0=0.5, iterations=4, u=4)
PAPER = {"MaxEnt", "MESSIMAX", "MESSI-mu1", "MESSI-mu2", "MESSI-mu3"}
SCEPTIC = {"Ridge", "RidgeStd", "Complete", "Pooling"}
EVERY = [(f"{kind}-{name}", s) for kind, all_ in (("full", SETTINGS), ("quick", QUICK)) for name, s in all_.items()]
every_setting = pytest.mark.parametrize("setting", [s for _, s in EVERY], ids=[name for name, _ in EVERY])


@pytest.fixture(scope="module")
def scene():
    return pit(pool=8).scene(0)


def exact(names):
    return {f"{name}/exact" for name in names}


# ------------------------------------------------------------ settings


def test_settings_are_the_papers_where_the_paper_speaks():
    assert set(SETTINGS) == {"highway", "gridworld", "pit", "highway-far"}
    for s in SETTINGS.values():
        assert (s.theta_max, s.iterations, s.u, s.nu) == (500.0, 100, 20, 0.5)
    assert UNLABELLED == (0, 1, 2, 5, 10, 20, 50, 100)
    assert NU == (0.0, 0.05, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0)
    assert LAMBDA0 == (0.0, 0.005, 0.02, 0.05, 0.2, 0.5, 2.0, 5.0, 20.0, 50.0)
    assert ETA == (1, 5, 10, 20, 50)
    assert FRESH >= 50  # the seeds 0 to 49 were used for choosing


def test_a_configuration_hash_changes_with_every_number():
    base = SETTINGS["pit"]
    others = [
        replace(base, lambda0=0.51),
        replace(base, step_size=2.0),
        replace(base, theta_max=501.0),
        replace(base, iterations=101),
        replace(base, u=21),
        replace(base, nu=0.51),
        replace(base, arguments={**base.arguments, "discount": 0.951}),
        replace(base, sweeps={**base.sweeps, "nu": (0.5,)}),
    ]
    assert len({s.config_hash for s in [base, *others]}) == 9
    assert replace(base).config_hash == base.config_hash


@pytest.mark.parametrize("name", ["highway", "gridworld", "pit"])
def test_every_choice_is_halved_and_doubled(name):
    base, found = SETTINGS[name], sensitivity(SETTINGS[name])
    for choice in ("step size", "lambda0", "iterations", *base.arguments):
        assert {f"{choice} halved", f"{choice} doubled"} <= set(found)
    for change, variant in found.items():
        assert variant.config_hash != base.main_only().config_hash
        if "discount" in change:
            factor = 0.5 if change.endswith("halved") else 2.0
            assert 1 / (1 - variant.arguments["discount"]) == pytest.approx(factor / (1 - base.arguments["discount"]))
    assert all(what and why for what, why in CHOICES.items())


# ------------------------------------------------------------ figures


@every_setting
def test_the_iterations_figure_compares_the_papers_methods_and_the_sceptics(setting):
    found = {t.name for t in trials("iterations", setting)}
    beside = SCEPTIC | exact(PAPER | SCEPTIC) if setting.sceptics else set()
    assert found == PAPER | beside
    assert all((t.x is None) != t.exact for t in trials("iterations", setting))


@every_setting
@pytest.mark.parametrize(("figure", "field"), [("unlabelled", "u"), ("nu", "nu"), ("lambda", "lambda0")])
def test_a_sweep_has_every_method_at_every_point_and_changes_one_number(setting, figure, field):
    every = trials(figure, setting)
    if figure not in setting.figures:
        assert every == []
        return
    points = {float(x) for x in setting.sweeps[figure]}
    assert {t.name for t in every} == PAPER | SCEPTIC | exact(set(EXACTLY[figure]))
    for name in {t.name for t in every}:
        mine = [t for t in every if t.name == name]
        assert {t.x for t in mine} == points
        assert len(mine) == len(points)
    base = {"u": setting.u, "nu": setting.nu, "lambda0": setting.lambda0}
    for t in every:
        assert getattr(t, field) == t.x
        if t.method != "MaxEnt":
            assert {k: getattr(t, k) for k in base if k != field} == {k: v for k, v in base.items() if k != field}


@every_setting
def test_the_em_figure_has_every_eta_on_both_mixtures_beside_messi(setting):
    if "em" not in setting.figures:
        return
    every = {t.name: t for t in trials("em", setting)}
    etas = [int(e) for e in setting.sweeps["em"]]
    em = {f"EM-{e}": ("mu1", e) for e in etas} | {f"EM-{e}-mu2": ("mu2", e) for e in etas}
    assert set(every) == {"MESSIMAX", "MESSI-mu1", "MESSI-mu2"} | set(em)
    assert {name: (every[name].mixture, every[name].eta) for name in em} == em
    assert all(t.x is None for t in every.values())


def test_full_settings_sweep_the_points_asked_for():
    for name in ("highway", "gridworld", "pit"):
        assert SETTINGS[name].figures == FIGURES
        assert SETTINGS[name].sweeps == {"unlabelled": UNLABELLED, "nu": NU, "lambda": LAMBDA0, "em": ETA}


def test_an_unknown_figure_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'tau'.*iterations, unlabelled, nu, lambda, em"):
        trials("tau", TINY)


# ------------------------------------------------------------ one training for many trials

SAME = [
    ("no unlabelled trajectories", Trial("MESSI-mu1", "mu1", 0, 0.5, 0.5), Trial("MaxEnt")),
    ("pooling of none", Trial("Pooling", "mu1", 0, 0.5, 0.5), Trial("MaxEnt")),
    ("complete graph of none", Trial("Complete", "mu1", 0, 0.5, 0.5), Trial("MaxEnt")),
    ("ridge of none", Trial("RidgeStd", "mu1", 0, 0.5, 0.5), Trial("MaxEnt")),
    ("no penalty", Trial("MESSI-mu2", "mu2", 4, 0.5, 0.0), Trial("MaxEnt")),
    ("no penalty on the best", Trial("MESSIMAX", "MAX", 4, 0.5, 0.0), Trial("MaxEnt")),
    ("no ridge", Trial("Ridge", "mu1", 4, 0.5, 0.0), Trial("MaxEnt")),
    ("no standardised ridge", Trial("RidgeStd", "mu1", 4, 0.5, 0.0), Trial("MaxEnt")),
    ("no complete graph", Trial("Complete", "mu1", 4, 0.5, 0.0), Trial("MaxEnt")),
    ("MESSIMAX at nu 0.1", Trial("MESSIMAX", "MAX", 4, 0.1, 0.5), Trial("MESSIMAX", "MAX", 4, 1.0, 0.5)),
    ("pooling at lambda 5", Trial("Pooling", "mu1", 4, 0.5, 5.0), Trial("Pooling", "mu1", 4, 0.5, 0.0)),
]


@pytest.mark.parametrize("solver", ["paper", "exact"])
@pytest.mark.parametrize(("trial", "same"), [s[1:] for s in SAME], ids=[s[0] for s in SAME])
def test_what_is_trained_once_is_the_same_training(scene, trial, same, solver):
    trial, same = replace(trial, exact=solver == "exact", x=7.0), replace(same, exact=solver == "exact")
    assert canonical(trial) == same
    assert canonical(same) == same
    assert train(trial, TINY, scene) == train(same, TINY, scene)


def test_messi_at_nu_one_is_messimax_row_for_row(scene):
    best = train(Trial("MESSIMAX", "MAX", 4, 0.3, 0.5), TINY, scene)
    for mix in ("mu1", "mu2"):
        assert train(Trial(f"MESSI-{mix}", mix, 4, 1.0, 0.5), TINY, scene) == best


def test_different_trainings_are_kept_apart(scene):
    base = Trial("MESSI-mu1", "mu1", 4, 0.5, 0.5)
    others = [
        replace(base, u=3),
        replace(base, nu=0.1),
        replace(base, lambda0=5.0),
        replace(base, exact=True),
        replace(base, method="MESSI-mu2", mixture="mu2"),
        Trial("Pooling", "mu1", 4, 0.5, 0.5),
        Trial("EM-1", "mu1", 4, 0.5, 0.5, eta=1),
        Trial("EM-5", "mu1", 4, 0.5, 0.5, eta=5),
    ]
    assert len({canonical(t) for t in [base, *others]}) == 9


@pytest.mark.slow
def test_shared_trainings_give_the_rows_of_separate_ones(scene):
    setting = replace(TINY, sweeps={"nu": (0.0, 1.0), "lambda": (0.0, 0.5), "unlabelled": (0, 3), "em": (1,)})
    for figure in FIGURES:
        together = list(run_trials(trials(figure, setting), setting, scene))
        apart = [row for t in trials(figure, setting) for row in run_trials([t], setting, scene)]
        assert together == apart


# ------------------------------------------------------------ what a training is


@pytest.mark.parametrize("solver", ["paper", "exact"])
@pytest.mark.parametrize("make", [pit, gridworld])
def test_the_sceptics_penalties_have_the_trace_of_messis(make, solver):
    scene, setting = make(pool=6).scene(1), Setting("pit", lambda0=3.0, u=6)
    every = scene.expert + mixture(scene, "mu1", 6, 0.5)
    counts = feature_counts(scene.mdp, every)
    strength = 3.0 / 500.0 * np.trace(similarity_penalty(scene.similarity, every, counts))
    models = {
        name: estimator(Trial(name, "mu1", 6, 0.5, 3.0, exact=solver == "exact"), setting, scene, None)[0]
        for name in ("MESSI-mu1", "Ridge", "RidgeStd", "Complete")
    }
    assert models["MESSI-mu1"].lambda0 == 3.0
    assert isinstance(models["Complete"].similarity, CompleteGraph)
    full = models["Complete"].lambda0 / 500.0 * np.trace(penalty_matrix(counts, np.ones((7, 7))))
    assert full == pytest.approx(strength)
    assert not models["Ridge"].standardise
    assert models["Ridge"].ridge * counts.shape[1] == pytest.approx(strength)
    assert models["RidgeStd"].standardise
    assert models["RidgeStd"].ridge * counts.var(axis=0).sum() == pytest.approx(strength)


def test_a_method_is_fitted_to_what_its_name_says(scene):
    mixed = mixture(scene, "mu1", 4, 0.5)
    base = ("mu1", 4, 0.5, 0.5)
    for name, kind, data in (
        ("MaxEnt", MaxEntIRL, (scene.expert,)),
        ("MESSI-mu1", MESSI, (scene.expert, mixed)),
        ("Pooling", MaxEntIRL, (scene.expert + mixed,)),
    ):
        model, given = estimator(Trial(name, *base), TINY, scene, None)
        assert type(model) is kind
        assert given == data
        assert (model.solver, model.max_iter, model.step_size, model.theta_max) == ("paper", 4, 1.0, 500.0)
    model, given = estimator(Trial("EM-5", *base, eta=5), TINY, scene, None)
    assert isinstance(model, EMMaxEnt)
    assert model.steps_per_round == 5
    assert given == (scene.expert, mixed)
    model, _ = estimator(Trial("MESSI-mu1", *base, exact=True), TINY, scene, None)
    assert model.solver == "lbfgs"


def test_an_unlabelled_trajectory_like_the_experts_penalises_nothing_and_stops_nothing():
    """In the pit one draw is now and then the expert's own way: then there is no difference to penalise."""
    scene = pit(pool=1).scene(0)
    twin = replace(scene, pools=dict.fromkeys(scene.pools, scene.expert))
    plain = train(Trial("MaxEnt"), TINY, twin)
    for name in ("MESSI-mu1", "Ridge", "RidgeStd", "Complete"):
        found = train(Trial(name, "mu1", 1, 0.5, 0.5), TINY, twin)
        assert [row["performance"] for row in found] == pytest.approx([row["performance"] for row in plain])


def test_every_iteration_is_a_row_of_the_iterations_figure(scene):
    setting = replace(TINY, iterations=6)
    rows = list(run_trials(trials("iterations", setting), setting, scene))
    for name in PAPER | SCEPTIC:
        mine = [row for row in rows if row["method"] == name]
        assert [row["iteration"] for row in mine] == list(range(7))
        assert [row["x"] for row in mine] == [float(k) for k in range(7)]
        assert mine[0]["theta_norm"] == 0.0
    for name in exact(PAPER | SCEPTIC):
        (row,) = (row for row in rows if row["method"] == name)
        assert row["converged"]
    assert np.isfinite([[row[k] for k in ("performance", "theta_norm", "objective")] for row in rows]).all()


def test_every_iteration_is_a_row_of_the_em_figure(scene):
    setting = replace(TINY, iterations=6, sweeps={"em": (1, 5)})
    rows = list(run_trials(trials("em", setting), setting, scene))
    for name in ("MESSIMAX", "EM-1", "EM-5", "EM-1-mu2", "EM-5-mu2"):
        assert [row["iteration"] for row in rows if row["method"] == name] == list(range(7))


def test_the_rows_of_a_training_are_the_estimators_own(scene):
    model = MESSI(scene.similarity, lambda0=0.5, solver="paper", max_iter=4, theta_max=500.0)
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model.fit(scene.mdp, scene.expert, mixture(scene, "mu1", 4, 0.5))
    rows = train(Trial("MESSI-mu1", "mu1", 4, 0.5, 0.5), TINY, scene)
    assert [row["objective"] for row in rows] == pytest.approx(model.history_.objective.tolist(), rel=1e-9)
    assert [row["theta_norm"] for row in rows] == pytest.approx(model.history_.theta_norm.tolist(), rel=1e-9)
    assert rows[-1]["performance"] == pytest.approx(scene.performance(model.visitation_), rel=1e-9)
