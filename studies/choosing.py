"""What is the best way to choose a candidate? The regret of each, on the same candidates and trajectories.

python -m studies.choosing PROBLEM [FOLDER]: the regret of a way (studies/ways.py) is the score of the best candidate,
known only afterwards, less that of what the way gives. The score is the held-out log-probability per step, or in the
domains the performance. All experts are used both to choose and to fit. 16 draws of data, 50 of a domain.

mice, bus       l + 10 experts; 500 unlabelled trips, or the buses of groups 1 to 3
borlange        of the trips to the 20 destinations that most trips have, l are the experts, 150 others the unlabelled,
                400 others the test; three λ0 instead of eight
gridworld,      5 experts, 20 unlabelled trajectories from mu1, mu3 or a random walk
highway
approximate     on 20 trips of mice: how closely leave-one-out by a Newton step agrees with leave-one-out, and its time
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from messirl import MDP, MESSI, Trajectories
from messirl._parameters import WEAK_PRIOR, default
from messirl._types import Floats
from messirl.estimators._initialization import WarmStart
from messirl.estimators.uniform import uniform_policy
from messirl.paper.domains import gridworld, highway, mixture
from messirl.paper.experiments.curves import interval
from messirl.planning import log_likelihood, sample, state_visitation
from messirl.planning.planner import solution_from_start
from messirl.selection import Candidate, cross_validate
from messirl.selection.candidates import LAMBDAS, CandidateFitter, make_candidates
from messirl.selection.cross_validation import make_splits
from messirl.selection.expert_agreement import measure_agreement
from studies import bus, mice
from studies.common import Rows, options, read, resumed, write
from studies.ways import WAYS, Fitted, leave_one_out

DOMAINS = {"gridworld": gridworld, "highway": highway}
EXPERTS = 5  # of a domain
U = 20  # unlabelled trajectories in a domain
SPARE = {"mice": 10, "bus": 10}  # experts beside the l
DESTINATIONS, OTHERS, TEST = 20, 150, 400  # of drivers, whose trips have 466 destinations in all
SOME = (0.01, 0.1, 1.0)  # λ0 for drivers: every destination adds to the time of a fit
STANDARD = mice.STANDARD
PATH = (10.0, *mice.PATH)  # ten λ0


@dataclass(frozen=True)
class Draw:
    """What all ways choose from, and what scores them: test trajectories, or the performance of a policy."""

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories
    similarity: Any = STANDARD
    test: Trajectories | None = None
    performance: Callable[[Floats], float] | None = None
    lambdas: tuple[float, ...] = LAMBDAS

    def fitted(self, seed: int = 0) -> Fitted:
        """Every candidate fitted to all experts, and cross-validated as MESSICV does it."""
        every = make_candidates([self.similarity], self.lambdas)
        shared = {"yardstick": self.similarity, "theta_prior": WEAK_PRIOR}
        bench = CandidateFitter(self.mdp, self.expert, self.unlabelled, tol=1e-5, **shared)
        pairs = make_splits(self.mdp, self.expert, random_state=seed)
        fits = list(bench.path(every))
        validation = cross_validate(self.mdp, every, pairs, self.unlabelled, known=fits, tol=1e-3, **shared)
        like = measure_agreement(self.mdp, self.expert, self.unlabelled, random_state=seed)
        return Fitted(bench, [fit.theta for fit in fits], validation, like)

    def score(self, fitted: Fitted, chosen: int | Floats) -> float:
        """That of a candidate, or of the weighted mean of the policies of all."""
        if isinstance(chosen, int) and self.test is not None:
            return fitted.bench.score(fitted.candidates[chosen], fitted.thetas[chosen], self.test) / mice.steps(
                self.test
            )
        weights = np.eye(len(fitted.thetas))[chosen] if isinstance(chosen, int) else chosen
        policy = sum(weights[i] * self._policy(fitted, i) for i in np.flatnonzero(weights))
        if self.test is None:
            assert self.performance is not None
            return self.performance(policy)
        return float(log_likelihood(self.mdp, policy, self.test).sum()) / mice.steps(self.test)

    def _policy(self, fitted: Fitted, i: int) -> Floats:
        mdp = fitted.bench.based(fitted.candidates[i])
        first = [some.first for some in (fitted.bench.data.trajectories, self.test) if some is not None]
        start = np.bincount(np.concatenate(first), minlength=mdp.n_states).astype(np.float64)
        return solution_from_start(mdp, mdp.reward(fitted.thetas[i]), start).table


def of_mice(folder: str, l: int, seed: int) -> Draw:
    found = mice.problem(folder)
    trips, role = found.trajectories, found.meta["role"].astype(str)
    random = np.random.default_rng(seed)
    expert, unlabelled = (random.permutation(np.flatnonzero(role == name)) for name in ("expert", "unlabelled"))
    test = trips[np.flatnonzero(role == "test")]
    return Draw(found.mdp, trips[expert[: l + SPARE["mice"]]], trips[unlabelled[:500]], test=test)


def of_buses(folder: str, l: int, seed: int) -> Draw:
    mdp, ours, others = bus.problem(folder)
    expert, test = np.split(np.random.default_rng(seed).permutation(len(ours)), [l + SPARE["bus"]])
    return Draw(mdp, ours[expert], others, test=ours[test])


def of_drivers(folder: str, l: int, seed: int) -> Draw:
    found = mice.problem(folder)
    goals, often = np.unique(found.trajectories.goals, return_counts=True)
    frequented = goals[np.argsort(-often, kind="stable")[:DESTINATIONS]]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(found.trajectories.goals, frequented)))
    expert, others, test = (found.trajectories[i] for i in np.split(order[: l + OTHERS + TEST], [l, l + OTHERS]))
    return Draw(found.mdp, expert, others, test=test, lambdas=SOME)


def of_domain(name: str, folder: str, source: str, seed: int) -> Draw:
    scene = DOMAINS[name](experts=EXPERTS).scene(seed)
    mdp, length = scene.mdp, int(scene.expert.lengths[0])
    if source == "walk":
        unlabelled = sample(mdp, uniform_policy(mdp, None), U, length, seed)
    else:
        unlabelled = mixture(scene, source, U, 0.5)

    def performance(policy: Floats) -> float:
        return scene.performance(state_visitation(mdp, policy))

    return Draw(mdp, scene.expert, unlabelled, scene.similarity, performance=performance)


SOURCES = ("mu1", "mu3", "walk")
PROBLEMS: dict[str, tuple[Callable[..., Draw], tuple[Any, ...], int]] = {  # the draw, its cases, how many
    "mice": (of_mice, (5, 10), 16),
    "bus": (of_buses, (3, 10), 16),
    "borlange": (of_drivers, (10, 30), 16),
    "gridworld": (partial(of_domain, "gridworld"), SOURCES, 50),
    "highway": (partial(of_domain, "highway"), SOURCES, 50),
}


def named(problem: str, folder: str, case: Any, seed: int) -> dict[str, Any]:
    """What tells a draw from all others."""
    domain = case in SOURCES
    experts = EXPERTS if domain else case + SPARE.get(problem, 0)
    return {"problem": problem, "experts": experts, "source": case if domain else "", "seed": seed}


def one(problem: str, folder: str, case: Any, seed: int) -> Rows:
    draw = PROBLEMS[problem][0](folder, case, seed)
    return [{**named(problem, folder, case, seed), **row} for row in regrets(draw, draw.fitted(seed=seed))]


def regrets(draw: Draw, fitted: Fitted) -> Rows:
    """One row for each way: what it gives, and its regret."""
    scores = [draw.score(fitted, i) for i in range(len(fitted.candidates))]
    best, rows = max(scores), []
    for name, way in WAYS.items():
        if name == "average" and draw.expert.goals is not None:
            continue
        chosen = way(fitted)
        heaviest = fitted.candidates[int(np.argmax(chosen)) if isinstance(chosen, np.ndarray) else chosen]
        told = f"{np.max(chosen):.0%} {heaviest}" if isinstance(chosen, np.ndarray) else str(heaviest)
        score = draw.score(fitted, chosen) if isinstance(chosen, np.ndarray) else scores[chosen]
        rows.append({"way": name, "chosen": told, "score": score, "best": best, "regret": best - score})
    alone = rows[-1]["score"]
    return [{**row, "alone": alone} for row in rows]


def agreement(folder: str, seed: int) -> Rows:
    """Exact and approximate leave-one-out of 20 trips, per step, along paths of λ0; and the time of such a path.

    worst : the largest difference per step of a single trip
    cost : the time of a path of ten with approximate leave-one-out, in fits of MESSI with its defaults
    """
    draw = of_mice(folder, 10, seed)
    mdp, expert, unlabelled, steps = draw.mdp, draw.expert, draw.unlabelled, draw.expert.lengths - 1
    _, fit = timed(lambda: MESSI().fit(mdp, expert, unlabelled))
    rest = [np.delete(np.arange(len(expert)), i) for i in range(len(expert))]
    parts = [
        CandidateFitter(mdp, expert[some], unlabelled, yardstick=STANDARD, theta_prior=WEAK_PRIOR) for some in rest
    ]
    rows = []
    for kind in (
        {"method": "RidgeStd"},
        {"method": "MESSI", "similarity": STANDARD},
        {"method": "ReferenceStd", "strength": default("reference_strength")},
    ):
        path = [
            Candidate(lambda0=x, **kind) for x in sorted(PATH)
        ]  # from within: strong penalties lead to where values end
        found, took = timed(partial(along, draw, path))
        for candidate, theta, near in found:
            exact = np.array([
                part.log_probabilities(candidate, part.fit(candidate, WarmStart(theta)), expert[[i]])[0]
                for i, part in enumerate(parts)
            ])  # fmt: skip
            scores = {"exact": exact.sum() / steps.sum(), "approximate": near.sum() / steps.sum()}
            gaps = {"difference": (near - exact).sum() / steps.sum(), "worst": np.abs((near - exact) / steps).max()}
            rows.append({"method": kind["method"], "lambda0": candidate.lambda0, **scores, **gaps, "cost": took / fit})
    return rows


def along(draw: Draw, path: list[Candidate]) -> list[tuple[Candidate, Floats, Floats]]:
    """Every candidate of a path, its θ, and the approximate leave-one-out of the experts."""
    bench = CandidateFitter(draw.mdp, draw.expert, draw.unlabelled, yardstick=draw.similarity, theta_prior=WEAK_PRIOR)
    return [(fit.candidate, fit.theta, leave_one_out(bench, fit.candidate, fit.theta)) for fit in bench.path(path)]


def timed(work: Callable[[], Any], times: int = 3) -> tuple[Any, float]:
    """What some work gives, and its median time on one thread, other work of the processor not counted."""
    found, took = work(), []  # the first one is not timed: loops are compiled in it
    for _ in range(times):
        begun = process_time()
        work()
        took.append(process_time() - begun)
    return found, float(np.median(took))


def summary(rows: Rows) -> Rows:
    """One row for each way and case: mean score, and mean regret with its 95 % interval."""
    cases: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("problem", "experts", "source", "way"))
        cases.setdefault(key, []).append((float(row["score"]), float(row["regret"])))
    out = []
    for key, values in cases.items():
        score, regret = np.array(values).T
        found = interval(regret)
        out.append(dict(zip(("problem", "experts", "source", "way"), key, strict=True)) | {
            "runs": len(values), "score": float(score.mean()),
            "regret": found.mean, "low": found.low, "high": found.high, "worst": float(regret.max()),
        })  # fmt: skip
    return out


def main() -> None:
    parser = options(__doc__ or "", runs=16)
    parser.set_defaults(runs=None)
    parser.add_argument("problem", choices=[*PROBLEMS, "approximate"])
    parser.add_argument("folder", nargs="?", default="", help="of the data; the domains need none")
    arguments = parser.parse_args()
    target = arguments.out / f"choosing-{arguments.problem}.csv"
    if arguments.problem == "approximate":
        write(agreement(arguments.folder, arguments.seed), target)
        return
    _, cases, runs = PROBLEMS[arguments.problem]
    seeds = range(arguments.seed, arguments.seed + (arguments.runs or runs))
    tasks = [(arguments.problem, arguments.folder, case, seed) for case in cases for seed in seeds]
    resumed(one, tasks, [named(*task) for task in tasks], arguments.jobs, target)
    tables = [arguments.out / f"choosing-{name}.csv" for name in PROBLEMS]
    rows = [row for table in tables if table.exists() for row in read(table)]
    write(summary(rows), arguments.out / "choosing.csv")
    for row in summary(rows):
        if row["problem"] == arguments.problem:
            about = f"{row['experts']:>3} experts {row['source']:5s} {row['way']:26s} score {row['score']:8.4f}"
            print(f"{about}  regret {row['regret']:.4f} [{row['low']:.4f}, {row['high']:.4f}]")


if __name__ == "__main__":
    main()
