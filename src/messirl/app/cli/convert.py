"""`messirl convert`: problems and trajectories from other formats, written as problem folders and tables."""

from __future__ import annotations

import argparse

from messirl.app.cli._parser import Parser, count, path, positive, problem_in, same_place, seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EPISODE = 10_000  # maximum length of a recorded episode
EXPERT, UNLABELLED = 20, 100  # default numbers of recorded episodes

DESCRIPTION = (
    "Convert a problem or trajectories from another format. SOURCE is a problem folder (Parquet or CSV); gym:ID, a "
    "toy-text environment of gymnasium with a table P; minari:ID, a Minari data set on this disk; or the HDF5 file of "
    "one. With gym:ID, episodes of an optimal and of a random policy are recorded (role expert and unlabelled). DEST "
    "is a folder or, for data sets, a table of trajectories (.csv or .parquet). --force replaces an existing DEST."
)


def add(made: Parser) -> None:
    """Declare the arguments of `messirl convert`."""
    made.add_argument("source", metavar="SOURCE", help="a folder, gym:ID, minari:ID or an HDF5 file")
    made.add_argument("dest", type=path, metavar="DEST", help="the folder or table to write")
    made.add_argument(
        "--format", choices=("parquet", "csv"), default="parquet", help="format of the tables of a folder (parquet)"
    )
    made.add_argument("--force", action="store_true", help="replace the problem or the table in DEST; other files stay")
    group = made.add_argument_group("gym:ID")
    group.add_argument("--discount", type=positive, help="discount factor γ (required)")
    group.add_argument("--n-expert", type=count, help=f"number of episodes of an optimal policy ({EXPERT})")
    group.add_argument("--n-unlabelled", type=count, help=f"number of episodes of a random policy ({UNLABELLED})")
    group.add_argument("--seed", type=seed, help="random seed (0)")


def run(arguments: argparse.Namespace) -> int:
    """Convert SOURCE to DEST: a problem to a folder, episodes to one table."""
    from pathlib import Path

    from messirl.io.folder.writer import check_place

    kind, colon, name = arguments.source.partition(":")
    if kind in ("gym", "minari") and colon and not name:
        raise ValueError(f"{kind}: the id is missing: give it as in gym:FrozenLake-v1")
    if same_place(arguments.source, arguments.dest):
        raise ValueError(f"{arguments.dest} is both SOURCE and DEST: give another DEST")
    if kind != "gym" or not name:
        for option in ("discount", "n_expert", "n_unlabelled", "seed"):
            if getattr(arguments, option) is not None:
                raise ValueError(
                    f"--{option.replace('_', '-')} has no effect on {arguments.source}: leave it out, or give gym:ID "
                    "as SOURCE"
                )
    if kind == "gym" and name:
        check_place(arguments.dest, overwrite=arguments.force)
        return _folder(_gym(name, arguments), arguments)
    if (kind == "minari" and name) or Path(arguments.source).suffix in (".hdf5", ".h5"):
        return _trajectories(kind == "minari", name, arguments)
    if arguments.dest.suffix.lower() in (".csv", ".parquet") and not arguments.dest.exists():
        raise ValueError(f"{arguments.dest} is named like a table, but a problem has several tables: give a folder")
    return _folder(problem_in(Path(arguments.source)), arguments)


def _folder(problem: Any, arguments: argparse.Namespace) -> int:
    from messirl.io.folder.writer import write_problem

    write_problem(problem, arguments.dest, format=arguments.format, overwrite=arguments.force)
    print(f"{arguments.dest}: {problem.mdp}, {problem.trajectories}")
    return 0


def _gym(name: str, arguments: argparse.Namespace) -> Any:
    import numpy as np

    from messirl.data.problem import Problem
    from messirl.io.interop.gym import from_gym, gym_reward, record
    from messirl.planning import optimal_policy

    if arguments.discount is None:
        raise ValueError("a gymnasium environment has no discount factor: give --discount")
    mdp = from_gym(name, discount=arguments.discount, features="entered")
    best = optimal_policy(mdp, gym_reward(name))
    alike = np.full(best.shape, 1.0 / mdp.n_actions)
    experts, others, first = arguments.n_expert or EXPERT, arguments.n_unlabelled or UNLABELLED, arguments.seed or 0
    every = record(name, best, experts, length=EPISODE, seed=first) + record(
        name, alike, others, length=EPISODE, seed=first + 1
    )
    role = np.array(["expert"] * experts + ["unlabelled"] * others)
    return Problem(mdp, every, {"role": role})


def _trajectories(by_name: bool, name: str, arguments: argparse.Namespace) -> int:
    from messirl.io.folder.trajectory_table import check_table_place, write_trajectories

    check_table_place(arguments.dest, overwrite=arguments.force)
    if by_name:
        from messirl.io.interop.minari import from_minari

        found = from_minari(name)
    else:
        from messirl.io.interop.hdf5 import episodes_from_hdf5
        from messirl.io.recordings.recording import trajectories_from_recordings

        found = trajectories_from_recordings(episodes_from_hdf5(arguments.source))
    write_trajectories(found, arguments.dest, overwrite=arguments.force)
    print(f"{arguments.dest}: {found}")
    return 0
