"""Whether a search ended on a summit, where the objective need not be concave: J of choices.

Where the gradient vanishes J may still rise, on a saddle. The curvature is looked at in a Krylov space: directions that
Lanczos' method builds from products of ∇²J with a vector, each a difference of two exact gradients. It holds the
direction of strongest rise, if there is one, after a few of them; with few features it is the whole space.
"""

from __future__ import annotations

import numpy as np

from messirl._types import Floats
from messirl.objective import Objective

DIRECTIONS = 12  # looked at, at most
STEP = 1e-5  # of the differences, in units of the weights
RISE = 1e-3  # curvature, relative to the largest there is, from which on J is said to rise


def upward(objective: Objective, theta: Floats, bound: float) -> Floats | None:
    """A direction (d,) in which J rises both ways from where its gradient vanishes; None on a summit."""
    if objective.concave:
        return None
    unit = np.where(np.abs(theta) < bound * (1.0 - 1e-9), 1.0 / objective.scale, 0.0)
    step, here = STEP * max(1.0, float(np.abs(theta * objective.scale).max())), objective(theta).gradient
    basis = [np.random.default_rng(0).normal(size=theta.size) * (unit > 0)]
    basis[0] /= max(float(np.linalg.norm(basis[0])), 1e-300)
    products: list[Floats] = []
    while len(products) < min(DIRECTIONS, int((unit > 0).sum())):
        products.append(unit * (objective(theta + step * unit * basis[-1]).gradient - here) / step)
        rest = products[-1] - np.array(basis).T @ (np.array(basis) @ products[-1])
        size = float(np.linalg.norm(rest))
        if not size > 1e-6 * float(np.linalg.norm(products[-1])):  # the space is closed, or values are not finite
            break
        basis.append(rest / size)
    space = np.array(basis[: len(products)])
    bend = space @ np.array(products).reshape(space.shape).T
    if not space.size or not np.isfinite(bend).all():
        return None
    values, vectors = np.linalg.eigh(0.5 * (bend + bend.T))
    return unit * (vectors[:, -1] @ space) if values[-1] > RISE * float(np.abs(values).max()) else None
