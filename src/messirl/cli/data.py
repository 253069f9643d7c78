"""The options that say which trajectories of a folder are the expert's, of unknown quality, held out."""

from __future__ import annotations

from messirl.cli.common import Parser, count, path, seed

FILTERS = (
    "WHICH is a filter on the columns of trajectory_meta and on trajectory_id: column, comparison "
    '(= != < <= > >=), value, joined by and / or; for example "role = expert and mouse != B1".'
)


def add_data(made: Parser) -> None:
    """FOLDER and the options that divide its trajectories."""
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    group = made.add_argument_group("trajectories", FILTERS)
    group.add_argument("--expert", metavar="WHICH", help="the expert's (default: all that are not named otherwise)")
    group.add_argument("--unlabelled", metavar="WHICH", help="those of unknown quality (default: none)")
    group.add_argument("--test", metavar="WHICH", help="held out, for the score (default: none)")
    group.add_argument("--n-expert", type=count, metavar="N", help="draw N of the expert's at random")
    group.add_argument("--n-unlabelled", type=count, metavar="N", help="draw N of the unlabelled at random")
    group.add_argument("--seed", type=seed, default=0, help="seed of these draws (0)")
