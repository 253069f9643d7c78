"""Results of a comparison: measures of every method with intervals, paired differences and ranks.

Reads the table of results only. Runs are paired: all methods of a run saw the same trajectories. Performance, distance
and ranks are one number per run; held-out scores are log-probabilities per step over the independent units, which are
runs or single trajectories.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import rankdata

from messirl._types import Floats
from messirl.estimators.registry import EXPERT_ONLY
from messirl.inference.paired_gain import Gain, mean_per_step, paired_gain
from messirl.paper.experiments.curves import interval

Row = dict[str, Any]
EQUAL = 6  # performances are rounded to these decimals for ranks
NONE = Gain(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class MethodResult:
    """Results of one method in one cell.

    Attributes
    ----------
    method : str
        Its name in the table of methods.
    runs : int
        Number of runs with results.
    performance, distance, score : Gain
        Means over these runs, with 95 % intervals; NaN if unknown.
    over, score_over : Gain
        Paired differences of performance and score from the baseline.
    rank : float
        Mean rank; 1 is best.
    solved, cpu, converged : float
        Solved MDPs and processor seconds per run, and the share of runs that converged.
    knobs : str
        The hyperparameters that were chosen most often.
    failure : str
        Error message of the runs without results; empty if there are none.
    """

    method: str
    runs: int
    performance: Gain = NONE
    distance: Gain = NONE
    score: Gain = NONE
    over: Gain = NONE
    score_over: Gain = NONE
    rank: float = np.nan
    solved: float = np.nan
    cpu: float = np.nan
    converged: float = np.nan
    knobs: str = ""
    failure: str = ""


@dataclass(frozen=True)
class Cell:
    """All methods on one problem, with one kind of unlabelled trajectories and one number of experts.

    Attributes
    ----------
    problem, unlabelled, experts : str, str, int
        Names of the problem and the unlabelled trajectories, and number of experts.
    runs : int
        Number of runs.
    truth : bool
        Whether performance is known; otherwise methods are ranked by held-out scores.
    base : str
        The baseline that all methods are compared with.
    standings : list of MethodResult
        Results of every method, the best mean first.
    """

    problem: str
    unlabelled: str
    experts: int
    runs: int
    truth: bool
    base: str
    standings: list[MethodResult] = field(default_factory=list)

    def of(self, method: str) -> MethodResult:
        """Return the results of one method."""
        return next(one for one in self.standings if one.method == method)


def base_of(methods: Sequence[str]) -> str:
    """Return the baseline of a comparison: experts only, or the first method."""
    return EXPERT_ONLY if EXPERT_ONLY in methods else methods[0]


def cells_of(table: pa.Table, methods: Sequence[str]) -> list[Cell]:
    """Return the cells of a table of results."""
    found: dict[tuple[str, str, int], list[Row]] = {}
    for row in table.to_pylist():
        found.setdefault((row["problem"], row["unlabelled"], row["experts"]), []).append(row)
    base = base_of(methods)
    return [_cell(*key, rows, methods, base) for key, rows in found.items()]


def _cell(problem: str, unlabelled: str, experts: int, rows: list[Row], methods: Sequence[str], base: str) -> Cell:
    truth = any(not np.isnan(row["performance"]) for row in rows)
    by = {m: {row["run"]: row for row in rows if row["method"] == m and not row["failure"]} for m in methods}
    why = {m: next((row["failure"] for row in rows if row["method"] == m and row["failure"]), "") for m in methods}
    ranks = ranked(rows, methods)
    standings = [_method_result(m, by[m], by[base], why[m], float(np.mean(ranks[m]))) for m in methods]
    runs = len({row["run"] for row in rows})
    best = sorted(
        standings, key=lambda one: -np.nan_to_num((one.performance if truth else one.score).mean, nan=-np.inf)
    )
    return Cell(problem, unlabelled, experts, runs, truth, base, best)


def _method_result(method: str, mine: dict[int, Row], base: dict[int, Row], failure: str, rank: float) -> MethodResult:
    if not mine:
        return MethodResult(method, 0, rank=rank, failure=failure)
    rows, both = list(mine.values()), [run for run in mine if run in base]
    pairs = ([mine[run] for run in both], [base[run] for run in both])
    logs, steps = _units(rows)
    score = mean_per_step(logs, steps).gain() if steps.size else NONE
    gained = NONE
    if both and steps.size:
        (one, made), (other, _) = (_units(some) for some in pairs)
        gained = paired_gain(one, other, made)
    return MethodResult(
        method,
        len(mine),
        _mean(rows, "performance"),
        _mean(rows, "distance"),
        score,
        _difference(*pairs),
        gained,
        rank,
        float(np.mean([row["solved"] for row in rows])),
        float(np.mean([row["cpu"] for row in rows])),
        float(np.mean([row["converged"] for row in rows])),
        Counter(row["knobs"] for row in rows).most_common(1)[0][0],
        failure,
    )


def _mean(rows: Sequence[Row], name: str) -> Gain:
    return _gain([row[name] for row in rows])


def _difference(mine: Sequence[Row], others: Sequence[Row]) -> Gain:
    return _gain([a["performance"] - b["performance"] for a, b in zip(mine, others, strict=True)])


def _gain(values: Sequence[float]) -> Gain:
    if not values or np.isnan(values).any():
        return NONE
    found = interval(np.array(values, dtype=np.float64))
    ends = (found.low, found.high) if found.n > 1 else (np.nan, np.nan)
    return Gain(found.mean, *ends)


def _units(rows: Sequence[Row]) -> tuple[Floats, Any]:
    """Return log-probabilities of the held-out units in some runs, and the steps of each unit."""
    logs, steps = (" ".join(row[name] for row in rows).split() for name in ("logs", "steps"))
    return np.array(logs, dtype=np.float64), np.array(steps, dtype=np.int64)


def ranked(rows: Iterable[Row], methods: Sequence[str]) -> dict[str, list[float]]:
    """Return the rank of every method in each run; 1 is best, ties share their mean, failed methods come last."""
    runs: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows:
        place = (row["problem"], row["unlabelled"], row["experts"], row["run"])
        value = row["performance"]
        if np.isnan(value) and row["logs"]:
            logs, steps = _units([row])
            value = float(logs.sum() / max(steps.sum(), 1))
        runs.setdefault(place, {})[row["method"]] = -np.inf if np.isnan(value) else value
    out: dict[str, list[float]] = {method: [] for method in methods}
    for place in sorted(runs):
        values = np.round([runs[place].get(method, -np.inf) for method in methods], EQUAL)
        for method, rank in zip(methods, rankdata(-values), strict=True):
            out[method].append(float(rank))
    return out


def mean_ranks(table: pa.Table, methods: Sequence[str], where: Callable[[Row], bool]) -> dict[str, Gain]:
    """Return the mean rank of each method over the cells of some rows, with an interval over runs."""
    rows = [row for row in table.to_pylist() if where(row)]
    runs = sorted({row["run"] for row in rows})
    every = [ranked([row for row in rows if row["run"] == run], methods) for run in runs]
    return {method: _gain([float(np.mean(one[method])) for one in every]) for method in methods}


COLUMNS = (
    *("problem", "unlabelled", "experts", "method", "runs", "rank", "performance", "low", "high"),
    *("over_alone", "over_low", "over_high", "score", "score_low", "score_high", "distance"),
    *("solved", "cpu", "converged", "knobs", "failure"),
)


def as_csv(cells: Sequence[Cell]) -> str:
    """Format the cells as CSV, with one line per cell and method."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in cells:
        for one in cell.standings:
            numbers = [one.rank, *_ends(one.performance), *_ends(one.over), *_ends(one.score), one.distance.mean]
            numbers += [one.solved, one.cpu, one.converged]
            shown = ["" if np.isnan(x) else f"{x:.4g}" for x in numbers]
            place = (cell.problem, cell.unlabelled, cell.experts, one.method, one.runs)
            writer.writerow([*place, *shown, one.knobs, one.failure])
    return text.getvalue()


def _ends(gain: Gain) -> list[float]:
    return [gain.mean, gain.low, gain.high]
