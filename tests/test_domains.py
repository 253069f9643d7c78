"""The paper's three problems: what they are made of, by plain loops, and what a run of them gives."""

from __future__ import annotations

from itertools import combinations

import matplotlib
import numpy as np
import pytest
from seeds import generator, shifted

from messirl import Trajectories, feature_counts
from messirl.paper.domains import DOMAINS, gridworld, highway, mixture, pit
from messirl.paper.domains.pit import TurnSimilarity, changes_of_direction
from messirl.planning import optimal_policy, soft_policy, state_visitation
from messirl.similarity import RBF, Exponential

SMALL = {"highway": {"pool": 30, "length": 30}, "gridworld": {"pool": 30, "length": 20}, "pit": {"pool": 30}}
every_domain = pytest.mark.parametrize("name", sorted(DOMAINS))


@pytest.fixture(scope="module")
def scenes():
    """A domain and its scenes by seed, made once."""
    domains = {name: make(**SMALL[name]) for name, make in DOMAINS.items()}
    known = {}

    def scene(name, seed=0):
        if (name, seed) not in known:
            known[name, seed] = domains[name].scene(shifted(seed))
        return known[name, seed]

    return scene


def row_of(mdp, state, action):
    """p(·|state, action) as {next state: probability}."""
    row = np.asarray(mdp.transitions[[state * mdp.n_actions + action]].toarray()).ravel()
    return {int(s): row[s] for s in np.flatnonzero(row)}


def legal(mdp, trajectory):
    """Every step of the trajectory has a chance of happening."""
    states, actions = trajectory.states, trajectory.actions
    return all(int(b) in row_of(mdp, int(a), int(m)) for a, b, m in zip(states, states[1:], actions, strict=False))


# ------------------------------------------------------------ highway

ROADS = [(), (0,), (1,), (2,), (3,), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]  # lanes with a car


def unpacked(state, rows_ahead=1):
    """The driver's place 0 … 5, and the rows from beside him on."""
    rows = []
    for _ in range(rows_ahead + 1):
        state, row = divmod(state, 11)
        rows.insert(0, row)
    return state, rows


def packed(place, rows):
    for row in rows:
        place = place * 11 + row
    return place


@pytest.mark.parametrize(("rows_ahead", "states"), [(1, 726), (2, 7986)])
def test_the_highway_has_six_places_and_eleven_rows_each(rows_ahead, states):
    mdp = highway(rows_ahead=rows_ahead, pool=1, length=3).mdp
    assert (mdp.n_states, mdp.n_actions, mdp.n_features) == (states, 3, 4)
    assert tuple(mdp.action_names) == ("left", "right", "stay")
    assert tuple(mdp.feature_names) == ("collision", "off-road", "left", "right")


def test_a_highway_row_has_at_most_two_cars_in_four_lanes():
    assert sorted(ROADS) == sorted(cars for k in (0, 1, 2) for cars in combinations(range(4), k))


@pytest.mark.parametrize("rows_ahead", [1, 2])
@pytest.mark.parametrize("density", [0.3, 0.15])
def test_the_highway_scrolls_one_row_and_shows_a_new_one_by_its_density(density, rows_ahead):
    mdp = highway(density=density, rows_ahead=rows_ahead, pool=1, length=3).mdp
    weights = [density ** len(cars) * (1 - density) ** (4 - len(cars)) for cars in ROADS]
    for state in generator(0).choice(mdp.n_states, 40, replace=False):
        place, rows = unpacked(int(state), rows_ahead)
        for action, step in enumerate((-1, 1, 0)):
            to = min(max(place + step, 0), 5)
            wanted = {packed(to, [*rows[1:], new]): weights[new] / sum(weights) for new in range(11)}
            assert row_of(mdp, int(state), action) == pytest.approx(wanted, abs=1e-12)


def test_highway_features_are_collision_offroad_left_and_right():
    mdp = highway(pool=1, length=3).mdp
    features = np.asarray(mdp.features)
    for state in range(mdp.n_states):
        place, rows = unpacked(state)
        off = place in (0, 5)
        hit = not off and place - 1 in ROADS[rows[0]]
        assert features[state].tolist() == [hit, off, place in (1, 2), place in (3, 4)]


def test_the_highway_begins_on_the_road_without_a_collision():
    mdp = highway(pool=1, length=3).mdp
    begins = np.asarray(mdp.features)[:, :2].sum(axis=1) == 0
    assert ((np.asarray(mdp.start) > 0) == begins).all()


@pytest.mark.parametrize("rows_ahead", [1, 2])
def test_the_highway_expert_is_legal_and_stays_left_with_no_collision_and_no_offroad(rows_ahead):
    domain = highway(rows_ahead=rows_ahead, pool=1, length=60)
    features = np.asarray(domain.mdp.features)
    for seed in range(40 if rows_ahead == 1 else 5):
        expert = domain.scene(shifted(seed)).expert
        assert len(expert) == 1
        assert expert.lengths[0] == 60
        assert features[expert.states].sum(axis=0).tolist() == [0, 0, 60, 0]
        assert domain.mdp.start[expert.states[0]] > 0
        assert legal(domain.mdp, expert[0])


def test_highway_rewards_are_heavy_weak_and_blind_to_collisions_and_never_look_at_the_side():
    thetas = highway(pool=1, length=3).scene(0).thetas
    star, one, two = (thetas[k] for k in ("star", "one", "two"))
    assert star[2] == star[3] == one[2] == one[3] == two[2] == two[3] == 0
    assert star[0] < one[0] < 0
    assert star[1] < one[1] < 0
    assert two[0] == 0
    assert two[1] < 0


def test_highway_performance_is_minus_the_share_of_time_in_collision_or_off_the_road(scenes):
    scene = scenes("highway")
    visits = generator(1).random(scene.mdp.n_states)
    bad = sum(
        visits[s]
        for s in range(scene.mdp.n_states)
        if unpacked(s)[0] in (0, 5) or unpacked(s)[0] - 1 in ROADS[unpacked(s)[1][0]]
    )
    assert scene.performance(visits) == pytest.approx(-(1 - scene.mdp.discount) * bad)
    every = np.asarray(state_visitation(scene.mdp, np.eye(3)[np.zeros(726, dtype=int)]))  # always left: off the road
    assert -1.0 <= scene.performance(every) < -0.8


def test_a_driver_who_sees_nothing_is_refused():
    with pytest.raises(ValueError, match="rows_ahead"):
        highway(rows_ahead=0)


# ------------------------------------------------------------ gridworld


def moves_by_hand(side, success, state):
    """For each action {next state: probability} on a slippery grid with walls."""
    y, x = divmod(state, side)
    ends = []
    for dx, dy in ((0, 1), (0, -1), (-1, 0), (1, 0)):  # up, down, left, right
        inside = 0 <= x + dx < side and 0 <= y + dy < side
        ends.append((y + dy) * side + x + dx if inside else state)
    out = []
    for action in range(4):
        row = {}
        for other in range(4):
            row[ends[other]] = row.get(ends[other], 0.0) + (success if other == action else (1 - success) / 3)
        out.append(row)
    return out


def test_the_gridworld_moves_as_meant_with_070_and_otherwise_with_010_each_and_walls_hold():
    mdp = gridworld(pool=1, length=3).mdp
    assert (mdp.n_states, mdp.n_actions) == (256, 4)
    assert tuple(mdp.action_names) == ("up", "down", "left", "right")
    for state in range(256):
        for action, wanted in enumerate(moves_by_hand(16, 0.7, state)):
            assert row_of(mdp, state, action) == pytest.approx(wanted)


def test_the_gridworld_has_64_macro_states_of_two_by_two_cells():
    features = np.asarray(gridworld(pool=1, length=3).mdp.features)
    assert features.shape == (256, 64)
    assert (features.sum(axis=1) == 1).all()
    assert (features.sum(axis=0) == 4).all()
    for j in range(64):
        y, x = np.divmod(np.flatnonzero(features[:, j]), 16)
        assert np.ptp(x) == np.ptp(y) == 1
        assert x.min() % 2 == y.min() % 2 == 0


def test_gridworld_rewards_are_negative_but_for_exactly_three(scenes):
    places = set()
    for seed in range(10):
        star = scenes("gridworld", seed).thetas["star"]
        assert (star != 0).all()
        assert (star > 0).sum() == 3
        places.add(tuple(np.flatnonzero(star > 0)))
    assert len(places) > 7  # one set of ten in a thousand has the same places twice


def test_gridworld_performance_is_the_mean_reward_under_the_true_theta(scenes):
    scene = scenes("gridworld")
    visits = generator(2).random(256)
    reward = [scene.thetas["star"][(s // 16 // 2) * 8 + s % 16 // 2] for s in range(256)]
    wanted = (1 - scene.mdp.discount) * sum(v * r for v, r in zip(visits, reward, strict=True))
    assert scene.performance(visits) == pytest.approx(wanted)


def test_the_gridworld_expert_does_better_than_a_random_walk(scenes):
    for seed in range(2):
        scene = scenes("gridworld", seed)
        best = optimal_policy(scene.mdp, scene.mdp.reward(scene.thetas["star"]))
        walk = np.full((256, 4), 0.25)
        found = [scene.performance(state_visitation(scene.mdp, p)) for p in (best, walk)]
        counts = feature_counts(scene.mdp, scene.pools["star"]) @ scene.thetas["star"] * (1 - scene.mdp.discount)
        chance = 4.0 * counts.std(ddof=1) / np.sqrt(len(counts))  # what the mean of so few may be too high by
        assert found[1] < counts.mean() < found[0] + chance


def test_blocks_that_do_not_fit_the_grid_are_refused():
    with pytest.raises(ValueError, match=r"block=3 .* side=16"):
        gridworld(block=3)


# ------------------------------------------------------------ pit


def cell(x, y):
    """State of the square (x, y), counted from 1 as in the paper."""
    return (y - 1) * 6 + x - 1


def test_the_pit_has_three_parts_that_cover_its_36_cells_once():
    mdp = pit(pool=1).mdp
    features = np.asarray(mdp.features)
    assert tuple(mdp.feature_names) == ("left edge", "right edge", "pit")
    assert features.shape == (36, 3)
    assert (features.sum(axis=1) == 1).all()
    inside = {cell(x, y) for x in range(2, 6) for y in range(2, 6)}
    assert set(np.flatnonzero(features[:, 2])) == inside
    assert set(np.flatnonzero(features[:, 0])) >= {cell(1, y) for y in range(2, 7)} | {cell(x, 6) for x in range(1, 6)}
    assert set(np.flatnonzero(features[:, 1])) >= {cell(x, 1) for x in range(2, 7)} | {cell(6, y) for y in range(1, 6)}


def test_the_pit_begins_at_1_1_ends_at_6_6_and_moves_as_meant_with_085():
    mdp = pit(pool=1).mdp
    assert np.flatnonzero(mdp.start).tolist() == [cell(1, 1)]
    assert np.flatnonzero(mdp.terminal).tolist() == [cell(6, 6)]
    for state in range(35):
        for action, wanted in enumerate(moves_by_hand(6, 0.85, state)):
            assert row_of(mdp, state, action) == pytest.approx(wanted)


def test_the_pit_expert_goes_round_counter_clockwise_along_the_right_edge():
    scene = pit(pool=1).scene(0)
    wanted = [cell(x, 1) for x in range(1, 7)] + [cell(6, y) for y in range(2, 7)]
    assert scene.expert.states.tolist() == wanted
    assert len(wanted) == 11
    assert legal(scene.mdp, scene.expert[0])
    left, right, inside = np.asarray(scene.mdp.features)[wanted].sum(axis=0)
    assert (left, right, inside) == (1, 10, 0)  # the corner it begins in counts as the left edge


def test_without_slips_the_good_go_round_either_way_and_the_others_cross():
    scene = pit(success=1.0, pool=40).scene(0)
    inside = np.asarray(scene.mdp.features)[:, 2] == 1
    round_right = scene.expert.states.tolist()
    round_left = [cell(1, y) for y in range(1, 7)] + [cell(x, 6) for x in range(2, 7)]
    good = {tuple(t.states.tolist()) for t in scene.pools["star"]}
    assert good == {tuple(round_right), tuple(round_left)}
    for name, turns in (("one", 9), ("two", 2)):
        for t in scene.pools[name]:
            assert t.states[-1] == cell(6, 6)
            assert inside[t.states].any()
        assert changes_of_direction(scene.pools[name]).tolist() == [turns] * 40


@pytest.mark.parametrize("source", ["star", "one", "two"])
def test_no_policy_of_the_pit_pushes_against_a_wall(source):
    """A policy that goes round, or crosses, always means a move that can be made, after a slip too."""
    scene = pit(pool=100).scene(0)
    for t in scene.pools[source]:
        y, x = np.divmod(t.states[:-1], 6)
        dx, dy = np.array([(0, 1), (0, -1), (-1, 0), (1, 0)])[t.actions].T
        outside = (x + dx < 0) | (x + dx > 5) | (y + dy < 0) | (y + dy > 5)
        assert not outside.any(), (
            f"at (x, y) = ({x[outside][0] + 1}, {y[outside][0] + 1}) action {t.actions[outside][0]}"
        )


def test_trajectories_of_the_pit_get_to_the_end(scenes):
    for seed in range(5):
        for trajectories in scenes("pit", seed).pools.values():
            assert all(t.states[-1] == cell(6, 6) for t in trajectories)


def test_going_round_meets_the_pit_far_less_than_crossing(scenes):
    scene = scenes("pit")
    counts = {name: feature_counts(scene.mdp, t)[:, 2].mean() for name, t in scene.pools.items()}
    assert counts["star"] < 0.5 * min(counts["one"], counts["two"])


def test_turns_are_counted_by_hand_and_standing_still_is_no_turn():
    made = Trajectories.from_lists(
        [
            [0, 1, 2, 3],  # straight on
            [0, 1, 7, 13],  # right, up: one turn
            [0, 1, 1, 2],  # right, held by a wall, right: none
            [0, 6, 7, 13, 14],  # up, right, up, right: three
            [3, 3, 3],  # never moves
            [1, 0, 1],  # left, right: one
            [5],
        ]
    )
    turns = [0, 1, 0, 3, 0, 1, 0]
    assert changes_of_direction(made).tolist() == turns
    wanted = [[np.exp(-abs(a - b)) for b in turns] for a in turns]
    assert TurnSimilarity()(made, np.zeros((7, 3))) == pytest.approx(np.array(wanted))
    assert TurnSimilarity(2.0)(made, np.zeros((7, 3))) == pytest.approx(np.sqrt(wanted))


def test_pit_performance_is_minus_the_share_of_time_in_the_pit(scenes):
    visits = generator(3).random(36)
    inside = [cell(x, y) for x in range(2, 6) for y in range(2, 6)]
    assert scenes("pit").performance(visits) == pytest.approx(
        -(1 - pit(pool=1).mdp.discount) * sum(visits[s] for s in inside)
    )


# ------------------------------------------------------------ every domain


def test_similarities_are_the_papers():
    assert highway(pool=1, length=3).scene(0).similarity == RBF(5.0)
    assert gridworld(pool=1, length=3).scene(0).similarity == Exponential(10.0)
    assert pit(pool=1).scene(0).similarity == TurnSimilarity(1.0)
    other = RBF(2.0)
    assert all(make(similarity=other, pool=1).scene(0).similarity is other for make in DOMAINS.values())


@every_domain
def test_a_seed_gives_one_scene_and_another_seed_another(name):
    domain = DOMAINS[name](**SMALL[name])
    a, b, c = domain.scene(3), DOMAINS[name](**SMALL[name]).scene(3), domain.scene(4)
    assert a.expert == b.expert
    assert a.pools == b.pools
    assert (a.coins == b.coins).all()
    assert all((a.thetas[k] == b.thetas[k]).all() for k in a.thetas)
    assert all(a.pools[k] != c.pools[k] for k in a.pools)
    assert not (a.coins == c.coins).any()
    if name != "pit":  # its expert never slips
        assert a.expert != c.expert


@every_domain
def test_all_trajectories_are_legal_and_begin_where_the_problem_does(name, scenes):
    scene = scenes(name)
    for trajectories in (scene.expert, *(pool[:3] for pool in scene.pools.values())):
        for t in trajectories:
            assert scene.mdp.start[t.states[0]] > 0
            assert legal(scene.mdp, t)


@every_domain
def test_a_mixture_is_one_draw_of_either_source_by_its_own_coin(name, scenes):
    scene = scenes(name)
    sources = {"MAX": ("star", "star"), "mu1": ("star", "one"), "mu2": ("star", "two"), "mu3": ("one", "two")}
    for mix, (good, other) in sources.items():
        drawn = mixture(scene, mix, 30, 0.4)
        assert len(drawn) == 30
        for j, t in enumerate(drawn):
            source = good if scene.coins[j] < 0.4 else other
            assert (t.states == scene.pools[source][j].states).all()
            assert (t.actions == scene.pools[source][j].actions).all()


@every_domain
def test_mixtures_are_nested_in_u_and_pure_at_the_ends_of_nu(name, scenes):
    scene = scenes(name)
    assert mixture(scene, "mu1", 0, 0.5) is None
    assert mixture(scene, "mu1", 30, 0.5)[:7] == mixture(scene, "mu1", 7, 0.5)
    assert mixture(scene, "mu1", 30, 1.0) == mixture(scene, "mu2", 30, 1.0) == scene.pools["star"]
    assert mixture(scene, "mu1", 30, 0.0) == mixture(scene, "mu3", 30, 1.0) == scene.pools["one"]
    assert mixture(scene, "mu2", 30, 0.0) == mixture(scene, "mu3", 30, 0.0) == scene.pools["two"]
    assert mixture(scene, "MAX", 30, 0.0) == mixture(scene, "MAX", 30, 1.0) == scene.pools["star"]


@every_domain
def test_raising_nu_only_turns_bad_trajectories_into_good_ones(name, scenes):
    scene = scenes(name)
    good, was_good = scene.pools["star"], np.zeros(30, dtype=bool)
    for nu in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawn = mixture(scene, "mu1", 30, nu)
        is_good = np.array([np.array_equal(a.states, b.states) for a, b in zip(drawn, good, strict=True)])
        assert (is_good | ~was_good).all()
        was_good = is_good
    assert was_good.all()


@every_domain
def test_more_trajectories_than_a_scene_holds_are_refused(name, scenes):
    with pytest.raises(ValueError, match="u=31: must be at most 30"):
        mixture(scenes(name), "mu1", 31, 0.5)


@every_domain
def test_performance_of_a_perfect_policy_is_the_best_of_the_sources(name, scenes):
    scene = scenes(name)
    if not scene.thetas:
        return
    policies = {k: soft_policy(scene.mdp, 20 * scene.mdp.reward(v)) for k, v in scene.thetas.items()}
    found = {k: scene.performance(state_visitation(scene.mdp, p)) for k, p in policies.items()}
    assert found["star"] > max(found["one"], found["two"]) - 1e-3


@every_domain
def test_a_domain_draws_itself(name):
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        figure = Figure()
        ax = figure.add_subplot()
        DOMAINS[name](**SMALL[name]).draw(ax)
        figure.canvas.draw()
    assert ax.patches or ax.images
