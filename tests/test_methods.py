"""The table of methods: one entry each, and penalties of one strength."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem

import messirl
from messirl import MESSI, EMMaxEnt, MaxEntIRL
from messirl.estimators.registry import (
    BASELINES,
    COMPARED,
    DEFAULT_POOLING_WEIGHT,
    EXPERT_ONLY,
    METHODS,
    baseline,
    compared_method_of,
    describe_model,
    method_named,
    method_of,
)
from messirl.estimators.uniform import UniformPolicy, uniform_score
from messirl.similarity import RBF


def test_an_entry_is_known_by_its_name_and_no_label_is_given_twice():
    assert all(method.name == name for name, method in METHODS.items())
    assert len({method.label for method in METHODS.values()}) == len(METHODS)
    assert all(method_named(name.upper()) is method_named(name.lower()) is METHODS[name] for name in METHODS)
    with pytest.raises(ValueError, match=r"`method` demodise: choose from messi, .*; did you mean 'demodice'"):
        method_named("demodise")


@pytest.mark.parametrize(("kind", "name"), [(MESSI, "MESSI"), (MaxEntIRL, "MaxEnt"), (EMMaxEnt, "EM")])
def test_an_estimator_knows_its_entry(kind, name):
    assert method_of(kind()) is METHODS[name]
    assert type(METHODS[name].build({"max_iter": 3, "nonsense": 1})) is kind


@pytest.mark.parametrize("name", [method.name for method in BASELINES if method.shape is not None])
def test_penalties_of_one_lambda_have_one_trace(name):
    mdp, expert, unlabelled = problem("finite")
    own = MESSI(RBF(1.0), lambda0=3.0).fit(mdp, expert, unlabelled)
    model, data = baseline(name, MESSI(RBF(1.0), lambda0=3.0), mdp, expert, unlabelled)
    assert_allclose(np.trace(model.fit(mdp, *data).quadratic_), np.trace(own.quadratic_))


@pytest.mark.filterwarnings("ignore:BayesianIRL did not converge")  # so few draws are enough to see that it works
@pytest.mark.filterwarnings("ignore:(OwnPolicyMESSI did not|AbbeelNg did not|MixtureMESSI did not)")
@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_is_made_with_and_without_unlabelled_trajectories(name):
    mdp, expert, unlabelled = problem("finite")
    for others in (unlabelled, None):
        model, data = baseline(name, MESSI(RBF(1.0), max_iter=5, tol=1e3), mdp, expert, others)
        if name == "Bayesian":
            model.set_params(n_warm_up=50, n_samples=50)
        assert np.isfinite(model.fit(mdp, *data).score(expert))


def test_the_sceptics_baselines_are_those_of_the_paper_and_comparisons_have_more():
    """The reproduction hangs on the first list."""
    assert [method.name for method in BASELINES] == ["MaxEnt", "Ridge", "RidgeStd", "Complete", "Pooling", "uniform"]
    more = [method.name for method in COMPARED if method not in BASELINES]
    assert more == ["Reference", "ReferenceStd", "LightPooling", "LightPoolingStd"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("MaxEnt", {}),
        ("Reference", {"reference": "unlabelled"}),
        ("LightPooling", {"unlabelled_weight": DEFAULT_POOLING_WEIGHT}),
        (None, {"unlabelled_weight": 0.1}),
        (None, {"reference": "unlabelled", "unlabelled_weight": DEFAULT_POOLING_WEIGHT}),
        (None, {"ridge": 0.5, "standardise": True, "unlabelled_weight": DEFAULT_POOLING_WEIGHT}),
        (None, {"ridge": 0.5}),
    ],
)
def test_a_model_that_stands_in_the_comparison_itself_is_known(name, arguments):
    assert compared_method_of(MaxEntIRL(**arguments)) is (None if name is None else METHODS[name])
    assert compared_method_of(MESSI()) is None
    assert compared_method_of(EMMaxEnt()) is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a dozen walks may leave a weight open
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", ["counts", "choices"])
def test_what_a_method_sets_is_what_its_estimator_is_asked_for(kind, objective):
    mdp, expert, unlabelled = problem(kind)
    beside = MESSI(RBF(1.0), objective=objective, max_iter=1000)
    for name, same in (
        ("Reference", MaxEntIRL(objective=objective, reference="unlabelled", max_iter=1000)),
        ("LightPooling", MaxEntIRL(objective=objective, unlabelled_weight=DEFAULT_POOLING_WEIGHT, max_iter=1000)),
    ):
        model, data = baseline(name, beside, mdp, expert, unlabelled)
        assert_allclose(model.fit(mdp, *data).score(expert), same.fit(mdp, expert, unlabelled).score(expert), rtol=1e-9)


@pytest.mark.parametrize("objective", ["counts", "choices"])
@pytest.mark.parametrize(("name", "own"), [("ReferenceStd", "reference"), ("LightPoolingStd", "unlabelled_weight")])
def test_a_standardised_ridge_beside_another_use_differs_from_the_plain_one_in_that_use_alone(name, own, objective):
    mdp, expert, unlabelled = problem("finite")
    beside = MESSI(RBF(1.0), lambda0=2.0, objective=objective)
    (model, data), (plain, _) = (baseline(one, beside, mdp, expert, unlabelled) for one in (name, "RidgeStd"))
    assert data == (expert, unlabelled)
    assert plain.ridge > 0
    set_, unset = model.get_params(), plain.get_params()
    assert {key for key in unset if set_[key] != unset[key]} == {own}
    assert set_[own] == METHODS[name].sets[own]


def test_a_base_policy_stands_beside_models_that_could_have_none():
    mdp, expert, unlabelled = problem("finite")
    for model in (MESSI(solver="paper", objective="counts"), MESSI(entropy="noncausal", objective="counts")):
        other, data = baseline("Reference", model, mdp, expert, unlabelled)
        assert (other.entropy, other.solver) == ("causal", "lbfgs")
        assert np.isfinite(other.fit(mdp, *data).score(expert))


@pytest.mark.parametrize(
    ("model", "words", "fitted_to"),
    [
        (MaxEntIRL(), "MaxEnt-IRL", "expert"),
        (MaxEntIRL(ridge=0.5), "MaxEnt-IRL with ridge 0.5", "expert"),
        (MaxEntIRL(reference="unlabelled"), "MaxEnt-IRL with base policy", "expert + unlabelled"),
        (MaxEntIRL(reference=np.eye(2)), "MaxEnt-IRL with base policy", "expert"),
        (MESSI(unlabelled_weight=0.1), "MESSI with pooling at 0.1", "expert + unlabelled"),
        (
            MESSI(reference="unlabelled", unlabelled_weight=0.1),
            "MESSI with base policy and pooling at 0.1",
            "expert + unlabelled",
        ),
        (EMMaxEnt(), "EM-MaxEnt", "expert + unlabelled"),
    ],
)
def test_a_model_is_described_by_what_it_does_with_unlabelled_trajectories(model, words, fitted_to):
    assert describe_model(model) == (words, fitted_to)


def test_the_experts_alone_are_one_of_the_baselines():
    assert METHODS[EXPERT_ONLY] in BASELINES
    assert METHODS[EXPERT_ONLY].fitted_to == "expert"
    assert not METHODS[EXPERT_ONLY].penalised


def test_an_unknown_method_names_those_there_are():
    with pytest.raises(ValueError, match="baseline 'L3': choose from MESSI, MaxEnt, EM"):
        baseline("L3", MESSI(), *problem("finite"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_method_without_a_reward_is_fitted_asked_and_saved_as_others_are(kind, tmp_path):
    mdp, expert, unlabelled = problem(kind)
    model = UniformPolicy().fit(mdp, expert)
    assert_allclose(model.score(unlabelled), uniform_score(mdp, unlabelled))
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert type(again) is UniformPolicy
    arguments = {
        "step": None if mdp.horizon is None else 0,
        "goal": None if expert.goals is None else int(expert.goals[0]),
    }
    assert_array_equal(again.predict_proba([0, 1], **arguments), model.predict_proba([0, 1], **arguments))
    assert again.score(expert) == model.score(expert)
