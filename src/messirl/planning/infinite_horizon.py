"""Stationary causal policies, without a horizon, by Newton's method on the soft Bellman equation.

The backward pass (Eq. 3):

    F(V) = T V − V = 0,     (I − γ P_π) δ = F(V),     V ← V + δ

which is soft policy iteration: V + δ is the value of the policy π = exp(Q − V). The linear systems, and the transposed
one of the expected visits, are those of the policy's chain (policy_chain.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from messirl._types import Flags, Floats, Ints
from messirl.data.mdp import MDP
from messirl.planning._validation import check_allowed
from messirl.planning.backups import soft_backup
from messirl.planning.kernels.bellman import hard_sweep
from messirl.planning.memory_layout import Layout, Terms, aligned, layout_of, terms_of
from messirl.planning.policy_chain import EPS, Chain
from messirl.planning.reachability import Structure, arcs_of, ends_of, next_step, reach, structure_of
from messirl.planning.solution import NO_VALUE, NoFiniteValue, Solution, Visits
from messirl.planning.solve_counter import counted

MAX_NEWTON = 200
MAX_SWEEPS = 100_000
LARGEST = 1e250
TIED = 1e-10  # relative difference of two values below which both actions are best
TRUSTED = 1e-5  # largest accepted relative error of the values (γ = 1)
TOO_LONG = (
    "under this reward a trajectory takes about {:.0e} steps to end (discount=1), too many to compute its value. "
    "Make the rewards of steps more negative, or use a discount below 1 or a horizon"
)
OVERFLOW = "the values are too large to compute: use smaller rewards"


class SignedPart(NamedTuple):
    """The part of a source that has one sign: its mass, and its distribution."""

    sign: float
    mass: float
    source: Floats


def split_by_sign(source: Floats) -> list[SignedPart]:
    """Split a source (S,) into its positive and negative parts, each normalised to sum to one.

    A source that is nowhere negative is one part of sign 0, as it is.
    """
    if (source >= 0.0).all():
        return [SignedPart(0.0, 1.0, source)]
    parts = []
    for sign in (1.0, -1.0):
        part = np.maximum(sign * source, 0.0)
        mass = float(part.sum())
        parts.append(SignedPart(sign, mass, part / max(mass, np.finfo(float).tiny)))
    return parts


class StationaryModel:
    """Stationary model towards one goal or the terminal states: values (S,) and a policy (S, A).

    within : (S,) states to restrict it to, closed under transitions

    Repeated solves have a warm start: the last values and visits.
    """

    def __init__(self, mdp: MDP, goal: int | None = None, within: Flags | None = None) -> None:
        self.mdp, self.goal, self.within = mdp, goal, within
        self._values: Floats | None = None
        self._visits: dict[float, tuple[Floats, Floats]] = {}
        self._signed: tuple[float, Floats, Floats] | None = None  # the mass of a signed source, its visits, their size

    @cached_property
    def structure(self) -> Structure:
        """Ends, states with a value and actions that may be taken; computed on first use."""
        return structure_of(self.mdp, self.goal, self.within)

    @property
    def live(self) -> Flags:
        """The actions that the model may take, (S, A)."""
        return self.structure.live

    def uniform_start(self) -> Floats:
        """Return the uniform start distribution over the states that have a value and do not end, (S,)."""
        inner = self.structure.alive & ~self.structure.ends
        return np.asarray(inner / max(int(inner.sum()), 1))

    def usable(self, states: Ints, step: Ints) -> Flags:
        """Return the mask of actions that the model may take in these states, at any step, (n, A)."""
        return self.live[states]

    @counted
    def solve(self, reward: Floats) -> Solution:
        """Return soft values and the policy."""
        mdp, layout, structure = self.mdp, layout_of(self.mdp), self.structure
        terms, still, values = self._known(reward, mdp.log_reference)
        policy, ahead, chain = aligned(mdp.n_actions, layout.padded), aligned(layout.padded), Chain(mdp)
        if self._values is not None:
            values = np.where(still, values, layout.pad(self._values))
        elif mdp.discount == 1.0:
            values += _uniform_gain(chain, terms, structure.live, values, entropy=True)
        before, rises = np.inf, 0
        for _ in range(MAX_NEWTON):
            soft_backup(layout, terms, mdp.discount, values, ahead, policy)
            policy[:, still] = 0.0
            gap = np.where(still, 0.0, ahead - values)
            residual, size = float(np.abs(gap).max()), 1.0 + float(np.abs(values).max())
            if not np.isfinite(residual) or size > LARGEST:
                raise self._no_value
            chain.follow(policy)
            rounding = 8.0 * EPS * size
            if residual <= rounding or (residual <= 1e3 * rounding and residual >= 0.5 * before):
                break
            rises += residual > before
            before = residual
            # Inexact Newton: solve each system only as accurately as the next step can use. Where the residual rises
            # repeatedly the iteration may cycle; with exact solves every step makes progress.
            wanted = residual * min(1e-2, residual / size) if rises < 2 else 0.0
            values += chain.solve(gap, tolerance=max(rounding / 2, wanted))
        else:
            raise self._no_value
        if mdp.discount == 1.0:
            duration = chain.solve((~still).astype(np.float64), tolerance=0.0)
            steps = float(np.abs(duration).max())
            if not (residual + EPS * size) * steps <= TRUSTED * size:
                raise NoFiniteValue(TOO_LONG.format(steps) if np.isfinite(steps) else NO_VALUE)
        solution = StationarySolution(self, values, policy, chain)
        self._values = solution.values
        return solution

    @counted
    def hard(self, reward: Floats) -> Solution:
        """Return hard-max values and the one-hot policy: policy iteration, or with γ = 1 sweeps from below."""
        mdp, layout = self.mdp, layout_of(self.mdp)
        terms, still, values = self._known(reward)
        ahead, choice, chain = np.empty(layout.padded), np.empty(layout.padded, dtype=np.int64), Chain(mdp)
        undiscounted = mdp.discount == 1.0
        if undiscounted:
            values += _uniform_gain(chain, terms, self.live, values, entropy=False)
        before = np.inf
        for _ in range(MAX_SWEEPS if undiscounted else MAX_NEWTON):
            hard_sweep(*layout.dynamics, terms.state, terms.action, mdp.discount, values, ahead, choice)
            gap = np.where(still, 0.0, ahead - values)
            residual, size = float(np.abs(gap).max()), 1.0 + float(np.abs(values).max())
            if not np.isfinite(residual) or size > LARGEST:
                break
            if residual <= 8.0 * EPS * size or (residual <= 1e4 * EPS * size and residual >= before):
                if undiscounted:
                    choice[: mdp.n_states] = self._ending(reward, values[: mdp.n_states], choice[: mdp.n_states])
                policy = _one_hot(layout, choice, still)
                chain.follow(policy)
                if undiscounted and residual > 0.0:  # errors of sweeps add up over the steps to the end
                    with contextlib.suppress(NoFiniteValue):
                        values += chain.solve(gap, tolerance=0.0)
                return StationarySolution(self, values, policy, chain)
            before = residual
            if undiscounted:
                values += gap
            else:
                values += chain.follow(_one_hot(layout, choice, still)).solve(gap, tolerance=4.0 * EPS * size)
        raise self._no_value

    def _ending(self, reward: Floats, values: Floats, choice: Ints) -> Ints:
        """Return the best actions, (S,), with ties broken in favour of reaching an end (γ = 1).

        Of equally good actions the lowest may lead around for ever. A state from which the given choices never reach
        an end takes the equally good action that is its next step in a backward search from the states that do.
        """
        mdp, structure, arcs = self.mdp, self.structure, arcs_of(self.mdp)
        inner = structure.alive & ~structure.ends
        chosen = inner[arcs.source] & (choice[arcs.source] == arcs.action)
        safe = reach((arcs.target[chosen], arcs.source[chosen]), structure.ends)
        if safe[inner].all():
            return choice
        gain = (mdp.transitions @ values).reshape(mdp.n_states, mdp.n_actions)
        gain = np.where(structure.live, gain if reward.ndim == 1 else gain + reward, -np.inf)
        best = gain.max(axis=1, keepdims=True, initial=-np.inf)
        tied = structure.live & (gain >= best - TIED * (1.0 + np.abs(best)))
        ahead = arcs.where(tied[arcs.source, arcs.action] & inner[arcs.source] & ~safe[arcs.source])
        step = next_step((ahead.target, ahead.source), safe)
        on_the_way = ahead.where(step[ahead.source] == ahead.target)
        states, first = np.unique(on_the_way.source, return_index=True)
        better = choice.copy()
        better[states] = on_the_way.action[first]
        return better

    def _known(self, reward: Floats, base: Floats | None = None) -> tuple[Terms, Flags, Floats]:
        """Return the reward's terms, the states whose value is known (padding included), and these values."""
        layout, structure = layout_of(self.mdp), self.structure
        terms = terms_of(layout, reward, structure.live, base)
        still = layout.pad(structure.alive & ~structure.ends) == 0.0
        return terms, still, layout.pad(np.where(structure.ends, terms.end, 0.0))

    @property
    def _no_value(self) -> NoFiniteValue:
        return NoFiniteValue(NO_VALUE if self.mdp.discount == 1.0 else OVERFLOW)

    def follow(self, policy: Floats, start: Floats, *, steps: bool) -> Visits:
        """Return expected visits of a stored policy that the caller gave; zero in states that it cannot reach."""
        mdp, ends = self.mdp, ends_of(self.mdp, self.goal)
        rows = policy[:, : mdp.n_states]
        sums = rows.sum(axis=0)
        moving = ~ends & (sums > 0)
        wrong = ~(rows.min(axis=0) >= 0.0) | ~np.isfinite(sums) | (moving & (np.abs(sums - 1.0) > 1e-6))
        if wrong.any():
            s = int(np.argmax(wrong))
            raise ValueError(f"policy[{s}] is {rows[:, s]}: probabilities must be >= 0 and sum to 1")
        check_allowed(mdp, rows.T, ends)
        policy = policy * layout_of(mdp).pad(moving)
        chain = Chain(mdp).follow(policy)
        result = _with_steps(mdp, policy, chain.visits(start), steps=steps)
        if not np.isfinite(result.states).all():
            raise ValueError("under this policy trajectories may never end: with discount=1 they must reach an end")
        idle = ~ends & ~moving
        if idle.any():  # states without a value have no policy; all other reached states must have one
            idle &= self.structure.alive & chain.reach(start)
        if idle.any():
            s = int(np.argmax(idle))
            raise ValueError(f"state {s} is reached, but policy[{s}] is all zero: its probabilities must sum to 1")
        return result

    def signed_visits(self, chain: Chain, source: Floats) -> Floats:
        """Return ρ (S,) from a source of both signs (γ < 1).

        The first solve is for the positive and the negative part; later ones are joint, scaled by the size of these.
        """
        mass = float(np.abs(source).sum())
        if self._signed is not None and 0.1 * mass < self._signed[0] < 10.0 * mass:
            _, guess, size = self._signed
            found = chain.signed_visits(source, guess, size)
            if found is not None:
                self._signed = (self._signed[0], found, size)
                return found
        both = [part.mass * self.visits(chain, part.source, part.sign) for part in split_by_sign(source)]
        self._signed = (mass, both[0] - both[1], both[0] + both[1])
        return self._signed[1]

    def recalled(self, parts: Sequence[SignedPart]) -> tuple[Floats, list[Floats]] | None:
        """Return the last values and the visits of each part (S,), if they are from these sources; else None."""
        known = [self._visits_from(part.source, part.sign) for part in parts]
        same = [last for last in known if last is not None]
        return (self._values, same) if self._values is not None and len(same) == len(parts) else None

    def remember(self, values: Floats, parts: Sequence[SignedPart], visits: Sequence[Floats]) -> None:
        """Store the warm start of the next solve."""
        self._values = values if self.structure.alive.all() else np.where(self.structure.alive, values, -np.inf)
        self._visits |= {part.sign: (part.source, found) for part, found in zip(parts, visits, strict=True)}

    def _visits_from(self, source: Floats, sign: float) -> Floats | None:
        """Return the last visits stored under this sign, if they are from this source."""
        known, found = self._visits.get(sign, (None, None))
        return found if known is source or (known is not None and np.array_equal(known, source)) else None

    def visits(self, chain: Chain, source: Floats, sign: float = 0.0) -> Floats:
        """Return ρ (S,) from a source that is nowhere negative, with a warm start at the last visits of this sign."""
        found = chain.visits(source, self._visits_from(source, sign))
        self._visits[sign] = (source, found)
        return found


class StationarySolution(Solution):
    """Solution of a stationary model: values (S,) and the stored policy (A, S padded)."""

    def __init__(self, model: StationaryModel, values: Floats, policy: Floats, chain: Chain) -> None:
        super().__init__(model.mdp, np.where(model.structure.alive, values[: model.mdp.n_states], -np.inf), policy)
        self.model, self.chain = model, chain

    def visits(self, source: Floats, *, steps: bool = True) -> Visits:
        """Return expected visits from a source (S,)."""
        if self.mdp.discount == 1.0:
            states = self.chain.visits(source)
        elif (source >= 0.0).all():
            states = self.model.visits(self.chain, source)
        else:
            states = self.model.signed_visits(self.chain, source)
        return _with_steps(self.mdp, self.policy, states, steps=steps)


def _with_steps(mdp: MDP, policy: Floats, states: Floats, *, steps: bool) -> Visits:
    return Visits(states, (policy[:, : mdp.n_states] * states).T if steps else None)


def _uniform_gain(chain: Chain, terms: Terms, live: Flags, ends: Floats, *, entropy: bool) -> Floats:
    """Return the value of the uniform policy over live actions, with `ends` at the end: a lower bound on the value."""
    policy = chain.layout.action_major(live / np.maximum(live.sum(axis=1, keepdims=True), 1))
    chain.follow(policy)
    taken = policy > 0
    gain = np.where(taken.any(axis=0), terms.state, 0.0)
    if terms.action.size:
        gain += (policy * np.where(taken, terms.action, 0.0)).sum(axis=0)
    if entropy:
        gain -= (policy * np.log(np.where(taken, policy, 1.0))).sum(axis=0)
    n = chain.mdp.n_states
    gain[:n] += chain.matrix @ ends[:n]
    return chain.solve(gain, tolerance=0.0)


def _one_hot(layout: Layout, choice: Any, still: Any) -> Floats:
    policy = np.zeros((layout.n_actions, layout.padded))
    policy[choice, np.arange(layout.padded)] = 1.0
    policy[:, still] = 0.0
    return policy
