"""Data for maps on a page: coordinates of the states, and some of the trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl.app.workflow.graph_layout import network_places
from messirl.app.workflow.split import DividedProblem
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories

TRACKS = 40  # trajectories of each kind to draw, at most


def map_of(problem: Problem, mdp: MDP, parts: DividedProblem) -> dict[str, Any]:
    """Return coordinates or a layout of the states, and evenly spaced trajectories of each kind.

    If a network has too many states for a layout, only the states that the experts visit are laid out, if few enough.
    """
    xy, laid_out = problem.xy, False
    if xy is None:
        xy = network_places(mdp)
        xy = network_places(mdp, parts.expert.states) if xy is None else xy
        laid_out = xy is not None
    some = {"expert": parts.expert, "unlabelled": parts.unlabelled}
    tracks = {kind: _evenly(one) for kind, one in some.items() if isinstance(one, Trajectories)}
    return {"xy": xy, "laid_out": laid_out, "y_down": problem.y_down, "tracks": tracks}


def _evenly(some: Trajectories) -> Trajectories:
    n = len(some)
    return some if n <= TRACKS else some[np.linspace(0, n - 1, TRACKS).round().astype(np.int64)]
