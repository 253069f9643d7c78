"""Do intervals of ratios of weights cover the truth? Trips through a town, θ known, 95 % intervals of each kind.

python -m studies.ratios: trips of the commuters of `messirl example roads`, drawn from the model itself, from anywhere
to four goals; how often the true ratio lies in the interval by the delta method (with the covariance of the outer
product, the Hessian and the sandwich) and in Fieller's (sandwich). Two ratios: minutes by toll, and toll by left turns,
whose denominator is the least certain weight.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from messirl import MDP, MaxEntIRL, estimation_table, weight_ratio
from messirl.synthetic.roads import THETA, roads, trips
from studies.common import draws, options, write

SIZES = (60, 120, 240)
RATIOS = (("g_minutes", "g_toll"), ("g_toll", "g_left"))
ERRORS = {"outer product": "outer_std_error", "Hessian": "std_error", "sandwich": "robust_std_error"}
TRUTH = THETA["commuter"]


@cache
def town() -> MDP:
    return roads().problem.mdp


def one(n: int, seed: int) -> list[dict[str, Any]]:
    random = np.random.default_rng([n, seed])
    expert = trips(town(), TRUTH, n, random)
    model = MaxEntIRL(theta_max=None, theta_init=list(TRUTH.values())).fit(town(), expert)
    table, rows = estimation_table(model, expert), []
    for a, b in RATIOS:
        found, truth = weight_ratio(table, a, b), TRUTH[a] / TRUTH[b]
        gap = abs(found.value - truth)
        covered = {kind: gap < 1.96 * getattr(found, error) for kind, error in ERRORS.items()}
        covered["Fieller"] = found.fieller_low < truth < found.fieller_high
        rows.append({"ratio": found.name, "trips": n, "t": table.robust_t[table.names.index(b)], **covered})
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=2000)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(n, seed) for n in SIZES for seed in seeds], arguments.jobs)
    summary = []
    for a, b in RATIOS:
        for n in SIZES:
            some = [row for row in rows if row["ratio"] == f"{a}/{b}" and row["trips"] == n]
            shares = {kind: float(np.mean([row[kind] for row in some])) for kind in (*ERRORS, "Fieller")}
            t = float(np.median([abs(row["t"]) for row in some]))
            summary.append({"ratio": f"{a}/{b}", "trips": n, "runs": len(some), "median t of b": t, **shares})
            print(" ".join(str(value) for value in summary[-1].values()))
    write(summary, arguments.out / "ratios.csv")


if __name__ == "__main__":
    main()
