"""MESSI with λ0, similarity and method chosen by cross-validation, and an unbiased nested score."""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

from messirl._checks import check_number
from messirl._parameters import CV, SEED, default
from messirl._types import Floats, Ints
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import as_streamed
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._streaming import all_in_files, refuse_streamed
from messirl.estimators.messi import MESSI
from messirl.parallel import run
from messirl.selection.candidates import LAMBDAS, Candidate, make_candidates
from messirl.selection.cross_validation import NothingHeldOut, Validation, cross_validate, make_splits
from messirl.selection.decision_rule import FEWEST, UnlabelledGain, choose_candidate, choose_default, unlabelled_gain
from messirl.selection.expert_agreement import ExpertAgreement, measure_agreement
from messirl.similarity import CompleteGraph, Similarity
from messirl.similarity.base import as_similarity
from messirl.similarity.kernels import DEFAULT

LOG = logging.getLogger(__name__)
AMONG = (
    "all {n} expert trajectories are among the unlabelled ones, state by state: if they are the same recordings, "
    "remove them there, since candidates that use them have seen the held-out experts"
)


@dataclass(eq=False, repr=False, kw_only=True)
class MESSICV(MaximumEntropy):
    """Choice of how to use unlabelled trajectories, by cross-validation over the experts: MESSI, another way, or none.

    Candidates are MESSI at several λ0, the complete graph, a prior policy, weighted pooling and the experts only.
    A fixed default is replaced only by a significantly better candidate (selection/decision_rule.py).
    Once fitted, `theta_`,
    `policy_`, `score` and everything else are those of `best_estimator_`.

    Parameters
    ----------
    similarities : sequence of similarities, optional
        The similarities to choose from. None: RBF with the median width, on counts in units of their spread.
    lambdas : sequence of float
        The values of λ0 to choose from; zero is always among them.
    cv : int
        Number of folds; up to 4·cv expert trajectories, or groups of them, are held out one by one.
    theta_max : float
        Bound on every weight.
    theta_prior : float, optional
        Standard deviation of a normal prior of every weight of every candidate, in units of one over the spread of its
        feature. None: no prior.
    validation_tol : float
        `tol` of the fits on splits, which need not be as exact as the final one.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        For the splits. None: a fixed seed, as on the command line.
    progress : callable, optional
        Called with (fits done, all fits).

    Attributes
    ----------
    best_estimator_ : estimator
        The chosen estimator, fitted to all experts.
    fitted_to_ : tuple
        The data it was fitted to: `best_estimator_.fit(mdp, *fitted_to_)`.
    candidate_ : Candidate
        The method and its hyperparameters.
    choice_ : Choice
        The candidate, its index in `validation_`, the reason, and the best other candidate.
    reason_ : str
        The reason for the choice, in a sentence.
    validation_ : Validation or None
        Held-out log-probabilities of every candidate; None if no expert could be held out.
    use_ : UnlabelledGain or None
        The gain from the unlabelled trajectories for held-out experts; None without any, or if nothing was held out.
    verdict_ : str or None
        "help", "hurt", "no effect" or "unclear", by `use_`.
    agreement_ : ExpertAgreement or None
        Agreement of the unlabelled trajectories with the expert policy.

    References
    ----------
    The paper leaves λ0 to the user; docs/selection.md describes the choice made here and its evaluation.

    Examples
    --------
    Six places in a row; the experts prefer the right end, the many others the left one.

    >>> import numpy as np
    >>> from messirl import MDP, MESSICV, sample, soft_policy
    >>> right = np.minimum(np.arange(6) + 1, 5)
    >>> left = np.maximum(np.arange(6) - 1, 0)
    >>> moves = np.stack([np.eye(6)[left], np.eye(6)[right]], axis=1)
    >>> mdp = MDP(moves, features=np.linspace(0, 1, 6)[:, None], discount=0.9, horizon=8)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([4.0])), 20, start=np.ones(6), random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([-4.0])), 500, start=np.ones(6), random_state=1)
    >>> model = MESSICV(lambdas=[0.1, 1.0]).fit(mdp, expert[:10], others)
    >>> print(model.candidate_)
    L2, standardised λ0=0.01
    >>> model.verdict_, round(model.use_.gain.mean, 2)
    ('hurt', -0.2)

    Unlabelled trajectories like the experts do no harm, and nothing is significantly better than the fixed default.

    >>> model = MESSICV(lambdas=[0.1, 1.0]).fit(mdp, expert[:10], expert[10:])
    >>> print(model.candidate_)
    light pooling with L2 λ0=0.01 weight=0.01
    >>> model.verdict_
    'no effect'
    """

    similarities: Sequence[Any] | None = field(default=None, kw_only=False)
    lambdas: Sequence[float] = LAMBDAS
    cv: int = CV
    theta_prior: float | None = default("theta_prior", "MESSICV")
    validation_tol: float = 1e-4
    progress: Any = None

    solver: str = field(default=default("solver"), init=False)  # not parameters: this and the next four
    step_size: float = field(default=default("step_size"), init=False)
    theta_init: Any = field(default=None, init=False)
    callback: Any = field(default=None, init=False)
    warm_start: bool = field(default=False, init=False)

    @merge_truncation_warnings()
    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        groups: npt.ArrayLike | None = None,
        *,
        executor: Any = None,
    ) -> Self:
        """Choose on splits of the experts (by `groups`, if given), then fit the choice to all of them.

        If nothing can be held out, the fixed default is fitted and `reason_` says so.

        unlabelled : Trajectories, or the path of Parquet files, as for `MESSI`
        executor : runs the splits (see execution.run); None: this process
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        check_number("validation_tol", self.validation_tol, above=0.0)
        if isinstance(self.similarities, str | Similarity):
            raise TypeError(f"similarities={self.similarities!r}: give a list of them, [{self.similarities!r}]")
        given = [DEFAULT] if self.similarities is None else list(self.similarities)
        similarities = [as_similarity(one) if isinstance(one, str) else one for one in given]
        if not similarities:
            raise ValueError("similarities is empty: give at least one, or None")
        unlabelled = as_streamed(unlabelled)
        for one in similarities:
            if not as_similarity(one).of_counts:
                refuse_streamed(unlabelled, f"the similarity {one!r:.80}", "looks at whole trajectories")
        plain, (mdp, data) = mdp, self._read(mdp, expert, unlabelled, counted=True)
        counts = self._counts(mdp, data, penalised=True)
        assert counts is not None
        others = unlabelled is not None
        if others and len(expert) >= FEWEST and all_in_files(mdp, expert, unlabelled):
            warnings.warn(AMONG.format(n=len(expert)), UserWarning, stacklevel=2)
        similarities = _defined(similarities, data.trajectories, counts, heard=others)
        based = self.entropy == "causal" and mdp.reference is None
        every = make_candidates(similarities, self.lambdas, unlabelled=others, based=based)
        yardstick = similarities[0] if similarities else CompleteGraph()
        shared: dict[str, Any] = {
            "theta_max": self._bound,
            "entropy": self.entropy,
            "objective": self.likelihood_,
            "max_iter": self.max_iter,
            "theta_prior": self.theta_prior,
        }
        self.validation_: Validation | None = None
        self.use_: UnlabelledGain | None = None
        self.agreement_: ExpertAgreement | None = None
        try:
            seed = SEED if self.random_state is None else self.random_state
            pairs = make_splits(mdp, expert, self.cv, groups, seed)
        except NothingHeldOut as why:
            self.choice_ = choose_default(every, str(why), unlabelled=others)
        else:
            options = {"tol": self.validation_tol, "progress": self.progress, "executor": executor, **shared}
            together = groups is not None
            self.validation_ = found = cross_validate(
                mdp, every, pairs, unlabelled, expert=expert, together=together, yardstick=yardstick, **options
            )
            if unlabelled is not None and self.entropy == "causal":
                asked: dict[str, Any] = {"cv": self.cv, "random_state": seed, "theta_max": self._bound}
                self.agreement_ = measure_agreement(plain, expert, unlabelled, groups=groups, **asked)
            self.choice_ = choose_candidate(found, self.agreement_, unlabelled=others)
            self.use_ = unlabelled_gain(found, self.choice_) if others else None
        self.verdict_ = None if self.use_ is None else self.use_.verdict
        chosen = self.candidate_ = self.choice_.candidate
        self.reason_ = self.choice_.reason
        LOG.info("chosen of %d candidates: %s; %s", len(every), chosen, self.reason_)
        similarity = yardstick if chosen.similarity is None else chosen.similarity
        model = MESSI(similarity, lambda0=chosen.lambda0, tol=self.tol, reference=mdp.reference, **shared)
        self.best_estimator_, self.fitted_to_ = chosen.estimator(model, mdp, expert, unlabelled)
        self.best_estimator_.fit(mdp, *self.fitted_to_)
        for name, value in vars(self.best_estimator_).items():  # all fitted attributes
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def save(self, path: Any) -> None:
        """Write the chosen, fitted model to a file, without the record of the choice."""
        self._fitted()
        self.best_estimator_.save(path)


def _defined(similarities: Sequence[Any], everyone: Any, counts: Floats, *, heard: bool) -> list[Any]:
    """Return the similarities that are defined for these trajectories; warn of each other one if `heard`."""
    kept = []
    for similarity in similarities:
        try:
            as_similarity(similarity).on(everyone, counts)
        except ValueError as error:
            if heard:
                warnings.warn(f"{similarity} is left out: {error}", UserWarning, stacklevel=3)
        else:
            kept.append(similarity)
    return kept


@dataclass(frozen=True)
class NestedScore:
    """The held-out score of the whole procedure, including the choice.

    Attributes
    ----------
    scores : array (K,)
        Log-probability per step on the trajectories that each outer split holds out.
    chosen : list of Candidate
        The candidate chosen on the rest of each split.
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
    unlabelled: Any = None,
    groups: npt.ArrayLike | None = None,
    executor: Any = None,
) -> NestedScore:
    """Return the score of choice and fit together by nested cross-validation: no choice sees its test data."""
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
    unlabelled: Any,
    groups: npt.ArrayLike | None,
    fold: tuple[Ints, Ints],
) -> tuple[float, Candidate]:
    """Choose on the training part of a fold, and score the choice on the rest."""
    train, test = fold
    model = clone(estimator).fit(mdp, expert[train], unlabelled, None if groups is None else np.asarray(groups)[train])
    return model.score(expert[test]), model.candidate_
