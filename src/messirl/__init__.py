"""messirl: learning what an expert wants from few expert trajectories and many of unknown quality.

    from messirl import MDP, Trajectories, MESSI
    from messirl.similarity import RBF

    mdp = MDP(transitions, features, discount=0.95)
    expert, unlabelled = Trajectories.from_lists(good), Trajectories.from_lists(others)
    model = MESSI(RBF(sigma=5.0), lambda0=0.05).fit(mdp, expert, unlabelled)

Names are imported when first used, so that `import messirl` is quick.
"""

from __future__ import annotations

from messirl._lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    __version__: str
    from messirl import plot
    from messirl.diagnostics import diagnose
    from messirl.estimators import MESSI, EMMaxEnt, IdentifiabilityWarning, MaxEntIRL
    from messirl.evaluation import estimation_table, expected_flows, likelihood_ratio_test, next_state_accuracy
    from messirl.io import read_problem
    from messirl.loading import load
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
    from messirl.selection import MESSICV

_NAMES = {
    "messirl.diagnostics": ["diagnose"],
    "messirl.estimators": ["EMMaxEnt", "IdentifiabilityWarning", "MESSI", "MaxEntIRL"],
    "messirl.evaluation": ["estimation_table", "expected_flows", "likelihood_ratio_test", "next_state_accuracy"],
    "messirl.io": ["read_problem"],
    "messirl.loading": ["load"],
    "messirl.planning": [
        "NoFiniteValue",
        "log_likelihood",
        "optimal_policy",
        "optimal_values",
        "sample",
        "soft_policy",
        "soft_values",
        "state_visitation",
    ],
    "messirl.plot": ["plot"],
    "messirl.problem": ["MDP", "Trajectories", "feature_counts"],
    "messirl.selection": ["MESSICV"],
}
__all__ = [
    "MDP",
    "MESSI",
    "MESSICV",
    "EMMaxEnt",
    "IdentifiabilityWarning",
    "MaxEntIRL",
    "NoFiniteValue",
    "Trajectories",
    "diagnose",
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
    "read_problem",
    "sample",
    "soft_policy",
    "soft_values",
    "state_visitation",
]
_get, __dir__ = lazily(__name__, _NAMES)


def __getattr__(name: str) -> Any:
    if name != "__version__":
        return _get(name)
    from importlib import metadata

    try:
        return metadata.version("messirl")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
