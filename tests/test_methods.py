"""The table of methods: one entry each, and penalties of one strength."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem

import messirl
from messirl import MESSI, EMMaxEnt, MaxEntIRL
from messirl.estimators.methods import BASELINES, METHODS, OPTIONS, baseline, method_of
from messirl.estimators.uniform import UniformPolicy, uniform_score
from messirl.similarity import RBF


def test_an_entry_is_known_by_its_name_and_no_label_is_given_twice():
    assert all(method.name == name for name, method in METHODS.items())
    assert len({method.label for method in METHODS.values()}) == len(METHODS)
    assert list(OPTIONS) == ["messi", "maxent", "em"]


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


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_is_made_with_and_without_unlabelled_trajectories(name):
    mdp, expert, unlabelled = problem("finite")
    for others in (unlabelled, None):
        model, data = baseline(name, MESSI(RBF(1.0), max_iter=5, tol=1e3), mdp, expert, others)
        assert np.isfinite(model.fit(mdp, *data).score(expert))


def test_an_unknown_method_names_those_there_are():
    with pytest.raises(ValueError, match="baseline 'L3': choose from MESSI, Screened, MaxEnt"):
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
