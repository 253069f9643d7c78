"""`messirl check`: list everything that is wrong with a problem folder."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import Parser, as_json, folder_name, note, one_line, path

DESCRIPTION = (
    "List everything that is wrong with a problem folder: the file, the row (the header is row 1, as in a "
    "spreadsheet), the fault and the remedy. The exit code is 0 if the folder is valid and 2 otherwise."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl check`."""
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    made.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print every fault of a problem folder; return exit code 2 if there is one, else 0."""
    from messirl.data.feature_scale import offsets, unequal_spreads
    from messirl.data.validation import unfinished_note
    from messirl.io.folder.atomic_replace import current
    from messirl.io.folder.problem_json import SETTINGS, read_settings
    from messirl.io.folder.reader import examine

    problem, faults, notes = examine(arguments.folder)
    if not faults:
        unknown = read_settings(current(arguments.folder) / SETTINGS).unknown
        notes += tuple(f"{SETTINGS}: unknown key {key!r} is ignored" for key in unknown)
        assert problem is not None, "nothing is wrong with it"
        mdp, trajectories = problem.mdp, problem.trajectories
        said = (unequal_spreads(mdp), offsets(mdp), unfinished_note(mdp, trajectories))
        notes += tuple(text for text in said if text is not None)
    if arguments.json:
        rows = [{"file": f.where, "row": f.row, "what": f.what, "remedy": f.remedy} for f in faults]
        print(as_json({"folder": folder_name(arguments.folder), "ok": not faults, "faults": rows, "notes": notes}))
        return 2 if faults else 0
    called = folder_name(arguments.folder)
    for text in notes:
        note(text)
    if faults:
        print("\n".join(one_line(str(fault)) for fault in faults))
        print(f"{len(faults)} fault{'s' if len(faults) > 1 else ''} in {called}")
        return 2
    assert problem is not None, "nothing is wrong with it"
    print(f"{called} is fine: {problem.mdp}, {problem.trajectories}")
    return 0
