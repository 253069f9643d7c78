"""`messirl lab` in a real browser: what a user does with the mouse, with the keyboard alone, and on a telephone."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
from dataclasses import replace
from pathlib import Path

import pytest
from labs import serving

pytest.importorskip("starlette")
pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from messirl.io.folder.writer import write_problem
from messirl.paper.domains import DOMAINS
from messirl.paper.experiments.reproduction import Plan, reproduce
from messirl.paper.synthetic import museum

pytestmark = pytest.mark.browser

CHROMIUM = "/usr/bin/chromium"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
SCRIPT = "<img src=x onerror='window.broken=1'><script>window.broken=1</script>"
SLUGGISH = 2000.0  # milliseconds from the last move of a slider to the picture; 200 are aimed at


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A problem whose features are named by an attacker, a fit of it, and results of a few runs."""
    from messirl import MESSI

    here = tmp_path_factory.mktemp("given")
    problem = museum().problem
    hostile = replace(
        problem, mdp=problem.mdp.replace(feature_names=[f"{SCRIPT}{i}" for i in range(problem.mdp.n_features)])
    )
    write_problem(hostile, here / "house")
    (here / "fit").mkdir()
    guides, tourists = (hostile.select(f"who = {who}").trajectories for who in ("guide", "tourist"))
    MESSI().fit(hostile.mdp, guides, tourists).save(here / "fit" / "model.npz")
    (here / "fit" / "fit.json").write_text(
        json.dumps({"folder": "house", "in_words": [f"Words {SCRIPT}"], "command": "messirl fit"})
    )
    plan = Plan(here / "results", domains=("pit",), figures=("iterations", "nu"), runs=2, quick=True)
    reproduce(plan, lambda done, total: None)
    return here


@pytest.fixture(scope="module")
def address(folders):
    with serving(folders) as (_, port):
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser():
    if not Path(CHROMIUM).exists():
        pytest.fail("there is no Chromium here: make test-browser installs it")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield found
        found.close()


class Visit:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser, address, **options):
        self.address, self.wrong = address, []
        self.context = browser.new_context(**{"viewport": {"width": 1400, "height": 1000}} | options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on(
            "console", lambda message: message.type in ("error", "warning") and self.wrong.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._leaves)

    def _leaves(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"a request to {request.url}")

    def open(self, fragment=""):
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{fragment}")
        return self.settle()

    def settle(self):
        """Wait for the exact picture of what the controls say."""
        expect(self.page.locator("#status")).to_contain_text(" ms", timeout=60_000)
        self.until("lab.shown.found && !lab.shown.found.rough && lab.idle()")
        return self.page

    def until(self, what):
        end = time.monotonic() + 60
        while not self.page.evaluate(what):  # the policy of the page forbids Playwright's own way of waiting
            assert time.monotonic() < end, f"{what} did not come true"
            time.sleep(0.05)

    def reward(self):
        return self.page.evaluate("lab.shown.found.models[0].reward")

    def fills(self):
        return self.page.evaluate(
            "Array.from(document.querySelectorAll('#maps [data-tile]'), e => e.getAttribute('fill'))"
        )


@pytest.fixture
def visit(browser, address):
    made = []

    def begin(**options):
        made.append(Visit(browser, address, **options))
        return made[-1]

    yield begin
    for one in made:
        broken = one.page.evaluate("window.broken")
        one.context.close()
        assert one.wrong == []
        assert broken is None


def drag(page, name, begin, end, steps=6):
    page.locator(f"#{name}").scroll_into_view_if_needed()
    box = page.locator(f"#{name}").bounding_box()
    y, at = box["y"] + box["height"] / 2, lambda share: box["x"] + 8 + share * (box["width"] - 16)
    page.mouse.move(at(begin), y)
    page.mouse.down()
    for i in range(1, steps + 1):
        page.mouse.move(at(begin + (end - begin) * i / steps), y)
    page.mouse.up()


def test_every_scene_can_be_picked(visit):
    seen = visit()
    page = seen.open()
    keys = page.evaluate("Array.from(document.querySelectorAll('#scene option'), e => e.value)")
    assert {*DOMAINS, "museum", "roads", "maze"} < set(keys)
    for key in keys:
        page.select_option("#scene", key)
        seen.until(
            f"lab.shown.scene.key === {json.dumps(key)} && lab.shown.found && !lab.shown.found.rough && lab.idle()"
        )
        assert len(seen.fills()) == page.evaluate("lab.shown.scene.labels.length"), key
        assert len(set(seen.fills())) > 1, key
        assert not page.locator("#status.bad").count(), key


def test_who_changes_their_mind_gets_what_was_picked_last(visit):
    seen = visit()
    page = seen.open("scene=pit")
    for key in ("museum", "maze", "roads"):  # faster than they can be opened
        page.select_option("#scene", key)
    seen.until("lab.shown.scene.key === 'roads' && lab.shown.found && !lab.shown.found.rough && lab.idle()")
    assert len(seen.fills()) == 25


def test_dragging_changes_the_reward_and_a_link_brings_it_back(visit):
    seen = visit()
    page = seen.open("scene=pit")
    before = seen.reward(), seen.fills()
    drag(page, "lambda0", 0.45, 0.9)
    seen.until("lab.state.lambda0 > 10 && lab.idle()")
    after = seen.reward(), seen.fills()
    assert after[0] != before[0]
    assert after[1] != before[1]
    seen.until("location.hash.includes('lambda0=')")
    other = visit()
    other.open(page.evaluate("location.hash").removeprefix("#"))
    assert (other.reward(), other.fills()) == after
    assert other.page.input_value("#lambda0") == page.input_value("#lambda0")


def test_a_trajectory_is_drawn_with_the_mouse_and_taken_back(visit):
    seen = visit()
    page = seen.open("scene=gridworld")
    page.click("#draw")

    def middle(tile):
        box = page.locator(f"#maps [data-tile='{tile}']").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    before = seen.reward()
    page.mouse.move(*middle(0))
    page.mouse.down()
    for tile in (1, 2, 18, 34, 35):
        page.mouse.move(*middle(tile), steps=3)
    page.mouse.up()
    seen.until("lab.state.drawn.length === 1")
    assert page.evaluate("lab.state.drawn[0]") == [0, 1, 2, 18, 34, 35]
    seen.until("lab.shown.found.kinds.includes(1) && !lab.shown.found.rough && lab.idle()")
    assert seen.reward() != before
    page.click("#undo")
    seen.until("!lab.shown.found.kinds.includes(1) && !lab.shown.found.rough && lab.idle()")
    assert seen.reward() == before


def test_all_of_it_works_with_the_keyboard_alone(visit):
    seen = visit()
    page = seen.open("scene=pit")
    for _ in range(60):  # to the map, by Tab
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "application":
            break
    else:
        pytest.fail("Tab does not lead to the map")
    page.keyboard.press("Space")
    for key in ["ArrowRight"] * 5 + ["ArrowUp"] * 4:
        page.keyboard.press(key)
    assert "10 states" in page.inner_text("#speak")
    page.keyboard.press("Escape")
    assert page.evaluate("lab.state.drawn.length") == 0
    page.keyboard.press("ArrowDown")  # moves the cursor only
    for key in ("Space", "ArrowRight", "ArrowRight", "ArrowUp", "Enter"):  # there is one place to begin
        page.keyboard.press(key)
    seen.until("lab.state.drawn.length === 1 && lab.shown.found.kinds.includes(1)")
    seen.settle()
    before = seen.reward()
    page.focus("#lambda0")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    seen.until("!lab.shown.found.rough && lab.idle()")
    assert seen.reward() != before
    assert page.get_attribute("#lambda0", "aria-valuetext") == page.inner_text("#lambda0-out")


def test_two_methods_stand_side_by_side_with_their_difference(visit):
    seen = visit()
    page = seen.open("scene=museum")
    page.select_option("#second", "MaxEnt")
    expect(page.locator("#maps figure")).to_have_count(3)
    assert page.locator("#maps h2").all_inner_texts() == ["MESSI", "MaxEnt-IRL", "Difference"]
    page.select_option("#method", "Pooling")
    expect(page.locator("#maps h2").first).to_have_text("pooling")
    for layer in ("visits", "policy", "reward"):
        page.locator(f"#layers input[value={layer}]").check(force=True)
        assert len(set(seen.fills())) > 2
    seen.settle()


def test_the_figures_of_a_reproduction_are_shown_with_the_claims(visit):
    seen = visit()
    page = seen.open()
    page.click("[data-view=results]")
    expect(page.locator("#figures .js-plotly-plot .main-svg").first).to_be_visible(timeout=60_000)
    expect(page.locator("#figures .card")).to_have_count(2)
    assert page.locator("#claims .verdict").count() > 3
    plot = page.locator("#figures .nsewdrag").first.bounding_box()
    ticks = page.locator("#figures .js-plotly-plot").first.locator(".xtick").all_text_contents()
    page.mouse.move(plot["x"] + 0.2 * plot["width"], plot["y"] + 0.3 * plot["height"])
    page.mouse.down()
    page.mouse.move(plot["x"] + 0.4 * plot["width"], plot["y"] + 0.7 * plot["height"], steps=5)
    page.mouse.up()
    expect(page.locator("#figures .js-plotly-plot").first.locator(".xtick").last).not_to_have_text(ticks[-1])


def test_a_fit_is_shown_and_pointing_at_a_feature_or_a_trajectory_shows_it(visit):
    seen = visit()
    page = seen.open()
    page.click("[data-view=fits]")
    tiles = page.locator("#fit-map [data-tile]")
    expect(tiles).to_have_count(25)
    assert SCRIPT in page.inner_text("#fit-words")  # as text
    assert not re.search(r"(?<![\w-])-\d|\d %", page.inner_text("#fit-words"))  # minus signs, and no per cent alone
    before = tiles.first.get_attribute("fill"), tiles.nth(12).get_attribute("fill")
    page.locator("#fit-features tbody tr").first.hover()
    assert SCRIPT in page.locator("#fit-map svg").get_attribute("aria-label")
    assert (tiles.first.get_attribute("fill"), tiles.nth(12).get_attribute("fill")) != before
    page.locator("#fit-tracks tbody tr").nth(1).hover()
    expect(page.locator("#fit-map [data-layer=tracks] polyline")).to_have_count(2)
    tiles.first.hover()
    assert "reptiles" in page.inner_text("#fit-map .inspect")


def test_pictures_data_and_lines_can_be_taken_away(visit, tmp_path):
    seen = visit(accept_downloads=True)
    page = seen.open("scene=pit&second=MaxEnt")
    saved = {}
    for kind in ("svg", "png", "json", "csv", "py"):
        page.click("#export summary")
        with page.expect_download() as waiting:
            page.click(f"[data-export={kind}]")
        saved[kind] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(saved[kind])
    assert {path.name for path in saved.values()} == {f"messirl-pit.{kind}" for kind in saved}
    assert saved["svg"].read_text().count("<rect") > 3 * 36
    assert saved["png"].read_bytes()[:4] == b"\x89PNG"
    assert saved["png"].stat().st_size > 10_000
    assert json.loads(saved["json"].read_text())["models"][0]["reward"] == seen.reward()
    assert len(saved["csv"].read_text().splitlines()) == 37
    compile(saved["py"].read_text(), "lines", "exec")


def test_a_link_full_of_nonsense_opens_what_of_it_makes_sense(visit):
    seen = visit()
    page = seen.open("scene=pit&layer=nothing&view=constructor&toString=1&__proto__=2&lambda0=&u=NaN&second=MaxEnt")
    assert page.locator("#maps figure").count() == 3
    assert page.evaluate("[lab.state.layer, lab.state.view, lab.state.lambda0, lab.state.u]") == [
        "reward",
        "try",
        0.5,
        20,
    ]
    page.evaluate("location.hash = 'scene=pit&layer=visits'")
    seen.until("lab.state.layer === 'visits' && lab.shown.maps.length === 1 && lab.idle()")
    page.evaluate("location.hash = 'scene=pit'")  # what a link does not speak of is as at first
    seen.until("lab.state.layer === 'reward' && lab.idle()")


def test_a_link_to_what_is_not_here_says_so_and_one_that_cannot_be_opened_can_be_tried_again(visit, folders):
    seen = visit()
    assert "Unknown problem problem:nowhere" in seen.open("scene=problem:nowhere").inner_text("#status")
    (folders / "broken").mkdir()
    (folders / "broken" / "problem.json").write_text("{")
    try:
        key = f"problem:{folders.name}/broken"
        page = seen.page
        page.goto("about:blank")
        page.goto(f"{seen.address}#scene={key}&u=7")
        expect(page.locator("#status.bad")).to_contain_text("holds neither states", timeout=60_000)
        assert page.evaluate("[location.hash, document.getElementById('scene').value]") == [f"#scene={key}&u=7", key]
        page.click("#export summary")
        page.click("[data-export=svg]")
        expect(page.locator("#status.bad")).to_contain_text("nothing to export", timeout=60_000)
    finally:
        shutil.rmtree(folders / "broken")
    seen.wrong[:] = [text for text in seen.wrong if "422" not in text]  # what was refused, was to be


def test_what_is_saved_after_a_refusal_is_what_the_picture_shows(visit, tmp_path):
    seen = visit(accept_downloads=True)
    page = seen.open("scene=museum")
    before = seen.reward()
    page.fill("#expert", "nobody = 1")
    page.press("#expert", "Enter")
    expect(page.locator("#status.bad")).to_contain_text("there is no column 'nobody'", timeout=60_000)
    page.click("#export summary")
    with page.expect_download() as waiting:
        page.click("[data-export=json]")
    waiting.value.save_as(tmp_path / "saved.json")
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert (saved["ask"]["expert"], saved["models"][0]["reward"]) == ("who = guide", before)
    seen.wrong[:] = [text for text in seen.wrong if "422" not in text]


def test_back_leads_to_the_view_before(visit):
    seen = visit()
    page = seen.open("scene=pit")
    page.click("[data-view=fits]")
    expect(page.locator("#fit-map [data-tile]")).to_have_count(25, timeout=60_000)
    page.go_back()
    expect(page.locator("[data-view=try]")).to_have_attribute("aria-current", "page", timeout=60_000)
    page.go_forward()
    expect(page.locator("[data-view=fits]")).to_have_attribute("aria-current", "page", timeout=60_000)
    seen.settle()


@pytest.mark.parametrize("fragment", ["scene=gridworld&second=MaxEnt", "scene=highway", "view=results", "view=fits"])
def test_a_telephone_shows_it_without_scrolling_sideways(visit, fragment):
    seen = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = seen.open(fragment)
    if "view" in fragment:
        expect(page.locator("#figures .main-svg, #fit-map [data-tile]").first).to_be_visible(timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    narrow = page.evaluate(
        "Array.from(document.querySelectorAll('#claims td:nth-child(4), #fit-tracks td:last-child'))"
        ".filter(e => e.offsetParent && e.getBoundingClientRect().width < 200).length"
    )
    assert narrow == 0  # sentences of one letter a line
    small = page.evaluate(
        "Array.from(document.querySelectorAll('button, select, summary'))"
        ".filter(e => e.offsetParent && !e.closest('.plot') && e.getBoundingClientRect().height < 24).length"
    )
    assert small == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("fragment", ["scene=gridworld&second=MaxEnt", "scene=museum", "view=results", "view=fits"])
def test_axe_finds_nothing_serious(visit, fragment, scheme):
    seen = visit(color_scheme=scheme, bypass_csp=True)  # axe brings its own script
    page = seen.open(fragment)
    if "view" in fragment:
        expect(page.locator("#figures .main-svg, #fit-map [data-tile]").first).to_be_visible(timeout=60_000)
    found = Axe().run(page).response["violations"]
    serious = {
        rule["id"]: [node["html"][:120] for node in rule["nodes"]]
        for rule in found
        if rule["impact"] in ("serious", "critical")
    }
    assert serious == {}


def test_pictures_follow_a_slider_and_the_median_time_is_told(visit, capsys):
    seen = visit()
    page = seen.open("scene=gridworld")
    for i in range(50):
        before = page.evaluate("lab.timings.length")
        drag(page, "lambda0", *((0.3, 0.6) if i % 2 else (0.6, 0.3)))
        seen.until(f"lab.timings.length > {before} && lab.idle()")
    took = page.evaluate("lab.timings")
    with capsys.disabled():  # a figure to read; how busy the machine is must not decide a test
        print(f"\nfrom the last move to the picture: median {statistics.median(took):.0f} ms of {len(took)} drags")
    assert len(took) >= 50
    assert statistics.median(took) < SLUGGISH
