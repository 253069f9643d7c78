"""Relative entropy IRL: its dual against all trajectories of a small problem, its optimum against its conditions."""

from __future__ import annotations

from itertools import product

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose
from problems import problem
from seeds import generator, shifted
from worlds import maze, random_mdp, without_actions

from messirl import MDP, Trajectories, feature_counts, sample, soft_policy
from messirl.data.feature_scale import feature_spread
from messirl.estimators import RelativeEntropyIRL
from messirl.estimators._prior_policy import fit_population_policy
from messirl.estimators.relative_entropy import closest_to_base, dual, importance
from messirl.planning import soft_values, visits

seeds = pytest.mark.parametrize("seed", range(3))


def ring_of_choices(seed: int, **more) -> MDP:
    """Four states, two actions each, deterministic: every sequence of actions is one trajectory."""
    rng = generator(seed)
    moves = np.eye(4)[np.array([rng.permutation(4)[:2] for _ in range(4)])]
    return MDP(moves, rng.random((4, 2)), horizon=5, start=np.eye(4)[0], **more)


def all_trajectories(mdp: MDP) -> Trajectories:
    """Every one that there is from the first state, each with its actions."""
    leads = mdp.transitions.toarray().argmax(axis=1).reshape(mdp.n_states, mdp.n_actions)
    courses, taken = [], [list(actions) for actions in product(range(mdp.n_actions), repeat=mdp.horizon - 1)]
    for actions in taken:
        states = [0]
        for a in actions:
            states.append(int(leads[states[-1], a]))
        courses.append(states)
    return Trajectories.from_lists(courses, actions=taken)


@seeds
def test_over_all_trajectories_the_dual_is_the_log_partition_of_the_model(seed):
    """With random moves: Q is their probability and that of a uniform policy, log Z that of the noncausal model."""
    rng = generator(seed)
    mdp = random_mdp(seed, 3, 2, 2, discount=0.9, horizon=4, start=[0.5, 0.3, 0.2])
    p = mdp.transitions.toarray().reshape(3, 2, 3)
    courses, taken, logs = [], [], []
    for states in product(range(3), repeat=4):
        for actions in product(range(2), repeat=3):
            chance = [p[s, a, t] for s, a, t in zip(states[:-1], actions, states[1:], strict=True)]
            courses.append(states)
            taken.append(actions)
            logs.append(np.log(mdp.start[states[0]]) + np.sum(np.log(chance)) - 3 * np.log(2.0))
    counts = feature_counts(mdp, Trajectories.from_lists(courses, actions=taken))
    theta, target = rng.normal(size=2), rng.random(2)
    value, gradient = dual(theta, target, counts, np.array(logs))
    values = soft_values(mdp, mdp.reward(theta), entropy="noncausal")[0]
    exact = theta @ target - np.log(mdp.start @ np.exp(values)) + 3 * np.log(2.0)
    assert_allclose(value, exact, rtol=1e-9)
    slope = oracle.finite_difference(lambda x: dual(x, target, counts, np.array(logs))[0], theta)
    assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8)


@seeds
def test_the_optimum_satisfies_the_conditions_for_one(seed):
    rng = generator(seed)
    counts, epsilon = rng.normal(size=(40, 4)), 0.1
    target = counts[:7].mean(axis=0)
    log_weights = np.log(rng.dirichlet(np.ones(40)))
    theta, converged = closest_to_base(target, counts, log_weights, epsilon)
    _, gradient = dual(theta, target, counts, log_weights)
    held = np.abs(theta) < 1e-7
    assert converged
    assert np.abs(gradient[held]).max(initial=0.0) <= epsilon + 1e-5
    assert_allclose(gradient[~held], epsilon * np.sign(theta[~held]), atol=1e-5)


@seeds
def test_from_every_trajectory_once_it_is_maximum_entropy_with_slack(seed):
    """Deterministic moves and γ = 1: the base is the uniform policy, and the model is that of maximum entropy."""
    mdp = ring_of_choices(seed, discount=1.0)
    everyone = all_trajectories(mdp)
    expert = sample(mdp, soft_policy(mdp, mdp.reward([1.0, -0.5])), 40, random_state=shifted(seed))
    model = RelativeEntropyIRL(epsilon=0.05).fit(mdp, expert, everyone)
    unit = feature_spread(mdp)
    expected = visits(mdp, soft_policy(mdp, model.reward_)).counts(mdp)
    assert_allclose(model.feature_counts_, expected, atol=1e-6)
    gap = (feature_counts(mdp, expert).mean(axis=0) - expected) / unit
    held = np.abs(model.theta_) * unit < 1e-7
    assert model.missed_ < 1e-6
    assert np.abs(gap[held]).max(initial=0.0) <= 0.05 + 1e-5
    assert_allclose(gap[~held], 0.05 * np.sign(model.theta_[~held]), atol=1e-5)


def test_the_policy_is_the_base_policy_where_the_reward_is_nothing():
    mdp, expert, unlabelled = problem("finite")
    model = RelativeEntropyIRL(epsilon=1e3).fit(mdp, expert, unlabelled)
    assert_allclose(model.theta_, 0.0, atol=1e-9)
    usual = fit_population_policy(mdp, unlabelled, 10.0)
    assert_allclose(model.policy_, np.broadcast_to(usual, mdp.policy_shape), rtol=1e-9)


@seeds
def test_the_dynamics_do_not_matter_to_the_weights(seed):
    mdp, expert, unlabelled = problem("endless")
    p = mdp.transitions.toarray()
    bent = p * generator(seed).uniform(0.2, 1.0, size=p.shape)
    other = mdp.replace(transitions=(bent / bent.sum(axis=1, keepdims=True)).reshape(5, 3, 5))
    a, b = (RelativeEntropyIRL(base=base).fit(mdp, expert, unlabelled).theta_ for base in ("unlabelled", "uniform"))
    assert_allclose(RelativeEntropyIRL().fit(other, expert, unlabelled).theta_, a, rtol=1e-9)
    assert_allclose(RelativeEntropyIRL(base="uniform").fit(other, expert, unlabelled).theta_, b, rtol=1e-9)


def test_importance_is_the_ratio_of_the_two_policies_step_by_step():
    mdp, _, unlabelled = problem("finite")
    base, own = (generator(seed).dirichlet(np.ones(3), size=5) for seed in (1, 2))
    ratios = [
        np.prod([base[s, a] / own[s, a] for s, a in zip(t.states[:-1], t.actions, strict=True)]) for t in unlabelled
    ]
    assert_allclose(np.exp(importance(mdp, unlabelled, base, own)), np.array(ratios) / np.sum(ratios), rtol=1e-9)


def test_weighted_by_importance_a_sample_of_one_policy_stands_for_another():
    """All trajectories, weighted by a policy's chances and then back, are as if each had been drawn once."""
    mdp = ring_of_choices(2, discount=0.9)
    everyone, rng = all_trajectories(mdp), generator(4)
    counts, theta, target = feature_counts(mdp, everyone), rng.normal(size=2), rng.random(2)
    base, own = np.full((4, 2), 0.5), rng.dirichlet(np.ones(2), size=4)
    drawn_by = importance(mdp, everyone, own, base)  # what a large sample of `own` would hold of each
    back = importance(mdp, everyone, base, own) + drawn_by
    plain = np.full(len(everyone), -np.log(len(everyone)))
    back -= np.log(np.exp(back).sum())
    assert_allclose(dual(theta, target, counts, back)[1], dual(theta, target, counts, plain)[1], rtol=1e-9)


def test_counts_that_no_weighting_has_are_replaced_by_the_closest():
    mdp, expert, unlabelled = problem("endless")
    far = np.abs(feature_counts(mdp, unlabelled) - feature_counts(mdp, expert).mean(axis=0)).sum(axis=1).argmax()
    unlabelled = unlabelled[np.full(8, far)]  # which have one mean, whatever their weights
    model = RelativeEntropyIRL().fit(mdp, expert, unlabelled)
    assert model.missed_ > 0.1
    assert model.converged_
    assert np.abs(model.theta_ * feature_spread(mdp)).sum() <= np.log(len(unlabelled)) / model.epsilon + 1e-6


def test_units_and_order_of_features_do_not_matter():
    mdp, expert, unlabelled = problem("endless")
    factor, order = np.array([1.0, 1000.0, 0.01]), [2, 0, 1]
    theta = RelativeEntropyIRL().fit(mdp, expert, unlabelled).theta_
    other = mdp.replace(features=(mdp.features * factor)[:, order])
    again = RelativeEntropyIRL().fit(other, expert, unlabelled).theta_
    assert_allclose(again * factor[order], theta[order], atol=1e-4 * np.abs(theta).max())


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic"])
def test_without_others_it_draws_its_own(kind):
    mdp, expert, _ = problem(kind)
    model = RelativeEntropyIRL(base="uniform", n_samples=300, random_state=shifted(0)).fit(mdp, expert)
    again = RelativeEntropyIRL(base="uniform", n_samples=300, random_state=shifted(0)).fit(mdp, expert)
    assert_allclose(model.theta_, again.theta_)
    assert model.effective_sample_size_ <= 300 * (1.0 + 1e-9)
    given = RelativeEntropyIRL(
        base=mdp.allowed / mdp.allowed.sum(1, keepdims=True).clip(1), n_samples=300, random_state=shifted(0)
    )
    assert_allclose(given.fit(mdp, expert).theta_, model.theta_)


def test_actions_are_not_needed():
    mdp, expert, unlabelled = problem("finite")
    theta = RelativeEntropyIRL().fit(mdp, expert, unlabelled).theta_
    bare = RelativeEntropyIRL().fit(mdp, without_actions(expert), without_actions(unlabelled))
    assert_allclose(bare.theta_, theta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": "experts"}, "base='experts': choose 'unlabelled' or 'uniform'"),
        ({"base": np.full((5, 3), 0.5)}, "sum"),
        ({"epsilon": 0.0}, "epsilon=0.0: it must be finite and > 0"),
        ({"n_samples": 0}, "n_samples=0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RelativeEntropyIRL(**arguments).fit(*problem("finite"))


def test_a_maze_with_an_end_has_its_experts_told_from_wanderers():
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8, start=np.eye(9)[0])
    straight = sample(mdp, soft_policy(mdp, mdp.reward([-4.0, 0.0])), 20, random_state=shifted(1))
    model = RelativeEntropyIRL(base="uniform", random_state=shifted(2)).fit(mdp, straight)
    assert model.theta_[0] < 0.0
    assert model.score(straight) > RelativeEntropyIRL(base="uniform", epsilon=1e3, random_state=0).fit(
        mdp, straight
    ).score(straight)
