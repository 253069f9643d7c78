"""Several experts: groups that are given, and groups that are found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem
from scipy.special import logsumexp
from seeds import pinned
from worlds import ROUNDING, drawn, never_falls, random_mdp, to_rounding

import messirl
from messirl import MESSI, MaxEntIRL, Trajectories, soft_policy
from messirl.estimators import MixtureMESSI, SeveralExperts
from messirl.estimators._training_data import TrainingData
from messirl.estimators.multi_expert import StackedObjective
from messirl.planning.likelihood import reward_log_likelihood
from messirl.similarity import RBF

pytestmark = pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning")
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
each = pytest.mark.parametrize("kind", KINDS)
FIRST, SECOND = np.array([3.0, -2.0, 1.0]), np.array([-2.0, 2.0, 0.0])


@cache
def two_experts(n: int = 25):
    mdp = random_mdp(2, discount=0.9, horizon=8, start=np.full(5, 0.2))
    return mdp, drawn(mdp, FIRST, n, 1), drawn(mdp, SECOND, n, 2)


def labels(*sizes: int) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


# ------------------------------------------------------------ groups that are given


@quiet
@each
@pytest.mark.parametrize("objective", ["choices", "counts"])
def test_one_group_is_messi(kind, objective):
    mdp, expert, unlabelled = problem(kind)
    alike = {"similarity": RBF(1.0), "lambda0": 2.0, "objective": objective, "theta_prior": 5.0}
    one, plain = (cls(**alike).fit(mdp, expert, unlabelled) for cls in (SeveralExperts, MESSI))
    assert_allclose(one.theta_, plain.theta_, rtol=1e-9, atol=1e-9)
    assert_allclose(one.objective_, plain.objective_, rtol=1e-10)
    assert_allclose(one.visitation_, plain.visitation_, rtol=1e-8, atol=1e-10)
    assert_allclose(one.score(unlabelled), plain.score(unlabelled), rtol=1e-8)
    assert_array_equal(one.thetas_, one.theta_[None])


@quiet
@each
def test_experts_that_may_not_differ_are_one(kind):
    mdp, expert, unlabelled = problem(kind)
    alike = {"similarity": RBF(1.0), "lambda0": 2.0, "tol": 1e-8, "max_iter": 500}
    some = SeveralExperts(spread=1e-4, **alike).fit(mdp, expert, unlabelled, groups=np.arange(len(expert)) % 2)
    together = MESSI(**alike).fit(mdp, expert, unlabelled)
    assert_allclose(some.score(expert), together.score(expert), atol=1e-5)
    assert_allclose(some.score(expert, np.arange(len(expert)) % 2), together.score(expert), atol=1e-5)


@quiet
def test_experts_that_may_differ_as_they_like_have_fits_of_their_own():
    mdp, one, other = two_experts()
    model = SeveralExperts(lambda0=0.0, spread=1e5, tol=1e-8, max_iter=500).fit(mdp, one + other, groups=labels(25, 25))
    alone = [MaxEntIRL(tol=1e-8, max_iter=500).fit(mdp, some).theta_ for some in (one, other)]
    assert_allclose(model.thetas_, alone, rtol=1e-3, atol=1e-3)
    assert_allclose(model.theta_, np.mean(alone, axis=0), rtol=1e-3, atol=1e-3)


@quiet
def test_what_is_shared_is_the_mean_and_own_parts_shrink_with_the_spread():
    mdp, one, other = two_experts()
    gaps = []
    for spread in (10.0, 1.0, 0.1):
        model = SeveralExperts(lambda0=0.0, spread=spread).fit(mdp, one + other, groups=labels(25, 25))
        assert_allclose(model.theta_, model.thetas_.mean(axis=0), rtol=1e-12)
        gaps.append(np.linalg.norm(model.thetas_[0] - model.thetas_[1]))
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("objective", ["choices", "counts"])
@each
def test_the_slope_of_all_groups_is_that_of_finite_differences(kind, objective):
    mdp, expert, _ = problem(kind)
    model, of = SeveralExperts(objective=objective), np.arange(len(expert)) % 3
    counts = model._counts(mdp, TrainingData(expert), penalised=False)
    weight = np.linspace(0.5, 2.0, len(expert))

    def part(which):
        return model._objective(mdp, expert[which], None if counts is None else counts[which], None, weight[which], 1)

    together = part(np.arange(len(expert)))
    d = mdp.n_features
    parts = [part(np.flatnonzero(of == k)) for k in range(3)]
    stacked = StackedObjective(parts, together, np.array([0.5, 0.3, 0.2]), 0.1 * np.eye(d), 0.2 * np.eye(d), 0.7)
    begin = model._theta_start(mdp, together)
    theta = np.tile(begin, 3) - 0.05 * np.linspace(0.5, 1.0, 3 * d)
    step = 1e-5
    slope = [(stacked(theta + w).value - stacked(theta - w).value) / (2 * step) for w in step * np.eye(3 * d)]
    found = stacked(theta).gradient
    assert_allclose(found, slope, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(found).max()))
    same = np.tile(begin, 3)  # with one theta for all the likelihoods add up to that of all
    plain = StackedObjective(parts, together, np.full(3, 1 / 3), None, None, 0.7)
    assert_allclose(plain(same).value, together(begin).value, rtol=1e-9)


@quiet
def test_a_group_is_asked_by_its_label():
    mdp, one, other = two_experts()
    names = np.array(["east"] * 25 + ["west"] * 25)
    model = SeveralExperts(lambda0=0.0).fit(mdp, one + other, groups=names)
    assert model.groups_.tolist() == ["east", "west"]
    assert model.score(one + other, names) > model.score(one + other)
    expected = reward_log_likelihood(mdp, mdp.reward(model.thetas_[1]), other, mdp.start).sum() / (25 * 7)
    assert_allclose(model.score(other, ["west"] * 25), expected, rtol=1e-9)
    for name, theta in zip(["east", "west"], model.thetas_, strict=True):
        own = soft_policy(mdp, mdp.reward(theta))[0]
        assert_allclose(model.predict_proba(range(5), 0, group=name), own, rtol=1e-9)
    assert len(model.sample(3, group="west", random_state=0)) == 3
    with pytest.raises(ValueError, match="group 'north' is not in the fit: choose from east and west"):
        model.predict_proba([0], 0, group="north")


@quiet
def test_order_of_experts_and_their_names_change_nothing():
    mdp, one, other = two_experts()
    both, of = one + other, labels(25, 25)
    plain = SeveralExperts(lambda0=0.0, tol=1e-8).fit(mdp, both, groups=of)
    order = np.arange(50)[::-1]
    turned = SeveralExperts(lambda0=0.0, tol=1e-8).fit(mdp, both[order], groups=np.array(["b", "a"])[of[order]])
    assert_allclose(turned.thetas_[::-1], plain.thetas_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "groups", "error", "message"),
    [
        (SeveralExperts(), [0, 1], ValueError, r"groups has shape \(2,\): give one label for each of the 30"),
        (SeveralExperts(), np.full(30, 0.5), TypeError, "groups must be whole numbers or texts"),
        (SeveralExperts(spread=0.0), None, ValueError, "spread=0.0: it must be finite and > 0"),
        (SeveralExperts(unlabelled_weight=0.5), None, ValueError, "unlabelled_weight=0.5: .* needs 0"),
        (SeveralExperts(warm_start=True), None, ValueError, "warm_start=True: .* needs False"),
        (MixtureMESSI(), np.full(30, 2), ValueError, "groups must be whole numbers 0 … 1, or −1"),
        (MixtureMESSI(), ["a"] * 30, ValueError, "groups must be whole numbers 0 … 1, or −1"),
        (MixtureMESSI(n_groups=0), None, ValueError, "n_groups=0: it must be a whole number >= 1"),
        (MixtureMESSI(objective="counts"), None, ValueError, "MixtureMESSI needs objective='choices'"),
        (MixtureMESSI(entropy="noncausal"), None, ValueError, "MixtureMESSI needs objective='choices'"),
    ],
)
def test_what_cannot_be_is_said_at_once(model, groups, error, message):
    mdp, expert, unlabelled = problem("finite")
    with pytest.raises(error, match=message):
        model.fit(mdp, expert, unlabelled, groups=groups)


def test_a_mixture_needs_trajectories_in_memory(tmp_path):
    mdp, expert, _ = problem("finite")
    with pytest.raises(ValueError, match="MixtureMESSI reweights every trajectory in each round"):
        MixtureMESSI().fit(mdp, expert, tmp_path / "some.parquet")


# ------------------------------------------------------------ groups that are found


@quiet
@each
@pytest.mark.parametrize("lambda0", [0.0, 5.0])
def test_the_objective_of_a_mixture_never_falls(kind, lambda0):
    mdp, expert, unlabelled = problem(kind)
    model = MixtureMESSI(RBF(1.0), lambda0=lambda0, theta_max=50.0, n_starts=1, max_rounds=15, random_state=0)
    model.fit(mdp, expert, unlabelled)
    assert never_falls(model.history_.objective)
    assert_allclose(model.responsibilities_.sum(axis=1), 1.0)
    assert_allclose(model.weights_.sum(), 1.0)


@quiet
def test_the_objective_of_a_mixture_is_what_it_says():
    mdp, expert, unlabelled = problem("finite")
    model = MixtureMESSI(RBF(1.0), lambda0=5.0, theta_max=50.0, random_state=0, max_rounds=3)
    model.fit(mdp, expert, unlabelled)
    everyone, w = expert + unlabelled, model.weights_
    logs = np.stack([reward_log_likelihood(mdp, mdp.reward(t), everyone, mdp.start) for t in model.thetas_], axis=1)
    free = logsumexp(logs[len(expert) :] + np.log(w), axis=1).sum()
    known = (logs[: len(expert), 0] + np.log(w[0])).sum()
    assert_allclose(model.log_likelihood_, free + known, rtol=1e-9)
    scale = (1 - 0.9**5) / 0.1 / 5  # c: a choice weighs what it weighs in counts
    penalty = sum(0.5 * t @ (0.1 * model.penalty_matrix_) @ t for t in model.thetas_)
    assert_allclose(model.objective_, model.log_likelihood_ * scale / len(everyone) - penalty, rtol=1e-9)
    assert_allclose(model.history_.log_likelihood[-1], model.log_likelihood_)


@to_rounding
@each
def test_a_mixture_of_one_is_messi_of_everyone(kind):
    mdp, expert, unlabelled = problem(kind)
    alike = {"similarity": RBF(1.0), "lambda0": 2.0, "theta_prior": 3.0}
    one = MixtureMESSI(n_groups=1, n_starts=1, **alike).fit(mdp, expert, unlabelled)
    plain = MESSI(unlabelled_weight=1.0, **alike).fit(mdp, expert, unlabelled)
    assert_allclose(one.objective_, plain.objective_, rtol=1e-6)
    assert_allclose(one.score(unlabelled), plain.score(unlabelled), atol=1e-4)


def test_a_mixture_finds_the_groups_and_which_of_them_is_the_experts():
    with pinned():  # of other draws too, but how many go astray is a matter of luck
        mdp = random_mdp(2, discount=0.9, horizon=60, start=np.full(5, 0.2))
        one, other = drawn(mdp, FIRST, 20, 1), drawn(mdp, SECOND, 20, 2)
    model = MixtureMESSI(lambda0=0.0, random_state=0).fit(mdp, one[:3], one[3:] + other)
    assert model.converged_
    assert_array_equal(model.responsibilities_.argmax(axis=1), labels(20, 20))
    assert_allclose(model.weights_, 0.5, atol=0.01)
    assert_allclose(model.effective_sizes_, 20.0, atol=1.0)
    assert_array_equal(model.predict_groups(other).argmax(axis=1), 1)
    alone = MaxEntIRL().fit(mdp, one)
    assert abs(model.score(one, group=0) - alone.score(one)) < 0.01
    without = MixtureMESSI(lambda0=0.0, random_state=0).fit(mdp, one + other)  # nobody is pinned
    found = without.responsibilities_.argmax(axis=1)
    assert_array_equal(found == found[0], labels(20, 20) == 0)


def test_known_experts_stay_where_they_are_pinned():
    with pinned():  # of some draws the two kinds of experts are much alike, and the others cannot be told apart
        mdp, one, other = two_experts.__wrapped__()
    groups = np.where(np.arange(50) % 5 == 0, labels(25, 25), -1)
    model = MixtureMESSI(lambda0=0.0, random_state=0).fit(mdp, one + other, groups=groups)
    known = groups >= 0
    assert_array_equal(model.responsibilities_[known, groups[known]], 1.0)
    assert (model.responsibilities_[~known].argmax(axis=1) == labels(25, 25)[~known]).mean() > 0.7


def test_a_mixture_scores_trajectories_it_knows_nothing_of():
    mdp, one, other = two_experts()
    model = MixtureMESSI(lambda0=0.0, random_state=0).fit(mdp, one[:5], one[5:] + other)
    logs = np.stack([reward_log_likelihood(mdp, mdp.reward(t), other, mdp.start) for t in model.thetas_], axis=1)
    expected = logsumexp(logs + np.log(model.weights_), axis=1).sum() / (25 * 7)
    assert_allclose(model.score(other), expected, rtol=1e-9)
    assert_allclose(model.score(other, group=1), logs[:, 1].sum() / (25 * 7), rtol=1e-9)
    assert_allclose(model.predict_groups(other).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="group 2 is not one of 0 … 1"):
        model.score(other, group=2)


def test_a_seed_gives_the_same_mixture_again():
    mdp, one, other = two_experts()
    once, again = (
        MixtureMESSI(random_state=3, n_starts=2, lambda0=0.0).fit(mdp, one[:5], one[5:] + other) for _ in range(2)
    )
    assert_array_equal(once.thetas_, again.thetas_)


@quiet
def test_a_callback_hears_of_every_round_and_may_stop_the_search():
    mdp, one, other = two_experts()
    heard = []

    def tell(state):
        heard.append(state["objective"])
        return len(heard) == 4

    model = MixtureMESSI(lambda0=0.0, random_state=0, callback=tell).fit(mdp, one[:5], one[5:] + other)
    assert_array_equal(model.history_.objective, heard)
    assert not model.converged_
    assert "callback" in model.termination_


@quiet
@each
@pytest.mark.parametrize("cls", [SeveralExperts, MixtureMESSI])
def test_groups_come_back_from_a_file(cls, kind, tmp_path):
    mdp, expert, unlabelled = problem(kind)
    groups = np.array(["x", "y"])[np.arange(len(expert)) % 2] if cls is SeveralExperts else None
    settings = {} if cls is SeveralExperts else {"n_starts": 1, "max_rounds": 3, "random_state": 0}
    model = cls(RBF(1.0), lambda0=2.0, **settings).fit(mdp, expert, unlabelled, groups=groups)
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert type(again) is cls
    assert_array_equal(again.thetas_, model.thetas_)
    assert_allclose(again.score(unlabelled), model.score(unlabelled), rtol=ROUNDING)
    if cls is SeveralExperts:
        assert again.score(expert, groups) == model.score(expert, groups)
    else:
        assert_allclose(again.predict_groups(expert), model.predict_groups(expert), atol=1e-12)


def test_a_trajectory_without_a_step_belongs_to_a_group_too():
    mdp, one, other = two_experts()
    mdp = mdp.replace(horizon=None)
    short = Trajectories.from_lists([[0]], actions=[[]])
    model = SeveralExperts(lambda0=0.0).fit(mdp, one + other, groups=labels(25, 25))
    scored = model.score(one + short, [*labels(25).tolist(), 1])
    assert_allclose(scored, model.score(one, labels(25)), rtol=1e-12)
