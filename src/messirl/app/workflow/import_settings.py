"""How raw recordings become a problem: every choice, none of them silent."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from messirl._checks import is_number, is_whole
from messirl.data.errors import InputError
from messirl.io.positions.row_cleaning import SAME_TIME

MOVES = ("adjacent", "seen")


@dataclass(frozen=True)
class ImportSettings:
    r"""How raw recordings become a problem.

    Parameters
    ----------
    discount : float, optional
        γ; it must be given: below 1 for tracks that are cut, 1 with goals or terminal places.
    id, time, x, y, place : str, optional
        Names of columns; None: recognised. `id="file"`: one track per file; `time="order"`: rows in their order.
    separator, decimal : str, optional
        Between cells, and of numbers; None: recognised.
    columns : sequence of str, optional
        Names of the columns of files without a header.
    time_format : str, optional
        Of stamps, as strptime has it, where the year does not come first.
    fps : float, optional
        Frames per second: makes frames seconds.
    lonlat : bool, optional
        Whether positions are degrees; None: by the names of their columns.
    per_file : bool
        Whether the same id in another file is another track.
    same_time : {"refuse", "first", "mean", "all"}
        What to do where a track is at two places at the same time.
    area : four floats, optional
        x and y of the lower and of the upper corner; rows outside are dropped.
    pause, jump : float, optional
        A trip ends before a longer time without a row, and before a longer way.
    step : float, optional
        One state per so much time; None: one per change of place.
    grid, hexagons, kmeans, points : float, float, int, str, optional
        One of them: the size of squares or hexagons, a number of clusters, or a table of points.
    y_down : bool
        Whether y grows downwards, as in images; maps are drawn accordingly.
    whole_grid : bool
        Whether squares or hexagons that nobody visits are states, too.
    neighbours : {4, 8}
        Of a square.
    noise : float, optional
        Standard deviation of positions: the most likely course is found; None: every position is taken as it is.
    moves : {"adjacent", "seen"}, optional
        Between neighbours, or those that occur; None: adjacent for positions, seen for named places.
    stay : bool, optional
        Whether staying is a move; None: with `step`.
    fill : bool
        Whether places that a step jumps over are filled in; else it ends the trip.
    mean, count, distance : sequences of str
        Features: means of columns; `column=value`; `x,y`, `name=x,y` or a table of points.
    turning, coordinates, indicator : bool
        Features: the change of direction, x and y, or one per place.
    goals : bool
        Whether the last place of a trip is its goal.
    terminal : sequence of str
        Named places where trips end.
    min_states : int
        Shorter trips are dropped.
    seed : int
        Of k-means.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from messirl.app.workflow.importing import ImportSettings, import_recordings
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "walk.csv"
    >>> _ = table.write_text("id,t,x,y\n1,0,0.5,0.5\n1,1,1.5,0.5\n1,2,2.5,0.5\n")
    >>> record = import_recordings(table, ImportSettings(discount=0.9, grid=1.0, coordinates=True))
    >>> record.problem.trajectories[0].states
    array([0, 1, 2])
    """

    discount: float | None = None
    id: str | None = None
    time: str | None = None
    x: str | None = None
    y: str | None = None
    place: str | None = None
    separator: str | None = None
    decimal: str | None = None
    columns: Sequence[str] | None = None
    time_format: str | None = None
    fps: float | None = None
    lonlat: bool | None = None
    per_file: bool = False
    same_time: str = "refuse"
    area: Sequence[float] | None = None
    pause: float | None = None
    jump: float | None = None
    step: float | None = None
    grid: float | None = None
    hexagons: float | None = None
    kmeans: int | None = None
    points: str | None = None
    y_down: bool = False
    whole_grid: bool = False
    neighbours: int = 4
    noise: float | None = None
    moves: str | None = None
    stay: bool | None = None
    fill: bool = True
    mean: Sequence[str] = ()
    count: Sequence[str] = ()
    distance: Sequence[str] = ()
    turning: bool = False
    coordinates: bool = False
    indicator: bool = False
    goals: bool = False
    terminal: Sequence[str] = ()
    min_states: int = 2
    seed: int = 0

    @property
    def adjacent(self) -> bool:
        """Whether moves lead to neighbours."""
        named = self.place is not None
        return self.moves == "adjacent" or (self.moves is None and not named)

    @property
    def stays(self) -> bool:
        """Whether staying at a place is a move."""
        return self.step is not None if self.stay is None else self.stay


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # by the annotation of a field: test, and what to give
    "bool": (lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "int": (is_whole, "a whole number"),
    "float": (lambda value: is_number(value) and bool(np.isfinite(value)), "a number"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "Sequence[str]": (lambda value: _are(value, lambda one: isinstance(one, str)), "a list of texts"),
    "Sequence[float]": (lambda value: _are(value, is_number), "a list of numbers"),
}
POSITIVE = ("grid", "hexagons", "kmeans", "pause", "jump", "step", "fps", "noise", "min_states")


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    """Whether a value is a sequence, and no text, all of whose items fit."""
    return isinstance(value, list | tuple | np.ndarray) and all(fits(one) for one in value)


def _check_kinds(settings: ImportSettings) -> None:
    """Refuse settings that are of another kind than their field, as the command line does."""
    for one in fields(settings):
        value, (kind, *rest) = getattr(settings, one.name), str(one.type).split(" | ")
        if value is None and rest:
            continue
        fits, give = KINDS[kind]
        name = f"--{one.name.replace('_', '-')}"
        if not fits(value):
            raise InputError(name, f"is {reprlib.repr(value)}", f"give {give}")
        if one.name in POSITIVE and not value > 0:
            raise InputError(name, f"is {value:g}", "give a number above 0")


def check_settings(settings: ImportSettings) -> None:
    """InputError if something is missing, contradicts another thing, or would have to be guessed."""
    if not isinstance(settings, ImportSettings):
        raise TypeError(f"settings is of type {type(settings).__name__}: give ImportSettings(discount=..., ...)")
    _check_kinds(settings)
    given = settings.discount
    if given is None:
        what = "is not given, and there is no default"
        raise InputError("--discount", what, "say how much a step later counts: 0.95, say, for tracks that are cut")
    if not 0 < given <= 1:
        raise InputError("--discount", f"is {given:g}", "give a number in (0, 1]")
    if given == 1 and not settings.goals and not settings.terminal:
        what = "is 1, but nothing ends a trip"
        raise InputError("--discount", what, "give a number below 1, --goals, or --terminal PLACE")
    ways = [name for name in ("grid", "hexagons", "kmeans", "points") if getattr(settings, name) is not None]
    if len(ways) > 1:
        raise InputError(f"--{ways[0]}", f"and --{ways[1]} are both given", "choose one of them")
    if settings.whole_grid and settings.grid is None and settings.hexagons is None:
        raise InputError("--whole-grid", "is given without a grid", "give --grid or --hexagons, or leave it out")
    for name, known in (("same_time", SAME_TIME), ("moves", (None, *MOVES)), ("neighbours", (4, 8))):
        if getattr(settings, name) not in known:
            choices = ", ".join(str(one) for one in known if one is not None)
            raise InputError(f"--{name.replace('_', '-')}", f"is {getattr(settings, name)!r}", f"choose from {choices}")
    area = settings.area
    if area is not None and not (len(area) == 4 and area[0] < area[2] and area[1] < area[3]):
        raise InputError(
            "--area", f"is {','.join(f'{a:g}' for a in area)}", "give x0,y0,x1,y1 with x0 < x1 and y0 < y1"
        )
    if not (settings.mean or settings.count or settings.distance or settings.points) and not (
        settings.turning or settings.coordinates or settings.indicator
    ):
        remedy = "give --mean COLUMN, --count COLUMN=VALUE, --distance X,Y, --turning, --coordinates or --indicator"
        raise InputError("features", "none is asked for", remedy)
