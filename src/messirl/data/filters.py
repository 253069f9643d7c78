"""A small filter language over columns, which selects trajectories.

    role = expert and mouse != 'B 1'
    bout_fraction >= 0.5 or (water_restricted = true and bout < 10)

A comparison is a column, one of = == != < <= > >=, and a value; `and` binds tighter than `or`. Names and values that
contain blanks or operators need single or double quotes; a quote inside is doubled. The type of the column decides the
type of the value: a number, true or false, a time (2024-01-31), or text. Comparing text or booleans by <, <=, >, >= is
an error. An empty cell differs from every value: only `!=` holds for it. The expression is parsed, never executed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from messirl._text import did_you_mean
from messirl._types import Array, Flags, Ints
from messirl.data.errors import InputError

SHOWN = 8  # values of a column that an error lists
DEEPEST = 50  # deepest nesting of parentheses
LONGEST = 10_000  # characters of an expression
TOKEN = re.compile(r"""\s*(?:([()])|(==|!=|<=|>=|=|<|>)|('(?:[^']|'')*'|"(?:[^"]|"")*")|([^\s()=!<>'"]+))""")
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Token = tuple[str, str]  # kind ("sign", "compare", "word", "quoted") and text


def select(meta: Mapping[str, Array], expression: str) -> Flags:
    """Return a mask (n,) of the entries that satisfy the expression."""
    return _parsed(meta, expression)[0]


def matching(meta: Mapping[str, Array], expression: str, called: str = "") -> Ints:
    """Return the rows that satisfy the expression; if none does, raise a ValueError that lists values of its columns.

    called : the name of the filter in the error, such as an option of a command
    """
    mask, named = _parsed(meta, expression)
    if not mask.any():
        there = "; ".join(f"{name!r} holds {most_frequent(np.asarray(meta[name]))}" for name in named)
        raise ValueError(f"{called or 'the filter'} {expression!r} matches no trajectory: {there}")
    return np.flatnonzero(mask)


def most_frequent(column: Array) -> str:
    """Return the most frequent values with their counts, or the range of many numbers."""
    if column.size == 0:
        return "nothing"
    values, often = np.unique(column.astype(str), return_counts=True)
    if values.size > SHOWN and column.dtype.kind in "if":
        return f"{np.nanmin(column):g} to {np.nanmax(column):g}, {values.size} different values"
    order = np.argsort(-often, kind="stable")[:SHOWN]
    more = f" and {values.size - SHOWN} more" if values.size > SHOWN else ""
    return ", ".join(f"{values[i]} ({often[i]})" for i in order) + more


def _parsed(meta: Mapping[str, Array], expression: str) -> tuple[Flags, list[str]]:
    """Return the mask, and the columns that the expression names."""
    if not isinstance(expression, str):
        raise TypeError(f"the filter is {expression!r:.60}: give a text such as 'role = expert'")
    sizes = {name: len(column) for name, column in meta.items()}
    other = next((name for name in sizes if sizes[name] != next(iter(sizes.values()))), None)
    if other is not None:
        first = next(iter(sizes))
        what = f"column {first!r} has {sizes[first]} entries, {other!r} {sizes[other]}"
        raise InputError("columns", what, "give all of them one entry per trajectory")
    parser = _Parser(meta, _tokens(expression), expression)
    mask = parser.either(0)
    if parser.tokens:
        raise parser.wrong(f"unexpected {parser.tokens[0][1]!r}", "join comparisons with and, or")
    return mask, list(dict.fromkeys(parser.named))


def _tokens(expression: str) -> list[Token]:
    if len(expression) > LONGEST:
        raise InputError("filter", f"has {len(expression)} characters", f"at most {LONGEST} are allowed")
    tokens: list[Token] = []
    at = 0
    while expression[at:].strip():
        match = TOKEN.match(expression, at)
        if match is None:
            where = _quoted(expression)
            raise InputError(where, f"cannot be parsed from {expression[at:].strip()[:20]!r} on", "close every quote")
        kind = ("sign", "compare", "quoted", "word")[(match.lastindex or 1) - 1]
        text = match[match.lastindex or 1]
        tokens.append((kind, text[1:-1].replace(text[0] * 2, text[0]) if kind == "quoted" else text))
        at = match.end()
    return tokens


def _quoted(expression: str) -> str:
    short = expression if len(expression) <= 60 else f"{expression[:60]}…"
    return f"filter {short!r}"


class _Parser:
    """A recursive descent parser, with one method per rule of the grammar."""

    def __init__(self, meta: Mapping[str, Array], tokens: list[Token], expression: str) -> None:
        self.meta, self.tokens, self.expression = meta, tokens, expression
        self.named: list[str] = []

    def wrong(self, what: str, remedy: str) -> InputError:
        return InputError(_quoted(self.expression), what, remedy)

    def either(self, depth: int) -> Flags:
        mask = self.both(depth)
        while self._word("or"):
            mask = mask | self.both(depth)
        return mask

    def both(self, depth: int) -> Flags:
        mask = self.term(depth)
        while self._word("and"):
            mask = mask & self.term(depth)
        return mask

    def term(self, depth: int) -> Flags:
        if self._peek() != ("sign", "("):
            return self.comparison()
        if depth >= DEEPEST:
            raise self.wrong(f"nests more than {DEEPEST} parentheses", "use fewer levels")
        self.tokens.pop(0)
        mask = self.either(depth + 1)
        if self._peek() != ("sign", ")"):
            raise self.wrong("a parenthesis is not closed", "add )")
        self.tokens.pop(0)
        return mask

    def comparison(self) -> Flags:
        name = self._take(("word", "quoted"), "a column")
        sign = self._take(("compare",), f"=, !=, <, <=, > or >= after {name!r}")
        value = self._take(("word", "quoted"), f"a value after {sign}")
        if name not in self.meta:
            there = ", ".join(sorted(self.meta)) or "none"
            raise self.wrong(f"there is no column {name!r}", f"the columns are {there}{did_you_mean(name, self.meta)}")
        self.named.append(name)
        return self._compare(name, sign, value)

    def _peek(self) -> Token | None:
        return self.tokens[0] if self.tokens else None

    def _word(self, word: str) -> bool:
        found = self._peek() is not None and self.tokens[0][0] == "word" and self.tokens[0][1].lower() == word
        if found:
            self.tokens.pop(0)
        return found

    def _take(self, kinds: tuple[str, ...], expected: str) -> str:
        token = self._peek()
        if token is None or token[0] not in kinds:
            found = "the end" if token is None else repr(token[1])
            raise self.wrong(f"found {found}, expected {expected}", "write column = value, in quotes if necessary")
        return self.tokens.pop(0)[1]

    def _compare(self, name: str, sign: str, value: str) -> Flags:
        column = np.asarray(self.meta[name])
        null = empty_cells(column)
        filled = column[~null]
        if filled.dtype == object and filled.size and not isinstance(filled[0], str):
            filled = np.array(filled.tolist())
        kind = filled.dtype.kind
        if kind in "bUO" and sign[0] in "<>":
            raise self.wrong(f"column {name!r} has no order", "compare it with = or !=")
        result = np.full(column.size, sign == "!=")
        if filled.size:
            result[~null] = COMPARE[sign](filled, self._value(name, kind, value))
        return result

    def _value(self, name: str, kind: str, value: str) -> Any:
        """Return the value converted to the type of the column."""
        try:
            if kind == "b":
                return {"true": True, "false": False}[value.lower()]
            if kind in "iu":
                return float(value) if not re.fullmatch(r"[+-]?\d{1,18}", value) else int(value)
            if kind == "f":
                return float(value)
            if kind == "M":
                return np.datetime64(value)
        except (ValueError, KeyError, OverflowError):
            wanted = {"b": "true or false", "M": "a time such as 2024-01-31"}.get(kind, "a number")
            raise self.wrong(f"column {name!r} cannot be compared with {value!r}", f"give {wanted}") from None
        return value


def empty_cells(column: Array) -> Flags:
    """Return a mask of the empty cells: None, NaN and NaT."""
    if column.dtype == object:
        return np.array([cell is None or cell != cell for cell in column], dtype=bool)
    return np.asarray(column != column)
