"""What a fit claims: convergence only where there is an optimum, a warning where trajectories leave weights open."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from roads import network, trips
from seeds import generator
from worlds import drawn, random_mdp, ring

from messirl import MDP, MESSI, MaxEntIRL, Trajectories, feature_counts, soft_policy
from messirl.app.workflow.verdict import compare_scores
from messirl.data.validation import unfinished
from messirl.estimators._convergence_report import IdentifiabilityWarning, least_determined_direction
from messirl.inference.baselines import explain_missing_scores, held_out_scores
from messirl.objective import Objective
from messirl.planning import NoFiniteValue
from studies.two_starts import fitted, random_problem, well_determined

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")


# ------------------------------------------------------------ separation


def always_alike():
    """Four states; one choice is always made the same way."""
    moves = np.zeros((4, 3, 4))
    moves[0, 2, 0] = moves[1, 2, 2] = moves[2, 0, 3] = moves[2, 1, 1] = moves[3, 0, 3] = moves[3, 2, 0] = 1
    features = [[1.48, -0.35], [-0.26, 1.39], [0.33, 0.02], [-0.37, -0.93]]
    forth, back = [2, 1] * 6, [1, 2] * 6
    walks = [forth, [3] + [0] * 11, [0] * 12, [3] * 5 + [0] * 7, back, forth, forth, [0] * 12, forth]
    action = {(2, 1): 1, (1, 2): 2, (3, 0): 2, (0, 0): 2, (3, 3): 0}
    taken = [[action[step] for step in pairwise(walk)] for walk in walks]
    return MDP(moves, features, discount=0.99), Trajectories.from_lists(walks, taken)


@pytest.mark.parametrize("start", [None, [-3.0, 10.0], [-30.0, 96.0]])
def test_a_choice_that_is_always_made_alike_is_warned_of_from_every_start(start):
    with pytest.warns(UserWarning, match=r"hardly determine theta along .*theta_prior=10|data hardly determine"):
        model = MaxEntIRL(theta_init=start).fit(*always_alike())
    assert not model.converged_
    assert model.standing_.undetermined or model.standing_.unsettled


def test_with_a_weak_prior_nothing_is_left_open():
    found = [MaxEntIRL(theta_prior=10.0, theta_init=start).fit(*always_alike()) for start in (None, [-3.0, 10.0])]
    assert all(model.converged_ and not model.standing_.undetermined for model in found)
    assert_allclose(found[0].theta_, found[1].theta_, rtol=1e-5)


def test_the_widest_direction_is_that_of_the_inverse_information():
    rng = generator(3)
    root, theta, unit = rng.normal(size=(6, 4)), rng.normal(size=4), np.ones(4)
    information = root.T @ root
    change, length = least_determined_direction(information, theta, unit, np.inf, np.zeros((0, 4)))
    assert_allclose(change @ information @ change, 1.0, rtol=1e-9)
    errors = np.sqrt(np.diag(np.linalg.inv(information))) / np.maximum(np.abs(theta), 1.0)
    assert errors.max() / 2.0 <= length <= errors.max() * (1.0 + 1e-9)
    flat = information - np.outer(information @ change, information @ change)  # nothing along this change any more
    assert least_determined_direction(flat, theta, unit, np.inf, np.zeros((0, 4)))[1] > 1e5
    assert (
        least_determined_direction(flat, theta, unit, np.inf, change[None])[1] < 10.0 * length
    )  # it is known to say nothing


@quiet
def test_silent_fits_from_two_starts_agree():
    silent = clear = 0
    for number in range(60):
        rng = generator(number)
        made = random_problem(rng)
        if made is None:
            continue
        _, mdp, expert = made
        pair = [fitted(mdp, expert, start) for start in (None, 3.0 * rng.normal(size=mdp.n_features))]
        if pair[0] is None or pair[1] is None:
            continue
        (one, said), (two, said_too) = pair
        if well_determined(mdp, expert, one.theta_):
            clear += 1
            assert not said
        if not said and not said_too:
            silent += 1
            assert_allclose(one.theta_, two.theta_, rtol=1e-4, atol=1e-4)
            assert_allclose(one.objective_, two.objective_, atol=1e-8)
    assert silent >= 10
    assert clear >= 10


def test_what_is_claimed_does_not_depend_on_the_sum_of_the_weights():
    mdp, expert = network(), trips(network(), 20, 3)
    for total in (1.0, 1e-6, 1e6):
        model = MaxEntIRL().fit(mdp, expert, sample_weight=np.full(len(expert), total))
        assert model.converged_
        assert not model.standing_.undetermined


@quiet
def test_a_second_start_goes_on_counting_and_can_be_stopped():
    mdp = random_mdp(2, discount=0.9, horizon=6)
    expert, seen = drawn(mdp, [1.0, -2.0, 0.5], 8, 1, start=np.ones(5)), []
    model = MaxEntIRL(ridge=1e-2, theta_init=[2.0, 2.0, 2.0], max_iter=200)
    assert not Objective.from_trajectories(mdp, expert, objective="choices").concave
    model.set_params(callback=lambda state: seen.append((state["iteration"], state["evaluations"]))).fit(mdp, expert)
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen)
    first, last = model.n_iter_, seen[-1][0]
    assert last > first

    def stop(state):
        return state["iteration"] == last

    model.set_params(callback=stop).fit(mdp, expert)
    assert not model.converged_
    assert model.termination_ == "the callback asked to stop"


# ------------------------------------------------------------ directions that a horizon hides


@pytest.mark.parametrize("horizon", [2, 3, 4, 7])
def test_a_state_that_is_met_at_the_start_alone_tells_nothing_later(horizon):
    moves = np.zeros((3, 2, 3))
    moves[0, 0, 2] = moves[0, 1, 1] = moves[1, 0, 2] = 1
    features, ends = [[0.0, 0.0], [1.0, 0.3], [0.2, 1.0]], [False, False, True]
    mdp = MDP(moves, features, discount=0.9, horizon=horizon, terminal=ends)
    expert = Trajectories.from_lists([[0, 2]] * 2 + [[0, 1, 2][:horizon]], [[0]] * 2 + [[1, 0][: horizon - 1]])
    with pytest.warns(IdentifiabilityWarning, match="determined only up to 1 direction"):
        MaxEntIRL().fit(mdp, expert)


# ------------------------------------------------------------ values and likelihoods


def test_a_long_but_certain_way_to_the_end_has_a_value():
    escape = 1.75e-10
    moves = np.zeros((3, 2, 3))
    moves[0, 0, [0, 1]] = [1 - escape, escape]
    moves[0, 1, [0, 2]] = [1 - 2 * escape, 2 * escape]
    moves[2, 0, 1] = 1
    mdp = MDP(moves, np.ones((3, 1)), discount=1.0, terminal=[False, True, False])
    assert soft_policy(mdp, mdp.reward([-1.0]))[0].sum() == pytest.approx(1.0)


def test_a_way_that_is_too_long_to_compute_is_not_called_infinite():
    moves = np.zeros((2, 2, 2))
    moves[0, 0] = moves[0, 1] = [1 - 1e-13, 1e-13]
    mdp = MDP(moves, np.ones((2, 1)), discount=1.0, terminal=[False, True])
    with pytest.raises(NoFiniteValue, match=r"takes about 1e\+13 steps to end"):
        soft_policy(mdp, mdp.reward([-1.0]))


def test_a_log_likelihood_of_choices_is_never_positive():
    mdp = ring(4, discount=0.99)
    expert = Trajectories.from_lists([[0] * 10, [1, 2, 3, 0, 0, 0, 0]])
    objective = Objective.from_trajectories(mdp, expert, objective="choices")
    for size in 10.0 ** np.arange(1, 9):  # values of that size cancel, up to their rounding
        assert objective(size * np.array([1.0, -1.0, -0.3])).value <= 0.0


# ------------------------------------------------------------ unfinished trajectories


def corridor():
    """Six places in a row with an end at either side, and its features."""
    moves = np.zeros((6, 2, 6))
    for s in range(1, 5):
        moves[s, 0, s - 1] = moves[s, 1, s + 1] = 1.0
    return MDP(moves, np.column_stack([np.ones(6), np.arange(6) / 5]), discount=1.0, terminal=np.arange(6) % 5 == 0)


def test_choices_of_unfinished_trajectories_are_those_of_their_steps():
    mdp, theta = corridor(), np.array([-1.0, 0.7])
    cut = Trajectories.from_lists([[2, 3, 4, 5], [1, 2, 3], [1, 2]])
    assert unfinished(mdp, cut).tolist() == [False, True, True]
    policy = soft_policy(mdp, mdp.reward(theta))
    taken = [(2, 1), (3, 1), (4, 1), (1, 1), (2, 1), (1, 1)]
    objective = Objective.from_trajectories(mdp, cut, objective="choices")
    logs = [np.log(policy[s, a]) for s, a in taken]
    assert_allclose(objective(theta).value, np.sum(logs) / 3, rtol=1e-12)
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        slope = (objective(theta + step).value - objective(theta - step).value) / 2e-6
        assert_allclose(objective(theta).gradient[j], slope, rtol=1e-6)
    assert not objective.concave
    assert Objective.from_trajectories(mdp, cut[[0]], objective="choices").concave


def test_unfinished_trajectories_are_learnt_from_and_scored():
    mdp = corridor()
    expert = Trajectories.from_lists([[2, 3, 4, 5], [1, 2, 3], [3, 2, 3, 4, 5], [2, 1, 0], [1, 2, 3, 2]])
    model = MaxEntIRL(theta_prior=3.0).fit(mdp, expert)
    assert model.converged_
    assert np.isfinite(model.score(expert[[1]]))
    pooled = MaxEntIRL(theta_prior=3.0, unlabelled_weight=0.5).fit(mdp, expert[[0, 2, 3]], expert[[1, 4]])
    assert pooled.converged_


def test_unfinished_trips_to_goals_are_learnt_from():
    mdp = network()
    full = trips(mdp, 20, 1)
    half = [full.states[a:b].tolist() for a, b in pairwise(full.offsets)]
    cut = [states[: max(2, len(states) // 2)] if i % 2 else states for i, states in enumerate(half)]
    kept = [i for i, states in enumerate(cut) if len(states) > 1]
    some = Trajectories.from_lists([cut[i] for i in kept], goals=full.goals[kept])
    assert unfinished(mdp, some).any()
    model = MaxEntIRL(theta_prior=10.0).fit(mdp, some)
    assert model.converged_
    assert np.isfinite(model.score(some))
    assert all(np.isfinite(model.score(some[[i]])) for i in np.flatnonzero(unfinished(mdp, some)))


def test_only_counts_need_an_end_and_say_so():
    mdp, cut = corridor(), Trajectories.from_lists([[2, 3, 4, 5], [1, 2, 3]])
    message = "trajectory 1.* ends in state 3, which is not terminal: with discount=1 .* use objective='choices'"
    with pytest.raises(ValueError, match=message):
        feature_counts(mdp, cut)
    with pytest.raises(ValueError, match=message):
        MaxEntIRL(objective="counts").fit(mdp, cut)
    with pytest.raises(ValueError, match="of unlabelled ends in state 3, which is not terminal"):
        MESSI().fit(mdp, cut[[0]], cut)


def test_an_objective_that_rises_to_the_edge_of_finite_values_is_not_called_converged():
    mdp = corridor()
    to_and_fro = Trajectories.from_lists([[2, 3, 2, 3, 2, 3, 2, 3], [3, 2, 3, 2, 3, 2]])
    with pytest.warns(UserWarning, match="hardly determine theta|did not converge"):
        model = MaxEntIRL(theta_max=None).fit(mdp, to_and_fro)
    assert not model.converged_


# ------------------------------------------------------------ no finite value


def test_a_model_without_a_value_somewhere_has_a_score_of_minus_infinity_there():
    # Two corridors of their own; in the second, which no expert saw, a step costs nothing.
    one = corridor()
    moves = np.zeros((12, 2, 12))
    moves[:6, :, :6] = moves[6:, :, 6:] = one.transitions.toarray().reshape(6, 2, 6)
    features = np.zeros((12, 2))
    features[:6, 0] = features[6:, 1] = 1.0
    mdp = MDP(moves, features, discount=1.0, terminal=np.arange(12) % 6 % 5 == 0)
    expert, held_out = (
        Trajectories.from_lists([[2, 3, 4, 5], [2, 1, 0]]),
        Trajectories.from_lists([[2, 3, 4, 5], [8, 7, 6]]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MaxEntIRL(theta_prior=10.0).fit(mdp, expert)
    model.reward_ = mdp.reward([model.theta_[0], 0.0])
    score, logs = held_out_scores(model, held_out)
    assert score == -np.inf
    assert np.isfinite(logs[0])
    assert logs[1] == -np.inf
    said = explain_missing_scores(mdp, held_out, logs)
    assert said == "no finite value for 1 of 2 held-out trajectories, in 1 of 2 separate parts of the state space"


def test_a_verdict_on_methods_that_rule_out_what_was_done_has_no_numbers():
    some, none = np.array([-1.0, -2.0, -3.0]), np.array([-0.5, -np.inf, -np.inf])
    verdict, gains = compare_scores(
        ["model", "experts only", "uniform"], [none, none, some], np.array([2, 2, 2]), 1, [1]
    )
    assert np.isnan(gains[0].mean)
    assert "not comparable" in str(gains[0])
    assert "experts only on the experts only gives some of them zero probability" in verdict.sentence
    assert "inf" not in verdict.sentence
