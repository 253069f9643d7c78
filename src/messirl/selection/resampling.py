"""Uncertainty of fits: bootstrap intervals, and stability over draws of the unlabelled set."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from messirl._checks import check_fraction, check_integer
from messirl._parameters import SEED
from messirl._types import Floats, Ints
from messirl.data.feature_counts import merge_truncation_warnings
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.estimators._convergence_report import ignore_convergence_warnings
from messirl.estimators._maxent_base import MaximumEntropy
from messirl.estimators._streaming import refuse_streamed
from messirl.estimators.em import EMMaxEnt
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.objective import evaluate_batch
from messirl.optim.lockstep import run_searches
from messirl.parallel import run
from messirl.planning.kernels.batched_bellman import L
from messirl.planning.planner import solution_from_start
from messirl.planning.sampling import random_source
from messirl.selection.candidates import LAMBDAS
from messirl.similarity.base import as_similarity


@dataclass(frozen=True)
class BootstrapFits:
    """Fits to resampled trajectories, and percentile intervals of anything computed from them.

    Attributes
    ----------
    theta : array (B, d)
        The weights of each fit.
    policy : array (B, S, A), (B, H − 1, S, A) with a horizon, or None
        The policy of each fit; None with goals.
    mdp : MDP
        The problem of the fits.
    """

    theta: Floats
    policy: Floats | None
    mdp: MDP

    @property
    def reward(self) -> Floats:
        """The reward of each replicate, (B, S) or (B, S, A)."""
        return np.array([self.mdp.reward(theta) for theta in self.theta])

    def interval(self, values: npt.ArrayLike, level: float = 0.95) -> Floats:
        """Return lower and upper ends, (2, …), of anything computed from each replicate, (B, …)."""
        check_fraction("level", level)
        if len(self.theta) < 2:
            raise ValueError(f"an interval needs at least two resamples, not {len(self.theta)}: draw more")
        tail = 50.0 * (1.0 - level)
        return np.asarray(np.percentile(np.asarray(values), [tail, 100.0 - tail], axis=0))


@merge_truncation_warnings()
def bootstrap(
    estimator: MaximumEntropy,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | None = None,
    n: int = 200,
    random_state: Any = SEED,
    progress: Any = None,
    executor: Any = None,
    *,
    groups: npt.ArrayLike | None = None,
    unlabelled_groups: npt.ArrayLike | None = None,
) -> BootstrapFits:
    """Refit to n resamples of the expert's (and of the unlabelled) trajectories, drawn with replacement.

    groups, unlabelled_groups : (l,) and (u,) labels; trajectories with the same label are of one individual, and
        individuals are drawn instead of trajectories. None: trajectories are drawn
    """
    refuse_streamed(unlabelled, "bootstrap", "draws unlabelled trajectories anew for every resample")
    if len(expert) < 2:
        raise ValueError("one expert trajectory cannot be resampled: give at least two")
    random, own = random_source(random_state), _members("groups", groups, len(expert))
    if len(own) < 2:
        raise ValueError("groups names one individual only, which cannot be resampled: give no groups, or more data")
    if unlabelled is None and unlabelled_groups is not None:
        raise ValueError("unlabelled_groups is given without unlabelled trajectories: omit it")
    others = None if unlabelled is None else _members("unlabelled_groups", unlabelled_groups, len(unlabelled))
    draws = []
    for _ in range(check_integer("n", n, least=0)):
        draws.append((_resample(own, random), None if others is None else _resample(others, random)))
    with ignore_convergence_warnings():
        first = clone(estimator).fit(mdp, *_some(expert, unlabelled))
    again = clone(estimator)
    if "theta_init" in again.get_params(deep=False):
        again.set_params(theta_init=first.theta_)
    size = _batch_size(again, mdp, expert, unlabelled)
    work = functools.partial(_resampled, again, mdp, expert, unlabelled)
    batches = [draws[k : k + size] for k in range(0, len(draws), size)]
    told = None if progress is None else lambda done, _: progress(min(done * size, len(draws)), len(draws))
    fits = [fit for some in run(work, batches, executor, told) for fit in some]
    thetas, policies = zip(*fits, strict=True) if fits else ((), ())
    return BootstrapFits(np.array(thetas), np.array(policies) if fits and expert.goals is None else None, mdp)


def _members(name: str, groups: npt.ArrayLike | None, n: int) -> list[Ints]:
    """Return the rows of every individual."""
    if groups is None:
        return list(np.arange(n)[:, None])
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"{name} has shape {labels.shape}: give one label for each of the {n} trajectories")
    if any(label is None or label != label for label in labels.tolist()):  # NaN is not equal to itself
        raise ValueError(f"{name} has labels that are NaN or None: give every trajectory one")
    number = np.unique(labels, return_inverse=True)[1]
    return [np.flatnonzero(number == k) for k in range(number.max(initial=-1) + 1)]


def _resample(members: Sequence[Ints], random: np.random.RandomState) -> Ints:
    """Return the rows of as many individuals, drawn with replacement."""
    return np.concatenate([members[k] for k in random.randint(0, len(members), len(members))])


def _batch_size(estimator: MaximumEntropy, mdp: MDP, expert: Trajectories, unlabelled: Trajectories | None) -> int:
    """Return how many resamples form a batch: more than one if their evaluations can be batched."""
    if type(estimator).fit not in (MESSI.fit, MaxEntIRL.fit, EMMaxEnt.fit) or estimator.reference is not None:
        return 1  # others search differently; with a prior policy each fit has its own problem
    with ignore_convergence_warnings():
        prepared = clone(estimator)._prepare(mdp, *_some(expert, unlabelled))
    return 1 if prepared.objective.batch_mdp is None else L


def _resampled(
    estimator: MaximumEntropy,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories | None,
    draws: Sequence[tuple[Ints, Ints | None]],
) -> list[tuple[Floats, Floats | None]]:
    """Return θ and policy of a fit to the trajectories of each draw."""
    again = [_drawn(estimator, expert, unlabelled, draw) for draw in draws]
    with ignore_convergence_warnings():
        if len(again) == 1:
            (model, data), *_ = again
            model.fit(mdp, *data)
            return [(model.theta_, model.policy_ if expert.goals is None else None)]
        searches = (model._prepare(mdp, *data).steps() for model, data in again)
        found = dict(run_searches(searches, evaluate_batch))
    out: list[tuple[Floats, Floats | None]] = []
    for number in range(len(draws)):
        based, _, objective, _, result = found[number]
        solution = solution_from_start(based, based.reward(result.theta), objective.planner.start)
        out.append((result.theta, np.ascontiguousarray(solution.table)))
    return out


def _drawn(
    estimator: MaximumEntropy, expert: Trajectories, unlabelled: Trajectories | None, draw: tuple[Ints, Ints | None]
) -> tuple[MaximumEntropy, tuple[Any, ...]]:
    """Return the unfitted estimator and the drawn trajectories; a similarity matrix is reduced to their rows."""
    rows, more = draw
    drawn, others = expert[rows], None
    if unlabelled is not None and more is not None:
        rows, others = np.concatenate([rows, len(expert) + more]), unlabelled[more]
    again, similarity = clone(estimator), estimator.get_params(deep=False).get("similarity")
    if similarity is not None:
        again.set_params(similarity=as_similarity(similarity).part(rows))
    return again, _some(drawn, others)


def stability(
    estimator: MESSI,
    mdp: MDP,
    expert: Trajectories,
    unlabelled: Trajectories,
    lambdas: Sequence[float] = LAMBDAS,
    n: int = 10,
    random_state: Any = SEED,
    executor: Any = None,
) -> list[dict[str, float]]:
    """Return how much the policy depends on the sample of unlabelled trajectories, for each λ0.

    For each λ0 there are n fits with half of the unlabelled trajectories; `spread` is the mean distance between their
    policies (total variation, over the states that the expert visits). No held-out expert is needed. The measure shows
    stability, not correctness.
    """
    refuse_streamed(unlabelled, "stability", "fits to halves of them")
    random = random_source(random_state)
    half = max(len(unlabelled) // 2, 1)
    tasks = [(float(x), random.permutation(len(unlabelled))[:half]) for x in lambdas for _ in range(n)]
    tables = list(run(functools.partial(_halved, estimator, mdp, expert, unlabelled), tasks, executor))
    out = []
    for i, x in enumerate(lambdas):
        every = np.array(tables[i * n : (i + 1) * n])
        out.append({"lambda0": float(x), "spread": float(0.5 * np.abs(every - every.mean(0)).sum(-1).mean())})
    return out


def _halved(
    estimator: MESSI, mdp: MDP, expert: Trajectories, unlabelled: Trajectories, task: tuple[float, Ints]
) -> Floats:
    """Return the policy in the states of the experts, fitted at this λ0 with some unlabelled trajectories."""
    lambda0, some = task
    rows = np.concatenate([np.arange(len(expert)), len(expert) + some])
    part = estimator.measure.part(rows)
    with ignore_convergence_warnings():
        model = clone(estimator).set_params(lambda0=lambda0, similarity=part).fit(mdp, expert, unlabelled[some])
    return _where_visited(model, expert)


def _where_visited(model: MaximumEntropy, expert: Trajectories) -> Floats:
    """Return π in the states that the expert visits, (…, A); with goals, for each goal in the states on the way."""
    if expert.goals is None:
        return np.asarray(model.policy_)[..., np.unique(expert.states), :]
    towards = [(goal, np.unique(expert[expert.goals == goal].states)) for goal in np.unique(expert.goals).tolist()]
    return np.concatenate([model.policy_[goal][visited] for goal, visited in towards])


def _some(expert: Trajectories, unlabelled: Trajectories | None) -> tuple[Any, ...]:
    return (expert,) if unlabelled is None else (expert, unlabelled)
