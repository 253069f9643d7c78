"""Results as curves: performance by run, for paired comparisons. Reads the table of results only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from messirl._types import Floats

LEVEL = 0.95
NOTHING = 1e-12  # performances closer than this are equal


@dataclass(frozen=True)
class Interval:
    """A mean over runs with its 95 % interval (Student's t)."""

    mean: float
    low: float
    high: float
    n: int


def interval(values: Floats) -> Interval:
    """Return mean and 95 % interval of one number per run; rounding errors count as zero."""
    values = np.where(np.abs(values) > NOTHING, values, 0.0)
    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Interval(mean, -np.inf, np.inf, n)
    half = float(stats.t.ppf(0.5 + LEVEL / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def format_interval(found: Interval) -> str:
    """Format a difference as mean [low, high]."""
    return f"{found.mean:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


@dataclass(frozen=True)
class Curve:
    """Performance (points, runs) of one method over the values of x, and its ‖θ‖∞."""

    x: Floats
    performance: Floats
    theta_norm: Floats

    def at(self, x: float) -> Floats:
        """Return the performance of every run at one x."""
        return np.asarray(self.performance[np.flatnonzero(self.x == x)[0]])

    @property
    def last(self) -> Floats:
        """Performance at the last point, one number per run."""
        return np.asarray(self.performance[-1])


class Curves(dict[tuple[str, str, str], Curve]):
    """All curves of a results table, by domain, figure and method."""

    def __init__(self, table: pa.Table) -> None:
        columns: dict[str, Any] = {
            name: np.asarray(
                table[name].to_pylist() if pa.types.is_string(table.schema.field(name).type) else table[name]
            )
            for name in ("domain", "figure", "method", "x", "run", "performance", "theta_norm")
        }
        super().__init__()
        keys = np.stack([columns[name] for name in ("domain", "figure", "method")], axis=1)
        for key in {tuple(row) for row in keys.tolist()}:
            here = (keys == np.array(key)).all(axis=1)
            self[key] = _curve({name: column[here] for name, column in columns.items()})

    @property
    def domains(self) -> list[str]:
        """Domains in the table."""
        return sorted({key[0] for key in self})

    def methods(self, domain: str, figure: str) -> list[str]:
        """Return the methods of one figure of one domain."""
        return sorted(m for d, f, m in self if d == domain and f == figure)


def _curve(columns: dict[str, Any]) -> Curve:
    x, column = np.unique(columns["x"], return_inverse=True)
    runs, row = np.unique(columns["run"], return_inverse=True)
    out = []
    for name in ("performance", "theta_norm"):
        grid = np.full((len(x), len(runs)), np.nan)
        grid[column, row] = columns[name]
        # A training that stopped early, at the optimum, keeps its last value.
        for k in range(1, len(x)):
            grid[k] = np.where(np.isnan(grid[k]), grid[k - 1], grid[k])
        out.append(grid)
    return Curve(x, *out)
