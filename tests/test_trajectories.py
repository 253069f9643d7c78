"""Trajectories: ragged outside, columnar inside; slicing, adding, comparing, and what is refused."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from messirl import Trajectories

STATES = [[0, 1, 5], [2], [3, 3, 3, 4], [5, 0]]
ACTIONS = [[1, 0], [], [2, 2, 1], [0]]
GOALS = [5, 2, 4, 0]


@pytest.fixture(params=["states", "actions", "goals", "both"])
def some(request):
    """The same four trajectories, with and without actions and goals."""
    return Trajectories.from_lists(
        STATES,
        actions=ACTIONS if request.param in ("actions", "both") else None,
        goals=GOALS if request.param in ("goals", "both") else None,
    )


def as_lists(trajectories):
    return [
        (row.states.tolist(), None if row.actions is None else row.actions.tolist(), row.goal) for row in trajectories
    ]


# ------------------------------------------------------------ what it holds


def test_columns_hold_one_trajectory_after_the_other():
    both = Trajectories.from_lists(STATES, actions=ACTIONS, goals=GOALS)
    assert_array_equal(both.states, [0, 1, 5, 2, 3, 3, 3, 4, 5, 0])
    assert_array_equal(both.offsets, [0, 3, 4, 8, 10])
    assert_array_equal(both.actions, [1, 0, 2, 2, 1, 0])
    assert_array_equal(both.goals, GOALS)


def test_derived_columns_are_right(some):
    assert len(some) == 4
    assert_array_equal(some.lengths, [3, 1, 4, 2])
    assert_array_equal(some.first, [0, 2, 3, 5])
    assert_array_equal(some.last, [5, 2, 4, 0])
    assert_array_equal(some.step, [0, 1, 2, 0, 0, 1, 2, 3, 0, 1])
    assert_array_equal(some.leaves, [1, 1, 0, 0, 1, 1, 1, 0, 1, 0])
    assert [some.locate(i) for i in (0, 2, 3, 7, 9)] == [(0, 0), (0, 2), (1, 0), (2, 3), (3, 1)]


def test_iteration_gives_every_trajectory_with_its_own_actions_and_goal(some):
    rows = list(some)
    assert [row.states.tolist() for row in rows] == STATES
    if some.actions is not None:
        assert [row.actions.tolist() for row in rows] == ACTIONS
    else:
        assert all(row.actions is None for row in rows)
    assert [row.goal for row in rows] == (GOALS if some.goals is not None else [None] * 4)


def test_an_array_with_one_trajectory_a_row_is_read():
    grid = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert [row.states.tolist() for row in Trajectories.from_lists(grid)] == grid.tolist()


def test_generators_are_read():
    lazy = Trajectories.from_lists((row for row in STATES), actions=(row for row in ACTIONS))
    assert lazy == Trajectories.from_lists(STATES, actions=ACTIONS)


def test_repr_says_how_many_and_how_long():
    assert repr(Trajectories.from_lists(STATES)) == "Trajectories(4 of 1 to 4 states, without actions)"
    full = Trajectories.from_lists(STATES, actions=ACTIONS, goals=GOALS)
    assert repr(full) == "Trajectories(4 of 1 to 4 states, with actions, 4 goals)"
    assert repr(Trajectories.from_lists([])) == "Trajectories(none)"


# ------------------------------------------------------------ choosing


@pytest.mark.parametrize(
    "index", [slice(None), slice(1, 3), slice(None, None, -1), slice(3, None), slice(0, 0), slice(0, 4, 2)], ids=str
)
def test_slices_are_those_of_a_list(some, index):
    assert as_lists(some[index]) == as_lists(some)[index]


@pytest.mark.parametrize("index", [[2, 0], [3, 3, 1], [-1], []], ids=str)
def test_a_list_of_numbers_chooses_in_its_order_and_may_repeat(some, index):
    assert as_lists(some[index]) == [as_lists(some)[i] for i in index]
    assert some[np.array(index, dtype=int)] == some[index]


@pytest.mark.parametrize("mask", [[True, False, True, True], [False] * 4, [True] * 4], ids=str)
def test_a_boolean_mask_keeps_where_it_is_true(some, mask):
    kept = [row for row, keep in zip(as_lists(some), mask, strict=True) if keep]
    assert as_lists(some[mask]) == kept
    assert as_lists(some[np.array(mask)]) == kept


def test_a_number_gives_one_trajectory(some):
    assert some[2].states.tolist() == STATES[2]
    assert some[-1].states.tolist() == STATES[3]
    assert some[np.int64(1)].states.tolist() == [2]


@pytest.mark.parametrize("index", [4, -5])
def test_a_number_out_of_range_is_refused(some, index):
    with pytest.raises(IndexError, match=f"trajectory {index} is out of range: there are 4"):
        some[index]


def test_a_mask_of_the_wrong_length_is_refused(some):
    with pytest.raises(IndexError, match="boolean index did not match"):
        some[np.array([True, False])]


# ------------------------------------------------------------ adding and comparing


def test_adding_puts_the_second_set_after_the_first(some):
    assert as_lists(some[:2] + some[2:]) == as_lists(some)
    assert some[:2] + some[2:] == some


def test_adding_an_empty_set_changes_nothing(some):
    nothing = Trajectories.from_lists([])
    assert some + nothing == some
    assert nothing + some == some


def test_adding_keeps_actions_only_where_both_sides_have_them():
    with_actions, without = Trajectories.from_lists(STATES, actions=ACTIONS), Trajectories.from_lists(STATES)
    assert (with_actions + with_actions).actions.tolist() == 2 * [1, 0, 2, 2, 1, 0]
    assert (with_actions + without).actions is None
    assert (without + with_actions).actions is None


def test_adding_sets_with_and_without_goals_is_refused():
    with pytest.raises(ValueError, match="one of the two sets has goals and the other has none"):
        Trajectories.from_lists(STATES, goals=GOALS) + Trajectories.from_lists(STATES)


def test_adding_something_else_is_refused(some):
    with pytest.raises(TypeError, match="unsupported operand"):
        some + 1


def test_equality_looks_at_everything():
    base = Trajectories.from_lists(STATES, actions=ACTIONS, goals=GOALS)
    assert base == Trajectories.from_lists(STATES, actions=ACTIONS, goals=GOALS)
    assert base != Trajectories.from_lists(STATES, actions=ACTIONS)
    assert base != Trajectories.from_lists(STATES, goals=GOALS)
    assert base != Trajectories.from_lists(STATES, actions=[[1, 0], [], [2, 2, 0], [0]], goals=GOALS)
    assert base != Trajectories.from_lists([[0, 1, 4], *STATES[1:]], actions=ACTIONS, goals=GOALS)
    assert Trajectories.from_lists([[0], [1, 2]]) != Trajectories.from_lists([[0, 1], [2]])
    assert base != STATES


def test_sets_cannot_be_hashed(some):
    with pytest.raises(TypeError, match="unhashable"):
        hash(some)


# ------------------------------------------------------------ it never changes


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_a_copy_is_equal_and_cannot_be_written_to(some, again):
    twin = again(some)
    assert twin == some
    assert not twin.states.flags.writeable


def test_nothing_can_be_set_or_written(some):
    with pytest.raises(AttributeError, match="Trajectories are immutable"):
        some.states = np.zeros(10, dtype=int)
    with pytest.raises(ValueError, match="read-only"):
        some.states[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        some[2].states[0] = 1
    for name in ("states", "offsets", "actions", "goals"):
        array = getattr(some, name)
        assert array is None or not array.flags.writeable


def test_the_arrays_given_stay_the_callers_own():
    states, offsets = np.array([0, 1, 2]), np.array([0, 3])
    set_ = Trajectories(states, offsets)
    states[0] = 9
    assert_array_equal(set_.states, [0, 1, 2])


# ------------------------------------------------------------ bad input


def test_a_trajectory_without_a_state_is_named():
    with pytest.raises(ValueError, match="trajectory 1 has no state: drop it"):
        Trajectories.from_lists([[0], [], [1]])
    with pytest.raises(ValueError, match="trajectory 1 has no state: drop it"):
        Trajectories([0, 1], [0, 1, 1, 2])


def test_states_that_are_no_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="trajectory 1 must hold whole numbers, not float64"):
        Trajectories.from_lists([[0, 1], [0.5, 1.0]])
    with pytest.raises(TypeError, match="trajectory 0 must hold whole numbers"):
        Trajectories.from_lists([["a", "b"]])


def test_states_that_are_not_flat_are_refused():
    with pytest.raises(ValueError, match=re.escape("trajectory 0 must be a flat sequence of whole numbers")):
        Trajectories.from_lists([[[0, 1], [1, 2]]])


@pytest.mark.parametrize("ragged", [[[0, [1]]], Trajectories.from_lists([[0, 1], [1, 2, 0]])], ids=["list", "set"])
def test_sequences_in_a_trajectory_are_refused_by_its_number(ragged):
    with pytest.raises(ValueError, match="trajectory 0 must be a flat sequence of whole numbers, not of sequences"):
        Trajectories.from_lists(ragged)


def test_actions_are_one_fewer_than_states():
    with pytest.raises(ValueError, match="trajectory 1 has 3 states and 3 actions: give one action per step, 2"):
        Trajectories.from_lists([[0, 1], [0, 1, 2]], actions=[[0], [0, 1, 0]])
    with pytest.raises(ValueError, match="1 list of actions for 2 trajectories"):
        Trajectories.from_lists([[0, 1], [0, 1, 2]], actions=[[0]])
    with pytest.raises(ValueError, match="3 actions for 3 states in 1 trajectory: give one action per step, 2 in all"):
        Trajectories([0, 1, 2], [0, 3], actions=[0, 0, 0])


def test_goals_are_one_a_trajectory():
    with pytest.raises(ValueError, match="1 goal for 2 trajectories: give one each"):
        Trajectories.from_lists([[0, 1], [0, 2]], goals=[1])
    with pytest.raises(TypeError, match="goals must hold whole numbers"):
        Trajectories.from_lists([[0, 1], [0, 2]], goals=[1.0, 2.0])


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4]], ids=str)
def test_offsets_run_from_zero_to_the_number_of_states(offsets):
    with pytest.raises(ValueError, match="offsets must run from 0 to the number of states, 3"):
        Trajectories([0, 1, 2], offsets)
