"""Notebook display of MDPs and trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from messirl._repr_html import MANY, card, grid

if TYPE_CHECKING:
    from messirl.data.mdp import MDP
    from messirl.data.trajectories import Trajectories

FEW = 12  # states of a trajectory


def mdp_html(mdp: MDP) -> str:
    """Return an HTML card with sizes, how trajectories end, and the range of every feature."""
    facts = {
        "discount": float(mdp.discount),
        "horizon": "none" if mdp.horizon is None else mdp.horizon,
        "terminal states": f"{int(mdp.terminal.sum()):,}",
        "transitions": f"{mdp.transitions.nnz:,}, {'deterministic' if mdp.deterministic else 'random'}",
        "start": "not given" if mdp.start is None else f"among {int((mdp.start > 0).sum()):,} states",
    }
    some = mdp.feature_rows[:, :MANY]
    some = some.toarray() if sp.issparse(some) else some
    rows = zip(mdp.feature_ids, some.min(axis=0).tolist(), some.max(axis=0).tolist(), strict=False)
    kind = "state-action" if mdp.state_action else "state"
    size = f"{mdp.n_states:,} states, {mdp.n_actions:,} actions, {mdp.n_features:,} {kind} features"
    return card("MDP", size, facts, grid("features", ("feature", "minimum", "maximum"), rows, mdp.n_features))


def trajectories_html(trajectories: Trajectories) -> str:
    """Return an HTML card with the number of trajectories, and the first few."""
    n, states = len(trajectories), trajectories.states
    facts = {"states": f"{states.size:,}", "steps": f"{states.size - n:,}"}
    if trajectories.goals is not None:
        facts["goals"] = f"{np.unique(trajectories.goals).size:,}"
    rows = []
    for i, one in enumerate(trajectories[:MANY]):
        visits = " ".join(map(str, one.states[:FEW].tolist()))
        rows.append((i, one.states.size, visits + (" …" if one.states.size > FEW else "")))
    note = repr(trajectories).removeprefix("Trajectories(").removesuffix(")")
    return card("Trajectories", note, facts, grid("trajectories", ("", "states", "visits"), rows, n))
