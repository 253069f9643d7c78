"""Log-probabilities far below what a policy of doubles can hold, and of what begins where no expert gets to."""

import numpy as np
import pytest

from messirl import MDP, MaxEntIRL, Trajectories
from messirl.inference.prediction import next_state_accuracy
from messirl.planning import NoFiniteValue
from messirl.planning.likelihood import log_likelihood, reward_log_likelihood


def two_ways(**arguments):
    """From state 0 one step to 1 or to 2, by actions 0 and 1; both are then for ever, or the end."""
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = 1.0
    transitions[1, :, 1] = transitions[2, :, 2] = 1.0
    return MDP(transitions, np.eye(3), start=[1.0, 0.0, 0.0], **arguments)


ENDS = np.array([False, True, True])


@pytest.mark.parametrize("arguments", [{"discount": 1.0, "horizon": 2}, {"discount": 1.0, "terminal": ENDS}], ids=str)
@pytest.mark.parametrize("actions", [None, [[1]]])
def test_a_choice_of_probability_exp_minus_2000_has_that_log_probability(arguments, actions):
    mdp = two_ways(**arguments)
    unlikely = Trajectories.from_lists([[0, 2]], actions=actions)
    reward = np.array([0.0, 1000.0, -1000.0])
    assert reward_log_likelihood(mdp, reward, unlikely, mdp.start) == pytest.approx([-2000.0], rel=1e-12)


@pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # nothing holds the weights
def test_the_score_of_what_a_fit_holds_nearly_impossible_is_finite():
    mdp = two_ways(discount=1.0, terminal=ENDS)
    model = MaxEntIRL(max_iter=1000).fit(mdp, Trajectories.from_lists([[0, 1]]))
    assert model.predict_proba([0])[0, 1] < 1e-6
    score = model.score(Trajectories.from_lists([[0, 2]]))
    assert np.isfinite(score)
    gap = model.reward_[2] - model.reward_[1]
    assert score == pytest.approx(gap - np.log1p(np.exp(gap)), rel=1e-12)


@pytest.mark.parametrize("certain", [1.0, 0.9])
@pytest.mark.parametrize("with_goals", [False, True])
@pytest.mark.parametrize("recorded", [True, False])
def test_what_begins_beyond_the_experts_has_the_log_probability_of_its_own_states(certain, with_goals, recorded):
    """From 0 as from 5 one gets by 1 or by 2 to the end, 3; to stay in 4, for θ > 0, is worth infinitely much."""
    transitions = np.zeros((6, 2, 6))
    transitions[[0, 5], 0, 1], transitions[[0, 5], 0, 2] = certain, 1 - certain
    transitions[[0, 5], 1, 2] = transitions[[1, 2], 0, 3] = transitions[4, 0, 4] = transitions[4, 1, 1] = 1.0
    features = np.isin(np.arange(6), [1, 4])[:, None].astype(float)
    mdp = MDP(transitions, features, discount=1.0, terminal=None if with_goals else np.arange(6) == 3)

    def trips(*states, actions):
        goals = [3] * len(states) if with_goals else None
        return Trajectories.from_lists(states, actions=actions if recorded else None, goals=goals)

    expert = trips([0, 1, 3], [0, 1, 3], [0, 2, 3], actions=[[0, 0], [0, 0], [1, 0]])
    model = MaxEntIRL(ridge=0.01).fit(mdp, expert)
    theta = float(model.theta_[0])
    assert theta > 0.1
    other = trips([5, 1, 3], actions=[[0, 0]])
    expected = certain * theta - np.logaddexp(certain * theta, 0.0) + (0.0 if recorded else np.log(certain))
    assert model.score(other) == pytest.approx(expected / 2, rel=1e-9)
    assert next_state_accuracy(model, other) == pytest.approx(1.0)
    with pytest.raises(NoFiniteValue, match="worth infinitely much under this reward"):
        model.score(trips([4, 1, 3], actions=[[1, 0]]))


@pytest.mark.parametrize(
    ("policy", "error", "message"),
    [
        (
            [[2.0, 1.0], [1.0, 0.0], [1.0, 0.0]],
            ValueError,
            r"policy\[0\] is \[2\. 1\.\]: probabilities must be >= 0 and sum",
        ),
        ([[np.nan, 1.0], [1.0, 0.0], [1.0, 0.0]], ValueError, r"policy\[0\] is \[nan  1\.\]: probabilities must be"),
        ([[1.5, -0.5], [1.0, 0.0], [1.0, 0.0]], ValueError, r"policy\[0\] is \[ 1\.5 -0\.5\]: probabilities must be"),
        ([[0.5, 0.5]], ValueError, r"policy has shape \(1, 2\), not \(3, 2\)"),
        (MaxEntIRL(), TypeError, "policy is a MaxEntIRL: give its policy_, or score trajectories by model.score"),
    ],
)
def test_what_is_no_policy_has_no_likelihood(policy, error, message):
    mdp = two_ways(discount=1.0, terminal=ENDS)
    with pytest.raises(error, match=message):
        log_likelihood(mdp, policy, Trajectories.from_lists([[0, 1]]))


def test_where_no_trajectory_gets_to_a_policy_may_be_anything():
    mdp = two_ways(discount=1.0, terminal=ENDS)
    policy = [[0.25, 0.75], [np.nan, np.nan], [5.0, -1.0]]
    assert log_likelihood(mdp, policy, Trajectories.from_lists([[0, 1]])) == pytest.approx([np.log(0.25)])


def test_a_goal_without_a_policy_is_named():
    mdp = two_ways(discount=1.0, terminal=ENDS)
    with pytest.raises(ValueError, match="policy has no goal 2, which trajectories have: give one policy per goal"):
        log_likelihood(mdp, {1: np.full((3, 2), 0.5)}, Trajectories.from_lists([[0, 1], [0, 2]], goals=[1, 2]))
