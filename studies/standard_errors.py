"""Do standard errors of choices cover the truth? Random moves, θ known, 95 % intervals of each kind.

python -m studies.standard_errors: a random problem with γ = 0.9, trajectories of 20 states drawn from the soft policy
of θ*, fitted by objective="choices"; how often θ* lies within 1.96 standard errors of the estimate, by outer product,
Hessian and sandwich. Where experts differ, they are of twelve kinds, each with a θ of its own around θ*: the model is
then wrong in the usual way, and the truth is what a fit to 200,000 such experts finds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from messirl import MDP, MaxEntIRL, Trajectories, estimation_table, sample, soft_policy
from messirl._types import Floats
from studies.common import draws, options, write

STATES, ACTIONS, LENGTH, LEADS = 12, 3, 20, 3
TRUTH = np.array([1.0, -0.5, 0.5])
SIZES = (25, 50, 100, 400)
KINDS, APART = 12, 0.5  # of experts who differ: how many kinds, and the standard deviation of each weight
MANY = 200_000
ERRORS = {"outer product": "outer_std_error", "Hessian": "std_error", "sandwich": "robust_std_error"}


@cache
def problem() -> MDP:
    """Every action leads to one of three states, by chance; features of steps."""
    random = np.random.default_rng(0)
    moves = np.zeros((STATES, ACTIONS, STATES))
    for s in range(STATES):
        for a in range(ACTIONS):
            moves[s, a, random.choice(STATES, LEADS, replace=False)] = random.dirichlet(np.ones(LEADS))
    features = random.normal(size=(STATES, ACTIONS, TRUTH.size))
    return MDP(moves, features, discount=0.9, start=np.full(STATES, 1.0 / STATES))


@cache
def policies(differ: bool) -> list[Floats]:
    mdp, random = problem(), np.random.default_rng(1)
    thetas = random.normal(TRUTH, APART, size=(KINDS, TRUTH.size)) if differ else [TRUTH]
    return [soft_policy(mdp, mdp.reward(theta)) for theta in thetas]


def experts(n: int, random: np.random.Generator, differ: bool) -> Trajectories:
    each = policies(differ)
    often = random.multinomial(n, np.full(len(each), 1.0 / len(each)))
    sets = [sample(problem(), p, int(k), LENGTH, random) for p, k in zip(each, often, strict=True) if k]
    return sum(sets[1:], sets[0])


@cache
def truth(differ: bool) -> Floats:
    if not differ:
        return TRUTH
    return fitted(experts(MANY, np.random.default_rng(2), differ)).theta_


def fitted(expert: Trajectories) -> MaxEntIRL:
    return MaxEntIRL(objective="choices", theta_max=None, ridge=0.0).fit(problem(), expert)


def one(differ: bool, n: int, seed: int) -> list[dict[str, Any]]:
    expert = experts(n, np.random.default_rng([n, seed]), differ)
    table = estimation_table(fitted(expert), expert)
    gap = np.abs(table.estimate - truth(differ))
    return [
        {"experts differ": differ, "trajectories": n, "error": kind, "covered": gap < 1.96 * getattr(table, name)}
        for kind, name in ERRORS.items()
    ]


def main() -> None:
    parser = options(__doc__ or "", runs=2000)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    cases = [(differ, n) for differ in (False, True) for n in SIZES]
    rows = draws(one, [(differ, n, seed) for differ, n in cases for seed in seeds], arguments.jobs)
    summary = []
    for differ, n in cases:
        for kind in ERRORS:
            wanted = {"experts differ": differ, "trajectories": n, "error": kind}
            covered = np.array([row["covered"] for row in rows if all(row[k] == v for k, v in wanted.items())])
            by_weight = {f"theta {j}": float(share) for j, share in enumerate(covered.mean(axis=0))}
            summary.append({**wanted, "runs": len(covered), **by_weight, "mean": float(covered.mean())})
            print(" ".join(str(value) for value in summary[-1].values()))
    write(summary, arguments.out / "standard-errors.csv")


if __name__ == "__main__":
    main()
