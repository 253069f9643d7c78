"""Division of a problem with unknown dynamics, which are estimated from the trajectories that are not held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from messirl.app.workflow.split import DividedProblem, Split, divide_trajectories
from messirl.app.workflow.watcher import Watcher
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.dynamics import EstimatedMDP

Estimate = Callable[[Trajectories], EstimatedMDP]


def divide_and_estimate(
    problem: Problem, split: Split, estimate: Estimate, watcher: Watcher, called: str
) -> DividedProblem:
    """Return the parts, with an MDP whose dynamics are estimated from all trajectories outside the test part.

    Test trajectories that this MDP does not allow, or that make no step, are left out.
    """
    parts = divide_trajectories(problem, split, watcher, called)
    if parts.expert.lengths.max() < 2:
        raise ValueError("no expert trajectory makes a step: there is no choice to learn from")
    every, held_out = np.arange(len(problem.trajectories)), parts.rows["test"]
    seen = every if held_out is None else np.setdiff1d(every, held_out)
    estimated = estimate(problem.trajectories[seen])
    test, rows = parts.test, parts.rows
    if test is not None:
        kept = _possible(estimated.mdp, test, watcher)
        rows = {**rows, "test": held_out[kept] if kept else None}
        test = test[kept] if kept else None
    dynamics = _evidence(estimated)
    for line in dynamics["report"]:
        watcher.say(f"dynamics: {line}")
    known = replace(problem, mdp=estimated.mdp, edge_columns={})
    return replace(parts, problem=known, test=test, rows=rows, dynamics=dynamics)


def _evidence(estimated: EstimatedMDP) -> dict[str, Any]:
    """Return the evidence for the dynamics as plain data: the numbers of pairs and states of each kind."""
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


def _possible(mdp: MDP, test: Trajectories, watcher: Watcher) -> list[int]:
    """Return the indices of the held-out trajectories that make a step and that the estimate allows."""

    def allowed(i: int) -> bool:
        try:
            check_trajectories(mdp, test[[i]])
        except ValueError:
            return False
        return True

    kept = [i for i in range(len(test)) if test.lengths[i] > 1 and allowed(i)]
    if len(kept) < len(test):
        watcher.note(
            f"{len(test) - len(kept)} of the {len(test)} trajectories of `test` are not scored: they make no step, or "
            "one that was never observed outside `test`; edges with `prior` above 0 allow such steps"
        )
    return kept
