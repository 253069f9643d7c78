"""Tables of earlier runs: written as Parquet with their commit, and compared by ratio.

python -m benchmarks                     writes out/bench/COMMIT.parquet
python -m benchmarks.stored ONE OTHER    what changed from one stored table to another
python -m benchmarks.stored              `make bench-check`: the newest table against benchmarks/baseline.csv
python -m benchmarks.stored keep         make the newest table the baseline
"""

from __future__ import annotations

import datetime
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

import messirl
from benchmarks.table import Row
from messirl._files import atomic_path
from messirl.paper.experiments.result_store import commit

HOME = Path(__file__).resolve().parent
FOLDER = HOME.parent / "out" / "bench"
BASELINE = HOME / "baseline.csv"
KEPT = 2.0 / 3.0  # a ratio may fall to so much of what it was


def key_of(what: str) -> str:
    """What a row is known by in every run: without the counts in it that a better solver changes."""
    return re.sub(r"\d+ (sweeps|evaluations)\b", r"\1", what)


def write(rows: list[Row], folder: Path = FOLDER) -> Path:
    """Store a table, one row per line, each with where it comes from."""
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    origin = {
        "commit": commit(),
        "version": messirl.__version__,
        "time": now.isoformat(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "processor": f"{platform.machine()} {numba.config.CPU_NAME or _instructions()}",
    }
    lines = [
        {
            "key": key_of(row.what),
            "what": row.what,
            "messirl": row.ours,
            "against": row.other,
            "ratio": row.ratio,
            "target": row.target,
            **origin,
        }
        for row in rows
    ]
    numbers = {"ratio": pa.float64(), "target": pa.float64()}
    schema = pa.schema([(name, numbers.get(name, pa.string())) for name in lines[0]])
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{now:%Y%m%dT%H%M%S}-{origin['commit']}.parquet"
    with atomic_path(place) as part:
        pq.write_table(pa.Table.from_pylist(lines, schema=schema), part)
    return place


def _instructions() -> str:
    """The widest vectors of this processor, which decide most of a ratio."""
    known = np._core._multiarray_umath.__cpu_features__
    return next((name for name in ("AVX512F", "AVX2", "SSE42", "ASIMD") if known.get(name)), "unknown")


def read(place: Path) -> dict[str, float]:
    """The ratios of a stored table or of a baseline, by key."""
    table = pc.read_csv(place) if place.suffix == ".csv" else pq.read_table(place)
    pairs = zip(table["key"].to_pylist(), table["ratio"].to_pylist(), strict=True)
    return {key: float(ratio) for key, ratio in pairs if ratio is not None}


def keep(place: Path, baseline: Path = BASELINE) -> Path:
    """Make the ratios of a stored table the baseline."""
    table = pq.read_table(place, columns=["key", "ratio", "processor", "commit"])
    with atomic_path(baseline) as part:
        pc.write_csv(table.filter(table["ratio"].is_valid()), part)
    return baseline


def newest(folder: Path = FOLDER) -> Path:
    """The table that was stored last."""
    found = sorted(folder.glob("*.parquet"))
    if not found:
        raise SystemExit(f"there is no table in {folder}: run make bench first")
    return found[-1]


@dataclass(frozen=True)
class Change:
    """A row in two tables."""

    key: str
    before: float
    after: float

    @property
    def fell(self) -> bool:
        return self.after < KEPT * self.before

    def __str__(self) -> str:
        mark = "  fell by more than a third" if self.fell else ""
        return f"{self.before:>8.3g}× {self.after:>8.3g}× {self.after / self.before - 1.0:>+8.0%}  {self.key}{mark}"


def changes(before: dict[str, float], after: dict[str, float]) -> tuple[list[Change], list[str]]:
    """The rows of both tables, and the keys that the later one lacks."""
    both = [Change(key, ratio, after[key]) for key, ratio in before.items() if key in after]
    return both, [key for key in before if key not in after]


def check(before: Path, after: Path) -> int:
    """Print what changed; 1 if a ratio fell by more than a third, or if none can be compared."""
    both, lost = changes(read(before), read(after))
    print(f"{before.name} to {after.name}\n\n{'before':>9} {'after':>9} {'change':>8}")
    print("\n".join(map(str, both)))
    for key in lost:
        print(f"not measured: {key}")
    fallen = [change for change in both if change.fell]
    print(f"\n{len(fallen)} of {len(both)} ratios fell by more than a third.")
    return int(bool(fallen) or not both)


def main(words: list[str]) -> int:
    if words == ["keep"]:
        print(f"kept as {keep(newest())}")
        return 0
    if len(words) not in (0, 2):
        raise SystemExit(__doc__)
    return check(*map(Path, words)) if words else check(BASELINE, newest())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
