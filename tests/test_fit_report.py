"""The report of one fit: one page that stands alone, whatever was fitted and whatever its names are."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from pages import Page
from problems import problem
from scipy.stats import t as student
from seeds import generator
from worlds import maze

from messirl import MDP, MESSI, MaxEntIRL, Trajectories, plot, sample, soft_policy
from messirl.app.report.common.feature_labels import name_html, one_line, shorten
from messirl.app.report.common.number_format import rounded
from messirl.app.report.fit import fit_figures, map_axes, maps, tables
from messirl.app.report.fit.fit_page import lead, write_fit_report
from messirl.app.workflow.preferences import Preferences
from messirl.app.workflow.record import FitRecord, Score
from messirl.inference import EstimationTable
from messirl.similarity import RBF

mpl.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
KINDS = ["finite", "endless", "episodic", "goals", "steps", "sparse"]
BAD = "<script>alert('$x_1$')</script>\n\x00" + "long " * 40
SCORES = [
    Score("MESSI", "expert and unlabelled", -0.6, -0.78),
    Score("MaxEnt", "expert", -0.41, -13.2),
    Score("pooling", "expert and unlabelled", -0.7, -0.82, "all alike"),
    Score("complete graph", "expert and unlabelled", -0.8, -0.83),
    Score("nothing fits", "expert", -0.5, float("-inf")),
    Score("uniform policy", "nothing", -0.9, -0.97),
]


@pytest.fixture(autouse=True)
def _no_figure_stays_open():
    yield
    plt.close("all")


def fitted(kind):
    world = problem(kind)
    return MaxEntIRL(theta_max=20.0).fit(world.mdp, world.expert)


def table_of(model):
    """Estimates with equal errors and six degrees of freedom."""
    d = model.theta_.size
    square, error = 0.01 * np.eye(d), np.full(d, 0.1)
    of = (model.mdp_.feature_ids, model.theta_, error, 2 * error, square, 4 * square, -123.456, 10, 100, d)
    return EstimationTable(*of, degrees_of_freedom=np.full(d, 6.0))


def record(kind="episodic", **changes):
    """Everything that a record may have, on a small problem."""
    model = fitted(kind)
    n = model.mdp_.n_states
    table = table_of(model)
    whole = FitRecord(
        title="a maze",
        model=model,
        xy=plot.grid(3, 3) if n == 9 else generator(0).normal(size=(n, 2)),
        counts={"expert": 10, "unlabelled": 500, "test": 464},
        scores=SCORES,
        preferences=Preferences(model, table, refitted=False),
        table=table,
        estimates=table.rows(),
        statistics={"log-likelihood": -123.456, "next-state accuracy": 0.71},
        settings={"lambda0": "0.03", "similarity": "RBF(sigma='median')"},
        command="messirl fit maze --lambda0 0.03",
        warnings=["Three states are never entered"],
    )
    return replace(whole, **changes)


def stems(folder):
    return {path.stem for path in (folder / "figures").iterdir()}


def axes_of(make, *arguments):
    """The axes of a figure in our style, drawn."""
    import matplotlib.style

    from messirl.app.report.common.method_style import RC

    with matplotlib.style.context(["default", RC]):
        figure = make(*arguments)
        figure.draw_without_rendering()
    return figure.axes


# ------------------------------------------------------------ the page


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "with_map", [pytest.param(True, marks=pytest.mark.drawn), False], ids=["map, all drawn", "no map"]
)
def test_every_kind_of_fit_has_a_report(kind, with_map, tmp_path):
    path = write_fit_report(record(kind, **({} if with_map else {"xy": None})), tmp_path)
    assert path == tmp_path / "report.html"
    everywhere = {"preferences", "scores", "weights", "convergence"}
    assert stems(tmp_path) == everywhere | ({"maps", "policy"} if with_map else set())
    assert {p.name for p in tmp_path.iterdir()} == {"report.html", "figures"}
    text = Page(path).text
    assert "nan" not in text
    assert "None" not in text
    first = " at the first step"
    goal = f" towards state {record(kind).towards}"
    where = {"goals": goal, "finite": first, "steps": first, "sparse": first}.get(kind, "")
    assert f"and the policy there{where}:" in text


def test_the_page_stands_alone(tmp_path):
    path = write_fit_report(record(), tmp_path)
    text, page = path.read_text(encoding="utf-8"), Page(path)
    assert not re.search(r"https?://|@import|url\(", text)
    assert not page.of("script")
    assert not page.of("link")
    assert {a["src"].split(",")[0] for a in page.of("img")} == {"data:image/svg+xml;base64"}
    anchors = {a["id"] for a in page.of("section")}
    assert anchors <= {a["href"][1:] for a in page.of("a")} <= anchors | {a["id"] for a in page.of("dt")}


def test_the_page_says_all_that_the_record_has(tmp_path):
    text = Page(write_fit_report(record(), tmp_path)).text
    for words in (
        "a maze",
        "Warning. Three states are never entered",
        "−0.7800",
        "−12.4200",
        "−∞",
        "all alike",
        "robust std. error",
        "< 0.001",
        "log-likelihood",
        "−123.456",
        "0.71",
        "RBF(sigma='median')",
        "numpy",
        "Python 3",
        "messirl fit maze --lambda0 0.03",
        "expected visits",
    ):
        assert words in text


def test_a_record_with_nothing_but_a_model_has_a_report(tmp_path):
    path = write_fit_report(FitRecord("bare", fitted("endless")), tmp_path)
    page = Page(path)
    assert stems(tmp_path) == {"weights", "convergence"}
    assert {a["id"] for a in page.of("section")} == {"weights", "policy", "convergence", "settings", "glossary"}


@pytest.mark.slow
@pytest.mark.drawn
def test_two_calls_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_fit_report(record(), tmp_path / name)
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert len(one) == 13
    assert one == two


@pytest.mark.drawn
def test_names_may_be_anything(tmp_path):
    names = [BAD, "</title>\ud800 & \u202e$"]
    mdp = maze(
        discount=1.0,
        terminal=np.arange(9) == 8,
        feature_names=names,
        state_names=[f"{BAD}{s}" for s in range(9)],
        action_names=["$\\frac{$", "東", BAD, "_west"],
    )
    model = MaxEntIRL(ridge=0.1).fit(mdp, problem("episodic").expert)
    estimates = [{"name": name, "estimate": 1.0, "std_error": None, "p": float("nan")} for name in names]
    path = write_fit_report(
        record(
            model=model,
            title=BAD,
            scores=[Score(BAD, BAD, -1.0, -1.0, BAD), Score("$", "", None, -2.0)],
            estimates=estimates,
            statistics={BAD: float("nan")},
            settings={BAD: BAD},
            command=BAD + "\ud800",
            warnings=[BAD],
        ),
        tmp_path,
    )
    page = Page(path)
    assert not page.of("script")
    assert "東" in page.text
    assert any(a.get("title", "").startswith("<script>alert('$x_1$')</script> long") for a in page.of("span"))
    for svg in (tmp_path / "figures").glob("*.svg"):
        ET.fromstring(svg.read_text(encoding="utf-8"))


def test_a_fit_that_did_not_converge_is_warned_of_once(tmp_path):
    world = problem("endless")
    with pytest.warns(UserWarning, match="did not converge"):
        model = MaxEntIRL(max_iter=1).fit(world.mdp, world.expert)
    page = Page(write_fit_report(FitRecord("short", model), tmp_path))
    assert [a.get("class") for a in page.of("p")].count("warning") == 1
    assert "The fit did not converge: max_iter=1 iterations were done." in page.text
    said = FitRecord("short", model, warnings=["MaxEntIRL did not converge: …"])
    assert [a.get("class") for a in Page(write_fit_report(said, tmp_path)).of("p")].count("warning") == 1


def test_the_lead_is_two_sentences_with_the_best_baseline():
    words = lead(record())
    assert words.startswith(
        "MaxEnt-IRL was fitted to 10 expert and 500 unlabelled trajectories, in a problem of 9 states"
    )
    assert "the 464 held-out trajectories −0.780 nats per step; the best baseline, pooling, gives −0.820." in words
    assert lead(FitRecord("bare", fitted("steps"))).count(". ") == 1
    assert "features of steps" in lead(record("steps"))


def test_what_cannot_be_shown_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="the model of the record is not fitted"):
        write_fit_report(FitRecord("none", MaxEntIRL()), tmp_path)
    with pytest.raises(ValueError, match=r"xy has shape \(8, 2\).*one pair of coordinates for each of the 9"):
        write_fit_report(record(xy=np.zeros((8, 2))), tmp_path)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------ weights and scores


def test_weights_stand_by_size_with_their_intervals():
    one = record("finite")
    [ax] = axes_of(fit_figures.weights_figure, one)
    widths = np.array([bar.get_width() for bar in ax.patches])
    assert_array_equal(widths, one.model.theta_[np.argsort(-np.abs(one.model.theta_), kind="stable")])
    np.testing.assert_allclose(one.half_widths(), student.ppf(0.975, 6) * 0.2)
    assert len(ax.collections) == 1, "the intervals"
    assert not axes_of(fit_figures.weights_figure, replace(one, table=None))[0].collections


def test_penalised_weights_are_drawn_without_intervals():
    """They are no test of the weights: preferences are judged by a fit without the penalty."""
    mdp = maze(discount=1.0, terminal=np.arange(9) == 8, feature_names=["a", "b"])
    model = MaxEntIRL(ridge=0.1).fit(mdp, problem("episodic").expert)
    assert np.isnan(FitRecord("named", model, table=table_of(model)).half_widths()).all()


def test_many_features_are_cut_to_the_largest_and_that_is_said(tmp_path):
    rng = generator(0)
    mdp = maze(5, 10, features=rng.normal(size=(50, 45)), discount=0.9)
    expert = sample(mdp, soft_policy(mdp, np.zeros(50)), 40, 30, 0, start=np.full(50, 0.02))
    model = MaxEntIRL(ridge=1.0, theta_max=0.05, max_iter=200).fit(mdp, expert)
    one = FitRecord("wide", model)
    assert len(axes_of(fit_figures.weights_figure, one)[0].patches) == 40
    text = Page(write_fit_report(one, tmp_path)).text
    assert "The 40 largest of 45 are drawn." in text
    assert one.at_bound > 0
    assert f"{one.at_bound} of 45 are at the bound ±0.05." in text


def test_a_score_far_below_the_others_is_named_at_the_edge():
    [ax] = axes_of(fit_figures.scores_figure, SCORES)
    assert [text.get_text() for text in ax.texts] == ["◂ −13.20", "◂ −∞"]
    low, high = ax.get_xlim()
    dots = [line.get_xdata()[0] for line in ax.lines]
    assert len(dots) == 10
    assert all(low < x < high for x in dots)
    assert low > -2
    assert fit_figures.far_below(SCORES)
    assert not fit_figures.far_below(SCORES[2:4])


def test_a_single_score_is_a_number_and_no_figure(tmp_path):
    text = Page(write_fit_report(record(scores=[Score("alone", "expert", -1.5, None)]), tmp_path)).text
    assert "scores" not in stems(tmp_path)
    assert "−1.5000" in text
    assert "held out" not in text


# ------------------------------------------------------------ maps and policy


def test_a_graph_has_its_moves_below_the_dots_and_a_grid_has_tiles():
    def kinds(one):
        return [type(item) for item in axes_of(maps.maps_figure, one)[0].collections]

    grid, graph = record(), record("endless")
    assert kinds(grid)[0] is mpl.collections.QuadMesh
    assert kinds(graph)[:2] == [mpl.collections.LineCollection, mpl.collections.PathCollection]


def test_a_tree_on_even_coordinates_is_a_graph_and_not_a_grid():
    moves = np.zeros((6, 1, 6))
    moves[np.arange(6), 0, [3, 4, 5, 0, 1, 2]] = 1.0
    mdp = MDP(moves, np.ones((6, 1)), discount=0.9)
    places = np.array([[0, 0], [2, 0], [0, 2], [2, 2], [1, 1], [1, 0]])
    assert plot.on_grid(places)
    assert not map_axes.tiled(mdp, places), "moves jump over cells, and cells are empty"
    assert map_axes.tiled(maze(discount=0.95), plot.grid(3, 3))


@pytest.mark.slow
@pytest.mark.drawn
def test_states_never_met_and_numbers_that_are_none_are_grey_and_said(tmp_path):
    one = record()
    one.model.visitation_ = one.model.visitation_.copy()
    one.model.visitation_[[0, 3]] = 0.0
    one.model.reward_ = one.model.reward_.copy()
    one.model.reward_[[1, 4]] = np.nan, -np.inf
    left, right = axes_of(maps.maps_figure, one)[:2]
    for ax in (left, right):
        coloured, grey = (np.ma.masked_invalid(item.get_array()).count() for item in ax.collections[:2])
        assert (coloured, grey) == (7, 2)
    text = Page(write_fit_report(one, tmp_path)).text
    assert "Grey states have no expected visits: 2 of 9." in text
    assert "States without a finite value are grey." in text


@pytest.mark.slow
@pytest.mark.drawn
def test_states_without_coordinates_are_left_out_and_said(tmp_path):
    places = plot.grid(3, 3)
    places[[2, 8]] = np.nan
    text = Page(write_fit_report(record(xy=places), tmp_path)).text
    assert "Without coordinates and left out: 2 states." in text
    assert {"maps", "policy"} <= stems(tmp_path)
    nowhere = record(xy=np.full((9, 2), np.nan))
    write_fit_report(nowhere, tmp_path / "nowhere")
    assert "maps" not in stems(tmp_path / "nowhere")


def test_visits_of_very_different_size_have_a_logarithmic_scale():
    assert map_axes.widely_spread(np.array([1.0, 1.0, 0.0, 50.0, 1.0]))
    assert not map_axes.widely_spread(np.array([1.0, 2.0, 0.0, 5.0]))
    assert not map_axes.widely_spread(np.zeros(3))


def test_the_policy_is_towards_the_goal_visited_most_or_the_one_asked_for(tmp_path):
    one = record("goals")
    assert set(one.model.goals_) == {2, 8}
    most, least = sorted((2, 8), key=lambda goal: -one.model.visitation_[goal])
    assert one.towards == most
    asked = replace(one, goal=least)
    assert_array_equal(asked.policy, one.model.policy_[least])
    assert f"towards state {least}" in Page(write_fit_report(asked, tmp_path)).text


def test_the_table_of_the_policy_shows_the_states_visited_most_and_where_actions_lead(tmp_path):
    model = fitted("episodic")
    text = Page(write_fit_report(FitRecord("maze", model), tmp_path)).text
    choosing = np.where(model.policy_.sum(axis=1) > 0, model.visitation_, -1)
    first = int(np.argmax(choosing))
    action = int(np.argmax(model.policy_[first]))
    assert f"state {first}" in text
    to = int(np.argmax(model.mdp_.transitions.toarray().reshape(9, 4, 9)[first, action]))
    assert f"{model.policy_[first, action]:.2f} action {action} → state {to}" in text


@pytest.mark.drawn
def test_a_horizon_of_one_state_has_nothing_to_choose(tmp_path):
    mdp = maze(horizon=1, discount=0.9)
    with pytest.warns(UserWarning, match="determined only up to"):
        model = MaxEntIRL(ridge=0.1).fit(mdp, Trajectories.from_lists([[0], [1]]))
    text = Page(write_fit_report(FitRecord("one", model, plot.grid(3, 3)), tmp_path)).text
    assert "there is nothing to choose" in text
    assert "policy" not in stems(tmp_path)


def test_arrows_are_thinned_to_the_most_visited_state_of_each_part():
    at = plot.grid(60, 60)
    visits = np.zeros(3600)
    visits[[61, 3000]] = 1.0
    chosen = maps.most_visited(at, visits)
    assert len(chosen) == maps.ARROWS**2
    assert {61, 3000} <= set(chosen.tolist())
    assert len(np.unique(at[chosen] // 2, axis=0)) >= maps.ARROWS**2 * 0.9


def test_lines_join_the_states_that_a_move_joins():
    pairs = plot.joined(maze(discount=0.95))
    assert len(pairs) == 12
    assert (pairs[:, 0] < pairs[:, 1]).all()
    lines = plot.moves(maze(discount=0.95), plot.grid(3, 3)).collections[0]
    assert_array_equal([segment.tolist() for segment in lines.get_segments()], plot.grid(3, 3)[pairs])


def test_even_arrows_are_as_long_as_the_moves_agree():
    moves = np.zeros((4, 2, 4))
    moves[0, :, 1] = moves[1, 0, 0] = moves[1, 1, 2] = moves[2, :, 3] = moves[3, :, 2] = 1.0
    mdp = MDP(moves, np.ones((4, 1)), discount=0.5)
    with pytest.warns(UserWarning, match="determined only up to"):
        model = MaxEntIRL(ridge=1.0).fit(mdp, Trajectories.from_lists([[0, 1, 2, 3, 2, 3]]))
    places = [[0, 0], [1, 0], [2, 0], [102, 0]]
    arrows = plot.policy(model, places, even=True).collections[-1]
    np.testing.assert_allclose(arrows.XY[:, 0], [0, 2, 102], err_msg="state 1 goes either way, as often")
    np.testing.assert_allclose(arrows.U, [1, 1, -1])
    few = plot.policy(model, places, even=True, among=[2]).collections[-1]
    assert_array_equal(few.XY, [[2, 0]])


def test_on_a_logarithmic_scale_what_is_not_positive_is_grey():
    ax = plot.states([0.0, -1.0, 1e-9, 1.0, 10.0, np.nan], plot.grid(2, 3), logarithmic=True)
    coloured, grey = (np.ma.masked_invalid(item.get_array()) for item in ax.collections)
    assert sorted(coloured.compressed()) == [1e-9, 1.0, 10.0]
    assert grey.count() == 3
    assert ax.collections[0].get_clim() == (1e-3, 10.0)


# ------------------------------------------------------------ size


def large(side, irregular):
    """A fit that nobody had to wait for: many states, noise for a reward."""
    rng = generator(0)
    n = side * side
    row, column = np.divmod(np.arange(n), side)
    to = np.stack(
        [
            np.maximum(row - 1, 0) * side + column,
            row * side + np.minimum(column + 1, side - 1),
            np.minimum(row + 1, side - 1) * side + column,
            row * side + np.maximum(column - 1, 0),
        ],
        axis=1,
    )
    moves = sp.csr_array((np.ones(4 * n), to.ravel(), np.arange(4 * n + 1)), shape=(4 * n, n))
    mdp = MDP(moves, rng.normal(size=(n, 2)), discount=0.9, start=np.full(n, 1 / n))
    expert = sample(mdp, soft_policy(mdp, np.zeros(n)), 5, 30, 0)
    model = MaxEntIRL(ridge=1.0).fit(mdp, expert)
    return FitRecord("large", model, plot.grid(side, side) + irregular * rng.uniform(-0.3, 0.3, (n, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("irregular", [False, True], ids=["tiles", "dots"])
@pytest.mark.parametrize("side", [70, 317])
def test_a_page_of_very_many_states_stays_small(side, irregular, tmp_path):
    path = write_fit_report(large(side, irregular), tmp_path)
    assert path.stat().st_size < 3_000_000
    assert ("too many transitions to draw" in Page(path).text) == (side == 317 and irregular)


# ------------------------------------------------------------ names and numbers


def test_names_become_one_line_and_keep_their_ends():
    assert one_line(" a\n\tb\x00\u202e ") == "a b"
    assert one_line("\n") == "(no name)"
    cut = shorten("begin" + "x" * 200 + "end", 20)
    assert len(cut) == 20
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert name_html("a<b") == "a&lt;b"
    assert name_html("x" * 60, 10) == f'<span title="{"x" * 60}">xxxxxx…xxx</span>'


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "–"), (float("nan"), "undefined"), (-np.inf, "−∞"), (0.0, "0"), (-0.05, "−0.05000"), (1234.0, "1234")],
)
def test_numbers_have_so_many_digits_or_say_what_they_are(value, words):
    assert rounded(value) == words


def test_settings_and_statistics_may_be_missing_or_numbers(tmp_path):
    one = record(statistics={"AIC": None, "BIC": float("inf")}, settings={"horizon": None, "tol": 1e-6})
    text = Page(write_fit_report(one, tmp_path)).text
    assert "AIC–" in text
    assert "BIC∞" in text
    assert "tol1e-06" in text


def test_a_messi_fit_has_a_report_too(tmp_path):
    world = problem("episodic")
    model = MESSI(RBF("median", standardise=True), lambda0=0.03, max_iter=300).fit(*world)
    text = Page(write_fit_report(FitRecord("maze", model, counts={"expert": 12, "unlabelled": 8}), tmp_path)).text
    assert "MESSI was fitted to 12 expert and 8 unlabelled trajectories" in text


def test_numbers_have_no_more_digits_than_their_errors_settle():
    estimate = {"name": "a", "estimate": 1.16342, "std_error": 0.24251, "t": 4.7964, "robust_std_error": 0.2147}
    keys = ["estimate", "std_error", "t", "robust_std_error"]
    assert tables._estimate(estimate, keys) == ["1.163", "0.243", "4.80", "0.215"]
    assert tables._estimate({"estimate": 1.16342}, ["estimate"]) == ["1.163"]
    assert tables._estimate({**estimate, "std_error": np.nan, "robust_std_error": None}, keys)[0] == "1.163"
    ratio = SimpleNamespace(value=0.86681, std_error=0.07137, robust_std_error=0.07233)
    vars(ratio).update(low=0.72499, high=1.00853, fieller_low=0.72499, fieller_high=np.inf)
    wanted = ["0.8668", "0.0714", "0.0723", "[0.7250, 1.0085]", "[0.7250, ∞]"]
    assert tables._ratio(ratio) == wanted
    shown = [tables._measured(value) for value in (70.0, -562.5531, -8.163893, 0.4910714, None)]
    assert shown == ["70", "−562.553", "−8.1639", "0.491", "–"]
    assert tables._setting("0.013964568158453514") == "0.0139646"
    assert tables._setting("centre=array([-0.485057 , 0.05315429])") == "centre=array([-0.485057 , 0.0531543])"
    assert tables._setting("1e-06") == "1e-06"


def test_warnings_call_features_what_the_page_calls_them():
    said = tables.with_plain_names(["the weight of 'f_glass', 'f_up'"], ["f_glass", "f_up"])
    assert said == ["the weight of 'glass', 'up'"]
    assert tables.with_plain_names(["the weight of 3"], None) == ["the weight of 3"]
