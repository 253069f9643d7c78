"""Log-probabilities far below what a policy of doubles can hold."""

import numpy as np
import pytest

from messirl import MDP, MaxEntIRL, Trajectories
from messirl.planning.likelihood import reward_log_likelihood


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
