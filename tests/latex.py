"""A tabular as LaTeX would take it: what would stop it is an error here, and cells come back as the text they print."""

from __future__ import annotations

import re

TEXT = {"textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">"}
TEXT |= {"textbar": "|", **{sign: sign for sign in "{}$&#%_"}, ",": " "}
GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
RULES = ("toprule", "midrule", "bottomrule")
MATH = {  # what has no argument, and its sign or its name; of accents their argument stays
    **{"times": "×", "div": "÷", "pm": "±", "mp": "∓", "le": "≤", "ge": "≥", "ne": "≠", "approx": "≈", "infty": "∞"},
    **{"sum": "∑", "prod": "∏", "surd": "√", "partial": "∂", "in": "∈", "ell": "ℓ", "prime": "′", "mathrm": ""},
    **{"leftarrow": "←", "rightarrow": "→", "uparrow": "↑", "downarrow": "↓", "leftrightarrow": "↔", ",": " "},
    **{"acute": "", "ddot": "", "varsigma": "ς", "vartheta": "ϑ", "varpi": "ϖ", "varrho": "ϱ"},
    **{name: f"[{name}]" for name in re.findall("[a-zA-Z]+", GREEK)},
}
LIGATURES = {"---": "—", "--": "–", ",,": "„", "!`": "¡", "?`": "¿"}  # with T1 fonts
TOKEN = re.compile(r"\\([a-zA-Z]+) *|\\(.)|(---|--|,,|!`|\?`)|(.)", re.DOTALL)
SPAN = re.compile(r"\\multicolumn\{(\d+)\}\{[lcr]\}\{(.*)\}", re.DOTALL)


def read(text: str) -> list[list[str]]:
    """The rows of the one tabular in a text, each with a cell for every column; a cell that spans some, once for each.

    Comments and rules are left out. An AssertionError says what LaTeX would stop at, or take for something else.
    """
    code = "".join(re.split(r"(?<!\\)%", line)[0] + "\n" for line in text.splitlines() if not line.startswith("%"))
    found = re.fullmatch(r"\s*\\begin\{tabular\}\{([lcr]+)\}(.*)\\end\{tabular\}\s*", code, re.DOTALL)
    assert found, "no tabular, or more than that"
    columns, rows = len(found[1]), []
    *whole, rest = _split(found[2], "\\\\")
    assert _without_rules(rest) == "", f"a row without an end: {rest!r}"
    for row in whole:
        inside = _without_rules(row)
        assert inside[:1] not in ("[", "*"), f"belongs to the end of the row before: {inside!r}"
        cells = [cell for part in _split(inside, "&") for cell in _spanned(part.strip())]
        assert len(cells) == columns, f"{len(cells)} cells in {columns} columns: {inside!r}"
        rows.append(cells)
    return rows


def _split(code: str, sign: str) -> list[str]:
    """The parts between a sign that stands in no group; groups and formulas must be closed within a part."""
    parts, depth, formula = [""], 0, False
    for token in TOKEN.finditer(code):
        if token[0] == sign and depth == 0:
            assert not formula, f"a formula that does not end: {parts[-1]!r}"
            parts.append("")
            continue
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        assert depth >= 0, f"}} without {{: {parts[-1]!r}"
        formula ^= token[0] == "$"
        parts[-1] += token[0]
    assert depth == 0, f"{{ without }}: {parts[-1]!r}"
    assert not formula, f"a formula that does not end: {parts[-1]!r}"
    return parts


def _without_rules(code: str) -> str:
    return re.sub(rf"\\({'|'.join(RULES)})\b", "", code).strip()


def _spanned(cell: str) -> list[str]:
    span = SPAN.fullmatch(cell)
    return [_printed(cell)] if span is None else [_printed(span[2])] * int(span[1])


def _printed(code: str) -> str:
    """What a cell prints."""
    out, formula = "", False
    assert not re.search(r"([\^_])\{[^{}]*\}\1", code), f"raised or lowered twice: {code!r}"
    for word, symbol, ligature, sign in (token.groups("") for token in TOKEN.finditer(code)):
        if name := word or symbol:
            assert name in (MATH if formula else TEXT), f"\\{name} {'in' if formula else 'outside'} a formula: {code!r}"
            out += (MATH if formula else TEXT)[name]
        elif sign == "$":
            formula = not formula
        elif sign in ("^", "_"):
            assert formula, f"{sign} outside a formula: {code!r}"
        else:
            assert sign not in ("#", "&", "~"), f"{sign} means something to LaTeX: {code!r}"
            out += LIGATURES.get(ligature, ligature) if not formula else ligature
            out += sign if sign not in ("{", "}") else ""
    return out
