"""Weights that no trajectory can tell apart are warned of, with the features' names."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from problems import THETA, problem
from worlds import drawn, maze, random_mdp

from messirl import MDP, MESSI, EMMaxEnt, IdentifiabilityWarning, MaxEntIRL, Trajectories

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAMES = ["sun", "rain", "wind"]


def more(kind, column, name):
    """A problem with one more feature, and names."""
    mdp, expert, unlabelled = problem(kind)
    names = NAMES[: mdp.n_features]
    table = np.concatenate([mdp.features, column(mdp.features)], axis=-1)
    return mdp.replace(features=table, feature_names=[*names, name]), expert, unlabelled


def fit(mdp, expert, **arguments):
    return MaxEntIRL(ridge=0.1, max_iter=300, **arguments).fit(mdp, expert)


@pytest.mark.parametrize("kind", ["finite", "endless", "steps"])
def test_a_constant_feature_is_named_where_all_trajectories_are_as_long(kind):
    mdp, expert, _ = more(kind, lambda f: np.ones_like(f[..., :1]), "bias")
    with pytest.warns(IdentifiabilityWarning, match=r"up to 1 direction\(s\) among the features 'bias': no trajectory"):
        fit(mdp, expert)


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_a_constant_feature_is_named_whatever_the_discount(discount):
    mdp = random_mdp(3, discount=discount, start=np.full(5, 0.2))
    mdp = mdp.replace(
        features=np.column_stack([mdp.features, np.full(5, 3.7)]), feature_names=["a", "b", "c", "constant"]
    )
    length = int(np.ceil(np.log(0.05) / np.log(discount)))
    expert = drawn(mdp, [*THETA, 0.0], 5, 1, length=length)
    with pytest.warns(IdentifiabilityWarning, match="among the features 'constant'"):
        fit(mdp, expert)


def test_a_constant_feature_is_identified_where_lengths_differ():
    fit(*problem("episodic")[:2])  # its first feature is the cost of a step; a warning would fail this test


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "goals", "steps"])
def test_a_feature_that_repeats_another_is_named_with_it(kind):
    mdp, expert, _ = more(kind, lambda f: -2 * f[..., 1:2], "rain again")
    with pytest.warns(IdentifiabilityWarning, match=r"up to 1 direction\(s\) among the features 'rain', 'rain again'"):
        fit(mdp, expert)


def test_a_sum_of_features_is_named_with_all_of_them():
    mdp, expert, _ = more("finite", lambda f: f.sum(axis=-1, keepdims=True), "weather")
    with pytest.warns(IdentifiabilityWarning, match="features 'sun', 'rain', 'wind', 'weather'"):
        fit(mdp, expert)


def test_a_feature_of_zeros_is_named():
    mdp, expert, _ = more("finite", lambda f: 0.0 * f[..., :1], "nothing")
    with pytest.warns(IdentifiabilityWarning, match="among the features 'nothing'"):
        fit(mdp, expert)


def test_features_without_names_are_named_by_number():
    mdp, expert, _ = more("finite", lambda f: f[..., :1], "copy")
    with pytest.warns(IdentifiabilityWarning, match="among the features 0, 3: no trajectory"):
        fit(mdp.replace(features=mdp.features), expert)


def test_many_names_are_cut_short():
    mdp, expert, _ = problem("finite")
    mdp = mdp.replace(features=np.tile(mdp.features, 4))
    with pytest.warns(IdentifiabilityWarning, match=r"up to 9 direction\(s\) among the features .* and 6 more"):
        fit(mdp, expert)


def test_the_units_of_features_do_not_matter():
    mdp, expert, _ = problem("endless")
    MaxEntIRL(max_iter=300, theta_max=None, ridge=1e-6, tol=1.0).fit(
        mdp.replace(features=mdp.features * [1e-6, 1.0, 1e6]), expert
    )  # identified: a warning would fail this test
    mdp, expert, _ = more("endless", lambda f: 1e6 * f[..., 1:2], "rain again")
    with pytest.warns(IdentifiabilityWarning, match="among the features 'rain', 'rain again'"):
        MaxEntIRL(ridge=1.0, theta_max=None, tol=1e9).fit(mdp, expert)


def test_sparse_features_are_looked_at_too():
    mdp, expert, _ = more("steps", lambda f: f[..., :1], "copy")
    mdp = mdp.replace(features=sp.csr_array(mdp.feature_rows), feature_names=mdp.feature_names)
    with pytest.warns(IdentifiabilityWarning, match="among the features 'sun', 'copy'"):
        fit(mdp, expert)


def test_a_feature_of_states_that_cannot_be_reached_is_named():
    # From 0 on, two states are visited; state 3 is not among them.
    transitions = np.zeros((4, 2, 4))
    transitions[:3, 0, 1] = transitions[:3, 1, 2] = transitions[3, :, 3] = 1.0
    mdp = MDP(transitions, np.eye(4)[:, [1, 3]], horizon=3, feature_names=["near", "far"], discount=0.95)
    with pytest.warns(IdentifiabilityWarning, match="among the features 'far'"):
        fit(mdp, Trajectories.from_lists([[0, 1, 2]]))


@quiet
@pytest.mark.parametrize("method", [MESSI, EMMaxEnt])
def test_every_estimator_warns(method):
    mdp, expert, unlabelled = more("finite", lambda f: f[..., :1], "copy")
    with pytest.warns(IdentifiabilityWarning, match="among the features 'sun', 'copy'"):
        method(max_iter=3, step_size=0.1).fit(mdp, expert, unlabelled)


def test_the_noncausal_model_warns_too():
    mdp, expert, _ = more("finite", lambda f: np.ones_like(f[..., :1]), "bias")
    with pytest.warns(IdentifiabilityWarning, match="among the features 'bias'"):
        fit(mdp, expert, entropy="noncausal")


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "goals", "steps", "sparse"])
def test_features_that_identify_theta_are_not_warned_of(kind):
    fit(*problem(kind)[:2])  # a warning would fail this test


def test_two_goals_identify_together_what_one_does_not():
    # In a corridor every trip to state 4 enters it once; a trip to state 0 may enter it or not.
    mdp = maze(1, 5, features=np.column_stack([np.ones(5), np.eye(5)[:, 4]]), discount=1.0)
    with pytest.warns(IdentifiabilityWarning, match="determined only up to"):
        fit(mdp, Trajectories.from_lists([[3, 4], [2, 3, 2, 3, 4]], goals=[4, 4]))
    fit(
        mdp, Trajectories.from_lists([[3, 4], [2, 3, 2, 3, 4], [2, 3, 4, 3, 2, 1, 0], [3, 2, 1, 0]], goals=[4, 4, 0, 0])
    )
