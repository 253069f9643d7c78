"""The page of a diagnosis: one page that stands alone, whatever was found and whatever the names are."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from pages import Page
from seeds import generator

from messirl.app.report.common.images import render
from messirl.app.report.fit import diagnosis_figures as figures, selection_figures
from messirl.app.report.fit.diagnosis_page import write_diagnosis_report
from messirl.app.workflow.record import DiagnosisRecord, SelectionRecord
from messirl.inference.paired_gain import Gain
from messirl.selection import Candidate, Validation
from messirl.selection.candidates import make_candidates
from messirl.selection.decision_rule import Choice, UnlabelledGain, default_index
from messirl.selection.diagnostics import Diagnosis, Direction
from messirl.selection.expert_agreement import ExpertAgreement
from messirl.similarity import RBF, Exponential

mpl.use("Agg")
BAD = "<script>alert('$x_1$')</script>\n\x00" + "long " * 40
ONE = RBF(1.0)
GAINS = {
    "help": (Gain(0.02, 0.01, 0.03), "helped to predict held-out experts: +0.020 nats per step [0.010, 0.030] by"),
    "unclear": (Gain(0.02, -0.01, 0.05), "made no clear difference"),
    "hurt": (Gain(-0.02, -0.03, -0.01), "hurt the prediction of held-out experts: "),
}
WORDS = {"title": "a maze", "settings": {"lambda0": "3"}, "command": "messirl"}


def record(u=30, *, likeness=None, expert=0.3, influence=True, verdict="help", ids=None, shrinkages=(0.9, 0.2, 0.0)):
    """Everything a diagnosis may hold, of u trajectories."""
    rng = generator(0)
    values = rng.normal(0.05, 0.2, u) if likeness is None else np.array(likeness, dtype=float)
    moved = np.full(u, np.nan)
    moved[: u // 2] = rng.random(u // 2)
    share = rng.random(u)
    found = Diagnosis(
        verdict,
        ["the experts are so and so", "the others are not"],
        rng.random(u),
        share / share.sum(),
        ExpertAgreement(values, expert, 1.0, Gain(0.1, 0.05, 0.15)),
        moved if influence else None,
        [Direction(x, np.eye(4)[i]) for i, x in enumerate(shrinkages)],
        1.9,
        3,
        use=UnlabelledGain(verdict, GAINS[verdict][0], Candidate("LightPooling", 0.01), Candidate("MaxEnt")),
    )
    return DiagnosisRecord(found, ids or [f"trip {j}" for j in range(u)], ["water", "home", "depth", "edge"], **WORDS)


def written(tmp_path, shown=None, **changes):
    page = write_diagnosis_report(replace(shown or record(), **changes), tmp_path)
    assert page == tmp_path / "report.html"
    return Page(page)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of the page of `record()` as it is."""
    place = tmp_path_factory.mktemp("usual")
    written(place)
    return place


@pytest.fixture(scope="module")
def usual(folder):
    return Page(folder / "report.html")


# ------------------------------------------------------------ the page


def test_the_page_stands_alone_and_every_link_leads_somewhere(usual):
    anchors = {attributes["id"] for attributes in usual.of("section") + usual.of("dt")}
    assert {link["href"].removeprefix("#") for link in usual.of("a")} <= anchors
    assert {attributes["id"] for attributes in usual.of("section")} <= {a["href"][1:] for a in usual.of("a")}
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in usual.of("img"))
    assert len(usual.of("img")) == 5
    assert not usual.of("script")
    assert not usual.of("link")


def test_every_picture_is_a_file_too(folder):
    names = {path.name for path in (folder / "figures").iterdir()}
    assert names == {
        f"{n}.{e}" for n in ("use", "likeness", "shares", "influence", "directions") for e in ("svg", "png")
    }


@pytest.mark.parametrize("verdict", ["help", "unclear", "hurt"])
def test_the_verdict_comes_with_its_evidence(tmp_path, verdict):
    text = written(tmp_path, record(verdict=verdict)).text
    assert f"Using the 30 unlabelled trajectories {GAINS[verdict][1]}" in text
    assert "The experts are so and so." in text
    assert "The others are not." in text


def test_rankings_name_the_trajectories_in_order(usual):
    shown, text = record(), usual.text
    like = shown.diagnosis.agreement_with_experts.unlabelled
    most, rest = text.split("Highest agreement")[1].split("Lowest agreement")
    least, influential = rest.split("Most influential")
    names = [re.findall(r"trip (\d+)", part) for part in (most, least, influential)]
    assert names[0] == [str(j) for j in np.argsort(-like, kind="stable")[:10]]
    assert names[1] == [str(j) for j in np.argsort(-like, kind="stable")[::-1][:10]]
    moved = np.nan_to_num(shown.diagnosis.influence, nan=-1.0)
    assert names[2] == [str(j) for j in np.argsort(-moved, kind="stable")[:10]]


def test_rankings_show_the_shrunken_agreement_with_its_interval_and_the_raw_value(tmp_path):
    values, steps = [0.9, 0.3, 0.25, 0.0, -0.2, -0.8], np.array([2, 200, 200, 200, 200, 2])
    shown = record(6, likeness=values)
    like = replace(shown.diagnosis.agreement_with_experts, steps=steps, variance=1.0)
    shown = replace(shown, diagnosis=replace(shown.diagnosis, agreement_with_experts=like))
    text = written(tmp_path, shown).text
    most, least = text.split("Highest agreement")[1].split("Lowest agreement")
    assert re.findall(r"trip (\d+)", most) == ["1", "2", "0"], "two steps are no reason to be first"
    assert re.findall(r"trip (\d+)", least.split("Most influential")[0]) == ["4", "3", "5"]
    found = like.agreement
    for j, part in ((0, most), (1, most), (4, least)):
        ends = f"[{found.low[j]:.3f},{found.high[j]:.3f}]"
        cells = f"{found.values[j]:+.3f}{ends}{values[j]:+.3f}{steps[j]}".replace("-", "−")
        assert f"trip{j}{cells}" in re.sub(r"\s", "", part)
    assert "ordered by the lower end" in text


def test_few_trajectories_are_in_one_table_each(tmp_path):
    text = written(tmp_path, record(5)).text
    most, rest = text.split("Highest agreement")[1].split("Lowest agreement")
    found = [set(re.findall(r"trip (\d+)", part)) for part in (most, rest.split("Most influential")[0])]
    assert len(found[0]) == len(found[1]) == 2
    assert not found[0] & found[1]


def test_directions_are_named_by_their_features(usual):
    text = usual.text
    assert "Of 3 directions of θ that the experts identify, the penalty leaves 1.9" in text
    assert re.search(r"90 %\s*\+1\.00\s+water", text)


@pytest.mark.drawn
def test_names_can_be_any_text(tmp_path):
    shown = record(6, ids=[f"{BAD}{j}" for j in range(6)])
    shown = replace(shown, features=[BAD, "$\\frac{", "", "ünï"])
    page = written(tmp_path, shown, title=BAD, warnings=[BAD])
    assert not page.of("script")
    assert "alert('$x_1$')" in page.text


def test_notes_are_warnings_at_the_top(tmp_path):
    assert "Warning. It did not converge" in written(tmp_path, warnings=["It did not converge"]).text


@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize(
    "changes",
    [
        {"u": 1},
        {"u": 2, "influence": False},
        {"u": 3, "likeness": [-np.inf, -np.inf, -np.inf]},
        {"u": 3, "likeness": [-np.inf, 0.2, 0.1]},
        {"u": 3, "likeness": [0.0, 0.0, 0.0], "expert": 0.0},
        {"u": 40, "likeness": [-80.0, *[0.1] * 39]},
        {"shrinkages": (0.0, 0.0)},
        {"shrinkages": ()},
        {"expert": -5.0},
        {"u": 1500},
    ],
)
def test_whatever_was_found_there_is_a_page(tmp_path, changes):
    page = written(tmp_path, record(**changes))
    assert "Do they help?" in page.text


@pytest.mark.drawn
def test_what_is_far_outside_is_said_and_drawn_at_the_edge(usual, tmp_path):
    shown = record(200, likeness=[-80.0, *np.linspace(-0.2, 0.3, 199)])
    assert figures.count_beyond_limits(shown) == 1
    assert figures.agreement_limits(shown)[0] > -1.0
    assert "Far outside, and drawn at the edge: 1." in written(tmp_path, shown).text
    assert "Far outside" not in usual.text


@pytest.mark.slow
@pytest.mark.drawn
def test_the_same_diagnosis_gives_the_same_bytes(folder, tmp_path):
    again = write_diagnosis_report(record(), tmp_path)
    assert again.read_bytes() == (folder / "report.html").read_bytes()


# ------------------------------------------------------------ figures


def test_no_bar_of_the_histogram_is_both_above_and_below_zero():
    drawn = figures.agreement_figure(record(100))
    edges = {round(patch.get_x(), 9) for patch in drawn.axes[0].patches}
    assert 0.0 in edges
    assert sum(patch.get_height() for patch in drawn.axes[0].patches) == 100


def test_frames_hold_zero_and_the_experts():
    for expert in (-3.0, 0.0, 2.0):
        low, high = figures.agreement_limits(record(expert=expert))
        assert low < min(0.0, expert)
        assert max(0.0, expert) < high


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.001, "< 1 %"), (0.5, "50 %"), (0.999, "> 99 %"), (1.0, "100 %")]
)
def test_per_cent_does_not_call_little_nothing_or_most_all(share, text):
    assert figures.whole_per_cent(share) == text


# ------------------------------------------------------------ the figure of a choice

ROWS = {"MESSI": 0.1, "RidgeStd": 0.05, "ReferenceStd": 0.15, "LightPoolingStd": -0.05}


def validation(similarities=(ONE,), unlabelled=True, **means):
    """Every candidate at three λ0, on eight held-out trajectories; `means` are gains of methods over the default."""
    every = make_candidates(similarities, (0.01, 0.1, 1.0), unlabelled=unlabelled)
    default = default_index(every, unlabelled=unlabelled)
    gain = np.array([(ROWS | means).get(c.method, 0.0) for c in every])
    gain[default] = 0.0
    noise = 0.01 * generator(0).normal(size=(len(every), 8))
    return Validation(every, 5 * (gain[:, None] + noise - 1.0), np.full(8, 5)), default


def drawn(found, default, index):
    kept = []

    def make():
        choice = Choice(index, found.candidates[index], "", default)
        kept.append(selection_figures.gains_figure(SelectionRecord(found, choice, None)))
        return kept[0]

    assert render("gains", make).png.startswith(b"\x89PNG")
    return kept[0]


def rings(figure):
    """Where the rings are: the panel, x and y."""
    lines = [(panel, line) for panel, ax in enumerate(figure.axes) for line in ax.lines if line.get_markersize() == 10]
    return [(panel, float(line.get_xdata()[0]), float(line.get_ydata()[0])) for panel, line in lines]


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.drawn
def test_the_chosen_candidate_has_a_ring_at_its_gain():
    found, default = validation()
    index = found.candidates.index(Candidate("MESSI", 0.1, ONE))
    figure = drawn(found, default, index)
    [(panel, x, y)] = rings(figure)
    assert panel == 0
    assert x == pytest.approx(0.1, rel=0.3)
    assert y == pytest.approx(found.scores[index] - found.scores[default])
    assert figure.axes[0].get_title(loc="left") == "chosen: MESSI λ0=0.1 RBF(sigma=1.0, standardise=False)"


def test_the_gain_of_the_default_is_zero_and_stands_by_its_weight():
    found, default = validation()
    [(panel, x, y)] = rings(drawn(found, default, default))
    assert (panel, y) == (1, 0.0)
    assert x == pytest.approx(0.01)


@pytest.mark.parametrize("strength", [2.0, 50.0])
def test_a_base_policy_of_another_strength_is_drawn_where_it_is_chosen(strength):
    found, default = validation()
    index = next(i for i, c in enumerate(found.candidates) if c.strength == strength)
    assert f"base policy with L2, strength {strength:g}" not in labels(drawn(found, default, default))
    figure = drawn(found, default, index)
    assert f"base policy with L2, strength {strength:g}" in labels(figure)
    assert len(rings(figure)) == 1


def test_where_no_penalty_is_chosen_the_title_says_so_and_nothing_has_a_ring():
    found, default = validation()
    figure = drawn(found, default, 0)
    assert figure.axes[0].get_title(loc="left") == "chosen: MaxEnt-IRL"
    assert not rings(figure)


def test_every_method_is_in_the_legend_once_and_several_similarities_by_name():
    found, default = validation()
    usual = ["experts only (L2, standardised)", "MESSI", "complete graph", "base policy with L2"]
    assert labels(drawn(found, default, default)) == [*usual, "light pooling with L2"]
    found, default = validation((RBF(1.0), Exponential(2.0)))
    told = labels(drawn(found, default, default))
    assert len(told) == 6
    assert told[1].startswith("MESSI, RBF(")
    assert told[2].startswith("MESSI, Exponential(")


@pytest.mark.drawn
def test_losses_beyond_the_edge_are_arrows_there():
    found, default = validation(RidgeStd=-50.0)
    figure = drawn(found, default, default)
    low, _ = figure.axes[0].get_ylim()
    assert low > -5.0
    arrows = [line for line in figure.axes[0].lines if line.get_linestyle() == "None" and line.get_marker() == "v"]
    at = [y for line in arrows for y in line.get_ydata()]
    assert len(at) == 3  # the λ0 of the ridge
    assert all(low < y < 0.9 * low for y in at)


@pytest.mark.drawn
@pytest.mark.parametrize("lost", ["RidgeStd", "MESSI", "LightPoolingStd"])
def test_candidates_without_a_finite_score_are_drawn_too(lost):
    found, default = validation(**{lost: -np.inf})
    assert np.isfinite(drawn(found, default, 0).axes[0].get_ylim()).all()


def test_without_unlabelled_trajectories_there_is_no_panel_of_weights():
    found, default = validation(unlabelled=False)
    figure = drawn(found, default, default)
    assert [ax.get_visible() for ax in figure.axes] == [True, False]
    assert labels(figure) == ["experts only (L2, standardised)"]
    assert rings(figure)[0][2] == 0.0


def test_where_nothing_was_held_out_nothing_is_drawn():
    choice = Choice(0, Candidate("MaxEnt"), "", 0)
    assert selection_figures.gains_figure(SelectionRecord(None, choice, None)) is None


def test_of_very_many_trajectories_those_with_large_shares_are_drawn_and_some_others(monkeypatch):
    monkeypatch.setattr(figures, "DOTS", 10)
    share = generator(3).permutation(1000) / 499_500
    drawn = figures._dots(share)
    assert drawn.size == np.unique(drawn).size == 10
    assert set(np.argsort(-share)[:5]) <= set(drawn)
    np.testing.assert_array_equal(figures._dots(share[:10]), np.arange(10))
