"""What a record holds so that a page can draw maps: coordinates, and some of the trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl.app.workflow.graph_layout import network_places
from messirl.app.workflow.split import Parts
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories

TRACKS = 40  # trajectories of each kind that are drawn, at most


def map_of(problem: Problem, mdp: MDP, parts: Parts) -> dict[str, Any]:
    """Where states are, or how their network can be laid out, and evenly chosen trajectories of each kind.

    Of a network with too many states, those that the experts visit are laid out, if these are few enough.
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
