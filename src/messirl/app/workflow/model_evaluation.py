"""Evaluation of a fitted model on the trajectories of a problem."""

from __future__ import annotations

from messirl.app.workflow.evaluation_record import EvaluationRecord
from messirl.app.workflow.split import PROBLEM
from messirl.app.workflow.watcher import SILENT, Watcher
from messirl.data.filters import matching
from messirl.data.mdp import MDP
from messirl.data.problem import Problem
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators.uniform import uniform_logs, uniform_score
from messirl.inference import next_state_accuracy
from messirl.inference.paired_gain import paired_gain

SHOWN = 6  # features that a warning names, at most


def evaluate(
    model: MaximumEntropy,
    problem: Problem,
    test: str | None = None,
    watcher: Watcher = SILENT,
    *,
    called: str = "the model",
    folder: str = PROBLEM,
) -> EvaluationRecord:
    """Evaluate a fitted model on the trajectories that the filter `test` selects; None selects all.

    called, folder : names of the model and the problem in the record
    """
    if (problem.mdp.n_states, problem.mdp.n_actions) != (model.mdp_.n_states, model.mdp_.n_actions):
        raise ValueError(
            f"the model has {model.mdp_.n_states} states and {model.mdp_.n_actions} actions, the folder "
            f"{problem.mdp.n_states} and {problem.mdp.n_actions}: evaluate on the problem it was fitted to"
        )
    names = (problem.mdp.state_names, model.mdp_.state_names)
    if None not in names and names[0] != names[1]:
        raise ValueError("the folder names its states differently: evaluate on the problem the model was fitted to")
    differences = _differences(model.mdp_, problem.mdp)
    if differences:
        watcher.note(
            f"the folder differs from the problem that the model was fitted to: {', '.join(differences)}; scores are "
            "those of the policy learnt there"
        )
    some = problem.trajectories
    if test is not None:
        some = some[matching(problem.facts, test, "`test`")]
    watcher.begin()
    own, chance, steps = model._log_likelihood(some), uniform_logs(model.mdp_, some), some.lengths - 1
    return EvaluationRecord(
        called,
        folder,
        test,
        trajectories=len(some),
        steps=int((some.lengths - 1).sum()),
        score=model.score(some),
        uniform=uniform_score(model.mdp_, some),
        next_state_accuracy=next_state_accuracy(model, some),
        differences=differences,
        gain=paired_gain(own, chance, steps),
        each=(own - chance)[steps > 0] / steps[steps > 0],
    )


def _differences(own: MDP, given: MDP) -> list[str]:
    """Return the differences between the MDP of a folder and that of a model, without features left out of the fit."""
    found = [
        f"{name} {getattr(given, name)}, not {getattr(own, name)}"
        for name in ("discount", "horizon")
        if getattr(own, name) != getattr(given, name)
    ]
    if abs(own.transitions - given.transitions).max() > 1e-9 or (own.allowed != given.allowed).any():
        found.append("other transitions")
    if (own.terminal != given.terminal).any():
        found.append("other terminal states")
    names, there = own.feature_ids, given.feature_ids
    missing = [name for name in names if name not in there]
    if missing:
        found.append(f"no feature {', '.join(map(repr, missing[:SHOWN]))}")
    if own.state_action != given.state_action:
        found.append("features of states instead of actions, or the reverse")
        return found
    rows, others = own.feature_rows, given.feature_rows
    changed = []
    for name in names:
        if name in there:
            mine, theirs = rows[:, [names.index(name)]], others[:, [there.index(name)]]
            size = max(float(abs(mine).max()), float(abs(theirs).max()))
            if float(abs(mine - theirs).max()) > 1e-9 * size:
                changed.append(name)
    if changed:
        found.append(f"other values of {', '.join(map(repr, changed[:SHOWN]))}")
    return found
