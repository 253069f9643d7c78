"""Log-likelihood of observed choices, and the signed source whose visits give its gradient.

With n(s,a) the weighted number of choices, L = Σ n(s,a) log π(a|s), and log π = Q − V,

    L = Σ n(s,a) (r(s,a) + log π₀(a|s)) − Σ_s m(s) V(s),      m(s') = n(s') − γ Σ_{s,a} n(s,a) p(s'|s,a)

(log π₀ where there is a prior policy). The signed source m takes the place of the start distribution in the likelihood
of counts: ∇ Σ m V are the expected counts from m. The trajectory's own successors are replaced by the expected ones.
Where actions were not recorded, L = Σ n(s,s') log Σ_a π(a|s) p(s'|s,a), and n(s,a) is n(s,s') times the posterior
probability of each action; it then depends on θ.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.choices import Choices
from messirl.data.mdp import MDP
from messirl.planning.goal_conditioned import GoalsSolution
from messirl.planning.solution import Solution

DENSE = 10**7  # entries of a source per step above which it is stored sparse
ROUNDING = 1e-13  # entries of a source below this, relative to the largest number of choices, are set to zero


class ChoiceLikelihood:
    """Weighted choices: totals (K,) is how often each kind was made."""

    def __init__(self, mdp: MDP, choices: Choices, totals: Floats) -> None:
        weighed = totals > 0  # choices of weight zero may lie where there is no finite value
        if not weighed.all():
            choices, totals = choices.select_kinds(weighed), totals[weighed]
        self.mdp, self.choices, self.totals = mdp, choices, totals
        self._later = 0 if mdp.horizon is None else 1  # with a horizon the next state has the values of the next step

    @cached_property
    def _first(self) -> Ints:
        """The index of the first candidate of every kind, (K,)."""
        return np.flatnonzero(np.diff(self.choices.of, prepend=-1))

    @cached_property
    def _seen(self) -> tuple[Ints, sp.csr_array]:
        """The places group·S + s whose values enter, (U,), and the matrix (J, U) that gives γ E V(s') − V(s)."""
        n, choices = self.mdp.n_states, self.choices
        moves, group = self.mdp.transitions[choices.row], choices.group[choices.of]
        of = np.repeat(np.arange(group.size), np.diff(moves.indptr))
        ahead, here = (group[of] + self._later) * n + moves.indices, group * n + choices.state[choices.of]
        places, column = np.unique(np.concatenate([ahead, here]), return_inverse=True)
        share = np.concatenate([self.mdp.discount * moves.data, np.full(here.size, -1.0)])
        row = np.concatenate([of, np.arange(here.size)])
        return places, sp.csr_array(sp.coo_array((share, (row, column)), shape=(here.size, places.size)))

    def source(self, counts: Floats) -> Any:
        """Return m for candidates chosen `counts` (J,): (S,), (H, S) with a horizon, or (G, S) with goals.

        The last is sparse, and so is a large (H, S).
        """
        n, (places, seen), goals = self.mdp.n_states, self._seen, self.choices.goals
        mass = -(seen.T @ counts)
        mass[np.abs(mass) <= ROUNDING * counts.max(initial=0.0)] = 0.0
        if goals is not None:
            m = sp.csr_array(sp.coo_array((mass, (places // n, places % n)), shape=(goals.size, n)))
            m.eliminate_zeros()
            return m
        if self.mdp.horizon is not None and self.mdp.horizon * n > DENSE:
            return sp.csr_array(sp.coo_array((mass, (places // n, places % n)), shape=(self.mdp.horizon, n)))
        out = np.zeros(n if self.mdp.horizon is None else (self.mdp.horizon, n))
        out.ravel()[places] = mass
        return out

    def collected(self, counts: Floats) -> Floats:
        """Return Σ n(s,a) f(s,a), (d,)."""
        mdp = self.mdp
        rows = self.choices.row if mdp.state_action else self.choices.row // mdp.n_actions
        return mdp.counts(np.bincount(rows, counts, mdp.feature_rows.shape[0]).astype(np.float64))

    def constant(self, counts: Floats) -> float:
        """Return the part of L that does not depend on θ: Σ n(s,a) (log π₀(a|s) + log p(s'|s,a))."""
        base = self.mdp.log_reference
        logs = (
            self.choices.log_probability
            if base is None
            else self.choices.log_probability + base.ravel()[self.choices.row]
        )
        return float(counts @ logs)

    def value_and_candidates(self, reward: Floats, solution: Solution | GoalsSolution) -> tuple[float, Floats]:
        """Return L, and n (J,) of every candidate: its posterior probability under the solution times the total."""
        logs, share = self.kind_log_probabilities(reward, solution)
        return float(self.totals @ logs), self.totals[self.choices.of] * share

    def kind_log_probabilities(self, reward: Floats, solution: Solution | GoalsSolution) -> tuple[Floats, Floats]:
        """Return the log-probability of each kind, (K,), and the posterior probability of each candidate, (J,)."""
        logs, of, first = self.log_policy(reward, solution) + self.choices.log_probability, self.choices.of, self._first
        top = np.maximum.reduceat(logs, first)
        share = np.exp(logs - top[of])
        sums = np.add.reduceat(share, first)
        return top + np.log(sums), share / sums[of]

    def log_policy(self, reward: Floats, solution: Solution | GoalsSolution) -> Floats:
        """Return log π = Q − V of every candidate, (J,)."""
        mdp, row = self.mdp, self.choices.row
        logs = self._seen[1] @ self._values(solution)
        logs += reward.ravel()[row] if reward.ndim == 2 else reward[row // mdp.n_actions]
        if mdp.log_reference is not None:
            logs += mdp.log_reference.ravel()[row]
        return np.asarray(logs)

    @property
    def needed(self) -> sp.csr_array:
        """A mask (G, S), with goals: not zero at the places whose values are needed."""
        assert self.choices.goals is not None
        places, shape = self._seen[0], (self.choices.goals.size, self.mdp.n_states)
        return sp.csr_array(sp.coo_array((np.ones(places.size), np.divmod(places, shape[1])), shape=shape))

    def _values(self, solution: Solution | GoalsSolution) -> Floats:
        """Return V at the places whose values are needed, (U,)."""
        places, n = self._seen[0], self.mdp.n_states
        if isinstance(solution, Solution):
            return solution.at(places)
        number, out = places // n, np.empty(places.size)
        for goal, (_, values) in enumerate(solution.values(self.needed)):
            some = slice(*np.searchsorted(number, (goal, goal + 1)))
            out[some] = values[places[some] - goal * n]
        return out
