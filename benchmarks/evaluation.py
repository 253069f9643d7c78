"""One evaluation (`soft_policy` and `state_visitation`) at horizon 100, against dense NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import dense
from benchmarks.problems import dense_rows, grid, true_theta
from benchmarks.table import Row, seconds
from benchmarks.timing import compare
from messirl import soft_policy, soft_values, state_visitation

HORIZON = 100
DISCOUNT = 0.99
SIDES = {16: (18.0, 15), 32: (100.0, 7), 64: (350.0, 3)}  # side: the ratio asked for, rounds


def rows() -> Iterator[Row]:
    for side, (target, rounds) in SIDES.items():
        mdp = grid(side, discount=DISCOUNT, horizon=HORIZON)
        table, reward = dense_rows(mdp), mdp.reward(true_theta())

        def ours(mdp=mdp, reward=reward):
            policy = soft_policy(mdp, reward)
            return policy, state_visitation(mdp, policy)

        def other(mdp=mdp, table=table, reward=reward):
            return dense.evaluate(table, reward, mdp.start, DISCOUNT, HORIZON)

        policy, visits = ours()
        dense_value, dense_policy, dense_visits = other()
        for mine, theirs in (
            (soft_values(mdp, reward)[0], dense_value),
            (policy, dense_policy),
            (visits, dense_visits),
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
        times = compare(ours, other, rounds)
        yield Row(
            f"one evaluation, {side}², horizon {HORIZON}: dense NumPy",
            seconds(times.ours),
            seconds(times.other),
            times.ratio,
            target,
        )
