"""What is paid once for a problem, in evaluations: making the MDP, packing its dynamics, asking what identifies θ."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.problems import corner, grid, macro_cells, transitions, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import median
from messirl import MDP, soft_policy, state_visitation
from messirl.planning.identifiability import unidentified
from messirl.planning.memory_layout import layout_of

HORIZON, DISCOUNT = 100, 0.99


def rows() -> Iterator[Row]:
    for side in (16, 64):
        given = transitions(side), macro_cells(side)

        def make(side=side, given=given):
            return MDP(*given, start=corner(side), discount=DISCOUNT, horizon=HORIZON)

        def pack(make=make):
            layout_of(make())  # an MDP keeps its layout: a new one each time

        mdp = grid(side, discount=DISCOUNT, horizon=HORIZON)
        reward = mdp.reward(true_theta())
        evaluation = median(lambda mdp=mdp, reward=reward: state_visitation(mdp, soft_policy(mdp, reward)), runs=25)
        making = median(make)
        packing = max(0.0, median(pack) - making)
        asking = median(lambda mdp=mdp: unidentified(mdp, mdp.start, None), runs=1)
        for what, time in (
            ("making the MDP", making),
            ("packing, at the first evaluation", packing),
            ("identifiability, at the first fit", asking),
        ):
            yield Row(f"once per problem, {side}²: {what}", seconds(time), f"{time / evaluation:.3g} evaluations")
