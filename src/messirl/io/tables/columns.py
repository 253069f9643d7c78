"""Checked columns of a table: ids, numbers, booleans and text; empty cells only where allowed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from messirl._text import closest_word, did_you_mean
from messirl._types import Flags, Floats, Ints
from messirl.io.tables.error_collector import ErrorCollector
from messirl.io.tables.table import COMMA, NUMBER, Column, Table, floats, matches

SMALL_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # whole numbers that are sure to fit into 64 bits
POINT_ZERO = r"^(0|-?[1-9][0-9]{0,17})\.0$"  # how pandas writes whole numbers if one is missing
YES_NO = r"^(?i:yes|no|true|false)$"
NEEDED = {"trajectory_id": "id"}  # other names under which a required column is recognised in an error
USED = {"prob": "probability", "p": "probability", "done": "terminal", "end": "terminal"}  # and an optional one
ALIKE = 0.8  # similarity of names above which a note suspects a misspelt column
WRITE_WHOLE = "write whole numbers, without a decimal point (pandas: astype('Int64')), or labels of text"
KINDS = {
    "whole": "whole numbers",
    "number": "decimal numbers",
    "flag": "booleans",
    "text": "text",
    "time": "times",
    "huge": "whole numbers too large for 64 bits",
    "empty": "nothing",
}


def has_columns(faults: ErrorCollector, table: Table, *names: str) -> bool:
    """Return True if all columns exist; report a fault for each missing one."""
    lacking = [name for name in names if name not in table.cells]
    for name in lacking:
        there = ", ".join(repr(known) for known in table.names[:12]) or "none"
        free = [other for other in table.names if other not in names]
        remedy = f"add it, or rename one{did_you_mean(name, free, NEEDED)}"
        faults.add(table.error(f"column {name!r} is missing (there are {there})", remedy))
    return not lacking


def note_misspelt_columns(faults: ErrorCollector, table: Table, kept: Iterable[str], unused: Iterable[str]) -> None:
    """Add a note on each unused column whose name resembles that of a known column."""
    known = [name for name in unused if name not in table.cells]
    for name in kept:
        close = closest_word(name, known, USED)
        if close is None:
            continue
        if name.lower() in USED or SequenceMatcher(None, name.lower(), close).ratio() >= ALIKE:
            faults.notes.append(f"{table.where}: column {name!r} is kept but not used; did you mean {close!r}?")


def note_misspelt_features(faults: ErrorCollector, table: Table, kept: Iterable[str], begin: str) -> None:
    """Add a note on each unused column whose name almost has the prefix of a feature."""
    for name in kept:
        if re.match(f"{begin[0]}[_ .-]", name, re.IGNORECASE):
            said = f"column {name!r} is kept but is not a feature: names of features begin with {begin!r}"
            faults.notes.append(f"{table.where}: {said}")


def as_integers(column: Column) -> Column:
    """Convert a CSV column whose cells are all 0.0, 1.0, … to whole numbers; return any other unchanged."""
    if column.kind != "number" or column.text is None:
        return column
    if not (matches(column.text, POINT_ZERO) | column.null).all():
        return column
    text = pc.replace_substring_regex(column.text, r"\.0$", "")
    values = np.zeros(column.null.size, dtype=np.int64)
    values[~column.null] = np.asarray(text.filter(pa.array(~column.null)).cast(pa.int64()))
    return Column("whole", values, column.null, text)


def missing(faults: ErrorCollector, table: Table, name: str, column: Column) -> None:
    """Report every empty cell as a fault."""
    faults.rows(table, column.null, lambda row: f"{name} is empty", "fill it in, or drop the row")


def id_column(faults: ErrorCollector, table: Table, name: str, *, labels: bool = True) -> Column | None:
    """Return a column of ids, whole numbers or text without empty cells; None if it is anything else.

    labels : whether text is allowed
    """
    column = faults.attempt(table.column, name)
    if column is None:
        return None
    column = as_integers(column)
    if column.kind == "empty" and table.n_rows == 0:
        return Column("whole", np.zeros(0, dtype=np.int64), column.null, column.text)
    if column.kind not in (("whole", "text") if labels else ("whole",)):
        what = f"column {name!r} holds {KINDS[column.kind]}"
        wrong = ~column.null
        if column.kind in ("number", "huge", "text") and column.text is not None:  # the cells that are not ids
            no_id = wrong & ~matches(column.text, SMALL_WHOLE)
            most = no_id & ~matches(column.text, POINT_ZERO)
            wrong = next((some for some in (most, no_id) if some.any()), wrong)
        remedy = "write smaller ones, or labels of text" if column.kind == "huge" else WRITE_WHOLE
        faults.add(table.error(what, remedy if labels else remedy.removesuffix(", or labels of text"), first_of(wrong)))
        return None
    if column.null.any():
        missing(faults, table, name, column)
        return None
    if column.kind == "text":
        blank = np.asarray(pc.equal(column.text, ""))
        faults.rows(table, blank, lambda row: f"{name} is an empty text", "give it a label")
    return column


def number_column(faults: ErrorCollector, table: Table, name: str, *, null_ok: bool = False) -> Floats:
    """Return a column of finite numbers; booleans count as 0 and 1. NaN where a cell is empty."""
    column = faults.attempt(table.column, name)
    if column is None:
        return np.full(table.n_rows, np.nan)
    if not table.typed and column.kind == "text" and (matches(column.text, YES_NO) | column.null).all():
        values = np.where(column.null, np.nan, _yes(column).astype(np.float64))
    elif column.kind in ("text", "huge", "time") and table.n_rows:
        values = np.full(table.n_rows, np.nan)
        good = np.zeros(table.n_rows, dtype=bool)
        if column.text is not None and not (table.typed and column.kind == "text"):
            good = matches(column.text, NUMBER)
            values[good] = floats(column.text.filter(pa.array(good)))
        wrong = ~good & ~column.null
        comma = column.text is not None and bool((wrong & matches(column.text, COMMA)).any())
        remedy = "write decimals with a point" if comma else number_remedy(column, wrong, "write a number there")
        faults.rows(table, wrong, lambda row: f"{name} holds {column.show(row)}, not a number", remedy)
    elif column.kind == "empty":
        values = np.full(table.n_rows, np.nan)
    else:
        values = np.where(column.null, np.nan, column.values.astype(np.float64))
    empty = column.null if column.kind != "number" else np.isnan(values)
    if not null_ok:
        faults.rows(table, empty, lambda row: f"{name} is empty or not a number", "fill it in")
    faults.rows(table, np.isinf(values), lambda row: f"{name} is {values[row]}", "write a finite number")
    return values


def number_remedy(column: Column, wrong: Flags, usual: str) -> str:
    """Return the remedy for non-numeric cells; some look like numbers, but use other characters: −1, 1'000, ١."""
    if column.text is None or not any(map(_looks_like_number, column.text.filter(pa.array(wrong)).to_pylist())):
        return usual
    return "use only the characters 0 to 9, - and ."


def _looks_like_number(text: str) -> bool:
    plain = "".join(str(unicodedata.decimal(sign, sign)) for sign in text)
    plain = re.sub(r"[\s_'\N{RIGHT SINGLE QUOTATION MARK}]", "", re.sub("^[\N{MINUS SIGN}\N{EN DASH}+]", "-", plain))
    return re.fullmatch(NUMBER, plain) is not None


def flag_column(faults: ErrorCollector, table: Table, name: str) -> Flags:
    """Return a column of booleans, or of 0 and 1; in a CSV also of yes and no."""
    column = faults.attempt(table.column, name)
    if column is None:
        return np.zeros(table.n_rows, dtype=bool)
    column = as_integers(column)
    missing(faults, table, name, column)
    wrong, value = ~column.null, np.asarray(column.values == 1, dtype=bool)
    if column.kind in ("flag", "whole"):
        wrong &= (column.values != 0) & (column.values != 1)
    elif column.kind == "text" and not table.typed:
        wrong &= ~(matches(column.text, YES_NO) | matches(column.text, "^[01]$"))
        value = _yes(column)
    faults.rows(table, wrong, lambda row: f"{name} holds {column.show(row)}, not a boolean", "write true or false")
    return value


def _yes(column: Column) -> Flags:
    return matches(column.text, r"^(?i:yes|true|1)$")


def text_column(faults: ErrorCollector, table: Table, name: str) -> list[str] | None:
    """Return a column of text without empty cells."""
    column = faults.attempt(table.column, name)
    if column is None:
        return None
    missing(faults, table, name, column)
    if column.text is None and column.kind != "empty":
        faults.add(table.error(f"column {name!r} holds {KINDS[column.kind]}", "write text", 0))
    if column.text is None or column.null.any():
        return None
    return list(column.text.to_pylist())


def repeated(values: npt.NDArray[Any]) -> Flags:
    """Return a mask of the entries that have occurred before."""
    order = np.argsort(values, kind="stable")
    again = np.zeros(values.size, dtype=bool)
    again[order[1:]] = values[order[1:]] == values[order[:-1]]
    return again


def codes(column: Column) -> Ints:
    """Return integer codes of an id column, equal for equal cells."""
    if column.kind == "whole":
        return column.values
    return np.asarray(column.text.dictionary_encode().indices, dtype=np.int64)


def first_of(flags: Flags) -> int | None:
    """Return the first flagged row, or None."""
    return int(np.argmax(flags)) if flags.any() else None
