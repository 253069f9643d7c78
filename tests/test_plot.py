"""Pictures: drawn on grids and on any other coordinates, into the axes given; wrong shapes are refused."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import problem
from seeds import generator
from worlds import maze

from messirl import MaxEntIRL, plot

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
KINDS = ["finite", "endless", "episodic", "goals", "steps"]
every = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def fitted(kind):
    return MaxEntIRL(ridge=0.1).fit(*problem(kind)[:2])


def scattered(n, seed=0):
    return generator(seed).normal(size=(n, 2))


def places(kind, irregular):
    n = problem(kind).mdp.n_states
    if irregular:
        return scattered(n)
    return plot.grid(3, 3) if n == 9 else plot.grid(2, 3)[:n]


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


def values_of(ax):
    """The numbers that are coloured, in no order; a grid's empty cells are left out."""
    [mappable] = [item for item in ax.collections if item.get_array() is not None and item.get_array().size > 0][:1]
    shown = np.ma.masked_invalid(mappable.get_array()).compressed()
    return np.sort(shown)


# ------------------------------------------------------------ each function


def test_a_grid_numbers_states_row_by_row_from_the_top():
    assert_array_equal(plot.grid(2, 3), [[0, 1], [1, 1], [2, 1], [0, 0], [1, 0], [2, 0]])


@every
@pytest.mark.parametrize("irregular", [False, True], ids=["grid", "irregular"])
@pytest.mark.parametrize("picture", [plot.reward, plot.visitation])
def test_reward_and_visitation_are_drawn(picture, kind, irregular):
    model = fitted(kind)
    ax = drawn(picture(model, places(kind, irregular)))
    expected = model.visitation_ if picture is plot.visitation else model.reward_
    if expected.ndim == 2:
        expected = expected.mean(axis=1)  # every action is allowed in that problem
    assert_allclose(values_of(ax), np.sort(expected), rtol=1e-12)


@every
@pytest.mark.parametrize("irregular", [False, True], ids=["grid", "irregular"])
def test_the_policy_is_drawn_as_arrows(kind, irregular):
    model = fitted(kind)
    goal = {"goal": 8} if kind == "goals" else {}
    ax = drawn(plot.policy(model, places(kind, irregular), **goal))
    assert any(isinstance(item, mpl.quiver.Quiver) for item in ax.collections)


def test_arrows_point_where_the_policy_goes():
    mdp = maze(1, 3, features=np.ones((3, 1)), discount=1.0, terminal=[False, False, True])
    expert = problem("episodic").expert.from_lists([[0, 1, 2], [0, 1, 0, 1, 2]])
    ax = plot.policy(MaxEntIRL().fit(mdp, expert), plot.grid(1, 3))
    [arrows] = [item for item in ax.collections if isinstance(item, mpl.quiver.Quiver)]
    assert_allclose(arrows.XY, [[0, 0], [1, 0]])
    assert (arrows.U > 0).all()
    assert_allclose(arrows.V, 0.0)
    assert arrows.U[0] > arrows.U[1], "from the first state there is one way, from the second there are two"


def test_a_step_of_the_policy_may_be_chosen():
    model = fitted("finite")
    first, last = (plot.policy(model, scattered(5), step=step).collections[-1] for step in (0, 4))
    assert not np.allclose(first.U, last.U)
    default = plot.policy(model, scattered(5)).collections[-1]
    assert_array_equal(default.U, first.U)


@every
def test_the_history_is_drawn(kind):
    model = fitted(kind)
    ax = drawn(plot.history(model))
    [line] = ax.get_lines()
    assert_array_equal(line.get_xdata(), model.history_.iteration)
    assert_array_equal(line.get_ydata(), model.history_.objective)
    assert ax.get_xlabel() == "iteration"


@pytest.mark.parametrize("irregular", [False, True], ids=["grid", "irregular"])
def test_any_numbers_may_be_drawn(irregular):
    values = np.array([1.0, -2.0, np.nan, 0.0, 3.0, 4.0])
    at = scattered(6) if irregular else plot.grid(2, 3)
    ax = drawn(plot.states(values, at, label="height", diverging=True))
    assert_allclose(values_of(ax), [-2.0, 0.0, 1.0, 3.0, 4.0])
    assert ax.collections[0].get_clim() == (-4.0, 4.0)


# ------------------------------------------------------------ tiles or dots


def test_a_grid_becomes_tiles_and_other_coordinates_dots():
    tiles = plot.states(np.arange(6), plot.grid(2, 3)).collections[0]
    dots = plot.states(np.arange(6), scattered(6)).collections[0]
    assert isinstance(tiles, mpl.collections.QuadMesh)
    assert isinstance(dots, mpl.collections.PathCollection)
    assert_array_equal(dots.get_offsets(), scattered(6))


@pytest.mark.parametrize(
    "at",
    [
        np.column_stack([np.arange(4), np.zeros(4)]),
        np.zeros((4, 2)),
        np.array([[0, 0], [1, 0], [0, 1], [5, 1]]),
        np.array([[0, 0], [1, 1], [0, 0], [1, 0]]),
    ],
    ids=["line", "one point", "uneven", "two in one place"],
)
def test_coordinates_that_make_no_grid_become_dots(at):
    ax = drawn(plot.states(np.arange(4.0), at))
    assert isinstance(ax.collections[0], mpl.collections.PathCollection)


def test_tiles_lie_where_their_states_do():
    mesh = plot.states(np.arange(6.0), plot.grid(2, 3)).collections[0]
    assert_array_equal(np.asarray(mesh.get_array()).reshape(2, 3), [[3, 4, 5], [0, 1, 2]])


def test_one_state_is_a_picture_too():
    drawn(plot.states([1.0], [[0.0, 0.0]]))


# ------------------------------------------------------------ axes and errors


def test_pictures_go_into_the_axes_given():
    figure, axes = plt.subplots(2, 2, layout="constrained")
    model, at = fitted("episodic"), plot.grid(3, 3)
    assert plot.reward(model, at, axes[0, 0]) is axes[0, 0]
    assert plot.visitation(model, at, ax=axes[0, 1]) is axes[0, 1]
    assert plot.policy(model, at, axes[1, 0]) is axes[1, 0]
    assert plot.history(model, axes[1, 1]) is axes[1, 1]
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("picture", [plot.reward, plot.visitation, plot.policy])
@pytest.mark.parametrize("shape", [(8, 2), (9, 3), (9,), (2, 9)], ids=str)
def test_coordinates_of_the_wrong_shape_are_refused(picture, shape):
    with pytest.raises(ValueError, match=r"xy has shape .*: give one pair of coordinates for each of the 9 states"):
        picture(fitted("episodic"), np.zeros(shape))
    assert plt.get_fignums() == [], "nothing is left half drawn"


@pytest.mark.parametrize("picture", [plot.reward, plot.visitation, plot.policy])
def test_coordinates_that_are_not_finite_are_refused(picture):
    at = plot.grid(3, 3)
    at[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"xy\[4.* not finite"):
        picture(fitted("episodic"), at)


def test_numbers_of_the_wrong_shape_are_refused():
    with pytest.raises(ValueError, match=r"values have shape \(6, 2\)"):
        plot.states(np.zeros((6, 2)), plot.grid(2, 3))
    with pytest.raises(ValueError, match=r"give one pair of coordinates for each of the 5 states"):
        plot.states(np.zeros(5), plot.grid(2, 3))


def test_a_policy_that_needs_a_goal_or_has_no_such_step_is_refused():
    with pytest.raises(ValueError, match="this fit has goals: pass goal="):
        plot.policy(fitted("goals"), plot.grid(3, 3))
    with pytest.raises(ValueError, match="step 9 is not one of 0 … 4"):
        plot.policy(fitted("finite"), scattered(5), step=9)
