"""What the documentation is made with: equations, texts of the program, the search, and nothing from elsewhere."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from messirl import estimators
from messirl.app.cli import COMMANDS
from messirl.app.report.common.glossary import TERMS, anchor
from tools.pages import api, commands, glossary, hooks, mathematics, search, text

HOME = Path(__file__).resolve().parents[1]


def test_an_equation_becomes_mathml_and_an_unknown_command_is_an_error():
    assert mathematics.mathml(r"\theta^\top f").startswith("<math")
    with pytest.raises(ValueError, match=r"\\nonsense cannot be shown"):
        mathematics.mathml(r"\nonsense + 1")


@pytest.mark.parametrize("latex", [r"P(a) \log P", r"\eta \log \pi", r"\pi_0(a|s) \exp\left( r \right)"])
def test_a_function_stands_apart_from_the_factor_before_it(latex):
    assert re.search(rf"{re.escape(mathematics.THIN)}<mi>(log|exp)</mi>", mathematics.mathml(latex))
    assert not re.search(rf"{re.escape(mathematics.THIN)}<mi>log</mi>", mathematics.mathml(r"- \log \pi"))


def test_a_bracket_follows_its_function_at_once():
    assert mathematics.THIN not in mathematics.mathml(r"\exp\left( r \right)")
    assert mathematics.THIN not in mathematics.mathml(r"\log(r)")


def test_every_formula_of_the_documents_can_be_shown():
    for page in sorted((HOME / "docs").glob("*.md")):
        written = page.read_text(encoding="utf-8")
        lines = [line for block in mathematics.BLOCK.findall(written) for line in block.strip().splitlines()]
        for latex in [*lines, *re.findall(mathematics.INLINE, written)]:
            mathematics.mathml(latex.removesuffix(r"\qquad"))


def test_every_equation_of_the_paper_is_in_the_theory():
    page = (HOME / "docs" / "theory.md").read_text(encoding="utf-8")
    parts = re.split(r"\*\*Eq\. (\d)\.\*\*", page)
    found = {int(number): part for number, part in zip(parts[1::2], parts[2::2], strict=True)}
    assert sorted(found) == list(range(1, 10))
    assert all("```math" in part for part in found.values())


def test_texts_of_the_program_mean_nothing_to_markdown_but_code_and_emphasis():
    assert text.safe("f_* of *this* `a_b*` <x> {y}") == r"f\_\* of *this* `a_b*` &#60;x&#62; &#123;y&#125;"


def test_every_option_of_every_command_is_on_its_page():
    page = commands.page()
    for name in COMMANDS:
        part = page.split(f"\n## messirl {name}\n")[1].split("\n## ")[0]
        shown = [action for action in commands.parser_of(name)._actions if action.help != argparse.SUPPRESS]
        asked = {option for action in shown for option in action.option_strings} - {"-h", "--help"}
        assert asked <= set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", part)), name


def test_every_word_of_the_reports_has_an_address_in_the_glossary():
    page = glossary.page()
    assert [term for term in TERMS if f'id="{anchor(term)}"' not in page] == []


def test_a_class_is_documented_with_what_it_inherits():
    messi = api._module(estimators, "messirl.estimators", ["MESSI"])
    assert all(f"`{name}`" in messi for name in ("lambda0", "theta_max", "theta_"))  # its own, a parent's, fitted
    assert "### MESSI.score " in messi


def test_a_class_and_a_function_of_the_same_letters_have_two_addresses():
    for name, page in api.pages().items():
        addresses = re.findall(r"^##+ .*\{: #(\S+) \}$", page, flags=re.MULTILINE)
        assert len(set(addresses)) == len(addresses), name
    assert "(messirl.selection.md#bootstrap)" in api.pages()["api/index.md"]


def test_no_page_of_the_interface_shows_where_in_memory_something_lies():
    assert [name for name, page in api.pages().items() if re.search(r" at 0x[0-9a-f]+", page)] == []


def test_every_argument_of_every_command_is_explained():
    assert [line for line in commands.page().split("\n") if line.strip() == ":   –"] == []


def test_the_search_finds_sections_by_their_address():
    found = search.sections('<h1 id="a">A</h1><p>one</p><h2 id="b">B <code>c</code></h2><p>two</p>', "x.html", "A")
    assert [(one.address, one.title, one.text) for one in found] == [("x.html", "A", "one"), ("x.html#b", "B c", "two")]


@pytest.mark.parametrize("markup", ['<script src="https://a.b/c.js">', "<img alt='' src=//a.b/c.png>"])
def test_what_would_be_loaded_from_elsewhere_is_seen(markup):
    assert hooks.LOADED.search(markup)
    assert not hooks.LOADED.search('<a href="https://a.b">b</a><img src="c.png">')


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_beside_the_documentation_lead_to_files(name):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (HOME / name).read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (HOME / link).exists()] == []


def test_options_and_numbers_are_not_broken_between_lines():
    shown = hooks.laid_out("<p><code>fit --test X</code></p><table><td>0.9 [0.8, 1.0]</td><td>2 / 3</td></table>")
    assert '<code>fit <span class="whole">--test</span> X</code>' in shown
    assert '0.9 <span class="whole">[0.8, 1.0]</span>' in shown
    assert '<span class="whole">2 / 3</span>' in shown


def test_names_in_code_are_broken_at_their_joints_only():
    assert hooks.laid_out("<code>a.b:c_d</code>") == "<code>a.<wbr>b:<wbr>c_d</code>"
    assert hooks.laid_out("<code>0.95</code>") == "<code>0.95</code>"


def test_long_lines_of_a_block_are_wrapped_and_rows_of_tables_are_not():
    sentence, row = "word " * 30, "a      b      c      d" + " " * 90 + "e"
    shown = hooks.laid_out(f"<pre><span></span><code>{sentence}\n{row}\n$ messirl lab --port 1</code></pre>")
    assert f'<span class="long" style="--hang:0ch">{sentence}</span>\n{row}\n' in shown
    assert '<b class="long">$ messirl lab <span class="whole">--port</span> 1</b>' in shown


def test_a_line_that_is_wrapped_goes_on_below_its_last_column():
    shown = hooks.laid_out("<pre><span></span><code>  plot.py     pictures of fitted models, and so on</code></pre>")
    assert '<span class="long" style="--hang:14ch">  plot.py     pictures' in shown


def test_a_highlighted_program_stays_as_it_is():
    program = '<pre><span></span><code><span class="n">a</span> -- b.c</code></pre>'
    assert hooks.laid_out(program) == program.replace("<pre>", '<pre tabindex="0">')


def test_the_first_page_leads_to_every_other():
    listed = re.findall(
        r": ((?:api/)?[\w-]+\.md)$", (HOME / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    first = (HOME / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(listed) > 25
    assert [page for page in listed if page != "index.md" and f"{page})" not in first] == []


def test_the_readme_leads_to_every_page_of_the_documentation():
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    pages = sorted(page.name for page in (HOME / "docs").glob("*.md"))
    assert [page for page in pages if page != "index.md" and f"docs/{page}" not in readme] == []
