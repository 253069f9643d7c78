"""Raw tables: CSV with any delimiter and decimal mark, with a header or without, and Parquet; one file or a folder.

The delimiter is the character that divides the first rows into equally many cells. Arrow reads CSV as text, so that a
million rows take seconds and little memory; the type of a column is decided where it is used.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from messirl._text import count_noun
from messirl._types import Floats, Ints
from messirl.data.errors import InputError
from messirl.io.tables.columns import number_remedy
from messirl.io.tables.csv_dialect import BLANKS
from messirl.io.tables.table import COMMA, NUMBER, Column, Table, load_table, matches

SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}
WORDS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|", "blank": " ", "space": " "}
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".parquet")
MISSING = r"^(?i:na|n/a|nan|null|none|-|\?)$"  # spellings of a missing number
LOOKED_AT = 100  # rows from which the delimiter is recognised
HEAD = 1 << 16  # bytes that are searched for these rows


@dataclass(frozen=True, eq=False)
class RawTable:
    """The rows of one or more files, concatenated.

    tables : one per file, all with the same columns
    separated : note on the delimiter, if it was recognised
    """

    tables: Sequence[Table]
    separated: str | None = None

    @property
    def notes(self) -> list[str]:
        """Notes on recognised formats; complete after every column was read."""
        commas = any(table.notes for table in self.tables)
        return [*filter(None, [self.separated]), *(["decimal commas (recognised)"] if commas else [])]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.tables[0].names

    @property
    def files(self) -> list[str]:
        """Names of the files."""
        return [table.where for table in self.tables]

    @property
    def offsets(self) -> Ints:
        """Offsets: file i holds the rows offsets[i] : offsets[i + 1]."""
        return np.cumsum([0, *(table.n_rows for table in self.tables)])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    @property
    def file_of(self) -> Ints:
        """Index of the file of each row."""
        return np.repeat(np.arange(len(self.tables)), [table.n_rows for table in self.tables])

    def error(self, what: str, remedy: str, row: int | None = None) -> InputError:
        """Return an error about the rows, or about one of them."""
        if row is None:
            where = self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"
            return InputError(where, what, remedy)
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return self.tables[i].error(what, remedy, row - int(self.offsets[i]))

    def arrow(self, name: str) -> Any:
        """Return a column, or two joined as `a+b`, as an Arrow array; empty cells of a CSV are null."""
        if name not in self.names:
            return pc.binary_join_element_wise(*(self.arrow(part).cast(pa.string()) for part in name.split("+")), " ")
        parts = []
        for table in self.tables:
            cells = table.cells[name]
            if pa.types.is_dictionary(cells.type):
                cells = cells.dictionary_decode()
            parts.append(cells if table.typed else pc.if_else(pc.equal(cells, ""), None, cells))
        kinds = {part.type for part in parts}
        if len(kinds) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        return pa.concat_arrays(parts)

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers, NaN where a cell is empty; raise InputError for anything else."""
        return np.concatenate([self._numbers(table, name) for table in self.tables])

    def _numbers(self, table: Table, name: str) -> Floats:
        try:
            column = table.column(name)
        except InputError as error:  # ambiguous decimal commas
            remedy = error.remedy if table.typed else "give the decimal mark with `decimal`"
            raise InputError(error.where, error.what, remedy, error.row) from None
        if column.kind == "empty":
            return np.full(table.n_rows, np.nan)
        if column.kind not in ("whole", "number", "flag"):
            raise self._number_error(table, name, column)
        return np.where(column.null, np.nan, column.values.astype(np.float64))

    def _number_error(self, table: Table, name: str, column: Column) -> InputError:
        wrong = ~column.null
        remedy = "write plain numbers, with their unit in the header"
        if column.text is not None and not table.typed:
            wrong &= ~matches(column.text, NUMBER)
            if (matches(column.text, COMMA) & wrong).any():
                remedy = "use one decimal mark throughout, or give `decimal`"
            else:
                remedy = number_remedy(column, wrong, remedy)
        row = int(np.argmax(wrong))
        return table.error(f"{name} holds {column.show(row)}, not a number", remedy, row)


def read_raw(
    source: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    columns: Sequence[str] | None = None,
) -> RawTable:
    """Read the table in a file, or those in all files of a folder.

    separator : the delimiter, or its name (tab, semicolon, …); None: recognise it
    decimal : "." or ","; None: recognise it
    columns : the names of the columns of a file without a header
    """
    place = Path(source)
    given = None if separator is None else WORDS.get(separator, separator)
    if given is not None and len(given) != 1:
        raise InputError("`separator`", f"is {separator!r}", f"give one character, or {', '.join(WORDS)}")
    tables: list[Table] = []
    signs: set[str] = set()
    for path in _files(place):
        if path.suffix.lower() == ".parquet":
            table = load_table(path)
        else:
            table, sign = _read(path, given, decimal, columns)
            signs.add(SIGNS.get(sign, sign))
        if tables and table.names != tables[0].names:
            what = f"has the columns {', '.join(table.names)}, but {tables[0].where} has {', '.join(tables[0].names)}"
            raise InputError(table.where, what, "give files with the same columns")
        tables.append(table)
    if not any(table.n_rows for table in tables):
        raise InputError(place.name, "has a header but no rows", "give a file with recordings")
    said = f"columns separated by {' or '.join(sorted(signs))} (recognised)" if separator is None and signs else None
    return RawTable(tables, said)


def _files(place: Path) -> list[Path]:
    if not place.exists():
        raise InputError(str(place), "does not exist", "correct the path")
    if place.is_file():
        if place.suffix.lower() not in SUFFIXES:
            raise InputError(place.name, f"has the suffix {place.suffix!r}", f"give one of {', '.join(SUFFIXES)}")
        return [place]
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES and path.name[0] != ".")
    if not found:
        raise InputError(str(place), "contains no table", f"give a folder with files {', '.join(SUFFIXES)}")
    return found


def _read(path: Path, sign: str | None, decimal: str | None, columns: Sequence[str] | None) -> tuple[Table, str]:
    """Read a table of text, and return it with its delimiter."""
    where = path.name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(where, f"cannot be read ({error.strerror})", "check its permissions and the disk") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise InputError(where, "is empty", "give a file with recordings")
    lines = _first_lines(data, where)
    sign = sign or _separator(lines, where)
    head = _cells(lines[:1], sign)[0]
    names = [name.strip(BLANKS) for name in (head if columns is None else columns)]
    _check_names(names, head, where)
    if columns is not None and _is_header(head, _cells(lines[1:], sign)):
        what = f"its first row seems to hold names ({', '.join(head[:4])}), but `columns` names the columns, too"
        raise InputError(where, what, "drop that row, or leave `columns` out", 1)
    cells = _parsed(data, where, sign, names, header=columns is None)
    cells = {name: _cleaned(column, decimal) for name, column in cells.items()}
    n = len(next(iter(cells.values())))
    again = np.all([np.asarray(pc.fill_null(pc.equal(column, name), False)) for name, column in cells.items()], axis=0)
    if columns is None and again.any():
        row = int(np.argmax(again)) + 2
        raise InputError(where, "repeats the header", "delete this row", row)
    # With a given decimal mark the table must recognise none, as when the delimiter is a comma.
    numbers = None if columns is None else range(1, n + 1)
    return Table(where, cells, n, False, "," if decimal is not None else sign, numbers), sign


def _first_lines(data: bytes, where: str) -> list[str]:
    if b"\0" in data[:HEAD]:
        raise InputError(where, "is not UTF-8 text", "save it with the encoding UTF-8")
    head = data[:HEAD]
    if len(data) > HEAD:
        head = head[: head.rfind(b"\n") + 1] or head
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        row = data[: error.start].count(b"\n") + 1
        raise InputError(where, "is not UTF-8 text", "save it with the encoding UTF-8", row) from None
    return [line for line in text.splitlines() if line.strip()][:LOOKED_AT]


def _cells(lines: Sequence[str], sign: str) -> list[list[str]]:
    if sign == " ":
        return [line.split() for line in lines]
    return list(csv.reader(lines, delimiter=sign))


def _separator(lines: Sequence[str], where: str) -> str:
    widths = {sign: [len(row) for row in _cells(lines, sign)] for sign in SIGNS}
    several = [sign for sign, width in widths.items() if width[0] > 1]
    even = [sign for sign in several if len(set(widths[sign])) == 1]
    even = [sign for sign in even if sign != " "] or even  # a timestamp may contain a blank
    if len(even) == 1:
        return even[0]
    if not several:
        what = "has only one column, or an unknown delimiter"
        raise InputError(where, what, "give the delimiter with `separator`")
    plain = [sign for sign in several if sign != " "] or several
    if not even and len(plain) == 1:
        return plain[0]
    signs = " and ".join(SIGNS[sign] for sign in even or plain)
    what = f"the first row contains {signs}, and each of them could be the delimiter"
    raise InputError(where, what, "use one delimiter throughout, or give `separator`")


def _is_header(head: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether two or more columns are numeric except for a word in their first cell, as below a header."""
    numbered = 0
    for first, *column in zip(head, *(row for row in rows if len(row) == len(head)), strict=True):
        word = first.strip() and not any(re.fullmatch(kind, first.strip()) for kind in (NUMBER, COMMA, MISSING))
        numbered += bool(word and column and all(re.fullmatch(NUMBER, cell.strip()) for cell in column))
    return numbered > 1


def _check_names(names: Sequence[str], head: Sequence[str], where: str) -> None:
    """Raise InputError if the column names are invalid; `head` holds the cells of the first row."""
    if len(names) != len(head):
        what = f"has {count_noun(len(head), 'column')}, but `columns` names {len(names)}"
        raise InputError(where, what, "name each column")
    if sum(re.fullmatch(NUMBER, name) is not None for name in names) > 1:
        what = f"has numbers in its first row ({', '.join(names[:4])}), not column names"
        raise InputError(where, what, "name the columns with `columns`, as in `columns` frame,id,x,y", 1)
    for i, name in enumerate(names):
        if not name:
            raise InputError(where, f"column {i + 1} has no name", "name every column in the first row", 1)
        if name in names[:i]:
            raise InputError(where, f"has two columns named {name!r}", "rename one of them", 1)


def _parsed(data: bytes, where: str, sign: str, names: list[str], *, header: bool) -> dict[str, Any]:
    """Return every cell as text, one array per column."""
    if sign == " ":
        data = re.sub(rb"[ \t]+", b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+\r?$", b"", data))
    wrong: list[Any] = []

    def keep(row: Any) -> str:
        wrong.append(row)
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(use_threads=False, column_names=names, skip_rows_after_names=int(header)),
            pa.csv.ParseOptions(
                delimiter="\t" if sign == " " else sign, newlines_in_values=True, invalid_row_handler=keep
            ),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        reason = " ".join(str(error).split())
        if "UTF8" in reason:
            raise InputError(where, "is not UTF-8 text", "save it with the encoding UTF-8") from None
        raise InputError(where, f"is not valid CSV ({reason[:120]})", "close every quotation mark") from None
    if wrong:
        row = wrong[0]
        what = f"has {count_noun(row.actual_columns, 'cell')}, but there are {row.expected_columns} columns"
        raise InputError(where, what, _remedy(row, sign), row.number)
    return {name: table.column(name).combine_chunks() for name in names}


def _remedy(row: Any, sign: str) -> str:
    """Return the remedy for a row with too few or too many cells."""
    other = next((SIGNS[s] for s in SIGNS if s not in (sign, " ") and s in row.text), None)
    if other is not None:
        return f"it contains {other}; use the same delimiter in all rows"
    if row.actual_columns < row.expected_columns:
        return "fill in the missing cells"
    if sign == ",":
        return "a comma cannot be both delimiter and decimal mark; put quotation marks around text that contains one"
    return "put quotation marks around text that contains the delimiter"


def _cleaned(cells: Any, decimal: str | None) -> Any:
    """Strip blanks from cells; in a column of numbers, replace spellings of a missing number by empty cells."""
    cells = pc.utf8_trim(cells, BLANKS)
    lacking = matches(cells, MISSING)
    if lacking.any():
        number = matches(cells, NUMBER) | matches(cells, COMMA) | np.asarray(pc.equal(cells, ""))
        if (lacking | number).all():
            cells = pc.if_else(pa.array(lacking), "", cells)
    if decimal == ",":
        comma = matches(cells, COMMA)
        if (comma | matches(cells, NUMBER) | np.asarray(pc.equal(cells, ""))).all():
            cells = pc.replace_substring(cells, ",", ".")
    return cells
