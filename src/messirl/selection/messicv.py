"""MESSI that chooses λ0 and the similarity itself, and an unbiased score of the whole procedure."""

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

from messirl._checks import number
from messirl._defaults import CV, SEED, SOLVER, STEP_SIZE, WEAK_PRIOR
from messirl._types import Floats, Ints
from messirl.data.feature_counts import one_cut_warning
from messirl.data.mdp import MDP
from messirl.data.streamed_trajectories import StreamedTrajectories, streamed_or_not
from messirl.data.trajectories import Trajectories, TrajectoriesLike, as_trajectories
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._streaming import all_among, refuse_streamed
from messirl.estimators.messi import MESSI
from messirl.parallel import run
from messirl.selection.candidates import LAMBDAS, Candidate, candidates
from messirl.selection.cross_validation import NothingHeldOut, Validation, cross_validate, splits
from messirl.selection.decision_rule import FEWEST, Use, choose, untested, worth
from messirl.selection.expert_agreement import Likeness, likeness
from messirl.similarity import DEFAULT, CompleteGraph, Similarity, as_similarity

LOG = logging.getLogger(__name__)
AMONG = (
    "all {n} expert trajectories are among the unlabelled ones, state by state: if these are the same recordings, take "
    "them out there, since candidates that learn from them have seen the experts that are held out"
)


@dataclass(eq=False, repr=False, kw_only=True)
class MESSICV(MaximumEntropy):
    """The way to use unlabelled trajectories chosen by held-out expert trajectories: MESSI, another, or none.

    Candidates are MESSI at several λ0, the complete graph, a base policy, light pooling and the experts alone. There is
    a fixed default, which is left only for what is clearly better (selection/decision_rule.py).
    Once fitted it is what it
    chose: `theta_`, `policy_`, `score` and all else are those of `best_estimator_`.

    Parameters
    ----------
    similarities : sequence of similarities, optional
        The ones to choose from. None: RBF with the median width, on counts in units of their spread.
    lambdas : sequence of float
        The λ0 to choose from; zero is always among them.
    cv : int
        Folds; up to 4·cv expert trajectories, or groups of them, are held out one by one.
    theta_max : float
        Bound on every weight.
    theta_prior : float, optional
        Standard deviation of a normal prior of every weight of every candidate, in units of one over the spread of its
        feature. None: no prior.
    validation_tol : float
        `tol` of the fits on splits, which need not be as exact as the last one.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        For the splits; None: the same ones every time, as the command has them.
    progress : callable, optional
        Called with (fits done, fits in all).

    Attributes
    ----------
    best_estimator_ : estimator
        The choice, fitted to all experts.
    fitted_to_ : tuple
        What it was fitted to: `best_estimator_.fit(mdp, *fitted_to_)`.
    candidate_ : Candidate
        The method and its knobs.
    choice_ : Choice
        The candidate, its place in `validation_`, the reason, and what would change it.
    reason_ : str
        Why it was chosen, in a sentence.
    validation_ : Validation or None
        Held-out log-probabilities of every candidate; None where no expert could be held out.
    use_ : Use or None
        What the unlabelled trajectories gain for held-out experts; None without any, or where none could be held out.
    verdict_ : str or None
        "help", "hurt", "no effect" or "unclear", by `use_`.
    likeness_ : Likeness or None
        How much they look like the expert's.

    References
    ----------
    The paper leaves λ0 to the user; docs/selection.md says how it is chosen here and what that is worth.

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

    Others like the experts do no harm, and nothing is clearly better than the fixed default.

    >>> model = MESSICV(lambdas=[0.1, 1.0]).fit(mdp, expert[:10], expert[10:])
    >>> print(model.candidate_)
    light pooling with L2 λ0=0.01 weight=0.01
    >>> model.verdict_
    'no effect'
    """

    similarities: Sequence[Any] | None = field(default=None, kw_only=False)
    lambdas: Sequence[float] = LAMBDAS
    cv: int = CV
    theta_prior: float | None = WEAK_PRIOR
    validation_tol: float = 1e-4
    progress: Any = None

    solver: str = field(default=SOLVER, init=False)  # not a parameter, like the next four
    step_size: float = field(default=STEP_SIZE, init=False)
    theta_init: Any = field(default=None, init=False)
    callback: Any = field(default=None, init=False)
    warm_start: bool = field(default=False, init=False)

    @one_cut_warning()
    def fit(
        self,
        mdp: MDP,
        expert: TrajectoriesLike,
        unlabelled: Any = None,
        groups: npt.ArrayLike | None = None,
        *,
        executor: Any = None,
    ) -> Self:
        """Choose on splits of the experts (by `groups`, where given), then fit the choice to all of them.

        Where nothing can be held out the fixed default is fitted, and `reason_` says so.

        unlabelled : Trajectories, or where they are in Parquet files, as for `MESSI`
        executor : runs the splits (see execution.run); None: this process
        """
        expert, unlabelled = as_trajectories(expert, "expert"), as_trajectories(unlabelled, "unlabelled")
        self._check_arguments()
        number("theta_max", self.theta_max, above=0.0)  # λ0 is in units of it
        number("validation_tol", self.validation_tol, above=0.0)
        if self.theta_prior is not None:
            number("theta_prior", self.theta_prior, above=0.0)
        if isinstance(self.similarities, str | Similarity):
            raise TypeError(f"similarities={self.similarities!r}: give a list of them, [{self.similarities!r}]")
        given = [DEFAULT] if self.similarities is None else list(self.similarities)
        similarities = [as_similarity(one) if isinstance(one, str) else one for one in given]
        if not similarities:
            raise ValueError("similarities is empty: give at least one, or None")
        unlabelled = streamed_or_not(unlabelled)
        for one in similarities:
            if not as_similarity(one).of_counts:
                refuse_streamed(unlabelled, f"the similarity {one!r:.80}", "looks at whole trajectories")
        plain, (mdp, everyone) = mdp, self._read(mdp, expert, unlabelled, counted=True)
        counts = self._counts(mdp, expert, unlabelled, penalised=True)
        assert counts is not None
        others = unlabelled is not None
        if others and len(expert) >= FEWEST and _all_among(mdp, expert, unlabelled):
            warnings.warn(AMONG.format(n=len(expert)), UserWarning, stacklevel=2)
        similarities = _defined(similarities, everyone, counts, heard=others)
        based = self.entropy == "causal" and mdp.reference is None
        every = candidates(similarities, self.lambdas, unlabelled=others, based=based)
        yardstick = similarities[0] if similarities else CompleteGraph()
        shared: dict[str, Any] = {
            "theta_max": self._bound,
            "entropy": self.entropy,
            "objective": self.likelihood_,
            "max_iter": self.max_iter,
            "theta_prior": self.theta_prior,
        }
        self.validation_: Validation | None = None
        self.use_: Use | None = None
        self.likeness_: Likeness | None = None
        try:
            seed = SEED if self.random_state is None else self.random_state
            pairs = splits(mdp, expert, self.cv, groups, seed)
        except NothingHeldOut as why:
            self.choice_ = untested(every, str(why), unlabelled=others)
        else:
            options = {"tol": self.validation_tol, "progress": self.progress, "executor": executor, **shared}
            together = groups is not None
            self.validation_ = found = cross_validate(
                mdp, every, pairs, unlabelled, expert=expert, together=together, yardstick=yardstick, **options
            )
            if unlabelled is not None and self.entropy == "causal":
                asked: dict[str, Any] = {"cv": self.cv, "random_state": seed, "theta_max": self._bound}
                self.likeness_ = likeness(plain, expert, unlabelled, groups=groups, **asked)
            self.choice_ = choose(found, self.likeness_, unlabelled=others)
            self.use_ = worth(found, self.choice_) if others else None
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
        """Write the chosen, fitted model to a file; how it was chosen is not saved."""
        self._fitted()
        self.best_estimator_.save(path)


def _all_among(mdp: MDP, expert: Trajectories, unlabelled: Trajectories | StreamedTrajectories) -> bool:
    """Whether every expert trajectory is, state by state, an unlabelled one too."""
    if isinstance(unlabelled, StreamedTrajectories):
        return all_among(mdp, expert, unlabelled)
    there = {_content(one) for one in unlabelled}
    return all(_content(one) in there for one in expert)


def _content(one: Any) -> tuple[bytes, int | None]:
    states, _, goal = one
    return states.tobytes(), goal


def _defined(similarities: Sequence[Any], everyone: Any, counts: Floats, *, heard: bool) -> list[Any]:
    """The similarities that exist for these trajectories; of the others, where `heard`, a warning says why not."""
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
    unlabelled: Any = None,
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
    unlabelled: Any,
    groups: npt.ArrayLike | None,
    fold: tuple[Ints, Ints],
) -> tuple[float, Candidate]:
    """Choose on the training part of a fold, and score what was chosen on the rest."""
    train, test = fold
    model = clone(estimator).fit(mdp, expert[train], unlabelled, None if groups is None else np.asarray(groups)[train])
    return model.score(expert[test]), model.candidate_
