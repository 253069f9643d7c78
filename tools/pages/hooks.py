"""What MkDocs calls while it builds: pages made from the program, files from beside docs/, the search, a last look.

Warnings are errors (`make docs` builds with --strict), and so is anything that a page would load from elsewhere.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from messirl.app.report.common.colours import DARK, LIGHT, css_variables
from tools.pages import api, commands, glossary, search

ROOT = Path(__file__).parents[2]
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "results", "tests/fuzz_corpus/README.md")
UP = re.compile(r"\]\(\.\./(?=\w)")  # from docs/ to what lies beside it
DOWN = re.compile(r"\]\(((?:\.\./)*)docs/")  # from beside docs/ into it
LOADED = re.compile(r"""<(?:script|img|link|iframe|source|video|audio)\b[^>]*?(?:src|href)=["']?(?:https?:)?//""")
BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)
PLAIN = re.compile(r"(<pre><span></span><code>)([^<]*)(</code></pre>)")  # sessions and commands, not programs
PIECE = re.compile(r"(<code>)([^<]*)(</code>)")  # of a line
TEXT = re.compile(r"(?<=>)[^<]+(?=<)")
CELL = re.compile(r"(<td[^>]*>)(.*?)(</td>)", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
JOINT = re.compile(r"(?<=\w[.:/])(?=[a-zA-Z])")  # where a name of several parts may be broken
INTERVAL = re.compile(r"\[[-+−\d.,  ]+\]")
NUMBERS = re.compile(r"(?:&gt;= )?[-+−±×~–\d.,:%/  ]{1,26}|[^/]{1,8} / [^/]{1,8}")
COLUMN = re.compile(r"\S {2,}(?=\S)")
WIDTH = 32  # signs of a line that a telephone shows without being scrolled
COLOURS = (
    f":root {{ {css_variables(LIGHT)} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {css_variables(DARK)} }} }}\n"
)

_sections: list[search.Section] = []


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Begin with an empty search."""
    _sections.clear()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that the program writes itself, and what lies beside docs/ and is linked to."""
    made = {"commands.md": commands.page(), "glossary.md": glossary.page(), **api.pages()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "colours.css", content=COLOURS))
    for place in BESIDE:
        path = ROOT / place
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                name = file.relative_to(ROOT).as_posix()
                files.append(File.generated(config, name, abs_src_path=str(file)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as they are from the place that a page has in the site, where what is in docs/ lies at the top."""
    markdown = DOWN.sub(r"](\1", markdown)
    return markdown if "/" in page.file.src_uri else UP.sub("](", markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Let wide tables be scrolled on their own, break lines where they may be, and remember the text for the search."""
    _sections.extend(search.sections(html, page.url, str(page.title)))
    return laid_out(html)


def laid_out(html: str) -> str:
    """A page whose lines are broken between words, options, names and numbers, and not within them."""
    html = PLAIN.sub(lambda found: found[1] + _lines(found[2]) + found[3], html)
    beside = [CELL.sub(_cell, TEXT.sub(_words, PIECE.sub(_piece, part))) for part in BLOCK.split(html)]
    html = "".join(part + block for part, block in zip(beside, [*BLOCK.findall(html), ""], strict=True))
    html = html.replace("<pre>", '<pre tabindex="0">')  # what can be scrolled can be reached by keyboard
    return re.sub(r"<table>.*?</table>", '<div class="wide" tabindex="0">\\g<0></div>', html, flags=re.DOTALL)


def _lines(text: str) -> str:
    """Commands of a session stand out; what is too long is wrapped, unless it is a row of a table."""
    lines = []
    for line in text.split("\n"):
        long = len(unescape(line)) > WIDTH and len(COLUMN.findall(line.strip())) < 3
        if line.startswith("$ "):
            line = f'<b class="long">{_whole(OPTION, line)}</b>'
        elif long:
            line = f'<span class="long" style="--hang:{_hang(line)}ch">{_whole(OPTION, line)}</span>'
        lines.append(line)
    return "\n".join(lines)


def _hang(line: str) -> int:
    """Below which sign of a line the rest of it goes on: where its last column begins, or the line itself."""
    columns = [found.end() for found in COLUMN.finditer(unescape(line))]
    return columns[-1] if columns else len(line) - len(line.lstrip())


def _piece(found: re.Match[str]) -> str:
    """Code within a line: long names are broken at their joints."""
    begins, text, ends = found.groups()
    return begins + JOINT.sub("<wbr>", text) + ends


def _words(found: re.Match[str]) -> str:
    """What stands between two tags: options stay whole."""
    return _whole(OPTION, found[0])


def _cell(found: re.Match[str]) -> str:
    """A cell of a table: numbers stay on one line, or are broken before their interval."""
    begins, text, ends = found.groups()
    if NUMBERS.fullmatch(re.sub("<[^>]*>", "", text)):
        return f'{begins}<span class="whole">{text}</span>{ends}'
    return begins + _whole(INTERVAL, text) + ends


def _whole(what: re.Pattern[str], text: str) -> str:
    return what.sub(lambda found: f'<span class="whole">{found[0]}</span>', text)


def on_post_build(config: MkDocsConfig) -> None:
    """Write what the search looks through, and see that no page loads anything from elsewhere."""
    site = Path(config.site_dir)
    (site / "words.js").write_text(search.words(_sections), encoding="utf-8")
    for page in sorted(site.rglob("*.html")):
        found = LOADED.search(page.read_text(encoding="utf-8"))
        if found:
            raise PluginError(f"{page.relative_to(site)} would load something from elsewhere: {found[0]}")
    for sheet in site.rglob("*.css"):
        if re.search(r"@import|url\(", sheet.read_text(encoding="utf-8")):
            raise PluginError(f"{sheet.relative_to(site)} would load something")
