"""Is the verdict on unlabelled trajectories right? Ten experts, and sets known to help, to hurt or not to matter.

help             100 more trajectories of the experts themselves
do not matter    ten single steps of a random walk: hardly anything
hurt             100 trajectories of somebody who wants the opposite (in the pit: who walks straight into it)

The truth of a draw is what the two candidates that the verdict compares score on 200 other trajectories of the
experts. A verdict is wrong if it says "help" where the truth is a loss, or "hurt" where it is a gain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl import Trajectories
from messirl.estimators.uniform import uniform_policy
from messirl.inference.paired_gain import NOTHING
from messirl.paper.domains import gridworld, highway, pit
from messirl.planning import sample, soft_policy
from messirl.selection import MESSICV
from messirl.selection.candidates import CandidateFitter
from studies.common import Rows, column, counts, options, resumed, shown

DOMAINS = {"gridworld": gridworld, "highway": highway, "pit": pit}
LAMBDAS = (0.01, 0.1, 1.0)
L, U, TEST = 10, 100, 200
KINDS = ("help", "do not matter", "hurt")


def people(domain: str, seed: int) -> tuple[Any, Trajectories, Trajectories]:
    """A scene, trajectories of its experts, and of those who want the opposite."""
    if domain == "pit":
        scene = pit(pool=L + U + TEST).scene(seed)
        return scene, scene.pools["star"], scene.pools["two"][:U]
    scene = DOMAINS[domain](experts=L + U + TEST).scene(seed)
    contrary = soft_policy(scene.mdp, scene.mdp.reward(-scene.thetas["star"]))
    against = sample(scene.mdp, contrary, U, int(scene.expert.lengths[0]), random_state=seed)
    return scene, scene.expert, against


def one(domain: str, seed: int) -> Rows:
    scene, experts, against = people(domain, seed)
    mdp, parts = scene.mdp, np.split(np.arange(L + U + TEST), [L, L + U])
    expert, more, test = (experts[part] for part in parts)
    little = sample(mdp, uniform_policy(mdp, None), L, 2, random_state=seed)
    rows = []
    for kind, others in zip(KINDS, (more, little, against), strict=True):
        model = MESSICV([scene.similarity], lambdas=LAMBDAS, random_state=seed).fit(mdp, expert, others)
        use: Any = model.use_
        bench = CandidateFitter(
            mdp, expert, others, yardstick=scene.similarity, theta_prior=model.theta_prior, tol=1e-5
        )
        using, alone = (bench.score(c, bench.fit(c), test) for c in (use.using, use.alone))
        truth = (using - alone) / int((test.lengths - 1).sum())
        claim = {"help": 1, "hurt": -1}.get(use.verdict, 0)
        rows.append({
            "domain": domain, "seed": seed, "set": kind, "verdict": use.verdict, "gain": use.gain.mean,
            "low": use.gain.low, "high": use.gain.high, "truth": truth, "using": str(use.using),
            "alone": str(use.alone), "wrong": int(claim * truth < -NOTHING),
        })  # fmt: skip
    return rows


def main() -> None:
    arguments = options(__doc__ or "", runs=50).parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    tasks = [(domain, seed) for domain in DOMAINS for seed in seeds]
    about = [{"domain": domain, "seed": seed} for domain, seed in tasks]
    rows = resumed(one, tasks, about, arguments.jobs, arguments.out / "verdict.csv")
    for domain in DOMAINS:
        for kind in KINDS:
            about = {"domain": domain, "set": kind}
            said = counts(column(rows, "verdict", **about), KINDS)
            wrong = np.mean(column(rows, "wrong", **about))
            truth = shown(column(rows, "truth", **about))
            print(f"{domain:10s} {kind:14s} truth {truth}; said {said}; wrong {wrong:.0%}")


if __name__ == "__main__":
    main()
