"""`make bench`: one table of ratios, in a few minutes, kept in out/bench."""

from __future__ import annotations

import time

from benchmarks import evaluation, fitting, growth, lanes, links, overheads, routes, startup, stationary, stored
from benchmarks.table import Row, markdown


def main() -> None:
    begin = time.perf_counter()
    rows: list[Row] = []
    for part in (evaluation, stationary, routes, links, overheads, startup, fitting, lanes, growth):
        rows.extend(part.rows())
    print(markdown(rows))
    print(f"\nEverything in {time.perf_counter() - begin:.0f} s, on one thread; kept as {stored.write(rows)}.")


if __name__ == "__main__":
    main()
