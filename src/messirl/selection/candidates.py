"""The candidates that a selection chooses from, and how they are fitted to one set of experts.

Candidates are MESSI at several λ0 and similarities and, always, λ0 = 0 and the baselines: plain L2, standardised L2,
the complete graph (each with the trace of MESSI's penalty at the same λ0) and pooling. Each is fitted on the experts
outside of a fold (and on all unlabelled trajectories) and scored on those inside, by log-probability per step.

Work is shared: for one set of experts the objectives of all candidates differ in the penalty alone; and along a path of
λ0, from strong to weak, each fit begins where the last one ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from messirl._checks import numbers
from messirl._defaults import ENTROPY, MAX_ITER, OBJECTIVE, THETA_MAX, TOL, UNLABELLED_WEIGHT
from messirl._types import Flags, Floats
from messirl.estimators.beginning import first_theta
from messirl.estimators.methods import BASELINES, METHODS, equal_trace
from messirl.objective import Objective, made_likely
from messirl.optimise import lbfgs
from messirl.planning import NoFiniteValue, log_likelihood, soft_policy
from messirl.planning.likelihood import reward_log_likelihood
from messirl.problem.counts import counts_of_sets
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.similarity import as_similarity
from messirl.similarity.blocks import penalty_from

LAMBDAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LIGHT = (0.01, 0.03)  # λ0 of the screened candidates, which are meant to have a weak penalty


@dataclass(frozen=True)
class Candidate:
    """One way to learn that a selection chooses from.

    Parameters
    ----------
    method : str
        Its name in `estimators/methods.py`. "Screened" is MESSI with only those unlabelled trajectories that look like
        the expert's (see likeness.py).
    lambda0 : float
        λ0, the strength of the penalty; "MaxEnt" and "Pooling" have none.
    similarity : similarity, optional
        Of "MESSI" and "Screened" only.

    Examples
    --------
    >>> from messirl.selection import Candidate
    >>> from messirl.similarity import RBF
    >>> print(Candidate("MESSI", 0.1, RBF(5.0)))
    MESSI λ0=0.1 RBF(sigma=5.0, standardise=False)
    """

    method: str
    lambda0: float = 0.0
    similarity: Any = None

    def __str__(self) -> str:
        shown = f" λ0={self.lambda0:g}" if METHODS[self.method].penalised else ""
        return f"{self.method}{shown}" + ("" if self.similarity is None else f" {self.similarity}")


def candidates(
    similarities: Sequence[Any], lambdas: Sequence[float], *, baselines: bool = True, unlabelled: bool = True
) -> list[Candidate]:
    """All candidates: λ0 = 0 first, then each method and similarity with its λ0 from strong to weak."""
    strengths = numbers("lambdas", list(lambdas) if isinstance(lambdas, Iterable) else lambdas)
    if strengths.ndim != 1:
        raise ValueError(f"lambdas={lambdas!r}: give a sequence of numbers")
    wrong = [x for x in strengths if not 0.0 <= x < np.inf]
    if wrong:
        raise ValueError(f"lambdas holds {wrong[0]}: give numbers from 0 on")
    path = sorted({float(x) for x in strengths if x > 0}, reverse=True)
    out = [Candidate("MaxEnt")]
    if unlabelled:
        out += [Candidate("MESSI", x, similarity) for similarity in similarities for x in path]
        out += [Candidate("Screened", x, similarity) for similarity in similarities for x in sorted(LIGHT)[::-1]]
    if baselines:
        shaped = (m.name for m in BASELINES if m.shape is not None and (unlabelled or not m.unlabelled))
        out += [Candidate(name, x) for name in shaped for x in path]
        out += [Candidate("Pooling")] if unlabelled else []
    return out


@dataclass(eq=False)
class Bench:
    """Fits candidates to one set of experts: everything that does not depend on λ0 is computed once.

    Parameters
    ----------
    mdp : MDP
        The problem.
    expert : Trajectories
        The expert's trajectories.
    unlabelled : Trajectories or None
        Those of unknown quality.
    yardstick : similarity
        The penalties of the baselines get the trace that the penalty of this similarity has.
    theta_max, entropy, objective, max_iter, tol, unlabelled_weight : float, str, str, int, float, float
        As for `MESSI`; "Pooling" takes every trajectory for an expert's whatever `unlabelled_weight` is.
    alike : array of bool (u,), optional
        Which of the unlabelled trajectories the screened candidates see. None: none of them.

    Examples
    --------
    Six places in a row; the experts prefer the right end.

    >>> import numpy as np
    >>> from messirl import MDP, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> from messirl.selection import Bench, Candidate
    >>> from messirl.similarity import CompleteGraph
    >>> bench = Bench(mdp, expert, None, yardstick=CompleteGraph())
    >>> bench.fit(Candidate("MaxEnt"), bench.begin()).round(2)
    array([2.19])
    """

    mdp: MDP
    expert: Trajectories
    unlabelled: Trajectories | None
    _: KW_ONLY
    yardstick: Any
    theta_max: float = THETA_MAX
    entropy: str = ENTROPY
    objective: str | None = OBJECTIVE
    max_iter: int = MAX_ITER
    tol: float = TOL
    unlabelled_weight: float = UNLABELLED_WEIGHT
    alike: Flags | None = None

    def __post_init__(self) -> None:
        l = len(self.expert)
        self.everyone = self.expert if self.unlabelled is None else self.expert + self.unlabelled
        self.counts = counts_of_sets(self.mdp, self.expert, self.unlabelled)
        light = self.unlabelled_weight > 0.0 and len(self.everyone) > l
        weights = np.where(np.arange(len(self.everyone)) < l, 1.0, self.unlabelled_weight)
        self.plain = self._objective(self.everyone, weights) if light else self._objective(self.expert)
        others = () if self.alike is None else l + np.flatnonzero(self.alike)
        self.screened = np.array([*range(l), *others])
        self._penalties: dict[Any, Floats] = {}

    def penalty(self, candidate: Candidate) -> Floats | None:
        """The matrix Q of a candidate's penalty, or None; baselines have the trace of the yardstick's penalty."""
        method, weight = METHODS[candidate.method], candidate.lambda0 / self.theta_max
        if not method.penalised or weight == 0.0:
            return None
        if method.shape is None:
            screened = candidate.method == "Screened"
            if screened and self.screened.size == len(self.expert):  # no unlabelled trajectory looks like the experts'
                return None
            return weight * self._matrix(candidate.similarity, screened=screened)
        if method.name not in self._penalties:
            self._penalties[method.name] = method.shape(self.counts)
        shape = self._penalties[method.name]
        if not shape.any():
            return None
        return equal_trace(weight, float(np.trace(self._matrix(self.yardstick))), shape) * shape

    def _matrix(self, similarity: Any, *, screened: bool = False) -> Floats:
        key = (similarity, screened)
        if key not in self._penalties:
            measure, everyone, counts = as_similarity(similarity), self.everyone, self.counts
            if screened:
                rows, block = self.screened, measure.on(everyone, counts)  # widths are found from the whole set
                self._penalties[key] = penalty_from(lambda at, to: block(rows[at], rows[to]), counts[rows])
            else:
                self._penalties[key] = measure.penalty(everyone, counts)
        return self._penalties[key]

    def path(self, every: Sequence[Candidate]) -> Iterator[tuple[Candidate, Floats]]:
        """Each candidate and its θ; a fit begins at the θ before it, if that has the same method and similarity."""
        begin = self.begin()
        for _, path in groupby(every, key=lambda candidate: (candidate.method, candidate.similarity)):
            theta = begin
            for candidate in path:
                theta = self.fit(candidate, theta)
                yield candidate, theta

    def fit(self, candidate: Candidate, theta: Floats) -> Floats:
        """θ at the optimum of a candidate; the search begins at the `theta` given."""
        if candidate.method == "Pooling":
            objective = self._objective(self.everyone)
        else:
            objective = self.plain.penalised(self.penalty(candidate))
        options: dict[str, Any] = {"bound": self.theta_max, "max_iter": self.max_iter, "tol": self.tol}
        return lbfgs(objective, theta, unit=objective.unit, scale=objective.scale, certain=False, **options).theta

    def _objective(self, some: Trajectories, weights: Floats | None = None) -> Objective:
        likely, counts = made_likely(self.objective, self.entropy), self.counts[: len(some)]
        options: dict[str, Any] = {"objective": likely, "counts": counts, "sample_weight": weights}
        return Objective.from_trajectories(self.mdp, some, self.entropy, **options)

    def begin(self) -> Floats:
        """Where the first search begins: at zero, or at a θ for which values are finite."""
        return first_theta(self.mdp, self.plain, self.theta_max)

    def score(self, theta: Floats, held_out: Trajectories) -> float:
        """Σ log-probability of held-out trajectories; −inf where θ has no finite values."""
        reward = self.mdp.reward(theta)
        try:
            if self.entropy == "noncausal":
                logs = log_likelihood(self.mdp, soft_policy(self.mdp, reward, "noncausal"), held_out)
            else:
                logs = reward_log_likelihood(self.mdp, reward, held_out, self._starts(held_out))
        except NoFiniteValue:
            return -np.inf
        return float(logs.sum())

    def _starts(self, held_out: Trajectories) -> Floats:
        first = np.concatenate([self.everyone.first, held_out.first])
        return np.bincount(first, minlength=self.mdp.n_states).astype(np.float64)
