"""What MkDocs calls while it builds: pages made from the program, files from beside docs/, the search, a last look.

Warnings are errors (`make docs` builds with --strict), and so is anything that a page would load from elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from messirl.report.kit.colours import DARK, LIGHT, variables
from tools.pages import api, commands, glossary, search

ROOT = Path(__file__).parents[2]
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "results", "tests/fuzz_corpus/README.md")
UP = re.compile(r"\]\(\.\./(?=\w)")  # from docs/ to what lies beside it
DOWN = re.compile(r"\]\(((?:\.\./)*)docs/")  # from beside docs/ into it
LOADED = re.compile(r"""<(?:script|img|link|iframe|source|video|audio)\b[^>]*?(?:src|href)=["']?(?:https?:)?//""")
SESSION = re.compile(r"<code>\$ .*?</code>", re.DOTALL)
SENTENCE = 125  # signs of a line that is longer than a table
COLOURS = (
    f":root {{ {variables(LIGHT)} }}\n"
    f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
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
    """Let wide tables be scrolled on their own, and remember the text for the search."""
    _sections.extend(search.sections(html, page.url, str(page.title)))
    html = SESSION.sub(lambda found: _session(found[0]), html)
    html = html.replace("<pre>", '<pre tabindex="0">')  # what can be scrolled can be reached by keyboard
    return re.sub(r"<table>.*?</table>", '<div class="wide" tabindex="0">\\g<0></div>', html, flags=re.DOTALL)


def _session(block: str) -> str:
    """Commands stand out, and sentences are wrapped where tables are not."""
    lines = []
    for line in block.split("\n"):
        head, code, text = line.rpartition("<code>")
        if text.startswith("$ "):
            text = f'<b class="long">{text}</b>'
        elif len(text) > SENTENCE:
            text = f'<span class="long">{text}</span>'
        lines.append(head + code + text)
    return "\n".join(lines)


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
