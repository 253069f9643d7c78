"""Many fits at once: their searches go on side by side, and what they ask for is evaluated together.

A search asks (optimise.py): it yields an objective and θ, and is sent the evaluation there. One at a time each question
is answered by itself; together, those of objectives that share an MDP are answered in lanes (planning/batched.py).
What a search finds does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.objective import Evaluation, Objective, evaluations
from messirl.optim.box_search import Asking, Result

Question = tuple[Objective, Floats]
Found = tuple[MDP, Trajectories, Objective, Floats, Result]  # what a fit is finished with
Learning = Generator[Question, Evaluation, Found]
T = TypeVar("T")
SIDE_BY_SIDE = 64  # searches: enough for lanes to be full nearly always


def about(objective: Objective, search: Asking[Result]) -> Generator[Question, Evaluation, Result]:
    """The questions of a search, with the objective that they are about."""
    try:
        theta = next(search)
        while True:
            theta = search.send((yield objective, theta))
    except StopIteration as end:
        found: Result = end.value
        return found


def answered_alone(search: Generator[Question, Evaluation, T]) -> T:
    """What one search finds."""
    try:
        objective, theta = next(search)
        while True:
            objective, theta = search.send(objective(theta))
    except StopIteration as end:
        found: T = end.value
        return found


def side_by_side(searches: Iterable[Generator[Question, Evaluation, T]]) -> Iterator[tuple[int, T]]:
    """The number of each search and what it finds, in the order in which they end."""
    left = enumerate(searches)
    going: list[tuple[int, Generator[Question, Evaluation, T], Question]] = []
    while True:
        while len(going) < SIDE_BY_SIDE and (more := next(left, None)) is not None:
            try:
                going.append((*more, next(more[1])))
            except StopIteration as end:
                yield more[0], end.value
        if not going:
            return
        answers = evaluations([asked[0] for _, _, asked in going], [asked[1] for _, _, asked in going])
        still = []
        for (number, search, _), answer in zip(going, answers, strict=True):
            try:
                still.append((number, search, search.send(answer)))
            except StopIteration as end:
                yield number, end.value
        going = still
