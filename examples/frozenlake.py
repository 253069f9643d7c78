"""Gymnasium's slippery FrozenLake: five episodes of an optimal player, forty of players of unknown quality.

Run `python examples/frozenlake.py [folder]`; it needs gymnasium (pip install 'messirl[gym]'). Look at the picture: on
which tiles the learnt policy makes the optimal move, though it never saw a reward; it is lost only where the five
episodes never came. Look at the scores: on this small lake five good episodes say most of what there is to say, and
the other forty add little. examples/quickstart.py and examples/mice.py show where they add much.
"""

import sys
import warnings
from pathlib import Path

import gymnasium
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from messirl import MESSI, IdentifiabilityWarning, MaxEntIRL, optimal_policy, plot
from messirl.io.interop.gym import from_gym, gym_reward, record
from messirl.similarity import RBF

warnings.simplefilter("ignore", IdentifiabilityWarning)  # some tiles can be entered in no episode
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")

env = gymnasium.make("FrozenLake-v1", map_name="8x8")
mdp = from_gym(env, discount=0.97, features="entered")  # one feature a tile: it is stepped onto
best = optimal_policy(mdp, gym_reward(env))
anything = np.full(best.shape, 1 / mdp.n_actions)

expert = record(env, best, 5, length=500, seed=11)
others = record(env, best, 20, length=500, seed=12) + record(env, anything, 20, length=500, seed=13)
held_out = record(env, best, 100, length=500, seed=14)

models = {
    "MaxEnt-IRL": MaxEntIRL(ridge=0.001).fit(mdp, expert),
    "MESSI": MESSI(RBF("median", standardise=True), lambda0=0.002, theta_max=10.0, max_iter=500).fit(
        mdp, expert, others
    ),
}
print("log-probability a step of 100 other optimal episodes")
for name, model in models.items():
    print(f"{name:12s} {model.score(held_out):7.3f}   (chance {np.log(1 / mdp.n_actions):.3f})")

tiles, letters = plot.grid(8, 8), env.unwrapped.desc.astype(str).ravel()
_, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    agree = (model.policy_ * best).sum(axis=1)[:64]
    agree[np.isin(letters, ["H", "G"])] = np.nan  # the game is over there
    plot.states(agree, tiles, ax, label="probability of the optimal move")
    ax.set_title(f"{name} (S start, H hole, G goal)")
    for (x, y), letter in zip(tiles, letters, strict=True):
        ax.text(x, y, letter.replace("F", ""), ha="center", va="center", fontweight="bold")
out.mkdir(parents=True, exist_ok=True)
plt.savefig(out / "frozenlake.png", dpi=110)
print(f"picture in {out / 'frozenlake.png'}")
