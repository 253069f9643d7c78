"""Roles of columns (id, time, x, y, place): given by the user, or recognised by the column name.

Names are compared without case, punctuation and a unit in brackets: `Pos_X [mm]` is posx, with the unit mm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from messirl._text import did_you_mean, join_names
from messirl.io.positions.raw_table import RawTable

ROLES: dict[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "id": "id track trackid trackno tracknumber trajectory trajectoryid trip tripid individual individualid "
        "individuallocalidentifier animal animalid agent agentid subject subjectid user userid visitor visitorid "
        "session sessionid vehicle vehicleid person personid pedestrian pedestrianid pedid object objectid tag tagid "
        "mouse bird particle player device deviceid",
        "time": "time timestamp t date datetime frame frameid frameno framenumber framenr frameindex epoch seconds sec "
        "timesec timems millis unixtime utc step clock",
        "x": "x posx xpos positionx xposition xcoord xcoordinate coordx centroidx xcenter centerx cx easting "
        "utmeasting lon longitude long lng locationlong xm xpx xmm xcm",
        "y": "y posy ypos positiony yposition ycoord ycoordinate coordy centroidy ycenter centery cy northing "
        "utmnorthing lat latitude locationlat ym ypx ymm ycm",
        "place": "place state location room cell node page url zone area site station stop poi screen",
    }.items()
}
DEGREES = {"x": {"lon", "longitude", "long", "lng", "locationlong"}, "y": {"lat", "latitude", "locationlat"}}
FRAMES = {"frame", "frameid", "frameno", "framenumber", "framenr", "frameindex"}
ORDER = "order"  # `time` order: rows are in temporal order
FILE = "file"  # `id` file: one track per file
SPECIAL = {"time": ORDER, "id": FILE}


@dataclass(frozen=True)
class Role:
    """A column, and whether it was given by the user."""

    name: str
    given: bool

    def __str__(self) -> str:
        return f"column {self.name!r} ({'given' if self.given else 'recognised'})"


def normalise_name(name: str) -> str:
    """Normalise a name for comparison: no case, punctuation or unit."""
    return re.sub(r"[\W_]+", "", re.sub(r"[\[({].*?[\])}]", "", name)).lower()


def unit(name: str) -> str | None:
    """Return the unit that a header gives in brackets, or None."""
    found = re.search(r"[\[({]\s*(.*?)\s*[\])}]", name)
    return found[1] if found else None


def find_roles(
    raw: RawTable, given: Mapping[str, str | None], wanted: Sequence[str], needed: Sequence[str]
) -> dict[str, Role]:
    """Find the columns of these roles.

    given : the columns that the user named
    wanted : roles to look for;  needed : required roles
    """
    found: dict[str, Role] = {}
    for role in wanted:
        name = given.get(role)
        if name is not None:
            whole = name.split("+") if role == "time" else [name]  # date and time of day in two columns
            if not {name} & {*raw.names, SPECIAL.get(role)} and not set(whole) <= set(raw.names):
                there = ", ".join(map(repr, raw.names[:12]))
                remedy = f"the columns are {there}{did_you_mean(name, raw.names)}"
                raise raw.error(f"there is no column {name!r} (`{role}`)", remedy)
            twice = next((other for other, one in found.items() if one.given and one.name == name), None)
            if twice is not None:
                raise raw.error(f"`{twice}` and `{role}` are both column {name!r}", "give each its own column")
            found[role] = Role(name, True)
            continue
        taken = {one.name for one in found.values()} | {name for name in given.values() if name is not None}
        like = [name for name in raw.names if normalise_name(name) in ROLES[role] and name not in taken]
        if len(like) > 1:
            what = f"columns {join_names([repr(name) for name in like])} could each be the {role}"
            both = f", or use both with `time` '{'+'.join(like)}'" if role == "time" and len(like) == 2 else ""
            raise raw.error(what, f"choose one with `{role}`{both}")
        if like:
            found[role] = Role(like[0], False)
        elif role in needed:
            raise raw.error(
                f"no column looks like the {role} (there are {', '.join(map(repr, raw.names[:12]))})", _say(role)
            )
    return found


def check_swapped(roles: Mapping[str, Role]) -> bool:
    """Check for swapped columns: x named like a y, and y like an x."""
    return (
        "x" in roles
        and "y" in roles
        and normalise_name(roles["x"].name) in ROLES["y"]
        and normalise_name(roles["y"].name) in ROLES["x"]
    )


def _say(role: str) -> str:
    more = {
        "time": f", or give `time` {ORDER} if the rows of a track are in order",
        "id": f", or give `id` {FILE} if every file is one track",
        "x": ", or give a column of cells with `place`",
        "y": ", or give a column of cells with `place`",
    }
    return f"name it with `{role}`{more.get(role, '')}"
