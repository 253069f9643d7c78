"""An MDP whose dynamics are counted from moves, and what the data says of it.

    p(s'|s,a) = (n(s,a,s') + α/K) / (n(s,a) + α)     s' among the K next states that are possible

with n the counts and α the prior's weight; α = 0 is maximum likelihood. Possible are the moves of a known graph or,
without one, the next states seen from s under any action. Rows are Dirichlet a posteriori, with parameters n + α/K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from messirl._checks import number, whole
from messirl._types import Flags, Ints
from messirl.dynamics.moves import count_moves, fail, tally
from messirl.planning.sampling import random_source
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories

UNSEEN = ("terminal", "self", "error")
SHOWN = 10
SMALLEST = 1e-15  # share below which no drawn probability falls, so that every draw has the same support


@dataclass(frozen=True)
class Evidence:
    """What the moves say of the dynamics and what they leave open. `str` of it is a short text."""

    n_transitions: int
    n_pairs: int  # state-action pairs seen
    actions_inferred: bool  # none were recorded: each move from a state is an action of its own
    never_left: Ints  # states entered but never left, and not terminal
    never_visited: Ints  # states
    without_moves: Ints  # states, not terminal, for which neither data nor graph and prior give a move
    unseen: str  # what these have become
    never_seen: Ints  # (k, 2) state and action, of states that were left or, with a graph, of its moves
    kept: bool  # whether those pairs are allowed, with the prior's mean
    thin: Ints  # (k, 2) pairs seen, but fewer than `least` times
    least: int

    def __str__(self) -> str:
        lines = [f"{self.n_transitions} transitions of {self.n_pairs} state-action pairs"]
        if self.actions_inferred:
            lines.append("no actions recorded: each move from a state is an action, numbered by next state")
        fate = {"terminal": "made terminal", "self": "action 0 stays there"}.get(self.unseen, "dead ends")
        pairs = "allowed, with the prior's mean" if self.kept else "not allowed"
        for what, items in (
            ("states entered but never left", self.never_left),
            ("states never visited", self.never_visited),
            (f"states without any move ({fate})", self.without_moves),
            (f"state-action pairs never seen ({pairs})", self.never_seen),
            (f"state-action pairs seen fewer than {self.least} times", self.thin),
        ):
            if len(items):
                shown = ", ".join(str(tuple(x)) if isinstance(x, list) else str(x) for x in items[:SHOWN].tolist())
                more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
                lines.append(f"{len(items)} {what}: {shown}{more}")
        return "\n".join(lines)


@dataclass(frozen=True)
class EstimatedMDP:
    """An MDP with the counts behind it.

    mdp : the posterior mean, or with prior 0 the maximum likelihood
    counts : sparse (S·A, S), n(s,a,s')
    prior : α, its weight in each row
    report : what was seen and what was not
    posterior : sparse (S·A, S), the Dirichlet parameters of every allowed row
    """

    mdp: MDP
    counts: sp.csr_array
    prior: float
    report: Evidence
    posterior: sp.csr_array

    def draws(self, n: int, random_state: Any = None) -> list[MDP]:
        """n MDPs with dynamics from the Dirichlet posterior, all with the support of `mdp`."""
        random = random_source(random_state)
        return [self.mdp.replace(transitions=_dirichlet(self.posterior, random)) for _ in range(whole("n", n))]


def estimate_mdp(
    trajectories: Trajectories,
    features: Any,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    prior: float = 0.0,
    graph: Any = None,
    deterministic: bool = True,
    unseen: str = "terminal",
    thin: int = 5,
    discount: float,
    horizon: int | None = None,
    terminal: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    state_names: Sequence[str] | None = None,
    action_names: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
) -> EstimatedMDP:
    """The MDP that the moves of `trajectories` speak of.

    features : as of an MDP; they have a row for every state, unless n_states= says how many there are
    prior : α ≥ 0, pseudo-counts that each row spreads evenly over its possible next states
    graph : the possible moves, (S, S), or (S·A, S) with row s·A + a, sparse or dense; a move outside is an error.
        With prior > 0, pairs of it never seen get the prior's mean; any other pair never seen is not allowed
    deterministic : read where no actions are recorded.  True: each move is an action of its own, action k leading to
        the k-th next state in order, of those seen or in the graph.  False: an error, since nothing can be told
    unseen : what becomes of a state without any move that is not terminal: "terminal" (nothing is known of what
        follows, so a trajectory ends there), "self" (action 0 stays there), or "error" where it can be entered
    thin : pairs seen fewer times are listed in the report
    discount, horizon, terminal, start, …_names : as of an MDP
    """
    if not isinstance(trajectories, Trajectories):
        raise TypeError(
            f"trajectories must be Trajectories, not {type(trajectories).__name__}: use Trajectories.from_lists(...)"
        )
    if unseen not in UNSEEN:
        raise ValueError(f"unseen={unseen!r}: choose 'terminal', 'self' or 'error'")
    alpha, least = number("prior", prior, least=0.0), whole("thin", thin)
    moves = count_moves(trajectories, features, n_states, n_actions, graph, deterministic)
    counts, possible, shape = moves.counts, moves.possible, (moves.n_states, moves.n_actions)
    ends = _ends(trajectories, terminal, moves.n_states)
    if possible is not None:
        possible = sp.csr_array(sp.diags_array(np.repeat(~ends, moves.n_actions).astype(np.float64)) @ possible)
        possible.eliminate_zeros()

    posterior = counts if alpha == 0.0 else _smoothed(counts, possible, alpha, moves.n_actions)
    stuck = ~ends & ~np.diff(posterior.indptr).reshape(shape).any(axis=1)
    visited = np.isin(np.arange(moves.n_states), trajectories.states)
    if unseen == "error":
        caught = stuck & (visited | np.isin(np.arange(moves.n_states), posterior.indices))
        if caught.any():
            raise ValueError(
                f"state {int(np.argmax(caught))} is never left and is not terminal: mark it terminal, give more "
                "trajectories, or choose unseen='terminal' or 'self'"
            )
    elif unseen == "self":
        alone = np.flatnonzero(stuck)
        posterior = sp.csr_array(posterior + tally(alone * moves.n_actions, alone, posterior.shape))
    mdp = MDP(
        _normalised(posterior),
        features,
        start=start,
        discount=discount,
        horizon=horizon,
        terminal=ends | stuck if unseen == "terminal" else ends,
        state_names=state_names,
        action_names=action_names,
        feature_names=feature_names,
    )
    times = np.asarray(counts.sum(axis=1)).reshape(shape)
    left = times.sum(axis=1) > 0
    candidates = left[:, None] if possible is None else np.diff(possible.indptr).reshape(shape) > 0
    report = Evidence(
        n_transitions=int(times.sum()),
        n_pairs=int((times > 0).sum()),
        actions_inferred=trajectories.actions is None,
        never_left=np.flatnonzero(visited & ~left & ~ends),
        never_visited=np.flatnonzero(~visited),
        without_moves=np.flatnonzero(stuck),
        unseen=unseen,
        never_seen=np.argwhere(candidates & (times == 0)),
        kept=alpha > 0.0 and possible is not None,
        thin=np.argwhere((times > 0) & (times < least)),
        least=least,
    )
    return EstimatedMDP(mdp, counts, alpha, report, posterior)


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
    """n(s,a,s') + α/K."""
    if possible is None:
        of_state = sp.kron(sp.eye_array(counts.shape[1]), np.ones((n_actions, 1)), format="csr")  # row s·A + a is of s
        seen = np.diff(counts.indptr) > 0
        possible = sp.csr_array(sp.diags_array(seen.astype(np.float64)) @ (of_state @ (of_state.T @ counts)))
        possible.eliminate_zeros()
    width = np.diff(possible.indptr)
    spread_out = possible.copy()
    spread_out.data = alpha / np.repeat(width, width)
    return sp.csr_array(counts + spread_out)


def _normalised(matrix: sp.csr_array) -> sp.csr_array:
    """Rows divided by their sums: a row of one entry is exactly 1."""
    out = matrix.copy()
    out.data = matrix.data / np.repeat(np.asarray(matrix.sum(axis=1)).ravel(), np.diff(matrix.indptr))
    return out


def _dirichlet(parameters: sp.csr_array, random: np.random.RandomState) -> sp.csr_array:
    """One draw of every row: gammas, normalised.

    In logs, by g(a) = g(a + 1) u^{1/a}: for small a most draws are below the smallest float.
    """
    a = parameters.data
    logs = np.log(random.standard_gamma(a + 1.0)) + np.log1p(-random.random_sample(a.size)) / a
    width = np.diff(parameters.indptr)
    highest = np.maximum.reduceat(logs, parameters.indptr[:-1][width > 0])
    drawn = parameters.copy()
    drawn.data = np.maximum(np.exp(logs - np.repeat(highest, width[width > 0])), SMALLEST)
    return _normalised(drawn)
