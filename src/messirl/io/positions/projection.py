"""Projection of longitude and latitude to metres east and north of the centre of all positions.

    x = R cos(φ₀) (λ − λ₀),   y = R (φ − φ₀)

Accurate where cos φ hardly changes: over 100 km at 60° north, widths are wrong by 1.4 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.io.positions.column_roles import DEGREES, Role, normalise_name
from messirl.io.positions.raw_table import RawTable
from messirl.io.positions.row_cleaning import Rows

METRES = 6_371_008.8 * np.pi / 180.0  # per degree of latitude


@dataclass(frozen=True)
class Projection:
    """Equirectangular projection around the centre (λ₀, φ₀).

    eastward : whether longitudes count from 0 to 360, so that those across ±180° lie beside each other
    """

    longitude: float
    latitude: float
    eastward: bool = False

    def __call__(self, degrees: Any) -> Floats:
        """Convert points (n, 2) of longitude and latitude to metres."""
        scale = METRES * np.array([np.cos(np.radians(self.latitude)), 1.0])
        given = np.asarray(degrees, dtype=np.float64)
        return ((_eastward(given) if self.eastward else given) - [self.longitude, self.latitude]) * scale

    def __str__(self) -> str:
        across = " (across ±180°: negative longitudes plus 360)" if self.eastward else ""
        return f"degrees, as metres east and north of {self.longitude:.5f}, {self.latitude:.5f}{across}"


def projection_of(raw: RawTable, rows: Rows, roles: dict[str, Role], asked: bool | None) -> Projection | None:
    """Return the projection if positions are in degrees, else None.

    asked : whether they are; None: decide by the names of the columns
    """
    if rows.xy is None or asked is False:
        return None
    if not asked and not all(normalise_name(roles[axis].name) in DEGREES[axis] for axis in "xy"):
        return None
    far = np.nanmax(np.abs(rows.xy), axis=0)
    if far[1] > 90.0 or far[0] > 360.0:
        what = f"latitudes (y) reach {far[1]:g} and longitudes (x) {far[0]:g}"
        if far[0] <= 90.0 and far[1] <= 360.0:
            raise raw.error(what, "x and y seem to be swapped; exchange `x` and `y`")
        raise raw.error(what, "these are not degrees; use `no_lonlat`")
    low, high = np.nanmin(rows.xy, axis=0), np.nanmax(rows.xy, axis=0)
    turned = _eastward(rows.xy)[:, 0]
    eastward = bool(high[0] - low[0] > max(180.0, np.nanmax(turned) - np.nanmin(turned)))
    if eastward:
        low[0], high[0] = np.nanmin(turned), np.nanmax(turned)
    middle = (low + high) / 2
    return Projection(float(middle[0]), float(middle[1]), eastward)


def _eastward(degrees: Floats) -> Floats:
    """Points (n, 2) of longitude and latitude, with 360 added to negative longitudes."""
    return degrees + np.where(degrees < 0, [360.0, 0.0], 0.0)
