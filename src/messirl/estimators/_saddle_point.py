"""Second-order check: tell a maximum from a saddle point, where J (of choices) need not be concave.

Where the gradient vanishes J may still rise, on a saddle point. The Hessian is projected onto a Krylov space, which
Lanczos' method builds from Hessian-vector products, each a difference of two exact gradients. A few of them suffice to
find the direction of strongest rise, if there is one; with few features they span the whole space.
"""

from __future__ import annotations

import numpy as np

from messirl._types import Floats
from messirl.objective import Objective

DIRECTIONS = 12  # largest dimension of the Krylov space
STEP = 1e-5  # step of the differences, in units of the weights
RISE = 1e-3  # curvature, relative to the largest one, above which J counts as rising


def ascent_direction(objective: Objective, theta: Floats, bound: float) -> Floats | None:
    """Return a direction (d,) along which J rises both ways from a stationary point; None at a maximum."""
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
    hessian = space @ np.array(products).reshape(space.shape).T  # projected
    if not space.size or not np.isfinite(hessian).all():
        return None
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    return unit * (vectors[:, -1] @ space) if values[-1] > RISE * float(np.abs(values).max()) else None
