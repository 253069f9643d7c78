"""A thin adapter to scikit-learn's model selection, which splits one X and knows no MDP.

    GridSearchCV(Adapted(MESSI(), mdp, others), {"estimator__lambda0": [0.01, 0.1]}).fit(expert)

X holds the expert's trajectories; the adapter keeps the MDP and the unlabelled ones, the same in every split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from messirl.data.mdp import MDP
from messirl.data.trajectories import as_trajectories


@dataclass(eq=False, repr=False)
class Adapted(BaseEstimator):
    """An estimator of messirl for `GridSearchCV`, `cross_val_score` and others that call `fit(X)` and `score(X)`.

    Parameters
    ----------
    estimator : estimator
        The method, such as `MESSI()`; its parameters are `estimator__lambda0`, `estimator__similarity__sigma`, ….
    mdp : MDP
        The problem, the same for every split.
    unlabelled : Trajectories, optional
        Trajectories of unknown quality, given to every fit. None: the estimator is fitted to the experts only.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from messirl import MDP, MESSI, sample, soft_policy
    >>> from messirl.selection import Adapted
    >>> moves = np.stack([np.eye(5)[[0, 0, 1, 2, 3]], np.eye(5)[[1, 2, 3, 4, 4]]], axis=1)
    >>> mdp = MDP(moves, np.linspace(0, 1, 5)[:, None], discount=0.9, horizon=6, start=np.ones(5) / 5)
    >>> expert = sample(mdp, soft_policy(mdp, mdp.reward([2.0])), 12, random_state=0)
    >>> others = sample(mdp, soft_policy(mdp, mdp.reward([1.0])), 20, random_state=1)
    >>> search = GridSearchCV(Adapted(MESSI(), mdp, others), {"estimator__lambda0": [0.1, 10.0, 1000.0]}, cv=3)
    >>> search.fit(expert).best_params_
    {'estimator__lambda0': 0.1}
    """

    estimator: Any
    mdp: MDP
    unlabelled: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the estimator to the expert's trajectories X: Trajectories, or a list of them or of lists of states."""
        data = (self.mdp, as_trajectories(X, "X"))
        others = () if self.unlabelled is None else (as_trajectories(self.unlabelled, "unlabelled"),)
        self.estimator_ = clone(self.estimator).fit(*data, *others)
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-probability per step of the trajectories X, as the estimator scores them."""
        return float(self.estimator_.score(as_trajectories(X, "X")))

    def predict_proba(self, states: Any, **options: Any) -> Any:
        """Return π(·|s) of every state given, as the estimator predicts it."""
        return self.estimator_.predict_proba(states, **options)

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.mdp, self.unlabelled)  # mdp and unlabelled are never copied

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")
