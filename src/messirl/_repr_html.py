"""HTML summaries for notebooks, without style sheets, scripts or files, for light and dark themes.

All values are escaped. Colours are those of the notebook; lines and small print are a grey that suits both themes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

LINE = "1px solid rgba(128,128,128,.45)"
CELL = "text-align:left;padding:1px 12px 1px 0;background:transparent;color:inherit;border:0;font-weight:normal"
TABLE = "border-collapse:collapse;color:inherit;font-size:inherit"
LONGEST = 160  # maximum number of characters of a text
MANY = 8  # maximum number of rows of a table


def card(title: str, note: str, facts: Mapping[str, object], *tables: str) -> str:
    """Return a card: a title with a note beside it, facts below it, and tables made by `grid`."""
    head = f"<b>{text(title)}</b> <span style='opacity:.75'>{text(note)}</span>"
    rows = "".join(
        f"<tr><th scope='row' style='{CELL};opacity:.75'>{text(name)}</th><td style='{CELL}'>{text(value)}</td></tr>"
        for name, value in facts.items()
    )
    inside = f"<table style='{TABLE};margin:3px 0 0'>{rows}</table>" if rows else ""
    style = f"border:{LINE};border-radius:4px;padding:6px 10px;display:inline-block;font-size:90%;color:inherit"
    return f"<div style='{style}'>{head}{inside}{''.join(tables)}</div>"


def grid(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], total: int | None = None, *, many: int = MANY
) -> str:
    """Return a collapsible table with its title; it shows the first `many` rows, and the number of the rest.

    total : the number of rows, if not all are given
    """
    every = [list(row) for row in rows]
    total = len(every) if total is None else total
    if not every:
        return ""
    top = "".join(f"<th scope='col' style='{CELL};opacity:.75;border-bottom:{LINE}'>{text(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td style={CELL!r}>{text(one)}</td>' for one in row)}</tr>" for row in every[:many])
    left = f"<div style='opacity:.75'>… and {total - many:,} more</div>" if total > many else ""
    shut = "" if len(every) > 3 else " open"
    table = f"<table style='{TABLE}'><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f"<details{shut} style='margin-top:3px'><summary>{text(title)}</summary>{table}{left}</details>"


def text(value: object) -> str:
    """Return the value as one line of escaped text; a float has four significant digits."""
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in shown).split())
    return html.escape(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")
