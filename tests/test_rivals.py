"""What every method beside the maximum-entropy ones offers too: it clones, scores, is saved, and says what it needs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from worlds import ROUNDING, without_actions

import messirl
from messirl import MDP, Trajectories
from messirl.estimators import DWBC, ISWBC, BehaviourCloning, DemoDICE
from messirl.estimators.registry import BASELINES, COMPARED, METHODS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
]
NAMES = ["Cloning", "DWBC", "ISWBC", "DemoDICE", "Several", "Mixture"]
SETTINGS = {"Cloning": {"smoothing": 0.5}, "Mixture": {"n_starts": 1, "max_rounds": 2, "random_state": 0}}
POLICIES = [BehaviourCloning, DWBC, ISWBC, DemoDICE]
every = pytest.mark.parametrize("name", NAMES)
# With state-action features counts, which a penalty looks at, need the actions.
PROBLEMS = [*((kind, True) for kind in KINDS), *((kind, False) for kind in ("finite", "endless", "episodic", "goals"))]


def refuses(name, kind):
    """What counts alone find has no policy for each goal, and an occupancy needs a discount or a horizon."""
    of_counts = METHODS[name].estimator() in POLICIES
    return (of_counts and kind == "goals") or (name == "DemoDICE" and kind == "episodic")


@pytest.mark.parametrize(("kind", "recorded"), PROBLEMS)
@every
def test_a_method_is_fitted_asked_and_saved_as_others_are(name, kind, recorded, tmp_path):
    mdp, expert, unlabelled = problem(kind)
    if not recorded:
        expert, unlabelled = without_actions(expert), without_actions(unlabelled)
    model = clone(METHODS[name].estimator()(**SETTINGS.get(name, {})))
    if refuses(name, kind):
        with pytest.raises(ValueError, match=r"one for each goal|a discount below 1 or a horizon"):
            model.fit(mdp, expert, unlabelled)
        return
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.score(expert)
    assert model.fit(mdp, expert, unlabelled) is model
    assert np.isfinite(model.score(unlabelled))
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert {word for word in vars(again) if word.endswith("_")} == {word for word in vars(model) if word.endswith("_")}
    assert_allclose(again.score(unlabelled), model.score(unlabelled), rtol=ROUNDING)
    goal = None if expert.goals is None else int(expert.goals[0])
    one = (again.predict_proba([0, 1], mdp.first_step, goal), model.predict_proba([0, 1], mdp.first_step, goal))
    assert_array_equal(*one)
    assert_allclose(one[0].sum(axis=1), 1.0)
    arguments = {"goals": {"goal": 8}, "endless": {"length": 5}}.get(kind, {})
    assert again.sample(4, random_state=0, **arguments) == model.sample(4, random_state=0, **arguments)
    assert_allclose(again.fit(mdp, expert, unlabelled).score(unlabelled), model.score(unlabelled), rtol=1e-9)


def test_new_methods_stand_in_the_table_and_beside_no_fit():
    for name in NAMES:
        assert METHODS[name] not in BASELINES
        assert METHODS[name] not in COMPARED


@pytest.mark.parametrize("cls", [DWBC, ISWBC, DemoDICE])
def test_who_learns_from_unlabelled_trajectories_asks_for_them_at_once(cls):
    mdp, expert, _ = problem("endless")
    nobody = Trajectories.from_lists([], actions=[])
    with pytest.raises(ValueError, match=f"{cls.__name__} needs unlabelled trajectories: give them to fit"):
        cls().fit(mdp, expert)
    with pytest.raises(ValueError, match=f"unlabelled is empty, and {cls.__name__} learns from them"):
        cls().fit(mdp, expert, nobody)


def test_what_is_no_mdp_and_what_are_no_trajectories_are_said_to_be_none():
    mdp, expert, others = problem("endless")
    for method in METHODS.values():
        model = method.estimator()()
        more = () if method.name == "uniform" else (others,)
        for wrong in (None, expert, MDP):
            with pytest.raises(TypeError, match=f"expected an MDP, not {type(wrong).__name__}"):
                model.fit(wrong, expert, *more)
        for wrong in (None, 3, "walks", {0: [0, 1]}, mdp):
            with pytest.raises(TypeError, match=f"expert must be Trajectories, not {type(wrong).__name__}: use"):
                model.fit(mdp, wrong)


@pytest.mark.parametrize("cls", [DWBC, ISWBC])
def test_who_learns_from_choices_needs_some(cls):
    mdp, expert, _ = problem("endless")
    still = Trajectories.from_lists([[0], [1]], actions=[[], []])
    with pytest.raises(ValueError, match=f"no unlabelled trajectory makes a step, and {cls.__name__}"):
        cls().fit(mdp, expert, still)


@pytest.mark.parametrize("cls", POLICIES)
def test_experts_that_make_no_step_are_no_example(cls):
    mdp, expert, _ = problem("endless")
    with pytest.raises(ValueError, match="expert is empty"):
        cls().fit(mdp, Trajectories.from_lists([], actions=[]), expert)
    with pytest.raises(ValueError, match=f"no expert makes a step, so there is nothing for {cls.__name__} to imitate"):
        cls().fit(mdp, Trajectories.from_lists([[0], [1]], actions=[[], []]), expert)


@pytest.mark.parametrize("cls", POLICIES)
def test_trajectories_that_the_problem_does_not_allow_are_named(cls):
    mdp, expert, unlabelled = problem("endless")
    with pytest.raises(ValueError, match="expert: trajectory 0"):
        cls().fit(mdp, Trajectories.from_lists([[0, 77]], actions=[[0]]), unlabelled)
    with pytest.raises(ValueError, match="unlabelled: trajectory 0"):
        cls().fit(mdp, expert, Trajectories.from_lists([[0, 77]], actions=[[0]]))


def in_a_file(path, trajectories):
    rows = {
        "trajectory_id": np.repeat(np.arange(len(trajectories)), trajectories.lengths),
        "step": trajectories.step,
        "state": trajectories.states,
    }
    pq.write_table(pa.table(rows), path)
    return path


@pytest.mark.parametrize("cls", [DWBC, ISWBC])
def test_unlabelled_trajectories_may_stay_in_files_where_they_are_only_counted(cls, tmp_path):
    mdp, expert, unlabelled = problem("endless")
    bare = without_actions(unlabelled)
    streamed = cls().fit(mdp, expert, in_a_file(tmp_path / "some.parquet", bare))
    assert_allclose(streamed.policy_, cls().fit(mdp, expert, bare).policy_, rtol=1e-9)


def test_demodice_needs_them_in_memory(tmp_path):
    mdp, expert, unlabelled = problem("endless")
    with pytest.raises(ValueError, match="DemoDICE discounts every choice by its step"):
        DemoDICE().fit(mdp, expert, in_a_file(tmp_path / "some.parquet", unlabelled))


@pytest.mark.parametrize("cls", POLICIES)
def test_a_file_whose_policy_does_not_fit_its_problem_is_refused(cls, tmp_path):
    model = cls().fit(*problem("endless"))
    model.policy_ = model.policy_[:-1]
    model.save(tmp_path / "model.npz")
    with pytest.raises(ValueError, match="its policy_ does not fit its MDP"):
        messirl.load(tmp_path / "model.npz")
