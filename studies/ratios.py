"""Do intervals of ratios of weights cover the truth? Random moves, θ known, the model right, 95 % intervals.

python -m studies.ratios: the problem of studies.standard_errors, trajectories of 20 states drawn from the soft policy
of θ*, fitted by objective="choices"; how often the true ratio of two weights lies in the interval by the delta method
(with the covariance of the outer product, the Hessian and the sandwich) and in Fieller's (sandwich).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl import estimation_table, weight_ratio
from studies.common import draws, options, write
from studies.standard_errors import ERRORS, TRUTH, experts, fitted

SIZES = (25, 100, 400)
RATIOS = ((0, 1), (2, 1), (1, 0))


def one(n: int, seed: int) -> list[dict[str, Any]]:
    expert = experts(n, np.random.default_rng([n, seed]), False)
    table, rows = estimation_table(fitted(expert), expert), []
    for a, b in RATIOS:
        found, truth = weight_ratio(table, table.names[a], table.names[b]), TRUTH[a] / TRUTH[b]
        covered = {kind: abs(found.value - truth) < 1.96 * getattr(found, error) for kind, error in ERRORS.items()}
        covered["Fieller"] = found.fieller_low < truth < found.fieller_high
        rows.append({"ratio": f"theta {a} / theta {b}", "trajectories": n, "t": abs(table.t[b]), **covered})
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=2000)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(n, seed) for n in SIZES for seed in seeds], arguments.jobs)
    summary = []
    for n in SIZES:
        for ratio in sorted({row["ratio"] for row in rows}):
            some = [row for row in rows if (row["ratio"], row["trajectories"]) == (ratio, n)]
            shares = {kind: float(np.mean([row[kind] for row in some])) for kind in (*ERRORS, "Fieller")}
            t = float(np.median([row["t"] for row in some]))
            summary.append({"ratio": ratio, "trajectories": n, "runs": len(some), "t of the denominator": t, **shares})
            print(" ".join(str(value) for value in summary[-1].values()))
    write(summary, arguments.out / "ratios.csv")


if __name__ == "__main__":
    main()
