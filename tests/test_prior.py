"""A normal prior of the weights: in their own units, and the weaker the more trajectories there are."""

from __future__ import annotations

import numpy as np
import pytest
from cases import CASES, NAMES, case, mdp_of, trajectories_of
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import messirl
from messirl import MDP, MESSI, EMMaxEnt, MaxEntIRL, Trajectories, sample, soft_policy
from messirl.data.feature_scale import feature_spread
from messirl.selection import MESSICV, Candidate
from messirl.selection.candidates import CandidateFitter
from messirl.similarity import CompleteGraph

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore:trajectory .* ends after:UserWarning"),
]
FITS = [i for i, (kind, by_state, seed) in enumerate(CASES) if seed == by_state and "goals" not in kind][::2]
each = pytest.mark.parametrize("number", FITS, ids=[NAMES[i] for i in FITS])
both = pytest.mark.parametrize("objective", ["counts", "choices"])


def given(number: int):
    found = case(*CASES[number])
    return mdp_of(found.problem), *(trajectories_of(data) for data in (found.expert, found.others))


@each
def test_the_fit_is_the_mode_of_the_posterior(number):
    """Σ log π is computed by the model's own score, and the mode is found by SciPy without a gradient of ours."""
    mdp, expert, _ = given(number)
    unit, begin = feature_spread(mdp), case(*CASES[number]).theta
    model = MaxEntIRL(theta_prior=0.5, objective="choices", theta_init=begin, tol=1e-8).fit(mdp, expert)
    bench, alone = CandidateFitter(mdp, expert, None, yardstick=CompleteGraph()), Candidate("MaxEnt")

    def minus_log_posterior(theta):
        if not np.isfinite(value := bench.score(alone, theta, expert)):
            return 1e9
        return -value + 0.5 * np.sum((theta * unit / 0.5) ** 2)

    at = minus_log_posterior(model.theta_)
    found = minimize(minus_log_posterior, model.theta_ + 0.01 / unit, method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 20_000, "maxfev": 20_000})  # fmt: skip
    assert at <= found.fun + 1e-7 * (1 + abs(at))


@each
@both
def test_twice_the_trajectories_weigh_twice_as_much_against_it(number, objective):
    mdp, expert, _ = given(number)
    shared = {"objective": objective, "theta_init": case(*CASES[number]).theta, "tol": 1e-8}
    twice = MaxEntIRL(theta_prior=0.5, **shared).fit(mdp, expert + expert)
    weighted = MaxEntIRL(theta_prior=0.5, **shared).fit(mdp, expert, sample_weight=np.full(len(expert), 2.0))
    wider = MaxEntIRL(theta_prior=0.5 * np.sqrt(2.0), **shared).fit(mdp, expert)
    for model in (weighted, wider):
        assert_allclose(model.quadratic_, twice.quadratic_, rtol=1e-12)
        assert_allclose(model.theta_, twice.theta_, rtol=1e-5, atol=1e-7)


@each
@both
def test_the_unit_of_a_feature_changes_its_weight_and_nothing_else(number, objective):
    mdp, expert, others = given(number)
    begin = case(*CASES[number]).theta
    factor = np.ones(mdp.n_features)
    factor[-1] = 1e5
    other = MDP(mdp.transitions, features=np.asarray(mdp.features) * factor, discount=mdp.discount, start=mdp.start,
                horizon=mdp.horizon, terminal=mdp.terminal, allowed=mdp.allowed)  # fmt: skip
    shared = {"objective": objective, "theta_prior": 2.0, "lambda0": 0.5, "theta_max": 1e7, "tol": 1e-8}
    one = MESSI(CompleteGraph(), theta_init=begin, **shared).fit(mdp, expert, others)
    two = MESSI(CompleteGraph(), theta_init=begin / factor, **shared).fit(other, expert, others)
    assert_allclose(two.theta_ * factor, one.theta_, rtol=1e-4, atol=1e-6)


def corridor(places: int = 6) -> MDP:
    right, left = np.minimum(np.arange(places) + 1, places - 1), np.maximum(np.arange(places) - 1, 0)
    moves = np.stack([np.eye(places)[left], np.eye(places)[right]], axis=1)
    return MDP(moves, features=np.eye(places), discount=0.8)


def test_weights_that_no_trajectory_tells_of_stay_away_from_the_bound():
    mdp = corridor()
    expert = Trajectories([0, 1, 2, 1, 2, 1], [0, 6])
    with pytest.warns(ConvergenceWarning):
        free = MaxEntIRL(objective="counts").fit(mdp, expert)
    held = MaxEntIRL(objective="counts", theta_prior=2.0).fit(mdp, expert)
    assert np.abs(held.theta_).max() < 0.5 * np.abs(free.theta_).max()
    assert held.converged_


def test_a_wide_prior_changes_nothing():
    mdp = corridor()
    expert = sample(mdp, soft_policy(mdp, mdp.reward(np.linspace(0, 1, 6))), 200, 20, start=np.ones(6), random_state=0)
    plain, wide = (MaxEntIRL(theta_prior=prior, tol=1e-8).fit(mdp, expert) for prior in (None, 1e6))
    assert_allclose(wide.predict_proba(np.arange(6)), plain.predict_proba(np.arange(6)), atol=1e-5)


def test_a_fit_with_a_prior_is_saved_and_read_back(tmp_path):
    mdp, expert = corridor(), Trajectories([0, 1, 2, 3, 4, 5], [0, 6])
    model = MaxEntIRL(theta_prior=3.0).fit(mdp, expert)
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert again.theta_prior == 3.0
    assert_allclose(again.quadratic_, model.quadratic_, rtol=0)


@pytest.mark.parametrize("method", [MESSI, MaxEntIRL, MESSICV])
@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, "wide"])
def test_a_prior_that_is_none_is_refused(method, wrong):
    mdp, expert = corridor(), Trajectories([0, 1, 2, 3, 4, 5], [0, 6])
    with pytest.raises((ValueError, TypeError), match="theta_prior"):
        method(theta_prior=wrong).fit(mdp, expert)


def test_the_papers_steps_have_no_prior():
    mdp, expert = corridor(), Trajectories([0, 1, 2, 3, 4, 5], [0, 6])
    with pytest.raises(ValueError, match=r"theta_prior.* with solver='paper'"):
        MESSI(theta_prior=1.0, solver="paper").fit(mdp, expert)
    assert "theta_prior" not in EMMaxEnt().get_params()


@pytest.mark.parametrize("prior", [None, 1.0])
def test_every_candidate_of_a_selection_has_its_prior(prior):
    mdp = corridor()
    policy = soft_policy(mdp, mdp.reward(np.linspace(0, 2, 6)))
    expert = sample(mdp, policy, 6, 12, start=np.ones(6), random_state=0)
    others = sample(mdp, policy, 9, 12, start=np.ones(6), random_state=1)
    model = MESSICV(theta_prior=prior, lambdas=[0.1]).fit(mdp, expert, others)
    assert model.best_estimator_.theta_prior == prior
    bench = CandidateFitter(mdp, expert, others, yardstick=CompleteGraph(), theta_prior=prior)
    alone = bench.penalty(Candidate("MaxEnt"))
    assert alone is None if prior is None else (np.diag(alone) > 0).all()
