"""Paths by iteration where factors would fill in: the same values and visits, or a factorisation after all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from seeds import generator

from messirl import MDP
from messirl.planning import (
    NoFiniteValue,
    goal_conditioned,
    iterative_paths,
    model_for,
    multithreading,
    policy_chain,
    recursive_logit,
)
from messirl.planning.goal_derivatives import OutOfReach, goals_hessian
from messirl.planning.identifiability import unidentified
from messirl.planning.iterative_paths import IterativeSolution, NotCertified, as_csr, fills_in
from messirl.planning.kernels.multi_goal import solve_columns, times
from messirl.planning.planner import model_for_goals

S, A = 80, 6
RADII = [0.3, 0.9, 0.999]
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


@pytest.fixture
def iterating(monkeypatch):
    """Small graphs too are iterated."""
    monkeypatch.setattr(iterative_paths, "LEAST_WORK", 0.0)
    monkeypatch.setattr(iterative_paths, "ADVANTAGE", 0.0)


@pytest.fixture
def no_factors(monkeypatch):
    """Nothing may be factorised."""

    def refuse(matrix):
        raise AssertionError("this was to be iterated")

    monkeypatch.setattr(recursive_logit, "m_matrix_lu", refuse)
    monkeypatch.setattr(goal_conditioned, "m_matrix_lu", refuse)


def small_world(seed: int, radius: float, *, terminal: bool) -> tuple[MDP, np.ndarray]:
    """A ring with links to anywhere, and a reward that puts the spectral radius of its moves there."""
    rng = generator(seed)
    target = rng.integers(0, S, (S, A))
    target[:, 0] = (np.arange(S) + 1) % S
    moves = sp.csr_array((np.ones(S * A), (np.arange(S * A), target.ravel())), shape=(S * A, S))
    ends = np.arange(S) == S - 1
    mdp = MDP(moves, rng.uniform(0.0, 1.0, (S, A, 2)), discount=1.0, terminal=ends if terminal else None)
    reward = rng.normal(scale=0.5, size=(S, A))
    gain = np.zeros((S, S))
    np.add.at(gain, (np.repeat(np.arange(S), A), target.ravel()), np.exp(reward).ravel())
    if terminal:
        gain[ends] = 0.0
    return mdp, reward + np.log(radius / np.abs(np.linalg.eigvals(gain)).max())


def factorised(build):
    """What `build` returns where nothing is iterated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iterative_paths, "LEAST_WORK", np.inf)
        return build()


def signed(seed: int, *shape: int) -> np.ndarray:
    drawn = generator(seed).normal(size=shape)
    return drawn - drawn.mean()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", RADII)
def test_values_and_visits_towards_an_end_are_those_of_the_factors(iterating, seed, radius):
    mdp, reward = small_world(seed, radius, terminal=True)
    wanted = factorised(lambda: model_for(mdp.replace()).solve(reward))
    got, source = model_for(mdp).solve(reward), signed(seed, S)
    assert isinstance(got, recursive_logit.PathSolution)
    assert got._iterated is not None
    assert_allclose(got.values, wanted.values, **CLOSE)
    assert_allclose(got.table, wanted.table, **CLOSE)
    scale = np.abs(wanted.visits(np.abs(source)).states).max()
    assert_allclose(got.visits(source).states / scale, wanted.visits(source).states / scale, **CLOSE)
    assert_allclose(got.visits(source).steps / scale, wanted.visits(source).steps / scale, **CLOSE)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", RADII)
def test_values_and_visits_towards_goals_are_those_of_the_factors(iterating, no_factors, seed, radius):
    mdp, reward = small_world(seed, radius, terminal=False)
    ends, everywhere, source = np.arange(0, S, 4), np.ones(S, dtype=bool), signed(seed, 20, S)
    got = model_for_goals(mdp, "causal", ends, everywhere).solve(reward)
    expected = got.expectation(source)
    gain = np.zeros((S, S))
    np.add.at(gain, (np.repeat(np.arange(S), A), mdp.transitions.indices), np.exp(reward).ravel())
    value, states = 0.0, np.zeros(S)
    for (goal, values), row in zip(got.values(np.ones((20, S))), source, strict=True):
        without = np.where(np.arange(S)[:, None] == goal, 0.0, gain)
        z = np.linalg.solve(np.eye(S) - without, np.eye(S)[goal])
        assert_allclose(values, np.log(z), **CLOSE)
        chain = without * z / z[:, None]
        states += np.linalg.solve(np.eye(S) - chain.T, row)
        value += float(row @ np.log(z))
    assert_allclose(expected.log_partition, value, **CLOSE)
    assert_allclose(expected.visits.states / np.abs(states).max(), states / np.abs(states).max(), **CLOSE)
    with pytest.raises(OutOfReach):  # for which nothing is factorised either
        goals_hessian(got, source)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [1.001, 1.1, 3.0])
def test_beyond_a_spectral_radius_of_one_nothing_is_finite_and_nothing_is_factorised(
    iterating, no_factors, seed, radius
):
    mdp, reward = small_world(seed, radius, terminal=True)
    with pytest.raises(NoFiniteValue):
        model_for(mdp).solve(reward)


def test_what_is_slow_to_iterate_is_factorised(iterating, monkeypatch):
    mdp, reward = small_world(0, 0.999, terminal=True)
    wanted, source = model_for(mdp).solve(reward), signed(0, S)
    monkeypatch.setattr(iterative_paths, "MAX_KRYLOV", 1)
    monkeypatch.setattr(iterative_paths, "MAX_SWEEPS", 2)
    got = model_for(mdp).solve(reward)
    assert isinstance(got, recursive_logit.PathSolution)
    assert got._iterated is None
    assert_allclose(got.values, wanted.values, **CLOSE)
    scale = np.abs(wanted.visits(np.abs(source)).states).max()
    assert_allclose(got.visits(source).states / scale, wanted.visits(source).states / scale, **CLOSE)

    open_, reward = small_world(0, 0.999, terminal=False)
    ends, starts = np.array([3, 50]), np.ones((2, S))
    by_factors = model_for_goals(open_, "causal", ends, np.ones(S, dtype=bool)).solve(reward).expectation(starts)
    monkeypatch.undo()
    alike = model_for_goals(open_.replace(), "causal", ends, np.ones(S, dtype=bool)).solve(reward).expectation(starts)
    assert_allclose(by_factors.log_partition, alike.log_partition, rtol=1e-10)
    assert_allclose(by_factors.visits.states, alike.visits.states, rtol=1e-9)


def test_an_answer_without_a_certificate_is_refused(monkeypatch):
    matrix = as_csr(sp.csr_array(np.array([[0.0, 0.9], [0.9, 0.0]])))
    right = np.array([[1.0], [1.0]])
    assert_allclose(IterativeSolution(matrix, matrix, right, right).z, 10.0)
    for bound in ("TRUSTED", "ROUNDED"):
        monkeypatch.setattr(iterative_paths, bound, -1.0)
    with pytest.raises(NotCertified):
        IterativeSolution(matrix, matrix, right, right)


@pytest.mark.parametrize("k", [1, 3, 16, 33])
def test_a_block_of_columns_is_solved_as_one_matrix_says(k):
    rng, n = generator(k), 40
    matrix = sp.csr_array(rng.random((n, n)) * (rng.random((n, n)) < 0.2) / n)
    before, after, right = rng.uniform(0.5, 2.0, (n, k)), rng.uniform(0.5, 2.0, (n, k)), rng.normal(size=(n, k))
    rows = as_csr(matrix)
    assert_allclose(times(*rows, right), matrix @ right, rtol=1e-13, atol=1e-15)
    found = solve_columns(*rows, before, after, right, np.full(k, 1e-13), 100)
    for column in range(k):
        system = np.eye(n) - after[:, [column]] * matrix.toarray() * before[:, column]
        assert_allclose(found[:, column], np.linalg.solve(system, right[:, column]), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("terminal", [False, True])
def test_what_no_weight_can_tell_is_found_without_factors(iterating, monkeypatch, terminal):
    mdp, _ = small_world(3, 0.5, terminal=terminal)
    doubled = mdp.replace(features=np.concatenate([mdp.features, mdp.features[:, :, :1]], axis=2))
    goals, start = (None, np.full(S, 1.0 / S)) if terminal else (np.array([5, 70]), None)
    wanted = factorised(lambda: unidentified(doubled.replace(), start, goals))

    def refuse(*_):
        raise AssertionError("this was to be iterated")

    monkeypatch.setattr(policy_chain, "_factors", refuse)
    got = unidentified(doubled, start, goals)
    assert got.shape == wanted.shape == (1, 3)
    assert_allclose(np.abs(got @ wanted.T), [[np.linalg.norm(got) * np.linalg.norm(wanted)]], rtol=1e-8)


@pytest.mark.parametrize("discount", [0.9, 1.0])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("columns", [(), (1,), (5,)])
def test_systems_of_a_chain_are_solved_as_by_factors(iterating, discount, trans, columns):
    rng = generator(6)
    moves = sp.csr_array(rng.dirichlet(np.ones(S), S) * (rng.random((S, S)) < 0.1))  # some of the mass ends
    b = rng.normal(size=(S, *columns))
    wanted = np.linalg.solve(
        (np.eye(S) - discount * moves.toarray()).T if trans == "T" else np.eye(S) - discount * moves.toarray(), b
    )
    found = policy_chain.factorised(moves, discount)
    assert isinstance(found, policy_chain._WithoutFactors)
    assert_allclose(found.solve(b, trans), wanted, **CLOSE)


@pytest.mark.parametrize("b", [np.ones(S), np.where(np.arange(S) == 5, 0.0, 1.0)])
@pytest.mark.parametrize("closed", [False, True])
def test_a_chain_that_never_ends_has_no_finite_values_by_iteration_either(iterating, b, closed):
    moves = np.roll(np.eye(S), 1, axis=1)
    if closed:  # others end, and who gets to state 5 stays
        moves = 0.4 * moves + 0.5 * np.roll(np.eye(S), 7, axis=1)
        moves[5] = np.eye(S)[5]
    with pytest.raises(NoFiniteValue):
        policy_chain.factorised(sp.csr_array(moves), 1.0).solve(b)


def test_a_column_of_zeros_is_no_reason_to_factorise(iterating, monkeypatch):
    monkeypatch.setattr(policy_chain, "_factors", None)
    moves, b = sp.csr_array(0.5 * np.roll(np.eye(S), 1, axis=1)), generator(1).normal(size=(S, 3))
    b[:, 1] = 0.0
    found = policy_chain.factorised(moves, 0.9).solve(b)
    assert not found[:, 1].any()
    assert_allclose(found - 0.9 * (moves @ found), b, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_trips_from_one_state_each_are_iterated(iterating, monkeypatch, seed):
    mdp, reward = small_world(seed, 0.7, terminal=False)
    every, starts = np.array([3, 40, 41]), np.zeros((3, S))
    starts[0, 9 + seed] = starts[2, 60] = 1.0
    starts[1, 40] = 1.0  # begins in its goal, and makes no step

    def asked():
        return model_for_goals(mdp.replace(), "causal", every, np.ones(S, dtype=bool)).solve(reward).expectation(starts)

    wanted = factorised(asked)
    for room in (goal_conditioned, recursive_logit):
        monkeypatch.setattr(room, "m_matrix_lu", None)
    found = asked()
    assert_allclose(found.visits.states, wanted.visits.states, **CLOSE)
    assert_allclose(found.visits.steps, wanted.visits.steps, **CLOSE)
    assert_allclose(found.log_partition, wanted.log_partition, **CLOSE)


def test_goals_on_several_threads_are_those_of_one_to_the_last_bit(iterating, no_factors, monkeypatch):
    mdp, reward = small_world(4, 0.9, terminal=False)
    monkeypatch.setattr(goal_conditioned, "ITERATED", 3)
    every = np.arange(0, S, 4)
    starts = np.abs(signed(4, every.size, S))
    found = []
    for n in (1, 2):
        monkeypatch.setattr(multithreading, "threads", lambda n=n: n)
        found.append(model_for_goals(mdp, "causal", every, np.ones(S, dtype=bool)).solve(reward).expectation(starts))
    assert found[0].log_partition == found[1].log_partition
    for name in ("states", "steps"):
        np.testing.assert_array_equal(getattr(found[0].visits, name), getattr(found[1].visits, name))


def test_long_range_links_fill_in_and_roads_do_not():
    rng, n = generator(0), 2500
    here = np.repeat(np.arange(n), 10)
    far = sp.csr_array(sp.coo_array((np.ones(here.size), (here, rng.integers(0, n, here.size))), shape=(n, n)))
    line = sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(50, 50))
    roads = sp.csr_array(sp.kron(line, sp.eye_array(50)) + sp.kron(sp.eye_array(50), line))
    assert fills_in(far)
    assert not fills_in(roads)
    assert not fills_in(sp.csr_array((n, n)))
