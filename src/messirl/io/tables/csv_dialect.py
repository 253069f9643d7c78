"""CSV as people write it: commas, semicolons or tabs between cells, blanks around them, blank rows.

What separates the cells is found from the first row: the character that divides it into several columns. If several
characters do, the right one gives a column that every table has (`state`, `from`, `trajectory_id`), or else divides
every row into equally many cells; if that does not decide either, the file is refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from messirl.data.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
ALWAYS = {"state", "from", "trajectory_id"}  # one of them is in every table
BLANKS = " \t"
EMPTY = ("is empty", "write the table again, with its column names in the first row")


@dataclass(frozen=True)
class Separated:
    """Column names, rows of cells, the number of each row as a spreadsheet counts it, and what separates cells."""

    names: list[str]
    rows: list[list[str]]
    numbers: list[int]
    separator: str


def read_separated(data: bytes, where: str) -> Separated:
    """The cells of a CSV file; InputError if it is no CSV, or if it is not certain what separates its cells."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(where, "is not UTF-8 text", "save it with the encoding UTF-8", line) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(where, "holds a NUL, which no text does", "save it with the encoding UTF-8", line)
    if re.match(r'"?sep=', text):
        raise InputError(where, "begins with sep=, which is no row of a table", "drop this row", 1)
    sign = _separator(text, where)
    rows: list[list[str]] = []
    numbers: list[int] = []
    read = 0
    try:
        for record in _records(text, sign):
            read += 1
            if any(cell.strip(BLANKS) for cell in record):
                rows.append(record)
                numbers.append(read)
    except csv.Error as error:
        raise InputError(where, f"is not CSV ({error})", "close every quote", read + 1) from None
    if not rows:
        raise InputError(where, *EMPTY)
    names = [name.strip(BLANKS) for name in rows.pop(0)]
    del numbers[0]
    for number, row in zip(numbers, rows, strict=True):
        if len(row) > 1 and [cell.strip(BLANKS) for cell in row] == names:
            raise InputError(where, "is the header once more", "drop this row", number)
        if len(row) != len(names):
            what = f"has {len(row)} cells, but there are {len(names)} columns"
            raise InputError(where, what, _remedy(row, len(row) - len(names), sign), number)
    width = len(names)
    while width > 1 and not names[width - 1] and not any(row[width - 1].strip(BLANKS) for row in rows):
        width -= 1  # spreadsheets write empty columns at the right
    return Separated(names[:width], [row[:width] for row in rows], numbers, sign)


def _records(text: str, sign: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True)


def _separator(text: str, where: str) -> str:
    heads: dict[str, list[str]] = {}
    for sign in SEPARATORS:
        try:
            head = next((row for row in _records(text, sign) if any(cell.strip(BLANKS) for cell in row)), [])
        except csv.Error:
            continue
        if len(head) > 1:
            heads[sign] = head
    if len(heads) < 2:
        return next(iter(heads), ",")
    named = [sign for sign, head in heads.items() if ALWAYS & {name.strip(BLANKS) for name in head}]
    if len(named) == 1:
        return named[0]
    even = [sign for sign in heads if _even(text, sign)]
    if len(even) == 1:
        return even[0]
    signs = " and ".join(SEPARATORS[sign] for sign in heads)
    raise InputError(where, f"its first row holds {signs}, each of which may separate its cells", "use one of them")


def _even(text: str, sign: str) -> bool:
    try:
        return len({len(row) for row in _records(text, sign) if any(cell.strip(BLANKS) for cell in row)}) == 1
    except csv.Error:
        return False


def _remedy(row: list[str], surplus: int, sign: str) -> str:
    split = sum(bool(re.fullmatch(r"-?[0-9]+", a) and re.fullmatch(r"[0-9]+", b)) for a, b in pairwise(row))
    if sign == "," and 0 < surplus <= split:
        return (
            "a comma cannot both separate cells and mark decimals, so write decimals with a point or separate cells "
            "with semicolons; put quotes around text that holds a comma"
        )
    if surplus < 0:
        return "fill in the cells that are missing"
    return f"put quotes around cells that hold {'a comma' if sign == ',' else SEPARATORS[sign]}"
