"""`messirl check`: everything that is wrong with a folder, at once."""

from __future__ import annotations

import argparse

from messirl.cli.common import Parser, as_json, note, path

DESCRIPTION = (
    "Read a problem folder and say everything that is wrong with it at once: file, row, what and what to "
    "do. Exit code 0 if it is fine, 2 if not."
)


def add(made: Parser) -> None:
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from messirl.io.folder import check_problem, read_problem
    from messirl.io.settings import SETTINGS, read_settings

    faults = check_problem(arguments.folder)
    if arguments.json:
        rows = [{"file": f.where, "row": f.row, "what": f.what, "remedy": f.remedy} for f in faults]
        print(as_json({"folder": str(arguments.folder), "ok": not faults, "faults": rows}))
    elif faults:
        print("\n".join(str(fault) for fault in faults))
        print(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in {arguments.folder}")
    else:
        problem = read_problem(arguments.folder)
        for key in read_settings(arguments.folder / SETTINGS).unknown:
            note(f"{SETTINGS}: nothing is known of {key!r}, so it is ignored: is it misspelt?")
        print(f"{arguments.folder} is fine: {problem.mdp}, {problem.trajectories}")
    return 2 if faults else 0
