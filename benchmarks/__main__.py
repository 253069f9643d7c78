"""`make bench`: one table of ratios, in about two minutes."""

from __future__ import annotations

import time

from benchmarks import evaluation, fitting, lanes, overheads, routes, startup, stationary
from benchmarks.table import Row, markdown


def main() -> None:
    begin = time.perf_counter()
    rows: list[Row] = []
    for part in (evaluation, stationary, routes, overheads, startup, fitting, lanes):
        rows.extend(part.rows())
    print(markdown(rows))
    print(f"\nEverything in {time.perf_counter() - begin:.0f} s, on one thread.")


if __name__ == "__main__":
    main()
