"""Mathematics in Markdown, as MathML: a browser shows it without a script and without fonts of ours.

Written as GitHub reads it: a block fenced as `math`, or $`…`$ in a line, with LaTeX in it. In a block every line is a
formula of its own.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = r"\$`([^`]+)`\$"
MATH = '<div class="math" tabindex="0">{}</div>'
FUNCTION = re.compile(r"(<mi>(?:log|exp)</mi>)(?!(?:<mrow>)?<mo[^>]*>(?:&#x00028;|\())")
AFTER = re.compile(r"((?:</(?:mi|mn|msub|msup)>|(?:&#x00029;|\))</mo>)(?:</mrow>)?)(<mi>(?:log|exp)</mi>)")  # a factor
THIN = '<mspace width="0.17em" />'


def mathml(latex: str, display: str = "inline") -> str:
    """LaTeX as MathML; what it does not know stays as it is written, with a backslash, which is an error."""
    made = convert(latex.strip(), display=display)
    unknown = re.search(r">\\([a-zA-Z]+)<", made)
    if unknown:
        raise ValueError(f"\\{unknown[1]} cannot be shown: {latex.strip()}")
    ElementTree.fromstring(made)
    return AFTER.sub(rf"\1{THIN}\2", FUNCTION.sub(rf"\1{THIN}", made))


class Blocks(Preprocessor):
    """Fenced blocks, before those of code are looked for."""

    def run(self, lines: list[str]) -> list[str]:
        def shown(found: re.Match[str]) -> str:
            formulas = (line.removesuffix(r"\qquad") for line in found[1].strip().splitlines())
            block = "".join(mathml(formula, "block") for formula in formulas)
            return f"\n{self.md.htmlStash.store(MATH.format(block))}\n"

        return BLOCK.sub(shown, "\n".join(lines)).split("\n")


class Inline(InlineProcessor):
    """Pieces of a line, before code is looked for."""

    def handleMatch(self, found: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(mathml(found[1])), found.start(), found.end()


class Mathematics(Extension):
    """Both."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(Blocks(md), "math", 27)
        md.inlinePatterns.register(Inline(INLINE, md), "math", 195)


def makeExtension(**settings: object) -> Mathematics:  # noqa: N802
    return Mathematics(**settings)
