"""What a model says of choices that were made, and the source whose visits give its gradient.

With n(s,a) the weighted number of choices, L = Σ n(s,a) log π(a|s), and log π = Q − V,

    L = Σ n(s,a) (r(s,a) + log π₀(a|s)) − Σ_s m(s) V(s),      m(s') = n(s') − γ Σ_{s,a} n(s,a) p(s'|s,a)

(log π₀ where there is a base policy). The signed source m takes the place that the start has in the likelihood of
counts: ∇ Σ m V are the expected counts from m. The trajectory's own successors are replaced by the expected ones.
Where actions were not recorded, L = Σ n(s,s') log Σ_a π(a|s) p(s'|s,a), and n(s,a) shares n(s,s') out by how likely
each action makes the move; it then depends on θ.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.planning.goals import GoalsSolution
from messirl.planning.solution import Solution
from messirl.problem.choices import Choices
from messirl.problem.mdp import MDP

ROUNDING = 1e-13  # of a source, relative to the largest number of choices: what cancels is zero


class Chosen:
    """Choices, weighted: totals (K,) says how often each kind was made."""

    def __init__(self, mdp: MDP, choices: Choices, totals: Floats) -> None:
        weighed = totals > 0  # where what weighs nothing was chosen, there need be no finite value
        if not weighed.all():
            choices, totals = choices.only(weighed), totals[weighed]
        self.mdp, self.choices, self.totals = mdp, choices, totals
        self._later = 0 if mdp.horizon is None else 1  # steps on, the next state has other values

    @cached_property
    def _moves(self) -> sp.csr_array:
        """p(·|s,a) of every candidate, (J, S)."""
        return self.mdp.transitions[self.choices.row]

    @cached_property
    def _ahead(self) -> tuple[Ints, Ints]:
        """The candidate of every stored probability of `_moves`, and the place group·S + s' that it leads to."""
        of = np.repeat(np.arange(self.choices.row.size), np.diff(self._moves.indptr))
        group = self.choices.group[self.choices.of[of]]
        return of, (group + self._later) * self.mdp.n_states + self._moves.indices

    @property
    def _here(self) -> Ints:
        """The place group·S + s of every candidate."""
        return (self.choices.group * self.mdp.n_states + self.choices.state)[self.choices.of]

    def source(self, often: Floats) -> Any:
        """m of candidates chosen so often, (J,): (S,), (H, S) with a horizon, sparse (G, S) with goals."""
        n, (of, ahead) = self.mdp.n_states, self._ahead
        places = np.concatenate([self._here, ahead])
        mass = np.concatenate([often, -self.mdp.discount * self._moves.data * often[of]])
        goals = self.choices.goals
        if goals is not None:
            m = sp.csr_array(sp.coo_array((mass, (places // n, places % n)), shape=(goals.size, n)))
            m.sum_duplicates()
            m.data[np.abs(m.data) <= ROUNDING * often.max(initial=0.0)] = 0.0
            m.eliminate_zeros()
            return m
        groups = 1 if self.mdp.horizon is None else self.mdp.horizon
        m = np.bincount(places, mass, groups * n)
        m[np.abs(m) <= ROUNDING * often.max(initial=0.0)] = 0.0
        return m if self.mdp.horizon is None else m.reshape(groups, n)

    def collected(self, often: Floats) -> Floats:
        """Σ n(s,a) f(s,a), (d,)."""
        mdp = self.mdp
        rows = self.choices.row if mdp.state_action else self.choices.row // mdp.n_actions
        return mdp.counts(np.bincount(rows, often, mdp.feature_rows.shape[0]).astype(np.float64))

    def constant(self, often: Floats) -> float:
        """The part of L that θ does not enter: Σ n(s,a) (log π₀(a|s) + log p(s'|s,a))."""
        base = self.mdp.log_reference
        logs = self.choices.log_chance if base is None else self.choices.log_chance + base.ravel()[self.choices.row]
        return float(often @ logs)

    def shared_out(self, reward: Floats, solution: Solution | GoalsSolution) -> tuple[float, Floats]:
        """L, and n (J,) of every candidate, shared out by how likely the solution at this reward makes it."""
        logs, share = self.of_kinds(reward, solution)
        return float(self.totals @ logs), self.totals[self.choices.of] * share

    def of_kinds(self, reward: Floats, solution: Solution | GoalsSolution) -> tuple[Floats, Floats]:
        """The log-probability of each kind, (K,), and of its candidates, how likely each was the one, (J,)."""
        logs, of = self.log_policy(reward, solution) + self.choices.log_chance, self.choices.of
        first = np.flatnonzero(np.diff(of, prepend=-1))
        top = np.maximum.reduceat(logs, first)
        share = np.exp(logs - top[of])
        sums = np.add.reduceat(share, first)
        return top + np.log(sums), share / sums[of]

    def log_policy(self, reward: Floats, solution: Solution | GoalsSolution) -> Floats:
        """log π = Q − V of every candidate, (J,)."""
        mdp, row, (of, ahead), here = self.mdp, self.choices.row, self._ahead, self._here
        q = np.array(reward.ravel()[row] if reward.ndim == 2 else reward[row // mdp.n_actions])
        if mdp.log_reference is not None:
            q += mdp.log_reference.ravel()[row]
        for some, begin, values in self._values(solution):
            entries = slice(*np.searchsorted(of, (some.start, some.stop)))
            expected = self._moves.data[entries] * values[ahead[entries] - begin]
            q[some] += mdp.discount * np.bincount(of[entries] - some.start, expected, some.stop - some.start)
            q[some] -= values[here[some] - begin]
        return q

    def _values(self, solution: Solution | GoalsSolution) -> Iterator[tuple[slice, int, Floats]]:
        """Goal by goal, or all at once: which candidates, and the values they see, the first that of place `begin`."""
        if isinstance(solution, Solution):
            yield slice(0, self.choices.row.size), 0, solution.values.ravel()
            return
        n, here = self.mdp.n_states, self._here
        places = np.concatenate([here, self._ahead[1]])
        shape = (solution.model.goals.size, n)
        needed = sp.csr_array(sp.coo_array((np.ones(places.size), (places // n, places % n)), shape=shape))
        for number, (_, values) in enumerate(solution.values(needed)):
            yield slice(*np.searchsorted(here, (number * n, (number + 1) * n)).tolist()), number * n, values
