"""The Fisher kernel: two trajectories are similar if they would change a fitted model in the same way.

    u_ζ = ∇θ log p(ζ|θ)       the score of a trajectory, (d,)
    F = (1/n) Σ_ζ u_ζ u_ζᵀ    the information in them
    k(ζ, ζ') = u_ζᵀ F⁻¹ u_ζ'  the Fisher kernel, negative where two trajectories pull θ in opposite directions
    s(ζ, ζ') = exp(−(u_ζ − u_ζ')ᵀ F⁻¹ (u_ζ − u_ζ') / 2σ)

A similarity must not be negative (Eq. 5), so it is a Gaussian of the distance that the kernel induces. F is estimated
from the given trajectories; directions in which no score varies beyond rounding are left out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from messirl._checks import check_number
from messirl._types import Floats
from messirl.similarity.approximate_penalty import kernel_penalty
from messirl.similarity.base import Similarity
from messirl.similarity.kernel_base import Kernel
from messirl.similarity.kernels import TOL, bandwidth, gaussian

SINGULAR = 1e-10  # eigenvalues of the information below this share of the largest are rounding


@dataclass(frozen=True, eq=False)
class FisherKernel(Similarity):
    """exp(−‖u − u'‖²/2σ) of scores u = F^(−½) ∇θ log p(ζ|θ), of a fitted model with θ.

    The model is usually one fitted to the experts only. A saved MESSI with this similarity does not contain the model:
    set `similarity` anew before fitting a loaded one.

    Parameters
    ----------
    model : estimator
        A fitted `MaxEntIRL`, `MESSI` or `EMMaxEnt`: anything with `scores(trajectories)`, (n, d).
    sigma : float or "median"
        The width; "median" is the median of ‖u − u'‖² over all pairs.

    References
    ----------
    Jaakkola, Haussler: Exploiting Generative Models in Discriminative Classifiers, NIPS 1998.

    Examples
    --------
    Two of three walk to the right, as the experts do, and one to the left.

    >>> import numpy as np
    >>> from messirl import MDP, MaxEntIRL, Trajectories
    >>> from messirl.similarity import FisherKernel
    >>> moves = np.stack([np.eye(4)[[0, 0, 1, 2]], np.eye(4)[[1, 2, 3, 3]]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 4)[:, None], discount=0.9, horizon=3)
    >>> experts = Trajectories.from_lists([[0, 1, 2], [1, 2, 1]], actions=[[1, 1], [1, 0]])
    >>> walks = Trajectories.from_lists([[0, 1, 2], [1, 2, 3], [2, 1, 0]], actions=[[1, 1], [1, 1], [0, 0]])
    >>> similar = FisherKernel(MaxEntIRL().fit(mdp, experts), sigma=1.0)
    >>> similar(walks, np.zeros((3, 1))).round(2)
    array([[1.  , 1.  , 0.12],
           [1.  , 1.  , 0.13],
           [0.12, 0.13, 1.  ]])
    >>> similar.kernel(walks).round(1)
    array([[ 0.2,  0.2, -0.7],
           [ 0.2,  0.2, -0.6],
           [-0.7, -0.6,  2.7]])
    """

    model: Any
    sigma: float | str = "median"

    def on(self, trajectories: Any, counts: Floats) -> Kernel:
        """Return the blocks exp(−‖u − u'‖²/2σ); F and "median" are taken over the whole set."""
        points = self.points(trajectories)
        points = points - points.mean(axis=0)
        sigma = bandwidth(points) if self.sigma == "median" else check_number("sigma", self.sigma, above=0.0)
        return Kernel(points, functools.partial(gaussian, sigma))

    def penalty(self, trajectories: Any, counts: Floats) -> Floats:
        """Return the matrix M (d, d) of Eq. 5; for many trajectories, as for `RBF`, to a relative error of 0.001."""
        return kernel_penalty(self.on(trajectories, counts), counts, TOL)

    def kernel(self, trajectories: Any) -> Floats:
        """Return the Fisher kernel itself, uᵀ F⁻¹ u', (n, n)."""
        points = self.points(trajectories)
        return np.asarray(points @ points.T)

    def points(self, trajectories: Any) -> Floats:
        """Return F^(−½) u of every trajectory, (n, k), one column for each direction in which the scores vary."""
        if trajectories is None:
            raise ValueError("FisherKernel needs trajectories, but was given only their counts")
        if not len(trajectories):
            raise ValueError("FisherKernel needs at least one trajectory, but was given none")
        if isinstance(self.model, type) or not callable(getattr(self.model, "scores", None)):
            raise TypeError(f"FisherKernel needs a fitted model that has theta_ and scores, not {self.model!r:.80}")
        scores = np.asarray(self.model.scores(trajectories), dtype=np.float64)
        unit = np.sqrt((scores**2).mean(axis=0))
        scores = scores / np.where(unit > 0.0, unit, 1.0)  # F⁻¹ does not depend on units; its eigenvalues do
        values, vectors = eigh(scores.T @ scores / len(scores))
        kept = values > SINGULAR * max(float(values[-1]), 1e-300)
        return np.asarray(scores @ vectors[:, kept] / np.sqrt(values[kept]))
