"""Similarities between trajectories, and the penalty of Eq. 5 as one small matrix."""

from __future__ import annotations

from dataclasses import replace

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
from messirl.similarity import (
    RBF,
    ApproximationWarning,
    CompleteGraph,
    Exponential,
    NearestNeighbours,
    Precomputed,
    Similarity,
    penalty_matrix,
)
from messirl.similarity.approximate_penalty import draws, estimated_penalty
from messirl.similarity.attribution import TOL as SHARE_TOL, pair_pulls, pair_sums
from messirl.similarity.base import as_similarity
from messirl.similarity.kernels import bandwidth, sampled_pairs
from messirl.similarity.penalty_blocks import penalty_from
from messirl.similarity.standardize import Points, deviations, points_of

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
    NearestNeighbours(3),
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
@pytest.mark.parametrize("exact", [2, 30_000])
def test_the_penalty_is_that_of_the_matrix_however_small_the_blocks(
    similarity, trajectories, counts, exact, monkeypatch
):
    measure = as_similarity(similarity)
    measure = replace(measure, tol=0.0) if isinstance(measure, RBF | Exponential) else measure
    truth = oracle.pair_matrix(counts, dense(measure(trajectories, counts)))
    monkeypatch.setattr("messirl.similarity.penalty_blocks.BLOCK", 20)
    monkeypatch.setattr("messirl.similarity.penalty_blocks.EXACT", exact)
    assert_allclose(measure.penalty(trajectories, counts), truth, rtol=1e-9, atol=1e-12)


def test_a_similarity_on_sequences_is_fitted_with_as_others_are(mdp):
    matrix = SharedSteps()(make_trajectories(3, seed=1) + make_trajectories(6, seed=2), np.zeros((9, 3)))
    assert_allclose(fit_with(mdp, SharedSteps()).theta_, fit_with(mdp, Precomputed(matrix)).theta_, rtol=1e-9)


# ------------------------------------------------------------ many trajectories


@pytest.fixture
def many(monkeypatch) -> None:
    """As if 200 trajectories were too many for all pairs."""
    monkeypatch.setattr("messirl.similarity.penalty_blocks.EXACT", 200)
    for place in ("approximate_penalty", "attribution"):
        monkeypatch.setattr(f"messirl.similarity.{place}.RANKS", (64, 128, 256))
    monkeypatch.setattr("messirl.similarity.kernels.ALL_PAIRS", 200)
    monkeypatch.setattr("messirl.data.chunked_reduce.PIECE", 10_000)


def spread_out(n: int = 1000) -> np.ndarray:
    return generator(20).normal(size=(n, 6)) * [1.0, 1.0, 3.0, 0.1, 1.0, 100.0]


def in_clusters(n: int = 1000) -> np.ndarray:
    rng = generator(21)
    return 3.0 * rng.normal(size=(9, 5))[rng.integers(9, size=n)] + rng.normal(size=(n, 5))


def numbers_of_visits(n: int = 1000) -> np.ndarray:
    """Whole numbers, skewed, many trajectories alike; one feature that never varies, one that follows from others."""
    rng = generator(22)
    visits = rng.poisson(rng.gamma(1.0, 2.0, size=(n, 1)) * rng.random(4)).astype(float)
    return np.column_stack([visits, np.full(n, 7.0), visits.sum(axis=1)])


SETS = [spread_out, in_clusters, numbers_of_visits]
sets = pytest.mark.parametrize("make", SETS)
KERNELS = {  # by how wide they are, in units of the median distance
    "wide": lambda median: RBF(10.0 * median, standardise=True),
    "median": lambda median: RBF("median", standardise=True),
    "narrow": lambda median: RBF(0.1 * median, standardise=True),
    "very narrow": lambda median: RBF(0.005 * median, standardise=True),
    "exponential": lambda median: Exponential(float(np.sqrt(median)), standardise=True),
}
kernels = pytest.mark.parametrize("width", KERNELS)


def kernel(width: str, counts: np.ndarray) -> RBF | Exponential:
    return KERNELS[width](bandwidth(points_of(counts, standardise=True)))


def relative(matrix: np.ndarray, truth: np.ndarray, counts: np.ndarray) -> float:
    """The error of a matrix, features in units of their spread, relative to the truth; what is rounding is left out.

    Of a kernel so narrow that only equal counts are alike, whose differences are zero, nothing but rounding is left.
    """
    unit = np.outer(deviations(counts), deviations(counts))
    varies = unit > 0
    error, size = (np.linalg.norm(m[varies] / unit[varies]) for m in (matrix - truth, truth))
    return max(float(error) - 1e-12 * len(counts), 0.0) / float(size)


@kernels
@sets
@pytest.mark.usefixtures("many")
def test_the_penalty_of_many_is_as_near_the_exact_one_as_it_says(make, width):
    counts = make()
    block = kernel(width, counts).on(None, counts)
    matrix, error = estimated_penalty(block, counts, 1e-3)
    factor = 10.0 if width == "very narrow" else 4.0  # a few pairs decide there, which a sample may miss
    # What it says is of a sample too: of errors a hundredth of what was asked for it knows no more than that.
    assert relative(matrix, penalty_from(block, counts), counts) < factor * error + 1e-5
    assert error < {"wide": 1e-3, "median": 1e-3, "exponential": 1e-3, "narrow": 1e-2, "very narrow": 0.5}[width]
    assert_array_equal(matrix, matrix.T)
    unit = np.where(deviations(counts) > 0, deviations(counts), 1.0)
    assert np.linalg.eigvalsh(matrix / np.outer(unit, unit)).min() > -1e-12 * len(counts)


@pytest.mark.parametrize("width", ["median", "narrow", "exponential"])
@pytest.mark.usefixtures("many")
def test_the_estimated_error_is_the_true_one_over_many_draws_of_landmarks(width, monkeypatch):
    monkeypatch.setattr("messirl.similarity.approximate_penalty.RANKS", (64,))
    counts = in_clusters()
    block = kernel(width, counts).on(None, counts)
    exact, ratios = penalty_from(block, counts), []
    for seed in range(12):
        monkeypatch.setattr("messirl.similarity.approximate_penalty.SEED", seed)
        matrix, error = estimated_penalty(block, counts, 1e-9)
        ratios.append(relative(matrix, exact, counts) / error)
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.7
    assert np.mean([1 / 3 < ratio < 3 for ratio in ratios]) > 0.8


@pytest.mark.usefixtures("many")
def test_the_correction_by_exact_rows_has_no_bias(monkeypatch):
    """Landmarks too few for the kernel: the mean over draws is nearer the truth than one draw is."""
    monkeypatch.setattr("messirl.similarity.approximate_penalty.RANKS", (32,))
    monkeypatch.setattr("messirl.similarity.approximate_penalty.without_negative", lambda matrix: matrix)
    counts = in_clusters()
    block = kernel("narrow", counts).on(None, counts)
    draws, errors = [], []
    for seed in range(40):
        monkeypatch.setattr("messirl.similarity.approximate_penalty.SEED", seed)
        matrix, error = estimated_penalty(block, counts, 1e-9)
        draws.append(matrix)
        errors.append(error)
    assert relative(np.mean(draws, axis=0), penalty_from(block, counts), counts) < 2.0 * np.mean(errors) / np.sqrt(40)


@pytest.mark.usefixtures("many")
def test_draws_are_as_likely_as_they_should_be_and_say_how_rare_they_were():
    points = Points.of(in_clusters(300), standardise=True)
    square = (points[:] ** 2).sum(axis=1)
    chance = (1.0 / 300 + square / square.sum()) / 2.0
    which, rare = draws(points, 200_000, generator(22))
    assert_allclose(rare, 1.0 / (300 * chance[which]), rtol=1e-9)
    often = np.bincount(which, minlength=300) / which.size
    assert np.abs(often - chance).max() < 5.0 * np.sqrt(chance.max() / which.size)
    assert abs(np.corrcoef(which[1:], which[:-1])[0, 1]) < 0.02, "in any order"
    even = draws(Points.of(np.ones((300, 2)), standardise=True), 2000, generator(22))
    assert_allclose(even[1], 1.0)
    assert np.bincount(even[0], minlength=300).max() < 30


@pytest.mark.parametrize("measure", [RBF("median", standardise=True), Exponential(20.0), CompleteGraph()])
@pytest.mark.usefixtures("many")
def test_sums_over_the_pairs_of_each_of_many_are_near_the_exact_ones(measure):
    counts = in_clusters()
    values = counts @ generator(23).normal(size=5)
    exact = (measure(None, counts) * (values[:, None] - values) ** 2).sum(axis=1)
    found = pair_sums(measure.on(None, counts), values)
    assert np.abs(found - exact).sum() < 2.0 * SHARE_TOL * exact.sum()
    if isinstance(measure, CompleteGraph):
        assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.usefixtures("many")
def test_sums_over_pairs_that_landmarks_cannot_tell_warn():
    counts = spread_out()
    with pytest.warns(ApproximationWarning, match="the shares of 1000 trajectories in the penalty have a relative err"):
        pair_sums(RBF(0.1, standardise=True).on(None, counts), counts[:, 0])


def test_what_the_pairs_of_a_trajectory_pull_adds_up_to_the_gradient_of_the_penalty():
    counts, theta = in_clusters(60), generator(24).normal(size=5)
    measure = RBF(4.0)
    pulls = pair_pulls(measure.on(None, counts), np.arange(60), counts, counts @ theta)
    assert_allclose(pulls.sum(axis=0) / 60, measure.penalty(None, counts) @ theta, rtol=1e-9)
    i, w = 7, measure(None, counts)
    apart = counts[i] - counts
    assert_allclose(pulls[i], (w[i, :, None] * apart * (apart @ theta)[:, None]).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("make", [RBF, Exponential])
@pytest.mark.usefixtures("many")
def test_a_kernel_too_narrow_for_landmarks_warns_and_says_what_to_do(make):
    counts = spread_out()
    with pytest.warns(
        ApproximationWarning, match=r"1000 trajectories .* error of about .* tol=0\.001.*wider.*tol=0 for"
    ):
        make(0.05, standardise=True).penalty(None, counts)
    exact = make(0.05, standardise=True, tol=0.0)
    assert_allclose(exact.penalty(None, counts), penalty_from(exact.on(None, counts), counts), rtol=1e-12)


@pytest.mark.parametrize("bad", [-1e-3, np.nan, "small"])
def test_a_tol_that_is_no_number_from_zero_on_is_an_error(counts, bad):
    with pytest.raises((ValueError, TypeError), match="tol"):
        RBF(1.0, tol=bad).penalty(None, counts)


def test_tol_is_not_shown_and_takes_part_in_equality():
    assert str(RBF(5.0, tol=0.0)) == str(RBF(5.0)) == "RBF(sigma=5.0, standardise=False)"
    assert RBF(5.0, tol=0.0) != RBF(5.0)
    assert Exponential(2.0, tol=0.1) != Exponential(2.0)


@kernels
@pytest.mark.filterwarnings("ignore::messirl.similarity.ApproximationWarning")
@pytest.mark.usefixtures("many")
def test_the_penalty_of_many_is_the_same_every_time(width):
    counts = in_clusters()
    assert_array_equal(*(kernel(width, counts).penalty(None, counts) for _ in range(2)))


@sets
@pytest.mark.usefixtures("many")
def test_the_penalty_of_many_is_blind_to_a_shift_and_to_units_and_nearly_to_order(make):
    counts, measure = make(), RBF("median", standardise=True)
    matrix = measure.penalty(None, counts)
    assert relative(measure.penalty(None, counts + 100.0), matrix, counts) < 1e-7
    units = np.array([1.0, 10.0, 0.1, 100.0, 1e-3, 1e4])[: counts.shape[1]]
    assert relative(measure.penalty(None, counts * units) / np.outer(units, units), matrix, counts) < 1e-7
    # Another order draws other landmarks.
    measure = RBF(5.0, standardise=True)
    shuffled = measure.penalty(None, generator(23).permutation(counts))
    assert relative(shuffled, measure.penalty(None, counts), counts) < 5e-3


@sets
@pytest.mark.usefixtures("many")
def test_the_median_of_some_pairs_is_near_that_of_all(make):
    counts = make()
    some = bandwidth(points_of(counts, standardise=True))
    scaled = points_of(counts, standardise=True)[:]
    squared = ((scaled[:, None] - scaled[None]) ** 2).sum(axis=2)
    low, high = np.quantile(squared[np.triu_indices(len(counts), 1)], [0.495, 0.505])
    assert low * (1 - 1e-12) <= some <= high * (1 + 1e-12)


def test_random_pairs_are_of_different_trajectories_and_each_pair_is_as_likely():
    apart, often = np.unique(sampled_pairs(np.array([[0.0], [1.0], [3.0]])), return_counts=True)
    assert_array_equal(apart, [1.0, 4.0, 9.0])
    assert_allclose(often / often.sum(), 1 / 3, atol=0.01)


def test_points_made_when_asked_for_are_those_of_a_table(counts, monkeypatch):
    for standardise in (False, True):
        table = points_of(counts, standardise=standardise)
        with monkeypatch.context() as patch:
            patch.setattr("messirl.similarity.penalty_blocks.EXACT", 2)
            later = points_of(counts, standardise=standardise)
        assert not isinstance(later, np.ndarray)
        assert len(later) == len(table)
        for rows in (slice(2, 5), [4, 0, 0], np.array([1, 8])):
            assert_array_equal(later[rows], table[rows])


def test_a_fit_to_many_trajectories_is_that_with_the_exact_penalty(mdp, monkeypatch):
    expert, others = make_trajectories(20, seed=1), make_trajectories(980, seed=2)
    options = {"lambda0": 0.01, "theta_max": 5.0, "max_iter": 500, "tol": 1e-8}
    exact = MESSI(RBF(3.0, standardise=True), **options).fit(mdp, expert, others)
    monkeypatch.setattr("messirl.similarity.penalty_blocks.EXACT", 200)
    monkeypatch.setattr("messirl.similarity.approximate_penalty.RANKS", (64, 128, 256))
    near = MESSI(RBF(3.0, standardise=True), **options).fit(mdp, expert, others)
    assert (near.penalty_matrix_ != exact.penalty_matrix_).any()
    assert_allclose(near.theta_, exact.theta_, rtol=3e-3, atol=3e-3 * np.abs(exact.theta_).max())


def test_all_equal_counts_have_no_penalty_however_many(monkeypatch):
    monkeypatch.setattr("messirl.similarity.penalty_blocks.EXACT", 200)
    monkeypatch.setattr("messirl.similarity.approximate_penalty.RANKS", (32,))
    assert_array_equal(RBF(1.0).penalty(None, np.full((300, 2), 0.1)), np.zeros((2, 2)))


# ------------------------------------------------------------ nearest neighbours


@pytest.mark.parametrize("k", [1, 4])
def test_neighbours_are_the_nearest_in_units_of_the_spread(k):
    counts = spread_out(60)
    squared = squared_distances(counts / counts.std(axis=0))
    np.fill_diagonal(squared, np.inf)
    near = squared <= np.sort(squared, axis=1)[:, [k - 1]]
    weights = NearestNeighbours(k)(None, counts)
    assert sparse.issparse(weights)
    assert_array_equal(dense(weights), (near | near.T).astype(float))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_few_trajectories_are_all_neighbours(n):
    counts = spread_out(n)
    assert_array_equal(dense(NearestNeighbours(10)(None, counts)), 1.0 - np.eye(n))
    everyone = oracle.pair_matrix(counts, np.ones((n, n)))
    assert_allclose(NearestNeighbours(10).penalty(None, counts), everyone, rtol=1e-9, atol=1e-9)


def test_the_penalty_of_neighbours_does_not_depend_on_shift_units_or_order():
    counts, measure = spread_out(300), NearestNeighbours(5)
    matrix, units = measure.penalty(None, counts), np.array([1.0, 10.0, 0.1, 100.0, 1e-3, 1e4])
    assert_allclose(measure.penalty(None, counts + 100.0), matrix, rtol=1e-9, atol=1e-9 * np.abs(matrix).max())
    assert relative(measure.penalty(None, counts * units) / np.outer(units, units), matrix, counts) < 1e-9
    assert relative(measure.penalty(None, generator(23).permutation(counts)), matrix, counts) < 1e-9


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "many"])
def test_a_number_of_neighbours_that_is_none_is_an_error(mdp, bad):
    with pytest.raises(ValueError, match=r"k=.*whole number of neighbours"):
        fit_with(mdp, NearestNeighbours(bad))
