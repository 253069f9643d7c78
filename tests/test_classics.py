"""The methods that the paper names: fitted, asked, saved and cloned alike, and clear about what they cannot do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from sklearn.base import clone
from test_persistence import assert_same_mdp, assert_same_model, there_and_back
from worlds import ROUNDING, drawn, random_mdp, without_actions

import messirl
from messirl import MESSI, Trajectories
from messirl.estimators.registry import COMPARED, METHODS, baseline
from messirl.planning import visits

pytestmark = pytest.mark.filterwarnings("ignore:(BayesianIRL|AbbeelNg) did not converge")
FEW = {"n_warm_up": 30, "n_samples": 20, "rounds": 10, "max_policies": 12, "epsilon": 0.1, "random_state": 0}
NAMES = ["AbbeelNg", "MaxMargin", "SSIRL", "MWAL", "LPAL", "NgRussell", "RelativeEntropy", "Bayesian"]
WITH_END = [name for name in NAMES if name != "RelativeEntropy"]  # that γ = 1 without a horizon is too much for
NEEDY = ["SSIRL", "RelativeEntropy"]
LAPSING = ["AbbeelNg", "MaxMargin", "SSIRL", "MWAL", "LPAL", "NgRussell"]
methods = pytest.mark.parametrize("name", NAMES)
every = pytest.mark.parametrize("kind", ["finite", "endless", "steps", "sparse"])


def made(name, **more):
    few = FEW | ({"max_policies": 200} if name == "NgRussell" else {})  # it takes the rounds that it needs
    return METHODS[name].build(few | more)


@every
@methods
def test_a_method_is_fitted_and_asked_as_others_are(name, kind):
    mdp, expert, unlabelled = problem(kind)
    model = made(name).fit(mdp, expert, unlabelled)
    assert np.isfinite(model.score(expert))
    step = {} if mdp.horizon is None else {"step": 0}
    assert_allclose(model.predict_proba(np.arange(5), **step).sum(axis=1), 1.0)
    drawn_again = model.sample(4, length=6, random_state=1)
    assert len(drawn_again) == 4
    assert visits(mdp, model.policy_).states.shape == (5,)
    assert model.policy_.shape == mdp.policy_shape


@every
@methods
def test_a_model_comes_back_as_it_was(name, kind, tmp_path):
    mdp, expert, unlabelled = problem(kind)
    model = made(name).fit(mdp, expert, unlabelled)
    again = there_and_back(model, tmp_path / "model.npz")
    assert_same_model(model, again)
    assert_same_mdp(model.mdp_, again.mdp_)
    assert repr(again) == repr(model)
    assert_allclose(again.policy_, model.policy_, atol=ROUNDING)
    assert_allclose(again.score(unlabelled), model.score(unlabelled), rtol=ROUNDING)
    fitted = again.fit(mdp, expert, unlabelled)
    assert_allclose(fitted.score(expert), model.score(expert), rtol=1e-9)


@methods
def test_a_clone_is_unfitted_and_finds_the_same(name):
    mdp, expert, unlabelled = problem("endless")
    model = made(name).fit(mdp, expert, unlabelled)
    copy = clone(model)
    assert not hasattr(copy, "converged_")
    assert copy.get_params() == model.get_params()
    assert_allclose(copy.fit(mdp, expert, unlabelled).policy_, model.policy_, atol=ROUNDING)


@methods
def test_a_damaged_file_is_refused(name, tmp_path):
    mdp, expert, unlabelled = problem("finite")
    path = tmp_path / "model.npz"
    made(name).fit(mdp, expert, unlabelled).save(path)
    with np.load(path) as archive:
        parts = {key: archive[key] for key in archive.files}
    for key in ("start_", "theta_" if "theta_" in parts else "policy_"):
        np.savez(path, **(parts | {key: parts[key][..., :-1]}))
        with pytest.raises(ValueError, match=f"is a damaged messirl model .its {key} does not fit its MDP"):
            messirl.load(path)
    kind = json.loads(parts["description"].tobytes())["estimator"]
    assert kind == METHODS[name].kind


@methods
def test_actions_are_not_needed_with_features_of_states(name):
    mdp, expert, unlabelled = problem("endless")
    model = made(name).fit(mdp, without_actions(expert), without_actions(unlabelled))
    assert np.isfinite(model.score(without_actions(expert)))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Bayesian"])
def test_actions_that_features_need_are_asked_for(name):
    mdp, expert, unlabelled = problem("steps")
    with pytest.raises(ValueError, match=r"of expert, step 0: .* give the trajectories' actions"):
        made(name).fit(mdp, without_actions(expert), without_actions(unlabelled))


@pytest.mark.parametrize("name", NEEDY)
def test_a_method_that_needs_unlabelled_trajectories_says_so(name):
    mdp, expert, _ = problem("finite")
    with pytest.raises(ValueError, match="unlabelled trajectories: give them to fit"):
        made(name).fit(mdp, expert)
    assert METHODS[name].unlabelled


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEEDY])
def test_a_method_that_makes_no_use_of_them_does_not_look(name):
    mdp, expert, unlabelled = problem("finite")
    a, b = made(name).fit(mdp, expert), made(name).fit(mdp, expert, unlabelled)
    assert_allclose(a.policy_, b.policy_, atol=ROUNDING)
    assert METHODS[name].fitted_to == "expert"


@methods
def test_goals_are_refused(name):
    with pytest.raises(ValueError, match="does not support goals, and the trajectories of expert have them"):
        made(name).fit(*problem("goals"))


@pytest.mark.parametrize("name", WITH_END)
def test_endless_values_are_refused(name):
    with pytest.raises(ValueError, match="may have infinite value: give the MDP a discount below 1"):
        made(name).fit(*problem("episodic"))


@methods
def test_terminal_states_and_forbidden_actions_are_no_hindrance(name):
    allowed = np.array([[True, True], [True, False], [True, True], [True, True]])
    mdp = random_mdp(2, 4, 2, 2, discount=0.8, start=[0.5, 0.5, 0.0, 0.0], terminal=[False, False, False, True])
    mdp = mdp.replace(transitions=mdp.transitions.multiply(allowed.reshape(-1, 1)).tocsr())
    for horizon in (None, 6):
        some = mdp.replace(horizon=horizon)
        expert, others = (drawn(some, theta, 15, 1, length=20) for theta in ([2.0, -1.0], [0.0, 0.0]))
        model = made(name).fit(some, expert, others)
        assert np.isfinite(model.score(expert))
        assert np.abs(model.policy_[..., 3, :]).max() < 1e-12
        assert np.abs(model.policy_[..., 1, 1]).max() < 1e-12


@methods
def test_bad_input_is_refused(name):
    mdp, expert, unlabelled = problem("finite")
    for wrong, message in (
        ((mdp, expert[[]], unlabelled), "expert is empty"),
        ((mdp, Trajectories.from_lists([[0, 9]]), unlabelled), "state 9 is not one of 0"),
        ((mdp.replace(start=np.eye(5)[0]), expert, unlabelled), "where start is 0"),
        ((mdp.replace(horizon=1), Trajectories.from_lists([[0], [1]]), None), "makes no step|give them to fit"),
    ):
        with pytest.raises(ValueError, match=message):
            made(name).fit(*wrong)
    with pytest.raises(TypeError, match="expert must be Trajectories"):
        made(name).fit(mdp, {0: [0, 1]}, unlabelled)
    with pytest.raises(ValueError, match="cannot stay in files"):
        made("SSIRL").fit(mdp, expert, "somewhere.parquet")


@pytest.mark.parametrize("name", LAPSING)
def test_a_policy_that_leaves_actions_out_is_scored_with_lapses(name):
    mdp, expert, unlabelled = problem("endless")
    model = made(name).fit(mdp, expert, unlabelled)
    plain = -np.inf
    if (model.policy_[expert.states[expert.leaves], expert.actions] > 0).all():
        plain = float(np.log(model.policy_[expert.states[expert.leaves], expert.actions]).mean())
    assert_allclose(model.set_params(lapse=0.0).score(expert), plain)
    rows = 0.9 * model.policy_ + 0.1 / 3
    wanted = np.log(rows[expert.states[expert.leaves], expert.actions]).mean()
    assert_allclose(model.set_params(lapse=0.1).score(expert), wanted)
    with pytest.raises(ValueError, match=r"lapse=1\.5: it must be finite and >= 0 and <= 1"):
        made(name, lapse=1.5).fit(mdp, expert, unlabelled)


def test_none_of_them_stands_beside_every_fit():
    assert not {method.name for method in COMPARED} & set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Bayesian"])
def test_it_is_made_beside_a_model_with_its_own_settings(name):
    mdp, expert, unlabelled = problem("finite")
    model, data = baseline(name, MESSI(max_iter=3), mdp, expert, unlabelled)
    assert type(model) is METHODS[name].estimator()
    assert data == ((expert, unlabelled) if name in NEEDY else (expert,))


@pytest.mark.parametrize("name", ["NgRussell", "RelativeEntropy", "Bayesian"])
def test_the_reward_is_that_of_the_weights(name):
    mdp, expert, unlabelled = problem("finite")
    model = made(name).fit(mdp, expert, unlabelled)
    assert_allclose(model.reward_, mdp.features @ model.theta_)
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("name", ["MWAL", "LPAL"])
def test_parameters_that_are_arrays_come_back(name, tmp_path):
    mdp, expert, _ = problem("finite")
    again = there_and_back(made(name, signs=[1, -1, 0]).fit(mdp, expert), tmp_path / "model.npz")
    assert_allclose(again.signs, [1, -1, 0])
    assert_allclose(again.fit(mdp, expert).value_, made(name, signs=[1, -1, 0]).fit(mdp, expert).value_, atol=1e-9)


def test_more_policies_than_fit_in_memory_are_refused_before_they_are_found(monkeypatch):
    mdp, expert, _ = problem("endless")
    monkeypatch.setattr("messirl._memory_guard.LITTLE", 0)
    monkeypatch.setattr("messirl._memory_guard.available_memory", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r"7 policies and a mixture of them would take .* allow fewer policies"):
        made("MWAL").fit(mdp, expert)
