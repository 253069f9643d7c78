"""Settings of an import: every choice that turns raw recordings into a problem."""

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
    r"""The settings that turn raw recordings into a problem.

    Parameters
    ----------
    discount : float, optional
        γ, required: below 1 for trajectories that are cut off, 1 with goals or terminal places.
    id, time, x, y, place : str, optional
        Names of columns; None: detected. `id="file"`: one track per file; `time="order"`: rows in their order.
    separator, decimal : str, optional
        The separator of cells and the decimal mark; None: detected.
    columns : sequence of str, optional
        Names of the columns of files without a header.
    time_format : str, optional
        The format of time stamps, as for strptime, if the year does not come first.
    fps : float, optional
        Frames per second, to convert frame numbers to seconds.
    lonlat : bool, optional
        Whether positions are in degrees; None: by the names of their columns.
    per_file : bool
        Whether the same id in another file is a different track.
    same_time : {"refuse", "first", "mean", "all"}
        What to do if a track has two positions at the same time.
    area : four floats, optional
        x and y of the lower and the upper corner; rows outside are dropped.
    pause, jump : float, optional
        A trajectory ends before a longer time without a row, and before a longer jump.
    step : float, optional
        One state per time interval of this length; None: one per change of place.
    grid, hexagons, kmeans, points : float, float, int, str, optional
        Exactly one of them: the size of squares or hexagons, a number of clusters, or a table of points.
    y_down : bool
        Whether y grows downwards, as in images; maps are drawn accordingly.
    whole_grid : bool
        Whether squares or hexagons without visits are states too.
    neighbours : {4, 8}
        The number of neighbours of a square.
    noise : float, optional
        Standard deviation of positions: the most likely sequence is found; None: positions are used as they are.
    moves : {"adjacent", "seen"}, optional
        Transitions between neighbours, or those that occur; None: adjacent for positions, seen for named places.
    stay : bool, optional
        Whether staying is a transition; None: with `step`.
    fill : bool
        Whether gaps of skipped places are filled; otherwise a gap ends the trajectory.
    mean, count, distance : sequences of str
        Features: means of columns; `column=value`; `x,y`, `name=x,y` or a table of points.
    turning, coordinates, indicator : bool
        Features: the change of direction, x and y, or one per place.
    goals : bool
        Whether the last place of a trajectory is its goal.
    terminal : sequence of str
        Named places where trajectories end.
    min_states : int
        Shorter trajectories are dropped.
    seed : int
        The seed of k-means.

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
        """True if transitions lead to neighbours."""
        named = self.place is not None
        return self.moves == "adjacent" or (self.moves is None and not named)

    @property
    def stays(self) -> bool:
        """True if staying at a place is a transition."""
        return self.step is not None if self.stay is None else self.stay


KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {  # by annotation: its test, and allowed values
    "bool": (lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "int": (is_whole, "a whole number"),
    "float": (lambda value: is_number(value) and bool(np.isfinite(value)), "a number"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "Sequence[str]": (lambda value: _are(value, lambda one: isinstance(one, str)), "a list of texts"),
    "Sequence[float]": (lambda value: _are(value, is_number), "a list of numbers"),
}
POSITIVE = ("grid", "hexagons", "kmeans", "pause", "jump", "step", "fps", "noise", "min_states")


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    """Return whether a value is a sequence, not a text, all of whose items fit."""
    return isinstance(value, list | tuple | np.ndarray) and all(fits(one) for one in value)


def _check_kinds(settings: ImportSettings) -> None:
    """Refuse settings of the wrong type, as the command line does."""
    for one in fields(settings):
        value, (kind, *rest) = getattr(settings, one.name), str(one.type).split(" | ")
        if value is None and rest:
            continue
        fits, give = KINDS[kind]
        name = f"`{one.name}`"
        if not fits(value):
            raise InputError(name, f"is {reprlib.repr(value)}", f"give {give}")
        if one.name in POSITIVE and not value > 0:
            raise InputError(name, f"is {value:g}", "give a number above 0")


def check_settings(settings: ImportSettings) -> None:
    """Raise InputError if a setting is missing, contradicts another, or would have to be guessed."""
    if not isinstance(settings, ImportSettings):
        raise TypeError(f"settings is of type {type(settings).__name__}: give ImportSettings(discount=..., ...)")
    _check_kinds(settings)
    given = settings.discount
    if given is None:
        what = "is not given, and there is no default"
        raise InputError("`discount`", what, "give the weight of the next step, such as 0.95 for tracks that are cut")
    if not 0 < given <= 1:
        raise InputError("`discount`", f"is {given:g}", "give a number in (0, 1]")
    if given == 1 and not settings.goals and not settings.terminal:
        what = "is 1, but nothing ends a trajectory"
        raise InputError("`discount`", what, "give a number below 1, `goals`, or `terminal` PLACE")
    ways = [name for name in ("grid", "hexagons", "kmeans", "points") if getattr(settings, name) is not None]
    if len(ways) > 1:
        raise InputError(f"`{ways[0]}`", f"and `{ways[1]}` are both given", "choose one of them")
    if settings.whole_grid and settings.grid is None and settings.hexagons is None:
        raise InputError("`whole_grid`", "is given without a grid", "give `grid` or `hexagons`, or omit it")
    for name, known in (("same_time", SAME_TIME), ("moves", (None, *MOVES)), ("neighbours", (4, 8))):
        if getattr(settings, name) not in known:
            choices = ", ".join(str(one) for one in known if one is not None)
            raise InputError(f"`{name}`", f"is {getattr(settings, name)!r}", f"choose from {choices}")
    area = settings.area
    if area is not None and not (len(area) == 4 and area[0] < area[2] and area[1] < area[3]):
        raise InputError(
            "`area`", f"is {','.join(f'{a:g}' for a in area)}", "give x0,y0,x1,y1 with x0 < x1 and y0 < y1"
        )
    if not (settings.mean or settings.count or settings.distance or settings.points) and not (
        settings.turning or settings.coordinates or settings.indicator
    ):
        remedy = "give `mean` COLUMN, `count` COLUMN=VALUE, `distance` X,Y, `turning`, `coordinates` or `indicator`"
        raise InputError("features", "none is given", remedy)
