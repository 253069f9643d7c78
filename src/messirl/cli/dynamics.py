"""`messirl fit --dynamics estimated`: a folder, with or without edges, where moves lead counted from trajectories."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from messirl.cli.common import note
from messirl.cli.reading import Data, divide
from messirl.dynamics import EstimatedMDP
from messirl.io.folder.estimable import read_estimable
from messirl.problem.counts import check_trajectories
from messirl.problem.trajectories import Trajectories


def read_estimated(arguments: argparse.Namespace) -> tuple[Data, EstimatedMDP]:
    """The folder, divided, with the MDP that its trajectories outside of --test speak of.

    Edges, where there are any, say which moves are possible; their probabilities are not used.
    """
    found = read_estimable(arguments.folder)
    problem = found.problem
    for text in problem.notes:
        note(text)
    every = problem.trajectories
    if len(every) == 0:
        raise ValueError(f"{arguments.folder} holds no trajectory: there is nothing to learn from")
    rows = divide(problem.facts, arguments)
    seen = np.arange(len(every)) if rows["test"] is None else np.setdiff1d(np.arange(len(every)), rows["test"])
    expert = every[rows["expert"]]
    if expert.lengths.max() < 2:
        raise ValueError("no expert trajectory makes a step: there is no choice to learn from")
    estimated = found.estimate(every[seen], arguments.prior or 0.0)
    test = None if rows["test"] is None else _possible(estimated, every[rows["test"]])
    unlabelled = None if rows["unlabelled"] is None else every[rows["unlabelled"]]
    return Data(replace(problem, mdp=estimated.mdp, edge_columns={}), expert, unlabelled, test, rows), estimated


def evidence(estimated: EstimatedMDP) -> dict[str, Any]:
    """What the data says of the dynamics, for fit.json; pairs and states by number."""
    report = estimated.report
    return {
        "kind": "estimated",
        "prior": estimated.prior,
        "transitions": report.n_transitions,
        "state_action_pairs": report.n_pairs,
        "actions_inferred": report.actions_inferred,
        "states_never_left": report.never_left,
        "states_never_visited": len(report.never_visited),
        "states_without_moves": len(report.without_moves),
        "pairs_never_seen": len(report.never_seen),
        f"pairs_seen_fewer_than_{report.least}_times": len(report.thin),
        "report": str(report).splitlines(),
    }


def _possible(estimated: EstimatedMDP, test: Trajectories) -> Trajectories | None:
    """The held-out trajectories that the estimate allows, and that make a step."""

    def allowed(i: int) -> bool:
        try:
            check_trajectories(estimated.mdp, test[[i]])
        except ValueError:
            return False
        return True

    kept = [i for i in range(len(test)) if test.lengths[i] > 1 and allowed(i)]
    if len(kept) < len(test):
        note(
            f"{len(test) - len(kept)} of the {len(test)} trajectories of --test make no step, or one that was never "
            "seen outside of them, and are not scored; edges with --prior above 0 make such steps possible"
        )
    return test[kept] if kept else None
