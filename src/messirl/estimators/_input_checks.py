"""What a method is given to learn from, checked: whose trajectories there are, and what they must have."""

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
    """Check both sets for the method `who`, which knows no goals, and return where trajectories begin, (S,).

    needed : what the method needs unlabelled trajectories for, and what to do about it, if it cannot do without them
    """
    refuse_streamed(unlabelled, who, "looks at every trajectory")
    for name, some in {"expert": expert, **({} if unlabelled is None else {"unlabelled": unlabelled})}.items():
        check_trajectories(mdp, some, name)
        if len(some) == 0 or some.lengths.max() == 1:
            what = "is empty" if len(some) == 0 else "makes no step"
            raise ValueError(f"{name} {what}: at least one trajectory with a step is needed")
        if some.goals is not None:
            raise ValueError(
                f"{who} knows no goals, and the trajectories of {name} have them: fit those of one goal at a time, "
                "without goals, on an MDP where that goal is terminal"
            )
        check_start(mdp, some, name)
    if needed and unlabelled is None:
        raise ValueError(f"{who} {needed}")
    if mdp.start is not None:
        return mdp.start
    return np.bincount(expert.first, minlength=mdp.n_states) / len(expert)


def check_bounded(who: str, mdp: MDP) -> None:
    """Refuse problems where a reward may make some policy infinitely good."""
    if mdp.must_end:
        raise ValueError(
            f"{who} looks for the best policy under rewards of any sign, and with discount=1 and no horizon going on "
            "for ever may be infinitely good: give the MDP a discount below 1, or a horizon"
        )


def mean_counts(mdp: MDP, expert: Trajectories) -> Floats:
    """f* = mean feature counts of the expert's trajectories, (d,), which were checked already."""
    return np.asarray(checked_feature_counts(mdp, expert, " of expert").mean(axis=0))
