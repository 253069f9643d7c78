"""Maps that a person can read: names, marks, arrows, trajectories, networks without coordinates, the way y goes."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pages import Page
from problems import problem
from scipy.linalg import block_diag
from seeds import generator
from worlds import maze, ring

from messirl import MDP, MaxEntIRL, Trajectories, plot, read_problem
from messirl.app.report.common.dark_mode_svg import COLOURS
from messirl.app.report.common.map_style import DARK, NAMES, PALE, opposite, tile_inks, write_names
from messirl.app.report.common.markup import Html
from messirl.app.report.common.method_style import RC
from messirl.app.report.common.svg_tooltips import MOST, HoverArea, add_tooltips, hover_areas
from messirl.app.report.fit.fit_page import write_fit_report
from messirl.app.report.fit.map_axes import BaseMap, MappedMDP, tiled
from messirl.app.report.fit.maps import (
    arrow_shapes,
    likely_transitions,
    maps_figure,
    policy_figure,
    tracks_figure,
)
from messirl.app.report.visit_map import draw_visits
from messirl.app.workflow.fitting import FitSettings, fit
from messirl.app.workflow.graph_layout import network_places
from messirl.app.workflow.record import FitRecord
from messirl.app.workflow.split import Split
from messirl.data.errors import InputError
from messirl.io import Problem, write_problem

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _style_and_no_open_figure():
    with mpl.rc_context(RC):
        yield
    plt.close("all")


def fitted(**changes):
    """A fit to the way through a maze of three by three, with the names of its states."""
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8, state_names=[f"room {s}" for s in range(9)])
    model = MaxEntIRL(ridge=0.1).fit(mdp, problem("episodic").expert)
    return replace(FitRecord("maze", model, plot.grid(3, 3)), **changes)


def boxes(ax):
    ax.figure.canvas.draw()
    return [text.get_window_extent().extents for text in ax.texts]


def overlap(one, other):
    return min(one[2], other[2]) - max(one[0], other[0]) > 1.0 and min(one[3], other[3]) - max(one[1], other[1]) > 1.0


# ------------------------------------------------------------ names


@pytest.mark.parametrize("seed", range(3))
def test_names_cover_neither_each_other_nor_a_dot(seed):
    rng = generator(seed)
    at = rng.random((60, 2)) * [3.0, 1.0]
    figure, ax = plt.subplots(figsize=(6, 3))
    ax.scatter(*at.T, s=36.0)
    figure.draw_without_rendering()
    names = ["".join(rng.choice(list("abc def"), rng.integers(1, 30))) for _ in at]
    done = write_names(ax, at, names.__getitem__, np.arange(60), diameter=6.0, tiles=False)
    assert 0 < len(done) <= NAMES
    assert done == sorted(done), "the first come first"
    found, dots = boxes(ax), ax.transData.transform(at)
    assert not any(overlap(one, other) for i, one in enumerate(found) for other in found[:i])
    radius = 2.0 * figure.dpi / 72  # a little less than that of a dot: letters have room above and below
    for box in found:
        assert not any(overlap(box, (x - radius, y - radius, x + radius, y + radius)) for x, y in dots)
        assert box[0] >= 0
        assert box[2] <= figure.bbox.width


def test_names_on_tiles_stay_on_their_tile_or_are_left_out():
    figure, ax = plt.subplots(figsize=(3, 3))
    plot.states(np.arange(9.0), plot.grid(3, 3), ax)
    figure.draw_without_rendering()
    names = ["short", "a very long name that no tile can hold", *"abcdefg"]
    done = write_names(ax, plot.grid(3, 3), names.__getitem__, np.arange(9), diameter=1.0, tiles=True)
    assert done == list(range(9))
    wide = np.diff(ax.transData.transform([(0, 0), (1, 0)])[:, 0])[0]
    assert all(box[2] - box[0] <= wide for box in boxes(ax))
    many = plot.grid(60, 60)
    figure, ax = plt.subplots(figsize=(3, 3))
    plot.states(np.arange(3600.0), many, ax)
    figure.draw_without_rendering()
    assert write_names(ax, many, lambda _: "x", np.arange(3600), diameter=1.0, tiles=True) == []


def test_letters_on_tiles_are_dark_on_pale_colours_and_pale_on_dark_ones_by_day_and_by_night():
    values = np.array([0.0, 1.0, np.nan, 0.05, 0.95, 0.0])
    ax = plot.states(values, plot.grid(2, 3))
    at = np.asarray(plot.grid(2, 3), dtype=np.float64)
    inks = tile_inks(ax, at)
    assert inks == [PALE, DARK, DARK, PALE, DARK, PALE]  # the one without a number is grey
    assert not {DARK, PALE} & set(COLOURS)  # which are changed by night; those of tiles are not
    assert opposite(DARK) == PALE
    write_names(ax, at, str, np.arange(6), diameter=1.0, tiles=True, inks=inks)
    assert [text.get_color() for text in ax.texts] == inks
    assert tile_inks(mpl.figure.Figure().subplots(), at) is None


def test_the_most_visited_states_have_their_names():
    left, right = maps_figure(fitted()).axes[:2]
    for ax in (left, right):
        assert {text.get_text() for text in ax.texts} == {f"room {s}" for s in range(9)}


# ------------------------------------------------------------ pointing


def test_spots_lie_where_the_states_are_drawn():
    figure, ax = plt.subplots()
    at = np.array([[0.0, 0.0], [2.0, 1.0]])
    ax.scatter(*at.T)
    figure.draw_without_rendering()
    for spot, place in zip(hover_areas(ax, at, str, 0.1), at, strict=True):
        x, y = ax.transData.transform(place) / figure.bbox.size
        assert_allclose([spot.x + spot.width / 2, 1 - spot.y - spot.height / 2], [x, y])
    assert hover_areas(ax, np.zeros((MOST + 1, 2)), str, 0.1) == []


def test_a_page_shows_the_name_of_any_state_without_a_script(tmp_path):
    path = write_fit_report(fitted(), tmp_path)
    page, text = Page(path), path.read_text(encoding="utf-8")
    assert not page.of("script")
    titles = re.findall(r"<rect [^>]*><title>([^<]*)</title>", text)
    assert sum(title.startswith("room 4: reward ") for title in titles) == 2, "once on each map"
    assert any(re.match(r"room 4: action \d 0\.\d\d", title) for title in titles), "and what the policy does there"
    assert "room 8: the end" in titles
    assert "nan" not in "".join(titles)


def test_what_is_said_of_a_spot_is_escaped():
    [shown] = add_tooltips([Html('<figure><img src="x"></figure>')], [HoverArea(0.1, 0.2, 0.3, 0.4, "<b> & co")])
    assert "<title>&lt;b&gt; &amp; co</title>" in shown
    assert 'x="100.0" y="200.0" width="300.0" height="400.0"' in shown
    assert add_tooltips([], [HoverArea(0, 0, 1, 1, "")]) == []


# ------------------------------------------------------------ marks, y, tiles


def test_starts_and_ends_are_marked_and_explained(tmp_path):
    one = fitted()
    assert BaseMap(one).ends.tolist() == [8]
    figure = maps_figure(one)
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {"start", "end"}
    wide = maze(4, 4, discount=0.9)
    every = Trajectories.from_lists([[s, s + 1 if s % 4 < 3 else s - 1] for s in range(16)])
    with pytest.warns(UserWarning, match=r"discount\*\*T|determined only"):
        model = MaxEntIRL(ridge=0.1).fit(wide, every)
    text = Page(write_fit_report(FitRecord("many", model, plot.grid(4, 4)), tmp_path)).text
    assert "Trajectories begin in 16 states, which are not marked." in text


@pytest.mark.slow
def test_y_grows_as_the_folder_says(tmp_path):
    mdp, expert, _ = problem("finite")
    xy = generator(0).normal(size=(5, 2))
    for y_down, axis in ((False, None), (True, "down")):
        place = tmp_path / str(y_down)
        write_problem(Problem(mdp, expert, xy=xy, y_down=y_down), place)
        assert json.loads((place / "problem.json").read_text(encoding="utf-8")).get("y_axis") == axis
        found = read_problem(place)
        assert found.y_down == y_down
        record = fit(found, Split(), FitSettings(baselines=False))
        ax = maps_figure(record).axes[0]
        assert ax.yaxis_inverted() == y_down
        assert ax.get_ylabel() == ("y ↓" if y_down else "y ↑")
        text = Page(write_fit_report(record, place / "out")).text
        assert ("y grows downwards" if y_down else "y grows upwards") in text
        draw_visits(found, place / "visits.svg")
    settings = place / "problem.json"
    settings.write_text('{"discount": 0.9, "horizon": 6, "y_axis": "left"}', encoding="utf-8")
    with pytest.raises(InputError, match=r'y_axis is "left": give "up", or "down"'):
        read_problem(place)


def test_tiles_are_for_grids_without_walls_and_features_of_states():
    at = plot.grid(3, 3)
    assert tiled(maze(discount=0.9), at)
    assert not tiled(MDP(maze(discount=0.9).transitions, np.ones((9, 4, 1)), discount=0.9), at)
    walls = maze(discount=0.9).transitions.toarray().reshape(9, 4, 9).copy()
    walls[[3, 4, 5], 2] = 0.0  # nobody goes down from the second row
    walls[[6, 7, 8], 0] = 0.0
    assert not tiled(MDP(walls, np.ones((9, 1)), discount=0.9), at)


# ------------------------------------------------------------ arrows


def part(moves, **rest):
    return MappedMDP(MDP(moves, np.ones((len(moves), 1)), discount=0.9, **rest), np.arange(len(moves)))


def test_opposite_moves_have_an_arrow_each_and_equal_ones_share_one():
    moves = np.zeros((3, 3, 3))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[0, 2, 2] = moves[1, :, 0] = moves[2, :, 0] = 1.0
    at = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    table = np.array([[0.5, 0.2, 0.3], [0.4, 0.3, 0.3], [0.92, 0.04, 0.04]])
    state, move, chance = likely_transitions(part(moves), at, table, np.arange(3), one=False)
    assert_array_equal(state, [0, 0, 1, 2])
    assert_allclose(chance, [0.5, 0.5, 1.0, 1.0])
    assert_allclose(np.sort(move[:2, 0]), [-1.0, 1.0])


def test_stays_and_moves_between_states_in_one_place_are_rings_and_never_arrows_of_no_length():
    one = fitted()
    stay = ring(4, discount=0.9)
    model = MaxEntIRL(ridge=0.1).fit(stay, Trajectories.from_lists([[0, 0, 1, 1, 2, 3, 3, 0] * 6]))
    at = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # the second and the third in one place
    ax = policy_figure(FitRecord("ring", model, at)).axes[0]
    [arrows] = [item for item in ax.collections if isinstance(item, mpl.collections.PolyCollection)]
    lengths = [np.ptp(path.vertices, axis=0).max() for path in arrows.get_paths()]
    assert lengths
    assert min(lengths) > 0.05
    assert all(np.isfinite(path.vertices).all() for path in arrows.get_paths())
    rings = [item for item in ax.collections if len(np.unique(item.get_linewidths())) > 1 or item.zorder == 4.5]
    assert rings
    assert len(policy_figure(one).axes[0].collections) > 1


def test_moves_to_states_without_a_place_have_no_arrow():
    mdp = maze(discount=0.9)
    here = np.arange(6)
    lost = MappedMDP(mdp, here)
    table = np.where(mdp.allowed, 1.0, 0.0)[here]
    table /= table.sum(axis=1, keepdims=True)
    _, move, _ = likely_transitions(lost, plot.grid(3, 3)[here], table, here, one=False)
    assert_allclose(np.linalg.norm(move, axis=1), 1.0, err_msg="none is taken for a stay")
    assert (move[:, 1] < -0.5).sum() == 3, "down from the first row, and not from the second"


def test_a_move_that_may_slip_has_an_arrow_to_each_place_and_its_mean_is_none():
    slip = np.zeros((3, 1, 3))
    slip[0, 0] = [0.2, 0.4, 0.4]
    slip[1:, 0, 0] = 1.0
    at = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    state, move, chance = likely_transitions(part(slip), at, np.ones((3, 1)), np.arange(1), one=False)
    assert_array_equal(state, [0, 0, 0])
    assert_allclose(np.column_stack([move[:, 0], chance])[np.argsort(move[:, 0])], [[-1, 0.4], [0, 0.2], [1, 0.4]])


def test_arrows_end_before_the_middle_of_a_move():
    at, way = np.array([[0.0, 0.0]]), np.array([[0.6, 0.8]])
    [shape] = arrow_shapes(at, way, np.array([0.1]), np.array([0.45]), np.array([0.05]))
    along = shape @ way[0]
    assert_allclose([along.min(), along.max()], [0.1, 0.45])
    assert_allclose(shape[3], 0.45 * way[0], err_msg="the tip")


def test_of_many_states_only_the_likeliest_move_is_drawn():
    mdp = maze(30, 30, discount=0.9)
    table = np.where(mdp.allowed, [[0.4, 0.3, 0.2, 0.1]], 0.0)
    among = np.arange(0, 900, 7)
    state, _, _ = likely_transitions(MappedMDP(mdp, np.arange(900)), plot.grid(30, 30), table, among, one=True)
    assert_array_equal(state, among)


# ------------------------------------------------------------ lines, networks, trajectories


@pytest.mark.drawn
def test_states_on_a_line_have_curves_and_no_arrows(tmp_path):
    mdp, expert, _ = problem("finite")
    line = np.column_stack([np.arange(5.0), np.zeros(5)])
    record = FitRecord("line", MaxEntIRL(ridge=0.1).fit(mdp, expert), line)
    top, bottom = maps_figure(record).axes
    assert_allclose(top.lines[0].get_ydata(), plot.state_rewards(record.model))
    assert_allclose(bottom.lines[0].get_ydata(), record.model.visitation_)
    [ax] = policy_figure(record).axes
    assert_allclose(sum(line.get_ydata() for line in ax.lines), 1.0)
    assert "along the line of states" in Page(write_fit_report(record, tmp_path)).text


@pytest.mark.drawn
def test_all_states_in_one_place_are_a_picture_too(tmp_path):
    mdp, expert, _ = problem("finite")
    record = FitRecord("dot", MaxEntIRL(ridge=0.1).fit(mdp, expert), np.zeros((5, 2)), tracks={"expert": expert[:3]})
    write_fit_report(record, tmp_path)


def chain(n):
    to = np.minimum(np.arange(n) + 1, n - 1)
    back = np.maximum(np.arange(n) - 1, 0)
    return MDP(np.stack([np.eye(n)[to], np.eye(n)[back]], axis=1), np.linspace(0, 1, n)[:, None], discount=0.9)


def test_a_network_is_laid_out_so_that_neighbours_are_near():
    at = network_places(chain(12))
    far = np.linalg.norm(at[:, None] - at, axis=2)
    assert_allclose(far[np.arange(11), np.arange(1, 12)], 1.0, rtol=0.1)
    assert far[0, 11] > 8
    assert_allclose(network_places(chain(12)), at, atol=1e-9)
    apart = block_diag(np.eye(3)[[1, 2, 0]], np.eye(4)[[1, 2, 3, 0]])[:, None]
    two = network_places(MDP(apart, np.ones((7, 1)), discount=0.9))
    far = np.linalg.norm(two[:, None] - two, axis=2)
    assert far[:3, 3:].min() > far[:3, :3].max(), "parts that no move joins lie apart"
    still = network_places(MDP(np.eye(3)[:, None], np.ones((3, 1)), discount=0.9))
    assert np.linalg.norm(still[0] - still[1]) > 1


def test_of_many_states_those_that_are_asked_for_are_laid_out():
    long = chain(400)
    assert network_places(long) is None
    some = network_places(long, np.arange(20, 30))
    assert_array_equal(np.isfinite(some).all(axis=1), (np.arange(400) >= 20) & (np.arange(400) < 30))
    assert network_places(chain(2), np.array([1])) is None


@pytest.mark.drawn
def test_a_fit_without_coordinates_shows_its_network_and_says_so(tmp_path):
    mdp = chain(8)
    there = [0, 1, 2, 3, 4, 5, 6, 7]
    walks = Trajectories.from_lists([[*there, *there[-2::-1], *there[1:]], [*there[3:], *there[-2:2:-1], *there[4:]]])
    record = fit(Problem(mdp, walks), Split(), FitSettings(baselines=False))
    assert record.laid_out
    text = Page(write_fit_report(record, tmp_path)).text
    assert "no coordinates" in text
    assert "y grows" not in text
    assert {"maps", "tracks", "policy"} <= {path.stem for path in (tmp_path / "figures").iterdir()}


def test_some_trajectories_are_drawn_and_how_many_is_said():
    mdp, expert, unlabelled = problem("episodic")
    many = Trajectories.from_lists([one.states.tolist() for one in expert] * 5)
    names = np.repeat(["expert", "other"], [len(many), len(unlabelled)])
    found = Problem(mdp, many + unlabelled, {"role": names}, xy=plot.grid(3, 3))
    record = fit(found, Split(expert="role = expert", unlabelled="role = other"), FitSettings(baselines=False))
    assert {kind: len(some) for kind, some in record.tracks.items()} == {"expert": 40, "unlabelled": 8}
    left, right = tracks_figure(record).axes
    assert left.get_title() == "40 of 60 expert trajectories"
    assert right.get_title() == "8 unlabelled trajectories"
    lines = next(item for item in right.collections if isinstance(item, mpl.collections.LineCollection))
    drawn, own = lines.get_segments()[0], plot.grid(3, 3)[record.tracks["unlabelled"][0].states]
    assert np.abs(drawn - own).max() < 0.25, "a little beside where it was"
    assert tracks_figure(replace(record, tracks={})) is None


def test_rewards_of_moves_colour_the_moves():
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8)
    features = 0.5 + generator(0).random((9, 4, 1))
    steps = MDP(mdp.transitions, features, discount=1.0, terminal=np.arange(9) == 8)
    model = MaxEntIRL(ridge=0.1).fit(steps, problem("episodic").expert)
    ax = maps_figure(FitRecord("steps", model, plot.grid(3, 3))).axes[0]
    lines = next(item for item in ax.collections if isinstance(item, mpl.collections.LineCollection))
    allowed = model.mdp_.allowed
    assert_allclose(np.sort(lines.get_array()), np.sort(model.reward_[allowed]))
