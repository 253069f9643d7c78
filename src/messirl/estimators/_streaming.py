"""Fits to unlabelled trajectories that stay in files, and the check of methods that need them in memory.

A fit needs their feature counts, the number of times each choice was made, and their first states; one pass gathers
them all (data/sufficient_statistics.py).
Sums over trajectories in memory then become sums over kinds of choices, each times its
count.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats, Ints
from messirl.data.choices import choice_keys, choice_mass
from messirl.data.chunked_reduce import summed, swept
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.spill import stacked
from messirl.data.streamed_trajectories import StreamedTrajectories, in_files
from messirl.data.sufficient_statistics import Gathered, Kinds, gathered, makers
from messirl.data.trajectories import Trajectories
from messirl.data.validation import unfinished
from messirl.objective import Objective, check_alive, choice_scale, never_made, of_choices
from messirl.planning import Planner
from messirl.similarity.base import Similarity

ROUNDING = 1e-9  # relative difference of sums of equal counts
IN_MEMORY = "read them with messirl.io.read_trajectories, if they fit in memory"


def refuse_streamed(given: Any, who: str, why: str) -> None:
    """Refuse unlabelled trajectories in files, or a path to them, where they are needed in memory."""
    if in_files(given):
        raise ValueError(f"{who} {why}, so unlabelled trajectories cannot stay in files: {IN_MEMORY}")


def counts_of_both(mdp: MDP, expert: Trajectories, unlabelled: StreamedTrajectories) -> Any:
    """Return the feature counts of the experts and of those in files, (l + n, d), each set by its own actions.

    The result is an array, or used like one (data/spill.py).
    """
    own = checked_feature_counts(mdp, expert, " of expert")
    return stacked(own, gathered(mdp, unlabelled, counted=True).counts)


def all_among(mdp: MDP, some: Trajectories, streamed: StreamedTrajectories) -> bool:
    """Return whether every given trajectory is, state by state, also one in files; False if those have no counts.

    Feature counts say whether that can be. Only then are the files read once more.
    """
    table = gathered(mdp, streamed).counts
    if table is None or len(some) == 0 or unfinished(mdp, some).any():
        return False
    with warnings.catch_warnings():  # what counts say of trajectories that are cut was said before
        warnings.simplefilter("ignore")
        own = checked_feature_counts(mdp, some)
    mix = np.cos(np.arange(mdp.n_features))  # of all counts, so that one number tells trajectories apart
    near = ROUNDING * float((np.abs(own) @ np.abs(mix)).max())
    if not swept(functools.partial(_met, own @ mix, mix, near), table, mdp.n_features)[0].all():
        return False
    lacking = {one.states.tobytes() for one in some}
    for chunk in streamed.chunks(mdp):
        alike = np.isin(chunk.lengths, some.lengths) & np.isin(chunk.first, some.first)
        lacking -= {chunk[int(i)].states.tobytes() for i in np.flatnonzero(alike)}
        if not lacking:
            return True
    return False


def _met(wanted: Floats, mix: Floats, near: float, counts: Floats) -> tuple[Ints, None]:
    """Return which of the wanted sums (l,) occur among rows of counts, as 0 or 1 each."""
    sums = np.append(np.sort(counts @ mix), np.inf)
    return (sums[np.searchsorted(sums, wanted - near)] <= wanted + near).astype(np.int64), None


def penalty_of(measure: Similarity, mdp: MDP, everyone: Trajectories | Together, counts: Floats) -> Floats:
    """Return M (d, d) of Eq. 5; for trajectories in files it is cached, since baselines need it too."""
    if not isinstance(everyone, Together):
        return measure.penalty(everyone, counts)
    if not isinstance(measure, Hashable):
        return measure.penalty(None, counts)
    key = "penalty", measure, counts[: len(everyone.expert)].tobytes()
    return everyone.unlabelled.memo(mdp, key, lambda: measure.penalty(None, counts))


@dataclass(frozen=True, eq=False)
class Together:
    """Σ = Σ* ∪ Σ̃, with the experts in memory and the unlabelled trajectories in files."""

    expert: Trajectories
    unlabelled: StreamedTrajectories

    def __len__(self) -> int:
        return len(self.expert) + len(self.unlabelled)

    def first(self, mdp: MDP) -> Floats:
        """Count the trajectories that start in each state, (S,)."""
        own = np.bincount(self.expert.first, minlength=mdp.n_states)
        return np.asarray(own + gathered(mdp, self.unlabelled).first, dtype=np.float64)

    def objective(
        self,
        mdp: MDP,
        own: Floats,
        light: float,
        *,
        counts: Floats | None,
        quadratic: Floats | None,
        entropy: str,
        tilted: bool,
    ) -> Objective:
        """Return J of both sets, with weights `own` (l,) of the experts and `light` of each unlabelled trajectory.

        counts : (l + n, d) for the objective "counts"; None for "choices"
        """
        recorded = self.expert.actions is not None and self.unlabelled.with_actions
        others = gathered(mdp, self.unlabelled, moved=not recorded)
        size = float(own.sum()) + others.size * light
        top = max(float(own.max()), light)
        share = float((own / top).sum()) + others.size * (light / top)
        weights, weight = own / top / share, light / top / share
        kinds = others.kinds(recorded=recorded)
        if entropy == "causal":
            check_alive(mdp, self.expert, len(self.expert))
            self._check_alive(mdp, kinds)
        start = mdp.start
        if start is None:
            start = np.bincount(self.expert.first, weights, mdp.n_states) + weight * others.first
        planner = Planner(mdp, entropy, start, tilted=tilted)
        if counts is not None:
            target = weights @ counts[: len(own)] + weight * summed(others.counts)
            return Objective(mdp, planner, target, quadratic, size=size)
        scale = self._scale(mdp, weights, weight, others)
        keys, totals = self._totals(mdp, kinds, scale * weights, scale * weight)
        choices = Kinds(recorded, keys).choices(mdp)
        return of_choices(mdp, planner, choices, totals, quadratic, size / (scale or 1.0))

    def _scale(self, mdp: MDP, weights: Floats, weight: float, others: Gathered) -> float:
        made = float(weights @ (self.expert.lengths - 1)) + weight * others.made
        return choice_scale(mdp, made, float(weights @ choice_mass(mdp, self.expert)) + weight * others.mass)

    def _totals(self, mdp: MDP, kinds: Kinds, weights: Floats, weight: float) -> tuple[Any, Floats]:
        """Return the keys of the kinds of choices in both sets, and the total weight of each."""
        own = choice_keys(mdp, self.expert, recorded=kinds.recorded)
        trip = np.repeat(np.arange(len(self.expert)), self.expert.lengths - 1)
        keys, at = np.unique(np.concatenate([own, kinds.keys]), return_inverse=True)
        much = np.concatenate([weights[trip], weight * kinds.often])
        return keys, np.bincount(at, much, keys.size).astype(np.float64)

    def _check_alive(self, mdp: MDP, kinds: Kinds) -> None:
        """Refuse dead ends, as `check_alive` does for trajectories in memory."""
        wrong = never_made(mdp, kinds.choices(mdp))
        if wrong.any():
            who, step = next(makers(mdp, self.unlabelled, kinds.keys[wrong], recorded=kinds.recorded))
            raise ValueError(
                f"trajectory {who} of unlabelled, step {step}: this can run into a dead end or never end, which has "
                "probability 0 in the model: make the dead end terminal, or leave it out"
            )
