"""A base policy, and what the experts change in it: the numbers of the record, and the page that shows them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from folders import grid
from numpy.testing import assert_allclose, assert_array_equal
from pages import Page
from problems import KINDS, problem
from seeds import generator

from messirl import MESSI, MaxEntIRL, plot
from messirl.app.report.fit.fit_page import write_fit_report
from messirl.app.report.fit.prior_policy_section import prior_policy_figure, prior_section
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.policy_change import policy_change, prior_score
from messirl.app.workflow.record import FitRecord
from messirl.app.workflow.split import DividedProblem, Split
from messirl.estimators.registry import COMPARED, DEFAULT_POOLING_WEIGHT
from messirl.io import Problem, read_problem

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
SPLIT = Split("role = expert", "role = unlabelled", "role = test")


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def based(kind, **changes):
    """A record of a fit with a base policy from the unlabelled trajectories, on a small problem."""
    mdp, expert, unlabelled = problem(kind)
    model = MaxEntIRL(ridge=0.1, reference="unlabelled").fit(mdp, expert, unlabelled)
    n = mdp.n_states
    record = FitRecord("a maze", model, xy=plot.grid(3, 3) if n == 9 else generator(0).normal(size=(n, 2)))
    parts = DividedProblem(Problem(mdp, expert + unlabelled), expert, unlabelled, expert)
    return replace(record, change=policy_change(model, record.policy, parts), **changes), parts


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize("kind", KINDS)
def test_the_change_is_the_relative_entropy_of_the_policy(kind):
    record, parts = based(kind)
    change, model = record.change, record.model
    assert_array_equal(change.base, model.reference_)
    for s in range(model.mdp_.n_states):
        some = (change.policy[s] > 0) & (change.base[s] > 0)
        p, q = change.policy[s, some], change.base[s, some]
        assert_allclose(change.divergence[s], (p * np.log(p / q)).sum(), atol=1e-12)
        assert_allclose(np.exp(change.log_ratio[s, some]) * q, p)
    left = parts.unlabelled.states[parts.unlabelled.leaves]
    assert_array_equal(change.others, np.bincount(left, minlength=model.mdp_.n_states))
    assert change.experts.sum() == (parts.expert.lengths - 1).sum()


@pytest.mark.parametrize("kind", KINDS)
def test_states_stand_by_visits_times_divergence_and_only_where_somebody_chose(kind):
    record, _ = based(kind)
    change = record.change
    weight = (np.nan_to_num(record.model.visitation_) * change.divergence)[change.order]
    assert (np.diff(weight) <= 1e-9 * weight.max()).all()
    assert (change.others + change.experts)[change.order].min() > 0
    assert (record.model.mdp_.allowed.sum(axis=1)[change.order] > 1).all()
    assert (change.raised[change.order] >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_policy_alone_is_a_fit_whose_weights_are_zero(kind):
    mdp, expert, unlabelled = problem(kind)
    model = MaxEntIRL(reference="unlabelled", theta_max=1e-12, objective="counts")
    assert_allclose(prior_score(based(kind)[0].model.mdp_, expert), quiet(model, mdp, expert, unlabelled), atol=1e-9)


def quiet(model, mdp, expert, unlabelled):
    """The score of a fit that its tiny box stops."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(mdp, expert, unlabelled).score(expert)


def test_without_a_base_policy_there_is_no_change():
    mdp, expert, unlabelled = problem("finite")
    model = MESSI().fit(mdp, expert, unlabelled)
    record = FitRecord("plain", model)
    assert policy_change(model, record.policy, DividedProblem(Problem(mdp, expert), expert, unlabelled, None)) is None


# ------------------------------------------------------------ from a folder to the page


@pytest.fixture(scope="module")
def folder_problem(tmp_path_factory):
    return read_problem(grid(tmp_path_factory.mktemp("folders") / "grid"))


def test_a_fit_with_a_base_policy_carries_what_the_page_shows(folder_problem, tmp_path):
    record = fit(folder_problem, SPLIT, FitSettings(reference="unlabelled"))
    assert record.change is not None
    found = record.summary()["base_policy"]
    assert found == {
        "expert": record.change.expert,
        "held_out": record.change.held_out,
        "mean_divergence": record.change.mean,
    }
    names = [score.name for score in record.scores]
    assert names[:2] == ["MESSI with base policy", "MaxEnt-IRL"]
    assert {"base policy", "base policy with L2", "light pooling", "pooling"} <= set(names)
    page = Page(write_fit_report(record, tmp_path))
    assert "base" in {a["id"] for a in page.of("section")}
    assert (tmp_path / "figures" / "base.png").is_file()
    for words in (
        "Prior policy, and how the experts depart from it",
        "log π/π₀",
        "action that rises most",
        "KL divergence",
    ):
        assert words in page.text
    assert "gain over experts only, 95 % interval" in page.text
    assert "predicts the 8 held-out trajectories best" in page.text


def test_every_other_method_has_a_gain_over_the_experts_alone(folder_problem):
    record = fit(folder_problem, SPLIT, FitSettings(lambda0=0.5))
    alone = next(score for score in record.scores if score.name == "MaxEnt-IRL")
    assert alone.gain is None
    for score in record.scores:
        if score is not alone:
            assert_allclose(score.gain.mean, score.held_out - alone.held_out, atol=1e-12)
            assert score.gain.low <= score.gain.mean <= score.gain.high
    best = max(record.scores, key=lambda score: score.held_out)
    assert record.verdict.best == best.name
    assert record.summary()["verdict"]["sentence"] == record.verdict.sentence


def test_a_fit_that_is_one_of_the_methods_stands_there_once(folder_problem):
    for settings, name, instead in (
        (FitSettings("maxent"), "MaxEnt-IRL", "MaxEnt-IRL"),
        (FitSettings("maxent", reference="unlabelled"), "MaxEnt-IRL with base policy", "base policy"),
        (
            FitSettings("maxent", unlabelled_weight=DEFAULT_POOLING_WEIGHT),
            f"MaxEnt-IRL with pooling at {DEFAULT_POOLING_WEIGHT:g}",
            "light pooling",
        ),
    ):
        names = [score.name for score in fit(folder_problem, SPLIT, settings).scores]
        assert names[0] == name
        assert instead not in names[1:]
        assert len(names) == len(COMPARED)
        assert len(set(names)) == len(COMPARED)


def test_without_held_out_trajectories_nothing_is_best(folder_problem):
    record = fit(folder_problem, replace(SPLIT, test=None), FitSettings())
    assert record.verdict is None
    assert all(score.gain is None for score in record.scores)


def test_standard_errors_are_of_fits_to_experts_alone(folder_problem):
    assert (
        fit(folder_problem, SPLIT, FitSettings("maxent", objective="counts", ridge=0.0, baselines=False)).estimates
        is not None
    )
    light = FitSettings("maxent", objective="counts", ridge=0.0, unlabelled_weight=0.1, baselines=False)
    assert fit(folder_problem, SPLIT, light).estimates is None


@pytest.mark.drawn
@pytest.mark.parametrize("kind", KINDS)
def test_the_base_policy_of_every_kind_of_problem_can_be_drawn(kind, tmp_path):
    prior_section(based(kind)[0], tmp_path, "")
    assert ET.parse(tmp_path / "base.svg").getroot().findall(".//{*}path")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_problem_shows_its_base_policy_with_a_map_and_without(kind, tmp_path):
    record, _ = based(kind)
    page = Page(write_fit_report(record, tmp_path / "map"))
    assert "action that rises most" in page.text
    assert "nan" not in page.text
    assert (tmp_path / "map" / "figures" / "base.svg").is_file()
    bare = "".join(prior_section(replace(record, xy=None), tmp_path / "none", ""))
    assert "action that rises most" in bare
    assert "nan" not in bare
    assert not (tmp_path / "none" / "base.svg").exists()


def test_states_on_a_line_are_seen_and_have_no_arrows(folder_problem):
    record = fit(folder_problem, SPLIT, FitSettings(reference="unlabelled", baselines=False))
    line = replace(record, xy=np.column_stack([np.arange(16.0), np.zeros(16)]))
    assert line.on_a_line
    assert not record.on_a_line

    def arrows(one):
        kinds = [type(item).__name__ for ax in prior_policy_figure(one).axes for item in ax.collections]
        return kinds.count("PolyCollection")

    assert arrows(record) == 2
    assert arrows(line) == 0
    low, high = prior_policy_figure(line).axes[0].get_ylim()
    assert high - low >= 0.1 * 15
