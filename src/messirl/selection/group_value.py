"""Cross-validated gain from each group of unlabelled trajectories on its own.

The fixed default (weighted pooling with a light ridge, see selection/decision_rule.py)
is fitted with the trajectories of one
group only, on the same splits of the experts as everything else. It is compared with the same ridge on the experts
only: paired by held-out trajectory or, if whole groups of experts are held out, by split. The ridge is the same for
all, in the units of all trajectories. Nothing is chosen by the data, so intervals need no correction for a choice.
Every trajectory has the same weight, so a large group counts more than a small one, as it would if used alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._parameters import CV, SEED
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators.registry import DEFAULT_POOLING_RIDGE, DEFAULT_POOLING_WEIGHT
from messirl.inference.group_breakdown import Breakdown, by_group, paired_groups
from messirl.selection.candidates import Candidate
from messirl.selection.cross_validation import NothingHeldOut, cross_validate, folds
from messirl.similarity import CompleteGraph

USING = Candidate("LightPoolingStd", DEFAULT_POOLING_RIDGE, weight=DEFAULT_POOLING_WEIGHT)
EXPERT_ONLY_CANDIDATE = Candidate("RidgeStd", DEFAULT_POOLING_RIDGE)
TOL = 1e-4  # of fits that are only compared


def gain_by_group(
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories,
    labels: Sequence[str],
    *,
    column: str = "group",
    order: Sequence[str] | None = None,
    expert_labels: Sequence[str] | None = None,
    yardstick: Any = None,
    cv: int = CV,
    groups: npt.ArrayLike | None = None,
    random_state: Any = SEED,
    progress: Any = None,
    executor: Any = None,
    **options: Any,
) -> list[Breakdown]:
    """Return what held-out experts gain from each group of unlabelled trajectories alone.

    labels : (u,) the group of each unlabelled trajectory
    column, order : the column that makes the groups, and their order; None: sorted
    expert_labels : (l,) the group of each expert; if given, the result also has the score of the experts of each group,
        and their gain from all unlabelled trajectories together
    yardstick : similarity that scales the strength of the ridge, as in `Bench`. None: the complete graph
    cv, groups, random_state : for the splits, as for `splits`
    progress : called with (done, all) after each group
    executor : runs the splits (see execution.run); None: this process
    options : for the `Bench` that fits, such as theta_max
    """
    label = np.asarray(labels)
    if label.shape != (len(unlabelled),):
        raise ValueError(f"labels has shape {label.shape}: give one for each of the {len(unlabelled)} trajectories")
    if len(expert) < 2:
        raise NothingHeldOut("one expert trajectory: no other can be held out to judge groups by; give at least two")
    names = [name for name in (np.unique(label).tolist() if order is None else order) if (label == name).any()]
    held = [pair for pair in folds(len(expert), cv, groups, random_state) if (expert.lengths[pair[1]] > 1).any()]
    pairs = [(expert[train], expert[test]) for train, test in held]
    asked: dict[str, Any] = {"yardstick": CompleteGraph() if yardstick is None else yardstick, "tol": TOL, **options}
    asked |= {"expert": expert, "executor": executor}

    together = cross_validate(mdp, [EXPERT_ONLY_CANDIDATE, USING], pairs, unlabelled, **asked)
    each = []
    for k, name in enumerate(names):
        each.append(cross_validate(mdp, [USING], pairs, unlabelled, pooled=label == name, **asked).logs[0])
        if progress is not None:
            progress(k + 1, len(names))
    unit = None if groups is None else np.repeat(np.arange(len(held)), [test.size for _, test in held])
    steps = unlabelled.lengths - 1
    sizes = [(int((label == name).sum()), int(steps[label == name].sum())) for name in names]
    alone, using = together.logs
    found = paired_groups(names, sizes, np.array(each), alone, together.steps, unit)
    whole = paired_groups(
        ["all together"], [(len(unlabelled), int(steps.sum()))], using[None], alone, together.steps, unit
    )
    paired = "held-out trajectory" if groups is None else "split, which holds out whole groups of experts"
    told = (
        f"The gain on held-out experts, in nats per step, from the unlabelled trajectories of one group only ({USING}) "
        f"over the experts only ({EXPERT_ONLY_CANDIDATE}); paired by {paired}. A large group counts more than "
        "a small one."
    )
    out = [Breakdown("use", column, "Using each group alone", told, found, whole[0])]
    if expert_labels is None:
        return out
    rows = np.concatenate([test for _, test in held])
    own = np.asarray(expert_labels)[rows].tolist()
    if groups is not None and np.array_equal(np.asarray(groups)[rows], own):
        unit = None  # each group is one individual, whose trajectories are the units
    if len(set(own)) > 1:
        scores = by_group(alone, together.steps, own, order, unit)
        told = (
            f"Log-probability per step of held-out experts under a fit to the other experts only "
            f"({EXPERT_ONLY_CANDIDATE})."
        )
        out.append(Breakdown("score", column, "Score of held-out experts", told, scores))
        gains = by_group(using - alone, together.steps, own, order, unit, zero=True)
        told = (
            f"The gain on held-out experts of each group, in nats per step, from all unlabelled trajectories ({USING}) "
            f"over the experts only ({EXPERT_ONLY_CANDIDATE})."
        )
        out.append(Breakdown("gain", column, "Gain from all unlabelled ones, for experts", told, gains, whole[0]))
    return out
