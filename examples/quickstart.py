"""One expert trajectory, twenty of unknown quality, a slippery 8 × 8 grid: MaxEnt-IRL beside MESSI, as in the paper.

Run it with `make run`, or `python examples/quickstart.py [figure.png]`. It prints how well each imitates the expert
(expected reward under the true reward) and saves a picture of what each has learnt. It also prints what a light ridge
does with the expert's trajectory alone, and with the others as a base policy: here, more than MESSI.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from messirl import (
    MDP,
    MESSI,
    IdentifiabilityWarning,
    MaxEntIRL,
    Trajectories,
    plot,
    sample,
    soft_policy,
    state_visitation,
)
from messirl.similarity import Exponential

SIDE, SUCCESS, DISCOUNT, LENGTH = 8, 0.7, 0.9, 40
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


def slippery_grid() -> MDP:
    """Four actions, each done with probability 0.7 and else replaced by another; one feature for every 2 × 2 block."""
    n = SIDE * SIDE
    transitions = np.zeros((n, 4, n))
    for s in range(n):
        row, column = divmod(s, SIDE)
        for done, (dr, dc) in enumerate(MOVES):
            to = min(max(row + dr, 0), SIDE - 1) * SIDE + min(max(column + dc, 0), SIDE - 1)
            for action in range(4):
                transitions[s, action, to] += SUCCESS if action == done else (1 - SUCCESS) / 3
    rows, columns = np.divmod(np.arange(n), SIDE)
    features = np.eye((SIDE // 2) ** 2)[rows // 2 * (SIDE // 2) + columns // 2]
    return MDP(transitions, features, start=np.full(n, 1 / n), discount=DISCOUNT)


def main(figure: Path) -> None:
    """Compare the two methods over 20 draws, then draw the last one."""
    warnings.simplefilter("ignore", IdentifiabilityWarning)  # a constant added to every block's reward changes nothing
    mdp = slippery_grid()
    expert_wants = np.full(mdp.n_features, -1.0)
    expert_wants[[2, 7, 8]] = 1.0

    gains: dict[str, list[float]] = {}
    for run in range(20):
        random = np.random.RandomState(run)
        driver = soft_policy(mdp, mdp.reward(3 * expert_wants))
        stranger = soft_policy(mdp, mdp.reward(3 * random.normal(size=mdp.n_features)))
        expert = sample(mdp, driver, 1, LENGTH, random)
        unlabelled: Trajectories = sample(mdp, driver, 10, LENGTH, random) + sample(mdp, stranger, 10, LENGTH, random)
        models = {
            "MaxEnt-IRL": MaxEntIRL(objective="counts", theta_max=10.0).fit(mdp, expert),
            "MESSI": MESSI(Exponential(10.0), objective="counts", lambda0=0.03, theta_max=10.0).fit(
                mdp, expert, unlabelled
            ),
            "light ridge": MaxEntIRL(ridge=0.001).fit(mdp, expert),
            "base policy": MaxEntIRL(ridge=0.001, reference="unlabelled").fit(mdp, expert, unlabelled),
        }
        for name, model in models.items():
            gains.setdefault(name, []).append(float(mdp.counts(model.visitation_) @ expert_wants))

    best = float(mdp.counts(state_visitation(mdp, driver)) @ expert_wants)
    print(f"expected reward of the expert  {best:7.2f}")
    for name, values in gains.items():
        print(f"expected reward of {name:11s} {np.mean(values):7.2f}   (mean of {len(values)} draws)")
    gain = np.subtract(gains["MESSI"], gains["MaxEnt-IRL"])
    half = 1.96 * gain.std(ddof=1) / np.sqrt(gain.size)
    print(f"MESSI - MaxEnt-IRL             {gain.mean():7.2f} ± {half:.2f}")

    at = plot.grid(SIDE, SIDE)
    _, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    plot.states(mdp.reward(expert_wants), at, axes[0], label="reward", diverging=True)
    axes[0].set_title("what the expert wants")
    for ax, name in zip(axes[1:], ("MaxEnt-IRL", "MESSI"), strict=True):
        plot.policy(models[name], at, ax)
        ax.set_title(f"{name}: reward and policy")
    figure.parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(figure, dpi=110)
    print(f"picture in {figure}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out/quickstart.png"))
