r"""Estimation tables for export: CSV with all digits, LaTeX and HTML with significant ones.

LaTeX needs the package booktabs; the first line of a table names further packages for letters that LaTeX does not have
by itself. Names of features may be any text: characters special to LaTeX or HTML are escaped. HTML is a fragment in
plain ASCII, so that it is correct wherever it is pasted.

There is one row per feature, then one per ratio, with its interval in the columns of the weights' robust t, df and p,
then the statistics of the fit. Optional stars rest on the p of the sandwich.
"""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from messirl._formatting import format_p_value, format_significant
from messirl.inference.latex import escaped, needs

if TYPE_CHECKING:
    from messirl.inference.standard_errors import EstimationTable
    from messirl.inference.weight_ratios import WeightRatio

STARS = {"***": 0.001, "**": 0.01, "*": 0.05}  # for p below
HEADS = {
    "estimate": "Estimate",
    "std_error": "Std. error",
    "t": "t",
    "outer_std_error": "Outer-product s.e.",
    "robust_std_error": "Robust s.e.",
    "robust_t": "Robust t",
    "degrees_of_freedom": "df",
    "p": "p",
}
ERRORS = ("std_error", "outer_std_error", "robust_std_error")


def to_csv(table: EstimationTable, ratios: Sequence[WeightRatio] = ()) -> str:
    """Write every number with all digits; missing ones are empty cells. Intervals are by the sandwich.

    ratios : further rows, by `weight_ratio`
    """
    rows = table.rows()
    for ratio in ratios:
        own = {name: getattr(ratio, name) for name in ("name", *ERRORS, "degrees_of_freedom", "low", "high")}
        rows.append({**own, "estimate": ratio.value})
    sink = io.StringIO()
    writer = csv.DictWriter(sink, ["name", *HEADS, "low", "high"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: "" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()})
    return sink.getvalue()


def to_latex(table: EstimationTable, ratios: Sequence[WeightRatio] = (), *, stars: bool = False) -> str:
    r"""Write a tabular with the rules of booktabs, for \input or pasting.

    ratios : further rows, by `weight_ratio`
    stars : mark estimates by their p
    """
    sheet = _sheet(table, ratios, stars)
    n = len(sheet.heads)
    heads = [re.sub(r"\b([tp])$", r"$\1$", head) for head in sheet.heads]
    rows = [_tex_row(escaped(name), map(_tex_number, cells)) for name, cells in sheet.rows]
    below = [
        _tex_row(
            escaped(name),
            [*map(_tex_number, cells), rf"\multicolumn{{{sheet.span}}}{{r}}{{{_tex_interval(*interval)}}}"],
        )
        for name, cells, interval in sheet.ratios
    ]
    foot = [_tex_row(name, [_tex_number(value), *[""] * (n - 1)]) for name, value in sheet.statistics]
    told = ", ".join(rf"$^{{{sign}}}\,p<{most:g}$" for sign, most in STARS.items())
    lines = [
        rf"\begin{{tabular}}{{l{'r' * n}}}",
        *[r"\toprule", _tex_row("Feature", heads), r"\midrule", *rows],
        *([r"\midrule", *below] if below else []),
        *[r"\midrule", *foot, r"\bottomrule"],
        *([rf"\multicolumn{{{n + 1}}}{{l}}{{{told}}} \\"] if stars else []),
        r"\end{tabular}",
    ]
    return "\n".join([needs("".join(lines)), *lines]) + "\n"


def to_html(table: EstimationTable, ratios: Sequence[WeightRatio] = (), *, stars: bool = False) -> str:
    """Write a table element, for pasting into a page.

    ratios : further rows, by `weight_ratio`
    stars : mark estimates by their p
    """
    sheet = _sheet(table, ratios, stars)
    rows = [_html_row(name, cells) for name, cells in sheet.rows]
    below = [_html_row(name, cells, interval, sheet.span) for name, cells, interval in sheet.ratios]
    foot = [_html_row(name, [value, *[""] * (len(sheet.heads) - 1)]) for name, value in sheet.statistics]
    told = ", ".join(f"<sup>{sign}</sup> p &lt; {most:g}" for sign, most in STARS.items())
    lines = [
        "<table>",
        *([f"<caption>{told}</caption>"] if stars else []),
        "<thead><tr>" + "".join(f'<th scope="col">{head}</th>' for head in ("Feature", *sheet.heads)) + "</tr></thead>",
        *["<tbody>", *rows, "</tbody>"],
        *(["<tbody>", *below, "</tbody>"] if below else []),
        *["<tfoot>", *foot, "</tfoot>", "</table>"],
    ]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[..., str]] = {".csv": to_csv, ".tex": to_latex, ".html": to_html}  # by file extension


class _Sheet(NamedTuple):
    """The cells of a table for LaTeX and HTML, as text with significant digits."""

    heads: list[str]
    rows: list[tuple[str, list[str]]]
    ratios: list[tuple[str, list[str], tuple[str, str, str]]]  # the last tuple is level, low, high
    span: int  # columns of an interval, in place of robust t, df and p
    statistics: list[tuple[str, str]]


def _sheet(table: EstimationTable, ratios: Sequence[WeightRatio], stars: bool) -> _Sheet:
    shown = [name for name in HEADS if getattr(table, name) is not None]
    columns = [_column(name, getattr(table, name)) for name in shown]
    if stars:
        marks = (next((sign for sign, most in STARS.items() if p < most), "") for p in table.p)
        columns[0] = [text + mark for text, mark in zip(columns[0], marks, strict=True)]
    rows = [(name, list(cells)) for name, cells in zip(table.names, zip(*columns, strict=True), strict=True)]
    below, span = [], len(shown) - 1 - shown.index("robust_std_error")
    for ratio in ratios:  # a ratio is not tested against zero, so it has no t
        known = {"estimate": ratio.value, **{name: getattr(ratio, name) for name in ERRORS}}
        cells = [_texts([known[name]])[0] if name in known else "" for name in shown[:-span]]
        low, high = _texts([ratio.low, ratio.high])
        below.append((ratio.name, cells, (f"{100 * ratio.level:g}", low, high)))
    statistics = [
        (name[:1].upper() + name[1:], f"{value:.3f}" if isinstance(value, float) else str(value))
        for name, value in table.statistics().items()
    ]
    return _Sheet([HEADS[name] for name in shown], rows, below, span, statistics)


def freedom_text(value: float) -> str:
    """Return degrees of freedom as text, with one decimal below 100."""
    return "nan" if math.isnan(value) else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _column(name: str, values: Iterable[float]) -> list[str]:
    text = {"p": format_p_value, "degrees_of_freedom": freedom_text}.get(name)
    return _texts(values) if text is None else [text(value) for value in values]


def _texts(values: Iterable[float]) -> list[str]:
    return [text.strip() for text in format_significant(values)]


def _visible(name: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in name)


def _tex_row(name: str, cells: Iterable[str]) -> str:
    return " & ".join([name, *cells]) + r" \\"


def _tex_number(text: str) -> str:
    """Return a number in math mode, with a minus sign and powers of ten; stars are superscripts."""
    if text in ("", "nan"):
        return "--" if text else ""
    powers = re.sub(r"e([-+]\d+)", lambda found: rf"\times 10^{{{int(found[1])}}}", text.replace("inf", r"\infty"))
    behind = "{}" if "^" in powers else ""  # LaTeX does not allow a double superscript
    raised = re.sub(r"([*]+)", rf"{behind}^{{\1}}", powers)
    return f"${raised}$"


def _tex_interval(level: str, low: str, high: str) -> str:
    return rf"{level}\,\%: [{_tex_number(low)}, {_tex_number(high)}]"


def _html_row(name: str, cells: Iterable[str], interval: tuple[str, str, str] | None = None, span: int = 2) -> str:
    inside = [f"<td>{_html_number(cell)}</td>" for cell in cells]
    if interval is not None:
        level, low, high = interval
        inside.append(f'<td colspan="{span}">{level} %: [{_html_number(low)}, {_html_number(high)}]</td>')
    return f'<tr><th scope="row">{_html_text(name)}</th>{"".join(inside)}</tr>'


def _html_text(name: str) -> str:
    return html.escape(_visible(name)).encode("ascii", "xmlcharrefreplace").decode()


def _html_number(text: str) -> str:
    bare = text.rstrip("*")
    shown = "–" if bare == "nan" else re.sub(r"(?<!e)-", "−", bare)
    return _html_text(shown) + (f"<sup>{text[len(bare) :]}</sup>" if bare != text else "")
