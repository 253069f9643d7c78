"""Python code that reproduces the result of the page."""

from __future__ import annotations

from typing import Any

from messirl.app.lab.catalog import LabScene, RequestedSets
from messirl.app.lab.live_fit import ROUNDS, parameters
from messirl.app.lab.requests import FitRequest
from messirl.estimators.registry import DEFAULT_POOLING_WEIGHT
from messirl.paper.domains.pit import TurnSimilarity


def make_snippet(ask: FitRequest, scene: LabScene, picked: RequestedSets, name: str) -> str:
    """Return Python code that ends with a fitted `model`. picked : includes hand-drawn trajectories."""
    own = parameters(ask)
    similarity = own["similarity"]
    home = "paper.domains.pit" if isinstance(similarity, TurnSimilarity) else "similarity"
    made = scene.lines(ask)
    wanted = ["MESSI", *(["Trajectories"] if ask.drawn else [])]
    out = [f"from messirl import {', '.join(wanted)}"]
    out += [line for line in made if line.startswith("from ")]
    alone = name == "MESSI" and picked.unlabelled is not None  # no strength is derived from another method
    if not alone:
        out.append("from messirl.estimators.registry import baseline")
    out.append(f"from messirl.{home} import {type(similarity).__name__}")
    out += ["", *(line for line in made if line and not line.startswith("from "))]
    if ask.drawn:
        out += _drawn(ask, picked)
    keep = {key: value for key, value in own.items() if key != "similarity"}
    given = ", ".join([repr(similarity), *(f"{key}={value!r}" for key, value in keep.items())])
    out += ["", f"model = MESSI({given})"]
    if alone:
        out.append("model.fit(mdp, expert, others)")
    else:
        out.append(f'model, sets = baseline("{name}", model, mdp, expert, others)  # with the strength of this MESSI')
        if name == "LightPooling" and picked.unlabelled is not None:
            out.append(f"model.set_params(unlabelled_weight={ask.weight or DEFAULT_POOLING_WEIGHT!r})")
        if name == "EM" and picked.unlabelled is not None:
            out.append(f"model.set_params(steps_per_round={ROUNDS})")
        out.append("model.fit(mdp, *sets)")
    out.append("model.theta_, model.reward_, model.policy_, model.score(expert)")
    return "\n".join(out) + "\n"


def _drawn(ask: FitRequest, picked: RequestedSets) -> list[str]:
    n = len(ask.drawn)
    last: list[Any] = [picked.expert[i] for i in range(len(picked.expert) - n, len(picked.expert))]
    states = [[int(s) for s in one.states] for one in last]
    actions = None if picked.expert.actions is None else [[int(a) for a in one.actions] for one in last]
    goals = None if picked.expert.goals is None else [row[-1] for row in states]
    return [f"drawn = Trajectories.from_lists({states}, {actions}, {goals})", "expert = expert + drawn"]
