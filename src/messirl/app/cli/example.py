"""`messirl example`: a small problem with a known truth, as a folder to try the other commands on."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import Parser, path

DESCRIPTION = (
    "Write a small made-up problem as a problem folder, with the truth it was drawn from (truth.json) and a README.md "
    "of five commands that find it again. museum: visits of guides, tourists and school classes; roads: trips of "
    "commuters and visitors, each to its own goal; maze: animals in a labyrinth, thirsty or not."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl example`."""
    made.add_argument("name", choices=("museum", "roads", "maze"), metavar="NAME", help="museum, roads or maze")
    made.add_argument("folder", type=path, nargs="?", metavar="DIR", help="where to write it (NAME)")
    made.add_argument(
        "--force", action="store_true", help="replace the problem or the example that DIR holds; other files stay"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write an example, and say what it holds and what to do with it."""
    from pathlib import Path

    from messirl.paper.synthetic.example_folder import README, write_example

    folder = arguments.folder or Path(arguments.name)
    made = write_example(arguments.name, folder, overwrite=arguments.force)
    print(f"{folder}: {made.problem.mdp}, {made.problem.trajectories}")
    print(f"five commands to try: {folder / README}")
    return 0
