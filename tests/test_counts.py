"""Feature counts against a plain loop, and trajectories that cannot come from the MDP."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from worlds import ROUNDING, drawn, maze, random_mdp, ring, without_actions

from messirl import MDP, MESSI, MaxEntIRL, Trajectories, feature_counts
from messirl.data import Problem, check_trajectories
from messirl.data.validation import goal_faults, start_faults, trajectory_faults
from messirl.similarity import CompleteGraph


def loop(mdp, trajectories):
    """Σ_t γ^t f, divided by 1 − γ^T where the trajectory stands for an endless one."""
    counts = np.zeros((len(trajectories), mdp.n_features))
    for i, row in enumerate(trajectories):
        terms = len(row.states) - 1 if mdp.state_action else len(row.states)
        for t in range(terms):
            f = mdp.features[row.states[t], row.actions[t]] if mdp.state_action else mdp.features[row.states[t]]
            counts[i] += mdp.discount**t * f
        endless = mdp.horizon is None and mdp.discount < 1 and row.goal is None
        if endless and not mdp.terminal[row.states[-1]]:
            counts[i] /= 1 - mdp.discount**terms
    return counts


# ------------------------------------------------------------ values


@pytest.mark.parametrize("by_step", [False, True])
@pytest.mark.parametrize("discount", [1.0, 0.7])
def test_counts_with_a_horizon_are_plain_discounted_sums(discount, by_step):
    mdp = random_mdp(0, by_step=by_step, discount=discount, horizon=6, start=np.full(5, 0.2))
    some = drawn(mdp, [1.0, 0.0, -1.0], 9, seed=1)
    assert_allclose(feature_counts(mdp, some), loop(mdp, some), rtol=1e-13)


@pytest.mark.parametrize("by_step", [False, True])
def test_counts_of_ragged_trajectories_that_end_are_plain_discounted_sums(by_step):
    mdp = random_mdp(1, by_step=by_step, discount=0.8, terminal=np.arange(5) == 4, start=np.full(5, 0.2))
    some = drawn(mdp, [1.0, 0.0, -1.0], 30, seed=2)
    assert np.unique(some.lengths).size > 2
    assert (some.lengths == 1).any(), "one begins where it ends"
    assert_allclose(feature_counts(mdp, some), loop(mdp, some), rtol=1e-13)


@pytest.mark.parametrize("by_step", [False, True])
def test_a_cut_trajectory_is_divided_by_the_share_of_it_that_was_seen(by_step):
    for attempt in count():  # until some are cut and others are not
        seed = 2 + 5003 * attempt
        mdp = random_mdp(seed, by_step=by_step, discount=0.5, terminal=np.arange(5) == 4, start=[1, 0, 0, 0, 0])
        some = drawn(mdp, [1.0, 0.0, -1.0], 12, seed=3, length=7)
        cut = ~mdp.terminal[some.last]
        if cut.any() and not cut.all():
            break
    assert (some.lengths[cut] == 7).all()
    assert_allclose(feature_counts(mdp, some), loop(mdp, some), rtol=1e-13)


def test_a_constant_feature_counts_as_much_in_a_cut_trajectory_as_in_an_endless_one():
    mdp = ring(4, discount=0.5).replace(features=np.ones((4, 1)))
    some = Trajectories.from_lists([[0, 1, 2, 3, 0], [2] * 9])
    assert_allclose(feature_counts(mdp, some), 1 / (1 - 0.5), rtol=ROUNDING)


def test_a_short_cut_trajectory_is_warned_of():
    mdp = ring(4, discount=0.9)
    with pytest.warns(UserWarning, match=r"trajectory 1 ends after 2 terms, where discount\*\*T is still 0\.81"):
        counts = feature_counts(mdp, Trajectories.from_lists([[0] * 30, [0, 1], [0] * 30]))
    assert_allclose(counts[1], np.array([1.0, 0.9, 0.0]) / (1 - 0.81), rtol=1e-13)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_says_whose_trajectory_is_short():
    mdp = ring(4, discount=0.9)
    long, short = Trajectories.from_lists([[0, 1, 2, 3] * 8]), Trajectories.from_lists([[0, 1]])
    for expert, others, whose in ((long, short, "unlabelled"), (short, long, "expert")):
        with pytest.warns(UserWarning, match=f"trajectory 0 of {whose} ends after 2 terms"):
            MESSI(CompleteGraph()).fit(mdp, expert, others)


def test_a_short_trajectory_that_ends_is_not_warned_of():
    mdp = ring(4, discount=0.9, terminal=np.arange(4) == 3)
    assert_allclose(feature_counts(mdp, Trajectories.from_lists([[2, 3]])), [[0, 0, 1.0]])


def test_a_terminal_state_counts_once():
    mdp = ring(4, discount=0.5, terminal=np.arange(4) == 1)
    assert_allclose(feature_counts(mdp, Trajectories.from_lists([[0, 1], [1]])), [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0]])


def test_a_trajectory_with_a_goal_is_not_divided():
    mdp = maze(discount=0.9)
    some = Trajectories.from_lists([[0, 1, 2], [4]], goals=[2, 4])
    assert_allclose(feature_counts(mdp, some), loop(mdp, some), rtol=ROUNDING)
    assert_allclose(feature_counts(mdp, some)[:, 0], [1 + 0.9 + 0.81, 1.0], rtol=ROUNDING)


def test_a_cut_trajectory_without_a_step_has_no_state_action_features_to_count():
    mdp = random_mdp(3, by_step=True, discount=0.5)
    with pytest.raises(ValueError, match="trajectory 1 has no step, so no state-action feature to count: drop it"):
        feature_counts(mdp, Trajectories.from_lists([[0] * 8, [1]], actions=[[0] * 7, []]))


@pytest.mark.parametrize("by_step", [False, True])
def test_sparse_features_count_as_dense_ones(by_step):
    mdp = random_mdp(4, by_step=by_step, horizon=5, start=np.full(5, 0.2), discount=0.95)
    some = drawn(mdp, [0.0, 1.0, 0.0], 6, seed=4)
    sparse = mdp.replace(features=sp.csr_array(mdp.feature_rows))
    assert_allclose(feature_counts(sparse, some), feature_counts(mdp, some), rtol=ROUNDING)


def test_no_trajectories_have_no_counts():
    assert feature_counts(ring(discount=0.95), Trajectories.from_lists([])).shape == (0, 3)


def test_order_and_company_do_not_matter():
    mdp = random_mdp(5, horizon=5, start=np.full(5, 0.2), discount=0.95)
    some = drawn(mdp, [0.0, 1.0, 0.0], 8, seed=5)
    order = generator(0).permutation(8)
    assert_array_equal(feature_counts(mdp, some[order]), feature_counts(mdp, some)[order])


# ------------------------------------------------------------ actions that are not recorded


def test_actions_follow_from_moves_where_only_one_makes_each():
    mdp = maze(discount=1.0, horizon=5, start=np.full(9, 1 / 9))
    features = generator(0).random((9, 4, 2))
    mdp = mdp.replace(features=features)
    some = drawn(mdp, [1.0, -1.0], 10, seed=6)
    assert_array_equal(feature_counts(mdp, without_actions(some)), feature_counts(mdp, some))


def test_actions_follow_from_moves_where_those_that_make_it_have_equal_features():
    transitions = np.ones((2, 2, 2)) / 2
    features = np.array([[[1.0], [1.0]], [[3.0], [3.0]]])
    mdp = MDP(transitions, features, horizon=3, discount=1.0)
    assert_array_equal(feature_counts(mdp, Trajectories.from_lists([[0, 1, 0]])), [[4.0]])
    sparse = mdp.replace(features=sp.csr_array(mdp.feature_rows))
    assert_array_equal(feature_counts(sparse, Trajectories.from_lists([[0, 1, 0]])), [[4.0]])


def test_moves_that_several_actions_make_with_different_features_need_actions():
    mdp = random_mdp(6, by_step=True, horizon=3, discount=1.0)
    with pytest.raises(
        ValueError, match="trajectory 0, step 0: several actions with different features lead from state 2"
    ):
        feature_counts(mdp, Trajectories.from_lists([[2, 1, 0]]))
    assert_allclose(
        feature_counts(mdp, Trajectories.from_lists([[2, 1, 0]], actions=[[1, 2]])),
        [mdp.features[2, 1] + mdp.features[1, 2]],
    )


def test_the_ambiguous_step_is_named_and_not_the_first_one():
    transitions = np.zeros((3, 2, 3))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1, :, 2] = transitions[2, :, 2] = 1.0
    features = np.array([[[0.0], [1.0]], [[2.0], [3.0]], [[4.0], [4.0]]])
    mdp = MDP(transitions, features, horizon=3, discount=0.95)
    with pytest.raises(ValueError, match=r"trajectory 1, step 1: several actions .* from state 1 to the next one"):
        feature_counts(mdp, Trajectories.from_lists([[0, 2, 2], [0, 1, 2]]))


# ------------------------------------------------------------ trajectories that cannot come from the MDP


@pytest.mark.parametrize("state", [4, -1])
def test_a_state_out_of_range_is_named_with_trajectory_and_step(state):
    with pytest.raises(ValueError, match=f"trajectory 1, step 2: state {state} is not one of 0 … 3"):
        feature_counts(ring(discount=0.95), Trajectories.from_lists([[0, 1], [0, 1, state]]))


@pytest.mark.parametrize("action", [2, -1])
def test_an_action_out_of_range_is_named_with_trajectory_and_step(action):
    with pytest.raises(ValueError, match=f"trajectory 1, step 1: action {action} is not one of 0 … 1"):
        feature_counts(ring(discount=0.95), Trajectories.from_lists([[0, 1], [0, 1, 2]], actions=[[1], [1, action]]))


def test_a_move_of_probability_zero_is_named():
    with pytest.raises(
        ValueError, match="trajectory 1, step 1: the transition from state 1 to 3 has probability 0 in the MDP"
    ):
        feature_counts(ring(discount=0.95), Trajectories.from_lists([[0, 1], [0, 1, 3]]))


def test_a_move_that_another_action_makes_is_named():
    with pytest.raises(
        ValueError, match="trajectory 0, step 1: the transition from state 1 to 1 by action 1 has probability 0"
    ):
        feature_counts(ring(discount=0.95), Trajectories.from_lists([[0, 1, 1]], actions=[[1, 1]]))


def test_going_on_after_a_terminal_state_is_named():
    mdp = ring(terminal=np.arange(4) == 2, discount=0.95)
    with pytest.raises(ValueError, match="trajectory 1, step 1: it goes on after terminal state 2: cut it there"):
        feature_counts(mdp, Trajectories.from_lists([[0, 1, 2], [1, 2, 2]]))


def test_going_on_after_the_goal_is_named():
    with pytest.raises(ValueError, match="trajectory 0, step 1: it goes on after its goal 1: cut it there"):
        feature_counts(maze(discount=0.95), Trajectories.from_lists([[0, 1, 2, 1]], goals=[1]))


def test_a_last_state_that_is_not_the_goal_is_named():
    with pytest.raises(ValueError, match="trajectory 1 ends in state 2, not in its goal"):
        feature_counts(maze(discount=0.95), Trajectories.from_lists([[0, 1], [1, 2]], goals=[1, 5]))


def test_goals_and_a_horizon_contradict():
    with pytest.raises(ValueError, match="have goals, but the MDP has horizon=2"):
        feature_counts(maze(horizon=2, discount=0.95), Trajectories.from_lists([[0, 1]], goals=[1]))


def test_a_dead_end_is_named():
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0
    mdp = MDP(transitions, np.eye(2), horizon=2, discount=0.95)
    with pytest.raises(ValueError, match="trajectory 0, step 1: state 1 has no allowed action and is not terminal"):
        feature_counts(mdp, Trajectories.from_lists([[0, 1]]))


@pytest.mark.parametrize("states", [[0, 1], [0, 1, 1, 1]], ids=["short", "long"])
def test_a_length_that_contradicts_the_horizon_is_named(states):
    with pytest.raises(ValueError, match=f"trajectory 1 has {len(states)} states, but horizon=3: "):
        feature_counts(ring(horizon=3, discount=0.95), Trajectories.from_lists([[0, 1, 2], states]))


def test_a_trajectory_may_end_before_the_horizon_in_a_terminal_state():
    mdp = ring(horizon=4, terminal=np.arange(4) == 2, discount=0.95)
    assert feature_counts(mdp, Trajectories.from_lists([[0, 1, 2], [0, 0, 0, 0]])).shape == (2, 3)


def test_with_discount_one_a_trajectory_must_end():
    mdp = ring(discount=1.0, terminal=np.arange(4) == 3)
    with pytest.raises(ValueError, match="trajectory 1 ends in state 1, which is not terminal: with discount=1"):
        feature_counts(mdp, Trajectories.from_lists([[2, 3], [0, 1]]))


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="expected an MDP, not ndarray"):
        feature_counts(np.eye(3), Trajectories.from_lists([[0]]))
    with pytest.raises(TypeError, match=r"must be Trajectories, not dict: use Trajectories\.from_lists"):
        feature_counts(ring(discount=0.95), {0: [0, 1]})
    mdp = ring(discount=0.95)
    with pytest.raises(TypeError, match=r"must be Trajectories, not Problem: use its \.trajectories"):
        check_trajectories(mdp, Problem(mdp, Trajectories.from_lists([[0]])))


def test_errors_name_the_set():
    with pytest.raises(ValueError, match="unlabelled: trajectory 0, step 0: state 9"):
        check_trajectories(ring(discount=0.95), Trajectories.from_lists([[9]]), "unlabelled")
    good = Trajectories.from_lists([[0, 1, 2]])
    with pytest.raises(ValueError, match="unlabelled: trajectory 1 has 2 states, but horizon=3"):
        MaxEntIRL().fit(ring(horizon=3, discount=0.95), good, Trajectories.from_lists([[0, 1, 2], [0, 1]]))


def test_an_mdp_without_any_move_refuses_every_step():
    mdp = MDP(np.zeros((2, 1, 2)), np.eye(2), terminal=[True, True], discount=0.95)
    with pytest.raises(ValueError, match="it goes on after terminal state 0"):
        feature_counts(mdp, Trajectories.from_lists([[0, 1]]))
    assert_array_equal(feature_counts(mdp, Trajectories.from_lists([[1]])), [[0.0, 1.0]])


def test_every_fault_is_found_and_not_only_the_first():
    transitions = np.zeros((5, 2, 5))
    transitions[0, 0, 1] = transitions[0, 1, 2] = transitions[1, 0, 0] = transitions[2, 0, 3] = 1.0
    mdp = MDP(transitions, np.eye(5), terminal=np.arange(5) == 3, discount=0.95)  # state 4 is a dead end
    some = Trajectories.from_lists(
        [[0, 1, 0], [0, 3, 0], [1, 0, 1], [4], [0, 2, 1]], actions=[[0, 0], [0, 1], [1, 0], [], [0, 0]]
    )
    found = [(fault.kind, fault.trajectory, fault.step) for fault in trajectory_faults(mdp, some)]
    assert found == [
        ("terminal", 1, 1),
        ("dead end", 3, 0),
        ("move", 1, 0),
        ("not allowed", 2, 0),
        ("move", 4, 0),
        ("move", 4, 1),
    ]
    says = [fault.what("ABCDE".__getitem__, "xy".__getitem__) for fault in trajectory_faults(mdp, some)]
    assert says[3] == (
        "the transition from state B to A by action y has probability 0 in the MDP, "
        "which does not allow that action there"
    )


def test_a_goal_that_was_passed_is_one_fault_and_goals_that_none_reached_another():
    mdp, some = maze(discount=0.95), Trajectories.from_lists([[0, 1, 2], [0, 1], [3, 4]], goals=[1, 5, 4])
    found = [(fault.kind, fault.trajectory, fault.step) for fault in trajectory_faults(mdp, some)]
    assert found == [("after goal", 0, 1)]  # the second is unfinished
    assert not list(goal_faults(some))
    assert [(fault.kind, fault.trajectory) for fault in goal_faults(some[[0, 1]])] == [("goal", 1)]
    check_trajectories(mdp, some[[1]])  # unfinished, also on its own


def test_a_start_where_none_begins_is_a_fault_of_its_own():
    mdp = ring(start=[1.0, 0.0, 0.0, 0.0], discount=0.95)
    some = Trajectories.from_lists([[0, 1], [2, 3], [1, 2]])
    assert [(fault.trajectory, fault.what()) for fault in start_faults(mdp, some)] == [
        (1, "it begins in state 2, where start is 0"),
        (2, "it begins in state 1, where start is 0"),
    ]
    check_trajectories(mdp, some)
    assert not list(start_faults(ring(discount=0.95), some))
