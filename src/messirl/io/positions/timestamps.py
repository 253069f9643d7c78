"""Parsing of times: timestamps with or without a zone, epochs, frames or plain numbers, one number per row."""

from __future__ import annotations

from calendar import timegm
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from messirl._types import Floats
from messirl.io.positions.column_roles import FRAMES, normalise_name, unit
from messirl.io.positions.raw_table import RawTable
from messirl.io.tables.table import NUMBER, matches

STAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$"
ZONE = r"[0-9]:?[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
FORMAT = "give its format with `time_format`, as in `time_format` '%d.%m.%Y %H:%M:%S'"
FIRST, LAST = 1678, 2261  # years that 64-bit nanoseconds since 1970 can represent
EPOCHS = {1.0: "seconds", 1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
SINCE, UNTIL = 2e8, 4.2e9  # numbers in this range count as seconds since 1970: 1976 to 2103
UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}


@dataclass(frozen=True, eq=False)
class Times:
    """Time of each row; NaN where the table has none.

    at : times in `unit`, measured from `origin`
    unit : "s", "frames", or "" if unknown
    origin : time 0 in seconds since 1970; None if the times are not dates
    how : description of the recognised format
    """

    at: Floats
    unit: str
    how: str
    origin: float | None = None

    def show(self, time: float) -> str | float:
        """Return a time as trajectory_meta stores it: a timestamp in UTC, or the number."""
        if self.origin is None:
            return time
        return datetime.fromtimestamp(round(self.origin + time, 3), UTC).replace(tzinfo=None).isoformat()


def read_times(raw: RawTable, name: str, *, fps: float | None = None, form: str | None = None) -> Times:
    """Read the times of a column.

    fps : frames per second, to convert frames to seconds
    form : format of the timestamps, as for strptime
    """
    cells = raw.arrow(name) if form is None else raw.arrow(name).cast(pa.string())
    kind = cells.type
    if fps is not None:
        return Times(raw.numbers(name) / fps, "s", f"frames, {fps:g} per second")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = getattr(kind, "tz", None)
        return _timestamps(_seconds(cells), "timestamps with a time zone" if zone else "timestamps")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        cells = cells.cast(pa.string())
        number = matches(cells, NUMBER) | matches(cells, r"^-?[0-9]+,[0-9]+$")
        if form is not None:
            return _timestamps(_with_format(raw, name, cells, form), f"timestamps of the format {form}")
        if not (number | np.asarray(cells.is_null())).all():
            return _iso_timestamps(raw, name, cells)
    return _numbers(raw, name)


def _numbers(raw: RawTable, name: str) -> Times:
    at, header = raw.numbers(name), unit(name)
    if normalise_name(name) in FRAMES:
        return Times(at, "frames", "frames")
    if header is not None and header.lower() in UNITS:
        return Times(at * UNITS[header.lower()], "s", f"in {header}, according to the header")
    if normalise_name(name) in ("timems", "millis"):
        return Times(at * 1e-3, "s", "in milliseconds, according to the name")
    known = at[np.isfinite(at)]
    size = float(np.median(known)) if known.size else 0.0
    for scale, word in EPOCHS.items():
        if SINCE <= size / scale <= UNTIL:
            other = np.isfinite(at) & ~((at >= SINCE * scale) & (at <= UNTIL * scale))
            if other.any():
                row = int(np.argmax(other))
                what = f"{name} holds {at[row]:.16g}, but most rows hold {word} since 1970"
                raise raw.error(what, "correct it, or name the unit of all rows in the header, as in 'time [ms]'", row)
            return _timestamps(at / scale, f"{word} since 1970, judging by their size")
    return Times(at, "", "numbers without a unit")


def _timestamps(seconds: Floats, how: str) -> Times:
    known = seconds[np.isfinite(seconds)]
    origin = float(np.floor(known.min())) if known.size else 0.0
    return Times(seconds - origin, "s", how, origin)


def _seconds(stamps: Any) -> Floats:
    """Convert Arrow times to seconds since 1970; NaN where one is missing."""
    whole = pc.fill_null(
        stamps.cast(pa.timestamp("us", getattr(stamps.type, "tz", None)), safe=False).cast(pa.int64()), 0
    )
    return np.where(np.asarray(stamps.is_null()), np.nan, np.asarray(whole) * 1e-6)


def _iso_timestamps(raw: RawTable, name: str, cells: Any) -> Times:
    """Read timestamps that begin with the year; either all or none have a zone."""
    cells = pc.replace_substring_regex(cells, r"^([0-9]{4})[/.]([0-9]{2})[/.]([0-9]{2})", r"\1-\2-\3")
    cells = pc.replace_substring_regex(cells, r" ?(UTC|GMT)$", "Z")
    null = np.asarray(cells.is_null())
    wrong = ~matches(cells, STAMP) & ~null
    if wrong.any():
        row = int(np.argmax(wrong))
        raise raw.error(f"{name} holds {cells[row].as_py()!r}, not a time that begins with the year", FORMAT, row)
    zoned = matches(cells, ZONE)
    if zoned.any() and not (zoned | null).all():
        row = int(np.argmax(~zoned & ~null))
        what = f"{name} holds {cells[row].as_py()!r} without a time zone, but other rows have one"
        raise raw.error(what, "give either all times a zone, or none", row)
    kind = pa.timestamp("ns", "UTC") if zoned.any() else pa.timestamp("ns")
    how = "timestamps with a time zone, as UTC" if zoned.any() else "timestamps without a time zone, as one clock"
    year = np.asarray(pc.fill_null(pc.utf8_slice_codeunits(cells, 0, 4).cast(pa.int64()), FIRST))
    far = (year < FIRST) | (year > LAST)  # old versions of Arrow wrap these around to other years
    if far.any():
        row = int(np.argmax(far))
    else:
        try:
            return _timestamps(_seconds(cells.cast(kind)), how)
        except pa.ArrowInvalid:
            row = next(row for row, cell in enumerate(cells) if not _is_time(cell, kind))
    what = f"{name} holds {cells[row].as_py()!r}, not a valid date and time from {FIRST} to {LAST}"
    raise raw.error(what, "correct it, or drop the row", row)


def _is_time(cell: Any, kind: Any) -> bool:
    try:
        cell.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _with_format(raw: RawTable, name: str, cells: Any, form: str) -> Floats:
    coded = cells.dictionary_encode()
    read = []
    for text in coded.dictionary.to_pylist():
        try:
            read.append(_epoch_seconds(datetime.strptime(text, form)))
        except ValueError:
            row = int(np.argmax(np.asarray(pc.fill_null(pc.equal(cells, text), False))))
            what = f"{name} holds {text!r}, which does not match the format {form!r}"
            raise raw.error(what, "correct `time_format` or the row", row) from None
    index = np.asarray(pc.fill_null(coded.indices, -1))
    return np.asarray(np.append(np.array(read, dtype=np.float64), np.nan)[index])


def _epoch_seconds(stamp: datetime) -> float:
    if stamp.tzinfo is not None:
        return stamp.timestamp()
    return timegm(stamp.timetuple()) + stamp.microsecond * 1e-6
