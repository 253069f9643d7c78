"""The flow of occupancies over the places that can be reached.

A place is a state or, with a horizon, a state at a step. The choices x at a place are its actions or, in a terminal
state, staying: mass that has ended remains there for ever, or until the horizon. An occupancy d ≥ 0 of choices obeys

    Σ_{x at place i} d(x) = b_i + γ Σ_x p(i|x) d(x),     that is,  b + Bᵀ d = 0  with  B = γP − E

and sums to one: b is (1 − γ) start or, with a horizon, start / Σ_t γ^t at the first step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from messirl._types import Floats, Ints
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._prior_policy import action_counts
from messirl.planning import model_for
from messirl.planning.reachability import arcs_of, reach


@dataclass(frozen=True, eq=False)
class OccupancyFlow:
    """Places, the choices there, and their successors.

    place : (n,) t·S + s of every reachable place; t is 0 without a horizon
    at : (m,) the number of the place of every choice
    action : (m,) its action; −1 for staying where a trajectory has ended
    rows : sparse (m, n), B
    source : (n,) b
    """

    mdp: MDP
    place: Ints
    at: Ints
    action: Ints
    rows: Any
    source: Floats

    @classmethod
    def of(cls, mdp: MDP, start: Floats) -> OccupancyFlow:
        """Make the flow from a start (S,) by the actions that avoid dead ends."""
        n, every, steps = mdp.n_states, np.arange(mdp.n_states), _steps(mdp)
        model, met = model_for(mdp), start > 0.0
        places, at, action, moves = [], [], [], []
        for t in range(steps):
            usable = model.usable(every, np.full(n, t))
            if mdp.horizon is None:
                arcs = arcs_of(mdp)
                arcs = arcs.where(usable[arcs.source, arcs.action])
                met = reach((arcs.source, arcs.target), met)
            states, actions = np.nonzero(usable & met[:, None])
            ended = np.flatnonzero(met & mdp.terminal)
            stay = sp.csr_array((np.ones(ended.size), (np.arange(ended.size), ended)), shape=(ended.size, n))
            moves.append(sp.vstack([mdp.transitions[states * mdp.n_actions + actions], stay], format="csr"))
            places.append(t * n + np.flatnonzero(met))
            at.append(t * n + np.concatenate([states, ended]))
            action.append(np.concatenate([actions, np.full(ended.size, -1)]))
            met = np.asarray(moves[-1].sum(axis=0)).ravel() > 0.0
        here = np.concatenate(places)
        ahead = moves[0] if mdp.horizon is None else sp.block_diag([*moves[:-1], sp.csr_array(moves[-1].shape)])
        if mdp.horizon is not None:  # choices at a step lead to the next
            ahead = sp.hstack([sp.csr_array((ahead.shape[0], n)), ahead.tocsr()[:, :-n]])
        number = np.searchsorted(here, np.concatenate(at))
        leave = sp.csr_array((np.ones(number.size), (np.arange(number.size), number)), shape=(number.size, here.size))
        rows = sp.csr_array(mdp.discount * ahead.tocsr()[:, here] - leave)
        source = np.where(here < n, start[here % n], 0.0) / _mass(mdp)
        return cls(mdp, here, number, np.concatenate(action), rows, source)

    def density(self, trajectories: Trajectories, even: float, own_step: float) -> Floats:
        """Return the discounted density (m,) of the choices in trajectories; truncated ones are extrapolated.

        even : the share that is uniform over all choices, step by step
        own_step : with a horizon, the share of the rest that comes from the step itself; the remainder is pooled
            over all steps
        """
        acted, ended = discounted(self.mdp, trajectories)
        staying, (step, state) = self.action < 0, np.divmod(self.place[self.at], self.mdp.n_states)

        def found(acted: Floats, ended: Floats, where: tuple[Any, ...]) -> Floats:
            done = acted[(*where, state, np.maximum(self.action, 0))]
            return np.asarray(np.where(staying, ended[(*where, state)], done))

        seen = found(acted, ended, (step,))
        if self.mdp.horizon is not None:
            together = found(acted.sum(axis=0), ended.sum(axis=0), ())
            seen = own_step * self._by_step(seen, step) + (1.0 - own_step) * self._by_step(together, step)
        everywhere = self._by_step(np.ones_like(seen), step)
        nobody = np.bincount(step, seen)[step] <= 0.0  # at this step
        return np.asarray((1.0 - even) * np.where(nobody, everywhere, self._by_step(seen, step)) + even * everywhere)

    def _by_step(self, shares: Floats, step: Ints) -> Floats:
        """Normalise shares (m,) to sum to one, with the mass of each step that an occupancy has."""
        weight = self.mdp.discount ** np.arange(_steps(self.mdp)) / (_mass(self.mdp) if self.mdp.horizon else 1.0)
        total = np.bincount(step, shares, weight.size)
        return np.asarray(shares * np.where(total > 0.0, weight / np.where(total > 0.0, total, 1.0), 0.0)[step])

    def table(self, occupancy: Floats) -> Floats:
        """Return d of actions in the shape of a policy, (S, A) or (H − 1, S, A); 0 where no action is possible."""
        out, acts = np.zeros((_steps(self.mdp) * self.mdp.n_states, self.mdp.n_actions)), self.action >= 0
        out[self.place[self.at[acts]], self.action[acts]] = occupancy[acts]
        return out.reshape(self.mdp.policy_shape)

    def over_states(self, values: Floats) -> Floats:
        """Return values of places (n,) as (S,), or (H − 1, S); 0 for unreachable places."""
        out = np.zeros(_steps(self.mdp) * self.mdp.n_states)
        out[self.place] = values
        return out.reshape(self.mdp.policy_shape[:-1])


def discounted(mdp: MDP, trajectories: Trajectories) -> tuple[Floats, Floats]:
    """Return discounted counts Σ γ^t of actions, (T, S, A), and of ended trajectories, (T, S), with T = 1 or H − 1.

    Without a horizon each trajectory has the mass 1/(1 − γ); truncated ones are scaled up to it.
    """
    g, made = mdp.discount, trajectories.lengths - 1
    left, trip = np.flatnonzero(trajectories.leaves), np.repeat(np.arange(len(trajectories)), made)
    weight = np.asarray(g ** trajectories.step[left], dtype=np.float64)
    over = mdp.terminal[trajectories.last]
    ended = np.zeros((_steps(mdp), mdp.n_states))
    if mdp.horizon is None:
        mass = np.where(over, 1.0, -1.0 / np.expm1(np.maximum(made, 1) * np.log(g)))
        np.add.at(ended[0], trajectories.last[over], g ** made[over] / (1.0 - g))
        acted = action_counts(mdp, trajectories, weight * mass[trip])[None]
    else:
        for t in range(_steps(mdp)):
            late = over & (made <= t)
            ended[t] = g**t * np.bincount(trajectories.last[late], minlength=mdp.n_states)
        acted = action_counts(mdp, trajectories, weight, by_step=True)
    return acted, ended


def _steps(mdp: MDP) -> int:
    return 1 if mdp.horizon is None else mdp.horizon - 1


def _mass(mdp: MDP) -> float:
    """Return Σ_t γ^t."""
    g = mdp.discount
    return 1.0 / (1.0 - g) if mdp.horizon is None else float((g ** np.arange(_steps(mdp))).sum())
