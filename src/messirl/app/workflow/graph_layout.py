"""Layout in the plane of a network without coordinates: states joined by a transition are placed near each other.

Stress majorisation (Gansner, Koren and North, "Graph drawing by stress majorization", 2004): the distance of two states
in the plane should equal the number of transitions between them, each pair weighted by its inverse square. It starts at
classical scaling of the same distances, so the layout is deterministic. Directions in such a picture have no meaning.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import shortest_path

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP

MOST = 300  # states that are laid out
ROUNDS = 200
APART = 2.0  # assumed number of transitions between parts of a network that are not connected


def network_places(mdp: MDP, states: Ints | None = None) -> Floats | None:
    """Return coordinates (S, 2) of the states, NaN for those not laid out; None unless there are 2 to 300.

    states : states to lay out, with the transitions between them; None: all
    """
    chosen = np.arange(mdp.n_states) if states is None else np.unique(states)
    if not 2 <= chosen.size <= MOST:
        return None
    moves = mdp.transitions.tocoo()
    among = sp.coo_array((np.ones(moves.nnz), (moves.row // mdp.n_actions, moves.col)), shape=(mdp.n_states,) * 2)
    hops = shortest_path(sp.csr_array(among)[chosen][:, chosen].toarray(), directed=False, unweighted=True)
    known = np.isfinite(hops)
    hops = np.where(known, hops, hops[known].max() + APART)
    out = np.full((mdp.n_states, 2), np.nan)
    out[chosen] = _majorised(hops)
    return out


def _majorised(hops: Floats) -> Floats:
    """Return positions (n, 2) whose distances approximate the hops (n, n)."""
    n = len(hops)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ hops**2 @ centre)
    at = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    at = at * np.where(at[np.abs(at).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)  # fix the sign of the eigenvectors
    # States at the same position would stay together: add a spiral, far smaller than a transition.
    turn = 2.4 * np.arange(n)
    at = at + 0.05 * np.sqrt((np.arange(n) + 1) / n)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    weight = 1.0 / np.where(hops > 0, hops, np.inf) ** 2
    solve = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)
    for _ in range(ROUNDS):
        far = np.linalg.norm(at[:, None] - at[None], axis=2)
        pull = -weight * hops / np.where(far > 0, far, np.inf)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        at = solve @ (pull @ at)
    return np.asarray(at - at.mean(axis=0))
