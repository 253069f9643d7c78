"""Similarities of the trajectories themselves: sequences, visited states, and the Fisher kernel."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import KINDS, problem
from seeds import generator
from worlds import ROUNDING, drawn, maze, to_rounding, without_actions

import messirl
from messirl import MESSI, MaxEntIRL, Trajectories, feature_counts
from messirl.planning.likelihood import reward_log_likelihood
from messirl.similarity import DynamicTimeWarping, EditDistance, FisherKernel, VisitedStates
from messirl.similarity.base import Precomputed
from messirl.similarity.penalty_blocks import penalty_from

pytestmark = [
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
N_STATES = 7


@cache
def walks(n: int = 12) -> Trajectories:
    rng = generator(5)
    return Trajectories.from_lists([rng.integers(N_STATES, size=rng.integers(1, 9)).tolist() for _ in range(n)])


@cache
def places() -> np.ndarray:
    return generator(6).normal(size=(N_STATES, 2))


def of_sequences():
    return [EditDistance(0.4), DynamicTimeWarping(places(), 0.7), VisitedStates()]


every = pytest.mark.parametrize("similarity", of_sequences(), ids=lambda one: type(one).__name__)


def edits(x, y):
    """Levenshtein's distance by its definition."""

    @lru_cache(None)
    def of(i, j):
        if i == 0 or j == 0:
            return i + j
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (x[i - 1] != y[j - 1]))

    return of(len(x), len(y))


def least_match(x, y, at):
    """The cheapest match in time: every path through the pairs, one step in one sequence or in both."""

    def ways(i, j):
        cost = float(np.linalg.norm(at[x[i]] - at[y[j]]))
        if i == len(x) - 1 and j == len(y) - 1:
            return cost
        ahead = [(i + 1, j), (i, j + 1), (i + 1, j + 1)]
        return cost + min(ways(*to) for to in ahead if to[0] < len(x) and to[1] < len(y))

    return ways(0, 0)


def by_pairs(of, some):
    lists = [one.states.tolist() for one in some]
    return np.array([[of(x, y) for y in lists] for x in lists])


def test_edit_distance_is_the_least_number_of_edits_over_the_longer_length():
    per_step = by_pairs(lambda x, y: edits(tuple(x), tuple(y)) / max(len(x), len(y)), walks())
    assert_allclose(EditDistance(0.4)(walks(), np.zeros((12, 1))), np.exp(-per_step / 0.4), rtol=ROUNDING)


def test_warping_takes_the_cheapest_of_all_matches_in_time():
    some = Trajectories.from_lists([one.states.tolist()[:5] for one in walks(7)])
    per_step = by_pairs(lambda x, y: least_match(x, y, places()) / max(len(x), len(y)), some)
    found = DynamicTimeWarping(places(), 0.7)(some, np.zeros((7, 1)))
    assert_allclose(found, np.exp(-per_step / 0.7), rtol=1e-10)


def test_a_pause_changes_no_warped_distance():
    one, paused = [0, 3, 2, 5], [0, 0, 3, 2, 2, 2, 5]
    found = DynamicTimeWarping(places())(Trajectories.from_lists([one, paused]), np.zeros((2, 1)))
    assert_allclose(found, 1.0, rtol=ROUNDING)


def test_visited_states_are_compared_as_sets():
    def overlap(x, y):
        return len(set(x) & set(y)) / len(set(x) | set(y))

    assert_allclose(VisitedStates()(walks(), np.zeros((12, 1))), by_pairs(overlap, walks()), rtol=ROUNDING)


@every
def test_a_sequence_similarity_is_symmetric_between_0_and_1_and_1_with_itself(similarity):
    found = similarity(walks(), np.zeros((12, 1)))
    assert_array_equal(found, found.T)
    assert (found >= 0.0).all()
    assert (found <= 1.0).all()
    assert_allclose(np.diag(found), 1.0, rtol=ROUNDING)


@every
def test_blocks_are_parts_of_the_whole(similarity):
    block, whole = similarity.on(walks(), np.zeros((12, 1))), similarity(walks(), np.zeros((12, 1)))
    assert_array_equal(block(slice(2, 5), slice(None)), whole[2:5])
    some, others = np.array([3, 0, 3]), np.array([1, 7])
    assert_array_equal(block(some, others), whole[np.ix_(some, others)])


@every
def test_names_of_states_and_order_of_trajectories_change_nothing(similarity):
    order, names = generator(8).permutation(12), generator(9).permutation(N_STATES)
    renamed = Trajectories(names[walks().states], walks().offsets)
    if isinstance(similarity, DynamicTimeWarping):
        other = DynamicTimeWarping(places()[np.argsort(names)], similarity.scale)
    else:
        other = similarity
    whole = similarity(walks(), np.zeros((12, 1)))
    assert_allclose(other(renamed[order], np.zeros((12, 1))), whole[np.ix_(order, order)], rtol=ROUNDING)


@every
def test_messi_takes_a_sequence_similarity_saves_it_and_fits_again(similarity, tmp_path):
    mdp, expert, unlabelled = problem("finite")
    model = MESSI(similarity, lambda0=3.0).fit(mdp, expert, unlabelled)
    everyone = expert + unlabelled
    counts = feature_counts(mdp, everyone)
    given = MESSI(Precomputed(similarity(everyone, counts)), lambda0=3.0).fit(mdp, expert, unlabelled)
    assert_allclose(model.penalty_matrix_, given.penalty_matrix_, rtol=1e-9, atol=1e-9)
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert type(again.similarity) is type(similarity)
    assert_array_equal(again.fit(mdp, expert, unlabelled).theta_, model.theta_)


@pytest.mark.parametrize(
    ("similarity", "error", "message"),
    [
        (EditDistance(0.0), ValueError, "scale=0.0: it must be finite and > 0"),
        (DynamicTimeWarping(np.zeros((3, 2))), ValueError, "coordinates has 3 rows, but trajectories visit state"),
        (DynamicTimeWarping(np.zeros(9)), ValueError, r"coordinates must be finite numbers \(S, k\)"),
        (DynamicTimeWarping([["a"]] * 9), TypeError, "coordinates must be numbers"),
        (FisherKernel(None), TypeError, "FisherKernel needs a fitted model"),
    ],
)
def test_a_similarity_that_cannot_be_says_so(similarity, error, message):
    with pytest.raises(error, match=message):
        similarity.on(walks(), np.zeros((12, 1)))


@pytest.mark.parametrize("similarity", [*of_sequences(), FisherKernel(MaxEntIRL())], ids=lambda one: type(one).__name__)
def test_counts_alone_are_not_enough(similarity):
    with pytest.raises(ValueError, match="only their counts"):
        similarity.on(None, np.zeros((12, 1)))


# ------------------------------------------------------------ the Fisher kernel


@cache
def fitted(kind: str) -> MaxEntIRL:
    mdp, expert, _ = problem(kind)
    return MaxEntIRL(ridge=0.1).fit(mdp, expert)


@pytest.mark.parametrize("recorded", [True, False], ids=["actions", "moves"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_score_of_a_trajectory_is_the_slope_of_its_log_probability(kind, recorded):
    mdp, _, unlabelled = problem(kind)
    some, model = unlabelled if recorded else without_actions(unlabelled), fitted(kind)
    step = 1e-5

    def log_p(theta):
        return reward_log_likelihood(mdp, mdp.reward(theta), some, model.start_)

    way = step * np.eye(mdp.n_features)
    slopes = np.stack([(log_p(model.theta_ + w) - log_p(model.theta_ - w)) / (2 * step) for w in way], axis=1)
    assert_allclose(model.scores(some), slopes, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())


def test_scores_also_take_trajectories_beyond_the_starts_of_the_fit():
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8)
    corner = drawn(mdp, [-2.0, -0.5], 10, 1, start=np.eye(9)[7])
    model = MaxEntIRL(ridge=0.1).fit(mdp, corner)
    elsewhere = drawn(mdp, [-2.0, -0.5], 4, 2, start=np.eye(9)[0])
    assert np.isfinite(model.scores(elsewhere)).all()


@to_rounding
def test_the_scores_of_the_experts_add_up_to_nothing_where_they_were_fitted_alone():
    mdp, expert, _ = problem("finite")
    model = MaxEntIRL(tol=1e-9, max_iter=500).fit(mdp, expert)
    scores = model.scores(expert)
    assert_allclose(scores.sum(axis=0), 0.0, atol=1e-5 * np.abs(scores).sum(axis=0).max())


def test_the_fisher_kernel_equals_its_definition():
    _, _, some = problem("finite")
    scores = fitted("finite").scores(some)
    information = scores.T @ scores / len(scores)
    assert_allclose(
        FisherKernel(fitted("finite")).kernel(some),
        scores @ np.linalg.solve(information, scores.T),
        rtol=1e-8,
        atol=1e-8,
    )


def test_the_fisher_similarity_is_a_gaussian_of_the_kernels_distance():
    _, _, some = problem("finite")
    similarity = FisherKernel(fitted("finite"), sigma=3.0)
    k = similarity.kernel(some)
    square = np.diag(k)[:, None] + np.diag(k) - 2 * k
    found = similarity(some, np.zeros((len(some), 1)))
    assert_allclose(found, np.exp(-square / 6.0), rtol=1e-8)
    assert_array_equal(found, found.T)


def test_units_of_features_do_not_change_the_fisher_kernel():
    mdp, expert, some = problem("finite")
    theta, unit = fitted("finite").theta_, np.array([1.0, 1e-3, 1e4])
    other = MaxEntIRL(theta_init=theta / unit, theta_max=None, max_iter=0).fit(
        mdp.replace(features=mdp.features * unit), expert
    )
    assert_allclose(FisherKernel(other).kernel(some), FisherKernel(fitted("finite")).kernel(some), rtol=1e-6, atol=1e-6)


def test_a_direction_that_nothing_identifies_is_left_out_of_the_fisher_kernel():
    mdp, expert, some = problem("finite")
    twice = mdp.replace(features=np.column_stack([mdp.features, mdp.features[:, 0]]))
    theta = fitted("finite").theta_
    same = MaxEntIRL(theta_init=[*theta, 0.0], max_iter=0).fit(twice, expert)
    assert_allclose(FisherKernel(same).kernel(some), FisherKernel(fitted("finite")).kernel(some), rtol=1e-6, atol=1e-6)


def test_messi_with_a_fisher_kernel_is_saved_without_its_model(tmp_path):
    mdp, expert, unlabelled = problem("finite")
    similarity = FisherKernel(fitted("finite"))
    model = MESSI(similarity, lambda0=3.0).fit(mdp, expert, unlabelled)
    everyone = expert + unlabelled
    counts = feature_counts(mdp, everyone)
    assert_allclose(model.penalty_matrix_, penalty_from(similarity.on(everyone, counts), counts), rtol=1e-9, atol=1e-9)
    model.save(tmp_path / "model.npz")
    again = messirl.load(tmp_path / "model.npz")
    assert_allclose(again.score(expert), model.score(expert), rtol=ROUNDING)
    with pytest.raises(ValueError, match=r"FisherKernel was not saved with the model: set_params\(similarity"):
        again.fit(mdp, expert, unlabelled)


def test_a_noncausal_model_has_no_scores():
    mdp, expert, _ = problem("finite")
    model = MaxEntIRL(entropy="noncausal", ridge=0.1).fit(mdp, expert)
    with pytest.raises(ValueError, match="entropy='noncausal' has no scores"):
        model.scores(expert)
