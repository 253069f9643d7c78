"""Do bootstrap intervals cover the truth? Grid-world, 20 experts drawn from the soft policy of θ*, 95 % intervals.

For every repetition: percentile intervals from resampled experts for π(a|s) in the states the experts visit, and for
the identified combinations of θ, θ_j − mean θ (a constant added to all blocks changes nothing). Covered is what the
truth lies in; each repetition counts once, with its share.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl.estimators import MaxEntIRL
from messirl.paper.domains import gridworld
from messirl.planning import soft_policy
from messirl.selection import bootstrap
from studies.common import column, draws, options, shown, write

SCALE = 10.0
RIDGES = (0.003,)


def one(seed: int, replicates: int, ridge: float) -> list[dict[str, Any]]:
    domain = gridworld(experts=20, pool=1, scale=SCALE)
    scene = domain.scene(seed)
    mdp, expert, truth = scene.mdp, scene.expert, SCALE * scene.thetas["star"]
    model = MaxEntIRL(objective="counts", ridge=ridge, max_iter=200, tol=1e-4)
    found = bootstrap(model, mdp, expert, n=replicates, random_state=seed)
    assert found.policy is not None
    often = np.bincount(expert.states, minlength=mdp.n_states)
    visited = often > 0
    low, high = found.interval(found.policy)
    true_policy = soft_policy(mdp, mdp.reward(truth))
    inside = ((low <= true_policy) & (true_policy <= high))[visited].mean(axis=1)
    contrasts = found.theta - found.theta.mean(axis=1, keepdims=True)
    bottom, top = found.interval(contrasts)
    aim = truth - truth.mean()
    within = (bottom <= aim) & (aim <= top)
    blocks = mdp.counts(often.astype(float)) > 0
    return [
        {
            "seed": seed,
            "ridge": ridge,
            "policy": float(inside.mean()),
            "policy, weighted by visits": float(np.average(inside, weights=often[visited])),
            "theta, visited blocks": float(within[blocks].mean()),
            "width of policy": float((high - low)[visited].mean()),
            "width of theta": float((top - bottom)[blocks].mean()),
        }
    ]


def main() -> None:
    parser = options(__doc__ or "", runs=200)
    parser.add_argument("--replicates", type=int, default=200)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(s, arguments.replicates, r) for r in RIDGES for s in seeds], arguments.jobs)
    write(rows, arguments.out / "coverage.csv")
    for ridge in RIDGES:
        for name in ("policy", "policy, weighted by visits", "theta, visited blocks"):
            print(f"ridge {ridge:g}, {name}: {shown(column(rows, name, ridge=ridge))}")


if __name__ == "__main__":
    main()
