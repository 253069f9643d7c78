"""Identifiability: the directions of θ that change no policy.

Adding v to θ changes nothing if every policy collects the same v-reward: if, under some fixed policy with full support
(all live actions equally likely), no action is better than another,

    vᵀ A_f(s, a) = 0 for every reachable (s, a),     A_f(s,a) = f(s,a) + γ Σ p F(s') − F(s),   F = Σ_a π (f + γ P F),

at every step where there is a horizon. The unidentified directions are the null space of the rows A_f(s,a), and a few
of the rows span them all. They are found by random probing: v is drawn from the current null space, one pass with the
reward fᵀv finds every (s, a) with A_f(s,a)ᵀ v ≠ 0, and some of these rows are added. Where there is none, the whole
null space is unidentified: almost surely a random v would not vanish on a row that some direction does not vanish on.
Every row added is one of the problem itself, so a direction that is called identified is identified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.planning.random_probes import FiniteHorizonProbe, LocalProbe, Probe, StationaryProbe
from messirl.planning.reachability import structure_of

RELATIVE = 1e-10  # share of the largest eigenvalue below which an eigenvalue counts as zero
ROUNDING = 1e-9  # a gap below this, relative to the values that it is a difference of, is rounding
SMALL = 600  # number of states up to which the system of all states is solved at once
FACTORED = 200_000  # number of states above which, with γ = 1, factors would cost more than the fit
MAX_GOALS = 16


def unidentified(mdp: MDP, start: Floats | None, goals: Ints | None, *, noncausal: bool = False) -> Floats:
    """Return a basis (k, d) of the directions of θ that no trajectory from these starts identifies."""
    unseen = _Unseen(feature_spread(mdp))
    for probe in _probes(mdp, start, goals, noncausal=noncausal):
        if probe is None:
            return np.zeros((0, mdp.n_features))
        unseen.narrow(probe)
        if not len(unseen.basis):
            break
    return unseen.named()


def _probes(mdp: MDP, start: Floats | None, goals: Ints | None, *, noncausal: bool) -> Iterator[Probe | None]:
    """Yield the probes of a problem, the cheap ones first; None where probing would be too expensive."""
    if mdp.horizon is not None:
        yield FiniteHorizonProbe(mdp, start, noncausal=noncausal)
        return
    aims: list[int | None] = [None]
    if goals is not None:
        distinct, often = np.unique(goals, return_counts=True)
        aims = distinct[np.argsort(-often, kind="stable")][:MAX_GOALS].tolist()
    for number, goal in enumerate(aims):
        structure = structure_of(mdp, goal)
        if number == 0 and mdp.n_states > SMALL:
            yield LocalProbe(mdp, structure, start)
        if mdp.must_end and mdp.n_states > FACTORED:
            yield None
        yield StationaryProbe(mdp, structure, start, at_once=mdp.must_end or mdp.n_states <= SMALL)


class _Unseen:
    """The current null space, as a basis (k, d).

    unit : (d,) the spread of each feature, in which its weight is measured
    """

    def __init__(self, unit: Floats) -> None:
        self.unit, self.basis = unit, np.diag(1.0 / unit)
        self._size = np.zeros(unit.size)  # of each feature, in the first rows
        self._random: Any = np.random.default_rng(0)

    def narrow(self, probe: Probe) -> None:
        """Remove the directions that the probe identifies, until it finds none, or no new ones."""
        left = len(self.basis) + 1
        while 0 < len(self.basis) < left:
            left = len(self.basis)
            mixture = self._random.normal(size=left)
            picks, least = self._seen(probe, mixture @ self.basis / np.linalg.norm(mixture))
            if not picks:
                return
            rows = np.concatenate([probe.rows(step, places, self.basis) for step, places in picks])
            if not self._size.any():
                self._size = np.abs(rows).max(axis=0, initial=0.0) * self.unit
            missed = _null(rows, least) @ self.basis
            self.basis = np.linalg.qr((missed * self.unit).T).Q.T / self.unit

    def _seen(self, probe: Probe, v: Floats) -> tuple[list[tuple[int, Ints]], float]:
        """Return a random choice of the first steps and places (a·S + s) where v makes a gap, and the least gap."""
        wanted, picks, last, least = probe.crowd * (len(self.basis) + 4), [], 0, 0.0
        for step, largest, values, gaps in probe.gaps_by_step(v):
            if last and step > last:
                break
            least = max(ROUNDING * max(values, 1.0), np.sqrt(RELATIVE) * float(np.linalg.norm(v * self._size)))
            if largest <= least:
                continue
            last = last or 2 * step - 1  # later steps may identify other directions
            places = np.flatnonzero(np.abs(gaps()) > least)
            some = self._random.integers(places.size, size=max(wanted // (last - last // 2), 4))
            picks.append((step, places[np.unique(some)] if places.size > some.size else places))
        return picks, least

    def named(self) -> Floats:
        """Return the basis with entries that are only rounding set to zero."""
        in_units = self.basis * self.unit
        return np.where(np.abs(in_units) > 1e-6, self.basis, 0.0)


def _null(rows: Floats, least: float) -> Floats:
    """Return the null space (j, k) of the rows (m, k); columns no larger than `least` are rounding.

    A column far smaller than the others does not enter the decision, but may still be a multiple of theirs. Its
    direction is made orthogonal to the rows; otherwise the next probe would find it again.
    """
    gram = rows.T @ rows
    size = np.sqrt(np.diag(gram))
    large = size > max(np.sqrt(RELATIVE) * float(size.max()), least if size.max() <= least else 0.0)
    unit = np.where(large, size, 1.0)
    values, vectors = np.linalg.eigh(np.where(np.outer(large, large), gram / np.outer(unit, unit), 0.0))
    seen = values > RELATIVE * max(float(values[-1]), 1e-300)
    found, basis = vectors[:, ~seen].T / unit, vectors[:, seen].T / unit
    return np.asarray(found - (found @ gram @ basis.T / values[seen]) @ basis)
