"""Estimation of an MDP's dynamics from transition counts.

    p(s'|s,a) = (n(s,a,s') + α/K) / (n(s,a) + α)     s' among the K next states that are possible

with n the counts and α the prior's weight; α = 0 is maximum likelihood. The possible next states are those
of a known graph or, without one, all that were seen from s under any action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._checks import check_number
from messirl._docstrings import inherit_documentation
from messirl._types import Flags
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.transition_counts import count_transitions, fail, tally

UNSEEN = ("terminal", "self", "error")


@dataclass(frozen=True)
class CountedMDP:
    """An MDP with the transition counts it was estimated from.

    Attributes
    ----------
    mdp : MDP
        The MDP with the estimated dynamics.
    counts : scipy.sparse (S·A, S)
        n(s,a,s'), how often each transition was made; row s·A + a.
    possible : scipy.sparse (S·A, S) or None
        1 for every transition of the graph; None without a graph.
    posterior : scipy.sparse (S·A, S)
        n(s,a,s') + α/K in every allowed row: the parameters of its Dirichlet distribution.
    prior : float
        α, the weight of the prior in each row.
    ends : array of bool (S,)
        The states that were declared terminal.
    stuck : array of bool (S,)
        The states, not declared terminal, without any transition in the data or the prior.
    """

    mdp: MDP
    counts: sp.csr_array
    possible: sp.csr_array | None
    posterior: sp.csr_array
    prior: float
    ends: Flags
    stuck: Flags

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        inherit_documentation(cls)


def counted_mdp(
    trajectories: Trajectories,
    features: Any,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    prior: float = 0.0,
    graph: Any = None,
    deterministic: bool = True,
    unseen: str = "terminal",
    terminal: npt.ArrayLike | None = None,
    discount: float,
    **others: Any,
) -> CountedMDP:
    """Return the MDP and its counts; arguments as for `dynamics.estimate_mdp`, which also reports gaps in the data."""
    if not isinstance(trajectories, Trajectories):
        raise TypeError(
            f"trajectories must be Trajectories, not {type(trajectories).__name__}: use Trajectories.from_lists(...)"
        )
    if "allowed" in others:
        raise TypeError("allowed is not an option here: the transitions determine which actions may be taken")
    if unseen not in UNSEEN:
        raise ValueError(f"unseen={unseen!r}: choose 'terminal', 'self' or 'error'")
    alpha = check_number("prior", prior, least=0.0)
    moves = count_transitions(trajectories, features, n_states, n_actions, graph, deterministic)
    counts, possible, shape = moves.counts, moves.possible, (moves.n_states, moves.n_actions)
    ends = _ends(trajectories, terminal, moves.n_states)
    if possible is not None:
        possible = sp.csr_array(sp.diags_array(np.repeat(~ends, moves.n_actions).astype(np.float64)) @ possible)
        possible.eliminate_zeros()
    posterior = counts if alpha == 0.0 else _smoothed(counts, possible, alpha, moves.n_actions)
    stuck = ~ends & ~np.diff(posterior.indptr).reshape(shape).any(axis=1)
    if unseen == "error":
        entered = np.union1d(trajectories.states, posterior.indices)
        caught = entered[stuck[entered]]
        if caught.size:
            raise ValueError(
                f"state {caught[0]} is never left and is not terminal: mark it terminal, give more "
                "trajectories, or choose unseen='terminal' or 'self'"
            )
    elif unseen == "self":
        alone = np.flatnonzero(stuck)
        posterior = sp.csr_array(posterior + tally(alone * moves.n_actions, alone, posterior.shape))
    over = ends | stuck if unseen == "terminal" else ends
    mdp = MDP(normalised(posterior), features, discount=discount, terminal=over, **others)
    return CountedMDP(mdp, counts, possible, posterior, alpha, ends, stuck)


def _ends(trajectories: Trajectories, terminal: npt.ArrayLike | None, n_states: int) -> Flags:
    ends = np.zeros(n_states, dtype=bool) if terminal is None else np.asarray(terminal)
    if ends.dtype != np.bool_ or ends.shape != (n_states,):
        raise ValueError(f"terminal must be an array of bool of shape ({n_states},), not {ends.dtype} {ends.shape}")
    beyond = trajectories.leaves & ends[trajectories.states]
    if beyond.any():
        at = int(np.argmax(beyond))
        fail(trajectories, at, f"it goes on after terminal state {trajectories.states[at]}: cut it there")
    return ends


def _smoothed(counts: sp.csr_array, possible: sp.csr_array | None, alpha: float, n_actions: int) -> sp.csr_array:
    """Return n(s,a,s') + α/K."""
    if possible is None:
        of_state = sp.kron(sp.eye_array(counts.shape[1]), np.ones((n_actions, 1)), format="csr")  # s·A + a → s
        seen = np.diff(counts.indptr) > 0
        possible = sp.csr_array(sp.diags_array(seen.astype(np.float64)) @ (of_state @ (of_state.T @ counts)))
        possible.eliminate_zeros()
    width = np.diff(possible.indptr)
    spread_out = possible.copy()
    spread_out.data = alpha / np.repeat(width, width)
    return sp.csr_array(counts + spread_out)


def normalised(matrix: sp.csr_array) -> sp.csr_array:
    """Divide the rows by their sums, so that a single entry becomes exactly 1."""
    out = matrix.copy()
    out.data = matrix.data / np.repeat(np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr))
    return out
