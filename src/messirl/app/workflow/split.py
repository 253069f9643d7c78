"""Division of the trajectories of a problem into expert, unlabelled and held-out ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from messirl._text import did_you_mean
from messirl.app.workflow.watcher import SILENT, Watcher
from messirl.data.filters import empty_cells, matching
from messirl.data.problem import Problem
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.trajectories import Trajectories

PROBLEM = "the problem"  # name in errors of a problem without a name


@dataclass(frozen=True)
class Split:
    """The division of the trajectories of a problem.

    Parameters
    ----------
    expert, unlabelled, test : str, optional
        Filters over the columns of the problem's `meta` (see `messirl.data.filters`) for the trajectories of the
        expert, those of unknown quality, and those held out. Without `expert`, the expert's are all trajectories that
        the other two filters do not select.
    n_expert, n_unlabelled : int, optional
        Draw this many of them at random. None: use all.
    seed : int
        The seed of these draws.

    Examples
    --------
    >>> import numpy as np
    >>> from messirl import MDP, Trajectories
    >>> from messirl.io import Problem
    >>> from messirl.app.workflow.split import Split, divide
    >>> mdp = MDP([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], features=[[0.0], [1.0]], discount=0.9)
    >>> walks = Trajectories.from_lists([[0, 1, 0], [1, 0], [0, 0, 1]])
    >>> problem = Problem(mdp, walks, meta={"day": np.array([1, 2, 2])})
    >>> divide(problem, Split(expert="day = 1", unlabelled="day > 1")).counts
    {'expert': 1, 'unlabelled': 2}
    """

    expert: str | None = None
    unlabelled: str | None = None
    test: str | None = None
    n_expert: int | None = None
    n_unlabelled: int | None = None
    seed: int = 0

    @property
    def filters(self) -> dict[str, str]:
        """The filters that were given, by the part that they select."""
        given = {"expert": self.expert, "unlabelled": self.unlabelled, "test": self.test}
        return {kind: text for kind, text in given.items() if text is not None}


@dataclass(frozen=True)
class DividedProblem:
    """A problem divided into parts.

    Attributes
    ----------
    problem : Problem
        The whole problem.
    expert : Trajectories
        The expert's trajectories.
    unlabelled : Trajectories, StreamedTrajectories or None
        The trajectories of unknown quality; None without any.
    test : Trajectories or None
        The held-out trajectories; None without any.
    rows : dict from str to array of int or None
        The indices in the problem of the trajectories of each part.
    dynamics : dict
        The source of the dynamics: {"kind": "known"}, or the evidence for estimated dynamics.
    """

    problem: Problem
    expert: Trajectories
    unlabelled: Any
    test: Trajectories | None
    rows: dict[str, Any] = field(default_factory=dict)
    dynamics: dict[str, Any] = field(default_factory=lambda: {"kind": "known"})

    @property
    def training_sets(self) -> tuple[Any, ...]:
        """The training data: the expert's trajectories, and those of unknown quality if there are any."""
        return (self.expert,) if self.unlabelled is None else (self.expert, self.unlabelled)

    def named(self, text: str) -> str:
        """Return a message with names of trajectories in the problem, not numbers in a part, and with options."""
        ids = self.problem.facts["trajectory_id"]

        def name(found: re.Match[str]) -> str:
            rows = self.rows.get(found[2])
            i = int(found[1])
            return found[0] if rows is None or i >= len(rows) else f"trajectory {ids[rows[i]]} of {found[2]}"

        text = re.sub(r"trajectory (\d+) of (expert|unlabelled|test)\b", name, text)
        text = re.sub(r"objective='(choices|counts)'", r"`objective` \1", text)
        return text.replace("(MaxEntIRL)", "(`method` maxent)")

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Give the message of a ValueError the names of trajectories and options."""
        try:
            yield
        except ValueError as error:
            if self.named(str(error)) == str(error):
                raise
            raise ValueError(self.named(str(error))) from error

    @property
    def counts(self) -> dict[str, int]:
        """The number of trajectories of each part."""
        named = {"expert": self.expert, "unlabelled": self.unlabelled, "test": self.test}
        return {name: len(some) for name, some in named.items() if some is not None}

    def groups(self, column: str | None, part: str = "expert") -> list[str] | None:
        """Return the group of every trajectory of a part: its entry in a column of the problem's `meta`."""
        if column is None or self.rows[part] is None:
            return None
        given = self.column("`groups`", column)[self.rows[part]]
        empty = int(empty_cells(given).sum())
        if empty:
            who = f"{empty} {part} {'trajectory' if empty == 1 else 'trajectories'}"
            raise ValueError(f"`groups` {column} is empty for {who}: fill it in, or exclude them with a filter")
        return [str(value) for value in given]

    def column(self, option: str, column: str) -> Any:
        """Return the column of the problem's `meta` that an option names."""
        meta = self.problem.meta
        if column not in meta:
            known, close = ", ".join(meta) or "none", did_you_mean(column, meta)
            raise ValueError(f"{option} {column}: trajectory_meta has no such column; there are {known}{close}")
        return meta[column]


def divide(problem: Problem, split: Split, watcher: Watcher = SILENT, called: str = PROBLEM) -> DividedProblem:
    """Divide a problem with known dynamics; raise if there is nothing to learn."""
    if len(problem.trajectories) and problem.mdp.allowed.sum(axis=1).max() < 2:
        raise ValueError(f"no state of {called} allows more than one action: there is nothing to learn")
    parts = divide_trajectories(problem, split, watcher, called)
    for name, some in (("expert", parts.expert), ("test", parts.test)):
        if some is not None and some.lengths.max() < 2:
            raise ValueError(f"no {name} trajectory makes a step: there is no choice to learn from")
    return parts


def with_streamed(parts: DividedProblem, split: Split, streamed: StreamedTrajectories | None) -> DividedProblem:
    """Return the parts with trajectories of unknown quality that stay in files, if there are any."""
    if streamed is None:
        return parts
    if split.unlabelled is not None:
        raise ValueError("`unlabelled` and `unlabelled_from` both name trajectories of unknown quality: give one")
    return replace(parts, unlabelled=streamed)


def divide_trajectories(problem: Problem, split: Split, watcher: Watcher, called: str) -> DividedProblem:
    """Return the trajectories of each part, checking only that there are any."""
    every = problem.trajectories
    if len(every) == 0:
        raise ValueError(f"{called} has no trajectories: there is nothing to learn from")
    rows = rows_of(problem.facts, split, watcher)
    unlabelled, test = (None if rows[name] is None else every[rows[name]] for name in ("unlabelled", "test"))
    return DividedProblem(problem, every[rows["expert"]], unlabelled, test, rows)


def rows_of(facts: Mapping[str, Any], split: Split, watcher: Watcher) -> dict[str, Any]:
    """Return the rows of each part, None for a part without any; `facts` has one row per trajectory.

    An expert trajectory is never also unlabelled, and a held-out one is never used for training.
    """
    random = np.random.default_rng(split.seed)
    expert, unlabelled, test = (
        None if text is None else matching(facts, text, f"`{name}`")
        for name, text in (("expert", split.expert), ("unlabelled", split.unlabelled), ("test", split.test))
    )
    if expert is None:
        named = [rows for rows in (unlabelled, test) if rows is not None]
        expert = np.setdiff1d(np.arange(len(facts["trajectory_id"])), np.concatenate([*named, []]))
        if expert.size == 0:
            raise ValueError("`unlabelled` and `test` select every trajectory: narrow them, or give `expert`")
    expert = _drawn(expert, split.n_expert, "expert", random)
    if unlabelled is not None:
        both = np.intersect1d(expert, unlabelled).size
        if both == unlabelled.size:
            raise ValueError("all trajectories of `unlabelled` are the expert's: widen it, or narrow `expert`")
        if both:
            watcher.note(
                f"{both} of the trajectories of `unlabelled` are the expert's, and used as expert trajectories only"
            )
        unlabelled = _drawn(np.setdiff1d(unlabelled, expert), split.n_unlabelled, "unlabelled", random)
    elif split.n_unlabelled is not None:
        raise ValueError("`n_unlabelled` has no effect without `unlabelled`: name the trajectories of unknown quality")
    for name, rows in (("expert", expert), ("unlabelled", unlabelled)):
        both = 0 if rows is None or test is None else np.intersect1d(rows, test).size
        if both:
            raise ValueError(
                f"{both} {'trajectory is' if both == 1 else 'trajectories are'} in both `test` and `{name}`: held-out "
                "trajectories must not be used for training; narrow one of the filters"
            )
    return {"expert": expert, "unlabelled": unlabelled, "test": test}


def _drawn(rows: Any, n: int | None, name: str, random: Any) -> Any:
    if n is None:
        return rows
    if n > rows.size:
        raise ValueError(f"`n_{name}` {n}, but there are only {rows.size} such trajectories")
    return rows[sorted(random.permutation(rows.size)[:n])]
