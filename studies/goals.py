"""One base policy for all goals, or one per group of goals? Held-out log-probability per step, each trip's goal known.

python -m studies.goals FOLDER: a problem folder whose trips have goals, or one with terminal states, of which the one
where a trip ended is taken for its goal. Experts, unlabelled and test trips are drawn by their role where the folder
says it, else from all trips; λ0 (complete graph) is chosen on 10 other expert trips. With several groups

    π₀_k(a|s) = (n_k(s,a) + α π₀(a|s)) / (n_k(s) + α),       α = 10

with n_k the choices of those unlabelled trips whose goal is in group k and π₀ the base policy of all of them: where a
group has few trips it does as all do. Groups are the goals themselves where they are few, else goals that are near one
another: the first is one of the goals, the next the one farthest from it, and so on; all others join the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from messirl.data.feature_counts import feature_counts
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._initialization import initial_theta
from messirl.estimators._prior_policy import fit_population_policy
from messirl.io import read_problem
from messirl.objective import Evaluation, Objective
from messirl.optim.lbfgs import lbfgs
from messirl.planning import NoFiniteValue
from messirl.planning.likelihood import reward_log_likelihood
from messirl.similarity import CompleteGraph
from studies.common import column, draws, options, shown, write

LAMBDAS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)  # divided by θ_max, as for MESSI
BOUND, STRENGTH = 500.0, 10.0
GROUPS = (2, 8)  # as many as there are goals for


@cache
def problem(folder: str) -> tuple[MDP, Trajectories, np.ndarray]:
    """The MDP, trips with their goals, and the role of each; without roles, "any"."""
    found = read_problem(folder)
    mdp, trips = found.mdp, found.trajectories
    role = found.meta["role"].astype(str) if "role" in found.meta else np.full(len(trips), "any")
    if trips.goals is None:
        trips = Trajectories(trips.states, trips.offsets, trips.actions, trips.last)
        mdp = mdp.replace(terminal=None)
    return mdp.replace(start=None), trips, role


@cache
def groups(folder: str, n: int) -> np.ndarray:
    """The group of every state, (S,), as a goal."""
    mdp, trips, _ = problem(folder)
    goals = np.unique(trips.goals)
    rows = np.repeat(np.arange(mdp.transitions.shape[0]), np.diff(mdp.transitions.indptr)) // mdp.n_actions
    steps = sp.csr_array((np.ones(rows.size), (rows, mdp.transitions.indices)), shape=(mdp.n_states,) * 2)
    away = [_steps_from(steps, goals[0], goals)]
    while len(away) < n:
        away.append(_steps_from(steps, goals[np.min(away, axis=0).argmax()], goals))
    out = np.zeros(mdp.n_states, dtype=np.int64)
    out[goals] = np.argmin(away, axis=0)
    return out


def _steps_from(steps: Any, goal: int, goals: np.ndarray) -> np.ndarray:
    return np.asarray(dijkstra(steps, directed=False, indices=goal, unweighted=True)[goals])


@dataclass(frozen=True)
class Parts:
    """J of trips in several groups, each on an MDP with its own base policy; one θ for all."""

    parts: Sequence[tuple[float, Objective]]
    quadratic: np.ndarray | None

    def __call__(self, theta: np.ndarray) -> Evaluation:
        found = [(share, objective(theta)) for share, objective in self.parts]
        value = sum(share * point.value for share, point in found)
        gradient = np.sum([share * point.gradient for share, point in found], axis=0)
        pull = 0.0 if self.quadratic is None else self.quadratic @ theta
        return Evaluation(float(value - 0.5 * np.sum(theta * pull)), gradient - pull, gradient, None)


def base_policies(mdp: MDP, unlabelled: Trajectories, group: np.ndarray | None) -> dict[int, MDP]:
    """The MDP of every group; group None: all goals in one."""
    usual = fit_population_policy(mdp, unlabelled, STRENGTH)
    if group is None:
        return {0: mdp.with_prior_policy(usual)}
    out = {}
    for k in np.unique(group):
        some = unlabelled[np.flatnonzero(group[unlabelled.goals] == k)]
        often = np.bincount(some.states[some.leaves], minlength=mdp.n_states)[:, None].astype(float)
        own = often * fit_population_policy(mdp, some, 1e-9) if len(some) else np.zeros_like(usual)
        out[int(k)] = mdp.with_prior_policy((own + STRENGTH * usual) / (often + STRENGTH))
    return out


def by_group(trips: Trajectories, group: np.ndarray | None) -> dict[int, Trajectories]:
    """Trips of each group."""
    of = np.zeros(len(trips), dtype=int) if group is None else group[trips.goals]
    return {int(k): trips[np.flatnonzero(of == k)] for k in np.unique(of)}


def path(based: dict[int, MDP], group: np.ndarray | None, expert: Trajectories, penalty: np.ndarray) -> list[Any]:
    """θ at every λ0, from strong to weak."""
    some = by_group(expert, group)
    parts = [(len(trips) / len(expert), Objective.from_trajectories(based[k], trips)) for k, trips in some.items()]
    whole = Objective.from_trajectories(next(iter(based.values())), expert)
    theta, out = initial_theta(whole.mdp, whole, BOUND), []
    for lambda0 in LAMBDAS:
        quadratic = lambda0 / BOUND * penalty
        scale = whole.penalised(quadratic).scale
        limits: dict[str, Any] = {"bound": BOUND, "max_iter": 500, "tol": 1e-4, "confirm_by_newton": False}
        theta = lbfgs(Parts(parts, quadratic), theta, unit=whole.unit, scale=scale, **limits).theta
        out.append(theta)
    return out


def score(based: dict[int, MDP], group: np.ndarray | None, theta: np.ndarray, trips: Trajectories) -> float:
    """Log-probability per step; −inf where θ has no finite values on the way to some goal."""
    total = 0.0
    for k, some in by_group(trips, group).items():
        start = np.bincount(some.first, minlength=based[k].n_states).astype(float)
        try:
            total += float(reward_log_likelihood(based[k], based[k].reward(theta), some, start).sum())
        except NoFiniteValue:
            return -np.inf
    return total / int((trips.lengths - 1).sum())


def one(folder: str, n_expert: int, seed: int) -> list[dict[str, Any]]:
    mdp, trips, role = problem(folder)
    random = np.random.default_rng(seed)
    if (role == "expert").any():
        order = random.permutation(np.flatnonzero(role == "expert"))
        others = random.permutation(np.flatnonzero(role == "unlabelled"))[:500]
        test = trips[np.flatnonzero(role == "test")]
    else:
        order = random.permutation(len(trips))
        others, test = order[-800:], trips[order[-1100:-800]]
    expert, validation, unlabelled = trips[order[:n_expert]], trips[order[n_expert : n_expert + 10]], trips[others]
    penalty = CompleteGraph().penalty(expert + unlabelled, feature_counts(mdp, expert + unlabelled))
    n_goals = np.unique(trips.goals).size
    tried: dict[str, tuple[dict[int, MDP], np.ndarray | None]] = {
        "no base policy": ({0: mdp}, None),
        "one for all": (base_policies(mdp, unlabelled, None), None),
    }
    for n in GROUPS:
        if n <= n_goals:
            group = groups(folder, n)
            tried[f"{n} groups"] = base_policies(mdp, unlabelled, group), group
    rows = []
    for name, (based, group) in tried.items():
        found = [(score(based, group, t, validation), x, t) for t, x in
                 zip(path(based, group, expert, penalty), LAMBDAS, strict=True)]  # fmt: skip
        _, lambda0, theta = max(found, key=lambda item: item[:2])
        rows.append({"problem": Path(folder).name, "experts": n_expert, "seed": seed, "base": name, "lambda0": lambda0,
                     "score": score(based, group, theta, test)})  # fmt: skip
    return rows


def main() -> None:
    parser = options(__doc__ or "", runs=16)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(one, [(str(arguments.folder), l, s) for l in (5, 10) for s in seeds], arguments.jobs)
    write(rows, arguments.out / f"goals-{arguments.folder.name}.csv")
    for l in (5, 10):
        common = column(rows, "score", experts=l, base="one for all")
        for name in dict.fromkeys(row["base"] for row in rows):
            own = column(rows, "score", experts=l, base=name)
            print(f"l = {l:2d}  {name:15s} {own.mean():8.4f}   ahead of one for all by {shown(own - common)}")


if __name__ == "__main__":
    main()
