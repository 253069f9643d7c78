"""Convergence report: the weights that the experts' choices do not determine, with remedies.

    box            the weight is at its bound ±theta_max, and the gradient points outwards
    penalty        the weight is shrunk by the penalty: more than half of the initial gap between expected and expert
                   counts of its feature remains
    unidentified   a change of the weight, alone or with others, changes the probability of no trajectory
    undetermined   its standard error is more than ten times its size, for example because a choice is always made the
                   same way (separation)
    unsettled      the search ended before the weight converged: the data hardly determine it

Bound and penalty depend on the units of the features. A feature in millimetres needs a weight a thousand times smaller
than one in metres, and one in kilometres may need a weight beyond the bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import null_space
from sklearn.exceptions import ConvergenceWarning

from messirl._types import Flags, Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.objective import Objective
from messirl.optim.box_search import EDGE, NEAR, ROUNDING, UNSETTLED, Result
from messirl.similarity.approximate_penalty import ApproximationWarning

SHOWN = 6  # largest number of features that a warning names
UNDETERMINED = 10.0  # standard error of a weight, relative to its size, above which it counts as undetermined
BOUNDLESS = 1e3  # the same, above which there may be no optimum
UNSEEN = 1e-11  # curvature over a change as large as the weights, relative to J, that is numerically zero
OPEN = "the objective is almost flat along some direction, so that its optimum is not determined"
EPS = float(np.finfo(np.float64).eps)
NAMED = 0.1  # smallest part of a direction that is named, relative to its largest part
HELD = 0.5  # share of the gap to the expert's counts above which a weight counts as shrunk by the penalty


class IdentifiabilityWarning(UserWarning):
    """θ is not identified: a change of it along some direction changes no trajectory's probability."""


@contextmanager
def ignore_convergence_warnings() -> Iterator[None]:
    """Ignore warnings about convergence, identification and approximations, where a fit is one of many."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, IdentifiabilityWarning, ApproximationWarning):
            warnings.simplefilter("ignore", kind)
        yield


@dataclass(frozen=True)
class ConvergenceReport:
    """Convergence report: the feature numbers of each kind (see the top of this file)."""

    box: tuple[int, ...] = ()
    penalty: tuple[int, ...] = ()
    unidentified: tuple[int, ...] = ()
    unsettled: tuple[int, ...] = ()
    undetermined: tuple[int, ...] = ()

    @classmethod
    def of(cls, held: Mapping[str, Sequence[int]]) -> ConvergenceReport:
        """Make a report from the plain lists in a file."""
        return cls(**{kind: tuple(int(j) for j in which) for kind, which in held.items()})

    def names(self, mdp: MDP) -> dict[str, list[str]]:
        """Return the names of the features of each kind, for files."""
        return {kind: [mdp.feature_ids[j] for j in which] for kind, which in vars(self).items()}

    def warnings(self, mdp: MDP, theta: Floats) -> Iterator[str]:
        """Yield warnings about bound and penalty, with remedies; the other kinds are reported when fitting."""
        unit = feature_spread(mdp)
        if self.box:
            small = min(self.box, key=lambda j: float(unit[j]))
            yield (
                f"theta_max={np.abs(theta).max():g}: the weight of {some_features(mdp, self.box)} is at its bound. The "
                f"values of {mdp.feature_label(small)} have a spread of {unit[small]:.2g}: give the feature in a "
                "smaller unit, so that its values are larger, or raise theta_max"
            )
        if self.penalty:
            yield (
                f"the penalty shrinks the weight of {some_features(mdp, self.penalty)}: the fit closes less than half "
                "of the gap to the experts' feature counts. Weaken the penalty, or give the feature in a smaller unit, "
                "so that its values are larger"
            )


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a search with its report; it has not converged if J is almost flat along some direction.

    unidentified : (k, d) a basis of the unidentified directions
    flat : (d,) the least determined change of θ, about as large as the weights; None if all are determined
    """

    result: Result
    standing: ConvergenceReport
    unidentified: Floats
    flat: Floats | None

    def warn(self, name: str, mdp: MDP, tol: float, stacklevel: int) -> None:
        """Warn of a search that did not converge, and of directions that are not determined or not identified."""
        if self.flat is not None:
            warnings.warn(
                f"the trajectories hardly determine theta along {format_direction(mdp, self.flat)}: the "
                "standard error is "
                "more than ten times that. If a choice is always made the same way (separation), its weights have no "
                "finite optimum. Try theta_prior=10, a penalty, or more trajectories",
                IdentifiabilityWarning,
                stacklevel=stacklevel,
            )
        if not self.result.converged and self.result.reason != OPEN:
            said = f"{name} {explain_nonconvergence(self.result, self.standing, mdp, tol)}"
            warnings.warn(said, ConvergenceWarning, stacklevel=stacklevel)
        if len(self.unidentified):
            warnings.warn(
                f"theta is determined only up to {len(self.unidentified)} direction(s) among the features "
                f"{some_features(mdp, self.standing.unidentified)}: no trajectory distinguishes them. Policies, "
                "objectives and scores remain valid; these weights cannot be interpreted one by one",
                IdentifiabilityWarning,
                stacklevel=stacklevel,
            )


def judge(
    objective: Objective,
    result: Result,
    unidentified: Floats,
    start: Floats | None,
    *,
    bound: float,
    tol: float,
    exact: bool,
) -> Outcome:
    """Return the result of a search for the maximum of an objective, with its report.

    start : (d,) the initial θ; None leaves out the weights that the penalty shrinks
    exact : whether the search was for the optimum itself
    """
    flat, length = _open_direction(objective, result, unidentified, bound) if exact else (None, 0.0)
    curvature = 1.0 / (objective.sample_size * max(length, 1e-100) ** 2)  # of J, for a change of the size of θ
    if length > BOUNDLESS or curvature < UNSEEN * (1.0 + abs(result.point.value)):
        result = replace(result, converged=False, reason=OPEN)
    penalty: tuple[int, ...] = ()
    if objective.quadratic is not None and start is not None:
        penalty = weights_shrunk_by_penalty(objective.quadratic @ result.theta, _gap(objective, start), objective.unit)
    standing = ConvergenceReport(
        box=weights_at_bound(result.theta, bound),
        penalty=penalty,
        unidentified=numbers_of(np.abs(unidentified).max(axis=0, initial=0.0) > 0),
        unsettled=() if result.converged else numbers_of(result.move > tol),
        undetermined=() if flat is None else numbers_of(large_components(flat * objective.unit)),
    )
    return Outcome(result, standing, unidentified, flat)


def _open_direction(
    objective: Objective, result: Result, unidentified: Floats, bound: float
) -> tuple[Floats | None, float]:
    """Return the least determined change of θ (d,), about as large as the weights; None if all are determined.

    Also return its standard error relative to the weights, 0 if that is not known.
    """
    curvature = result.curvature
    if result.move.max(initial=0.0) > NEAR or not np.isfinite(objective.sample_size):
        return None, 0.0
    if curvature is None and objective.curvature_is_affordable:
        curvature = -objective.hessian(result.theta)
    if curvature is None or not np.isfinite(curvature).all():
        return None, 0.0
    known = (result.theta, objective.unit, bound, unidentified)
    change, length = least_determined_direction(objective.sample_size * curvature, *known)
    return (change / length if length > UNDETERMINED else None), length


def _gap(objective: Objective, start: Floats) -> Floats:
    """Return the gradient of the likelihood at θ = 0, or at the initial θ: the gap in counts before learning."""
    plain = objective.penalised(None)
    nothing = plain(np.zeros(objective.mdp.n_features))
    return nothing.gradient if np.isfinite(nothing.value) else plain(start).gradient


def some_features(mdp: MDP, which: Sequence[int]) -> str:
    """Return the names of the first few features, and the number of further ones."""
    names = ", ".join(mdp.feature_label(j) for j in which[:SHOWN])
    return names + (f" and {len(which) - SHOWN} more" if len(which) > SHOWN else "")


def numbers_of(flags: Flags) -> tuple[int, ...]:
    """Return the indices of the true entries."""
    return tuple(np.flatnonzero(flags).tolist())


def weights_at_bound(theta: Floats, bound: float) -> tuple[int, ...]:
    """Return the weights at their bound; the sign of a gradient is rounding where features are nearly collinear."""
    return numbers_of(np.abs(theta) >= bound * (1.0 - 1e-9))


def weights_shrunk_by_penalty(pull: Floats, gap: Floats, unit: Floats) -> tuple[int, ...]:
    """Return the features whose penalty gradient (d,) exceeds half of the initial gap (d,) to the expert's counts."""
    return numbers_of((np.abs(gap) > 1e-6 * unit) & (np.abs(pull) > HELD * np.abs(gap)))


def least_determined_direction(
    information: Floats, theta: Floats, unit: Floats, bound: float, blind: Floats
) -> tuple[Floats, float]:
    """Return the change of θ (d,) by one standard error that is largest relative to the weights, and its length.

    information : (d, d) the negative Hessian of the penalised log-likelihood at θ
    unit : (d,) the spread of each feature; the size of a weight is max(|θ_j|, 1/unit_j)
    blind : (m, d) unidentified directions, which are excluded, as are weights at their bound
    """
    size, held = np.maximum(np.abs(theta), 1.0 / unit), np.abs(theta) >= bound * (1.0 - 1e-9)
    own, d = np.diag(information), theta.size
    scale = np.where(own * size**2 > EPS, 1.0 / np.sqrt(np.maximum(own, 1e-300)), size)  # about one standard error
    left_out = np.concatenate([blind / scale, np.eye(d)[held]])
    basis = null_space(left_out / np.linalg.norm(left_out, axis=1, keepdims=True)) if len(left_out) else np.eye(d)
    with np.errstate(over="ignore"):  # rounding may dominate a tiny curvature
        scaled = np.clip(scale[:, None] * information * scale, -1.0, 1.0)  # no more than on the diagonal
    values, vectors = np.linalg.eigh(basis.T @ scaled @ basis)
    changes = scale[:, None] * (basis @ vectors) / np.sqrt(np.maximum(values, EPS))
    lengths = np.abs(changes / size[:, None]).max(axis=0, initial=0.0)
    if not lengths.size:
        return np.zeros_like(theta), 0.0
    widest = int(np.argmax(lengths))
    return changes[:, widest], float(lengths[widest])


def large_components(change: Floats) -> Flags:
    """Flag the parts (d,) of a change of θ, in units of the features, that are large enough to be named."""
    size = np.abs(change)
    return np.asarray(size > NAMED * size.max(initial=0.0))


def format_direction(mdp: MDP, change: Floats) -> str:
    """Format a direction of θ, such as "1.2 × 'tolls' − 0.8 × 'time'"."""
    parts = change * feature_spread(mdp)
    named = np.flatnonzero(large_components(parts))
    shown = named[np.argsort(-np.abs(parts[named]), kind="stable")][:SHOWN].tolist()
    terms = [f"{'+' if change[j] > 0 else '−'} {abs(change[j]):.2g} × {mdp.feature_label(j)}" for j in shown]
    return " ".join(terms).removeprefix("+ ")


def explain_nonconvergence(result: Result, standing: ConvergenceReport, mdp: MDP, tol: float) -> str:
    """Describe why the search did not converge, the weights concerned, and remedies."""
    worst = int(np.argmax(result.move))
    if result.move[worst] <= tol:
        return (
            f"did not converge: {result.reason}. With a projected gradient of {result.gradient_norm:.2g}, every weight "
            f"seems to be within tol={tol:.2g} of its optimum, but too little is known of the curvature of the "
            "objective to confirm it: raise max_iter, or give features that vary more"
        )
    said = (
        f"did not converge: {result.reason}. With a projected gradient of {result.gradient_norm:.2g}, the weight of "
        f"{mdp.feature_label(worst)} is still {result.move[worst]:.2g} from its optimum, relative to its size or unit; "
        f"tol={tol:.2g}"
    )
    loose = standing.unsettled
    if not loose:
        return said
    if result.reason == ROUNDING and result.move[worst] <= NEAR:  # rounding is the limit, not the data
        return f"{said}. Rounding allows no more: use a larger tol or, if the discount is near 1, a smaller discount"
    said = f"{said}. Not converged: {some_features(mdp, loose)}"
    if result.reason not in (EDGE, UNSETTLED, ROUNDING):
        return f"{said}: raise max_iter, or add a penalty if that does not help"
    return f"{said}. The data hardly determine them: add a penalty, or trajectories in which these features vary more"
