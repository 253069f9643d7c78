"""What unlabelled trips are worth on the labyrinth: held-out log-probability per step of every method.

python -m studies.mice FOLDER: a problem folder with roles expert, unlabelled and test. l experts and 500 unlabelled
trips are drawn, and every method is scored on all test trips, looked at once; `new` is its score on those of them that
none of the 500 made, state by state. The knobs of a method (λ0, and where it has them the strength of the prior of the
base policy and the weight of an unlabelled trip) are chosen in one of two ways:

others   on 10 other expert trips
folds    by cross-validation of the l experts themselves, for the methods of FOLDED

Moves are deterministic, γ = 1 and trips end, so counts and choices are one objective here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._prior_policy import fit_population_policy
from messirl.estimators.uniform import uniform_policy
from messirl.io import read_problem
from messirl.planning import log_likelihood
from messirl.selection import Candidate
from messirl.selection.candidates import CandidateFitter
from messirl.selection.cross_validation import make_splits
from messirl.similarity import RBF
from studies import similarities as other
from studies.common import column, draws, options, shown, write

STANDARD = RBF("median", standardise=True)
PATH = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
SHORT = PATH[:6]  # of the folds; one path for all methods, or those with the weaker penalties lose by it
STRENGTHS, WEIGHTS = (2.0, 10.0, 50.0), (0.003, 0.01, 0.03, 0.1, 0.3)
SIMILARITIES = {
    "MESSI": STANDARD,
    "MESSI, narrow": RBF(0.25, standardise=True),
    "MESSI, visited states": other.Visits(),
    "MESSI, sequences of 3": other.Sequences(3),
    "MESSI, whitened": other.Whitened(),
    "MESSI, log counts": other.LogCounts(),
}
PENALTIES = {"L2": "Ridge", "L2, standardised": "RidgeStd", "complete graph": "Complete"}
BASED = ("MESSI", "complete graph", "L2, standardised")  # penalties on top of a base policy
POOLED = ("MESSI", "complete graph")  # penalties on top of light pooling
CONTROLS = {"shuffled": "reference shuffled, complete graph", "uniform": "reference uniform, complete graph"}
BOTH, ALONE = "reference, light pooling, complete graph", "base policy alone"
FOLDED = ("MESSI", "complete graph", "reference, complete graph", "light pooling", "light pooling, complete graph")
METHODS = (
    "MaxEnt", *SIMILARITIES, "MESSI, to experts only", *PENALTIES, "pooling",
    *(f"reference, {name}" for name in BASED), "light pooling", *(f"light pooling, {name}" for name in POOLED), BOTH,
    *CONTROLS.values(), ALONE,
)  # fmt: skip
Fit = tuple[str | None, Candidate]  # a key of CONTROLS, or None, and what is fitted


@cache
def problem(folder: str) -> Any:
    return read_problem(folder)


def candidates(name: str, n_expert: int, lambdas: Sequence[float]) -> list[Candidate]:
    """One method at every λ0, without base policy or light pooling."""
    if name == "MaxEnt":
        return [Candidate(name)]
    if name == "pooling":
        return [Candidate("Pooling", weight=1.0)]
    if name in PENALTIES:
        return [Candidate(PENALTIES[name], x) for x in lambdas]
    similarity = other.ToExperts(n_expert) if name == "MESSI, to experts only" else SIMILARITIES[name]
    return [Candidate("MESSI", x, similarity) for x in lambdas]


def fits(name: str, n_expert: int, lambdas: Sequence[float] = PATH) -> list[Fit]:
    """All that a method chooses from."""
    for key, control in CONTROLS.items():
        if name == control:
            return [(key, c) for c in candidates("complete graph", n_expert, lambdas)]
    kind, _, penalty = name.partition(", ")
    knobs: list[dict[str, float]] = [{}]
    if name == BOTH:
        penalty, knobs = "complete graph", [{"strength": 10.0, "weight": w} for w in WEIGHTS]
    elif kind == "reference":
        knobs = [{"strength": alpha} for alpha in STRENGTHS]
    elif kind == "light pooling":
        penalty, knobs = penalty or "MaxEnt", [{"weight": w} for w in WEIGHTS]
    else:
        penalty = name
    return [(None, replace(c, **own)) for own, c in product(knobs, candidates(penalty, n_expert, lambdas))]


def controls(mdp: MDP, unlabelled: Trajectories, random: np.random.Generator) -> dict[str | None, MDP]:
    """The MDP as it is, and with two base policies that say nothing of the unlabelled trips."""
    shuffled = fit_population_policy(mdp, unlabelled, 10.0).copy()
    for allowed in np.unique(mdp.allowed, axis=0):  # rows change places among states with the same choices
        same = np.flatnonzero((mdp.allowed == allowed).all(axis=1))
        shuffled[same] = shuffled[random.permutation(same)]
    return {
        None: mdp,
        "shuffled": mdp.with_prior_policy(shuffled),
        "uniform": mdp.with_prior_policy(uniform_policy(mdp, None)),
    }


def fitted(
    mdps: dict[str | None, MDP], every: Iterable[Fit], expert: Trajectories, unlabelled: Trajectories, tol: float
) -> dict[Fit, tuple[CandidateFitter, np.ndarray]]:
    """θ of every fit, and the bench that scores it."""
    groups: dict[str | None, list[Candidate]] = {}
    for key, candidate in every:
        groups.setdefault(key, []).append(candidate)
    table = {}
    for key, some in groups.items():
        bench = CandidateFitter(mdps[key], expert, unlabelled, yardstick=STANDARD, tol=tol)
        table.update({(key, fit.candidate): (bench, fit.theta) for fit in bench.path(some)})
    return table


def one(folder: str, n_expert: int, seed: int) -> list[dict[str, Any]]:
    found = problem(folder)
    mdp, trips, role = found.mdp, found.trajectories, found.meta["role"].astype(str)
    random = np.random.default_rng(seed)
    order = random.permutation(np.flatnonzero(role == "expert"))
    expert, validation = trips[order[:n_expert]], trips[order[n_expert : n_expert + 10]]
    unlabelled = trips[random.permutation(np.flatnonzero(role == "unlabelled"))[:500]]
    test = trips[np.flatnonzero(role == "test")]
    made = {states.tobytes() for states, *_ in unlabelled}
    new = test[[i for i, (states, *_) in enumerate(test) if states.tobytes() not in made]]
    mdps = controls(mdp, unlabelled, random)

    def row(method: str, chosen: str, c: Candidate, score: float, on_new: float) -> dict[str, Any]:
        weight = 0.0 if method == "pooling" else c.weight
        return {"experts": n_expert, "seed": seed, "method": method, "chosen": chosen, "lambda0": c.lambda0,
                "strength": "" if c.strength is None else c.strength, "weight": weight, "score": score,
                "new": on_new, "new_share": steps(new) / steps(test)}  # fmt: skip

    def add(method: str, chosen: str, best: Fit) -> None:
        (bench, theta), c = table[best], best[1]
        rows.append(row(method, chosen, c, *(bench.score(c, theta, some) / steps(some) for some in (test, new))))

    rows: list[dict[str, Any]] = []
    named = {name: fits(name, n_expert) for name in METHODS if name != ALONE}
    every = [fit for some in named.values() for fit in some]
    table = fitted(mdps, every, expert, unlabelled, tol=1e-5)
    seen = {fit: bench.score(fit[1], theta, validation) for fit, (bench, theta) in table.items()}
    for name, some in named.items():
        add(name, "others", max(some, key=seen.__getitem__))
    usual = {alpha: mdp.with_prior_policy(fit_population_policy(mdp, unlabelled, alpha)) for alpha in STRENGTHS}
    alone = {alpha: [policy_score(based, some) for some in (validation, test, new)] for alpha, based in usual.items()}
    alpha = max(STRENGTHS, key=lambda alpha: alone[alpha][0])
    rows.append(row(ALONE, "others", Candidate("uniform", strength=alpha), *alone[alpha][1:]))

    named = {name: fits(name, n_expert, SHORT) for name in FOLDED}
    every = [fit for some in named.values() for fit in some]
    seen = dict.fromkeys(every, 0.0)
    for train, left_out in make_splits(mdp, expert, cv=4, random_state=0):  # five trips one by one, ten in four folds
        for fit, (bench, theta) in fitted(mdps, every, train, unlabelled, tol=1e-3).items():
            seen[fit] += bench.score(fit[1], theta, left_out)
    for name, some in named.items():
        add(name, "folds", max(some, key=seen.__getitem__))
    return rows


def steps(trips: Trajectories) -> int:
    return int((trips.lengths - 1).sum())


def policy_score(based: MDP, trips: Trajectories) -> float:
    assert based.reference is not None
    return float(log_likelihood(based, based.reference, trips).sum() / steps(trips))


def main() -> None:
    parser = options(__doc__ or "", runs=16)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(str(arguments.folder), l, s) for l in (5, 10) for s in seeds], arguments.jobs)
    write(rows, arguments.out / "mice.csv")
    for l, chosen in product((5, 10), ("others", "folds")):
        share = column(rows, "new_share", experts=l).mean()
        print(f"l = {l}, knobs chosen on {chosen}: score, lead over the complete graph; trips not seen before "
              f"({share:.0%} of steps): the same")  # fmt: skip
        for name in METHODS if chosen == "others" else FOLDED:
            told = []
            for what in ("score", "new"):
                own, graph = (column(rows, what, experts=l, chosen=chosen, method=m) for m in (name, "complete graph"))
                told.append(f"{own.mean():8.4f} {shown(own - graph)}")
            print(f"  {name:42s} {told[0]}  | {told[1]}")


if __name__ == "__main__":
    main()
