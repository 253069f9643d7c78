"""Which trajectories of a folder are the expert's, which are of unknown quality, which are held out."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from messirl.cli.common import note
from messirl.io.filters import select
from messirl.io.folder import read_problem
from messirl.io.problem import Problem
from messirl.problem.trajectories import Trajectories


@dataclass(frozen=True)
class Data:
    """A folder, divided; `rows` are the numbers of the trajectories of each part in the folder."""

    problem: Problem
    expert: Trajectories
    unlabelled: Trajectories | None
    test: Trajectories | None
    rows: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        named = {"expert": self.expert, "unlabelled": self.unlabelled, "test": self.test}
        return {name: len(some) for name, some in named.items() if some is not None}


def read_data(arguments: argparse.Namespace) -> Data:
    """Read the folder and divide it; experts are never unlabelled as well, and nothing held out is learnt from."""
    problem = read_problem(arguments.folder)
    if len(problem.trajectories) == 0:
        raise ValueError(f"{arguments.folder} holds no trajectory: there is nothing to learn from")
    random = np.random.default_rng(arguments.seed)
    unlabelled = _rows(problem, arguments, "unlabelled")
    test = _rows(problem, arguments, "test")
    expert = _rows(problem, arguments, "expert")
    if expert is None:
        named = [rows for rows in (unlabelled, test) if rows is not None]
        expert = np.setdiff1d(np.arange(len(problem.trajectories)), np.concatenate([*named, []]))
        if expert.size == 0:
            raise ValueError("--unlabelled and --test take every trajectory: narrow them, or give --expert")
    expert = _drawn(expert, arguments.n_expert, "expert", random)
    if unlabelled is not None:
        both = np.intersect1d(expert, unlabelled).size
        if both == unlabelled.size:
            raise ValueError("all trajectories of --unlabelled are the expert's: widen it, or narrow --expert")
        if both:
            note(f"{both} of the trajectories of --unlabelled are the expert's, and taken as the expert's alone")
        unlabelled = _drawn(np.setdiff1d(unlabelled, expert), arguments.n_unlabelled, "unlabelled", random)
    elif arguments.n_unlabelled is not None:
        raise ValueError("--n-unlabelled without --unlabelled: say which trajectories are of unknown quality")
    if test is not None:
        for name, rows in (("expert", expert), ("unlabelled", unlabelled)):
            both = 0 if rows is None else np.intersect1d(rows, test).size
            if both:
                raise ValueError(
                    f"{both} {'trajectory is' if both == 1 else 'trajectories are'} in --test and in --{name}: what is "
                    "held out must not be learnt from; narrow one of the filters"
                )
    every = problem.trajectories
    data = Data(
        problem,
        every[expert],
        None if unlabelled is None else every[unlabelled],
        None if test is None else every[test],
        {"expert": expert, "unlabelled": unlabelled, "test": test},
    )
    for name, some in (("expert", data.expert), ("test", data.test)):
        if some is not None and some.lengths.max() < 2:
            raise ValueError(f"no {name} trajectory makes a step: there is no choice to learn from")
    return data


def matching(problem: Problem, text: str) -> Any:
    """The rows that a filter takes: on the columns of trajectory_meta, and on trajectory_id."""
    ids = np.arange(len(problem.trajectories)) if problem.trajectory_ids is None else problem.trajectory_ids
    return np.flatnonzero(select({"trajectory_id": ids, **problem.meta}, text))


def _rows(problem: Problem, arguments: argparse.Namespace, name: str) -> Any:
    text = getattr(arguments, name)
    if text is None:
        return None
    rows = matching(problem, text)
    if rows.size == 0:
        raise ValueError(f"--{name} {text!r} takes no trajectory: messirl show lists the columns and their values")
    return rows


def _drawn(rows: Any, n: int | None, name: str, random: Any) -> Any:
    if n is None:
        return rows
    if n > rows.size:
        raise ValueError(f"--n-{name} {n}, but there are only {rows.size} such trajectories")
    return rows[sorted(random.permutation(rows.size)[:n])]
