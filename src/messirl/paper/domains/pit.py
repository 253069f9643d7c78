"""The pit (App. B.2): a 6 × 6 grid, 85 % success, a pit in the middle; from (1, 1) to (6, 6), where it ends.

Features: left edge (left column and top row), right edge (bottom row and right column), pit (the 4 × 4 inside). The
expert's one trajectory goes round counter-clockwise, along the right edge, and never slips. Unlabelled trajectories
come from policies that go round either way (P_u*), and from policies that cross: in stairs (P_1), or straight through
the middle (P_2). The paper has one crossing policy; the second is ours, for the mixtures μ2 and μ3. The
similarity is exp(−|n_j − n_k|) on changes of direction; the performance is minus the expected visits to the pit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from messirl._types import Floats
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.paper.domains.domain import Domain, Scene
from messirl.paper.domains.slippery_grid import ACTIONS, coordinates, slippery
from messirl.planning import sample

UP, DOWN, LEFT, RIGHT = range(4)


@dataclass(frozen=True)
class TurnSimilarity:
    """exp(−|n_j − n_k| / scale), n the number of changes of direction; steps that stay in place have no direction."""

    scale: float = 1.0

    def __call__(self, trajectories: Trajectories, counts: Floats) -> Floats:
        """Return exp(−|difference in changes of direction| / scale), (n, n)."""
        turns = changes_of_direction(trajectories)
        return np.asarray(np.exp(-np.abs(turns[:, None] - turns[None, :]) / self.scale))


def changes_of_direction(trajectories: Trajectories) -> Floats:
    """Count how often each trajectory turns, (n,)."""
    out = np.zeros(len(trajectories))
    for i, trajectory in enumerate(trajectories):
        moves = np.diff(trajectory.states)
        moves = moves[moves != 0]
        out[i] = np.count_nonzero(np.diff(moves))
    return out


def pit(
    *,
    side: int = 6,
    success: float = 0.85,
    discount: float = 0.95,
    length: int = 200,
    scale: float = 1.0,
    experts: int = 1,
    pool: int = 100,
    similarity: Any = None,
) -> Domain:
    """Make the domain; `length` caps trajectories that do not reach the end, `scale` is that of the similarity.

    Experts beyond the first go the same way round, but may slip.
    """
    settings = {k: v for k, v in locals().items() if k != "similarity"}
    at = coordinates(side)
    x, y = at.T
    last = side - 1
    terminal = (x == last) & (y == last)
    inside = (x > 0) & (x < last) & (y > 0) & (y < last)
    left = ((x == 0) | (y == last)) & ~terminal
    right = ~inside & ~left
    start = ((x == 0) & (y == 0)).astype(float)
    mdp = MDP(
        slippery(side, success),
        np.column_stack([left, right, inside]).astype(float),
        start=start,
        discount=discount,
        terminal=terminal,
        action_names=ACTIONS,
        feature_names=["left edge", "right edge", "pit"],
    )
    # Along the edge; after a slip into the pit, back to the edge it came from.
    back = np.where(x < y, LEFT, DOWN)
    counter_clockwise = _follow(np.select([x == last, y == 0, x == 0], [UP, RIGHT, DOWN], back), terminal)
    back = np.where(x > y, DOWN, LEFT)
    clockwise = _follow(np.select([y == last, x == 0, y == 0], [RIGHT, UP, LEFT], back), terminal)
    stairs = _follow(np.where((x <= y) & (x < last), RIGHT, UP), terminal)
    straight = _follow(np.where((x < side // 2) | (y == last), RIGHT, UP), terminal)
    round_trip = np.concatenate([np.arange(side), side * np.arange(2, side + 1) - 1])
    expert = Trajectories.from_lists([round_trip.tolist()], actions=[[RIGHT] * last + [UP] * last])
    alike = TurnSimilarity(scale) if similarity is None else similarity

    def scene(seed: int) -> Scene:
        random = np.random.RandomState(seed)
        either = [sample(mdp, policy, pool, length, random) for policy in (counter_clockwise, clockwise)]
        way = random.randint(2, size=pool)
        pools = {
            "star": (either[0] + either[1])[way * pool + np.arange(pool)],
            "one": sample(mdp, stairs, pool, length, random),
            "two": sample(mdp, straight, pool, length, random),
        }

        drawn = (pools, random.random_sample(pool), -inside.astype(float), counter_clockwise)
        more = [] if experts == 1 else [sample(mdp, counter_clockwise, experts - 1, length, random)]

        def performance(visits: Floats) -> float:
            return -(1.0 - discount) * float(visits[inside].sum())

        return Scene(mdp, sum(more, expert), *drawn, alike, performance, {})

    def draw(ax: Any) -> None:
        ax.imshow((0.75 * inside + 0.25 * right).reshape(side, side), origin="lower", cmap="Greys", vmin=0, vmax=1)
        dark, pale = "#141414", "#fcfcfc"  # not pure black and white, which pages invert in dark mode
        ax.plot(*at[round_trip[:-1]].T, color=dark, linewidth=2.5)
        ax.annotate("", xy=at[-1], xytext=at[-1 - side], arrowprops={"arrowstyle": "-|>", "color": dark, "lw": 2.5})
        words = ((last, "left edge", dark), (-0.3, "right edge", dark), (last / 2, "pit", pale))
        for height, word, colour in words:
            ax.text(last / 2, height, word, ha="center", va="center", fontsize=10, color=colour)
        ax.set_xticks([])
        ax.set_yticks([])

    return Domain("pit", mdp, settings, scene, draw)


def _follow(action: Any, terminal: Any) -> Floats:
    """Return the policy (S, 4) that always takes `action`."""
    policy = np.eye(4)[action]
    policy[terminal] = 0.0
    return np.asarray(policy)
