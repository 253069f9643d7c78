r"""Escaping of text for LaTeX: special characters are escaped, Greek letters and common signs become mathematics.

Other letters stay as they are. pdfLaTeX has those of Latin alphabets, some only with \usepackage[T1]{fontenc}; all
others (Cyrillic, Arabic, Chinese, …) need XeLaTeX or LuaLaTeX and a font that has them. `needs` says which.
"""

from __future__ import annotations

import re
import unicodedata

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo", strict=True))  # Greek letters that look like these
SIGNS = {
    **dict(zip("ςϵϑϕϖϱ", ("varsigma", "epsilon", "vartheta", "phi", "varpi", "varrho"), strict=True)),
    **dict(zip("←→↑↓↔", ("leftarrow", "rightarrow", "uparrow", "downarrow", "leftrightarrow"), strict=True)),
    **dict(
        zip(
            "≤≥≠≈∞∑∏√∂∈ℓ",
            ("le", "ge", "ne", "approx", "infty", "sum", "prod", "surd", "partial", "in", "ell"),
            strict=True,
        )
    ),
    **dict(zip("×÷±∓′″", ("times", "div", "pm", "mp", "prime", "prime\\prime"), strict=True)),
}
ACCENTS = {"\N{COMBINING ACUTE ACCENT}": "acute", "\N{COMBINING DIAERESIS}": "ddot"}
PLAIN = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "[": "{[}",  # at the start of a row, these two would be read as arguments of the preceding row end
    "*": "{*}",
    "`": "{`}",  # else !` and ?` are ¡ and ¿
    "−": "$-$",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    **{sign: f"$^{{{digit}}}$" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{sign: f"$_{{{digit}}}$" for digit, sign in enumerate("₀₁₂₃₄₅₆₇₈₉")},
}
ESCAPED = {
    **PLAIN,
    **{
        unicodedata.lookup(f"GREEK {'SMALL' if name.islower() else 'CAPITAL'} LETTER {name.replace('mbda', 'mda')}"): (
            rf"$\{name}$"
        )
        for name in GREEK.split()
    },
    **{sign: f"${letter}$" if letter == "o" else rf"$\mathrm{{{letter}}}$" for sign, letter in LATIN.items()},
    **{sign: rf"$\{name}$" for sign, name in SIGNS.items()},
}
# Letters and signs beyond ASCII that pdfLaTeX has, determined by compiling each.
WITH_T1 = set("«»ÐÞðþĄąĐđĘęĮįŊŋŲų‚„‹›")
KNOWN = ({chr(code) for code in range(0xA1, 0x180)} | set("–—‘’“”†‡•…‰ȘșȚț€™№") | WITH_T1) - set("ĦħĸĿŀŉŦŧſ")


def escaped(text: str) -> str:
    """Return the text for LaTeX; characters that cannot be printed become spaces."""
    whole = unicodedata.normalize("NFC", "".join(sign if sign.isprintable() else " " for sign in text))
    latex = "".join(ESCAPED.get(sign) or _accented(sign) or sign for sign in whole)
    return re.sub(r"([-,])(?=\1)", r"\1{}", latex)  # else -- is a dash, and ,, a quotation mark


def needs(latex: str) -> str:
    r"""Return a comment with the packages that the LaTeX of a table needs: `% needs \usepackage{booktabs}`."""
    strange = {sign for sign in latex if not sign.isascii()}
    if beyond := strange - KNOWN:
        some = " ".join(sorted(beyond)[:8])
        return rf"% needs \usepackage{{booktabs}}, and XeLaTeX or LuaLaTeX with a font that has {some}"
    more = r" and \usepackage[T1]{fontenc}" if strange & WITH_T1 else ""
    return rf"% needs \usepackage{{booktabs}}{more}"


def _accented(sign: str) -> str:
    """Return a Greek letter with an accent as mathematics, or "" for any other sign."""
    letter, *marks = list(unicodedata.normalize("NFD", sign))
    if letter not in ESCAPED or not marks or not all(mark in ACCENTS for mark in marks):
        return ""
    inside = ESCAPED[letter].strip("$")
    for mark in marks:
        inside = rf"\{ACCENTS[mark]}{{{inside}}}"
    return f"${inside}$"
