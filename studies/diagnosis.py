"""Does the diagnosis tell good trajectories from bad ones? Five experts, unlabelled ones from P_u* and from θ2.

Both kinds in one set: the AUC of likeness and of similarity. Sets of one kind: whether they lean towards the experts,
and what MESSI gains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from messirl.data.feature_counts import feature_counts
from messirl.planning import soft_policy, state_visitation
from messirl.selection import Candidate
from messirl.selection.candidates import CandidateFitter
from messirl.selection.expert_agreement import measure_agreement
from studies.choosing import DOMAINS, U
from studies.common import column, draws, options, shown, write

LAMBDA0 = {"gridworld": 0.03, "highway": 1.0}  # where MESSI gains most on the pilot seeds


def one(domain: str, seed: int) -> list[dict[str, Any]]:
    scene = DOMAINS[domain](experts=5).scene(seed)
    mdp, expert = scene.mdp, scene.expert
    good, bad = scene.pools["star"][:U], scene.pools["two"][:U]
    found = {
        name: measure_agreement(mdp, expert, some, random_state=seed) for name, some in (("good", good), ("bad", bad))
    }
    ranks = np.concatenate([found["good"].unlabelled, found["bad"].unlabelled])
    truth = np.repeat([1, 0], U)
    counts = feature_counts(mdp, expert + good + bad)
    similarity = scene.similarity(None, counts)[: len(expert), len(expert) :].mean(axis=0)
    row: dict[str, Any] = {
        "domain": domain,
        "seed": seed,
        "auc_likeness": float(roc_auc_score(truth, ranks)),
        "auc_similarity": float(roc_auc_score(truth, similarity)),
    }

    def performance(theta: np.ndarray) -> float:
        return scene.performance(state_visitation(mdp, soft_policy(mdp, mdp.reward(theta))))

    for name, some in (("good", good), ("bad", bad)):
        row[f"lean_{name}"], row[f"leaning_{name}"] = (
            found[name].relative_likelihood.mean,
            int(bool(found[name].is_significant)),
        )
        bench = CandidateFitter(mdp, expert, some, yardstick=scene.similarity, objective="counts")
        both = [Candidate("MaxEnt"), Candidate("MESSI", LAMBDA0[domain], scene.similarity)]
        before, after = (performance(fit.theta) for fit in bench.path(both))
        row[f"gain_{name}"] = after - before
    return [row]


def main() -> None:
    arguments = options(__doc__ or "", runs=50).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(domain, seed) for domain in DOMAINS for seed in seeds], arguments.jobs)
    write(rows, arguments.out / "diagnosis.csv")
    for domain in DOMAINS:
        print(domain)
        for name in ("auc_likeness", "auc_similarity", "lean_good", "lean_bad", "gain_good", "gain_bad"):
            print(f"  {name}: {shown(column(rows, name, domain=domain))}")
        for name in ("good", "bad"):
            print(f"  {name} sets that lean: {np.mean(column(rows, f'leaning_{name}', domain=domain)):.0%}")


if __name__ == "__main__":
    main()
