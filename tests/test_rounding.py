"""What is equal or zero is so on every processor: decided by structure, or with a tolerance, never by the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator, shifted
from sklearn.neighbors import KNeighborsRegressor
from worlds import ROUNDING, drawn, random_mdp

from messirl import MDP, MESSI, MaxEntIRL, Trajectories, plot, sample, state_visitation
from messirl.app.report.fit.fit_figures import score_limits
from messirl.app.workflow.ranking import ranked
from messirl.dynamics.averaging_regressors import _Neighbours
from messirl.dynamics.state_features import Squares
from messirl.dynamics.transition_dataset import Scale
from messirl.estimators.registry import baseline
from messirl.inference.metrics import policy_kl, policy_value
from messirl.inference.prediction import next_state_accuracy
from messirl.io.recordings.discretise import KMeans
from messirl.paper.experiments.claim_tests import HOLDS, UNDECIDED, above_zero, first_best
from messirl.paper.experiments.curves import interval
from messirl.planning import Planner
from messirl.similarity import RBF, Exponential
from messirl.similarity.kernels import bandwidth

# ------------------------------------------------------------ what is never met


def two_islands(seed: int, n: int = 150, **arguments) -> MDP:
    """n states with moves among themselves, and n more; nothing leads from one half to the other."""
    transitions = np.zeros((2 * n, 3, 2 * n))
    for half in (slice(0, n), slice(n, 2 * n)):
        to = generator(seed).integers(n, size=(n, 3, 4))
        share = generator(seed + 1).dirichlet(np.ones(4), size=(n, 3))
        np.add.at(transitions[half, :, half], (np.arange(n)[:, None, None], np.arange(3)[:, None], to), share)
    start = np.where(np.arange(2 * n) < n, 1.0 / n, 0.0)
    return MDP(transitions, generator(seed + 2).random((2 * n, 2)), start=start, **arguments)


@pytest.mark.parametrize("discount", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("seed", range(3))
def test_states_that_cannot_be_reached_have_no_visits_at_all(seed, discount):
    mdp = two_islands(seed, discount=discount)
    policy = generator(seed + 3).dirichlet(np.ones(3), size=300)
    visits = state_visitation(mdp, policy)
    assert_array_equal(visits[150:], 0.0)
    assert_allclose(visits.sum(), 1.0 / (1.0 - discount), rtol=1e-9)
    planner = Planner(mdp, "causal", mdp.start)
    for theta in ([0.0, 0.0], [1.0, -1.0], [3.0, 2.0]):  # the second and third begin from the visits before
        assert_array_equal(planner(mdp.reward(theta)).visits.states[150:], 0.0)


@pytest.mark.parametrize("discount", [0.5, 0.95, 0.999])
def test_a_policy_need_not_say_what_it_does_where_it_never_is(discount):
    mdp = two_islands(5, discount=discount)
    policy = generator(6).dirichlet(np.ones(3), size=300)
    silent = np.where(np.arange(300)[:, None] < 150, policy, 0.0)
    assert_allclose(state_visitation(mdp, silent), state_visitation(mdp, policy), rtol=ROUNDING)
    reward = generator(7).normal(size=300)
    assert policy_value(mdp, reward, silent) == pytest.approx(policy_value(mdp, reward, policy), rel=1e-9)
    assert policy_kl(mdp, policy, silent) == 0.0
    silent[7] = 0.0
    with pytest.raises(ValueError, match=r"state 7 is reached, but policy\[7\] is all zero"):
        state_visitation(mdp, silent)


def test_what_is_reached_with_next_to_no_probability_is_reached():
    p = np.zeros((3, 2, 3))
    p[0, 0, 1] = p[0, 1, 2] = p[1, :, 1] = p[2, :, 2] = 1.0
    mdp = MDP(p, np.eye(3), discount=0.9, start=[1.0, 0.0, 0.0])
    rare = np.array([[1.0, 1e-200], [0.5, 0.5], [0.0, 0.0]])
    with pytest.raises(ValueError, match="state 2 is reached"):
        state_visitation(mdp, rare)


class Highest(np.random.RandomState):
    """Draws the last number that can be drawn."""

    def random_sample(self, size=None):
        return np.full(size, 1.0 - 2.0**-53)


def test_no_trajectory_begins_where_none_may():
    start = np.concatenate([np.full(7, 0.1 / 7), np.full(3, 0.3), np.zeros(5)])
    mdp = random_mdp(1, 15, discount=0.5, start=start)
    assert_array_equal(sample(mdp, np.full((15, 3), 1 / 3), 4, 1, random_state=Highest(0)).first, 9)


# ------------------------------------------------------------ what does not vary


def test_a_move_to_one_state_is_certain_whatever_the_rounding_of_its_parts():
    parts = np.zeros((2, 1, 2))
    parts[0, 0, 1] = 0.1 + 0.2 + 0.3 + 0.4 - 2e-16
    parts[1, 0, 0] = 1.0
    assert parts[0, 0, 1] != 1.0
    mdp = MDP(parts, np.eye(2), discount=0.9)
    assert mdp.deterministic
    assert_array_equal(mdp.transitions.toarray(), [[0, 1], [1, 0]])


def equal_but_for_rounding(n: int, size: float = 1.0) -> np.ndarray:
    """Counts that are the same, summed in n ways."""
    terms = size * generator(0).random((60, 3))
    return np.array([np.add.accumulate(generator(i).permutation(terms), axis=0)[-1] for i in range(n)])


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_counts_that_differ_by_rounding_have_no_median_distance(size):
    counts = equal_but_for_rounding(8, size)
    assert np.ptp(counts, axis=0).any()
    with pytest.raises(ValueError, match="at least half of all pairs have equal counts"):
        bandwidth(counts)
    assert bandwidth(counts + 1e-6 * size * generator(1).random((8, 3))) > 0.0


@pytest.mark.parametrize("similarity", [RBF(2.0), Exponential(2.0), RBF("median")])
def test_similarities_do_not_see_how_far_from_zero_the_counts_are(similarity):
    counts = generator(2).normal(size=(9, 3))
    assert_allclose(similarity(None, counts + 2.0**27), similarity(None, counts), atol=1e-6)


def circles(n: int, start: int) -> Trajectories:
    """Once round the ring, from any of its states: all counts are sums of the same numbers."""
    return Trajectories.from_lists([[(start + k + t) % 7 for t in range(8)][:7] for k in range(n)])


def ring_of_seven() -> MDP:
    moves = np.stack([np.roll(np.eye(7), 1, axis=1), np.eye(7)], axis=1)
    return MDP(moves, generator(3).random((7, 2)), discount=1.0, horizon=7)


def test_counts_that_vary_by_rounding_cannot_be_standardised_and_have_no_penalty():
    mdp, expert, unlabelled = ring_of_seven(), circles(4, 0), circles(3, 4)
    with pytest.raises(ValueError, match="the counts do not vary"):
        MaxEntIRL(ridge=1.0, standardise=True).fit(mdp, expert, unlabelled)
    for name in ("Ridge", "RidgeStd", "Complete"):
        estimator, data = baseline(name, MESSI(RBF(1.0)), mdp, expert, unlabelled)
        assert (type(estimator), estimator.ridge, len(data)) == (MaxEntIRL, 0.0, 1), name


def test_a_coordinate_that_never_changes_keeps_its_unit():
    for n in range(3, 60):  # for some of them the standard deviation is computed as 1e-17
        points = np.column_stack([generator(4).normal(size=n), np.full(n, 0.1)])
        assert Scale.of(points).unit[1] == Squares.fit(points).unit[1] == 1.0
        assert np.abs(Scale.of(points)(points)[:, 1]).max() < ROUNDING


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
def test_neighbours_in_the_very_place_take_all_however_distances_are_computed(algorithm):
    points = 10.0 + generator(5).normal(size=(400, 20))
    regressor = KNeighborsRegressor(3, weights="distance", algorithm=algorithm).fit(points, np.zeros(400))
    assert_array_equal(_Neighbours(regressor, points, None).weights(points).toarray(), np.eye(400))


def test_centres_are_numbered_alike_however_their_coordinates_were_rounded():
    spots = np.array([[0.3, 5.0], [0.1 + 0.2, 1.0], [0.3, 3.0], [7.0, 0.0]])
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        assert_allclose(KMeans.fit(spots[order], 4).centres, spots[[1, 2, 0, 3]])


# ------------------------------------------------------------ what is as good


def test_moves_as_likely_as_each_other_share_a_hit_however_large_the_rewards():
    moves = np.zeros((6, 2, 6))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1, 0, 3] = moves[2, 0, 4] = moves[3, 0, 5] = moves[4, 0, 5] = 1.0
    cost = -1e7 * np.array([0.0, 0.1, 0.3, 0.2, 0.0, 0.0])  # 0.1 + 0.2 one way, 0.3 the other
    mdp = MDP(moves, cost[:, None], discount=1.0, terminal=np.arange(6) == 5)
    with pytest.warns(UserWarning, match="determined only up to"):
        model = MaxEntIRL(theta_init=[1.0], max_iter=0).fit(mdp, Trajectories.from_lists([[0, 1, 3, 5]]))
    assert next_state_accuracy(model, Trajectories.from_lists([[0, 1, 3, 5]])) == pytest.approx(2.5 / 3)


def test_differences_of_a_rounding_decide_nothing():
    noise = 1e-16 * np.array([1.0, 2.0, 1.5, 1.2])
    assert above_zero(noise).verdict == UNDECIDED
    assert above_zero(1e-9 + noise).verdict == HOLDS
    assert interval(noise).high == 0.0
    assert first_best(np.array([0.1, 0.3, 0.1 + 0.2, 0.2])) == 1


def test_the_first_of_those_as_large_is_ranked_first():
    assert_array_equal(ranked(np.array([0.3, 0.5, 0.1 + 0.2, 0.5 * (1 - 1e-16), -1.0])), [1, 3, 0, 2, 4])
    assert_array_equal(ranked(np.zeros(3)), [0, 1, 2])
    assert_array_equal(ranked(np.zeros(0)), [])


def test_methods_that_differ_by_rounding_do_not_fill_the_axis():
    low, high = score_limits(np.array([-0.3, -0.1 - 0.2, -0.9]))
    assert low < -0.9
    assert high > -0.3
    low, high = score_limits(np.array([-0.3, -0.1 - 0.2]))
    assert high - low > 0.01


def test_a_reward_of_one_sign_has_colours_of_one_sign():
    mdp = random_mdp(1, discount=0.5, start=np.full(5, 0.2))
    model = MaxEntIRL(ridge=0.1).fit(mdp, drawn(mdp, [1.0, 0.0, 0.0], 10, 1, length=15))
    at = generator(shifted(2)).normal(size=(5, 2))

    def limits(reward):
        model.reward_ = np.array(reward)
        image = plot.reward(model, at).collections[0]
        return image.norm.vmin, image.norm.vmax

    assert limits([0.0, 1.0, 2.0, 3.0, 4.0]) == pytest.approx(limits([-1e-17, 1.0, 2.0, 3.0, 4.0]))
