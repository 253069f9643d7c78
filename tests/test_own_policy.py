"""MESSI whose penalty is over pairs with trajectories of the learnt policy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from seeds import pinned
from sklearn.exceptions import ConvergenceWarning
from worlds import drawn, random_mdp

from messirl import MaxEntIRL, Trajectories, feature_counts, load
from messirl.estimators import OwnPolicyMESSI
from messirl.similarity import RBF, CompleteGraph


def made():
    mdp = random_mdp(3, 6, 3, 3, discount=0.8, start=np.full(6, 1 / 6))
    return mdp, drawn(mdp, [2.0, -1.0, 0.0], 5, 1, length=40), drawn(mdp, [0.0, 1.0, 1.0], 12, 2, length=40)


@pytest.fixture(scope="module")
def world():
    return made()


def own(**options):
    return OwnPolicyMESSI(**{"similarity": RBF(2.0), "lambda0": 20.0, "random_state": 0, **options})


def test_without_a_penalty_it_is_maxent(world):
    mdp, expert, others = world
    model = own(lambda0=0.0).fit(mdp, expert, others)
    assert_allclose(model.theta_, MaxEntIRL().fit(mdp, expert).theta_, rtol=1e-4, atol=1e-4)
    assert (model.n_rounds_, model.converged_) == (1, True)


def test_the_penalty_is_the_sum_over_pairs_of_recorded_and_drawn_trajectories(world):
    mdp, expert, others = world
    model = own(similarity=CompleteGraph(), n_draws=7, max_rounds=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(mdp, expert, others)
    recorded, made = (feature_counts(mdp, some) for some in (expert + others, model.drawn_))
    theta, n = np.array([1.0, -2.0, 0.5]), len(recorded) + len(made)
    by_hand = sum(2 * float(theta @ (f - g)) ** 2 for f in recorded for g in made) / (2 * n)
    assert_allclose(0.5 * theta @ model.penalty_matrix_ @ theta, by_hand)


def test_it_settles_saves_and_loads(tmp_path):
    """Where it settles: of some random problems it says that it does not."""
    with pinned():
        mdp, expert, others = made()
    model = own().fit(mdp, expert, others)
    assert model.converged_
    assert model.n_rounds_ < model.max_rounds
    model.save(tmp_path / "model.npz")
    assert_allclose(load(tmp_path / "model.npz").score(others), model.score(others))


def test_what_it_cannot_use_it_says(world):
    mdp, expert, others = world
    with pytest.raises(ValueError, match="in its penalty alone"):
        own(unlabelled_weight=0.1).fit(mdp, expert, others)
    goals = Trajectories.from_lists([[0, 1, 2]], goals=[2])
    with pytest.raises(ValueError, match="with goals there are many: use MESSI"):
        own().fit(mdp, goals)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 rounds"):
        own(max_rounds=1, lambda0=200.0).fit(mdp, expert, others)
