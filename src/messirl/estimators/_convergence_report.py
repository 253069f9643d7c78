"""Which weights are held by something other than the expert's choices, and what to do about it.

    box            the weight sits on ±theta_max and would go further
    penalty        the penalty keeps the expected count of its feature away from the expert's: more than half of the
                   gap that there was at the start is still there
    unidentified   a change of the weight, alone or with others, changes the probability of no trajectory
    undetermined   the trajectories hardly tell: its standard error is more than ten times its size, as where a choice
                   is always made the same way (separation)
    unsettled      the search ended before the weight came to rest: the data hardly determine it

Box and penalty act in the units of the features. A feature given in millimetres needs a weight a thousand times
smaller than one in metres, and one given in kilometres may need one that the box does not allow.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space
from sklearn.exceptions import ConvergenceWarning

from messirl._types import Flags, Floats
from messirl.data.feature_scale import feature_spread
from messirl.data.mdp import MDP
from messirl.optim.box_search import EDGE, NEAR, ROUNDING, UNSETTLED, Result
from messirl.similarity.approximate_penalty import ApproximationWarning

SHOWN = 6  # most features that a remark names
UNDETERMINED = 10.0  # standard error of a weight, relative to its size, above which trajectories say little of it
BOUNDLESS = 1e3  # the same, above which there may be no optimum
UNSEEN = 1e-11  # curvature over a change as large as the weights, relative to J, that no search can tell from zero
OPEN = "a change of the weights hardly changes the objective, so that no optimum can be told"
EPS = float(np.finfo(np.float64).eps)
NAMED = 0.1  # share of a direction, relative to its largest, from which on a feature is named
HELD = 0.5  # share of the gap to the expert's counts above which the penalty holds a weight


class IdentifiabilityWarning(UserWarning):
    """θ is not determined by the features: some direction of it changes no trajectory's probability."""


@contextmanager
def quietly() -> Iterator[None]:
    """Ignore the warnings that a fit did not converge, is not identified or inexact, where it is one of many fits."""
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, IdentifiabilityWarning, ApproximationWarning):
            warnings.simplefilter("ignore", kind)
        yield


@dataclass(frozen=True)
class Standing:
    """The numbers of the features whose weights are held, by what holds them (see the top of this file)."""

    box: tuple[int, ...] = ()
    penalty: tuple[int, ...] = ()
    unidentified: tuple[int, ...] = ()
    unsettled: tuple[int, ...] = ()
    undetermined: tuple[int, ...] = ()

    @classmethod
    def of(cls, held: Mapping[str, Sequence[int]]) -> Standing:
        """From the plain lists in a file."""
        return cls(**{kind: tuple(int(j) for j in which) for kind, which in held.items()})

    def names(self, mdp: MDP) -> dict[str, list[str]]:
        """The features of each kind by name, for files."""
        return {kind: [mdp.feature_ids[j] for j in which] for kind, which in vars(self).items()}

    def remarks(self, mdp: MDP, theta: Floats) -> Iterator[str]:
        """Sentences on what box and penalty hold, and what to do; the other kinds are reported in warnings."""
        unit = feature_spread(mdp)
        if self.box:
            small = min(self.box, key=lambda j: float(unit[j]))
            yield (
                f"theta_max={np.abs(theta).max():g} holds the weight of {some_features(mdp, self.box)}; it would go "
                f"further. The values of {mdp.feature_label(small)} spread by {unit[small]:.2g}: give the feature "
                "in a smaller unit, so that its values are larger, or raise theta_max"
            )
        if self.penalty:
            yield (
                f"the penalty holds the weight of {some_features(mdp, self.penalty)}: the model follows less than half "
                "of what the experts show there. Weaken the penalty, or give the feature in a smaller unit, so that "
                "its values are larger"
            )


def some_features(mdp: MDP, which: Sequence[int]) -> str:
    """The names of the first few features, and how many more there are."""
    names = ", ".join(mdp.feature_label(j) for j in which[:SHOWN])
    return names + (f" and {len(which) - SHOWN} more" if len(which) > SHOWN else "")


def numbers_of(flags: Flags) -> tuple[int, ...]:
    """Which entries are true."""
    return tuple(np.flatnonzero(flags).tolist())


def held_by_box(theta: Floats, bound: float) -> tuple[int, ...]:
    """Return the weights at their bound; the sign of a gradient is rounding where features are nearly collinear."""
    return numbers_of(np.abs(theta) >= bound * (1.0 - 1e-9))


def held_by_penalty(pull: Floats, gap: Floats, unit: Floats) -> tuple[int, ...]:
    """Features for which the penalty's pull (d,) leaves more than half of the first gap (d,) to the expert's counts."""
    return numbers_of((np.abs(gap) > 1e-6 * unit) & (np.abs(pull) > HELD * np.abs(gap)))


def widest_direction(
    information: Floats, theta: Floats, unit: Floats, bound: float, blind: Floats
) -> tuple[Floats, float]:
    """The change of θ (d,) by one standard error that is largest relative to the weights, and how large it is.

    information : (d, d) the curvature of the log-likelihood and of all that is subtracted from it, at θ
    unit : (d,) the spread of each feature; the size of a weight is max(|θ_j|, 1/unit_j)
    blind : (m, d) directions that change nothing, which are left out, as are weights at the bound
    """
    size, held = np.maximum(np.abs(theta), 1.0 / unit), np.abs(theta) >= bound * (1.0 - 1e-9)
    own, d = np.diag(information), theta.size
    scale = np.where(own * size**2 > EPS, 1.0 / np.sqrt(np.maximum(own, 1e-300)), size)  # about one standard error
    left_out = np.concatenate([blind / scale, np.eye(d)[held]])
    basis = null_space(left_out / np.linalg.norm(left_out, axis=1, keepdims=True)) if len(left_out) else np.eye(d)
    with np.errstate(over="ignore"):  # far out, what rounding leaves of a curvature may be anything
        scaled = np.clip(scale[:, None] * information * scale, -1.0, 1.0)  # no more than on the diagonal
    values, vectors = np.linalg.eigh(basis.T @ scaled @ basis)
    changes = scale[:, None] * (basis @ vectors) / np.sqrt(np.maximum(values, EPS))
    lengths = np.abs(changes / size[:, None]).max(axis=0, initial=0.0)
    if not lengths.size:
        return np.zeros_like(theta), 0.0
    widest = int(np.argmax(lengths))
    return changes[:, widest], float(lengths[widest])


def largest_parts(change: Floats) -> Flags:
    """Which parts (d,) of a change of θ, in units of the features, are large enough to be named."""
    size = np.abs(change)
    return np.asarray(size > NAMED * size.max(initial=0.0))


def direction(mdp: MDP, change: Floats) -> str:
    """A direction of θ in words, such as "1.2 × 'tolls' − 0.8 × 'time'"."""
    parts = change * feature_spread(mdp)
    named = np.flatnonzero(largest_parts(parts))
    shown = named[np.argsort(-np.abs(parts[named]), kind="stable")][:SHOWN].tolist()
    terms = [f"{'+' if change[j] > 0 else '−'} {abs(change[j]):.2g} × {mdp.feature_label(j)}" for j in shown]
    return " ".join(terms).removeprefix("+ ")


def not_converged(result: Result, standing: Standing, mdp: MDP, tol: float) -> str:
    """Why the search ended before it converged, which weights had not settled, and what to do."""
    worst = int(np.argmax(result.move))
    said = (
        f"did not converge: {result.reason}. With a projected gradient of {result.gradient_norm:.2g} the weight of "
        f"{mdp.feature_label(worst)} would still move by {result.move[worst]:.2g} of its size or its unit, where tol "
        f"asks for {tol:.2g}"
    )
    loose = standing.unsettled
    if not loose:
        return said
    if result.reason == ROUNDING and result.move[worst] <= NEAR:  # rounding is the limit, not the data
        return f"{said}. The values allow no more: take a tol above that, or a smaller discount where it is near 1"
    said = f"{said}. Not settled: {some_features(mdp, loose)}"
    if result.reason not in (EDGE, UNSETTLED, ROUNDING):
        return f"{said}: allow more iterations, or add a penalty if they run on for ever"
    return f"{said}. Hardly anything in the data holds them: add a penalty, or trajectories that say more about them"
