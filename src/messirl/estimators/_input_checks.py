"""Input checks of the classic methods: non-empty sets of trajectories, no goals, bounded problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.feature_counts import checked_feature_counts
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._streaming import refuse_streamed
from messirl.objective import check_start


def read_sets(who: str, mdp: MDP, expert: Trajectories, unlabelled: Any = None, *, needed: str = "") -> Floats:
    """Check both sets for the method `who`, which does not support goals, and return the start distribution (S,).

    needed : the purpose of unlabelled trajectories and a remedy, for the error message of a method that requires them
    """
    refuse_streamed(unlabelled, who, "uses every single trajectory")
    for name, some in {"expert": expert, **({} if unlabelled is None else {"unlabelled": unlabelled})}.items():
        check_trajectories(mdp, some, name)
        if len(some) == 0 or some.lengths.max() == 1:
            what = "is empty" if len(some) == 0 else "makes no step"
            raise ValueError(f"{name} {what}: at least one trajectory with a step is needed")
        if some.goals is not None:
            raise ValueError(
                f"{who} does not support goals, and the trajectories of {name} have them: fit one goal at a time, "
                "without goals, on an MDP where that goal is terminal"
            )
        check_start(mdp, some, name)
    if needed and unlabelled is None:
        raise ValueError(f"{who} {needed}")
    if mdp.start is not None:
        return mdp.start
    return np.bincount(expert.first, minlength=mdp.n_states) / len(expert)


def check_bounded(who: str, mdp: MDP) -> None:
    """Refuse problems where some reward gives a policy infinite value."""
    if mdp.must_end:
        raise ValueError(
            f"{who} computes optimal policies under rewards of any sign, and with discount=1 and no horizon an endless "
            "trajectory may have infinite value: give the MDP a discount below 1, or a horizon"
        )


def mean_counts(mdp: MDP, expert: Trajectories) -> Floats:
    """Return f*, the mean feature counts (d,) of the expert's trajectories, which were checked already."""
    return np.asarray(checked_feature_counts(mdp, expert, " of expert").mean(axis=0))
