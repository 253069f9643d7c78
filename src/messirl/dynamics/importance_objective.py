"""Expected counts from the recorded trajectories by importance weighting, without dynamics.

    w_ζ ∝ exp(θᵀf_ζ) / Π_t b(a_t|s_t),     f_θ = Σ_ζ w_ζ f_ζ,     Σ_ζ w_ζ = 1

with b the behaviour policy, estimated by a classifier; the dynamics cancel, as behaviour and model share them. f* − f_θ
is the exact gradient of L(θ) = θᵀf* − log Σ_ζ exp(θᵀf_ζ) / Π b (relative entropy IRL; Boularias, Kober & Peters 2011).
For long trajectories a few weights dominate, which the effective sample size 1/Σ w² shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from messirl._types import Floats
from messirl.dynamics.fitted_value_iteration import penalised
from messirl.dynamics.transition_dataset import Samples, Scale
from messirl.objective import Evaluation


class ImportanceObjective:
    """J(θ) = L(θ) − ½ θᵀQθ over weighted trajectories with counts (n, d)."""

    def __init__(self, counts: Floats, log_behaviour: Floats, target: Floats, quadratic: Floats | None) -> None:
        self.counts, self.log_behaviour, self.target, self.quadratic = counts, log_behaviour, target, quadratic

    def __call__(self, theta: Floats) -> Evaluation:
        """Return J and its gradient at θ."""
        score = self.counts @ theta - self.log_behaviour
        log_z = float(logsumexp(score))
        expected = np.exp(score - log_z) @ self.counts
        return penalised(theta, float(theta @ self.target) - log_z, self.target, expected, self.quadratic)

    def effective_sample_size(self, theta: Floats) -> float:
        """Return 1/Σ w², between 1 and the number of trajectories."""
        score = self.counts @ theta - self.log_behaviour
        return float(np.exp(2.0 * logsumexp(score) - logsumexp(2.0 * score)))


def log_behaviour(classifier: Any, samples: Samples) -> Floats:
    """Return Σ_t log b(a_t|s_t) of every trajectory, (n,), with b fitted to all steps."""
    trajectories = samples.trajectories
    actions = trajectories.actions
    assert actions is not None
    left = trajectories.leaves
    points = Scale.of(samples.points)(samples.points)[trajectories.states[left]]
    fitted = clone(classifier).fit(points, actions)
    taken = np.asarray(fitted.predict_proba(points))[np.arange(actions.size), actions]
    if not (taken > 0).all():
        raise ValueError(
            f"the classifier gives probability 0 to the action recorded at step {int(np.argmin(taken > 0))} of all: "
            "use one that is less certain, such as a forest with larger leaves"
        )
    trajectory = np.repeat(np.arange(len(trajectories)), trajectories.lengths - 1)
    return np.bincount(trajectory, np.log(taken), minlength=len(trajectories)).astype(np.float64)
