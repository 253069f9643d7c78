"""The option `--by`, and results by group as text."""

from __future__ import annotations

import math

from messirl._formatting import format_columns, format_nats, format_nats_interval, format_p_value
from messirl.app.cli._parser import StoreOnce, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_by(group: Any, what: str) -> None:
    """Add the option that breaks results down by a column."""
    group.add_argument(
        "--by", action=StoreOnce, metavar="COLUMN", help=f"{what}, by the values of a column of trajectory_meta"
    )


def by_lines(found: list[dict[str, Any]]) -> list[str]:
    """Format a table for every quantity, with a sentence on its significant differences."""
    lines = list[str]()
    for one in found:
        groups = one["groups"] + ([] if one["whole"] is None else [one["whole"]])
        columns = {
            "trajectories": [f"{group['trajectories']:,}" for group in groups],
            one["measure"]: [format_nats(group["value"]["mean"], signed=one["measure"] != "score") for group in groups],
            "95 % interval": [_ends(group["value"]) for group in groups],
            "p, Holm": [_p(group["value_p"]) for group in groups],
            "vs other groups": [_mean(group["difference"]) for group in groups],
            "95 % interval ": [_ends(group["difference"]) for group in groups],
            "p, Holm ": [_p(group["p"]) for group in groups],
        }
        columns = {head: cells for head, cells in columns.items() if any(cells)}
        names = [one_line(one["column"]), *(one_line(group["name"]) for group in groups)]
        table = [line.rstrip() for line in format_columns(names, columns)]
        lines += [*table, one_line(one["sentence"]), ""]
    return lines


def _mean(gain: dict[str, float] | None) -> str:
    return "" if gain is None else format_nats(gain["mean"], signed=True)


def _p(value: float) -> str:
    return "" if math.isnan(value) else format_p_value(value)


def _ends(gain: dict[str, float] | None) -> str:
    if gain is None or not math.isfinite(gain["low"]):
        return ""
    return format_nats_interval(gain["low"], gain["high"])
