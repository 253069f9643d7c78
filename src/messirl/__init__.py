"""messirl: learning what an expert wants from few expert trajectories and many of unknown quality.

    from messirl import MDP, Trajectories, MESSI
    from messirl.similarity import RBF

    mdp = MDP(transitions, features, discount=0.95)
    expert, unlabelled = Trajectories.from_lists(good), Trajectories.from_lists(others)
    model = MESSI(RBF(sigma=5.0), lambda0=0.05).fit(mdp, expert, unlabelled)

Names are imported when first used, so that `import messirl` is quick.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    __version__: str
    from messirl import plot
    from messirl.estimators import (
        MESSI,
        EMMaxEnt,
        IdentifiabilityWarning,
        MaxEntIRL,
        estimation_table,
        expected_flows,
        likelihood_ratio_test,
        load,
        next_state_accuracy,
    )
    from messirl.planning import (
        NoFiniteValue,
        log_likelihood,
        optimal_policy,
        optimal_values,
        sample,
        soft_policy,
        soft_values,
        state_visitation,
    )
    from messirl.problem import MDP, Trajectories, feature_counts

_HOME = {
    "MDP": "problem",
    "Trajectories": "problem",
    "feature_counts": "problem",
    "log_likelihood": "planning",
    "NoFiniteValue": "planning",
    "optimal_policy": "planning",
    "optimal_values": "planning",
    "sample": "planning",
    "soft_policy": "planning",
    "soft_values": "planning",
    "state_visitation": "planning",
    "EMMaxEnt": "estimators",
    "IdentifiabilityWarning": "estimators",
    "MaxEntIRL": "estimators",
    "MESSI": "estimators",
    "estimation_table": "estimators",
    "expected_flows": "estimators",
    "likelihood_ratio_test": "estimators",
    "load": "estimators",
    "next_state_accuracy": "estimators",
}

__all__ = [
    "MDP",
    "MESSI",
    "EMMaxEnt",
    "IdentifiabilityWarning",
    "MaxEntIRL",
    "NoFiniteValue",
    "Trajectories",
    "estimation_table",
    "expected_flows",
    "feature_counts",
    "likelihood_ratio_test",
    "load",
    "log_likelihood",
    "next_state_accuracy",
    "optimal_policy",
    "optimal_values",
    "plot",
    "sample",
    "soft_policy",
    "soft_values",
    "state_visitation",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"messirl.{_HOME[name]}"), name)
    if name == "plot":
        return importlib.import_module("messirl.plot")
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("messirl")
        except metadata.PackageNotFoundError:  # run from a source tree that is not installed
            return "unknown"
    raise AttributeError(f"module 'messirl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
