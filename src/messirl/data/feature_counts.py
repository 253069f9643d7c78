"""Discounted feature counts f_ζ = Σ_t γ^t f(s_t) (Eq. 1).

With state features every visited state counts, the last included; with state-action features every step counts.
In an endless discounted problem, a trajectory that is cut before a terminal state is treated as endless: its counts are
divided by 1 − γ^T, with T the number of counted terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.data.transition_index import possible_transitions, transition_keys
from messirl.data.validation import check_finished, check_trajectories

LONG_TAIL = 0.1  # γ^T above which a cut trajectory says little about the endless one


def feature_counts(mdp: MDP, trajectories: TrajectoriesLike) -> Floats:
    """Return the feature counts of every trajectory, (n, d)."""
    trajectories = as_trajectories(trajectories)
    check_trajectories(mdp, trajectories)
    return checked_feature_counts(mdp, trajectories)


def counts_of_sets(mdp: MDP, *sets: Trajectories | None) -> Floats:
    """Return the feature counts of several sets, stacked, (n, d); each set uses its own actions."""
    return np.concatenate([feature_counts(mdp, some) for some in sets if some is not None])


def checked_feature_counts(mdp: MDP, trajectories: Trajectories, whose: str = "") -> Floats:
    """Return the feature counts, (n, d), of trajectories that have been checked; `whose` completes messages."""
    counts, tail = counts_and_tail(mdp, trajectories, whose)
    if tail is not None:
        tail.warn(whose, stacklevel=4)
    return counts


class TruncationWarning(UserWarning):
    """Warning that a trajectory is treated as endless although γ^T, its `weight`, is still large where it is cut."""

    def __init__(self, text: str, weight: float) -> None:
        super().__init__(text, weight)
        self.text, self.weight = text, weight

    def __str__(self) -> str:
        return self.text


@contextmanager
def merge_truncation_warnings() -> Iterator[None]:
    """Replace all CutWarnings raised inside by one at the end, for the trajectory with the largest γ^T.

    For use as a decorator of functions that fit many times to the same trajectories.
    """
    heard: list[TruncationWarning] = []
    before = warnings.showwarning

    def shown(message: Warning | str, *rest: Any, **named: Any) -> None:
        if isinstance(message, TruncationWarning):
            heard.append(message)
        else:
            before(message, *rest, **named)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TruncationWarning)
        warnings.showwarning = shown
        yield
    if heard:
        warnings.warn(max(heard, key=lambda one: one.weight), stacklevel=4)  # the first of equals, which names the set


@dataclass(frozen=True)
class Tail:
    """A trajectory that is cut where γ^T is still large: its name, the number of terms seen, and γ^T."""

    name: str
    terms: int
    weight: float

    def warn(self, whose: str, stacklevel: int) -> None:
        """Issue a CutWarning."""
        seen = f"{self.terms} term{'' if self.terms == 1 else 's'}"
        text = (
            f"trajectory {self.name}{whose} ends after {seen}, where discount**T is still {self.weight:.2f}, and is "
            "treated as endless: record longer ones, set a horizon, or mark its last state terminal"
        )
        warnings.warn(TruncationWarning(text, self.weight), stacklevel=stacklevel)


def counts_and_tail(
    mdp: MDP, trajectories: Trajectories, whose: str = "", called: Callable[[int], str] = str
) -> tuple[Floats, Tail | None]:
    """Return the feature counts, (n, d), and the trajectory with the largest γ^T if that is large.

    called : returns the name of a trajectory in messages, given its number
    """
    check_finished(mdp, trajectories, whose, called)
    n, gamma = len(trajectories), mdp.discount
    if mdp.state_action:
        left = trajectories.leaves
        columns = trajectories.states[left] * mdp.n_actions + step_actions(mdp, trajectories, whose, called)
        step, offsets = trajectories.step[left], trajectories.offsets - np.arange(n + 1)
    else:
        columns, step, offsets = trajectories.states, trajectories.step, trajectories.offsets
    weights = np.ones(columns.size) if gamma == 1.0 else gamma**step
    visits = sp.csr_array((weights, columns, offsets), shape=(n, mdp.feature_rows.shape[0]))
    product = visits @ mdp.feature_rows
    counts = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
    share, tail = _seen_share(mdp, trajectories, np.diff(offsets), whose, called)
    return counts / share[:, None], tail


def _seen_share(
    mdp: MDP, trajectories: Trajectories, terms: Ints, whose: str, called: Callable[[int], str]
) -> tuple[Floats, Tail | None]:
    """Return 1 − γ^T for trajectories treated as endless, else 1; and the largest γ^T as a `Tail` if it is large."""
    share = np.ones(len(trajectories))
    if not mdp.endless or trajectories.goals is not None:
        return share, None
    cut = ~mdp.terminal[trajectories.last]
    if np.any(cut & (terms == 0)):
        i = int(np.argmax(cut & (terms == 0)))
        raise ValueError(f"trajectory {called(i)}{whose} has no step, so no state-action feature to count: drop it")
    tail = mdp.discount ** terms[cut].astype(np.float64)
    share[cut] = 1.0 - tail
    if not tail.size or tail.max() <= LONG_TAIL:
        return share, None
    i = int(np.flatnonzero(cut)[np.argmax(tail)])
    return share, Tail(called(i), int(terms[i]), float(tail.max()))


def step_actions(mdp: MDP, trajectories: Trajectories, whose: str = "", called: Callable[[int], str] = str) -> Ints:
    """Return the action of every step, recorded or implied by the transition.

    Raise a ValueError if several actions make the same transition and their features differ.
    """
    if trajectories.actions is not None:
        return trajectories.actions
    moves, key = possible_transitions(mdp), transition_keys(mdp, trajectories)
    at = np.searchsorted(moves.keys, key)
    if np.any(moves.ambiguous[at]):
        i, t = trajectories.locate(int(np.flatnonzero(trajectories.leaves)[np.argmax(moves.ambiguous[at])]))
        raise ValueError(
            f"trajectory {called(i)}{whose}, step {t}: several actions with different features lead from state "
            f"{trajectories.states[trajectories.offsets[i] + t]} to the next one: give the trajectories' actions"
        )
    return moves.action[at]
