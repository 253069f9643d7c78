"""Groups of trajectories by a column of the problem's `meta`, and results by group.

A column of words, truth values or few numbers makes one group per value. A column of many numbers is cut into quarters
with equally many trajectories, named by their ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from messirl._types import Array, Floats
from messirl.app.workflow.split import DividedProblem
from messirl.app.workflow.watcher import Watcher
from messirl.data.filters import empty_cells
from messirl.inference.group_breakdown import Breakdown, by_group
from messirl.inference.standard_errors import FEW_CLUSTERS, few_clusters
from messirl.selection.expert_agreement import ExpertAgreement

MOST = 20  # groups at most
EMPTY = "(empty)"
TOGETHER = "the cross-validated scores that decide the choice are of all experts together, not divided by {column}"
DIGITS = (4, 6, 9, 12, 15, 17)  # significant digits to try until the names of groups differ


@dataclass(frozen=True)
class Grouping:
    """Groups by the values of a column.

    Attributes
    ----------
    column : str
        The column.
    labels : list of str
        The group of every trajectory of the problem; "" for those that are in no part.
    order : list of str
        The groups, in the order of their values.
    cluster : str or None
        The column of individuals, whose trajectories are dependent, if any. None if this is `column` itself, since each
        group is then one individual.
    """

    column: str
    labels: list[str]
    order: list[str]
    cluster: str | None = None

    def of(self, parts: DividedProblem, part: str) -> list[str]:
        """Return the group of every trajectory of a part."""
        return [self.labels[row] for row in parts.rows[part]]


def make_grouping(parts: DividedProblem, column: str | None, cluster: str | None, watcher: Watcher) -> Grouping | None:
    """Return the groups by the column of `by`; None without one."""
    if column is None:
        return None
    values = parts.column("`by`", column)
    used = np.unique(np.concatenate([rows for rows in parts.rows.values() if rows is not None]))
    names, order, cut = named_groups(column, values[used])
    if cut:
        watcher.note(f"`by` {column} has many different numbers and is cut into quarters: {', '.join(order)}")
    labels = [""] * len(values)
    for row, name in zip(used.tolist(), names, strict=True):
        labels[row] = name
    return Grouping(column, labels, order, None if cluster == column else cluster)


def named_groups(column: str, values: Array) -> tuple[list[str], list[str], bool]:
    """Return the group of every entry of a column, the ordered groups, and whether numbers were cut into quarters."""
    given = np.asarray(values)
    empty = empty_cells(given)
    known = given[~empty]
    if known.dtype == object and known.size and not isinstance(known[0], str):
        known = np.array(known.tolist())
    distinct = np.unique(known.astype(str)) if known.dtype == object else np.unique(known)
    cut = distinct.size > MOST and known.dtype.kind in "iuf"
    if cut:
        names, order = _quarters(known.astype(np.float64))
    elif distinct.size > MOST:
        raise ValueError(
            f"`by` {column} has {distinct.size} different values, but at most {MOST} can be compared: use a column "
            "with fewer values"
        )
    else:
        order = _texts(distinct)
        names = [order[k] for k in np.searchsorted(distinct, known.astype(distinct.dtype))]
    none = EMPTY
    while none in order:  # a value of the column has this name
        none = f"({none})"
    rest = iter(names)
    return [none if missing else next(rest) for missing in empty], [*order, *([none] if empty.any() else [])], cut


def _quarters(numbers: Floats) -> tuple[list[str], list[str]]:
    """Return up to four groups, as equal in number as ties allow, named by their smallest and largest value."""
    cuts = np.unique(np.quantile(numbers, [0.25, 0.5, 0.75], method="inverted_cdf"))
    _, part = np.unique(np.searchsorted(cuts, numbers, side="left"), return_inverse=True)
    ends = [(numbers[part == k].min(), numbers[part == k].max()) for k in range(part.max() + 1)]
    order = _unlike([[f"{low:.{digits}g} to {high:.{digits}g}" for low, high in ends] for digits in DIGITS])
    return [order[k] for k in part.tolist()], order


def _texts(values: Array) -> list[str]:
    """Return names of different values: numbers with enough digits to differ."""
    if values.dtype.kind != "f":
        return [str(value) for value in values]
    return _unlike([[f"{value:.{digits}g}" for value in values] for digits in DIGITS if digits >= 6])


def _unlike(ways: list[list[str]]) -> list[str]:
    """Return the first of several lists of names in which all names differ, else the last."""
    return next((names for names in ways if len(set(names)) == len(names)), ways[-1])


def scores_by_group(
    by: Grouping, parts: DividedProblem, logs: Floats, alone: Floats | None = None, *, held_out: bool
) -> list[Breakdown]:
    """Return the scores of the trajectories of each group, and the gain over a fit to the experts only.

    logs, alone : (n,) log-probabilities of the held-out or else of the expert's trajectories under the two fits
    """
    part = "test" if held_out else "expert"
    some = parts.test if held_out else parts.expert
    assert some is not None
    labels, cluster = by.of(parts, part), parts.groups(by.cluster, part)
    steps = some.lengths - 1
    title = "Score of held-out trajectories" if held_out else "Score of the expert trajectories"
    told = "Log-probability per step under the fitted model" + (
        "." if held_out else ", on the trajectories it was fitted to: a measure of fit, not of prediction."
    )
    out = [Breakdown("score", by.column, title, told, by_group(logs, steps, labels, by.order, cluster))]
    if alone is not None:
        with np.errstate(invalid="ignore"):
            gains = by_group(logs - alone, steps, labels, by.order, cluster, zero=True)
        told = (
            "The gain of the fitted model over MaxEnt-IRL on the experts only, in nats per step; paired by trajectory."
        )
        out.append(Breakdown("gain", by.column, "Gain over the experts only", told, gains))
    return out


def agreement_by_group(by: Grouping, parts: DividedProblem, found: ExpertAgreement) -> Breakdown:
    """Return the agreement of the unlabelled trajectories of each group with the expert policy."""
    values = np.asarray(found.unlabelled)
    moving = (parts.unlabelled.lengths > 1).astype(np.int64)  # each trajectory has weight 1, as in the mean of all
    cluster = parts.groups(by.cluster, "unlabelled")
    totals, own = np.where(moving > 0, values, 0.0), by.of(parts, "unlabelled")
    groups = by_group(totals, moving, own, by.order, cluster, zero=True)
    steps, labels = parts.unlabelled.lengths - 1, np.array(own)
    groups = [replace(group, steps=int(steps[labels == group.name].sum())) for group in groups]
    told = (
        "How much better a fit to the experts only explains unlabelled trajectories than the uniform policy does, in "
        f"nats per step, on average over trajectories. Held-out experts have {found.expert:+.3f}. Intervals do not "
        "include the uncertainty of this fit."
    )
    return Breakdown("likeness", by.column, "Agreement with the expert policy", told, groups)


def few_expert_warnings(column: str | None, parts: DividedProblem) -> list[str]:
    """Return warnings about intervals that rest on few experts."""
    n = len(parts.expert)
    if column is not None:
        return cluster_warnings(column, parts)
    return [few_clusters(n, grouped=False)] if 1 < n < FEW_CLUSTERS else []


def cluster_warnings(column: str | None, parts: DividedProblem) -> list[str]:
    """Return warnings about intervals by individual: few groups, or groups in both `expert` and `test`."""
    if column is None:
        return []
    found = {name: parts.groups(column, name) for name in ("expert", "test")}
    out = []
    for name, labels in found.items():
        many = len(set(labels or ()))
        if labels is not None and many < FEW_CLUSTERS:
            values = "one value" if many == 1 else f"{many} different values"
            out.append(
                f"the {name} trajectories have {values} of {column}: intervals from fewer than {FEW_CLUSTERS} "
                "groups are wide and approximate"
            )
    both = set(found["expert"] or ()) & set(found["test"] or ())
    if both:
        out.append(
            f"{len(both)} of the values of {column} are in both `expert` and `test`: their scores say little about "
            "new individuals"
        )
    return out
