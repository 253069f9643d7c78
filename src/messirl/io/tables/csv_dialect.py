"""CSV dialects: commas, semicolons or tabs as delimiter, blanks around cells, blank rows.

The delimiter is the character that divides the first row into several columns. If several characters do, the right one
gives a column that every table has (`state`, `from`, `trajectory_id`), or else divides every row into equally many
cells. If that does not decide either, the file is rejected.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from messirl._text import count_noun
from messirl.data.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
ALWAYS = {"state", "from", "trajectory_id"}  # one of them is in every table
BLANKS = " \t"
EMPTY = ("is empty", "write the table again, with its column names in the first row")


@dataclass(frozen=True)
class CsvCells:
    """Column names, rows of cells, spreadsheet row numbers, and the delimiter of a CSV file."""

    names: list[str]
    rows: list[list[str]]
    numbers: list[int]
    separator: str


def read_csv_cells(data: bytes, where: str) -> CsvCells:
    """Read the cells of a CSV file; raise InputError if it is not CSV or its delimiter is ambiguous."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(where, "is not UTF-8 text", "save it with the encoding UTF-8", line) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(where, "contains a NUL character", "save it with the encoding UTF-8", line)
    if re.match(r'"?sep=', text):
        raise InputError(where, "begins with sep=, which is not a row of a table", "delete this row", 1)
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
        raise InputError(where, f"is not valid CSV ({error})", "close every quotation mark", read + 1) from None
    if not rows:
        raise InputError(where, *EMPTY)
    names = [name.strip(BLANKS) for name in rows.pop(0)]
    del numbers[0]
    for number, row in zip(numbers, rows, strict=True):
        if len(row) > 1 and [cell.strip(BLANKS) for cell in row] == names:
            raise InputError(where, "repeats the header", "delete this row", number)
        if len(row) != len(names):
            what = f"has {count_noun(len(row), 'cell')}, but there are {len(names)} columns"
            raise InputError(where, what, _remedy(row, len(row) - len(names), sign), number)
    width = len(names)
    while width > 1 and not names[width - 1] and not any(row[width - 1].strip(BLANKS) for row in rows):
        width -= 1  # spreadsheets write empty columns at the right
    return CsvCells(names[:width], [row[:width] for row in rows], numbers, sign)


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
    raise InputError(where, f"the first row contains {signs}, and each could be the delimiter", "use only one")


def _even(text: str, sign: str) -> bool:
    try:
        return len({len(row) for row in _records(text, sign) if any(cell.strip(BLANKS) for cell in row)}) == 1
    except csv.Error:
        return False


def _remedy(row: list[str], surplus: int, sign: str) -> str:
    split = sum(bool(re.fullmatch(r"-?[0-9]+", a) and re.fullmatch(r"[0-9]+", b)) for a, b in pairwise(row))
    if sign == "," and 0 < surplus <= split:
        return (
            "a comma cannot be both delimiter and decimal mark; write decimals with a point, or separate cells "
            "with semicolons; put quotation marks around text that contains a comma"
        )
    if surplus < 0:
        return "fill in the missing cells"
    return f"put quotation marks around cells that contain {'a comma' if sign == ',' else SEPARATORS[sign]}"
