"""Does what selection chooses ever lose? Five experts; unlabelled trajectories from μ1, μ3 and a random walk.

For each draw: the performance of MaxEnt, of MESSI at every λ0 (on μ1), and of what MESSICV chooses.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl.domains import gridworld, highway, mixture
from messirl.planning import sample, soft_policy, state_visitation
from messirl.selection import MESSICV, Bench, candidates
from studies.common import column, draws, options, shown, write

LAMBDAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0)
DOMAINS = {"gridworld": gridworld, "highway": highway}
U = 20


def one(domain: str, seed: int) -> list[dict[str, Any]]:
    scene = DOMAINS[domain](experts=5).scene(seed)
    mdp, expert = scene.mdp, scene.expert
    alike = mdp.allowed / mdp.allowed.sum(axis=1, keepdims=True)
    sources = {
        "mu1": mixture(scene, "mu1", U, 0.5),
        "mu3": mixture(scene, "mu3", U, 0.5),
        "walk": sample(mdp, alike, U, int(expert.lengths[0]), seed),
    }

    def performance(theta: np.ndarray) -> float:
        return scene.performance(state_visitation(mdp, soft_policy(mdp, mdp.reward(theta))))

    rows = []
    for source, unlabelled in sources.items():
        common = {"domain": domain, "seed": seed, "source": source}
        bench = Bench(mdp, expert, unlabelled, yardstick=scene.similarity, objective="counts")
        every = candidates([scene.similarity], LAMBDAS)
        for fit in bench.path([c for c in every if c.method in ("MaxEnt", "MESSI")]):
            rows.append({**common, "method": fit.candidate.method, "lambda0": fit.candidate.lambda0, "chosen": "",
                         "performance": performance(fit.theta)})  # fmt: skip
        model = MESSICV([scene.similarity], objective="counts", lambdas=LAMBDAS, random_state=seed)
        model.fit(mdp, expert, unlabelled)
        rows.append({**common, "method": "selected", "lambda0": model.candidate_.lambda0,
                     "chosen": model.candidate_.method, "performance": performance(model.theta_)})  # fmt: skip
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=50)
    parser.add_argument("domain", choices=sorted(DOMAINS))
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(arguments.domain, seed) for seed in seeds], arguments.jobs)
    write(rows, arguments.out / f"safety-{arguments.domain}.csv")
    base = column(rows, "performance", source="mu1", method="MaxEnt")
    gains = {x: column(rows, "performance", source="mu1", method="MESSI", lambda0=x) - base for x in LAMBDAS}
    best = max(gains, key=lambda x: gains[x].mean())
    print(f"MESSI on mu1, best λ0 = {best}: {shown(gains[best])}; 10 % of it is {0.1 * gains[best].mean():.4f}")
    for source in ("mu1", "mu3", "walk"):
        chosen = column(rows, "chosen", source=source, method="selected")
        kinds = ", ".join(f"{kind} {np.sum(chosen == kind)}" for kind in np.unique(chosen))
        gain = column(rows, "performance", source=source, method="selected") - base
        print(f"selected on {source}: {shown(gain)}; {kinds}")


if __name__ == "__main__":
    main()
