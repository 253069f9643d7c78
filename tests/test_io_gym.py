"""Gymnasium's tables as MDPs: the same optimal values, the same episodes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from seeds import generator

from messirl import MaxEntIRL, feature_counts, optimal_policy, optimal_values, soft_policy
from messirl.data.errors import InputError
from messirl.io.interop.gym import from_gym, gym_reward, record

gymnasium = pytest.importorskip("gymnasium")


def newest(name):
    """The id of the newest version that the gymnasium installed here makes."""
    versions = [spec.version for spec in gymnasium.registry.values() if spec.namespace is None and spec.name == name]
    return f"{name}-v{max(versions)}"


WORLDS = {
    "lake": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": True}),
    "dry lake": ("FrozenLake-v1", {"map_name": "4x4", "is_slippery": False}),
    "big lake": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": True}),
    "big dry lake": ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": False}),
    "taxi": (newest("Taxi"), {}),
    "cliff": (newest("CliffWalking"), {}),
    "slippery cliff": (newest("CliffWalking"), {"is_slippery": True}),
}
every_world = pytest.mark.parametrize("world", list(WORLDS))


def make(world):
    name, options = WORLDS[world]
    return gymnasium.make(name, **options)


class Toy:
    """A table, and nothing else of an environment."""

    def __init__(self, P, start=None):
        self.P = P
        if start is not None:
            self.initial_state_distrib = start


def values_by_sweeps(P, discount):
    """Value iteration as one would write it: V(s) = max_a Σ p (r + γ (1 − done) V(s'))."""
    n, m = len(P), len(P[0])
    entries = [(s * m + a, p, after, r, not done) for s in range(n) for a in range(m) for p, after, r, done in P[s][a]]
    row, p, after, r, goes_on = (np.array(column) for column in zip(*entries, strict=True))
    V = np.zeros(n)
    for _ in range(20_000):
        Q = np.bincount(row, p * (r + discount * goes_on * V[after]), minlength=n * m)
        new = Q.reshape(n, m).max(axis=1)
        if np.abs(new - V).max() < 1e-13:
            return new
        V = new
    raise AssertionError("value iteration did not settle")


# ------------------------------------------------------------ the MDP


@every_world
def test_optimal_values_are_those_of_value_iteration_over_the_table(world):
    env = make(world)
    mdp = from_gym(env, discount=0.99)
    values = optimal_values(mdp, gym_reward(env))
    expected = values_by_sweeps(env.unwrapped.P, 0.99)
    assert expected.any()
    np.testing.assert_allclose(values[:-1], expected, rtol=0, atol=1e-9)
    assert values[-1] == 0.0


def test_a_done_transition_leads_to_the_added_state_and_not_to_the_one_it_names():
    P = {0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 2.0, True)]}, 1: {0: [(1.0, 0, 3.0, False)]}}
    mdp = from_gym(Toy(P, np.array([1.0, 0.0])), discount=0.9)
    np.testing.assert_array_equal(mdp.transitions.toarray(), [[0.5, 0, 0.5], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(mdp.terminal, [False, False, True])
    np.testing.assert_array_equal(mdp.start, [1, 0, 0])
    np.testing.assert_array_equal(gym_reward(Toy(P)), [[1.5], [3.0], [0.0]])


def test_next_states_that_repeat_are_added_up():
    P = [[[(0.25, 1, 0.0, False), (0.5, 0, 4.0, False), (0.25, 1, 8.0, False)]], [[(1.0, 1, 0.0, True)]]]
    mdp = from_gym(Toy(P), discount=0.9)
    np.testing.assert_array_equal(mdp.transitions.toarray()[0], [0.5, 0.5, 0])
    assert gym_reward(Toy(P))[0, 0] == 4.0
    assert mdp.start is None


def test_an_id_gives_the_same_mdp_as_the_environment():
    by_name, by_env = from_gym(newest("CliffWalking"), discount=0.9), from_gym(make("cliff"), discount=0.9)
    assert (by_name.transitions != by_env.transitions).nnz == 0
    np.testing.assert_array_equal(by_name.start, by_env.start)
    np.testing.assert_array_equal(gym_reward(newest("CliffWalking")), gym_reward(make("cliff")))
    assert (by_name.n_states, by_name.n_actions) == (49, 4)


def test_features_default_to_one_indicator_a_state():
    mdp = from_gym(make("lake"), discount=0.9)
    assert sp.issparse(mdp.features)
    np.testing.assert_array_equal(mdp.features.toarray(), np.eye(17, 16))


@pytest.mark.parametrize("shape", [(16, 3), (16, 4, 3)])
@pytest.mark.parametrize("sparse", [False, True])
def test_given_features_are_zero_in_the_added_state(shape, sparse):
    table = generator(0).random(shape)
    given = sp.csr_array(table.reshape(-1, 3)) if sparse else table
    mdp = from_gym(make("lake"), discount=0.9, features=given, feature_names=["a", "b", "c"])
    assert mdp.state_action == (len(shape) == 3)
    dense = mdp.features.toarray().reshape(17, *shape[1:]) if sparse else mdp.features
    np.testing.assert_array_equal(dense[:-1], table)
    assert not dense[-1].any()
    assert mdp.feature_names == ("a", "b", "c")


def test_entered_features_see_a_goal_that_is_only_entered_by_done_transitions():
    env = make("lake")
    mdp = from_gym(env, discount=0.9, features="entered")
    assert mdp.state_action
    theta = np.zeros(16)
    theta[15] = 1.0  # FrozenLake pays one for entering its goal, and nothing else
    reward = mdp.reward(theta)
    inside = np.arange(16) != 15  # in the goal itself its table pays nothing for staying
    np.testing.assert_allclose(reward[:-1][inside], gym_reward(env)[:-1][inside], atol=1e-15)
    assert not reward[-1].any()


def test_entered_features_of_one_action_are_state_action_features():
    P = [[[(1.0, 1, 0.0, False)]], [[(1.0, 0, 0.0, True)]]]
    mdp = from_gym(Toy(P), discount=0.9, features="entered")
    assert mdp.state_action
    np.testing.assert_array_equal(mdp.features, [[[0, 1]], [[1, 0]], [[0, 0]]])


# ------------------------------------------------------------ episodes


def test_recorded_episodes_end_in_the_added_state_and_fit_the_mdp():
    env = gymnasium.make("FrozenLake-v1", max_episode_steps=1000)
    mdp = from_gym(env, discount=0.99)
    rollouts = record(env, optimal_policy(mdp, gym_reward(env)), 20, length=1000, seed=3)
    assert len(rollouts) == 20
    assert (rollouts.first == 0).all()
    assert (rollouts.last == 16).all()
    assert not (rollouts.states[rollouts.leaves] == 16).any()
    moves = mdp.transitions[rollouts.states[rollouts.leaves] * 4 + rollouts.actions].toarray()
    entered = rollouts.states[1:][rollouts.leaves[:-1]]
    assert (moves[np.arange(len(moves)), entered] > 0).all()
    assert feature_counts(mdp, rollouts).shape == (20, 16)


def test_recording_is_seeded_and_cut_at_the_length():
    uniform = np.full((48, 4), 0.25)
    once, again = (record(newest("CliffWalking"), uniform, 4, length=9, seed=5) for _ in range(2))
    assert once == again
    assert once != record(newest("CliffWalking"), uniform, 4, length=9, seed=6)
    assert (once.lengths == 9).all()


class Dice(gymnasium.Env):
    """Every step leads to any of four states alike."""

    P = [[[(0.25, after, 0.0, False) for after in range(4)]] * 4] * 4

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return int(4 * self.np_random.random()), {}

    def step(self, action):
        return int(4 * self.np_random.random()), 0.0, False, False, {}


def test_draws_of_the_policy_do_not_follow_those_of_the_environment():
    rollout = record(Dice(), np.full((4, 4), 0.25), 1, length=2000, seed=0)
    for lag in range(3):
        agree = rollout.actions[lag:] == rollout.states[: rollout.actions.size - lag]
        assert 0.2 < agree.mean() < 0.3


def test_a_function_may_choose_the_actions():
    rollouts = record(make("dry lake"), lambda state: 1 if state in (2, 6, 10) else 2, 1, length=50, seed=0)
    assert rollouts[0].states.tolist() == [0, 1, 2, 6, 10, 14, 16]
    assert rollouts[0].actions.tolist() == [2, 2, 1, 1, 1, 2]


def test_an_episode_that_is_only_cut_short_keeps_its_last_state():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=3)
    rollouts = record(env, lambda _: 0, 1, length=50, seed=0)
    assert rollouts[0].states.tolist() == [0, 0, 0, 0]


@pytest.mark.filterwarnings("ignore::messirl.estimators._convergence_report.IdentifiabilityWarning")
def test_rollouts_of_the_soft_policy_teach_a_policy_that_scores_better_than_chance():
    env = make("lake")
    mdp = from_gym(env, discount=0.9, features="entered")
    expert = record(env, soft_policy(mdp, 10.0 * gym_reward(env)), 60, length=200, seed=1)
    fitted = MaxEntIRL(theta_max=20.0).fit(mdp, expert)
    assert fitted.score(expert) > np.log(0.25)


# ------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("P", "message"),
    [
        (None, "Toy: it has no table P: use an environment that has one"),
        ([], "Toy: P is empty: give at least one transition"),
        ({1: {0: [(1.0, 1, 0.0, False)]}}, r"Toy: P is not a table P\[s\]\[a\]"),
        ([[[(1.0, 0, 0.0)]]], r"Toy: P is not a table P\[s\]\[a\]"),
        ([[[(1.0, 3, 0.0, False)]]], r"Toy: P\[0\]\[0\] leads to 3: states must be 0 … 0"),
    ],
)
def test_a_table_that_is_none_is_refused(P, message):
    with pytest.raises(InputError, match=message):
        from_gym(Toy(P), discount=0.9)


@pytest.mark.filterwarnings("ignore:.*out of date")
def test_an_environment_that_gymnasium_no_longer_makes_is_refused_in_its_words():
    with pytest.raises(InputError, match=r"Taxi-v2: gymnasium cannot create it: .*" + newest("Taxi")):
        from_gym("Taxi-v2", discount=0.9)


def test_an_environment_without_a_table_is_refused():
    with pytest.raises(InputError, match="CartPole-v1: it has no table P"):
        from_gym("CartPole-v1", discount=0.9)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((17, 2)), r"features: has shape \(17, 2\): give \(16, d\) or \(16, 4, d\), without the added state"),
        (np.ones(16), r"features: has shape \(16,\)"),
        (sp.csr_array(np.ones((5, 2))), r"features: has shape \(5, 2\): give 16 or 64 rows"),
        ("reward", "features: 'reward': give an array, 'entered', or None"),
    ],
)
def test_features_that_do_not_fit_are_refused(features, message):
    with pytest.raises(InputError, match=message):
        from_gym(make("lake"), discount=0.9, features=features)


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (np.ones((3, 4)), {}, r"policy: has shape \(3, 4\): give \(16, 4\) or a function"),
        (np.ones((16, 4)), {}, r"policy: row 0 is .* sum to 1"),
        (np.full((16, 4), 0.25), {"n": 0}, "record: n=0, length=5: give n >= 1"),
        (np.full((16, 4), 0.25), {"length": 1}, "record: n=1, length=1: give n >= 1 and length >= 2"),
    ],
)
def test_recording_refuses_what_it_cannot_do(policy, arguments, message):
    with pytest.raises(InputError, match=message):
        record(make("lake"), policy, **{"n": 1, "length": 5, "seed": 0, **arguments})
