"""Hyperparameter grids of the methods, and their choice by cross-validation over the experts.

With at least `FEWEST` experts, every point of the grid of a method is scored by five-fold cross-validation, and the
best one is chosen, the first of ties. With fewer experts the first point, the default, is used. A method that is not
listed here has no hyperparameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from messirl._parameters import WEAK_PRIOR
from messirl.data.trajectories import Trajectories
from messirl.estimators import MESSI
from messirl.estimators.registry import DEFAULT_POOLING_RIDGE, DEFAULT_POOLING_WEIGHT, Method
from messirl.paper.experiments.benchmark_tasks import Task
from messirl.selection.cross_validation import make_splits

Hyperparameters = dict[str, Any]
FEWEST, PARTS = 5, 5

_strengths: tuple[Hyperparameters, ...] = tuple({"lambda0": x} for x in (0.05, 0.005, 0.5))
_smoothing: tuple[Hyperparameters, ...] = tuple({"smoothing": x} for x in (1.0, 0.1, 10.0))
GRIDS: dict[str, tuple[Hyperparameters, ...]] = {
    **dict.fromkeys(("MESSI", "Complete", "Ridge", "RidgeStd", "Several", "OwnPolicy"), _strengths),
    **dict.fromkeys(("Cloning", "ISWBC", "DWBC"), _smoothing),
    "MaxEnt": tuple({"ridge": x} for x in (1e-3, 0.0, 1e-1)),
    "Reference": tuple({"reference_strength": x} for x in (10.0, 2.0, 50.0)),
    "ReferenceStd": tuple({"lambda0": x} for x in (0.3, 0.03, 3.0)),
    "LightPoolingStd": tuple(
        {"lambda0": DEFAULT_POOLING_RIDGE, "unlabelled_weight": x} for x in (DEFAULT_POOLING_WEIGHT, 0.1, 1.0)
    ),
    "EM": tuple({"steps_per_round": x} for x in (1, 10)),
    "DemoDICE": tuple({"alpha": x} for x in (0.05, 0.5, 5.0)),
    "SSIRL": tuple({"unlabelled_cost": x} for x in (0.1, 0.01, 1.0)),
    "RelativeEntropy": tuple({"epsilon": x} for x in (0.1, 0.01, 1.0)),
    "Bayesian": ({"n_warm_up": 200, "n_samples": 200},),
}


def grid(method: Method) -> tuple[Hyperparameters, ...]:
    """Return the hyperparameter grid of a method, the default first."""
    return GRIDS.get(method.name, ({},))


def fit_method(method: Method, hyperparameters: Hyperparameters, task: Task, expert: Trajectories) -> Any:
    """Fit a method with these hyperparameters to some experts and, if it uses them, to the unlabelled trajectories."""
    base = MESSI(theta_prior=WEAK_PRIOR, random_state=task.seed)  # the prior of every candidate of a selection
    shared = {k: v for k, v in hyperparameters.items() if k in base.get_params(deep=False) and k not in method.sets}
    model, data = method.make(base.set_params(**shared), task.mdp, expert, task.unlabelled)
    model.set_params(**{k: v for k, v in hyperparameters.items() if k not in shared})
    return model.fit(task.mdp, *data)


def choose_hyperparameters(method: Method, task: Task) -> tuple[Hyperparameters, str]:
    """Choose hyperparameters; return them and how they were chosen."""
    every, n = grid(method), len(task.expert)
    if len(every) == 1:
        return every[0], "nothing to choose"
    if n < FEWEST:
        return every[0], f"default: {n} experts are too few to choose by"
    parts = make_splits(task.mdp, task.expert, groups=np.arange(n) % PARTS)
    logs = [_held_out(method, knobs, task, parts) for knobs in every]
    return every[int(np.argmax(np.nan_to_num(logs, nan=-np.inf)))], "held-out experts"


def _held_out(method: Method, hyperparameters: Hyperparameters, task: Task, parts: Any) -> float:
    """Return Σ log-probability of every fold of the experts under fits to the other folds."""
    return float(
        sum(fit_method(method, hyperparameters, task, train)._log_likelihood(test).sum() for train, test in parts)
    )


def format_hyperparameters(hyperparameters: Hyperparameters) -> str:
    """Format hyperparameters for tables."""
    return ", ".join(f"{name}={value:g}" for name, value in hyperparameters.items())
