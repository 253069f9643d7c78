"""The page of a diagnosis: one page that stands alone, whatever was found and whatever the names are."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from pages import Page
from seeds import generator

from messirl.diagnostics import Diagnosis, Direction
from messirl.report.fit import diagnosis_figures as figures, selection_figures
from messirl.report.fit.diagnosis import MEANING, write_diagnosis_report
from messirl.report.kit.images import render
from messirl.selection import Candidate, Choice, Likeness, Validation
from messirl.similarity import RBF, Exponential
from messirl.workflow.record import DiagnosisRecord, SelectionRecord

mpl.use("Agg")
BAD = "<script>alert('$x_1$')</script>\n\x00" + "long " * 40
ONE = RBF(1.0)
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
        Likeness(values, expert, Candidate("MaxEnt"), 1.0),
        moved if influence else None,
        [Direction(x, np.eye(4)[i]) for i, x in enumerate(shrinkages)],
        1.9,
        3,
    )
    return DiagnosisRecord(found, ids or [f"trip {j}" for j in range(u)], ["water", "home", "depth", "edge"], **WORDS)


def written(tmp_path, shown=None, **changes):
    page = write_diagnosis_report(replace(shown or record(), **changes), tmp_path)
    assert page == tmp_path / "diagnosis.html"
    return Page(page)


# ------------------------------------------------------------ the page


def test_the_page_stands_alone_and_every_link_leads_somewhere(tmp_path):
    page = written(tmp_path)
    anchors = {attributes["id"] for attributes in page.of("section")}
    assert {link["href"].removeprefix("#") for link in page.of("a")} == anchors
    assert all(image["src"].startswith("data:image/svg+xml;base64,") for image in page.of("img"))
    assert len(page.of("img")) == 4
    assert not page.of("script")
    assert not page.of("link")


def test_every_picture_is_a_file_too(tmp_path):
    written(tmp_path)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{n}.{e}" for n in ("likeness", "shares", "influence", "directions") for e in ("svg", "png")}


@pytest.mark.parametrize("verdict", ["help", "do not matter", "hurt"])
def test_the_verdict_comes_with_its_evidence(tmp_path, verdict):
    text = written(tmp_path, record(verdict=verdict)).text
    assert MEANING[verdict] in text
    assert "The experts are so and so." in text
    assert "The others are not." in text


def test_rankings_name_the_trajectories_in_order(tmp_path):
    shown = record()
    text = written(tmp_path, shown).text
    like = shown.diagnosis.likeness.unlabelled
    most, rest = text.split("Most like the expert’s")[1].split("Least like the expert’s")
    least, influential = rest.split("Most influential")
    names = [re.findall(r"trip (\d+)", part) for part in (most, least, influential)]
    assert names[0] == [str(j) for j in np.argsort(-like, kind="stable")[:10]]
    assert names[1] == [str(j) for j in np.argsort(-like, kind="stable")[::-1][:10]]
    moved = np.nan_to_num(shown.diagnosis.influence, nan=-1.0)
    assert names[2] == [str(j) for j in np.argsort(-moved, kind="stable")[:10]]


def test_few_trajectories_are_in_one_table_each(tmp_path):
    text = written(tmp_path, record(5)).text
    most, rest = text.split("Most like the expert’s")[1].split("Least like the expert’s")
    found = [set(re.findall(r"trip (\d+)", part)) for part in (most, rest.split("Most influential")[0])]
    assert len(found[0]) == len(found[1]) == 2
    assert not found[0] & found[1]


def test_directions_are_named_by_their_features(tmp_path):
    text = written(tmp_path).text
    assert "Of 3 directions of θ that the experts can decide, the penalty leaves them 1.9" in text
    assert re.search(r"90 %\s*\+1\.00\s+water", text)


def test_names_can_be_any_text(tmp_path):
    shown = record(6, ids=[f"{BAD}{j}" for j in range(6)])
    shown = replace(shown, features=[BAD, "$\\frac{", "", "ünï"])
    page = written(tmp_path, shown, title=BAD, warnings=[BAD])
    assert not page.of("script")
    assert "alert('$x_1$')" in page.text


def test_notes_are_warnings_at_the_top(tmp_path):
    assert "Warning. It did not converge" in written(tmp_path, warnings=["It did not converge"]).text


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


def test_what_is_far_outside_is_said_and_drawn_at_the_edge(tmp_path):
    shown = record(200, likeness=[-80.0, *np.linspace(-0.2, 0.3, 199)])
    assert figures.beyond(shown) == 1
    assert figures.likeness_limits(shown)[0] > -1.0
    assert "Far outside, and drawn at the edge: 1." in written(tmp_path, shown).text
    assert "Far outside" not in written(tmp_path, record()).text


def test_the_same_diagnosis_gives_the_same_bytes(tmp_path):
    pages = [write_diagnosis_report(record(), tmp_path / name).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


# ------------------------------------------------------------ figures


def test_no_bar_of_the_histogram_is_both_above_and_below_zero():
    drawn = figures.likeness_figure(record(100))
    edges = {round(patch.get_x(), 9) for patch in drawn.axes[0].patches}
    assert 0.0 in edges
    assert sum(patch.get_height() for patch in drawn.axes[0].patches) == 100


def test_frames_hold_zero_and_the_experts():
    for expert in (-3.0, 0.0, 2.0):
        low, high = figures.likeness_limits(record(expert=expert))
        assert low < min(0.0, expert)
        assert max(0.0, expert) < high


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0 %"), (0.001, "< 1 %"), (0.5, "50 %"), (0.999, "> 99 %"), (1.0, "100 %")]
)
def test_per_cent_does_not_call_little_nothing_or_most_all(share, text):
    assert figures.whole_per_cent(share) == text


# ------------------------------------------------------------ the figure of a choice


def validation(*, similarities=(ONE,), pooling=0.05, gains=(0.1, 0.2)):
    every = [Candidate("MaxEnt")]
    every += [Candidate("MESSI", x, s) for s in similarities for x in (1.0, 0.1)]
    every += [Candidate("Ridge", x) for x in (1.0, 0.1)]
    every += [] if pooling is None else [Candidate("Pooling")]
    mean = [0.0, *list(gains) * (len(similarities) + 1), *([] if pooling is None else [pooling])]
    scores = -1.0 + np.array(mean)[:, None] + 0.01 * generator(0).normal(size=(len(every), 4))
    return Validation(every, scores, scores, np.ones(len(every)))


def drawn(found, index):
    kept = []

    def make():
        kept.append(selection_figures.gains_figure(SelectionRecord(found, Choice(index, found.candidates[index], ""))))
        return kept[0]

    image = render("gains", make)
    return kept[0], image


def test_the_chosen_candidate_has_a_ring():
    found = validation()
    figure, image = drawn(found, 2)
    assert image.png.startswith(b"\x89PNG")
    rings = [line for line in figure.axes[0].lines if line.get_markersize() == 10]
    assert len(rings) == 1
    assert rings[0].get_ydata()[0] == pytest.approx(found.gains()[0][2])
    assert figure.axes[0].get_title(loc="left") == "chosen: MESSI λ0=0.1 RBF(sigma=1.0, standardise=False)"


def test_where_no_penalty_is_chosen_the_title_says_so():
    figure, _ = drawn(validation(), 0)
    assert figure.axes[0].get_title(loc="left") == "chosen: λ0 = 0, the zero line"
    assert not [line for line in figure.axes[0].lines if line.get_markersize() == 10]


def test_every_method_is_in_the_legend_and_several_similarities_by_name():
    figure, _ = drawn(validation(), 1)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["MESSI", "L2", "pooling"]
    figure, _ = drawn(validation(similarities=(RBF(1.0), Exponential(2.0))), 1)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 4
    assert labels[0].startswith("MESSI, RBF(")
    assert labels[1].startswith("MESSI, Exponential(")


def test_losses_far_below_are_arrows_at_the_edge():
    figure, _ = drawn(validation(gains=(-50.0, 0.2), pooling=-90.0), 2)
    low, _ = figure.axes[0].get_ylim()
    assert low > -5.0
    arrows = [line for line in figure.axes[0].lines if line.get_marker() == "v" and line.get_xdata().size]
    assert len(arrows) == 2
    assert "pooling (below)" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_candidates_without_a_finite_score_are_drawn_too():
    figure, _ = drawn(validation(gains=(-np.inf, 0.2), pooling=-np.inf), 0)
    assert np.isfinite(figure.axes[0].get_ylim()).all()


def test_without_any_strength_there_is_nothing_to_draw():
    only = Validation([Candidate("MaxEnt")], np.zeros((1, 2)), np.zeros((1, 2)), np.ones(1))
    assert selection_figures.gains_figure(SelectionRecord(only, Choice(0, only.candidates[0], ""))) is None
