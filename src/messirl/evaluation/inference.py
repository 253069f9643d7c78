"""How sure a fit is of its θ: standard errors, t-values, information criteria, likelihood-ratio tests.

    Hessian    Cov θ = H⁻¹ / n,             H = −∇²J, mean over the n trajectories
    sandwich   Cov θ = H⁻¹ G H⁻¹ / n,       G = the spread of the scores g_i = f_ζi − ∇V(s_0i)

The two agree, for many trajectories, where L is the log-likelihood (deterministic moves, γ = 1: route choice) and the
model is right. Elsewhere only the sandwich counts the luck of the moves, so p-values are the sandwich's. Where θ is not
identified, or lies on the bound, there is no standard error: NaN; nor a robust one where the trajectories do not
differ. A penalty shrinks θ: errors are then those of the penalised estimate, not of the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, norm

from messirl._numbers import probability, significant
from messirl._types import Floats
from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.estimators.standing import some_features
from messirl.objective import Objective
from messirl.optimise import projected_norm
from messirl.planning.curvature import value_gradients
from messirl.problem.counts import feature_counts
from messirl.problem.trajectories import Trajectories

FLAT = 1e-8  # relative curvature below which a direction is not identified
SAME = 1e-12  # of a variance, relative to the size of its terms: rounding


@dataclass(frozen=True)
class EstimationTable:
    """Estimates and their standard errors, one per feature, and how well the model fits as a whole.

    Attributes
    ----------
    names : tuple of str
        The features.
    estimate : array (d,)
        θ.
    std_error, robust_std_error : arrays (d,)
        Standard errors by the Hessian and by the sandwich; NaN where the data do not determine them.
    covariance, robust_covariance : arrays (d, d)
        The covariance of θ by the Hessian and by the sandwich.
    log_likelihood : float
        Of all expert trajectories.
    n_trajectories, n_steps : int
        How many trajectories and steps that was.
    n_parameters : int
        The number of weights, less those on the bound and the directions that are not identified.
    """

    names: tuple[str, ...]
    estimate: Floats
    std_error: Floats
    robust_std_error: Floats
    covariance: Floats
    robust_covariance: Floats
    log_likelihood: float
    n_trajectories: int
    n_steps: int
    n_parameters: int

    @property
    def t(self) -> Floats:
        """Estimate over standard error, by the Hessian."""
        return self.estimate / self.std_error

    @property
    def robust_t(self) -> Floats:
        """Estimate over standard error, by the sandwich."""
        return self.estimate / self.robust_std_error

    @property
    def p(self) -> Floats:
        """Two-sided, by the sandwich."""
        return np.asarray(2.0 * norm.sf(np.abs(self.robust_t)))

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """With the number of trajectories as the sample size."""
        return float(np.log(self.n_trajectories)) * self.n_parameters - 2.0 * self.log_likelihood

    def rows(self) -> list[dict[str, Any]]:
        """One dict per feature."""
        columns = ("estimate", "std_error", "t", "robust_std_error", "robust_t", "p")
        return [{"name": name, **{c: float(getattr(self, c)[j]) for c in columns}} for j, name in enumerate(self.names)]

    def statistics(self) -> dict[str, float]:
        """Of the whole fit."""
        return {
            "log-likelihood": self.log_likelihood,
            "AIC": self.aic,
            "BIC": self.bic,
            "trajectories": self.n_trajectories,
            "steps": self.n_steps,
            "parameters": self.n_parameters,
        }

    def __str__(self) -> str:
        names = ["feature", *self.names]
        columns = {
            "estimate": significant(self.estimate),
            "std err": significant(self.std_error),
            "t": significant(self.t),
            "robust se": significant(self.robust_std_error),
            "robust t": significant(self.robust_t),
            "p": [probability(value) for value in self.p],
        }
        width = max(map(len, names))
        lines = [f"{name:<{width}}" for name in names]
        for head, texts in columns.items():
            wide = max(8, *(len(text) for text in (head, *texts)))
            lines = [f"{line}  {text:>{wide}}" for line, text in zip(lines, [head, *texts], strict=True)]
        foot = (
            f"log-likelihood {self.log_likelihood:.3f}, AIC {self.aic:.3f}, BIC {self.bic:.3f}, "
            f"{self.n_trajectories} trajectories, {self.n_steps} steps, {self.n_parameters} parameters"
        )
        return "\n".join([*lines, foot])


def estimation_table(model: MaximumEntropy, expert: Trajectories) -> EstimationTable:
    """Standard errors and the rest of a fitted model; `expert` are the trajectories it was fitted to."""
    model._fitted()
    mdp, theta, n = model.mdp_, model.theta_, len(expert)
    if n < 2:
        raise ValueError("standard errors need at least two expert trajectories")
    objective = Objective.from_trajectories(mdp, expert, model.entropy, model.quadratic_)
    point, size = objective(theta), objective.unit + np.abs(model.feature_counts_)
    gap = np.abs(point.expected_counts - model.feature_counts_)
    slope = abs(projected_norm(theta, point.gradient, model._bound) - model.gradient_norm_)
    if np.any(gap > 1e-6 * size) or slope > 1e-6 * size.max():
        raise ValueError("these are not the trajectories the model was fitted to: give the same expert (unweighted)")
    counts = feature_counts(mdp, expert)
    scores = counts - (value_gradients(mdp, theta, model.entropy, expert) if mdp.start is None else 0.0)
    free = np.abs(theta) < model._bound * (1.0 - 1e-9)
    inverse, rank, known = _inverse(-objective.hessian(theta), free)
    spread = np.cov(scores.T, ddof=1).reshape(inverse.shape)
    robust = inverse @ spread @ inverse / n
    largest = np.abs(counts).max(axis=0)
    terms = np.abs(inverse) @ (np.abs(spread) + SAME * np.outer(largest, largest)) @ np.abs(inverse) / n
    varied = np.diag(robust) > SAME * np.diag(terms)  # not so with equal trajectories, or fewer than weights
    steps = int((expert.lengths - 1).sum())
    return EstimationTable(
        mdp.feature_ids,
        theta,
        np.where(known, np.sqrt(np.diag(inverse) / n), np.nan),
        np.sqrt(np.where(known & varied, np.diag(robust), np.nan)),
        inverse / n,
        robust,
        model.score(expert) * steps,
        n,
        steps,
        rank,
    )


def _inverse(hessian: Floats, free: np.ndarray) -> tuple[Floats, int, np.ndarray]:
    """The pseudo-inverse on the free features, its rank, and which features it determines."""
    size = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    unit = np.where(free & (size > 0), 1.0 / np.where(size > 0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(hessian * np.outer(unit, unit))
    keep = values > FLAT * max(float(values[-1]), 1e-300)
    kept = vectors[:, keep]
    inverse = (kept / values[keep]) @ kept.T * np.outer(unit, unit)
    lost = np.abs(vectors[:, ~keep]).max(axis=1, initial=0.0) > 1e-6
    return inverse, int(keep.sum()), free & (unit > 0) & ~lost


@dataclass(frozen=True)
class LikelihoodRatio:
    """The likelihood-ratio test of a restricted model against a full one.

    Attributes
    ----------
    statistic : float
        Twice the difference of their log-likelihoods; χ²-distributed if the restriction is true.
    degrees : int
        Degrees of freedom: how many parameters the full model has more.
    p : float
        The probability of a statistic at least as large if the restriction is true.
    """

    statistic: float
    degrees: int
    p: float


def likelihood_ratio_test(restricted: MaximumEntropy, full: MaximumEntropy, expert: Trajectories) -> LikelihoodRatio:
    """Whether the features that `full` has beyond `restricted` matter. Both unpenalised, fitted to the same expert.

    The statistic is χ² where L is the log-likelihood: deterministic moves and γ = 1.
    """
    for model in (restricted, full):
        if model.quadratic_ is not None:
            raise ValueError("a likelihood-ratio test compares unpenalised fits: use MaxEntIRL without a ridge")
        if not (model.mdp_.deterministic and model.mdp_.discount == 1.0):
            raise ValueError("a likelihood-ratio test needs deterministic moves and discount=1: use robust t-values")
        if model.standing_.box:
            held = some_features(model.mdp_, model.standing_.box)
            raise ValueError(
                f"theta_max holds the weight of {held}: a likelihood-ratio test needs the top of the likelihood; raise "
                "theta_max"
            )
    small, large = estimation_table(restricted, expert), estimation_table(full, expert)
    degrees = large.n_parameters - small.n_parameters
    statistic = 2.0 * (large.log_likelihood - small.log_likelihood)
    if degrees < 1 or statistic < -1e-6 * abs(large.log_likelihood):
        raise ValueError(
            f"the first model has {small.n_parameters} parameters and log-likelihood {small.log_likelihood:g}, the "
            f"other {large.n_parameters} and {large.log_likelihood:g}: the restricted one comes first, nested in it"
        )
    return LikelihoodRatio(max(statistic, 0.0), degrees, float(chi2.sf(max(statistic, 0.0), degrees)))
