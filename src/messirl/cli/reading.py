"""Which trajectories of a folder are the expert's, which are of unknown quality, which are held out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from messirl.cli.common import note
from messirl.io.folder.reader import read_problem
from messirl.problem.filters import matching
from messirl.problem.problem import Problem
from messirl.problem.trajectories import Trajectories

PARTS = ("expert", "unlabelled", "test")


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
    """Read the folder and divide it."""
    problem = read_problem(arguments.folder)
    for text in problem.notes:
        note(text)
    every = problem.trajectories
    if len(every) == 0:
        raise ValueError(f"{arguments.folder} holds no trajectory: there is nothing to learn from")
    if problem.mdp.allowed.sum(axis=1).max() < 2:
        raise ValueError(f"no state of {arguments.folder} has a choice of moves: there is nothing to learn")
    rows = divide(problem.facts, arguments)
    unlabelled, test = (None if rows[name] is None else every[rows[name]] for name in PARTS[1:])
    data = Data(problem, every[rows["expert"]], unlabelled, test, rows)
    for name, some in (("expert", data.expert), ("test", data.test)):
        if some is not None and some.lengths.max() < 2:
            raise ValueError(f"no {name} trajectory makes a step: there is no choice to learn from")
    return data


def divide(facts: Mapping[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Rows of each part, None where there is none; `facts` has one row per trajectory.

    Experts are never unlabelled as well, and nothing held out is learnt from.
    """
    random = np.random.default_rng(arguments.seed)
    expert, unlabelled, test = (_rows(facts, arguments, name) for name in PARTS)
    if expert is None:
        named = [rows for rows in (unlabelled, test) if rows is not None]
        expert = np.setdiff1d(np.arange(len(facts["trajectory_id"])), np.concatenate([*named, []]))
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
    for name, rows in (("expert", expert), ("unlabelled", unlabelled)):
        both = 0 if rows is None or test is None else np.intersect1d(rows, test).size
        if both:
            raise ValueError(
                f"{both} {'trajectory is' if both == 1 else 'trajectories are'} in --test and in --{name}: what is "
                "held out must not be learnt from; narrow one of the filters"
            )
    return {"expert": expert, "unlabelled": unlabelled, "test": test}


def _rows(facts: Mapping[str, Any], arguments: argparse.Namespace, name: str) -> Any:
    text = getattr(arguments, name)
    if text is None:
        return None
    return matching(facts, text, f"--{name}")


def _drawn(rows: Any, n: int | None, name: str, random: Any) -> Any:
    if n is None:
        return rows
    if n > rows.size:
        raise ValueError(f"--n-{name} {n}, but there are only {rows.size} such trajectories")
    return rows[sorted(random.permutation(rows.size)[:n])]
