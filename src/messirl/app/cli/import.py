"""`messirl import`: raw recordings (positions, places, click logs) as a problem folder."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import Parser, as_json, count, filled, finite, one_line, path, positive, same_place, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILES = ("import.json", "import.png")  # what is written beside the problem
DESCRIPTION = (
    "Make a problem folder of raw recordings. SOURCE is a table (CSV with any separator, or Parquet), or a folder of "
    "such tables: one row per record, with the id of a track, a time, and a position x, y or a place. DEST is the "
    "folder. Columns that are not named are recognised, and what was recognised, dropped and filled in is said; what "
    "may mean two things is refused. --discount, features and, for positions, the kind of places must be given."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl import`."""
    made.add_argument("source", type=path, metavar="SOURCE", help="a table, or a folder of tables")
    made.add_argument("dest", type=path, metavar="DEST", help="the problem folder to make")
    made.add_argument("--dry-run", action="store_true", help="say what would be made, and write nothing")
    made.add_argument("--force", action="store_true", help="replace the problem that DEST holds; other files stay")
    made.add_argument("--format", choices=("parquet", "csv"), default="parquet", help="of the tables (parquet)")
    made.add_argument("--json", action="store_true", help="print JSON")
    _add_columns(made.add_argument_group("columns"))
    _add_trips(made.add_argument_group("trips and steps"))
    _add_places(made.add_argument_group("states and moves"))
    _add_features(made.add_argument_group("features of places"))
    group = made.add_argument_group("the problem")
    group.add_argument("--discount", type=positive, help="γ; must be given, below 1 for tracks that are cut")
    group.add_argument("--goals", action="store_true", help="the last place of a trip is its goal")
    group.add_argument(
        "--terminal", action="append", default=[], metavar="PLACE", help="a named place where trips end; again for more"
    )


def _add_columns(group: Any) -> None:
    for name, text in {
        "id": "of tracks; 'file': every file is one track",
        "time": "stamps, epochs, frames or numbers; 'day+clock' joins two; 'order': the rows are in order",
        "x": "position",
        "y": "position",
        "place": "the name of a place, instead of a position",
    }.items():
        group.add_argument(f"--{name}", metavar="COLUMN", help=text)
    group.add_argument("--columns", type=_names, metavar="A,B,…", help="names for files without a header")
    group.add_argument("--separator", metavar="SIGN", help="between cells: , ; | tab blank (recognised)")
    group.add_argument("--decimal", choices=(".", ","), help="decimal mark (recognised)")
    group.add_argument("--time-format", metavar="FORM", help="of stamps, as in '%%d.%%m.%%Y %%H:%%M:%%S'")
    group.add_argument("--fps", type=positive, help="frames per second: times are frames")
    group.add_argument(
        "--lonlat", action=argparse.BooleanOptionalAction, help="positions are degrees (by the names of columns)"
    )
    group.add_argument("--per-file", action="store_true", help="the same id in another file is another track")
    group.add_argument(
        "--same-time",
        choices=("refuse", "first", "mean", "all"),
        default="refuse",
        help="where a track is at two places at a time (refuse)",
    )


def _add_trips(group: Any) -> None:
    group.add_argument("--area", type=_corners, metavar="X0,Y0,X1,Y1", help="drop positions outside")
    group.add_argument("--pause", type=positive, help="a trip ends where there is no row for longer than this")
    group.add_argument("--jump", type=positive, help="a trip ends where the next row is farther away than this")
    group.add_argument("--step", type=positive, help="one state per this much time (default: one per change of place)")
    group.add_argument("--noise", type=positive, help="error of positions: find the most likely places")
    group.add_argument("--no-fill", dest="fill", action="store_false", help="end a trip at a jump; do not fill it in")
    group.add_argument("--min-states", type=count, default=2, help="drop shorter trips (2)")


def _add_places(group: Any) -> None:
    group.add_argument("--grid", type=positive, metavar="SIZE", help="squares of this size")
    group.add_argument("--hexagons", type=positive, metavar="SIZE", help="hexagons whose centres are this far apart")
    group.add_argument("--kmeans", type=count, help="this many clusters of positions")
    group.add_argument("--points", metavar="FILE", help="the nearest of given points: x, y, optional name and f_*")
    group.add_argument("--y-down", action="store_true", help="y grows downwards, as in images: maps are turned")
    group.add_argument("--whole-grid", action="store_true", help="squares that nobody visits are states, too")
    group.add_argument("--neighbours", type=int, choices=(4, 8), default=4, help="how many a square has (4)")
    group.add_argument(
        "--moves", choices=("adjacent", "seen"), help="to neighbours, or those that occur (adjacent; of names: seen)"
    )
    group.add_argument(
        "--stay", action=argparse.BooleanOptionalAction, help="staying at a place is a move (with --step)"
    )
    group.add_argument("--seed", type=seed, default=0, help="of --kmeans (0)")


def _add_features(group: Any) -> None:
    for name, metavar, text in (
        ("mean", "COLUMN", "mean of a column over the rows at a place; again for more"),
        ("count", "COLUMN=VALUE", "rows at a place that have this value; again for more"),
        ("distance", "POINTS", "to the nearest of X,Y or NAME=X,Y or a table of points; again for more"),
    ):
        group.add_argument(f"--{name}", action="append", default=[], metavar=metavar, help=text)
    group.add_argument("--turning", action="store_true", help="mean change of direction, in radians")
    group.add_argument("--coordinates", action="store_true", help="x and y")
    group.add_argument("--indicator", action="store_true", help="one feature per place")


def run(arguments: argparse.Namespace) -> int:
    """Import the recordings, write the folder with a summary and a picture, and print what was done."""
    from messirl._files import check_writable
    from messirl.app.cli._output_dir import is_summary
    from messirl.app.report.import_figure import draw_tracks
    from messirl.app.workflow.import_settings import ImportSettings
    from messirl.app.workflow.importing import import_recordings
    from messirl.data.errors import InputError
    from messirl.io.folder.writer import check_place, write_problem

    dest = arguments.dest
    if same_place(arguments.source, dest):
        raise ValueError(f"{dest} is what is to be imported: give another DEST")
    if not arguments.dry_run:
        check_place(dest, overwrite=arguments.force)
        foreign = next((name for name in FILES if (dest / name).exists() and not is_summary(dest / FILES[0])), None)
        if foreign is not None:
            what = f"holds {foreign}, which is of no import by messirl"
            raise InputError(str(dest), what, "give another folder, or move that away")
        for name in FILES:
            check_writable(dest / name)
    record = import_recordings(arguments.source, filled(ImportSettings, vars(arguments)))
    summary = {"command": arguments.command, **record.summary()}
    if not arguments.dry_run:
        files = dict(zip(FILES, ((as_json(summary) + "\n").encode(), draw_tracks(record)), strict=True))
        write_problem(record.problem, dest, format=arguments.format, overwrite=arguments.force, further=files)
    if arguments.json:
        print(as_json(summary))
        return 0
    width = max(map(len, record.said)) + 2
    print("\n".join(f"{name + ':':<{width}}{one_line(text)}" for name, text in record.said.items()))
    written = "nothing is written (--dry-run)" if arguments.dry_run else f"{dest}, with import.json and import.png"
    print(f"\n{written}: {record.problem.mdp}, {record.problem.trajectories}")
    return 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _corners(text: str) -> list[float]:
    return [finite(part, lambda _: True, "four numbers X0,Y0,X1,Y1") for part in text.split(",")]
