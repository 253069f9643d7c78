"""What each group of unlabelled trajectories is worth on its own to held-out experts.

The fixed default (light pooling with a light ridge, see selection/decision_rule.py)
is fitted with the trajectories of one
group and no others, on the same splits of the experts as all the rest, and compared with the same ridge on the experts
alone: paired by held-out trajectory or, where whole groups of experts are held out, by split. The ridge is the same for
all, in the units of all trajectories. Nothing is chosen by the data, so that intervals need no correction for a choice.
A trajectory counts as much in every group, so that a group of many counts more than one of few: that is what using it
alone would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from messirl._defaults import CV, SEED
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators.registry import LIGHT, LIGHT_RIDGE
from messirl.inference.group_breakdown import Breakdown, by_group, paired_groups
from messirl.selection.candidates import Candidate
from messirl.selection.cross_validation import NothingHeldOut, cross_validate, folds
from messirl.similarity import CompleteGraph

USING = Candidate("LightPoolingStd", LIGHT_RIDGE, weight=LIGHT)
ALONE = Candidate("RidgeStd", LIGHT_RIDGE)
TOL = 1e-4  # of fits that are only compared


def use_by_group(
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
    """What held-out experts gain from each group of unlabelled trajectories alone: "tourists help, schools hurt".

    labels : (u,) the group of each unlabelled trajectory
    column, order : what the groups are of, and their order; None: sorted
    expert_labels : (l,) the group of each expert; then what all unlabelled trajectories together gain for each of these
        groups, and how well the experts of each are predicted, are found as well
    yardstick : similarity that the strength of the ridge is measured by, as in `Bench`. None: the complete graph
    cv, groups, random_state : of the splits, as for `splits`
    progress : called with (done, all) after each group
    executor : runs the splits (see execution.run); None: this process
    options : of the `Bench` that fits, such as theta_max
    """
    label = np.asarray(labels)
    if label.shape != (len(unlabelled),):
        raise ValueError(f"labels has shape {label.shape}: give one for each of the {len(unlabelled)} trajectories")
    if len(expert) < 2:
        raise NothingHeldOut("one expert trajectory: no other can be held out to judge groups by")
    names = [name for name in (np.unique(label).tolist() if order is None else order) if (label == name).any()]
    held = [pair for pair in folds(len(expert), cv, groups, random_state) if (expert.lengths[pair[1]] > 1).any()]
    pairs = [(expert[train], expert[test]) for train, test in held]
    asked: dict[str, Any] = {"yardstick": CompleteGraph() if yardstick is None else yardstick, "tol": TOL, **options}
    asked |= {"expert": expert, "executor": executor}

    together = cross_validate(mdp, [ALONE, USING], pairs, unlabelled, **asked)
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
        f"What held-out experts gain, in nats a step, where the unlabelled trajectories of one group and no others are "
        f"used ({USING}), over the experts alone ({ALONE}); paired by {paired}. A group of many counts more than one "
        "of few."
    )
    out = [Breakdown("use", column, "Using each group alone", told, found, whole[0])]
    if expert_labels is None:
        return out
    rows = np.concatenate([test for _, test in held])
    own = np.asarray(expert_labels)[rows].tolist()
    if groups is not None and np.array_equal(np.asarray(groups)[rows], own):
        unit = None  # of one individual there are its trajectories alone
    if len(set(own)) > 1:
        scores = by_group(alone, together.steps, own, order, unit)
        told = f"Log-probability a step of held-out experts under a fit to the other experts alone ({ALONE})."
        out.append(Breakdown("score", column, "Score of held-out experts", told, scores))
        gains = by_group(using - alone, together.steps, own, order, unit, zero=True)
        told = (
            f"What held-out experts of each group gain, in nats a step, if all unlabelled trajectories are used "
            f"({USING}), over the experts alone ({ALONE})."
        )
        out.append(Breakdown("gain", column, "Using all of them, for experts", told, gains, whole[0]))
    return out
