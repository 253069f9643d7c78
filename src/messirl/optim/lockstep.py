"""Batched searches: many fits run concurrently, and their evaluations are computed in batches.

A search is a generator (box_search.py): it yields an objective and θ, and is sent the evaluation there. A single search
is evaluated point by point, concurrent ones by a function that may evaluate several objectives in one batch. The result
of a search does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

from messirl._types import Floats
from messirl.optim.box_search import Result, SearchSteps

EvaluationRequest = tuple[Any, Floats]  # an objective and θ
Evaluate = Callable[[list[Any], list[Floats]], list[Any]]  # of several objectives, each at its own θ
T = TypeVar("T")
MAX_CONCURRENT = 64  # concurrent searches: enough to fill nearly every batch


def attach_objective(objective: Any, search: SearchSteps[Result]) -> Generator[EvaluationRequest, Any, Result]:
    """Attach the objective to the evaluation requests of a search."""
    try:
        theta = next(search)
        while True:
            theta = search.send((yield objective, theta))
    except StopIteration as end:
        found: Result = end.value
        return found


def run_search(search: Generator[EvaluationRequest, Any, T]) -> T:
    """Run one search and return its result."""
    try:
        objective, theta = next(search)
        while True:
            objective, theta = search.send(objective(theta))
    except StopIteration as end:
        found: T = end.value
        return found


def run_searches(
    searches: Iterable[Generator[EvaluationRequest, Any, T]], evaluate: Evaluate
) -> Iterator[tuple[int, T]]:
    """Run searches concurrently; yield the number and the result of each, in the order in which they end."""
    left = enumerate(searches)
    going: list[tuple[int, Generator[EvaluationRequest, Any, T], EvaluationRequest]] = []
    while True:
        while len(going) < MAX_CONCURRENT and (more := next(left, None)) is not None:
            try:
                going.append((*more, next(more[1])))
            except StopIteration as end:
                yield more[0], end.value
        if not going:
            return
        answers = evaluate([asked[0] for _, _, asked in going], [asked[1] for _, _, asked in going])
        still = []
        for (number, search, _), answer in zip(going, answers, strict=True):
            try:
                still.append((number, search, search.send(answer)))
            except StopIteration as end:
                yield number, end.value
        going = still
