"""Which model a problem has, and visits from any signed source against dense linear solves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from messirl import MDP, soft_policy, soft_values, state_visitation
from messirl.planning import model_for, policy_chain as chains
from messirl.planning.finite_horizon import FiniteModel
from messirl.planning.infinite_horizon import StationaryModel
from messirl.planning.memory_layout import layout_of
from messirl.planning.noncausal import NoncausalModel
from messirl.planning.planner import model_for_goals, solution_from_start
from messirl.planning.policy_chain import Chain, chain_matrix, gram
from messirl.planning.reachability import reach, reachable
from messirl.planning.recursive_logit import PathModel

S, A = 9, 3
EXACT = {"rtol": 1e-9, "atol": 1e-10}
END = np.arange(S) == S - 1
SEEDS = range(4)
KINDS = {
    "finite": {"horizon": 6, "discount": 0.9},
    "finite with ends": {"horizon": 6, "discount": 1.0, "terminal": END},
    "endless": {"discount": 0.95},
    "endless with ends": {"discount": 0.9, "terminal": END},
    "episodic": {"discount": 1.0, "terminal": END},
}


def dynamics(seed: int, *, deterministic: bool) -> np.ndarray:
    """Random moves; the first action of every state leads on to the next, so that the last is always reached."""
    rng = np.random.default_rng(seed)
    table = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            entered = rng.choice(S, 1 if deterministic else 3, replace=False)
            table[s, a, entered] = rng.dirichlet(np.ones(entered.size))
        table[s, 0] = np.eye(S)[(s + 1) % S]
    return table


def problem(seed: int, kind: str, *, deterministic: bool = False, by_action: bool = False) -> tuple[MDP, np.ndarray]:
    """An MDP and a reward that makes every step cost something."""
    rng = np.random.default_rng(100 + seed)
    features = rng.uniform(0.5, 1.5, (S, A, 2) if by_action else (S, 2))
    mdp = MDP(dynamics(seed, deterministic=deterministic), features, start=np.full(S, 1.0 / S), **KINDS[kind])
    return mdp, mdp.reward(np.array([-1.5, -1.0]))


def signed(seed: int, *shape: int) -> np.ndarray:
    """Weights of both signs that sum to nothing, so that visits have both signs too."""
    drawn = np.random.default_rng(200 + seed).normal(size=shape)
    return drawn - drawn.mean()


def dense_chain(mdp: MDP, rows: np.ndarray) -> np.ndarray:
    """P_π, (S, S), summed action by action."""
    moves = mdp.transitions.toarray().reshape(S, A, S)
    return np.einsum("sa,sat->st", rows, moves)


def summed(chains: list[np.ndarray], source: np.ndarray, gamma: float) -> np.ndarray:
    """ρ_t = m_t + γ Pᵀ ρ_{t−1} as one dense system over all steps, summed over t."""
    n = len(chains) + 1
    system = np.eye(n * S)
    for t, chain in enumerate(chains):
        system[(t + 1) * S : (t + 2) * S, t * S : (t + 1) * S] = -gamma * chain.T
    whole = np.zeros((n, S))
    whole[: len(np.atleast_2d(source))] = source
    return np.linalg.solve(system, whole.ravel()).reshape(n, S)


# -- which model ---------------------------------------------------------------------------------------------------


def test_the_kind_of_model_follows_from_the_problem():
    def kind(name: str, entropy: str = "causal", *, deterministic: bool = False) -> type:
        return type(model_for(problem(0, name, deterministic=deterministic)[0], entropy))

    assert kind("finite") is kind("finite with ends", deterministic=True) is FiniteModel
    assert kind("endless") is kind("endless", deterministic=True) is kind("episodic") is StationaryModel
    assert kind("episodic", deterministic=True) is PathModel
    assert kind("finite", "noncausal") is NoncausalModel


def test_models_refuse_what_they_cannot_have():
    finite, endless = problem(0, "finite")[0], problem(0, "endless")[0]
    with pytest.raises(ValueError, match="choose 'causal' or 'noncausal'"):
        model_for(finite, "exact")
    with pytest.raises(ValueError, match="needs a horizon"):
        model_for(endless, "noncausal")
    with pytest.raises(ValueError, match="use horizon=None"):
        model_for(finite, goal=2)
    with pytest.raises(ValueError, match="does not allow goals"):
        model_for_goals(endless, "noncausal", np.array([1]), np.ones(S, dtype=bool))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_solution_has_the_values_and_the_policy_of_the_public_functions(kind, deterministic):
    mdp, reward = problem(1, kind, deterministic=deterministic)
    found = model_for(mdp).solve(reward)
    assert_array_equal(found.values, soft_values(mdp, reward))
    assert_array_equal(found.table, soft_policy(mdp, reward))
    assert_allclose(found.visits(mdp.start).states, state_visitation(mdp, found.table), **EXACT)


@pytest.mark.parametrize("kind", KINDS)
def test_an_expectation_keeps_its_solution(kind):
    mdp, reward = problem(2, kind)
    found = model_for(mdp).solve(reward)
    expected = found.expectation(mdp.start)
    assert expected.solution is found
    assert_allclose(expected.log_partition, mdp.start @ mdp.first(found.values), rtol=1e-13)


# -- visits from a signed source -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("by_action", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kind", ["endless", "endless with ends", "episodic"])
def test_visits_without_horizon_solve_the_dense_system(kind, deterministic, by_action, seed):
    mdp, reward = problem(seed, kind, deterministic=deterministic, by_action=by_action)
    found, source = model_for(mdp).solve(reward), signed(seed, S)
    chain = dense_chain(mdp, found.table)
    wanted = np.linalg.solve(np.eye(S) - mdp.discount * chain.T, source)
    got = found.visits(source)
    assert wanted.min() < 0.0 < wanted.max()
    assert_allclose(got.states, wanted, **EXACT)
    assert_allclose(got.steps, wanted[:, None] * found.table, **EXACT)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kind", ["finite", "finite with ends"])
def test_visits_with_a_horizon_solve_the_dense_system_over_all_steps(kind, deterministic, per_step, seed):
    mdp, reward = problem(seed, kind, deterministic=deterministic)
    found, source = model_for(mdp).solve(reward), signed(seed, *((6, S) if per_step else (S,)))
    wanted = summed([dense_chain(mdp, rows) for rows in found.table], source, mdp.discount)
    got = found.visits(source)
    assert wanted.min() < 0.0 < wanted.max()
    assert_allclose(got.states, wanted.sum(axis=0), **EXACT)
    assert_allclose(got.steps, np.einsum("ts,tsa->sa", wanted[:-1], found.table), **EXACT)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("tilted", [False, True])
def test_visits_of_the_noncausal_model_solve_the_dense_system_of_its_own_dynamics(tilted, per_step, seed):
    mdp, reward = problem(seed, "finite with ends", by_action=True)
    found = model_for(mdp, "noncausal", tilted=tilted).solve(reward)
    source = signed(seed, *((6, S) if per_step else (S,)))
    moves, log_z = mdp.transitions.toarray().reshape(S, A, S), found.values
    chains = []
    for t, rows in enumerate(found.table):
        if tilted:
            lift = mdp.discount**t * reward[:, :, None] + log_z[t + 1] - log_z[t][:, None, None]
            chains.append(np.where(END[:, None], 0.0, (moves * np.exp(lift)).sum(axis=1)))
        else:
            chains.append(dense_chain(mdp, rows))
    wanted = summed(chains, source, mdp.discount)
    got = found.visits(source)
    assert_allclose(got.states, wanted.sum(axis=0), **EXACT)
    assert_allclose(got.steps, np.einsum("ts,tsa->sa", wanted[:-1], found.table), **EXACT)


GOALS = np.array([2, 5, 8])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("size", [1.0, 400.0])  # the larger one: z underflows, and goals are solved one by one
def test_visits_of_many_goals_sum_those_of_each(discount, deterministic, size, seed):
    moves, features = dynamics(seed, deterministic=deterministic), np.ones((S, A, 1))
    mdp = MDP(moves, features, discount=discount)
    reward, source = np.full((S, A), -2.0 * size), signed(seed, 3, S)
    model = model_for_goals(mdp, "causal", GOALS, np.ones(S, dtype=bool))
    states, steps, value = np.zeros(S), np.zeros((S, A)), 0.0
    for goal, row in zip(GOALS.tolist(), source, strict=True):
        table = soft_policy(mdp, reward, goal=goal)
        each = np.linalg.solve(np.eye(S) - discount * dense_chain(mdp, table).T, row)
        states, steps = states + each, steps + each[:, None] * table
        value += row @ soft_values(mdp, reward, goal=goal)
    got = model.solve(reward).expectation(source).visits
    assert_allclose(got.states, states, **EXACT)
    assert_allclose(got.steps, steps, **EXACT)
    expected = model.solve(reward).expectation(sp.csr_array(source))
    assert_allclose(expected.log_partition, value, rtol=1e-9)
    assert_allclose(expected.visits.states, states, **EXACT)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_visits_are_linear_in_the_source(kind, deterministic, scale):
    mdp, reward = problem(3, kind, deterministic=deterministic)
    found, one, other = model_for(mdp).solve(reward), signed(4, S), signed(5, S)
    mixed = found.visits(scale * (2.0 * one - 3.0 * other)).states
    assert_allclose(mixed / scale, 2.0 * found.visits(one).states - 3.0 * found.visits(other).states, **EXACT)


@pytest.mark.parametrize("kind", ["endless", "endless with ends"])
@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e9])
def test_the_visits_from_few_starts_are_as_exact_as_those_from_many(kind, scale):
    mdp, reward = problem(3, kind)
    found = model_for(mdp).solve(reward)
    few, wanted = found.visits(scale * mdp.start), found.visits(mdp.start)
    assert_allclose(few.states / scale, wanted.states, rtol=1e-11, atol=1e-13)
    assert_allclose(few.steps / scale, wanted.steps, rtol=1e-11, atol=1e-13)


def test_visits_are_zero_from_no_source_and_where_a_signed_source_does_not_get_to():
    moves = np.zeros((4, 1, 4))
    moves[[0, 1, 2, 3], 0, [1, 0, 3, 2]] = 1.0  # two pairs of states that never meet
    mdp = MDP(moves, np.ones((4, 1)), discount=0.9)
    found = model_for(mdp).solve(np.zeros(4))
    assert_array_equal(found.visits(np.zeros(4)).states, 0.0)
    assert_array_equal(found.visits(np.array([1.0, -2.0, 0.0, 0.0])).states[2:], 0.0)


def test_a_model_that_is_asked_again_begins_with_what_it_found_and_finds_the_same():
    mdp, reward = problem(6, "endless")
    model, source = model_for(mdp), signed(6, S)
    for size in (1.0, 1.2, 0.7):
        again, anew = model.solve(size * reward), model_for(mdp).solve(size * reward)
        assert_allclose(again.values, anew.values, rtol=1e-11)
        assert_allclose(again.visits(source).states, anew.visits(source).states, **EXACT)
        assert_allclose(again.visits(mdp.start).states, anew.visits(mdp.start).states, **EXACT)


def test_where_some_state_has_no_finite_value_those_that_are_met_have_theirs():
    moves = np.zeros((4, 2, 4))
    moves[0, :, 1] = moves[1, :, 1] = 1.0
    moves[2, 0, 2] = moves[2, 1, 1] = moves[3, :, 2] = 1.0  # state 2 may stay for ever, and gains by it
    mdp = MDP(moves, np.ones((4, 1)), discount=1.0, terminal=[False, True, False, False])
    reward, start = np.array([-1.0, 0.0, 1.0, -1.0]), np.eye(4)[0]
    with pytest.raises(ValueError, match="no finite value"):
        soft_values(mdp, reward)
    assert_allclose(solution_from_start(mdp, reward, start).values[:2], [-1.0 + np.log(2.0), 0.0], atol=1e-12)


# -- the chain -----------------------------------------------------------------------------------------------------


def test_the_chain_is_one_whichever_way_it_is_made():
    mdp, reward = problem(7, "endless with ends")
    found = model_for(mdp).solve(reward)
    dense = dense_chain(mdp, found.table)
    assert_allclose(chain_matrix(mdp, found.table).toarray(), dense, atol=1e-15)
    chain = Chain(mdp).follow(found.policy)
    assert_allclose(chain.matrix.toarray(), dense, atol=1e-15)
    start = np.eye(S)[3]
    met = np.linalg.matrix_power(np.eye(S) + dense, S)[3] > 0
    assert_array_equal(chain.reach(start), met)
    assert_array_equal(reach(sp.coo_array(chain_matrix(mdp, found.table)).coords, start > 0), met)
    assert_array_equal(reachable(mdp, start), met)  # a soft policy takes every action


def test_a_guess_that_is_no_number_is_not_believed():
    mdp, reward = problem(7, "endless")
    chain = Chain(mdp).follow(model_for(mdp).solve(reward).policy)
    start, nothing = np.eye(S)[3], np.full(S, np.nan)
    truth = np.linalg.solve(np.eye(S) - 0.95 * chain.matrix.toarray().T, start)
    assert_allclose(chain.visits(start, nothing), truth, **EXACT)
    assert chain.signed_visits(start - np.eye(S)[4], nothing, np.ones(S)) is None


def test_the_gram_matrix_sums_what_choices_collect():
    mdp, _ = problem(8, "endless", by_action=True)
    rng = np.random.default_rng(8)
    ahead, here, weights = rng.normal(size=(S, 2)), rng.normal(size=(S, 2)), rng.uniform(size=(S, A))
    gaps = mdp.features + 0.95 * (mdp.transitions @ ahead).reshape(S, A, 2) - here[:, None]
    wanted = np.einsum("sa,sad,sae->de", weights, gaps, gaps)
    assert_allclose(gram(mdp, np.asarray(mdp.features), ahead, here, weights), wanted, rtol=1e-12)


@pytest.mark.parametrize("dead_end", [False, True])
def test_with_a_horizon_the_usable_actions_are_those_that_the_policy_takes(dead_end):
    table, allowed = dynamics(0, deterministic=False), np.random.default_rng(1).random((S, A)) < 0.7
    allowed[:, 0] = True
    allowed[4] &= not dead_end
    mdp = MDP(table, np.ones((S, 1)), allowed=allowed, terminal=END, horizon=4, discount=1.0)
    model, every, taken = model_for(mdp), np.arange(S), []
    for t, policy in enumerate(soft_policy(mdp, np.zeros(S))):
        alive = ~model.lost(np.int64(t), every)
        usable = model.usable(every, np.full(S, t))
        assert_array_equal(usable[alive], policy[alive] > 0.0)
        taken.append(usable)
    assert_array_equal(model.live, np.any(taken, axis=0))
    assert (model.live < mdp.allowed).any() == dead_end


def swept(monkeypatch):
    """Let Krylov's method fail, and factors be refused, as if there were many states."""

    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(chains, "bicgstab", lambda *_: np.inf)
    monkeypatch.setattr(chains, "factorised", refused)
    monkeypatch.setattr(chains, "MANY", 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_chains_of_many_states_that_krylov_fails_on_are_swept_and_not_factorised(monkeypatch, seed):
    mdp, reward = problem(seed, "endless with ends")
    found = model_for(mdp).solve(reward)
    chain, matrix = Chain(mdp).follow(found.policy), chain_matrix(mdp, np.ascontiguousarray(found.table)).toarray()
    swept(monkeypatch)
    system, b = np.eye(S) - mdp.discount * matrix, signed(seed, S)
    assert_allclose(chain.solve(chain.layout.pad(b), tolerance=0.0)[:S], np.linalg.solve(system, b), **EXACT)
    source = np.abs(b)
    assert_allclose(chain.visits(source), np.linalg.solve(system.T, source), **EXACT)


@pytest.mark.parametrize("ahead", [1.0, 0.7])
def test_visits_that_gather_at_the_end_of_a_corridor_are_swept(monkeypatch, ahead):
    n, discount = 600, 0.99
    moves = np.stack([np.eye(n)[np.maximum(np.arange(n) - 1, 0)], np.eye(n)[np.minimum(np.arange(n) + 1, n - 1)]], 1)
    mdp = MDP(moves, np.ones((n, 1)), discount=discount)
    policy = np.tile([1.0 - ahead, ahead], (n, 1))
    chain = Chain(mdp).follow(layout_of(mdp).action_major(policy))
    swept(monkeypatch)
    for source in (np.full(n, 1.0 / n), np.eye(n)[0]):
        wanted = np.linalg.solve(np.eye(n) - discount * chain_matrix(mdp, policy).toarray().T, source)
        assert_allclose(chain.visits(source), wanted, rtol=1e-9, atol=1e-11)


def test_sweeps_that_would_not_get_there_are_not_begun(monkeypatch):
    mdp, reward = problem(0, "endless")
    chain = Chain(mdp.replace(discount=0.99999)).follow(model_for(mdp).solve(reward).policy)
    swept(monkeypatch)
    with pytest.raises(AssertionError):
        chain.solve(chain.layout.pad(np.ones(S)), tolerance=0.0)
    with pytest.raises(AssertionError):
        chain.visits(np.ones(S))


def test_what_is_no_number_is_not_taken_for_a_solution(monkeypatch):
    mdp, reward = problem(0, "endless")
    chain = Chain(mdp).follow(model_for(mdp).solve(reward).policy)
    swept(monkeypatch)
    with pytest.raises(AssertionError):  # goes on to the factors
        chain.solve(chain.layout.pad(np.full(S, np.nan)), tolerance=1e-12)
