"""Inference on θ: standard errors, t-values, information criteria, likelihood-ratio tests.

    Hessian          Cov θ = H⁻¹,            H = −∇² of the likelihood of all trajectories, less the penalty
    outer product    Cov θ = B⁻¹,            B = Σ g gᵀ over the scores g = ∇ log π(a|s) of all choices
    sandwich         Cov θ = H⁻¹ G H⁻¹,      G = Σ g gᵀ over the scores of trajectories, or of clusters of them,
                                             corrected for small samples (CR2, see small_sample.py)

The objective of choices is a likelihood for any transitions, and all three agree asymptotically if the model is right.
For counts, where the score of a trajectory is f_ζ − ∇V(s_0), Hessian and sandwich agree only if L is the log-likelihood
(deterministic transitions, γ = 1, the trajectories' own starts: route choice). Otherwise only the sandwich includes the
randomness of transitions and starts. Intervals and p-values therefore use the sandwich, which also holds if choices of
a trajectory are more dependent than the model assumes. They use Student's t with the degrees of freedom of each weight,
because with few clusters the sandwich itself is uncertain.

If θ is not identified or at its bound, the standard error is NaN, and so is the robust one if the trajectories do not
differ. A prior policy is taken as known.

A penalty Q enters H = −∇²L + Q, and G as before, with centred scores: the sandwich is then the variance of the
penalised estimate over samples of experts. It includes neither the bias of the penalty nor the fact that MESSI's Q
depends on the trajectories.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.stats import chi2, t as student

from messirl._checks import check_fraction
from messirl._formatting import format_columns, format_p_value, format_significant
from messirl._types import Flags, Floats, Ints
from messirl.data.choices import choice_mass, choices_of
from messirl.data.feature_counts import feature_counts
from messirl.data.feature_scale import feature_spread
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.data.validation import check_trajectories
from messirl.estimators._convergence_report import some_features
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.inference import table_export
from messirl.inference.small_sample import bias_reduced, bias_reduced_by_size
from messirl.objective import Objective
from messirl.optim.box_search import projected_norm
from messirl.planning.choice_scores import Alternatives, alternatives_of
from messirl.planning.value_derivatives import value_gradients

if TYPE_CHECKING:
    from messirl.inference.weight_ratios import WeightRatio

FLAT = 1e-8  # relative curvature below which a direction is not identified
SAME = 1e-12  # variance relative to the size of its terms below which it is rounding error
SMALLEST = 1.0 / 3.0  # least robust error, relative to the Hessian's, that is used for intervals
FEW_CLUSTERS = 10  # with fewer, intervals are approximate
LARGE = 1e9  # clusters times weights cubed above which clusters are corrected only by their number of trajectories


@dataclass(frozen=True)
class EstimationTable:
    """Estimates and their standard errors, one per feature, and statistics of the whole fit.

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
        The log-likelihood of all expert trajectories.
    n_trajectories, n_steps : int
        Their numbers.
    n_parameters : int
        The number of weights, minus those at the bound and the directions that are not identified.
    outer_std_error : array (d,) or None
        Standard errors by the outer product of the scores of choices; None for a fit to counts.
    outer_covariance : array (d, d) or None
        The covariance of θ by the outer product.
    n_clusters : int or None
        The number of clusters of trajectories in the sandwich; None if every trajectory is a cluster.
    degrees_of_freedom : array (d,) or None
        Bell and McCaffrey's, of Student's t for the robust interval of every weight. None: the normal distribution.
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
    outer_std_error: Floats | None = None
    outer_covariance: Floats | None = None
    n_clusters: int | None = None
    degrees_of_freedom: Floats | None = None

    @property
    def t(self) -> Floats:
        """Estimates divided by the Hessian's standard errors."""
        return self.estimate / self.std_error

    @property
    def robust_t(self) -> Floats:
        """Estimates divided by the errors that intervals use."""
        return self.estimate / self.interval_error

    @property
    def p(self) -> Floats:
        """Two-sided p-values by Student's t, with the errors that intervals use."""
        return np.asarray(2.0 * student.sf(np.abs(self.robust_t), self._freedom))

    @property
    def interval_error(self) -> Floats:
        """The error that an interval and p use, (d,): the robust one or, where that is too small, the Hessian's.

        If all choices agree, or only one cluster met a feature, the scores of clusters hardly differ. A robust error
        below a third of the Hessian's then measures rounding, or the pull of a prior, and not how much estimates vary.
        """
        return np.where(self.replaced, self.std_error, self.robust_std_error)

    @property
    def replaced(self) -> Flags:
        """Mask of the weights whose intervals use the Hessian's error, (d,)."""
        return np.asarray(self.robust_std_error < SMALLEST * self.std_error)

    @property
    def interval_covariance(self) -> Floats:
        """The robust covariance with `interval_error` on its diagonal, (d, d)."""
        own = np.sqrt(np.diag(self.robust_covariance))
        factor = np.where(self.replaced & (own > 0), self.std_error / np.where(own > 0, own, 1.0), 1.0)
        return np.asarray(self.robust_covariance * np.outer(factor, factor))

    def conf_int(self, level: float = 0.95) -> Floats:
        """Return the interval of every weight, (d, 2): the estimate ± t(level, ν_j) times `interval_error`.

        NaN where the data do not determine the weight or its error.
        """
        check_fraction("level", level)
        half = student.ppf(0.5 + level / 2, self._freedom) * self.interval_error
        return np.column_stack([self.estimate - half, self.estimate + half])

    @property
    def _freedom(self) -> Floats:
        """Degrees of freedom of every weight, (d,); infinite for the normal distribution."""
        return np.full(len(self.names), np.inf) if self.degrees_of_freedom is None else self.degrees_of_freedom

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return 2.0 * self.n_parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """The Bayesian information criterion, with the number of trajectories as the sample size."""
        return float(np.log(self.n_trajectories)) * self.n_parameters - 2.0 * self.log_likelihood

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per feature."""
        columns = {c: getattr(self, c) for c in ("estimate", "std_error", "t", "robust_std_error", "robust_t", "p")}
        columns |= {"degrees_of_freedom": self._freedom}
        columns |= dict(zip(("low", "high"), self.conf_int().T, strict=True))
        outer = [None] * len(self.names) if self.outer_std_error is None else self.outer_std_error.tolist()
        return [
            {"name": name, **{c: float(numbers[j]) for c, numbers in columns.items()}, "outer_std_error": outer[j]}
            for j, name in enumerate(self.names)
        ]

    def statistics(self) -> dict[str, float]:
        """Return statistics of the whole fit."""
        return {
            "log-likelihood": self.log_likelihood,
            "AIC": self.aic,
            "BIC": self.bic,
            "trajectories": self.n_trajectories,
            **({} if self.n_clusters is None else {"clusters of the robust errors": self.n_clusters}),
            "steps": self.n_steps,
            "parameters": self.n_parameters,
        }

    def __str__(self) -> str:
        columns = {
            "estimate": format_significant(self.estimate),
            "std err": format_significant(self.std_error),
            "t": format_significant(self.t),
            **({} if self.outer_std_error is None else {"outer se": format_significant(self.outer_std_error)}),
            "robust se": format_significant(self.robust_std_error),
            "robust t": format_significant(self.robust_t),
            **({} if self.degrees_of_freedom is None else {"df": list(map(table_export.freedom_text, self._freedom))}),
            "p": [format_p_value(value) for value in self.p],
        }
        foot = (
            f"log-likelihood {self.log_likelihood:.3f}, AIC {self.aic:.3f}, BIC {self.bic:.3f}, "
            f"{self.n_trajectories} trajectories, {self.n_steps} steps, {self.n_parameters} parameters"
        )
        if self.n_clusters is not None:
            foot += f"; robust errors by {self.n_clusters} clusters of trajectories"
        if self.replaced.any():
            foot += "; robust t and p use the Hessian's error where the robust one is below a third of it"
        return "\n".join([*format_columns(["feature", *self.names], columns), foot])

    def to_csv(self, ratios: Sequence[WeightRatio] = ()) -> str:
        """Return the table as CSV with all digits; `ratios` (by `weight_ratio`) are further rows."""
        return table_export.to_csv(self, ratios)

    def to_latex(self, ratios: Sequence[WeightRatio] = (), *, stars: bool = False) -> str:
        r"""Return a tabular for \input or pasting, with the package booktabs. `stars` marks estimates by their p."""
        return table_export.to_latex(self, ratios, stars=stars)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, ratios: Sequence[WeightRatio] = (), *, stars: bool = False) -> str:
        """Return a table element for pasting into a page. `stars` marks estimates by their p."""
        return table_export.to_html(self, ratios, stars=stars)


def estimation_table(
    model: MaximumEntropy,
    expert: TrajectoriesLike,
    groups: npt.ArrayLike | None = None,
    *,
    cluster: npt.ArrayLike | None = None,
) -> EstimationTable:
    """Return the standard errors, the small-sample intervals and the rest of a fitted model.

    expert : the trajectories it was fitted to, unweighted
    groups : (n,) labels; trajectories with the same label (of one driver, one animal) need not be independent, and the
        sandwich treats them as one cluster. None: every trajectory is a cluster
    cluster : alias of `groups`

    Warns where there are fewer than ten clusters.
    """
    if groups is not None and cluster is not None:
        raise ValueError("groups and cluster are the same argument: give one of them")
    cluster = groups if cluster is None else cluster
    if not isinstance(model, MaximumEntropy):
        raise TypeError(f"{type(model).__name__} has no standard errors: give a maximum-entropy fit, such as MaxEntIRL")
    model._fitted()
    expert = as_trajectories(expert, "expert")
    check_trajectories(model.mdp_, expert, "expert")
    mdp, theta, n = model.mdp_, model.theta_, len(expert)
    if n < 2:
        raise ValueError("standard errors need at least two expert trajectories")
    if not (expert.lengths > 1).any():
        raise ValueError("standard errors need choices, and no expert trajectory makes a step")
    labels = np.arange(n) if cluster is None else _labels(cluster, n)
    objective = Objective.from_trajectories(mdp, expert, model.entropy, model.quadratic_, objective=model.likelihood_)
    check_same(model, objective)
    found = _of_choices(model, objective, expert) if model.likelihood_ == "choices" else _of_counts(model, expert)
    free, unseen = np.abs(theta) < model._bound * (1.0 - 1e-9), _unseen(model, expert)
    if model.quadratic_ is None:  # a penalty would determine them
        free &= ~unseen
    root, rank, known = _root(-found.sample * objective.hessian(theta), free)
    inverse = root @ root.T
    robust, size, freedom = _robust(found, labels, root, free)
    varied = ~unseen & (np.diag(robust) > SAME * size) & np.isfinite(freedom)
    clusters = int(labels.max()) + 1
    if clusters < FEW_CLUSTERS:
        warnings.warn(few_clusters(clusters, grouped=cluster is not None), FewClustersWarning, stacklevel=2)
    outer_error = outer = None
    if found.outer is not None:
        outer_root, _, told = _root(found.outer + found.pull, free)
        outer = outer_root @ outer_root.T
        outer_error = np.sqrt(np.where(known & told, np.diag(outer), np.nan))
    steps = int((expert.lengths - 1).sum())
    return EstimationTable(
        mdp.feature_ids,
        theta,
        np.sqrt(np.where(known, np.diag(inverse), np.nan)),
        np.sqrt(np.where(known & varied, np.diag(robust), np.nan)),
        inverse,
        robust,
        model.score(expert) * steps,
        n,
        steps,
        rank,
        outer_error,
        outer,
        None if cluster is None else clusters,
        freedom,
    )


class FewClustersWarning(UserWarning):
    """Warning that intervals rest on few clusters."""


def few_clusters(n: int, *, grouped: bool) -> str:
    """Return a sentence on the reliability of intervals from n clusters."""
    of = "groups" if grouped else "expert trajectories"
    return f"intervals rest on {n} {of}: with fewer than {FEW_CLUSTERS} they are wide and approximate"


def _robust(found: _Scores, labels: Ints, root: Floats, free: Flags) -> tuple[Floats, Floats, Floats]:
    """Return the CR2 covariance (d, d), the size of the terms of its diagonal (d,), and degrees of freedom (d,).

    root : (d, k) Z with Z Zᵀ = H⁻¹ of the likelihood of all trajectories
    """
    n, inverse = labels.size, root @ root.T
    sums = sp.csr_array((np.ones(n), (labels, np.arange(n)))) @ (found.each - found.each.mean(axis=0))
    clusters = len(sums)
    if found.alternatives is None or clusters * float(free.size) ** 3 > LARGE:
        middle, freedom = bias_reduced_by_size(sums @ root, np.bincount(labels) / n, root.T)
        ways = root.T
    else:
        expected = found.alternatives.information() + found.pull
        root, _, _ = _root(expected, free)
        ways = root.T @ expected @ inverse
        middle, freedom = bias_reduced(sums @ root, found.alternatives.shares(labels, root), ways)
    rounding = n * SAME * np.outer(found.largest, found.largest)
    terms = np.abs(inverse) @ (np.abs(sums.T @ sums) + rounding) @ np.abs(inverse)
    return ways.T @ middle @ ways, np.diag(terms), freedom


@dataclass(frozen=True)
class _Scores:
    """The scores of single trajectories: gradients of their log-likelihood.

    each : (n, d) one per trajectory
    largest : (d,) the size of the terms of these sums
    sample : the factor from the mean objective J to the log-likelihood of all trajectories
    pull : (d, d) the penalty in units of that log-likelihood
    outer : (d, d) Σ g gᵀ over choices; None for counts
    alternatives : the alternatives of every choice; None for counts, where all trajectories have the same weight
    """

    each: Floats
    largest: Floats
    sample: float
    pull: Floats
    outer: Floats | None = None
    alternatives: Alternatives | None = None


def _of_counts(model: MaximumEntropy, expert: Trajectories) -> _Scores:
    counts, n = feature_counts(model.mdp_, expert), len(expert)
    given = model.mdp_.start is not None  # then V is the same for all and cancels
    slopes = 0.0 if given else value_gradients(model.mdp_, model.theta_, model.entropy, expert)
    return _Scores(counts - slopes, np.abs(counts).max(axis=0), float(n), n * _penalty(model))


def _of_choices(model: MaximumEntropy, objective: Objective, expert: Trajectories) -> _Scores:
    mdp, choices, n = model.mdp_, choices_of(model.mdp_, expert), len(expert)
    others = alternatives_of(mdp, model.theta_, expert, choices, objective.planner.model, model.start_)
    of_kinds = others.chosen
    often = choices.totals(np.ones(n))
    made = sp.csr_array((np.ones(choices.trajectory.size), (choices.trajectory, choices.kind)), shape=(n, often.size))
    scale = choice_mass(mdp, expert).sum() / choices.trajectory.size  # the factor c of choices in J
    sample, outer = n / float(scale), of_kinds.T @ (often[:, None] * of_kinds)
    largest = (made @ np.abs(of_kinds)).max(axis=0)
    return _Scores(made @ of_kinds, largest, sample, sample * _penalty(model), outer, others)


def _penalty(model: MaximumEntropy) -> Floats:
    return np.zeros((model.theta_.size,) * 2) if model.quadratic_ is None else np.asarray(model.quadratic_)


def check_same(model: MaximumEntropy, objective: Objective) -> None:
    """Refuse trajectories or weights that the model was not fitted to."""
    theta, unit = model.theta_, objective.unit
    point, size = objective(theta), unit + np.abs(model.feature_counts_)
    slope = abs(projected_norm(theta, point.gradient, model._bound) - model.gradient_norm_)
    if model.likelihood_ == "choices":
        other = abs(point.value - model.objective_) > 1e-6 * (1.0 + abs(model.objective_))
    else:
        other = bool(np.any(np.abs(point.expected_counts - model.feature_counts_) > 1e-6 * size))
    if not other and slope <= 1e-6 * size.max():
        return
    if getattr(model, "unlabelled_weight", 0.0) > 0.0:
        raise ValueError(
            f"a fit that pools unlabelled trajectories (unlabelled_weight={model.unlabelled_weight:g}) has no standard "
            "errors: fit with unlabelled_weight=0"
        )
    raise ValueError("expert holds other trajectories than the model was fitted to: give the same expert (unweighted)")


def _labels(cluster: npt.ArrayLike, n: int) -> Ints:
    """Return the number of the cluster of every trajectory, (n,)."""
    given = np.asarray(cluster)
    if given.shape != (n,):
        raise ValueError(f"groups has shape {given.shape}: give one label for each of the {n} trajectories")
    if any(label is None or label != label for label in given.tolist()):  # NaN is not equal to itself
        raise ValueError("groups has labels that are NaN or None: give every trajectory a label")
    distinct, labels = np.unique(given, return_inverse=True)
    if distinct.size < 2:
        raise ValueError("groups has the same label everywhere: robust errors need at least two groups")
    return labels


def _unseen(model: MaximumEntropy, expert: Trajectories) -> Flags:
    """Return the features that by themselves change no trajectory's probability, (d,).

    Features that are only jointly unidentified have curvature, which is flat in one direction: `_root` detects it.
    """
    blind = model._unidentified(model.mdp_, expert) * feature_spread(model.mdp_)  # its rows are orthonormal
    return np.asarray((blind**2).sum(axis=0) > 1.0 - 1e-6)


def _root(hessian: Floats, free: Flags) -> tuple[Floats, int, Flags]:
    """Return Z (d, k) with Z Zᵀ the pseudo-inverse on the free features, its rank k, and the features determined."""
    size = np.sqrt(np.maximum(np.diag(hessian), 0.0))
    unit = np.where(free & (size > 0), 1.0 / np.where(size > 0, size, 1.0), 0.0)
    values, vectors = np.linalg.eigh(hessian * np.outer(unit, unit))
    keep = values > FLAT * max(float(values[-1]), 1e-300)
    kept = vectors[:, keep]
    lost = np.abs(vectors[:, ~keep]).max(axis=1, initial=0.0) > 1e-6
    return unit[:, None] * kept / np.sqrt(values[keep]), int(keep.sum()), free & (unit > 0) & ~lost


def _own_start(model: MaximumEntropy, expert: Trajectories) -> bool:
    """Return whether the start distribution of a fit is that of these trajectories."""
    own = np.bincount(expert.first, minlength=model.mdp_.n_states) / len(expert)
    return model.goals_ is not None or bool(np.abs(model.start_ - own).max() <= 1e-9)


def _equal(one: Floats | None, other: Floats | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


@dataclass(frozen=True)
class LikelihoodRatio:
    """The likelihood-ratio test of a restricted model against a full one.

    Attributes
    ----------
    statistic : float
        Twice the difference of their log-likelihoods; χ²-distributed if the restriction is true.
    degrees : int
        Degrees of freedom: the number of further parameters of the full model.
    p : float
        The probability of a statistic at least as large if the restriction is true.
    """

    statistic: float
    degrees: int
    p: float


def likelihood_ratio_test(restricted: MaximumEntropy, full: MaximumEntropy, expert: Trajectories) -> LikelihoodRatio:
    """Test whether the features that only `full` has matter. Both fits are unpenalised and to the same expert.

    The statistic is χ² if L is a log-likelihood: always for choices, and for counts if transitions are deterministic,
    γ = 1 and the start is that of the trajectories.
    """
    for model in (restricted, full):
        if model.quadratic_ is not None:
            raise ValueError("a likelihood-ratio test compares unpenalised fits: use MaxEntIRL without a ridge")
        if model.likelihood_ == "counts" and not (
            model.mdp_.deterministic and model.mdp_.discount == 1.0 and _own_start(model, expert)
        ):
            raise ValueError(
                "a likelihood-ratio test of counts needs deterministic transitions, discount=1 and the trajectories' "
                "own start: fit with objective='choices', or use robust t-values"
            )
        if model.standing_.box:
            held = some_features(model.mdp_, model.standing_.box)
            raise ValueError(
                f"weights are at the bound theta_max ({held}), and a likelihood-ratio test needs the maximum of the "
                "likelihood: raise theta_max"
            )
    if not _equal(restricted.reference_, full.reference_):
        raise ValueError(
            "the two models have different prior policies, so neither is nested in the other: use the same"
        )
    small, large = estimation_table(restricted, expert), estimation_table(full, expert)
    degrees = large.n_parameters - small.n_parameters
    statistic = 2.0 * (large.log_likelihood - small.log_likelihood)
    if degrees == 0 and abs(statistic) <= 1e-6 * abs(large.log_likelihood):
        raise ValueError(
            "the features that only one of the two models has change no trajectory's probability, so there is "
            "nothing to test: leave out other features"
        )
    if degrees < 1 or statistic < -1e-6 * abs(large.log_likelihood):
        raise ValueError(
            f"the first model has {small.n_parameters} parameters and log-likelihood {small.log_likelihood:g}, the "
            f"second {large.n_parameters} and {large.log_likelihood:g}: give the restricted one first, nested in it"
        )
    return LikelihoodRatio(max(statistic, 0.0), degrees, float(chi2.sf(max(statistic, 0.0), degrees)))
