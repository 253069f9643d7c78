"""Choices against counts on random stochastic problems, and whether it matters where the search begins.

Garnet problems: 50 states, 4 actions, each with 3 successors drawn without return and probabilities from a flat
Dirichlet distribution, 8 standard normal features, γ = 0.95, a uniform start. θ* is standard normal, so that the expert
takes about 2.3 of the 4 actions (the exponential of its entropy); it follows the soft policy of θ* for 60 states.

`garnet.csv`: with 1, 5 and 20 expert trajectories, objective counts or choices, their own start, ridge 0 or 1e-3: how
far the learnt policy's mean reward under θ* is below the expert's, and the log-probability per step of 100 further
trajectories of the expert.

`garnet-starts.csv`: how often a search for choices that begins at one of five random θ (normal, of five scales) ends
higher than the one that begins at zero, with state features, with state-action features, and with actions unrecorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl import MDP, MaxEntIRL, Trajectories, sample, soft_policy, state_visitation
from studies.common import Rows, column, draws, options, shown, write

STATES, ACTIONS, BRANCHING, FEATURES, DISCOUNT = 50, 4, 3, 8, 0.95
LENGTH, HELD_OUT = 60, 100
EXPERTS = (1, 5, 20)
RIDGES = (0.0, 1e-3)
OBJECTIVES = ("counts", "choices")
KINDS = ("state features", "state-action features", "actions unrecorded")
SCALES = (0.3, 1.0, 3.0, 10.0, 30.0)  # of the random θ that searches begin at
HIGHER = 1e-6  # an objective is higher if it is so by more than this share of it
FIRST = 6000


def garnet(random: np.random.Generator, *, state_action: bool = False) -> tuple[MDP, np.ndarray]:
    """A problem and θ*."""
    moves = np.zeros((STATES, ACTIONS, STATES))
    for row in moves.reshape(-1, STATES):
        row[random.choice(STATES, BRANCHING, replace=False)] = random.dirichlet(np.ones(BRANCHING))
    features = random.normal(size=(STATES, ACTIONS, FEATURES) if state_action else (STATES, FEATURES))
    mdp = MDP(moves, features, start=np.full(STATES, 1.0 / STATES), discount=DISCOUNT)
    return mdp, random.normal(size=FEATURES)


def unrecorded(trajectories: Trajectories) -> Trajectories:
    """The same trajectories without their actions."""
    return Trajectories.from_lists([one.states.tolist() for one in trajectories])


def compare(seed: int) -> Rows:
    """Every fit of one problem; experts of smaller sets are among those of larger ones."""
    random = np.random.default_rng(seed)
    mdp, star = garnet(random)
    policy = soft_policy(mdp, mdp.reward(star))
    experts, held_out = sample(mdp, policy, EXPERTS[-1], LENGTH, random), sample(mdp, policy, HELD_OUT, LENGTH, random)

    def mean_reward(followed: np.ndarray) -> float:
        return (1.0 - DISCOUNT) * float(state_visitation(mdp, followed) @ mdp.reward(star))

    rows = []
    for n in EXPERTS:
        for objective in OBJECTIVES:
            for ridge in RIDGES:
                model = MaxEntIRL(objective=objective, ridge=ridge).fit(mdp.replace(start=None), experts[:n])
                rows.append(
                    {
                        "seed": seed,
                        "experts": n,
                        "objective": objective,
                        "ridge": ridge,
                        "loss": mean_reward(policy) - mean_reward(model.policy_),
                        "score": float(model.score(held_out)),
                        "theta_norm": float(np.abs(model.theta_).max()),
                        "converged": model.converged_,
                    }
                )
    return rows


def starts(seed: int, kind: str) -> Rows:
    """Where searches for choices end that begin elsewhere than at zero."""
    random = np.random.default_rng(seed)
    mdp, star = garnet(random, state_action=kind == "state-action features")
    policy = soft_policy(mdp, mdp.reward(star))
    experts, held_out = sample(mdp, policy, EXPERTS[-1], LENGTH, random), sample(mdp, policy, HELD_OUT, LENGTH, random)
    if kind == "actions unrecorded":
        experts, held_out = unrecorded(experts), unrecorded(held_out)
    begin = [scale * random.normal(size=FEATURES) for scale in SCALES]
    own = mdp.replace(start=None)
    rows = []
    for n in EXPERTS:
        for ridge in RIDGES:

            def fitted(theta: Any, n: int = n, ridge: float = ridge) -> MaxEntIRL:
                return MaxEntIRL(objective="choices", ridge=ridge, theta_init=theta).fit(own, experts[:n])

            zero, others = fitted(None), [fitted(theta) for theta in begin]
            gains = np.array([other.objective_ - zero.objective_ for other in others]) / abs(zero.objective_)
            best = others[int(np.argmax(gains))]
            rows.append(
                {
                    "seed": seed,
                    "kind": kind,
                    "experts": n,
                    "ridge": ridge,
                    **{f"gain from scale {s:g}": float(gain) for s, gain in zip(SCALES, gains, strict=True)},
                    "converged": zero.converged_,
                    "score": float(zero.score(held_out)),
                    "score of the highest": float((best if gains.max() > HIGHER else zero).score(held_out)),
                }
            )
    return rows


def tell(rows: Rows) -> None:
    """Choices against counts, paired by problem."""
    for ridge in RIDGES:
        for n in EXPERTS:
            for name in ("loss", "score"):
                mine = [column(rows, name, experts=n, objective=one, ridge=ridge) for one in OBJECTIVES]
                means = ", ".join(f"{one} {values.mean():.4f}" for one, values in zip(OBJECTIVES, mine, strict=True))
                print(f"ridge {ridge:g}, {n} experts, {name}: {means}; choices - counts {shown(mine[1] - mine[0])}")


def tell_starts(rows: Rows) -> None:
    """The share of fits that another start ends higher in, and of starts that do, or that end lower."""
    names = [f"gain from scale {s:g}" for s in SCALES]
    for kind in KINDS:
        for ridge in RIDGES:
            for n in EXPERTS:
                wanted = {"kind": kind, "ridge": ridge, "experts": n}
                gains = np.array([column(rows, name, **wanted) for name in names])
                higher, lower = gains > HIGHER, gains < -HIGHER
                better = column(rows, "score of the highest", **wanted) - column(rows, "score", **wanted)
                share = higher.any(axis=0).mean()
                print(
                    f"{kind}, ridge {ridge:g}, {n} experts: another start ends higher in {share:.0%} of fits "
                    f"({higher.mean():.1%} of starts; by {gains.max():.2g} at most), lower {lower.mean():.1%} "
                    f"of starts; held-out score by the highest {shown(better)}"
                )


def main() -> None:
    parser = options(__doc__ or "", runs=50)
    parser.set_defaults(seed=FIRST)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    rows = draws(compare, [(seed,) for seed in seeds], arguments.jobs)
    write(rows, arguments.out / "garnet.csv")
    tell(rows)
    rows = draws(starts, [(seed, kind) for kind in KINDS for seed in seeds], arguments.jobs)
    write(rows, arguments.out / "garnet-starts.csv")
    tell_starts(rows)


if __name__ == "__main__":
    main()
