"""Tables from CSV, Parquet or any object with named columns, read into columns of six kinds.

    whole    int64               number   float64, NaN where empty        flag   bool
    text     str                 time     datetime64                      empty  nothing but empty cells

Parquet and tables in memory carry types. CSV does not, so a column gets the first of the kinds whole, number and flag
(true, false) that fits all its cells, else text. Blanks around a cell are ignored, and an empty cell is null. `007` and
`+5` are text, and so are whole numbers too large for 64 bits (kind "huge"). Decimal commas are accepted if semicolons
or tabs separate the cells and nothing else in the table contradicts that. The table's notes list such interpretations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from messirl._memory_guard import unpacking_limit
from messirl._types import Array, Flags, Floats
from messirl.data.errors import InputError
from messirl.data.parquet import AGAIN, check_claims
from messirl.io.tables.csv_dialect import BLANKS, EMPTY, SEPARATORS, read_csv_cells

WHOLE = r"^(0|-?[1-9][0-9]*)$"
NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^-?(?i:nan|inf|infinity)$"
FLAG = r"^(true|false|True|False|TRUE|FALSE)$"
COMMA = r"^-?(0|[1-9][0-9]*)?,[0-9]+([eE][+-]?[0-9]+)?$"  # a number with a decimal comma
THOUSANDS = r"^-?[1-9][0-9]{0,2},[0-9]{3}$"  # ambiguous: the comma may be a thousands separator
IDS = ("state", "from", "to", "action", "trajectory_id", "step", "goal", "name")  # columns without decimals
UNPACKED = 2**29  # bytes that a table may occupy, whatever the size of its file
UNREADABLE = "is not a readable Parquet file"
SHOWN = 60  # characters of a cell shown in an error


@dataclass(frozen=True, eq=False)
class Column:
    """One column: its kind, its values (arbitrary where null), and its cells as text if they came as text."""

    kind: str
    values: Array
    null: Flags
    text: Any = None  # pyarrow.StringArray

    def show(self, row: int) -> str:
        """Return a cell for an error message."""
        if self.null[row]:
            return "nothing"
        shown = str(self.values[row]) if self.kind in ("whole", "number", "flag") else repr(self.values[row])
        return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"

    def array(self) -> Array:
        """Return the column as a typed array; of type object, with None, only for text or if a cell is empty."""
        if self.kind in ("number", "time") or (self.kind in ("whole", "flag") and not self.null.any()):
            return self.values
        kept = self.values.astype(object)
        kept[self.null] = None
        return kept


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, each converted when first needed.

    where : name of the table in errors
    numbers : spreadsheet number of each row; None: 2, 3, …, after the header in row 1
    notes : notes on what was interpreted; complete after every column was converted
    """

    where: str
    cells: Mapping[str, Any]
    n_rows: int
    typed: bool
    separator: str = ","
    numbers: Sequence[int] | None = None
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _columns(self) -> dict[str, Column]:
        return {}

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.cells)

    def error(self, what: str, remedy: str, row: int | None = None) -> InputError:
        """Return an error about the table, or about one of its rows (0, 1, 2, …)."""
        number = row if row is None else row + 2 if self.numbers is None else self.numbers[row]
        return InputError(self.where, what, remedy, number)

    def column(self, name: str) -> Column:
        """Return the column of that name; raise InputError if its type is not supported."""
        if name not in self._columns:
            cells = self.cells[name]
            if not self.typed and self.separator != "," and name in self._decimal_commas:
                cells = self._with_decimal_points(name)
            self._columns[name] = column_of_arrow(cells, self.where, name) if self.typed else column_of_text(cells)
        return self._columns[name]

    @cached_property
    def _decimal_commas(self) -> dict[str, Any]:
        """Columns of numbers with decimal commas, each with a mask of the cells that have one."""
        found = {}
        for name, cells in self.cells.items():
            commas = np.zeros(0, dtype=bool) if name in IDS else matches(cells, COMMA)
            if commas.any() and (commas | matches(cells, NUMBER) | np.asarray(pc.equal(cells, ""))).all():
                found[name] = commas
        return found

    def _with_decimal_points(self, name: str) -> Any:
        """Replace the decimal commas of a column by points, provided that they are unambiguous."""
        commas, cells = self._decimal_commas[name], self.cells[name]
        row = int(np.argmax(commas))
        for other, column in self.cells.items():
            point = np.zeros(0, dtype=bool) if other in IDS else matches(column, NUMBER) & matches(column, r"\.")
            if point.any():
                there = column[int(np.argmax(point))].as_py()
                what = f"holds decimal commas ({cells[row].as_py()!r}) and decimal points ({there!r})"
                raise self.error(what, "use one decimal mark throughout", row)
        if all(matches(self.cells[n], THOUSANDS)[at].all() for n, at in self._decimal_commas.items()):
            given = cells[row].as_py()
            what = f"{name} holds {given!r}, which may be {given.replace(',', '.')} or {given.replace(',', '')}"
            raise self.error(what, "write decimals with a point and no thousands separator", row)
        remark = f"{self.where}: decimal commas are read as decimal points ({', '.join(self._decimal_commas)})"
        if remark not in self.notes:
            self.notes.append(remark)
        return pc.replace_substring(cells, ",", ".")


def load_table(source: Any, called: str = "table") -> Table:
    """Load a table from a .csv or .parquet file, or from any object with columns and column names.

    called : name in errors of a table without a path
    """
    if not isinstance(source, str | os.PathLike):
        return _from_memory(source, called)
    path = Path(source)
    where = path.name
    if path.is_dir():
        raise InputError(where, "is a directory", "give a CSV or Parquet file of that name")
    if path.exists() and not path.is_file():  # reading a pipe could block
        raise InputError(where, "is not a regular file", "give a CSV or Parquet file of that name")
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError(where, f"has the suffix {suffix!r}", "name it .csv or .parquet, according to its content")
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(where, "does not exist", "add the file, or correct the path") from None
    except OSError as error:
        raise InputError(where, f"cannot be read ({error.strerror})", "check its permissions and the disk") from None
    if not data:
        raise InputError(where, *EMPTY)
    return _from_csv(data, where) if suffix == ".csv" else _from_parquet(data, where)


def _from_csv(data: bytes, where: str) -> Table:
    found = read_csv_cells(data, where)
    columns = zip(*found.rows, strict=True) if found.rows else ((),) * len(found.names)
    arrays = [pc.utf8_trim(pa.array(cells, pa.string()), BLANKS) for cells in columns]
    table = _table(where, found.names, arrays, typed=False, separator=found.separator, numbers=found.numbers)
    if found.separator != ",":
        table.notes.append(f"{where}: the columns are separated by {SEPARATORS[found.separator]}")
    return table


def _from_parquet(data: bytes, where: str) -> Table:
    most = max(unpacking_limit(len(data)), min(UNPACKED, unpacking_limit(math.inf)))
    try:
        file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, page_checksum_verification=True)
        kinds = {field.name: field.type for field in file.schema_arrow}
        texts, odd = ([name for name, kind in kinds.items() if test(kind)] for test in (_is_text, _is_unsupported))
        check_claims(where, file.metadata, len(data), most, texts=len(texts))
        if texts:  # keep repeated text once until its length is known
            file = pq.ParquetFile(pa.BufferReader(data), read_dictionary=texts, page_checksum_verification=True)
        known = [name for name in file.schema_arrow.names if name not in odd]
        table = file.read(known, use_threads=False)  # threads may delay the exit of a short command
        table.validate(full=True)
        names = table.column_names  # fails if they are not UTF-8
        if sum(_text_bytes(chunk) for name in texts for chunk in table[name].chunks) > most:
            raise InputError(where, f"unpacks to too much text for a file of {len(data):,} bytes", AGAIN)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200]
        damage = "does not fit into memory, or is damaged" if isinstance(error, MemoryError) else UNREADABLE
        raise InputError(where, f"{damage} ({reason})", AGAIN) from None
    unread = [pa.nulls(table.num_rows, kinds[name]) for name in odd]  # of unusable types
    return _table(where, [*names, *odd], [*map(_combined, table.columns), *unread], typed=True)


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_unsupported(kind: Any) -> bool:
    """Return True for columns of lists, records or bytes."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_nested(kind) or "binary" in str(kind))


def _text_bytes(column: Any) -> int:
    """Return the number of bytes of a text column, dictionary-encoded or plain."""
    if not pa.types.is_dictionary(column.type):
        return int(pc.sum(pc.binary_length(column)).as_py() or 0)
    size = np.asarray(pc.fill_null(pc.binary_length(column.dictionary), 0), dtype=np.int64)
    at = np.asarray(pc.fill_null(column.indices, -1))
    return int(np.append(size, 0)[at].sum())


def _from_memory(source: Any, where: str) -> Table:
    if isinstance(source, pa.Table):
        return _table(where, source.column_names, [_combined(column) for column in source.columns], typed=True)
    if not isinstance(source, Mapping) and not hasattr(source, "columns"):
        what = f"is a {type(source).__name__}"
        raise InputError(where, what, "give a path, a data frame, or a mapping from column names to columns")
    names = list(source) if isinstance(source, Mapping) else list(source.columns)
    for name in names:
        if not isinstance(name, str):
            raise InputError(where, f"has a column named {name!r}", "name every column with text")
    _check_distinct(where, names)
    return _table(where, names, [_to_arrow(source[name], where, name) for name in names], typed=True)


def _to_arrow(values: Any, where: str, name: str) -> Any:
    try:
        made = values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True)
        made = _combined(made)
        made.validate(full=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        remedy = "keep numbers, text or booleans in a column, one kind only"
        raise InputError(where, f"column {name!r} mixes types ({reason})", remedy) from None
    return made


def _combined(column: Any) -> Any:
    """Combine the chunks of a column, if any, into one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _check_distinct(where: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(where, f"has two columns named {twice!r}", "keep one of them")


def _table(where: str, names: list[str], arrays: list[Any], *, typed: bool, **how: Any) -> Table:
    _check_distinct(where, names)
    cells = dict(zip(names, arrays, strict=True))
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise InputError(where, f"has columns of {min(lengths)} and of {max(lengths)} rows", "make them equally long")
    return Table(where, cells, lengths.pop() if lengths else 0, typed, **how)


def column_of_text(text: Any) -> Column:
    """Determine the kind and values of a column of CSV cells."""
    null = np.asarray(pc.equal(text, ""))
    filled = text.filter(pa.array(~null)) if null.any() else text
    kind, parsed = _parsed(filled)
    values = parsed
    if null.any():
        values = np.zeros(len(text), dtype=parsed.dtype)
        values[~null] = parsed
        if kind == "number":
            values[null] = np.nan
    return Column(kind, values, null, text)  # "nan" is not an empty cell, as it may be a label


def _parsed(filled: Any) -> tuple[str, Array]:
    if len(filled) == 0:
        return "empty", np.zeros(0, dtype=object)
    if matches(filled, WHOLE).all():
        try:
            return "whole", np.asarray(filled.cast(pa.int64()))
        except pa.ArrowInvalid:
            return "huge", _object_array(filled)
    if matches(filled, NUMBER).all():
        return "number", floats(filled)
    if matches(filled, FLAG).all():
        return "flag", np.asarray(pc.equal(pc.utf8_lower(filled), "true"))
    return "text", _object_array(filled)


def matches(text: Any, pattern: str) -> Flags:
    """Return a mask of the cells that match a regular expression; null cells do not."""
    matched = pc.match_substring_regex(text, pattern=pattern)
    return np.asarray(pc.fill_null(matched, False) if matched.null_count else matched, dtype=bool)


def floats(text: Any) -> Floats:
    """Convert cells that all match NUMBER as Python does: 1e999 is inf, which Arrow rejects."""
    try:
        return np.asarray(text.cast(pa.float64()))
    except pa.ArrowInvalid:
        return np.array([float(cell) for cell in text.to_pylist()])


def _object_array(array: Any) -> Array:
    values = np.empty(len(array), dtype=object)
    values[:] = array.to_pylist()
    return values


def column_of_arrow(cells: Any, where: str, name: str) -> Column:
    """Determine the kind and values of a typed column."""
    shared = None
    if pa.types.is_dictionary(cells.type):
        if _is_text(cells.type) and not cells.dictionary.null_count:
            shared = np.append(_object_array(cells.dictionary), np.array([None]))[
                np.asarray(pc.fill_null(cells.indices, -1))
            ]
        cells = cells.dictionary_decode()
    kind, null, test = cells.type, np.asarray(cells.is_null()), pa.types
    if test.is_null(kind):
        return Column("empty", np.full(len(cells), None, dtype=object), null)
    if test.is_string(kind) or test.is_large_string(kind) or str(kind) == "string_view":
        text = cells.cast(pa.string())
        return Column("text", _object_array(text) if shared is None else shared, null, text)
    if test.is_boolean(kind):
        return Column("flag", np.asarray(pc.fill_null(cells, False)), null)
    if test.is_integer(kind):
        try:
            return Column("whole", np.asarray(pc.fill_null(cells.cast(pa.int64()), 0)), null)
        except pa.ArrowInvalid:
            text = cells.cast(pa.string())
            return Column("huge", _object_array(text), null, text)
    if test.is_floating(kind) or test.is_decimal(kind):
        values = np.asarray(pc.fill_null(cells.cast(pa.float64(), safe=False), np.nan))
        return Column("number", values, np.isnan(values))
    if test.is_timestamp(kind) or test.is_date(kind):
        return Column("time", cells.to_numpy(zero_copy_only=False), null)
    remedy = "drop it, or convert it to numbers, booleans, text or times"
    raise InputError(where, f"column {name!r} holds {kind}", remedy)
