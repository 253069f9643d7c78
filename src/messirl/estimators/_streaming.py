"""Checks of unlabelled trajectories that stay in files: methods that need them in memory, and overlapping sets."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.chunked_reduce import run_pass
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.streamed_summary import gather_statistics
from messirl.data.streamed_trajectories import StreamedTrajectories, is_streamed
from messirl.data.trajectories import Trajectories
from messirl.data.validation import unfinished

ROUNDING = 1e-9  # relative difference of sums of equal counts
EMPTY = "unlabelled is empty: pass None to fit without unlabelled trajectories"
IN_MEMORY = "read them with messirl.io.read_trajectories, if they fit in memory"


def refuse_streamed(given: Any, who: str, why: str) -> None:
    """Refuse unlabelled trajectories in files, or a path to them, where they are needed in memory."""
    if is_streamed(given):
        raise ValueError(f"{who} {why}, so unlabelled trajectories cannot stay in files: {IN_MEMORY}")


def all_in_files(mdp: MDP, some: Trajectories, others: Trajectories | StreamedTrajectories) -> bool:
    """Return whether every given trajectory is, state by state, also one of the other set."""
    if isinstance(others, StreamedTrajectories):
        return _all_in_files(mdp, some, others)
    there = {_content(one) for one in others}
    return all(_content(one) in there for one in some)


def _content(one: Any) -> tuple[bytes, int | None]:
    states, _, goal = one
    return states.tobytes(), goal


def _all_in_files(mdp: MDP, some: Trajectories, streamed: StreamedTrajectories) -> bool:
    """Return the same for those in files; False if these have no counts.

    Feature counts say whether that can be. Only then are the files read once more.
    """
    table = gather_statistics(mdp, streamed).counts
    if table is None or len(some) == 0 or unfinished(mdp, some).any():
        return False
    with warnings.catch_warnings():  # what counts say of trajectories that are cut was said before
        warnings.simplefilter("ignore")
        own = checked_feature_counts(mdp, some)
    mix = np.cos(np.arange(mdp.n_features))  # of all counts, so that one number tells trajectories apart
    near = ROUNDING * float((np.abs(own) @ np.abs(mix)).max())
    if not run_pass(functools.partial(_met, own @ mix, mix, near), table, mdp.n_features)[0].all():
        return False
    lacking = {one.states.tobytes() for one in some}
    for chunk in streamed.chunks(mdp):
        alike = np.isin(chunk.lengths, some.lengths) & np.isin(chunk.first, some.first)
        lacking -= {chunk[int(i)].states.tobytes() for i in np.flatnonzero(alike)}
        if not lacking:
            return True
    return False


def _met(wanted: Floats, mix: Floats, near: float, counts: Floats) -> tuple[Ints, None]:
    """Return which of the wanted sums (l,) occur among rows of counts, as 0 or 1 each."""
    sums = np.append(np.sort(counts @ mix), np.inf)
    return (sums[np.searchsorted(sums, wanted - near)] <= wanted + near).astype(np.int64), None
