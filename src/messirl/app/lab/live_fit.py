"""One fit for the page: the estimator of a request, with a warm start while a slider moves.

When the slider rests, the fit starts at zero, as the exported Python code does: equal page states give equal results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.app.lab.catalog import LabScene, RequestedSets
from messirl.app.lab.requests import FitRequest, RequestError
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators import MESSI
from messirl.estimators.registry import DEFAULT_POOLING_WEIGHT, METHODS, baseline
from messirl.paper.domains.pit import TurnSimilarity
from messirl.planning import soft_policy
from messirl.similarity.registry import SIMILARITIES

OFFERED = ("MESSI", "MaxEnt", "LightPooling", "Pooling", "EM", "Complete", "Ridge", "RidgeStd", "Reference")
LABELS = {name: METHODS[name].label for name in OFFERED} | {"LightPooling": "MaxEnt-IRL with pooling weight"}


def _named(name: str, **arguments: Any) -> tuple[str, Callable[[float], Any]]:
    """Return the label of a similarity of the registry, and the function that makes it for a width σ."""
    entry = SIMILARITIES[name]
    return entry.label, lambda sigma: entry.make(**({entry.width: sigma} if entry.width else {}), **arguments)


SHOWN_SIMILARITIES: dict[str, tuple[str, Callable[[float], Any]]] = {
    "rbf": _named("rbf", standardise=False),
    "rbf-std": ("RBF, standardised counts", _named("rbf")[1]),
    "exponential": _named("exponential", standardise=False),
    "turns": ("changes of direction: exp(−|Δ|/σ)", TurnSimilarity),
    "complete": _named("complete"),
}
ROUGH = {"tol": 1e-2, "max_iter": 8}  # while a slider moves
EXACT = {"tol": 1e-6, "max_iter": 500}
ROUNDS = 10  # search steps of EM per E-step
MINUTE = 60.0  # maximum expected seconds of a fit
EVALUATIONS = 1.5  # of the objective, per iteration


class Cancelled(Exception):
    """The request was replaced by a newer one."""


def parameters(ask: FitRequest) -> dict[str, Any]:
    """Return the arguments of MESSI for a request; other methods use those that they have."""
    if ask.similarity not in SHOWN_SIMILARITIES:
        raise RequestError(f"similarity must be one of {', '.join(SHOWN_SIMILARITIES)}")
    if ask.objective not in ("choices", "counts"):
        raise RequestError("objective must be choices or counts")
    return {
        "similarity": SHOWN_SIMILARITIES[ask.similarity][1](ask.sigma),
        "lambda0": ask.lambda0,
        "theta_max": ask.theta_max,
        "objective": ask.objective,
        "unlabelled_weight": ask.weight,
    }


def add_drawn_trajectories(mdp: MDP, picked: RequestedSets, drawn: tuple[tuple[int, ...], ...]) -> RequestedSets:
    """Add hand-drawn expert trajectories; if the others have actions, with the most likely action of each step."""
    if not drawn:
        if len(picked.expert) == 0:
            raise RequestError("there is no expert trajectory: draw one, or use some of the scene")
        return picked
    states = [list(row) for row in drawn]
    actions = [[_likeliest(mdp, s, to) for s, to in pairwise(row)] for row in states]
    goals = None if picked.expert.goals is None else [row[-1] for row in states]
    known = picked.expert.actions is not None
    more = Trajectories.from_lists(states, actions if known else None, goals)
    kinds = [0] * len(picked.expert) + [1] * len(more) + picked.kinds[len(picked.expert) :]
    return picked._replace(expert=picked.expert + more, kinds=kinds)


def _likeliest(mdp: MDP, s: int, to: int) -> int:
    """Return the action that most likely leads from one state to another."""
    if max(s, to) >= mdp.n_states:
        raise RequestError(f"a drawn trajectory has state {max(s, to)}: must be <= {mdp.n_states - 1}")
    chance = mdp.transitions[s * mdp.n_actions : (s + 1) * mdp.n_actions, [to]].toarray().ravel()
    if chance.max(initial=0.0) <= 0.0:
        raise RequestError(
            f"a drawn trajectory goes from {mdp.state_label(s)} to {mdp.state_label(to)}: there is no such transition"
        )
    return int(chance.argmax())


def seconds_per_solve(mdp: MDP) -> float:
    """Measure the seconds of one solution of a problem, from values to policy; the result is cached."""

    def measured() -> float:
        took = 0.0
        goal = 0 if mdp.must_end and not mdp.terminal.any() else None
        reward = np.full_like(
            mdp.reward(np.zeros(mdp.n_features)), -20.0
        )  # finite values even for endless trajectories
        for _ in range(2):  # the first run may compile
            begin = process_time()
            soft_policy(mdp, reward, goal=goal)
            took = process_time() - begin
        return took

    return mdp.memo("seconds of a solution", measured)


def check_fit_time(mdp: MDP, ask: FitRequest, picked: RequestedSets) -> None:
    """Refuse a fit that would take minutes."""
    most = (ROUGH if ask.rough else EXACT)["max_iter"]
    goals = 1 if picked.expert.goals is None else len(np.unique(picked.expert.goals))
    seconds = EVALUATIONS * seconds_per_solve(mdp) * goals * most * (2 if ask.second else 1)
    if seconds > MINUTE:
        raise RequestError(
            f"a fit could take {seconds / 60:.0f} minutes ({mdp.n_states:,} states, up to {most} iterations): use "
            "messirl fit for it, or choose one method and fewer goals"
        )


def fit(
    name: str,
    ask: FitRequest,
    scene: LabScene,
    picked: RequestedSets,
    warm: Floats | None,
    cancelled: Callable[[], bool],
) -> tuple[Any, list[str]]:
    """Fit an estimator; return it and its warnings. warm : θ of the previous fit, for a warm start."""
    if name not in OFFERED:
        raise RequestError(f"method must be one of {', '.join(OFFERED)}")

    def watch(_: dict[str, Any]) -> bool:
        if cancelled():
            raise Cancelled
        return False

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        how: dict[str, Any] = dict(EXACT)
        if ask.rough:
            how = ROUGH | {"theta_init": None if warm is None else np.clip(warm, -ask.theta_max, ask.theta_max)}
        try:
            model, sets = task(name, ask, scene.mdp, picked)
            model.set_params(callback=watch, **how)
            model.fit(scene.mdp, *sets)
        except (ValueError, MemoryError) as error:
            raise RequestError(str(error)) from error
    model.set_params(callback=None)
    return model, list(dict.fromkeys(str(one.message) for one in said))


def task(name: str, ask: FitRequest, mdp: MDP, picked: RequestedSets) -> tuple[Any, tuple[Any, ...]]:
    """Return the unfitted estimator and its training trajectories."""
    model, sets = baseline(name, MESSI(**parameters(ask)), mdp, picked.expert, picked.unlabelled)
    if name == "LightPooling" and len(sets) > 1:
        model.set_params(unlabelled_weight=ask.weight or DEFAULT_POOLING_WEIGHT)
    if name == "EM" and len(sets) > 1:
        model.set_params(steps_per_round=ROUNDS)
    return model, sets
