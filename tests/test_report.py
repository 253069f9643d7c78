"""The report: one page that stands alone, figures beside it, from whatever a table has, the same bytes every time."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.colors import to_hex
from pages import sketched

from messirl.app.report.common.dark_mode_svg import COLOURS
from messirl.app.report.common.images import render, write_bytes
from messirl.app.report.common.interval_plot import gains_figure
from messirl.app.report.common.markup import Html, join, tag
from messirl.app.report.common.method_style import MAIN, RC, STYLES, domain_name, sort_domains, style_of
from messirl.app.report.common.number_format import decimals, fixed, mean_and_interval
from messirl.app.report.paper import captions, claim_tables, curve_panel, summary
from messirl.app.report.paper.gallery import file_names
from messirl.app.report.paper.paper_figures import domains_figure, em_figure, exact_figure, gain_figure, paper_figure
from messirl.app.report.paper.provenance import command, provenance
from messirl.app.report.paper.reproduction_page import write_report
from messirl.inference.paired_gain import Gain
from messirl.paper.experiments.claim_tests import FAILS, HOLDS, UNDECIDED
from messirl.paper.experiments.claims import evaluate_claims
from messirl.paper.experiments.curves import Curve, Curves, Interval
from messirl.paper.experiments.paper_settings import QUICK, SETTINGS
from messirl.paper.experiments.result_store import SCHEMA

LEVELS = {
    "MaxEnt": -0.05,
    "MESSIMAX": -0.02,
    "MESSI-mu1": -0.03,
    "MESSI-mu2": -0.04,
    "MESSI-mu3": -0.06,
    "Ridge": -0.05,
}
POINTS = {"unlabelled": (0.0, 1.0, 100.0), "nu": (0.0, 0.5, 1.0), "lambda": (0.0, 0.05, 50.0)}
ALL = ("iterations", "unlabelled", "nu", "lambda", "em")
BAD = "<script>alert('x')</script>"


def results(domains=("pit",), figures=ALL, methods=tuple(LEVELS), runs=3, exact=True, last=40):
    """A small table with the columns of a real one; nothing is trained."""
    random, rows = np.random.RandomState(0), []

    def put(domain, figure, method, x, run, value):
        setting = SETTINGS.get(domain)
        rows.append(
            {
                "domain": domain,
                "figure": figure,
                "method": method,
                "x": float(x),
                "run": run,
                "iteration": int(x) if figure in ("iterations", "em") else last,
                "performance": value + 0.002 * random.standard_normal(),
                "theta_norm": float(x),
                "objective": 0.0,
                "converged": True,
                "seed": 1000 + run,
                "config_hash": setting.config_hash if setting else "none",
                "version": "0.0.1",
                "commit": "abc",
            }
        )

    solvers = ("", "/exact") if exact else ("",)
    for domain in domains:
        for run in range(runs):
            for figure in figures:
                if figure == "em":
                    chosen = (
                        "MESSIMAX",
                        "MESSI-mu1",
                        "MESSI-mu2",
                        *(f"EM-{e}{s}" for e in (1, 50) for s in ("", "-mu2")),
                    )
                else:
                    chosen = methods
                for method in chosen:
                    level = LEVELS.get(method, -0.2)
                    if figure in ("iterations", "em"):
                        for t in range(last + 1):
                            put(domain, figure, method, t, run, level - 0.4 / (1 + t))
                    else:
                        for x in POINTS[figure]:
                            for solver in solvers:
                                put(domain, figure, method + solver, x, run, level * (1 + x / 100))
                if figure == "iterations" and exact:
                    for method in methods:
                        put(domain, figure, method + "/exact", 500, run, LEVELS.get(method, -0.2))
    return pa.Table.from_pylist(rows, schema=SCHEMA)


class Parser(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def of(self, name):
        return [attributes for tag_, attributes in self.tags if tag_ == name]


@pytest.fixture(scope="module")
def curves():
    return Curves(results())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A report of one domain with everything, its figures not drawn."""
    out = tmp_path_factory.mktemp("report")
    table = results()
    claims = evaluate_claims(table)
    with sketched():
        return write_report(table, claims, out), claims


# ------------------------------------------------------------ the page


@pytest.mark.slow
def test_the_page_and_all_figures_are_written(whole):
    page, _ = whole
    assert page.name == "report.html"
    names = {path.name for path in (page.parent / "figures").iterdir()}
    stems = ("domains", "pit-answer", "pit", "pit-gain", "pit-em", "pit-exact")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    assert {path.name for path in page.parent.iterdir()} == {"report.html", "figures"}


def test_the_page_stands_alone(whole):
    text = whole[0].read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "@import" not in text
    assert "url(" not in text
    page = Parser(text)
    assert not page.of("script")
    assert not page.of("link")
    assert {a["src"].split(",")[0] for a in page.of("img")} == {"data:image/svg+xml;base64"}
    assert all(a["href"].startswith("#") for a in page.of("a"))
    anchors = {a["id"] for a in page.of("section")}
    linked = {a["href"][1:] for a in page.of("a")}
    assert anchors <= linked <= anchors | {a["id"] for a in page.of("dt") if "id" in a}


def test_the_page_says_what_was_found_and_where_it_comes_from(whole):
    page, claims = whole
    text = Parser(page.read_text(encoding="utf-8")).text
    for claim in claims:
        assert claim_tables.words(claim["text"]) in text
        assert claim_tables.words(claim["test"]) in text
    for words in (
        "messirl 0.0.1",
        "commit abc",
        "seeds 1000 to 1002",
        "numba",
        "scikit-learn",
        "--domain pit",
        "3 runs",
    ):
        assert words in text
    for verdict in {claim["verdict"] for claim in claims}:
        assert verdict in text
    assert "MESSI(μ1)" in text
    assert "mu1" not in text
    assert SETTINGS["pit"].config_hash in text


@pytest.mark.slow
@pytest.mark.drawn
def test_two_calls_give_the_same_bytes(tmp_path):
    table = results(figures=("nu",))
    claims = evaluate_claims(table)
    for name in ("one", "two"):
        write_report(table, claims, tmp_path / name)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert files == sorted(
        path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*") if path.is_file()
    )
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path


@pytest.mark.slow
def test_svg_files_are_whole_and_undated(tmp_path):
    table = results()
    drawn = list((write_report(table, evaluate_claims(table), tmp_path).parent / "figures").glob("*.svg"))
    assert drawn
    for path in drawn:
        text = path.read_text(encoding="utf-8")
        ET.fromstring(text)
        assert "dc:date" not in text
        assert "<image" not in text or path.stem == "domains"


@pytest.mark.drawn
def test_names_with_tags_are_text(tmp_path):
    table = results(domains=(BAD,), figures=("iterations",), methods=("MaxEnt", "MESSIMAX", BAD), exact=False)
    claim = {"id": BAD, "text": BAD, "where": BAD, "test": BAD, "domain": BAD, "solver": "paper", "verdict": HOLDS}
    page = write_report(table, [{**claim, "evidence": None, "note": BAD}], tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert BAD in Parser(text).text
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"script-alert-x-script{kind}.{form}" for kind in ("", "-gain", "-answer") for form in ("svg", "png")
    }


@pytest.mark.drawn
@pytest.mark.parametrize(
    ("arguments", "stems"),
    [
        (
            {"domains": ("highway-far",), "figures": ("iterations",), "methods": MAIN, "exact": False},
            {"", "-gain", "-answer"},
        ),
        ({"figures": ("lambda",), "methods": ("MESSI-mu1",)}, {"", "-exact"}),
        ({"figures": ("em",)}, {"-em"}),
        ({"figures": ("unlabelled",), "methods": ("MaxEnt", "Pooling"), "runs": 1}, {"", "-gain", "-exact"}),
    ],
)
def test_a_part_of_the_results_gives_a_report_too(arguments, stems, tmp_path, monkeypatch):
    monkeypatch.setattr("messirl.app.report.paper.gallery.domains_figure", lambda _: None)  # drawn in other tests
    table = results(**arguments)
    page = write_report(table, evaluate_claims(table), tmp_path)
    domain = table["domain"][0].as_py()
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {domain + stem for stem in stems}
    text = Parser(page.read_text(encoding="utf-8")).text
    assert f"--domain {domain}" in text
    assert "nan" not in text.lower().replace("finance", "")


def test_results_without_claims_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr("messirl.app.report.paper.gallery.domains_figure", lambda _: None)
    page = write_report(results(figures=("em",)), [], tmp_path)
    assert "No claim could be decided" in page.read_text(encoding="utf-8")


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path):
    target = tmp_path / "page.html"
    write_bytes(target, b"old")
    with pytest.raises(TypeError):
        write_bytes(target, None)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


# ------------------------------------------------------------ claims


def claim(domain="pit", solver="paper", verdict=HOLDS, where="section 4, Results", name="a"):
    return {
        "id": name,
        "text": f"Claim {name}.",
        "where": where,
        "test": "paired",
        "domain": domain,
        "solver": solver,
        "verdict": verdict,
        "evidence": {"mean": 0.01234, "low": 0.0021, "high": 0.0226, "n": 50},
        "note": "",
    }


def test_verdicts_that_differ_between_the_solvers_are_listed_apart():
    rows = [claim(), claim(solver="exact", verdict=FAILS), claim(name="b"), claim(name="b", solver="exact")]
    rows += [claim(name="c"), claim(name="c", solver="exact", verdict=UNDECIDED), claim(name="d")]
    text = Parser(claim_tables.differences(rows)).text
    assert "differ in 2 of 3 cases: in 1 the verdicts are opposite, in 1 one solver decides" in text
    assert "Claim a." in text
    assert "Claim b." not in text
    assert (
        text.index("Opposite verdicts") < text.index("Claim a.") < text.index("Decided by one") < text.index("Claim c.")
    )
    assert "one solver only" in claim_tables.differences([claim()])


def test_the_summary_counts_the_sceptics_questions_apart():
    rows = [claim(), claim(name="b", verdict=FAILS), claim(name="s", where="not in the paper", verdict=FAILS)]
    assert "1 of 2 verdicts on the paper’s claims are “holds”, 1 “does not hold” and 0" in claim_tables.sentence(rows)
    page = Parser(claim_tables.tally(rows))
    assert "The paper’s claims" in page.text
    assert "better than the other baselines?" in page.text


def test_a_claim_shows_its_mean_difference_and_interval_in_words_and_digits():
    text = claim_tables.tables([claim()])
    assert 'class="verdict holds">✓ holds<' in text
    assert "+0.012" in text
    assert "[0.002, 0.023]" in text
    assert "Results" in text
    assert "section 4" in text


def test_claims_of_one_place_stand_in_one_table():
    rows = [claim(), claim(where="App. B.2", name="b"), claim(name="c")]
    assert len(Parser(claim_tables.tables(rows)).of("table")) == 2


# ------------------------------------------------------------ numbers and words


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Interval(0.0279850, 0.0212929, 0.0346770, 50), ("+0.0280", "[0.0213, 0.0347]")),
        (Interval(53.02, 40.0, 66.0, 50), ("+53", "[40, 66]")),
        (Interval(0.25, 0.002, 0.498, 50), ("+0.250", "[0.002, 0.498]")),
        (Interval(-1e-9, -0.01, 0.01, 50), ("0.000", "[−0.010, 0.010]")),
        (Interval(0.0, 0.0, 0.0, 50), ("0", "in every run")),
        (Interval(1.7e-5, 1.7e-5, 1.7e-5, 50), ("+0.00002", "in every run")),
        (Interval(53.015441, 53.015440, 53.015442, 50), ("+53.0154", "in every run")),
        (Interval(0.5, -np.inf, np.inf, 1), ("+0.5000", "one run: no interval")),
    ],
)
def test_numbers_have_the_digits_their_interval_supports(found, expected):
    assert mean_and_interval(found, signed=True) == expected


def test_what_is_not_a_number_says_so():
    assert fixed(float("nan"), 3) == "undefined"
    assert fixed(float("-inf"), 3) == "−∞"
    assert decimals(1e-12) == 5


def test_every_method_has_a_look_of_its_own():
    looks = list(STYLES.values())
    assert (
        len({o.label for o in looks}) == len({o.colour for o in looks}) == len({o.marker for o in looks}) == len(looks)
    )
    assert style_of("MESSI-mu1/exact") == style_of("MESSI-mu1")
    em = [style_of(f"EM-{eta}", (1, 5, 10, 20, 50)) for eta in (1, 5, 10, 20, 50)]
    assert len({o.colour for o in em}) == len({o.marker for o in em}) == 5
    assert style_of("EM-5-mu2", (1, 5)) == style_of("EM-5", (1, 5))
    assert style_of("something else").label == "something else"


def test_domains_come_in_the_papers_order_and_in_words():
    assert sort_domains(["zoo", "pit", "highway-far", "gridworld", "highway"]) == [
        "highway",
        "gridworld",
        "pit",
        "highway-far",
        "zoo",
    ]
    assert domain_name("pit against gridworld") == "Pit against grid-world"
    assert file_names(["a b", "a/b", "../.."]) == {"a b": "a-b", "a/b": "a-b-again", "../..": "domain"}


def test_text_is_escaped_and_html_is_not():
    assert tag("p", "a < b", tag("b", "&"), class_='"') == '<p class="&quot;">a &lt; b<b>&amp;</b></p>'
    assert join(["<", Html("<br>")], "&") == "&lt;&amp;<br>"


# ------------------------------------------------------------ origin


def test_the_command_is_the_one_that_makes_the_table():
    assert command(provenance(results())) == "messirl reproduce --domain pit --runs 3 --seed 1000"
    some = provenance(results(figures=("nu", "em")))
    assert command(some) == "messirl reproduce --domain pit --figure nu --figure em --runs 3 --seed 1000"
    assert not some.stale
    column = SCHEMA.get_field_index("config_hash")

    def hashed(text):
        table = results(figures=("iterations",))
        return provenance(table.set_column(column, "config_hash", pa.array([text] * table.num_rows)))

    assert hashed(QUICK["pit"].config_hash).quick
    assert "--quick" in command(hashed(QUICK["pit"].config_hash))
    assert hashed("another").stale == ["pit"]


# ------------------------------------------------------------ figures


def axes_of(make):
    """The axes of a figure in our style, not drawn."""
    import matplotlib.style

    with matplotlib.style.context(["default", RC]):
        return make().axes


def test_the_four_panels_are_in_the_papers_order(curves):
    axes = axes_of(lambda: paper_figure(curves, "pit"))
    assert len(axes) == 8
    assert [ax.get_xlabel().split()[0] for ax in axes[4:]] == ["iterations", "unlabelled", "share", "regularisation"]
    assert [len(ax.lines) for ax in axes] == [5, 6, 6, 6, 3, 4, 4, 4]  # with the dotted line; below two and a baseline


def test_gains_are_paired_with_maxent(curves):
    found = curve_panel.gain(curves["pit", "nu", "MESSI-mu1"], curves["pit", "nu", "MaxEnt"])
    expected = curves["pit", "nu", "MESSI-mu1"].performance - curves["pit", "nu", "MaxEnt"].performance
    np.testing.assert_array_equal(found.performance, expected)
    assert len(axes_of(lambda: gain_figure(curves, "pit"))) == 8


def test_a_gain_over_a_training_that_ended_early_is_over_its_end():
    x = np.arange(4.0)
    long = Curve(x, np.array([[1.0], [2.0], [3.0], [4.0]]), x[:, None])
    short = Curve(x[:2], np.array([[1.0], [1.5]]), x[:2, None])
    np.testing.assert_array_equal(curve_panel.gain(long, short).performance.ravel(), [0.0, 0.5, 1.5, 2.5])
    assert curve_panel.gain(long, Curve(x, np.ones((4, 2)), np.ones((4, 2)))) is None


def test_both_solvers_are_drawn_on_the_same_axes(curves):
    axes = axes_of(lambda: exact_figure(curves, "pit"))
    half = len(axes) // 2
    assert half == 4
    for above, below in zip(axes[:half], axes[half:], strict=True):
        assert above.get_ylim() == below.get_ylim()


def test_em_has_a_panel_for_each_mixture(curves):
    axes = axes_of(lambda: em_figure(curves, "pit"))
    assert [ax.get_title()[-2:] for ax in axes] == ["μ1", "μ2"]
    assert [len(ax.lines) for ax in axes] == [4, 4]


def test_what_is_not_there_is_not_drawn():
    curves = Curves(results(figures=("iterations",), exact=False))
    assert em_figure(curves, "pit") is None
    assert exact_figure(curves, "pit") is None
    assert paper_figure(curves, "highway") is None
    assert gain_figure(Curves(results(methods=("MESSI-mu1",))), "pit") is None


def line(mean, width=0.01):
    mean = np.asarray(mean, dtype=float)
    return curve_panel.Line(style_of("MaxEnt"), np.arange(len(mean)) * 1.0, mean, mean - width, mean + width)


def test_the_frame_leaves_out_the_first_steps_of_a_training():
    settled = [-0.5, *[-0.05] * 20, *[-0.04] * 20]
    assert curve_panel.y_range([line(settled)], every_iteration=True).low > -0.1
    assert curve_panel.y_range([line(settled, 0.2)], every_iteration=False).low < -0.4


def test_losses_of_different_size_have_a_logarithmic_axis():
    assert curve_panel.y_range([line([-0.01, -0.5])], False).logarithmic
    assert not curve_panel.y_range([line([-0.1, -0.4])], False).logarithmic
    assert not curve_panel.y_range([line([-0.01, 0.5])], False).logarithmic
    assert not curve_panel.y_range([line([-0.01, -0.5])], False, gains=True).logarithmic


def test_losses_much_larger_than_a_certain_gain_leave_the_frame():
    shown = curve_panel.y_range([line([0.0, 0.1, -5.0], 0.0)], False, gains=True)
    assert -0.4 < shown.low < 0 < shown.high < 0.2
    assert curve_panel.y_range([line([0.0, 0.1, -5.0], 0.2)], False, gains=True).low < -5.0, "no gain is certain"


def test_one_run_has_a_line_and_no_band():
    curves = Curves(results(figures=("nu",), runs=1))
    axes = axes_of(lambda: paper_figure(curves, "pit"))
    assert [len(ax.collections) for ax in axes] == [0, 0]
    assert curve_panel.y_range([curve_panel.line(curves["pit", "nu", "MaxEnt"], style_of("MaxEnt"))], False) is not None


@pytest.mark.drawn
def test_a_users_own_style_does_not_change_the_figures():
    import matplotlib as mpl

    curves = Curves(results(figures=("nu",)))
    first = render("x", lambda: paper_figure(curves, "pit"))
    with mpl.rc_context({"lines.linewidth": 9.0, "svg.hashsalt": "other", "font.size": 30.0}):
        assert render("x", lambda: paper_figure(curves, "pit")) == first


def test_captions_say_what_is_measured(curves):
    text = captions.paper_caption(curves, "pit")
    assert "share of time in the pit" in text
    assert re.search(r"begins at −0\.4\d\d", text)
    assert "baselines" in text
    assert "baselines" not in captions.paper_caption(Curves(results(methods=MAIN)), "pit")
    assert json.dumps(captions.domains_caption(["highway-far"])).count("Highway") == 1


# ------------------------------------------------------------ does it help?


def at_the_end(levels, noise=0.0001, runs=12, domain="pit"):
    """Curves of iterations that end at these levels, paired by run."""
    table, random = results((domain,), ("iterations",), tuple(levels), runs=runs, exact=False), np.random.RandomState(1)
    rows = table.to_pylist()
    for row in rows:
        row["performance"] = levels[row["method"]] + 0.01 * row["run"] + noise * random.standard_normal()
    return Curves(pa.Table.from_pylist(rows, schema=SCHEMA))


def test_the_first_sentence_says_where_messi_helps_and_where_it_does_not():
    better = at_the_end({"MaxEnt": -0.05, "MESSI-mu1": -0.03, "Ridge": -0.01, "Pooling": -0.03})
    said = summary.sentences(better, ["pit"])
    assert said[0] == "With the paper’s fixed steps, MESSI(μ1) is significantly better than MaxEnt-IRL in Pit."
    assert said[1] == "With fixed steps, other baselines are significantly better than MESSI(μ1): in Pit L2."
    assert (
        said[2] == "With fixed steps, other baselines are not significantly different from MESSI(μ1): in Pit pooling."
    )
    worse = at_the_end({"MaxEnt": -0.03, "MESSI-mu1": -0.05})
    assert summary.sentences(worse, ["pit"]) == [
        "With the paper’s fixed steps, MESSI(μ1) is significantly better than MaxEnt-IRL in no domain."
    ]
    assert re.search(r"MESSI\(μ1\) is worse than MaxEnt-IRL: -0\.0200? ", summary.domain_sentence(worse, "pit"))
    text = Parser(join(summary.losses_table(worse, ["pit"]))).text
    assert re.search(r"MESSI\(μ1\) against MaxEnt-IRL−0\.0[12]\d*\[.*\]worse$", text)
    assert summary.sentences(Curves(results(figures=("em",))), ["pit"]) == []


def test_a_difference_in_the_noise_is_no_claim_about_a_domain():
    alike = at_the_end({"MaxEnt": -0.05, "MESSI-mu1": -0.05}, noise=0.01)
    gain = summary.gains(alike, "pit")["MESSI-mu1"]
    claimed = " better than " in summary.domain_sentence(alike, "pit").replace("clearly better nor", "")
    assert claimed == (gain.low > 0)


def test_the_first_screen_says_what_the_names_stand_for(whole):
    text = whole[0].read_text(encoding="utf-8")
    head = text[: text.index("<nav>")]
    for word in ("MESSI", "MESSIMAX", "μ1", "μ2", "μ3"):
        assert f"<dt>{word}</dt>" in head
    assert head.index('class="said"') < head.index('class="roles"') < head.index("<figure")


def test_a_difference_far_beyond_the_others_is_named_at_the_edge():
    near = [("a", Gain(0.01, 0.0, 0.02)), ("b", Gain(-0.01, -0.02, 0.0)), ("c", Gain(0.012, 0.01, 0.014))]
    [ax] = axes_of(lambda: gains_figure([*near, ("far", Gain(-0.5, -0.6, -0.4))], "gain", "c"))
    assert [text.get_text() for text in ax.texts] == ["◂ −0.5"]
    assert ax.get_xlim()[0] > -0.1
    assert [t.get_fontweight() for t in ax.get_yticklabels()] == ["normal", "normal", "bold", "normal"]
    assert gains_figure([("none", Gain(float("nan"), float("nan"), float("nan")))], "gain") is None


def test_bands_that_cover_each_other_have_edges_of_their_own(curves):
    ax = axes_of(lambda: paper_figure(curves, "pit"))[0]
    edges = {tuple(np.round(band.get_edgecolor()[0], 3)) for band in ax.collections}
    assert len(edges) == len(ax.collections) == 5
    assert all(band.get_linewidth()[0] > 0 for band in ax.collections)


def test_notes_on_claims_name_methods_as_the_page_does():
    said = "worst at ν = 0.15; beyond doubt above MaxEnt at ν = no point"
    assert claim_tables.words(said) == "worst at ν = 0.15; beyond doubt above MaxEnt-IRL at no ν"
    assert claim_tables.words("‖θ‖∞ of MaxEnt, 50%") == "‖θ‖∞ of MaxEnt-IRL, 50 %"
    assert claim_tables.words("10-EM-MaxEnt against MaxEnt-IRL") == "10-EM-MaxEnt against MaxEnt-IRL"


def test_what_is_written_on_the_pixels_of_a_domain_stays_with_them_by_night():
    ax = domains_figure(["pit"]).axes[0]
    assert ax.images
    seen = [*(text for text in ax.texts if text.get_text()), *ax.lines]
    written = {to_hex(item.get_color()) for item in seen}
    assert written
    assert not written & set(COLOURS)
