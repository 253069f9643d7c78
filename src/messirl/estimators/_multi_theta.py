"""Estimators with one θ per group of trajectories."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from messirl._types import Floats
from messirl.data.trajectories import Trajectories
from messirl.estimators.messi import MESSI


@dataclass(eq=False, repr=False)
class MultiThetaMESSI(MESSI):
    """Base class of MESSI with one θ per group.

    Attributes
    ----------
    thetas_ : array (K, d)
        The weights of every group.
    """

    _arrays: ClassVar[tuple[str, ...]] = ("thetas_",)

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.unlabelled_weight > 0.0:
            raise ValueError(
                f"unlabelled_weight={self.unlabelled_weight:g}: {type(self).__name__} has several thetas and needs 0"
            )
        if self.warm_start:
            raise ValueError(f"warm_start=True: {type(self).__name__} has several thetas and needs False")

    def _number(self, group: Any) -> int | None:
        """Return the index of a group in the fit; None selects the model's default."""
        raise NotImplementedError

    def _of(self, group: Any) -> Self:
        """Return a copy of the model with the weights of one group only."""
        self._fitted()
        number = self._number(group)
        if number is None:
            return self
        one = copy(self)
        one._set_fitted(self.mdp_, self.thetas_[number])
        one._set_policy()
        return one

    def predict_proba(
        self, states: npt.ArrayLike, step: int | None = None, goal: int | None = None, group: Any = None
    ) -> Floats:
        """Return π(·|s) of the given states, (n, A). A horizon requires `step`, goals require `goal`."""
        return super(MultiThetaMESSI, self._of(group)).predict_proba(states, step, goal)

    def sample(
        self,
        n: int,
        length: int | None = None,
        *,
        goal: int | None = None,
        start: npt.ArrayLike | None = None,
        random_state: Any = None,
        group: Any = None,
    ) -> Trajectories:
        """Sample n trajectories of the fitted policy, from `start_` unless `start` (S,) is given."""
        return super(MultiThetaMESSI, self._of(group)).sample(
            n, length, goal=goal, start=start, random_state=random_state
        )

    def _restore_fitted(self, parts: Any) -> None:
        super()._restore_fitted(parts)
        if self.thetas_.ndim != 2 or not len(self.thetas_):
            raise ValueError("its thetas_ are not one row per group")
        self._check_shapes((len(self.thetas_), self.mdp_.n_features), "thetas_")


def as_labels(groups: npt.ArrayLike, n: int) -> Any:
    """Return the labels of n trajectories as an array; raise an error if their number differs."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}: give one label for each of the {n} trajectories")
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8")
    if labels.dtype.kind not in "iuU":
        raise TypeError(f"groups must be whole numbers or texts, not {labels.dtype}")
    return labels
