"""Distances to a known truth, each against its definition: enumeration and dense algebra, no planner of the library."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from problems import problem
from seeds import generator
from worlds import ROUNDING, maze, random_mdp

from messirl import MDP, MaxEntIRL, optimal_policy, soft_policy
from messirl.inference.metrics import (
    epic_distance,
    expected_value_difference,
    inverse_learning_error,
    policy_kl,
    policy_value,
)

START = np.array([0.5, 0.3, 0.2, 0.0])


def tiny(kind: str, seed: int = 0) -> MDP:
    """Four states, two actions; in the episodic one the last state ends it and is near."""
    if kind == "finite":
        return random_mdp(seed, 4, 2, discount=0.9, horizon=4, start=START)
    if kind == "finite with an end":
        return random_mdp(seed, 4, 2, discount=1.0, horizon=4, start=START, terminal=np.arange(4) == 3)
    if kind == "endless":
        return random_mdp(seed, 4, 2, discount=0.8, start=START)
    return random_mdp(seed, 4, 2, discount=1.0, start=START, terminal=np.arange(4) == 3)


KINDS = ["endless", "episodic", "finite", "finite with an end"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_reward = pytest.mark.parametrize("by_step", [False, True], ids=["r(s)", "r(s,a)"])


def some_reward(mdp: MDP, by_step: bool, seed: int = 5) -> np.ndarray:
    return generator(seed).normal(size=(4, 2) if by_step else 4) - (1.0 if mdp.discount == 1.0 else 0.0)


def some_policy(mdp: MDP, seed: int = 7) -> np.ndarray:
    lead = () if mdp.horizon is None else (mdp.horizon - 1,)
    policy = generator(seed).dirichlet(np.ones(mdp.n_actions), size=(*lead, mdp.n_states))
    policy[..., mdp.terminal, :] = 0.0
    return policy


def dense(mdp: MDP) -> np.ndarray:
    return mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)


def value_of(mdp: MDP, reward: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """V^π(s) by listing every trajectory, or by one dense linear system."""
    if mdp.horizon is not None:
        return np.array([listed(mdp, reward, policy, s, 0) for s in range(mdp.n_states)])
    chain = np.einsum("sa,sax->sx", policy, dense(mdp))
    gain = reward if reward.ndim == 1 else (policy * reward).sum(axis=1)
    return np.linalg.solve(np.eye(mdp.n_states) - mdp.discount * chain, gain)


def listed(mdp: MDP, reward: np.ndarray, policy: np.ndarray, s: int, t: int) -> float:
    if t == mdp.horizon - 1 or mdp.terminal[s]:
        return float(reward[s]) if reward.ndim == 1 else 0.0
    p, total = dense(mdp), 0.0
    for a, x in itertools.product(range(mdp.n_actions), range(mdp.n_states)):
        here = reward[s] if reward.ndim == 1 else reward[s, a]
        total += policy[t, s, a] * p[s, a, x] * (here + mdp.discount * listed(mdp, reward, policy, x, t + 1))
    return total


def best_values(mdp: MDP, reward: np.ndarray) -> np.ndarray:
    """The best of all deterministic policies, in each state."""
    if mdp.horizon is not None:
        p = dense(mdp)
        end = reward if reward.ndim == 1 else np.zeros(mdp.n_states)
        v = end
        for _ in range(mdp.horizon - 1):
            here = reward[:, None] if reward.ndim == 1 else reward
            v = np.where(mdp.terminal, end, (here + mdp.discount * p @ v).max(axis=1))
        return v
    values = []
    for choice in itertools.product(range(mdp.n_actions), repeat=mdp.n_states):
        policy = np.eye(mdp.n_actions)[list(choice)]
        policy[mdp.terminal] = 0.0
        values.append(value_of(mdp, reward, policy))
    return np.max(values, axis=0)


# ------------------------------------------------------------ values


@every_kind
@every_reward
def test_the_value_of_a_policy_is_its_definition(kind, by_step):
    mdp = tiny(kind)
    reward, policy = some_reward(mdp, by_step), some_policy(mdp)
    if by_step:
        reward[mdp.terminal] = 0.0
    expected = value_of(mdp, reward, policy)
    assert policy_value(mdp, reward, policy) == pytest.approx(START @ expected, rel=1e-11, abs=1e-11)
    other = np.array([0.0, 2.0, 0.0, 0.0])
    assert policy_value(mdp, reward, policy, start=other) == pytest.approx(expected[1], rel=1e-11, abs=1e-11)


@every_kind
@every_reward
def test_evd_is_the_best_value_less_that_of_the_policy(kind, by_step):
    mdp = tiny(kind, seed=1)
    reward, policy = some_reward(mdp, by_step), some_policy(mdp)
    if by_step:
        reward[mdp.terminal] = 0.0
    expected = START @ (best_values(mdp, reward) - value_of(mdp, reward, policy))
    assert expected > 0.01
    assert expected_value_difference(mdp, reward, policy) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    nothing = pytest.approx(0.0, abs=1e-11 * (1.0 + np.abs(best_values(mdp, reward)).max()))
    assert expected_value_difference(mdp, reward, optimal_policy(mdp, reward)) == nothing


@every_kind
@every_reward
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_ile_is_a_norm_of_lost_value_over_states(kind, by_step, p):
    mdp = tiny(kind, seed=2)
    reward, policy = some_reward(mdp, by_step), some_policy(mdp)
    if by_step:
        reward[mdp.terminal] = 0.0
    gap = np.abs(best_values(mdp, reward) - value_of(mdp, reward, policy))
    expected = gap.max() if p == np.inf else (gap**p).sum() ** (1 / p)
    assert expected > 0.01
    assert inverse_learning_error(mdp, reward, policy=policy, p=p) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@every_kind
def test_ile_of_a_learned_reward_takes_its_optimal_policy(kind):
    mdp = tiny(kind, seed=3)
    true, others = some_reward(mdp, True), [some_reward(mdp, True, seed) for seed in range(6, 30)]
    found = [inverse_learning_error(mdp, true, policy=optimal_policy(mdp, learned)) for learned in others]
    assert max(found) > 0.01  # some of them want something else
    for learned, by_policy in zip(others, found, strict=True):
        assert inverse_learning_error(mdp, true, learned) == pytest.approx(by_policy, rel=1e-11, abs=1e-11)
    nothing = pytest.approx(0.0, abs=1e-11 * (1.0 + np.abs(best_values(mdp, true)).max()))
    assert inverse_learning_error(mdp, true, 3.0 * true) == nothing


def test_what_a_policy_does_in_a_terminal_state_has_no_value():
    mdp = tiny("episodic")
    reward, policy = some_reward(mdp, True), some_policy(mdp)
    idle = inverse_learning_error(mdp, reward, policy=policy), policy_value(mdp, reward, policy)
    policy[3] = [0.4, 0.6]
    moving = inverse_learning_error(mdp, reward, policy=policy), policy_value(mdp, reward, policy)
    assert moving == pytest.approx(idle, rel=ROUNDING)


def test_ile_leaves_dead_ends_out():
    p = np.zeros((4, 2, 4))
    p[0, 0, 1] = p[0, 1, 2] = p[1, 0, 1] = p[1, 1, 0] = 1.0  # state 2 has no action, state 3 only leads there
    p[3, 0, 2] = 1.0
    mdp = MDP(p, np.eye(4), discount=0.5, start=np.eye(4)[0])
    # V*(0) = 0.5·1/(1 − 0.5) = 1, V*(1) = 2; going to and fro: V(0) = 0.5/(1 − 0.25) = 2/3, V(1) = 4/3
    there_and_back = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    assert inverse_learning_error(mdp, [0, 1, 5, 5], policy=there_and_back) == pytest.approx(1 / 3 + 2 / 3)
    with pytest.raises(ValueError, match="reaches state 2, a dead end"):
        policy_value(mdp, [0, 1, 5, 5], [[0, 1], [1, 0], [0, 0], [0, 0]])


def test_a_policy_that_need_not_end_has_no_value_without_discount():
    mdp = maze(1, 3, discount=1.0, terminal=np.arange(3) == 2)
    to_and_fro = np.zeros((3, 4))
    to_and_fro[0, 1] = to_and_fro[1, 3] = 1.0
    for metric in (policy_value, expected_value_difference):
        with pytest.raises(ValueError, match="from state 0 the policy may never reach a terminal state"):
            metric(mdp, -np.ones(3), to_and_fro, start=np.ones(3))
    with pytest.raises(ValueError, match="from state 0 the policy may never reach a terminal state"):
        inverse_learning_error(mdp, -np.ones(3), policy=to_and_fro)


def test_a_trap_that_the_policy_avoids_does_not_disturb_the_other_states():
    p = np.zeros((3, 2, 3))
    p[0, 0, 2] = p[0, 1, 1] = p[1, :, 1] = 1.0  # state 1 is never left
    mdp = MDP(p, np.eye(3), discount=1.0, terminal=np.arange(3) == 2)
    policy = [[1, 0], [1, 0], [0, 0]]
    assert inverse_learning_error(mdp, [-1.0, -1.0, 3.0], policy=policy) == pytest.approx(0.0, abs=1e-12)
    assert policy_value(mdp, [-1.0, -1.0, 3.0], policy, start=[1.0, 0.0, 0.0]) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="from state 1 the policy may never reach a terminal state"):
        policy_value(mdp, [-1.0, -1.0, 3.0], policy, start=[0.5, 0.5, 0.0])


# ------------------------------------------------------------ policies


@pytest.mark.parametrize("kind", ["endless", "episodic"])
def test_kl_weighs_by_where_p_goes(kind):
    mdp = tiny(kind, seed=4)
    p, q = some_policy(mdp, 1), some_policy(mdp, 2)
    chain = np.einsum("sa,sax->sx", p, dense(mdp))
    d = np.linalg.solve((np.eye(4) - mdp.discount * chain).T, START) * ~mdp.terminal
    kl = np.array([sum(p[s, a] * np.log(p[s, a] / q[s, a]) for a in range(2) if p[s, a] > 0) for s in range(4)])
    assert policy_kl(mdp, p, q) == pytest.approx(d @ kl / d.sum(), abs=1e-12)
    assert policy_kl(mdp, p, p) == 0.0


@pytest.mark.parametrize("kind", ["finite", "finite with an end"])
def test_kl_with_a_horizon_is_the_mean_over_listed_choices(kind):
    mdp = tiny(kind, seed=4)
    p, q = some_policy(mdp, 1), some_policy(mdp, 2)
    total = weight = 0.0
    stack = [(s, 0, START[s]) for s in range(4)]
    while stack:
        s, t, w = stack.pop()
        if t == mdp.horizon - 1 or mdp.terminal[s]:
            continue
        weight += w
        for a in range(2):
            total += w * p[t, s, a] * np.log(p[t, s, a] / q[t, s, a])
            stack += [(x, t + 1, w * mdp.discount * p[t, s, a] * dense(mdp)[s, a, x]) for x in range(4)]
    assert policy_kl(mdp, p, q) == pytest.approx(total / weight, abs=1e-12)


def test_kl_is_infinite_where_q_lacks_support_and_only_there():
    mdp = maze(1, 3, discount=0.9, start=np.eye(3)[0])
    stay_left = np.zeros((3, 4))
    stay_left[0, 1] = stay_left[1, 3] = stay_left[2, 3] = 1.0
    turn = stay_left.copy()
    turn[2] = [1.0, 0.0, 0.0, 0.0]  # not even allowed, but never met
    assert policy_kl(mdp, stay_left, turn) == 0.0
    turn[1] = [0.0, 1.0, 0.0, 0.0]
    assert policy_kl(mdp, stay_left, turn) == np.inf
    with pytest.raises(ValueError, match=r"policy_q\[1\] is"):
        policy_kl(mdp, stay_left, turn * [[1.0], [0.5], [1.0]])


def test_kl_needs_a_choice():
    mdp = tiny("episodic")
    with pytest.raises(ValueError, match="no choice is made"):
        policy_kl(mdp, some_policy(mdp), some_policy(mdp), start=np.eye(4)[3])


# ------------------------------------------------------------ rewards


def epic_by_loops(mdp: MDP, a: np.ndarray, b: np.ndarray, coverage: np.ndarray) -> float:
    """The definition, term by term, for (S, A, S) rewards in a problem where every action is allowed."""
    n, k, gamma = mdp.n_states, mdp.n_actions, mdp.discount

    def canonical(r):
        def mean(s):
            return sum(r[s, act, x] for act in range(k) for x in range(n)) / (k * n)

        overall = sum(mean(s) for s in range(n)) / n
        out = np.empty((n, k, n))
        for s, act, x in itertools.product(range(n), range(k), range(n)):
            out[s, act, x] = r[s, act, x] + gamma * mean(x) - mean(s) - gamma * overall
        return out.ravel()

    x, y, w = canonical(a), canonical(b), coverage.ravel() / coverage.sum()
    x, y = x - w @ x, y - w @ y
    rho = (w * x) @ y / np.sqrt((w @ x**2) * (w @ y**2))
    return float(np.sqrt((1 - rho) / 2))


def as_steps(reward: np.ndarray) -> np.ndarray:
    return np.broadcast_to(reward.reshape(*reward.shape, *[1] * (3 - reward.ndim)), (4, 2, 4))


@pytest.mark.parametrize("shapes", [((4,), (4,)), ((4,), (4, 2)), ((4, 2), (4, 2)), ((4, 2, 4), (4, 2))])
def test_epic_is_its_definition(shapes):
    mdp, rng = tiny("endless"), generator(3)
    a, b = rng.normal(size=shapes[0]), rng.normal(size=shapes[1])
    for given_, used in ((None, dense(mdp)), (np.ones((4, 2, 4)), np.ones((4, 2, 4)))):
        expected = epic_by_loops(mdp, as_steps(a), as_steps(b), used)
        assert 1e-3 < expected < 1 - 1e-6  # at neither end; below, the root would cost more digits than are asked for
        assert epic_distance(mdp, a, b, coverage=given_) == pytest.approx(expected, abs=1e-12)
    weights = rng.random((4, 2, 4))
    sparse = sp.csr_array(weights.reshape(8, 4))
    full = epic_distance(mdp, a, b, coverage=weights)
    assert epic_distance(mdp, a, b, coverage=sparse) == pytest.approx(full, abs=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 100.0), by_step=st.booleans(), ended=st.booleans())
def test_epic_sees_neither_shaping_nor_scale(seed, scale, by_step, ended):
    rng = generator(seed)
    mdp = tiny("episodic" if ended else "endless", seed % 5)
    reward, other = some_reward(mdp, by_step, seed), rng.normal(size=(4, 2))
    if by_step:
        reward[mdp.terminal] = 0.0
    potential = rng.normal(size=4)
    shaped = scale * as_steps(reward) + mdp.discount * potential - potential[:, None, None] + 0.7
    assert epic_distance(mdp, reward, shaped) == pytest.approx(0.0, abs=1e-9)
    assert epic_distance(mdp, shaped, other) == pytest.approx(epic_distance(mdp, reward, other), abs=1e-9)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_epic_is_a_distance_in_the_unit_interval(seed):
    rng, mdp = generator(seed), tiny("endless")
    a, b, c = rng.normal(size=4), rng.normal(size=(4, 2)), rng.normal(size=(4, 2, 4))
    ab, bc, ac = epic_distance(mdp, a, b), epic_distance(mdp, b, c), epic_distance(mdp, a, c)
    assert all(0.0 <= x <= 1.0 for x in (ab, bc, ac))
    assert ab == pytest.approx(epic_distance(mdp, b, a), abs=1e-12)
    assert ac <= ab + bc + 1e-12
    assert epic_distance(mdp, a, -a) == pytest.approx(1.0, abs=1e-12)
    assert epic_distance(mdp, a, a) == 0.0


def test_a_constant_reward_is_half_way_from_every_other():
    mdp = tiny("endless")
    assert epic_distance(mdp, np.full(4, 0.1), np.arange(4)) == pytest.approx(0.5, abs=1e-12)
    assert epic_distance(mdp, np.full((4, 2), 0.7), np.zeros(4)) == 0.0


def test_epic_reads_no_reward_of_actions_that_are_not_allowed():
    mdp, rng = maze(2, 2, discount=0.9, terminal=np.arange(4) == 3), generator(1)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    changed = np.where(mdp.allowed, a, 99.0)
    assert epic_distance(mdp, a, changed) == pytest.approx(0.0, abs=1e-12)
    assert epic_distance(mdp, a, b) == pytest.approx(epic_distance(mdp, changed, b), abs=1e-12)
    assert epic_distance(mdp, a, b) > 0.1


def test_epic_averages_over_the_actions_that_are_allowed():
    mdp, rng = maze(2, 2, discount=0.9), generator(1)  # two of four actions in each state
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))

    def canonical(r):
        m = [np.mean([r[s, k] for k in range(4) if mdp.allowed[s, k]]) for s in range(4)]
        steps = [(s, k, int(np.argmax(dense(mdp)[s, k]))) for s, k in np.argwhere(mdp.allowed)]
        return [r[s, k] + 0.9 * m[x] - m[s] for s, k, x in steps]

    rho = np.corrcoef(canonical(a), canonical(b))[0, 1]
    assert epic_distance(mdp, a, b) == pytest.approx(np.sqrt((1 - rho) / 2), abs=1e-12)


def test_epic_sees_the_reward_of_a_terminal_state():
    mdp = tiny("episodic")
    assert epic_distance(mdp, [0.0, 1.0, 0.0, 5.0], [0.0, 1.0, 0.0, -5.0]) > 0.5


# ------------------------------------------------------------ errors


def test_goals_are_refused():
    mdp, expert, _ = problem("goals")
    fitted = MaxEntIRL(ridge=0.1).fit(mdp, expert)
    for metric in (policy_value, expected_value_difference):
        with pytest.raises(TypeError, match="goals are not supported"):
            metric(mdp, -np.ones(9), fitted.policy_, start=np.eye(9)[0])
    with pytest.raises(TypeError, match="goals are not supported"):
        inverse_learning_error(mdp, -np.ones(9), policy=fitted.policy_)
    with pytest.raises(TypeError, match="goals are not supported"):
        policy_kl(mdp, fitted.policy_, fitted.policy_, start=np.eye(9)[0])


def test_wrong_arguments_are_named():
    mdp = tiny("endless")
    policy = soft_policy(mdp, np.zeros(4))
    with pytest.raises(ValueError, match=r"policy has shape \(2, 4\), not \(4, 2\)"):
        policy_value(mdp, np.zeros(4), policy.T)
    with pytest.raises(ValueError, match=r"policy has shape \(4, 2\), not \(3, 4, 2\)"):
        expected_value_difference(tiny("finite"), np.zeros(4), policy)
    with pytest.raises(ValueError, match=r"reward has shape \(3,\)"):
        expected_value_difference(mdp, np.zeros(3), policy)
    with pytest.raises(ValueError, match=r"reward has shape \(3,\)"):
        inverse_learning_error(mdp, np.zeros(4), np.zeros(3))
    with pytest.raises(ValueError, match="exactly one of learned_reward and policy="):
        inverse_learning_error(mdp, np.zeros(4))
    with pytest.raises(ValueError, match="a norm needs p >= 1"):
        inverse_learning_error(mdp, np.zeros(4), np.zeros(4), p=0.5)
    with pytest.raises(ValueError, match="start distribution is needed"):
        policy_value(mdp.replace(start=None), np.zeros(4), policy)
    with pytest.raises(ValueError, match=r"reward_b has shape \(4, 2, 3\)"):
        epic_distance(mdp, np.zeros(4), np.zeros((4, 2, 3)))
    for coverage in (np.ones((2, 4, 4)), np.ones((8, 4)), np.zeros((4, 2, 4)), -np.ones((4, 2, 4))):
        with pytest.raises(ValueError, match="coverage must be weights"):
            epic_distance(mdp, np.zeros(4), np.zeros(4), coverage=coverage)
