"""`messirl import`: build a problem folder from raw recordings (positions, places, click logs)."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import (
    Parser,
    as_json,
    count,
    finite,
    one_line,
    path,
    positive,
    same_place,
    seed,
    settings_from_options,
    with_flags,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILES = ("import.json", "import.png")  # what is written beside the problem
DESCRIPTION = (
    "Build a problem folder from raw recordings. SOURCE is a table (CSV with any separator, or Parquet) or a folder of "
    "such tables: one row per record, with the id of a track, a time, and a position x, y or a place. Columns that no "
    "option names are recognised; ambiguous ones are an error. The output lists what was recognised, dropped and "
    "filled in. --discount, features and, for positions, the kind of places are required."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl import`."""
    made.add_argument("source", type=path, metavar="SOURCE", help="a table, or a folder of tables")
    made.add_argument("dest", type=path, metavar="DEST", help="the problem folder to write")
    made.add_argument("--dry-run", action="store_true", help="print what would be done, and write nothing")
    made.add_argument("--force", action="store_true", help="replace the problem in DEST; other files stay")
    made.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="format of the tables (parquet)")
    made.add_argument("--json", action="store_true", help="print JSON")
    _add_columns(made.add_argument_group("columns"))
    _add_trips(made.add_argument_group("trajectories and steps"))
    _add_places(made.add_argument_group("states and transitions"))
    _add_features(made.add_argument_group("features of places"))
    group = made.add_argument_group("the problem")
    group.add_argument("--discount", type=positive, help="discount factor γ (required); below 1 for truncated tracks")
    group.add_argument("--goals", action="store_true", help="the last place of a trajectory is its goal")
    group.add_argument(
        "--terminal",
        action="append",
        default=[],
        metavar="PLACE",
        help="a named place where trajectories end; may be repeated",
    )


def _add_columns(group: Any) -> None:
    for name, text in {
        "id": "id of a track; 'file': every file is one track",
        "time": "timestamps, epochs, frames or numbers; 'day+clock' joins two columns; 'order': rows are in order",
        "x": "x coordinate",
        "y": "y coordinate",
        "place": "name of a place, instead of a position",
    }.items():
        group.add_argument(f"--{name}", metavar="COLUMN", help=text)
    group.add_argument("--columns", type=_names, metavar="A,B,…", help="names for files without a header")
    group.add_argument("--separator", metavar="SIGN", help="separator of cells: , ; | tab blank (recognised)")
    group.add_argument("--decimal", choices=(".", ","), help="decimal mark (recognised)")
    group.add_argument("--time-format", metavar="FORM", help="format of timestamps, such as '%%d.%%m.%%Y %%H:%%M:%%S'")
    group.add_argument("--fps", type=positive, help="frames per second, if times are frames")
    group.add_argument(
        "--lonlat", action=argparse.BooleanOptionalAction, help="positions are degrees (by the column names)"
    )
    group.add_argument("--per-file", action="store_true", help="equal ids in different files are different tracks")
    group.add_argument(
        "--same-time",
        choices=("refuse", "first", "mean", "all"),
        default="refuse",
        help="what to do if a track has two positions at one time (refuse)",
    )


def _add_trips(group: Any) -> None:
    group.add_argument("--area", type=_corners, metavar="X0,Y0,X1,Y1", help="drop positions outside this area")
    group.add_argument("--pause", type=positive, help="end a trajectory at a gap in time longer than this")
    group.add_argument("--jump", type=positive, help="end a trajectory at a distance to the next row larger than this")
    group.add_argument("--step", type=positive, help="time between two states (one state per change of place)")
    group.add_argument(
        "--noise", type=positive, help="standard error of positions: find the most likely sequence of places"
    )
    group.add_argument(
        "--no-fill",
        dest="fill",
        action="store_false",
        help="end a trajectory at a jump between places, do not fill the gap",
    )
    group.add_argument("--min-states", type=count, default=2, help="drop shorter trajectories (2)")


def _add_places(group: Any) -> None:
    group.add_argument("--grid", type=positive, metavar="SIZE", help="square cells of this size")
    group.add_argument(
        "--hexagons", type=positive, metavar="SIZE", help="hexagonal cells with this distance between centres"
    )
    group.add_argument("--kmeans", type=count, help="number of k-means clusters of positions")
    group.add_argument(
        "--points", metavar="FILE", help="nearest of the given points: a table with x, y and optionally name and f_*"
    )
    group.add_argument("--y-down", action="store_true", help="y grows downwards, as in images")
    group.add_argument("--whole-grid", action="store_true", help="cells without visits are states, too")
    group.add_argument("--neighbours", type=int, choices=(4, 8), default=4, help="neighbours of a square cell (4)")
    group.add_argument(
        "--moves",
        choices=("adjacent", "seen"),
        help="allowed transitions: to neighbours, or those that occur (adjacent; for named places: seen)",
    )
    group.add_argument(
        "--stay", action=argparse.BooleanOptionalAction, help="staying at a place is a transition (with --step)"
    )
    group.add_argument("--seed", type=seed, default=0, help="random seed of --kmeans (0)")


def _add_features(group: Any) -> None:
    for name, metavar, text in (
        ("mean", "COLUMN", "mean of a column over the rows at a place; may be repeated"),
        ("count", "COLUMN=VALUE", "number of rows at a place with this value; may be repeated"),
        ("distance", "POINTS", "distance to X,Y or NAME=X,Y or the nearest point of a table; may be repeated"),
    ):
        group.add_argument(f"--{name}", action="append", default=[], metavar=metavar, help=text)
    group.add_argument("--turning", action="store_true", help="mean change of direction, in radians")
    group.add_argument("--coordinates", action="store_true", help="x and y as features")
    group.add_argument("--indicator", action="store_true", help="one feature per place")


def run(arguments: argparse.Namespace) -> int:
    """Import the recordings, write the folder with a summary and a picture, and print the log."""
    from messirl._files import check_writable
    from messirl.app.cli._output_dir import is_summary
    from messirl.app.report.import_figure import draw_tracks
    from messirl.app.workflow.import_settings import ImportSettings
    from messirl.app.workflow.importing import import_recordings
    from messirl.data.errors import InputError
    from messirl.io.folder.writer import check_place, write_problem

    dest = arguments.dest
    if same_place(arguments.source, dest):
        raise ValueError(f"{dest} is both SOURCE and DEST: give another DEST")
    if not arguments.dry_run:
        check_place(dest, overwrite=arguments.force)
        foreign = next((name for name in FILES if (dest / name).exists() and not is_summary(dest / FILES[0])), None)
        if foreign is not None:
            what = f"holds {foreign}, which is of no import by messirl"
            raise InputError(str(dest), what, "give another folder, or move that away")
        for name in FILES:
            check_writable(dest / name)
    record = import_recordings(arguments.source, settings_from_options(ImportSettings, vars(arguments)))
    summary = {"command": arguments.command, **record.summary()}
    if not arguments.dry_run:
        files = dict(zip(FILES, ((as_json(summary) + "\n").encode(), draw_tracks(record)), strict=True))
        write_problem(record.problem, dest, format=arguments.format, overwrite=arguments.force, further=files)
    if arguments.json:
        print(as_json(summary))
        return 0
    width = max(map(len, record.said)) + 2
    print("\n".join(f"{name + ':':<{width}}{with_flags(one_line(text))}" for name, text in record.said.items()))
    written = "nothing was written (--dry-run)" if arguments.dry_run else f"{dest}, with import.json and import.png"
    print(f"\n{written}: {record.problem.mdp}, {record.problem.trajectories}")
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _corners(text: str) -> list[float]:
    return [finite(part, lambda _: True, "four numbers X0,Y0,X1,Y1") for part in text.split(",")]
