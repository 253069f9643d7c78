"""Similarities between trajectories, and the penalty of Eq. 5 as one small matrix."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from seeds import generator
from worlds import to_rounding

from messirl import MDP, MESSI, Trajectories, feature_counts
from messirl.similarity import RBF, CompleteGraph, Exponential, Precomputed, Similarity, as_similarity, penalty_matrix

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def make_mdp(n_states: int = 5, n_features: int = 3) -> MDP:
    rng = generator(3)
    transitions = rng.dirichlet(np.ones(n_states), size=(n_states, 2))
    return MDP(
        transitions,
        rng.normal(size=(n_states, n_features)),
        start=np.full(n_states, 1 / n_states),
        discount=0.9,
        horizon=6,
    )


def make_trajectories(n: int, seed: int = 0) -> Trajectories:
    rng = generator(seed)
    return Trajectories.from_lists([[int(s) for s in rng.integers(5, size=6)] for _ in range(n)])


@pytest.fixture
def mdp() -> MDP:
    return make_mdp()


@pytest.fixture
def trajectories() -> Trajectories:
    return make_trajectories(9)


@pytest.fixture
def counts(mdp, trajectories) -> np.ndarray:
    return feature_counts(mdp, trajectories)


def dense(weights) -> np.ndarray:
    return weights.toarray() if sparse.issparse(weights) else np.asarray(weights)


def squared_distances(counts: np.ndarray) -> np.ndarray:
    n = len(counts)
    return np.array([[sum((counts[i] - counts[j]) ** 2) for j in range(n)] for i in range(n)])


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def assert_similarity(got, truth) -> None:
    """Equal off the diagonal; what a trajectory is to itself never counts."""
    got = dense(got)
    assert got.shape == truth.shape
    assert_allclose(off_diagonal(got), off_diagonal(truth), rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------ similarities


@pytest.mark.parametrize("sigma", [0.3, 5.0])
def test_rbf_is_the_exponential_of_minus_half_the_squared_distance_over_sigma(trajectories, counts, sigma):
    assert_similarity(RBF(sigma=sigma)(trajectories, counts), np.exp(-squared_distances(counts) / (2 * sigma)))


@pytest.mark.parametrize("scale", [0.7, 10.0])
def test_exponential_is_the_exponential_of_minus_the_distance_over_scale(trajectories, counts, scale):
    truth = np.exp(-np.sqrt(squared_distances(counts)) / scale)
    assert_similarity(Exponential(scale=scale)(trajectories, counts), truth)


def test_complete_graph_is_one_everywhere(trajectories, counts):
    assert_similarity(CompleteGraph()(trajectories, counts), np.ones((9, 9)))


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.coo_array, sparse.csr_matrix])
def test_precomputed_is_what_was_given(trajectories, counts, wrap):
    truth = random_similarity(9, seed=1)
    assert_similarity(Precomputed(wrap(truth))(trajectories, counts), truth)


@pytest.mark.parametrize("n", [4, 9, 30])
def test_median_sigma_is_the_median_of_off_diagonal_squared_distances(mdp, n):
    trajectories = make_trajectories(n, seed=n)
    counts = feature_counts(mdp, trajectories)
    squared = squared_distances(counts)
    median = np.median(off_diagonal(squared))
    assert_similarity(RBF(sigma="median")(trajectories, counts), np.exp(-squared / (2 * median)))


def test_standardised_rbf_measures_each_feature_in_units_of_its_spread(trajectories, counts):
    scaled = counts / counts.std(axis=0)
    truth = np.exp(-squared_distances(scaled) / (2 * 3.0))
    assert_similarity(RBF(sigma=3.0, standardise=True)(trajectories, counts), truth)
    # ... so that the units of a feature do not matter.
    stretched = counts * np.array([1.0, 1000.0, 1e-3])
    assert_similarity(RBF(sigma=3.0, standardise=True)(trajectories, stretched), truth)


def test_a_feature_that_never_varies_does_not_disturb_standardising(trajectories, counts):
    with_constant = np.column_stack([counts, np.full(len(counts), 7.0)])
    alone = dense(RBF(sigma=3.0, standardise=True)(trajectories, counts))
    both = dense(RBF(sigma=3.0, standardise=True)(trajectories, with_constant))
    assert np.isfinite(both).all()
    assert_allclose(off_diagonal(both), off_diagonal(alone), rtol=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "mean"])
def test_a_sigma_that_is_no_positive_number_is_an_error(mdp, bad):
    with pytest.raises((ValueError, TypeError), match=r"(?i)sigma"):
        fit_with(mdp, RBF(sigma=bad))


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_a_scale_that_is_no_positive_number_is_an_error(mdp, bad):
    with pytest.raises((ValueError, TypeError), match=r"(?i)scale"):
        fit_with(mdp, Exponential(scale=bad))


# ------------------------------------------------------------ penalty matrix


def random_similarity(n: int, seed: int, keep: float = 1.0) -> np.ndarray:
    rng = generator(seed)
    w = rng.random((n, n)) * (rng.random((n, n)) < keep)
    return np.triu(w, 1) + np.triu(w, 1).T + np.diag(rng.random(n))


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.coo_array, sparse.csr_matrix])
@pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 1), (7, 3), (40, 5)])
def test_penalty_matrix_equals_the_double_sum(n, d, wrap):
    rng = generator(n)
    f, w = rng.normal(size=(n, d)), random_similarity(n, seed=d, keep=0.5)
    matrix = dense(penalty_matrix(f, wrap(w)))
    assert matrix.shape == (d, d)
    assert_allclose(matrix, oracle.pair_matrix(f, w), rtol=1e-9, atol=1e-12)
    for _ in range(3):
        theta = rng.normal(size=d)
        assert 0.5 * theta @ matrix @ theta == pytest.approx(oracle.double_sum(f, w, theta), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "similarity",
    [RBF(sigma=2.0), RBF(sigma="median", standardise=True), Exponential(scale=3.0), CompleteGraph()],
    ids=["rbf", "median rbf", "exponential", "complete"],
)
def test_penalty_matrix_of_each_similarity_equals_the_double_sum(similarity, trajectories, counts):
    w = dense(similarity(trajectories, counts))
    matrix = penalty_matrix(counts, w)
    theta = generator(0).normal(size=3)
    assert 0.5 * theta @ matrix @ theta == pytest.approx(oracle.double_sum(counts, w, theta), rel=1e-9)


def test_the_complete_graphs_penalty_is_twice_the_scatter_about_the_mean(counts):
    centred = counts - counts.mean(axis=0)
    assert_allclose(penalty_matrix(counts, np.ones((9, 9))), 2 * centred.T @ centred, rtol=1e-10)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    f=arrays(float, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.floats(-100, 100, width=32)),
    seed=st.integers(0, 1000),
    shift=st.floats(-50, 50),
)
def test_penalty_is_symmetric_never_negative_and_blind_to_a_shift(f, seed, shift):
    w = random_similarity(len(f), seed)
    matrix = penalty_matrix(f, w)
    size = max(1.0, np.abs(f).max() ** 2)
    assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-9 * size)
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2).min() >= -1e-9 * size * len(f)
    assert_allclose(matrix, oracle.pair_matrix(f, w), rtol=1e-9, atol=1e-9 * size)
    assert_allclose(penalty_matrix(f + shift, w), matrix, rtol=1e-9, atol=1e-7 * size)


def test_far_from_the_origin_the_penalty_keeps_its_digits():
    """Counts near 1e6 that differ by about one: F'(D - W)F written out carelessly loses what matters."""
    rng = generator(8)
    f, w = rng.normal(size=(20, 3)), random_similarity(20, seed=2)
    assert_allclose(penalty_matrix(f + 1e6, w), oracle.pair_matrix(f, w), rtol=1e-6)


def test_many_trajectories_give_the_same_matrix_as_dense_algebra():
    rng = generator(9)
    f = rng.normal(size=(1500, 4))
    w = np.exp(-((f[:, None] - f[None]) ** 2).sum(-1) / 4.0)
    laplacian = np.diag(w.sum(axis=1)) - w
    assert_allclose(penalty_matrix(f, w), 2 / 1500 * f.T @ laplacian @ f, rtol=1e-9)


# ------------------------------------------------------------ errors


def bad_similarities() -> dict[str, np.ndarray]:
    good = random_similarity(9, seed=4)
    asymmetric, negative, nan, infinite = (good.copy() for _ in range(4))
    asymmetric[1, 3] += 0.5
    negative[2, 5] = negative[5, 2] = -0.1
    nan[0, 4] = nan[4, 0] = np.nan
    infinite[0, 4] = infinite[4, 0] = np.inf
    return {"asymmetric": asymmetric, "negative": negative, "nan": nan, "infinite": infinite}


BAD = bad_similarities()


def fit_with(mdp: MDP, similarity) -> MESSI:
    """Fit on 3 expert and 6 other trajectories: nine in all, the expert's first."""
    est = MESSI(similarity=similarity, lambda0=1.0, theta_max=5.0, max_iter=50, tol=1e-6)
    return est.fit(mdp, make_trajectories(3, seed=1), make_trajectories(6, seed=2))


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", BAD)
def test_bad_similarities_are_errors(mdp, counts, kind, wrap):
    with pytest.raises(ValueError, match=r".+"):
        penalty_matrix(counts, wrap(BAD[kind]))
    with pytest.raises(ValueError, match=r".+"):
        fit_with(mdp, Precomputed(wrap(BAD[kind])))
    with pytest.raises(ValueError, match=r".+"):
        fit_with(mdp, lambda trajectories, counts: wrap(BAD[kind]))


def test_a_similarity_of_the_wrong_shape_is_an_error(mdp, counts):
    with pytest.raises(ValueError, match=r"8"):
        penalty_matrix(counts, np.ones((8, 8)))
    with pytest.raises(ValueError, match=r"8"):
        fit_with(mdp, Precomputed(np.ones((8, 8))))
    with pytest.raises(ValueError, match=r".+"):
        fit_with(mdp, lambda trajectories, counts: np.ones((9, 8)))


# ------------------------------------------------------------ in a fit


def test_a_callable_sees_the_experts_counts_first_and_its_matrix_is_used(mdp):
    seen = []
    truth = random_similarity(9, seed=6)

    def similarity(trajectories, counts):
        seen.append((len(trajectories), counts))
        return truth

    by_callable = fit_with(mdp, similarity)
    f = np.vstack(
        [feature_counts(mdp, make_trajectories(3, seed=1)), feature_counts(mdp, make_trajectories(6, seed=2))]
    )
    assert seen[0][0] == 9
    assert_allclose(seen[0][1], f, rtol=1e-12, atol=1e-12)
    given_dense, given_sparse = (
        fit_with(mdp, Precomputed(truth)),
        fit_with(mdp, Precomputed(sparse.csr_array(truth))),
    )
    assert_array_equal(by_callable.theta_, given_dense.theta_)
    assert_allclose(by_callable.objective_, given_sparse.objective_, rtol=1e-10)


def test_the_fitted_objective_is_less_the_penalty_of_eq_5(mdp):
    from messirl.objective import Objective

    truth = random_similarity(9, seed=6)
    est = fit_with(mdp, Precomputed(truth))
    expert, others = make_trajectories(3, seed=1), make_trajectories(6, seed=2)
    f = np.vstack([feature_counts(mdp, expert), feature_counts(mdp, others)])
    plain = Objective.from_trajectories(mdp, expert, objective=est.likelihood_)(est.theta_).value
    penalty = 1.0 / 5.0 * oracle.double_sum(f, truth, est.theta_)
    assert est.objective_ == pytest.approx(plain - penalty, rel=1e-9, abs=1e-9)


@to_rounding
def test_a_stronger_penalty_draws_similar_trajectories_together(mdp):
    expert, others = make_trajectories(3, seed=1), make_trajectories(6, seed=2)
    f = np.vstack([feature_counts(mdp, expert), feature_counts(mdp, others)])
    w = np.ones((9, 9))
    penalties = []
    for lambda0 in (0.0, 0.1, 1.0, 10.0):
        est = MESSI(similarity=CompleteGraph(), lambda0=lambda0, theta_max=5.0, max_iter=500, tol=1e-8)
        penalties.append(oracle.double_sum(f, w, est.fit(mdp, expert, others).theta_))
    assert (np.diff(penalties) <= 1e-9).all()


# ------------------------------------------------------------ the contract


class SharedSteps(Similarity):
    """A similarity on sequences, as a user would write one: the share of steps at which two trajectories agree."""

    def on(self, trajectories, counts):
        table = trajectories.states.reshape(len(trajectories), -1)
        return lambda rows, columns: (table[rows][:, None] == table[columns][None]).mean(axis=2)


EVERY = [
    RBF(2.0),
    RBF("median", standardise=True),
    Exponential(3.0),
    CompleteGraph(),
    Precomputed(random_similarity(9, seed=4)),
    Precomputed(sparse.csr_array(random_similarity(9, seed=4))),
    lambda trajectories, counts: random_similarity(9, seed=4),
    SharedSteps(),
]
each = pytest.mark.parametrize("similarity", EVERY, ids=lambda s: getattr(s, "__name__", type(s).__name__))


@each
def test_blocks_are_cut_from_the_matrix_with_the_widths_of_the_whole_set(similarity, trajectories, counts):
    measure = as_similarity(similarity)
    whole, block = dense(measure(trajectories, counts)), measure.on(trajectories, counts)
    for rows, columns in ((slice(2, 5), slice(None)), (slice(3), slice(3, None)), ([4, 0, 0], [1, 8])):
        assert_allclose(dense(block(rows, columns)), whole[rows][:, columns], rtol=1e-12, atol=1e-12)


@each
def test_the_penalty_is_that_of_the_matrix_however_small_the_blocks(similarity, trajectories, counts, monkeypatch):
    measure = as_similarity(similarity)
    truth = oracle.pair_matrix(counts, dense(measure(trajectories, counts)))
    monkeypatch.setattr("messirl.similarity.blocks.BLOCK", 20)
    assert_allclose(measure.penalty(trajectories, counts), truth, rtol=1e-9, atol=1e-12)


def test_a_similarity_on_sequences_is_fitted_with_as_others_are(mdp):
    matrix = SharedSteps()(make_trajectories(3, seed=1) + make_trajectories(6, seed=2), np.zeros((9, 3)))
    assert_allclose(fit_with(mdp, SharedSteps()).theta_, fit_with(mdp, Precomputed(matrix)).theta_, rtol=1e-9)
