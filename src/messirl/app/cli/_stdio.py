"""Standard streams that can always be written to: none is missing, and every character can be encoded.

A closed stream (`2>&-`) is replaced by one that discards everything, so that no file is opened in its place.
A character that the encoding lacks, such as λ in ASCII, is replaced by a word or a similar character.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import sys

PLAIN = "messirl.plain"  # name of the codec error handler
ASCII_EQUIVALENTS = {
    "α": "alpha", "γ": "gamma", "ε": "eps", "η": "eta", "θ": "theta", "λ": "lambda", "μ": "mu", "ν": "nu", "π": "pi",
    "ρ": "rho", "σ": "sigma", "χ": "chi", "Δ": "Delta", "Σ": "sum", "−": "-", "–": "-", "—": "-", "±": "+-", "×": "x",
    "·": "*", "≤": "<=", "≥": ">=", "∞": "inf", "½": "1/2", "²": "^2", "‖": "||", "…": "...", "→": "->", "’": "'",
    "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\u2009": " ", "━": "-", "╸": "-", "╺": "-", "•": "*", "⠋": "*",
}  # fmt: skip


def prepare() -> None:
    """Make the standard streams safe to write to; call this before any output."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            hole = os.open(os.devnull, os.O_RDWR)
            if hole != number and not _is_open(number):
                os.dup2(hole, number)
            setattr(sys, name, os.fdopen(hole, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            with contextlib.suppress(OSError):  # the descriptor belongs to another file by now
                stream.reconfigure(errors=PLAIN)


def encodes_all_characters(stream: object) -> bool:
    """Return whether a stream can encode every character."""
    return str(getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-") in ("utf-8", "utf8", "utf-16")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    if all("\udc80" <= letter <= "\udcff" for letter in letters):  # undecodable bytes of a file name: written unchanged
        return bytes(ord(letter) - 0xDC00 for letter in letters), error.end
    return "".join(ASCII_EQUIVALENTS.get(letter, f"\\u{ord(letter):04x}") for letter in letters), error.end
