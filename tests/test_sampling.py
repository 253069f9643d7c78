"""Drawn trajectories: their frequencies are the expected visits, they end where they should, seeds repeat them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import THETA, problem
from seeds import generator, shifted
from worlds import maze, random_mdp, ring

from messirl import MDP, Trajectories, optimal_policy, sample, soft_policy, state_visitation
from messirl.data import check_trajectories
from messirl.planning import visits


def empirical(mdp, trajectories):
    """Mean discounted visits of states, (S,), and of steps, (S, A)."""
    states = np.zeros(mdp.n_states)
    steps = np.zeros((mdp.n_states, mdp.n_actions))
    weight = mdp.discount**trajectories.step
    np.add.at(states, trajectories.states, weight)
    left = trajectories.leaves
    np.add.at(steps, (trajectories.states[left], trajectories.actions), weight[left])
    return states / len(trajectories), steps / len(trajectories)


# ------------------------------------------------------------ frequencies


@pytest.mark.parametrize(
    ("mdp", "length"),
    [
        (random_mdp(1, horizon=6, discount=0.9, start=np.arange(5) / 10), None),
        (random_mdp(1, horizon=6, discount=1.0, start=np.arange(5) / 10, terminal=np.arange(5) == 2), None),
        (random_mdp(1, discount=0.6, start=np.arange(5) / 10), 40),
        (random_mdp(1, discount=1.0, start=np.arange(5) / 10, terminal=np.arange(5) == 2), None),
    ],
    ids=["horizon", "horizon and end", "endless", "episodic"],
)
def test_frequencies_are_the_expected_visits(mdp, length):
    reward = mdp.reward(THETA if mdp.discount < 1.0 else -np.abs(THETA) - 1.0)
    policy = soft_policy(mdp, reward)
    expected = visits(mdp, policy)
    states, steps = empirical(mdp, sample(mdp, policy, 20_000, length, random_state=shifted(0)))
    assert expected.states.max() > 0.5
    assert_allclose(states, state_visitation(mdp, policy), rtol=0.05, atol=0.03)
    assert_allclose(steps, expected.steps, rtol=0.05, atol=0.03)


def test_frequencies_towards_a_goal_are_the_expected_visits():
    mdp = maze(discount=1.0)
    policy = soft_policy(mdp, mdp.reward([-2.0, -0.5]), goal=8)
    start = np.eye(9)[0]
    some = sample(mdp, policy, 20_000, random_state=shifted(1), goal=8, start=start)
    assert_allclose(empirical(mdp, some)[0], state_visitation(mdp, policy, 8, start=start), atol=0.05)


def test_moves_follow_the_dynamics():
    mdp = random_mdp(3, horizon=2, start=np.eye(5)[1], discount=0.95)
    always = np.zeros((1, 5, 3))
    always[..., 2] = 1.0
    some = sample(mdp, always, 20_000, random_state=shifted(2))
    assert_array_equal(np.unique(some.actions), [2])
    row = mdp.transitions[[1 * 3 + 2]].toarray()[0]
    assert_allclose(np.bincount(some.last, minlength=5) / 20_000, row, atol=0.02)


def test_a_certain_policy_in_a_certain_world_gives_one_trajectory():
    mdp = ring(4, horizon=6, discount=1.0, start=np.eye(4)[1])
    on = np.zeros((5, 4, 2))
    on[..., 1] = 1.0
    some = sample(mdp, on, 3, random_state=shifted(0))
    assert some == Trajectories.from_lists([[1, 2, 3, 0, 1, 2]] * 3, actions=[[1] * 5] * 3)


def test_states_of_probability_zero_are_never_drawn():
    mdp = random_mdp(2, discount=0.5, start=[0.0, 0.5, 0.0, 0.5, 0.0])
    some = sample(mdp, np.full((5, 3), 1 / 3), 2000, length=1, random_state=shifted(0))
    assert_array_equal(np.unique(some.states), [1, 3])


# ------------------------------------------------------------ ends and lengths


@pytest.mark.parametrize("kind", ["finite", "endless", "episodic", "steps"])
def test_what_is_drawn_fits_the_problem(kind):
    mdp = problem(kind).mdp
    start = np.full(mdp.n_states, 1 / mdp.n_states)
    policy = soft_policy(mdp, mdp.reward([-2.0, -1.0, -1.0][: mdp.n_features]))
    some = sample(mdp, policy, 50, 7 if kind == "endless" else None, random_state=shifted(3), start=start)
    check_trajectories(mdp, some)
    assert some.goals is None
    if kind == "episodic":
        assert mdp.terminal[some.last].all()
        assert (some.lengths == 1).any(), "one begins at the end"
    else:
        assert_array_equal(some.lengths, 7 if kind == "endless" else 6)


def test_trajectories_towards_a_goal_end_there_and_carry_it():
    mdp = maze(discount=1.0)
    some = sample(
        mdp,
        soft_policy(mdp, mdp.reward([-2.0, 0.0]), goal=5),
        50,
        random_state=shifted(0),
        goal=5,
        start=np.full(9, 1 / 9),
    )
    assert_array_equal(some.goals, 5)
    check_trajectories(mdp, some)


def test_length_bounds_the_number_of_states():
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8, start=np.eye(9)[0])
    policy = soft_policy(mdp, mdp.reward([-2.0, 0.0]))
    some = sample(mdp, policy, 30, 4, random_state=shifted(0))
    assert_array_equal(some.lengths, 4)
    finite = random_mdp(1, horizon=6, start=np.full(5, 0.2), discount=0.95)
    table = np.full((5, 5, 3), 1 / 3)
    assert sample(finite, table, 2, 3, random_state=shifted(0)).lengths.max() == 3
    assert sample(finite, table, 2, 60, random_state=shifted(0)).lengths.max() == 6
    assert sample(finite, table, 2, 1, random_state=shifted(0)).actions.size == 0


def test_none_may_be_drawn():
    mdp = random_mdp(1, discount=0.5, start=np.full(5, 0.2))
    assert len(sample(mdp, np.full((5, 3), 1 / 3), 0, 5)) == 0


def test_one_state_is_a_horizon():
    mdp = random_mdp(1, horizon=1, start=np.full(5, 0.2), discount=0.95)
    assert_array_equal(sample(mdp, np.zeros((0, 5, 3)), 4, random_state=shifted(0)).lengths, 1)


def test_the_best_policy_takes_a_shortest_way():
    mdp = maze(4, 4, discount=1.0, features=np.ones((16, 1)))
    best = optimal_policy(mdp, np.full(16, -1.0), goal=15)
    some = sample(mdp, best, 5, random_state=shifted(0), goal=15, start=np.eye(16)[0])
    assert_array_equal(some.lengths, 7)


# ------------------------------------------------------------ seeds


def test_the_same_seed_gives_the_same_trajectories():
    mdp = random_mdp(1, discount=0.5, start=np.full(5, 0.2))
    policy = np.full((5, 3), 1 / 3)
    a, b, c = (sample(mdp, policy, 20, 8, random_state=seed) for seed in (5, 5, 6))
    assert a == b
    assert a != c
    assert sample(mdp, policy, 20, 8, random_state=np.random.RandomState(5)) == a


def test_the_global_seed_is_left_alone():
    mdp = random_mdp(1, discount=0.5, start=np.full(5, 0.2))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    sample(mdp, np.full((5, 3), 1 / 3), 20, 8, random_state=shifted(5))
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


# ------------------------------------------------------------ errors


@pytest.fixture
def mdp():
    return random_mdp(1, discount=0.5, start=np.full(5, 0.2))


UNIFORM = np.full((5, 3), 1 / 3)


@pytest.mark.parametrize("n", [-1, 1.5, "many", True, None])
def test_how_many_is_a_whole_number(mdp, n):
    with pytest.raises((ValueError, TypeError), match=f"n={n!r}: the number of trajectories must be a whole number"):
        sample(mdp, UNIFORM, n, 3)


@pytest.mark.parametrize("length", [0, -2, 2.0, "long", True])
def test_how_long_is_a_whole_number_from_one_on(mdp, length):
    with pytest.raises((ValueError, TypeError), match=f"length={length!r}: the maximum number of states"):
        sample(mdp, UNIFORM, 3, length)


def test_endless_trajectories_need_a_length(mdp):
    with pytest.raises(ValueError, match="nothing ends these trajectories: give length="):
        sample(mdp, UNIFORM, 3)


@pytest.mark.parametrize(("n", "length"), [(10, 10**11), (10**11, 10), (3, 10**400)])
def test_more_states_than_memory_holds_are_refused_before_the_first_draw(mdp, n, length):
    with pytest.raises(ValueError, match=r"have more than 1e\+09 states: draw fewer, or shorter ones"):
        sample(mdp, UNIFORM, n, length)


def test_trajectories_that_end_may_be_allowed_any_length():
    mdp = ring(4, discount=1.0, terminal=np.arange(4) == 3, start=np.eye(4)[2])
    assert sample(mdp, np.tile([0.5, 0.5], (4, 1)), 3, 10**11, random_state=shifted(0)).lengths.max() < 100


def test_trajectories_that_do_not_end_are_given_up(monkeypatch):
    monkeypatch.setattr("messirl.planning.sampling.MAX_LENGTH", 50)
    mdp = ring(4, discount=1.0, terminal=np.arange(4) == 3, start=np.eye(4)[0])
    stay = np.tile([1.0, 0.0], (4, 1))
    with pytest.raises(ValueError, match="3 of 3 trajectories had not ended after 50 states: give a length"):
        sample(mdp, stay, 3, random_state=shifted(0))


def test_a_start_is_needed():
    mdp = random_mdp(1, discount=0.5)
    with pytest.raises(ValueError, match=r"start distribution is needed .*: use mdp\.replace\(start="):
        sample(mdp, UNIFORM, 3, 4)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        ([0.5, 0.5], r"start has shape \(2,\): give one weight for each of the 5 states"),
        ([0.5, 0.5, -0.2, 1.0, np.nan], r"start\[2\] = -0.2, of state 2: weights must be finite and >= 0"),
        (np.full(5, np.nan), r"start\[0\] = nan"),
        (np.zeros(5), "start is zero in every state"),
    ],
)
def test_a_start_that_cannot_be_drawn_from_is_refused(mdp, start, said):
    with pytest.raises(ValueError, match=said):
        sample(mdp, UNIFORM, 3, 4, start=start)


@pytest.mark.parametrize("of", [lambda mdp, policy: sample(mdp, policy, 3, 4), state_visitation])
def test_a_policy_of_the_wrong_shape_is_refused(mdp, of):
    for shape in [(3, 5), (5,), (4, 5, 3)]:
        with pytest.raises(ValueError, match=r"policy has shape .*, not \(5, 3\)"):
            of(mdp, np.ones(shape))
    with pytest.raises(ValueError, match=r"policy has shape \(5, 3\), not \(3, 5, 3\)"):
        of(mdp.replace(horizon=4), UNIFORM)


@pytest.mark.parametrize("row", [[0.5, 0.4, 0.0], [1.5, -0.5, 0.0], [np.nan, 0.5, 0.5], [0.0, 0.0, 0.0]], ids=str)
@pytest.mark.parametrize("horizon", [None, 4])
@pytest.mark.parametrize(
    "of", [lambda mdp, policy: sample(mdp, policy, 30, 4, random_state=shifted(0)), state_visitation]
)
def test_a_row_that_is_no_distribution_is_refused(mdp, row, horizon, of):
    policy = UNIFORM.copy()
    policy[2] = row
    mdp = mdp.replace(horizon=horizon)
    if horizon is not None:
        policy = np.stack([policy] * 3)
    with pytest.raises(ValueError, match=r"policy\[2\]|policy\[., 2\]|state 2|the policy is not one for this MDP"):
        of(mdp, policy)


@pytest.mark.parametrize("horizon", [None, 4])
@pytest.mark.parametrize(
    "of", [lambda mdp, policy: sample(mdp, policy, 30, 4, random_state=shifted(0)), state_visitation]
)
def test_an_action_that_is_not_allowed_is_refused(horizon, of):
    allowed = np.ones((5, 3), dtype=bool)
    allowed[2, 1] = False
    mdp = random_mdp(1, discount=0.5, start=np.full(5, 0.2), allowed=allowed, horizon=horizon)
    policy = UNIFORM if horizon is None else np.stack([UNIFORM] * 3)
    with pytest.raises(ValueError, match=r"action 1 in state 2.*not allowed"):
        of(mdp, policy)


def test_a_goal_that_is_no_state_is_refused(mdp):
    with pytest.raises(ValueError, match="goal 5 is not one of the states 0 … 4"):
        sample(mdp, UNIFORM, 3, 4, goal=5)
    with pytest.raises(TypeError, match=r"goal must be a state, not 1\.5"):
        sample(mdp, UNIFORM, 3, 4, goal=1.5)
    with pytest.raises(ValueError, match="goal=1 with horizon=4: a trajectory with a goal ends there"):
        sample(mdp.replace(horizon=4), np.stack([UNIFORM] * 3), 3, goal=1)


def test_a_dead_end_that_is_entered_is_named():
    transitions = np.zeros((2, 1, 2))
    transitions[0, 0, 1] = 1.0
    mdp = MDP(transitions, np.eye(2), discount=0.5, start=[1.0, 0.0])
    with pytest.raises(ValueError, match=r"policy\[1\] sums to 0\.0000, not 1, but the state is visited"):
        sample(mdp, np.array([[1.0], [0.0]]), 2, 5, random_state=shifted(0))


def test_a_numpy_generator_is_a_random_state_too(mdp):
    policy = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    one, two = (sample(mdp, policy, 5, 6, generator(3)) for _ in range(2))
    assert one == two
