"""What SSIRL gains from unlabelled trajectories, policy by policy, and whether that lasts.

On the gridworld and the highway, with the paper's single expert trajectory and u = 20 unlabelled ones of μ1 (ν = 0.5):
SSIRL and Abbeel and Ng's max-margin search each find forty policies. After k of them, how far the closest mixture is
from the expert's counts (margin), and its performance.

`ssirl.csv`: one row per domain, run, method and k.
"""

from __future__ import annotations

import numpy as np

from messirl import feature_counts, state_visitation
from messirl.estimators import SSIRL, AbbeelNg
from messirl.estimators._best_response import mixed_policy
from messirl.estimators.abbeel_ng import closest
from messirl.paper.domains import DOMAINS, mixture
from studies.common import Rows, column, draws, options, shown, write

PLACES = ("gridworld", "highway")
METHODS = ("SSIRL", "Abbeel-Ng")
AFTER = (1, 2, 3, 5, 10, 20, 40)  # policies, the first being that of maximum entropy
UNLABELLED, NU = 20, 0.5


def searches(place: str, seed: int) -> Rows:
    """Both searches of one run."""
    scene = DOMAINS[place]().scene(seed)
    others, target = mixture(scene, "mu1", UNLABELLED, NU), feature_counts(scene.mdp, scene.expert).mean(axis=0)
    models = {
        "SSIRL": SSIRL(max_policies=AFTER[-1]),
        "Abbeel-Ng": AbbeelNg(version="max-margin", epsilon=0.0, max_policies=AFTER[-1]),
    }
    rows = []
    for name, model in models.items():
        model.fit(scene.mdp, scene.expert, others)
        for k in AFTER:
            counts = model.policy_counts_[:k]  # where Abbeel and Ng's search has ended, what it ended with
            weights = closest(counts, np.ones(1), target)
            policy = mixed_policy(scene.mdp, model.policies_[:k], weights, model.start_)
            rows.append(
                {
                    "domain": place,
                    "seed": seed,
                    "method": name,
                    "policies": k,
                    "margin": float(np.linalg.norm(target - weights @ counts)),
                    "performance": scene.performance(state_visitation(scene.mdp, policy)),
                }
            )
    return rows


def tell(rows: Rows) -> None:
    """SSIRL against Abbeel and Ng after as many policies, paired by run."""
    for place in PLACES:
        for k in AFTER:
            said = []
            for name in ("margin", "performance"):
                own, other = (column(rows, name, domain=place, method=m, policies=k) for m in METHODS)
                said.append(f"{name} {own.mean():.4f} and {other.mean():.4f}, difference {shown(own - other)}")
            print(f"{place}, {k} policies: {'; '.join(said)}")


def main() -> None:
    arguments = options(__doc__ or "", runs=20).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(searches, [(place, seed) for place in PLACES for seed in seeds], arguments.jobs)
    write(rows, arguments.out / "ssirl.csv")
    tell(rows)


if __name__ == "__main__":
    main()
