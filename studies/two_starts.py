"""Does a fit that says it converged depend on where its search began? Random problems, two starts each.

python -m studies.two_starts N [SEED]: N problems of all kinds (discounted, with a horizon, discount 1 with terminal
states; random and deterministic transitions; with and without actions). Each is fitted from zero and from a random
θ. Counted are the pairs in which both fits claim convergence and neither warns, and of these the pairs whose weights
differ by more than 1e-4, relative to max(|θ_j|, 1/σ_j), or whose objectives differ by more than 1e-8. Then, of the
problems that have a well determined maximum inside the box (every eigenvalue of the information at least 0.1, in units
of the features), the share of fits that warn.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

from messirl import MDP, MaxEntIRL, Trajectories, sample, soft_policy
from messirl.data.feature_scale import feature_spread
from messirl.objective import Objective

CLEAR = 0.1  # the least eigenvalue of the information that a well determined maximum has


def random_problem(rng: Any) -> tuple[str, MDP, Trajectories] | None:
    """A name of its kind, a small random MDP, and trajectories of a random soft policy; None where there are none."""
    n, actions, d = int(rng.integers(3, 9)), int(rng.integers(2, 4)), int(rng.integers(1, 5))
    kind = str(rng.choice(["discounted", "horizon", "ending"]))
    deterministic = bool(rng.random() < 0.5)
    transitions = np.zeros((n, actions, n))
    for s in range(n):
        for a in range(actions):
            if a and rng.random() < 0.25:
                continue  # not allowed
            if deterministic:
                transitions[s, a, rng.integers(n)] = 1.0
            else:
                some = rng.choice(n, size=min(n, int(rng.integers(1, 4))), replace=False)
                transitions[s, a, some] = rng.dirichlet(np.ones(some.size))
    arguments: dict[str, Any] = {"discount": float(rng.choice([0.5, 0.9, 0.99]))}
    if kind == "horizon":
        arguments = {"discount": float(rng.choice([0.9, 1.0])), "horizon": int(rng.integers(2, 10))}
    elif kind == "ending":
        arguments = {"discount": 1.0, "terminal": np.arange(n) == n - 1}
    by_step = bool(rng.random() < 0.3)
    features = rng.normal(size=(n, actions, d) if by_step else (n, d)) * np.exp(rng.normal(size=d))
    if kind == "ending":
        features[..., 0] = np.abs(features[..., 0]) + 0.2  # a cost, so that some weights let values be finite
    mdp = MDP(transitions, features, **arguments)
    theta = rng.normal(size=d) * rng.choice([0.3, 1.0, 3.0]) / feature_spread(mdp)
    if kind == "ending":
        theta[0] = -np.abs(theta[0]) - 2.0 / features[..., 0].min()
    try:
        length = None if kind != "discounted" else int(rng.integers(5, 30))
        starts = np.ones(n) * ~mdp.terminal if kind == "ending" else np.ones(n)
        expert = sample(
            mdp,
            soft_policy(mdp, mdp.reward(theta)),
            int(rng.choice([2, 5, 10, 30])),
            length,
            start=starts,
            random_state=int(rng.integers(2**31)),
        )
    except ValueError:
        return None
    if expert.lengths.max() < 2:
        return None
    if rng.random() < 0.3:
        expert = Trajectories(expert.states, expert.offsets, None)
    return f"{kind} {'deterministic' if deterministic else 'random'}", mdp, expert


def fitted(mdp: MDP, expert: Trajectories, start: Any) -> tuple[Any, list[str]] | None:
    """A fit, and the kinds of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = MaxEntIRL(theta_init=start).fit(mdp, expert)
        except ValueError:
            return None
    return model, [str(one.message) for one in caught]


def well_determined(mdp: MDP, expert: Trajectories, theta: Any) -> bool:
    """Whether the log-likelihood has a clear maximum at θ, far inside the box."""
    objective = Objective.from_trajectories(mdp, expert, objective="choices")
    point = objective(theta)
    if not np.isfinite(point.value) or np.abs(theta).max() > 400.0:
        return False
    unit = feature_spread(mdp)
    information = -objective.size * objective.hessian(theta) / np.outer(unit, unit)
    step = np.linalg.lstsq(information, objective.size * point.gradient / unit, rcond=None)[0]
    return bool(np.linalg.eigvalsh(information)[0] > CLEAR and np.abs(step).max() < 1e-3)


def main(n: int, seed: int = 0) -> None:
    """Print the counts, and the seed of every problem on which two silent fits differ."""
    counts: Counter[str] = Counter()
    done = number = 0
    while done < n:
        number += 1
        rng = np.random.default_rng([seed, number])
        made = random_problem(rng)
        if made is None:
            continue
        kind, mdp, expert = made
        unit, far = feature_spread(mdp), rng.choice([1.0, 3.0, 10.0])
        found = [fitted(mdp, expert, start) for start in (None, far * rng.normal(size=unit.size) / unit)]
        done += 1
        if found[0] is None or found[1] is None:
            counts["refused"] += 1
            continue
        (one, said), (two, said_too) = found
        clear = well_determined(mdp, expert, one.theta_) or well_determined(mdp, expert, two.theta_)
        counts["well determined"] += clear
        counts["well determined, and the first fit warns"] += clear and bool(said)
        if clear and said:
            print(number, kind, "warns although well determined:", said[0][:150], flush=True)
        if said or said_too or not (one.converged_ and two.converged_):
            counts["warned"] += 1
            continue
        counts["silent"] += 1
        gap = np.abs(one.theta_ - two.theta_) / np.maximum(np.abs(one.theta_), 1.0 / unit)
        rise = abs(one.objective_ - two.objective_)
        differ = gap.max() > 1e-4
        counts["silent, other weights"] += differ and rise <= 1e-8
        counts["silent, other objective"] += rise > 1e-8
        if differ or rise > 1e-8:
            print(number, kind, one.theta_.round(4), two.theta_.round(4), f"{one.objective_:.9f} {two.objective_:.9f}")
    for name, many in counts.items():
        print(f"{name}: {many}")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
