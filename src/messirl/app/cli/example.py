"""`messirl example`: a small problem with known truth, as a folder to try the other commands on."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import Parser, path

DESCRIPTION = (
    "Write a small synthetic problem folder, with its true reward (truth.json) and a README.md with five commands "
    "that recover it. museum: visits by guides, tourists and school classes; roads: trips of commuters and visitors, "
    "each to its own goal; maze: animals in a labyrinth, thirsty or not."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl example`."""
    made.add_argument("name", choices=("museum", "roads", "maze"), metavar="NAME", help="museum, roads or maze")
    made.add_argument("folder", type=path, nargs="?", metavar="DIR", help="folder to write (NAME)")
    made.add_argument(
        "--force", action="store_true", help="replace the problem or the example in DIR; other files stay"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write an example; print its contents and where its commands are."""
    from pathlib import Path

    from messirl.paper.synthetic.example_folder import README, write_example

    folder = arguments.folder or Path(arguments.name)
    made = write_example(arguments.name, folder, overwrite=arguments.force)
    print(f"{folder}: {made.problem.mdp}, {made.problem.trajectories}")
    print(f"five commands to try: {folder / README}")
    return 0
