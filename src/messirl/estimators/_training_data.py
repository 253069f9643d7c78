"""The data of a fit, Σ = Σ* ∪ Σ̃, and the objective of them: the same whether Σ̃ is in memory or in files.

Of trajectories in files a fit needs the feature counts, the number of times each choice was made, and the first states;
one pass gathers them all (data/streamed_summary.py). Sums over trajectories in memory then become sums over kinds of
choices, each times its count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.spill import stack_tables
from messirl.data.streamed_summary import ChoiceCounts, gather_statistics, trajectories_with_choices
from messirl.data.streamed_trajectories import StreamedTrajectories
from messirl.data.sufficient_statistics import SufficientStatistics, pooled_statistics
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._streaming import EMPTY, IN_MEMORY
from messirl.objective import Objective, check_possible, check_start, checked_weights, impossible_choices
from messirl.similarity.base import Similarity


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The expert's trajectories, and those of unknown quality: in memory, in files, or none."""

    expert: Trajectories
    unlabelled: Trajectories | StreamedTrajectories | None = None

    def __len__(self) -> int:
        return len(self.expert) + (0 if self.unlabelled is None else len(self.unlabelled))

    @cached_property
    def trajectories(self) -> Any:
        """All trajectories, experts first; None if some are in files."""
        if self.unlabelled is None:
            return self.expert
        return self.expert + self.unlabelled if isinstance(self.unlabelled, Trajectories) else None

    def check(self, mdp: MDP, *, counted: bool = False, pooled: bool = False) -> None:
        """Check both sets for a fit; files are read here, once.

        counted : whether counts of the unlabelled trajectories will be needed
        pooled : whether these enter the likelihood
        """
        check_trajectories(mdp, self.expert, "expert")
        if len(self.expert) == 0:
            raise ValueError("expert is empty: at least one trajectory is needed")
        if self.unlabelled is None:
            return
        files = isinstance(self.unlabelled, StreamedTrajectories)
        if files and self.expert.goals is not None:
            raise ValueError(f"expert has goals, but trajectories in files cannot have any: {IN_MEMORY}")
        if not len(self.unlabelled):
            raise ValueError(EMPTY)
        self.check_unlabelled(mdp, counted=counted, moved=pooled and self.expert.actions is None)
        if (self.expert.goals is None) != (self.unlabelled.goals is None):
            raise ValueError("expert and unlabelled must both have goals, or neither")

    def check_against(self, mdp: MDP) -> None:
        """Check both sets against the MDP only, before `counts`."""
        check_trajectories(mdp, self.expert, "expert")
        if self.unlabelled is not None:
            self.check_unlabelled(mdp, start=False, counted=True)

    def check_unlabelled(self, mdp: MDP, *, start: bool = True, counted: bool = False, moved: bool = False) -> None:
        """Check the unlabelled trajectories; those in files in the pass that gathers what a fit needs of them.

        start : whether those in memory must begin where the MDP's own start is positive, as those in files must
        counted, moved : as for `gather_statistics`
        """
        if isinstance(self.unlabelled, StreamedTrajectories):
            gather_statistics(mdp, self.unlabelled, counted=counted, moved=moved)
            return
        some: Any = self.unlabelled  # None is refused
        check_trajectories(mdp, some, "unlabelled")
        if start:
            check_start(mdp, some, "unlabelled")

    def counts(self, mdp: MDP) -> Any:
        """Return the feature counts of all trajectories, (l + n, d), each set by its own actions.

        The result is an array, or used like one (data/spill.py).
        """
        own = checked_feature_counts(mdp, self.expert, " of expert")
        if self.unlabelled is None:
            return own
        if isinstance(self.unlabelled, StreamedTrajectories):
            return stack_tables(own, gather_statistics(mdp, self.unlabelled, counted=True).counts)
        return np.concatenate([own, checked_feature_counts(mdp, self.unlabelled, " of unlabelled")])

    def first(self, mdp: MDP) -> Floats:
        """Count the trajectories that start in each state, (S,)."""
        first = np.bincount(self.expert.first, minlength=mdp.n_states).astype(np.float64)
        if isinstance(self.unlabelled, StreamedTrajectories):
            return first + gather_statistics(mdp, self.unlabelled).first
        return first if self.unlabelled is None else first + np.bincount(self.unlabelled.first, minlength=mdp.n_states)

    def chunks(self, mdp: MDP) -> Iterator[Trajectories]:
        """Yield the unlabelled trajectories; those in files as many at once as fit in memory."""
        if isinstance(self.unlabelled, StreamedTrajectories):
            yield from self.unlabelled.chunks(mdp)
        elif self.unlabelled is not None:
            yield self.unlabelled

    def penalty(self, measure: Similarity, mdp: MDP, counts: Floats) -> Floats:
        """Return M (d, d) of Eq. 5; for trajectories in files it is cached, since baselines need it too."""
        if not isinstance(self.unlabelled, StreamedTrajectories) or not isinstance(measure, Hashable):
            return measure.penalty(self.trajectories, counts)
        key = "penalty", measure, counts[: len(self.expert)].tobytes()
        return self.unlabelled.memo(mdp, key, lambda: measure.penalty(None, counts))


def training_objective(
    mdp: MDP,
    data: TrainingData,
    likelihood: str,
    *,
    entropy: str = "causal",
    weight: npt.ArrayLike | None = None,
    light: float = 0.0,
    counts: Floats | None = None,
    tilted: bool = True,
) -> Objective:
    """Return J without a penalty, of the experts and, by weighted pooling, of the unlabelled trajectories.

    likelihood : "choices" or "counts"
    weight : (l,) weights of the experts' trajectories; None: 1
    light : weight of an unlabelled trajectory; 0 leaves them out
    counts : (l + n, d) feature counts of all trajectories, or (l, d) of the experts', if known
    """
    some, n = data.expert, len(data.expert)
    if light > 0.0 and len(data) > n:
        own = np.ones(n) if weight is None else checked_weights(weight, n)
        if isinstance(data.unlabelled, StreamedTrajectories):
            known = None
            if likelihood == "counts":
                known = checked_feature_counts(mdp, some, " of expert") if counts is None else counts[:n]
            found = _statistics_with_files(mdp, some, data.unlabelled, own, light, known, alive=entropy == "causal")
            return Objective.from_statistics(mdp, found, entropy, tilted=tilted)
        some, weight = data.trajectories, np.concatenate([own, np.full(len(data) - n, light)])
    return Objective.from_trajectories(
        mdp,
        some,
        entropy,
        sample_weight=weight,
        objective=likelihood,
        counts=None if counts is None else counts[: len(some)],
        tilted=tilted,
        checked=True,
        n_expert=n,
    )


def _statistics_with_files(
    mdp: MDP,
    expert: Trajectories,
    unlabelled: StreamedTrajectories,
    own: Floats,
    light: float,
    counts: Floats | None,
    *,
    alive: bool,
) -> SufficientStatistics:
    """Return the statistics of both sets.

    counts : (l, d) of the experts, for feature matching; None for choices
    alive : whether to refuse dead ends
    """
    recorded = expert.actions is not None and unlabelled.with_actions
    others = gather_statistics(mdp, unlabelled, counted=counts is not None, moved=not recorded)
    kinds = others.kinds(recorded=recorded)
    if alive:
        check_possible(mdp, expert, len(expert))
        _check_alive(mdp, unlabelled, kinds)
    return pooled_statistics(mdp, expert, others, own, light, kinds, counts)


def _check_alive(mdp: MDP, unlabelled: StreamedTrajectories, kinds: ChoiceCounts) -> None:
    """Refuse dead ends, as `check_possible` does for trajectories in memory."""
    wrong = impossible_choices(mdp, kinds.choices(mdp))
    if wrong.any():
        who, step = next(trajectories_with_choices(mdp, unlabelled, kinds.keys[wrong], recorded=kinds.recorded))
        raise ValueError(
            f"unlabelled: trajectory {who}, step {step}: this can run into a dead end or never end, which has "
            "probability 0 in the model: make the dead end terminal, or drop the trajectory"
        )
