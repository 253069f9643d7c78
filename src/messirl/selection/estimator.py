"""MESSI that chooses λ0 and the similarity itself, and an unbiased score of the whole procedure."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from messirl._defaults import AIM, CV, SOLVER, STEP_SIZE
from messirl._types import Floats, Ints
from messirl.estimators.maximum_entropy import MaximumEntropy
from messirl.estimators.messi import MESSI
from messirl.estimators.methods import baseline
from messirl.execution import run
from messirl.problem.mdp import MDP
from messirl.problem.trajectories import Trajectories
from messirl.selection.candidates import LAMBDAS, Candidate, candidates
from messirl.selection.choice import MARGIN, decide, verdict
from messirl.selection.likeness import Alike, Likeness, likeness
from messirl.selection.validation import SCALES, cross_validate, splits
from messirl.similarity import DEFAULT, CompleteGraph, as_similarity

AIMS = ("imitation", "prediction")


@dataclass(eq=False, repr=False, kw_only=True)
class MESSICV(MaximumEntropy):
    """MESSI with λ0 and the similarity chosen by held-out expert trajectories; the choice may be a baseline, or λ0 = 0.

    Once fitted it is what it chose: `theta_`, `policy_`, `score` and all else are those of `best_estimator_`.

    Parameters
    ----------
    similarities : sequence of similarities, optional
        The ones to choose from. None: RBF with the median width, on counts in units of their spread.
    lambdas : sequence of float
        The λ0 to choose from; zero is always among them.
    aim : {"imitation", "prediction"}
        "imitation": a candidate that loses nothing against λ0 = 0, each being scored at the scale of θ that suits it.
        "prediction": the best held-out log-probability as it is, by the one-standard-error rule.
    cv : int
        Folds; up to 2·cv expert trajectories are held out one by one.
    baselines : bool
        Whether L2, standardised L2, the complete graph and pooling are candidates too.
    margin : float
        Differences of fewer nats per step count as none.
    theta_max : float
        Bound on every weight.
    validation_tol : float
        `tol` of the fits on splits, which need not be as exact as the last one.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        For the splits.
    progress : callable, optional
        Called with (fits done, fits in all).

    Attributes
    ----------
    best_estimator_ : estimator
        The choice, fitted to all experts.
    fitted_to_ : tuple
        What it was fitted to: `best_estimator_.fit(mdp, *fitted_to_)`.
    candidate_ : Candidate
        The method, λ0 and similarity chosen.
    choice_ : Choice
        The candidate, its place in `validation_` and the reason.
    reason_ : str
        Why it was chosen, in a sentence.
    validation_ : Validation
        Held-out scores of every candidate on every split.
    likeness_ : Likeness or None
        How much the unlabelled trajectories look like the expert's.
    verdict_ : str or None
        Whether the unlabelled trajectories help.

    References
    ----------
    The paper leaves λ0 to the user; docs/selection.md says how it is chosen here and what that is worth.

    Examples
    --------
    Six places in a row; the experts prefer the right end, the others the left one.

    >>> import numpy as np
    >>> from messirl import MDP, MESSICV, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([-2.0])), 20, start=np.ones(6), random_state=1)
    >>> model = MESSICV(lambdas=[0.1, 1.0]).fit(mdp, expert[:6], others)
    >>> model.verdict_, model.candidate_.method
    ('hurt', 'MaxEnt')
    """

    similarities: Sequence[Any] | None = field(default=None, kw_only=False)
    lambdas: Sequence[float] = LAMBDAS
    aim: str = AIM
    cv: int = CV
    baselines: bool = True
    margin: float = MARGIN
    validation_tol: float = 1e-3
    progress: Any = None

    solver: str = field(default=SOLVER, init=False)  # not a parameter, like the next four
    step_size: float = field(default=STEP_SIZE, init=False)
    theta_init: Any = field(default=None, init=False)
    callback: Any = field(default=None, init=False)
    warm_start: bool = field(default=False, init=False)

    def fit(
        self,
        mdp: MDP,
        expert: Trajectories,
        unlabelled: Trajectories | None = None,
        groups: npt.ArrayLike | None = None,
        *,
        executor: Any = None,
    ) -> Self:
        """Choose on splits of the experts (by `groups`, where given), then fit the choice to all of them.

        executor : runs the splits (see execution.run); None: this process
        """
        self._check_arguments()
        if self.aim not in AIMS:
            raise ValueError(f"aim={self.aim!r}: choose 'imitation' or 'prediction'")
        similarities = [DEFAULT] if self.similarities is None else list(self.similarities)
        if not similarities:
            raise ValueError("similarities is empty: give at least one, or None")
        plain, (mdp, everyone) = mdp, self._read(mdp, expert, unlabelled)
        counts = self._counts(mdp, expert, unlabelled, penalised=True)
        assert counts is not None
        similarities = _defined(similarities, everyone, counts)
        every = candidates(similarities, self.lambdas, baselines=self.baselines, unlabelled=unlabelled is not None)
        careful = self.aim == "imitation" and self.entropy == "causal" and unlabelled is not None
        if not careful:
            every = [c for c in every if c.method != "Screened"]
        yardstick = similarities[0] if similarities else CompleteGraph()
        shared: dict[str, Any] = {
            "theta_max": self._bound,
            "entropy": self.entropy,
            "objective": self.likelihood_,
            "max_iter": self.max_iter,
        }
        pairs = splits(mdp, expert, self.cv, groups, self.random_state)
        if unlabelled is None and self.baselines and min(len(train) for train, _ in pairs) < 2:
            raise ValueError(
                "without unlabelled trajectories a split must leave two of the expert's, on which the strength of a "
                "penalty is measured: give more expert trajectories, or unlabelled ones"
            )
        self.likeness_: Likeness | None = None
        screen = None
        if careful and unlabelled is not None:
            asked: dict[str, Any] = {"cv": self.cv, "random_state": self.random_state, "theta_max": self._bound}
            self.likeness_ = likeness(plain, expert, unlabelled, groups=groups, **asked)
            screen = Alike(plain, unlabelled, asked)

        scales = SCALES if self.aim == "imitation" else (1.0,)
        options = {"tol": self.validation_tol, "progress": self.progress, "executor": executor, **shared}
        self.validation_ = found = cross_validate(
            mdp, every, pairs, unlabelled, scales=scales, screen=screen, yardstick=yardstick, **options
        )
        self.choice_ = decide(found, self.likeness_, aim=self.aim, margin=self.margin)
        self.verdict_ = None if unlabelled is None else verdict(found, self.choice_, self.likeness_, margin=self.margin)
        self.candidate_, self.reason_ = self.choice_.candidate, self.choice_.reason
        chosen = self.candidate_
        similarity = yardstick if chosen.similarity is None else chosen.similarity
        model = MESSI(similarity, lambda0=chosen.lambda0, tol=self.tol, reference=mdp.reference, **shared)
        if chosen.method == "Screened" and unlabelled is not None and self.likeness_ is not None:
            rows = np.concatenate([np.arange(len(expert)), len(expert) + np.flatnonzero(self.likeness_.alike)])
            model.similarity = model.measure.among(rows, everyone, counts)
            unlabelled = unlabelled[self.likeness_.alike]
        self.best_estimator_, self.fitted_to_ = baseline(chosen.method, model, mdp, expert, unlabelled)
        self.best_estimator_.fit(mdp, *self.fitted_to_)
        for name, value in vars(self.best_estimator_).items():  # all fitted attributes
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def save(self, path: Any) -> None:
        """Write the chosen, fitted model to a file; how it was chosen is not saved."""
        self._fitted()
        self.best_estimator_.save(path)


def _defined(similarities: Sequence[Any], everyone: Trajectories, counts: Floats) -> list[Any]:
    """The similarities that exist for these trajectories; of the others a warning says why they are left out."""
    kept = []
    for similarity in similarities:
        try:
            as_similarity(similarity).on(everyone, counts)
        except ValueError as error:
            warnings.warn(f"{similarity} is left out: {error}", UserWarning, stacklevel=3)
        else:
            kept.append(similarity)
    return kept


@dataclass(frozen=True)
class NestedScore:
    """The held-out score of the whole procedure, choosing included.

    Attributes
    ----------
    scores : array (K,)
        Log-probability per step on the trajectories that each outer split holds out.
    chosen : list of Candidate
        What was chosen on the rest of each split.
    """

    scores: Floats
    chosen: list[Candidate]

    @property
    def mean(self) -> float:
        """The mean score over the outer splits, in nats per step."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of that mean."""
        return float(self.scores.std(ddof=1) / np.sqrt(self.scores.size))


def nested_score(
    estimator: MESSICV,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | None = None,
    groups: npt.ArrayLike | None = None,
    executor: Any = None,
) -> NestedScore:
    """The score of choosing and fitting together, by nested validation: no choice sees what it is scored on."""
    rows = np.arange(len(expert))
    names = rows if groups is None else np.asarray(groups)
    n = np.unique(names).size
    if len(expert) < 3 or n < 3:
        raise ValueError(
            "nested validation needs at least three expert trajectories (or groups): one is held out twice"
        )
    folds = GroupKFold(n if n == 3 else min(estimator.cv, n)).split(rows, groups=names)
    work = functools.partial(_outer, clone(estimator).set_params(progress=None), mdp, expert, unlabelled, groups)
    scores, chosen = zip(*run(work, folds, executor), strict=True)
    return NestedScore(np.array(scores), list(chosen))


def _outer(
    estimator: MESSICV,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | None,
    groups: npt.ArrayLike | None,
    fold: tuple[Ints, Ints],
) -> tuple[float, Candidate]:
    """Choose on the training part of a fold, and score what was chosen on the rest."""
    train, test = fold
    model = clone(estimator).fit(mdp, expert[train], unlabelled, None if groups is None else np.asarray(groups)[train])
    return model.score(expert[test]), model.candidate_
