"""Points given by the user: named cell centres with features, or landmarks to measure distances from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from messirl._types import Floats
from messirl.data.errors import InputError
from messirl.io.positions.column_roles import find_roles, normalise_name
from messirl.io.positions.raw_table import read_raw

NAMES = {"name", "place", "label", "state", "id", "room", "node", "station", "site", "page"}


@dataclass(frozen=True, eq=False)
class PointTable:
    """Points of a table: coordinates, labels, and columns f_*."""

    where: str
    xy: Floats
    labels: list[str]
    features: dict[str, Floats]


def read_points(path: str) -> PointTable:
    """Read a table of points with columns x and y, and optionally a name and features f_*."""
    raw = read_raw(path)
    roles = find_roles(raw, {}, ("x", "y"), ("x", "y"))
    xy = np.column_stack([raw.numbers(roles[axis].name) for axis in "xy"])
    if not np.isfinite(xy).all():
        raise raw.error("a point has no position", "fill it in", int(np.argmax(~np.isfinite(xy).all(axis=1))))
    named = [name for name in raw.names if normalise_name(name) in NAMES]
    if len(named) > 1:
        raise raw.error(f"columns {named[0]!r} and {named[1]!r} may both name the points", "keep one of them")
    labels = raw.arrow(named[0]).cast(pa.string()).to_pylist() if named else [str(i) for i in range(len(xy))]
    if None in labels or len(set(labels)) < len(labels):
        raise raw.error("some points have no name, or share one", "give each a unique name")
    features = {name: raw.numbers(name) for name in raw.names if name.startswith("f_")}
    for name, values in features.items():
        if not np.isfinite(values).all():
            raise raw.error(f"{name} is empty", "fill it in", int(np.argmax(~np.isfinite(values))))
    return PointTable(Path(path).name, xy, labels, features)


def read_landmarks(text: str) -> tuple[str, Floats]:
    """Read a name and points (n, 2) from `x,y`, `name=x,y`, or the path of a table."""
    name, equal, rest = text.rpartition("=")
    parts = (rest if equal else text).split(",")
    try:
        at = np.array([[float(part) for part in parts]])
    except ValueError:
        at = np.zeros((0, 0))
    if at.shape == (1, 2) and np.isfinite(at).all():
        return name if equal else text, at
    if not equal and not Path(text).exists():
        raise InputError("`distance`", f"{text!r} is neither a table nor a point", "write x,y, or the path of a table")
    given = read_points(rest if equal else text)
    return name if equal else Path(text).stem, given.xy
