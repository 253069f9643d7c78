"""Many fits at once: their searches go on side by side, and what they ask for is evaluated together.

A search asks (optimise.py): it yields an objective and θ, and is sent the evaluation there. One at a time each question
is answered by itself; together, those of objectives that share an MDP are answered in lanes (planning/together.py).
What a search finds does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from messirl._types import Floats
from messirl.objective import Evaluation, Objective, evaluations
from messirl.optimise import Asking, Result
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories

Question = tuple[Objective, Floats]
Found = tuple[MDP, Trajectories, Objective, Floats, Result]  # what a fit is finished with
Learning = Generator[Question, Evaluation, Found]
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


def answered_alone(learning: Learning) -> Found:
    """What one search finds."""
    try:
        objective, theta = next(learning)
        while True:
            objective, theta = learning.send(objective(theta))
    except StopIteration as end:
        found: Found = end.value
        return found


def search_together(fits: Iterable[tuple[Any, tuple[Any, ...]]]) -> Iterator[tuple[int, Result]]:
    """The number and the result of each search, in the order in which they end; the estimators stay unfitted.

    fits : estimators, and what each is fitted to: an MDP, experts, …
    """
    left = enumerate(fits)
    going: list[tuple[int, Learning, Question]] = []
    more = True
    while True:
        while more and len(going) < SIDE_BY_SIDE:
            more = False
            for number, (model, data) in left:
                more = True
                learning = model._learning(*data)
                end = _next(learning, None)
                if isinstance(end, Result):
                    yield number, end
                else:
                    going.append((number, learning, end))
                break
        if not going:
            return
        answers = evaluations([asked[0] for _, _, asked in going], [asked[1] for _, _, asked in going])
        still = []
        for (number, learning, _), answer in zip(going, answers, strict=True):
            end = _next(learning, answer)
            if isinstance(end, Result):
                yield number, end
            else:
                still.append((number, learning, end))
        going = still


def _next(learning: Learning, answer: Evaluation | None) -> Question | Result:
    """The next question, or the result."""
    try:
        return next(learning) if answer is None else learning.send(answer)
    except StopIteration as end:
        result: Result = end.value[-1]
        return result
