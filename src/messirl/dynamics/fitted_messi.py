"""MESSI from recorded transitions, where states are vectors and the dynamics are unknown: fitted soft value iteration.

    J(θ) = θᵀf* − Σ_s start(s) V_θ(s) − (λ0/θ_max) R(θ),      V_θ by regression on the recorded steps

With a regressor that averages (trees, forests, nearest neighbours) this is MESSI on a finite MDP over the recorded
states, so this J is concave and its gradient exact; any other regressor is refitted at every backup. On that MDP the
likelihood of choices may take the place of that of counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from messirl._checks import check_integer, check_number, check_parameters
from messirl._parameters import default
from messirl._types import Floats, Ints
from messirl.data.feature_scale import spread_of
from messirl.data.trajectories import Trajectories
from messirl.dynamics.averaging_regressors import TREES, AveragerModel, Forest, is_averager
from messirl.dynamics.fitted_value_iteration import RefittedModel, RefittedObjective
from messirl.dynamics.importance_objective import ImportanceObjective, log_behaviour
from messirl.dynamics.state_features import RadialGrid, Squares
from messirl.dynamics.transition_dataset import (
    FeatureMap,
    Samples,
    as_points,
    checked_recordings,
    feature_table,
    read_samples,
    sample_counts,
)
from messirl.estimators.persistence import SavableEstimator
from messirl.objective import Objective, curvature_scale
from messirl.optim.lbfgs import lbfgs
from messirl.planning import Planner, soft_values
from messirl.planning.sampling import random_source
from messirl.similarity import RBF, CompleteGraph, Exponential, NearestNeighbours, Precomputed
from messirl.similarity.kernels import DEFAULT
from messirl.similarity.penalty import similarity_penalty

COUNTS = ("model", "importance")
FEW = 2.0  # effective number of trajectories below which importance weights are useless


@dataclass(eq=False, repr=False, kw_only=True)
class FittedMESSI(SavableEstimator):
    """MESSI on recordings with vector states, discrete actions and unknown dynamics.

    Soft value iteration is fitted to the recorded transitions; with lambda0=0 it is maximum entropy IRL.

    Parameters
    ----------
    features : callable
        Function from states (n, k) to their features (n, d).
    regressor : scikit-learn regressor, optional
        Predicts the values after an action, with one fit per action, from states in units of their spread. None:
        ExtraTreesRegressor with 30 trees grown until their leaves are pure.
    similarity : RBF, Exponential, CompleteGraph, NearestNeighbours, Precomputed or callable
        Similarity of recordings by their feature counts.
    objective : {"choices", "counts"} or None
        The likelihood of the experts' choices, or matching of their feature counts. "choices" needs a regressor that
        averages (trees, forests, nearest neighbours) and counts="model". None: "choices" with these, else "counts".
    lambda0 : float
        λ0, the strength of the penalty.
    theta_max : float
        θ_max, the bound on every weight; it also divides λ0.
    discount : float
        γ, above 0 and below 1.
    n_actions : int, optional
        The number of actions. None: the highest action recorded, plus 1.
    counts : {"model", "importance"}
        Expected counts under the fitted dynamics, or of re-weighted recordings.
    classifier : scikit-learn classifier, optional
        Predicts the recorded actions, for counts="importance". None: ExtraTreesClassifier with 10 samples per leaf.
    max_iter : int
        Maximum number of iterations.
    tol : float
        Tolerance of each weight, relative to its size or its unit.
    max_backups, backup_tol : int, float
        Maximum number of backups, and the change at which they end, where the regressor does not average.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        The randomness of the default regressor and classifier.
    callback : callable, optional
        Called with a dict after every iteration; returning True stops the search.

    Attributes
    ----------
    theta_ : array (d,)
        One weight per feature.
    objective_ : float
        The objective J at `theta_`; that of choices need not be concave.
    feature_counts_, expert_counts_ : arrays (d,)
        Expected feature counts of the policy, and those of the experts.
    converged_, termination_ : bool, str
        Whether every weight is within `tol` of its optimum, and why the search ended.
    n_iter_, gradient_norm_ : int, float
        Iterations done, and the largest entry of the projected gradient.
    history_ : record array
        Iteration, objective, theta_norm, gradient_norm and evaluations of every iteration.
    sample_values_ : array
        The value of every distinct state recorded.
    n_features_in_, n_actions_ : int
        Coordinates of a state, and actions.
    effective_sample_size_ : float or None
        With counts="importance", the effective number of recordings; else None.
    model_ : AveragerModel or RefittedModel
        The fitted dynamics: for a regressor that averages, or for any other.
    mdp_ : MDP
        With a regressor that averages, the finite MDP over the recorded states.

    References
    ----------
    Audiffren, Valko, Lazaric, Ghavamzadeh: Maximum Entropy Semi-Supervised Inverse Reinforcement Learning, IJCAI 2015,
    the footnote on unknown dynamics; Ernst, Geurts, Wehenkel: Tree-Based Batch Mode Reinforcement Learning, JMLR 2005.

    Examples
    --------
    Trajectories on a line from 0 to 1; the experts go right.

    >>> import numpy as np
    >>> from messirl.dynamics import FittedMESSI
    >>> from messirl.io import Recording
    >>> steps = np.linspace(0.0, 1.0, 6)[:, None]
    >>> right = Recording(steps, np.ones(5, dtype=int), terminated=True)
    >>> left = Recording(steps[::-1], np.zeros(5, dtype=int), terminated=True)
    >>> model = FittedMESSI(lambda s: np.column_stack([s, np.ones(len(s))]), discount=0.9, lambda0=1.0)
    >>> model.fit([right, right], [left, right]).predict_proba([[0.4]]).round(1)
    array([[0., 1.]])
    """

    _arrays: ClassVar[tuple[str, ...]] = ("theta_", "feature_counts_", "expert_counts_", "history_", "sample_values_")
    _facts: ClassVar[tuple[str, ...]] = (
        *("objective_", "n_iter_", "converged_", "termination_", "gradient_norm_"),
        *("n_features_in_", "n_actions_", "effective_sample_size_"),
    )
    _kinds: ClassVar[tuple[type[Any], ...]] = (
        *(RBF, Exponential, CompleteGraph, NearestNeighbours, Precomputed, Squares, RadialGrid),
        *(*TREES, KNeighborsRegressor, ExtraTreesClassifier),
    )
    _missed: ClassVar[tuple[str, ...]] = ("features", "similarity", "regressor", "classifier")

    features: FeatureMap = field(kw_only=False)
    regressor: Any = None
    similarity: Any = DEFAULT
    objective: str | None = default("objective")
    lambda0: float = default("lambda0")
    theta_max: float = default("theta_max")
    discount: float
    n_actions: int | None = None
    counts: str = "model"
    classifier: Any = None
    max_iter: int = default("max_iter")
    tol: float = default("tol")
    max_backups: int = 2000
    backup_tol: float = 1e-8
    random_state: Any = 0
    callback: Any = None

    # -- fitting ------------------------------------------------------------------------------------------------

    def fit(self, expert: Iterable[Any], unlabelled: Iterable[Any] | None = None) -> Self:
        """Fit to recordings (`observations` (T + 1, k), `actions` (T,), `terminated`); both sets give the dynamics."""
        self._check_arguments()
        samples = read_samples(expert, unlabelled, self.n_actions)
        table = feature_table(self.features, samples.points)
        target, counts, quadratic = self._counts(samples, table)
        regressor = self.regressor
        if regressor is None:
            regressor = ExtraTreesRegressor(n_estimators=30, random_state=self.random_state)

        objective: Any
        averages = is_averager(regressor)
        likelihood = self.objective or ("choices" if averages and self.counts == "model" else "counts")
        if averages:
            self.model_: AveragerModel | RefittedModel = AveragerModel(regressor, samples)
            self.mdp_ = self.model_.mdp(table, self.discount)
            if likelihood == "choices":
                experts = samples.trajectories[: samples.n_expert]
                objective = Objective.from_trajectories(
                    self.mdp_, experts, quadratic=quadratic, objective="choices", checked=True
                )
            else:
                objective = Objective(self.mdp_, Planner(self.mdp_, "causal", samples.start), target, quadratic)
        elif likelihood == "choices":
            raise ValueError(
                f"objective='choices' needs a regressor that averages, not {regressor!r}: use a forest or nearest "
                "neighbours, or objective='counts'"
            )
        else:
            self.model_ = RefittedModel(regressor, samples, table, self.discount, self.max_backups, self.backup_tol)
            objective = RefittedObjective(self.model_, target, quadratic)
        if self.counts == "importance":
            classifier = self.classifier
            if classifier is None:
                classifier = ExtraTreesClassifier(n_estimators=50, min_samples_leaf=10, random_state=self.random_state)
            objective = ImportanceObjective(counts, log_behaviour(classifier, samples), target, quadratic)

        unit = spread_of(table)
        result = lbfgs(
            objective,
            np.zeros(table.shape[1]),
            bound=float(self.theta_max),
            max_iter=self.max_iter,
            tol=float(self.tol),
            unit=unit,
            scale=curvature_scale(unit, quadratic),
            callback=self.callback,
        )
        self.n_features_in_ = samples.points.shape[1]
        self.n_actions_ = samples.n_actions
        self.theta_ = result.theta
        self.objective_ = float(result.point.value)
        self.feature_counts_ = result.point.expected_counts
        if likelihood == "choices":
            self.feature_counts_ = objective.from_start(result.theta, result.point).counts(self.mdp_)
        self.expert_counts_ = target
        self.history_ = result.history
        self.n_iter_ = int(result.history.iteration[-1])
        self.gradient_norm_ = result.gradient_norm
        self._finish(table, objective, result.converged, result.reason)
        return self

    def _check_arguments(self) -> None:
        if not callable(self.features):
            raise TypeError("features must be a function from states (n, k) to their features (n, d)")
        if self.counts not in COUNTS:
            raise ValueError(f"counts={self.counts!r}: choose 'model' or 'importance'")
        if self.objective == "choices" and self.counts == "importance":
            raise ValueError("objective='choices' does not use counts: leave counts='importance' out")
        check_parameters(self)
        check_number("backup_tol", self.backup_tol, least=0.0)
        if check_number("discount", self.discount, above=0.0) >= 1.0:
            raise ValueError(f"discount={self.discount}: must be below 1 with recordings")
        check_integer("max_backups", self.max_backups)
        if self.n_actions is not None:
            check_integer("n_actions", self.n_actions)
        for name, method in (("regressor", "predict"), ("classifier", "predict_proba")):
            value = getattr(self, name)
            if value is not None and not (hasattr(value, "fit") and hasattr(value, method)):
                raise TypeError(f"{name}={value!r}: it must be a scikit-learn estimator with fit and {method}")

    def _counts(self, samples: Samples, table: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Return f*, the counts of the recordings that are needed, and the matrix of the penalty, λ M."""
        everyone = self.lambda0 > 0 or self.counts == "importance"
        which = slice(None) if everyone else slice(samples.n_expert)
        counts = sample_counts(samples, table, float(self.discount), which)
        target = counts[: samples.n_expert].mean(axis=0)
        if self.lambda0 == 0 or len(counts) == 1:
            return target, counts, None
        penalty = similarity_penalty(self.similarity, samples.trajectories, counts)
        return target, counts, float(self.lambda0) / float(self.theta_max) * penalty

    def _finish(self, table: Floats, objective: Any, converged: bool, reason: str) -> None:
        """Compute the values at the θ found, and record whether every iteration converged."""
        reward = table @ self.theta_
        if isinstance(self.model_, AveragerModel):
            self.sample_values_ = soft_values(self.mdp_, reward)
        else:
            before = self.model_.capped
            self.sample_values_, _ = self.model_.values(reward)
            if self.model_.capped > before:
                converged, reason = False, f"backups did not converge within max_backups={self.max_backups}"
        self.converged_, self.termination_ = converged, reason
        if not converged:
            warnings.warn(
                f"FittedMESSI did not converge: {reason}, with a projected gradient of {self.gradient_norm_:.2g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.effective_sample_size_: float | None = None
        if isinstance(objective, ImportanceObjective):
            self.effective_sample_size_ = objective.effective_sample_size(self.theta_)
            if self.effective_sample_size_ < FEW:
                warnings.warn(
                    f"the effective sample size of the importance weights is {self.effective_sample_size_:.2f} of "
                    f"{len(objective.counts)} recordings, so theta is unreliable: use counts='model', or more and "
                    "shorter recordings",
                    UserWarning,
                    stacklevel=3,
                )

    # -- using --------------------------------------------------------------------------------------------------

    def _ahead(self, states: npt.ArrayLike) -> Floats:
        """Return γ Ê_a[V(s')](s), (n, A): the part of Q that depends on the action."""
        self._fitted()
        points = as_points(states, "states", self.n_features_in_)
        if isinstance(self.model_, RefittedModel):
            return self.model_.q(points, np.zeros(len(points)))
        ahead = [self.model_.successors(points, a) @ self.sample_values_ for a in range(self.n_actions_)]
        return np.asarray(self.discount * np.stack(ahead, axis=1))

    def predict_proba(self, states: npt.ArrayLike) -> Floats:
        """Return π(a|s) = exp(Q_a(s) − V(s)) at any states (n, k), recorded or not: (n, A)."""
        ahead = self._ahead(states)
        return np.asarray(np.exp(ahead - logsumexp(ahead, axis=1, keepdims=True)))

    def policy(self, states: npt.ArrayLike) -> Floats:
        """Return the same as `predict_proba`, to go with `values` and `reward`."""
        return self.predict_proba(states)

    def values(self, states: npt.ArrayLike) -> Floats:
        """Return V(s) = log Σ_a exp Q_a(s) at any states (n, k) that are not terminal: (n,)."""
        return np.asarray(self.reward(states) + logsumexp(self._ahead(states), axis=1))

    def reward(self, states: npt.ArrayLike) -> Floats:
        """Return r_θ(s) = θᵀf(s) at any states (n, k): (n,)."""
        self._fitted()
        points = as_points(states, "states", self.n_features_in_)
        return np.asarray(feature_table(self.features, points, self.theta_.size) @ self.theta_)

    def act(self, state: npt.ArrayLike, random_state: Any = None) -> int:
        """Draw an action from π(·|state), for one state (k,)."""
        chances = self.predict_proba(np.asarray(state)[None])[0]
        return int(random_source(random_state).choice(chances.size, p=chances))

    def score(self, recordings: Iterable[Any]) -> float:
        """Return the mean log-probability per step, Σ log π(a|s) / Σ T, pooled over the recordings."""
        logs, steps = self._log_likelihood(recordings)
        if steps.sum() == 0:
            raise ValueError("the recordings have no step to score: give at least one with a step")
        return float(logs.sum() / steps.sum())

    def _log_likelihood(self, recordings: Iterable[Any]) -> tuple[Floats, Ints]:
        """Return Σ_t log π(a_t|s_t) and the steps T of every recording, (n,) each."""
        found = checked_recordings(recordings, "recordings")
        actions = np.concatenate([taken for _, taken, _ in found])
        steps = np.array([taken.size for _, taken, _ in found])
        if actions.size == 0:
            return np.zeros(steps.size), steps
        q = self._ahead(np.concatenate([points[:-1] for points, _, _ in found]))
        if actions.min() < 0 or actions.max() >= q.shape[1]:
            raise ValueError(f"recordings: actions must be among 0 … {q.shape[1] - 1}")
        logs = q[np.arange(actions.size), actions] - logsumexp(q, axis=1)
        whose = np.repeat(np.arange(steps.size), steps)
        return np.asarray(np.bincount(whose, logs, minlength=steps.size), dtype=np.float64), steps

    # -- saving -------------------------------------------------------------------------------------------------

    def _parts(self) -> dict[str, Any]:
        """Return the arrays that define the policy: the samples and, if there are trees, their nodes."""
        settings = {} if self.regressor is None else self.regressor.get_params(deep=False)
        if not isinstance(self.model_, AveragerModel) or any(map(callable, settings.values())):
            raise ValueError(
                f"a FittedMESSI with regressor={self.regressor!r} cannot be saved as plain numbers: use a tree, a "
                "forest or nearest neighbours of scikit-learn, without functions of your own"
            )
        samples, each = self.model_.samples, self.model_.samples.trajectories
        return {
            "samples_points": samples.points,
            "samples_terminal": samples.terminal,
            "samples_states": each.states,
            "samples_offsets": each.offsets,
            "samples_actions": each.actions,
            "samples_n_expert": np.array(samples.n_expert),
            **{f"forest_{a}_{k}": v for a, one in enumerate(self.model_.forests()) for k, v in vars(one).items()},
        }

    def _restore_fitted(self, parts: Any) -> None:
        each = Trajectories(parts["samples_states"], parts["samples_offsets"], parts["samples_actions"])
        points, terminal = parts["samples_points"], parts["samples_terminal"]
        samples = Samples(points, terminal, each, int(parts["samples_n_expert"]), self.n_actions_)
        names = ("left", "right", "feature", "threshold", "root")
        if self.sample_values_.shape != (len(points),) or points.shape[1:] != (self.n_features_in_,):
            raise ValueError("its values do not fit its samples")
        samples.check()
        grown = () if isinstance(self.regressor, KNeighborsRegressor) else range(self.n_actions_)
        forests = [Forest(*(parts[f"forest_{a}_{name}"] for name in names)) for a in grown]
        for forest in forests:
            forest.check(points.shape[1], 2 * len(points))
        self.model_ = AveragerModel(self.regressor, samples, forests)
        self.history_ = self.history_.view(np.recarray)
