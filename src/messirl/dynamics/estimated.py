"""Estimation of dynamics from transition counts, with a report on the evidence, and draws from the posterior.

The posterior of each row of the dynamics is a Dirichlet distribution with the parameters n(s,a,s') + α/K, as in
`messirl.data.counted_mdp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._checks import check_integer
from messirl._text import count_noun
from messirl._types import Ints
from messirl.data.counted_mdp import CountedMDP, counted_mdp, normalised
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.planning.sampling import random_source

SHOWN = 10
SMALLEST = 1e-15  # smallest drawn probability, relative to the largest of its row: every draw has the same support


@dataclass(frozen=True)
class Evidence:
    """Report on the recorded transitions and on gaps in them; `str` gives a short text.

    Attributes
    ----------
    n_transitions, n_pairs : int
        Number of transitions, and of the different pairs of a state and an action among them.
    actions_inferred : bool
        Whether no actions were recorded, so that each transition from a state is an action of its own.
    never_left : array of int
        States that were entered but never left, and are not terminal.
    never_visited : array of int
        States that occur in no trajectory.
    without_moves : array of int
        States, not terminal, for which neither the data nor the graph with its prior gives a transition.
    unseen : {"terminal", "self", "error"}
        The treatment of states without transitions, as given to `estimate_mdp`.
    never_seen : array of int (k, 2)
        Pairs of a state and an action never seen: in states that were left or, with a graph, among its transitions.
    kept : bool
        Whether those pairs are allowed nevertheless, with the mean of the prior.
    thin : array of int (k, 2)
        Pairs that were seen, but fewer than `least` times.
    least : int
        The number of times below which a pair counts as thin.
    """

    n_transitions: int
    n_pairs: int
    actions_inferred: bool
    never_left: Ints
    never_visited: Ints
    without_moves: Ints
    unseen: str
    never_seen: Ints
    kept: bool
    thin: Ints
    least: int

    def __str__(self) -> str:
        lines = [f"{count_noun(self.n_transitions, 'transition')} of {count_noun(self.n_pairs, 'state-action pair')}"]
        if self.actions_inferred:
            lines.append("no actions recorded: each transition from a state is an action, numbered by next state")
        fate = {"terminal": "made terminal", "self": "action 0 stays there"}.get(self.unseen, "dead ends")
        pairs = "allowed, with the prior's mean" if self.kept else "not allowed"
        for noun, what, items in (
            ("state", "entered but never left", self.never_left),
            ("state", "never visited", self.never_visited),
            ("state", f"without any transition ({fate})", self.without_moves),
            ("state-action pair", f"never seen ({pairs})", self.never_seen),
            ("state-action pair", f"seen fewer than {self.least} times", self.thin),
        ):
            if len(items):
                shown = ", ".join(str(tuple(x)) if isinstance(x, list) else str(x) for x in items[:SHOWN].tolist())
                more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
                lines.append(f"{count_noun(len(items), noun)} {what}: {shown}{more}")
        return "\n".join(lines)


@dataclass(frozen=True)
class EstimatedMDP(CountedMDP):
    """An MDP estimated from transition counts: the posterior mean or, with prior 0, the maximum likelihood.

    Attributes
    ----------
    report : Evidence
        What was recorded, and what is missing.

    Examples
    --------
    From state 0 action 0 led to state 1 three times, and once to state 2.

    >>> from messirl import Trajectories
    >>> from messirl.dynamics import estimate_mdp
    >>> walks = Trajectories.from_lists([[0, 1], [0, 1], [0, 1], [0, 2]], actions=[[0], [0], [0], [0]])
    >>> estimated = estimate_mdp(walks, features=[[0.0], [1.0], [2.0]], discount=0.9)
    >>> estimated.mdp.transitions.toarray()[0]
    array([0.  , 0.75, 0.25])
    >>> estimated.report.n_transitions, estimated.report.never_left
    (4, array([1, 2]))
    """

    report: Evidence

    def draws(self, n: int, random_state: Any = None) -> list[MDP]:
        """Draw n MDPs with dynamics from the Dirichlet posterior, all with the support of `mdp`."""
        random = random_source(random_state)
        return [self.mdp.replace(transitions=_dirichlet(self.posterior, random)) for _ in range(check_integer("n", n))]


def estimate_mdp(trajectories: Trajectories, features: Any, *, thin: int = 5, **options: Any) -> EstimatedMDP:
    """Estimate the dynamics of an MDP from the transitions of `trajectories`, and report gaps in them.

    features : as for an MDP; they have a row for every state, unless n_states= says how many there are
    thin : pairs seen fewer times than this are listed in the report

    Options, by name:
    discount : as for an MDP; it must be given
    n_states, n_actions : how many there are; None: as many as features have rows, and as many as are seen
    prior : α ≥ 0, pseudo-counts that each row spreads evenly over its possible next states; 0 if not given
    graph : the possible transitions, (S, S), or (S·A, S) with row s·A + a, sparse or dense; any other is an error.
        With prior > 0, pairs of it never seen get the prior's mean; any other pair never seen is not allowed
    deterministic : matters where no actions are recorded.  True (the default): each transition is an action of its
        own, action k leading to the k-th next state in order, of those seen or in the graph.  False: an error, since
        the action of a transition cannot be known
    unseen : treatment of a state without any transition that is not terminal: "terminal" (the default: a trajectory
        ends there), "self" (action 0 stays there), or "error" if it can be entered
    horizon, terminal, start, state_names, action_names, feature_names : as for an MDP
    """
    least = check_integer("thin", thin)
    found = counted_mdp(trajectories, features, **options)
    return EstimatedMDP(**vars(found), report=_evidence(found, trajectories, options.get("unseen", "terminal"), least))


def _evidence(found: CountedMDP, trajectories: Trajectories, unseen: str, least: int) -> Evidence:
    shape = (found.mdp.n_states, found.mdp.n_actions)
    visited = np.isin(np.arange(found.mdp.n_states), trajectories.states)
    times = np.asarray(found.counts.sum(axis=1)).reshape(shape)
    left = times.sum(axis=1) > 0
    possible = found.possible
    candidates = left[:, None] if possible is None else np.diff(possible.indptr).reshape(shape) > 0
    return Evidence(
        n_transitions=int(times.sum()),
        n_pairs=int((times > 0).sum()),
        actions_inferred=trajectories.actions is None,
        never_left=np.flatnonzero(visited & ~left & ~found.ends),
        never_visited=np.flatnonzero(~visited),
        without_moves=np.flatnonzero(found.stuck),
        unseen=unseen,
        never_seen=np.argwhere(candidates & (times == 0)),
        kept=found.prior > 0.0 and possible is not None,
        thin=np.argwhere((times > 0) & (times < least)),
        least=least,
    )


def _dirichlet(parameters: sp.csr_array, random: np.random.RandomState) -> sp.csr_array:
    """Draw every row from its Dirichlet distribution: gammas, normalised.

    In logs, by g(a) = g(a + 1) u^{1/a}: for small a most draws are below the smallest float.
    """
    a = parameters.data
    logs = np.log(random.standard_gamma(a + 1.0)) + np.log1p(-random.random_sample(a.size)) / a
    width = np.diff(parameters.indptr)
    highest = np.maximum.reduceat(logs, parameters.indptr[:-1][width > 0])
    drawn = parameters.copy()
    drawn.data = np.maximum(np.exp(logs - np.repeat(highest, width[width > 0])), SMALLEST)
    return normalised(drawn)
