"""Public names and their modules, which are imported when first used."""

from messirl import plot as plot
from messirl.data import MDP as MDP, Trajectories as Trajectories, feature_counts as feature_counts
from messirl.estimators import (
    MESSI as MESSI,
    EMMaxEnt as EMMaxEnt,
    IdentifiabilityWarning as IdentifiabilityWarning,
    MaxEntIRL as MaxEntIRL,
)
from messirl.inference import (
    estimation_table as estimation_table,
    expected_flows as expected_flows,
    likelihood_ratio_test as likelihood_ratio_test,
    next_state_accuracy as next_state_accuracy,
    weight_ratio as weight_ratio,
)
from messirl.io import read_problem as read_problem
from messirl.loading import load as load
from messirl.planning import (
    NoFiniteValue as NoFiniteValue,
    log_likelihood as log_likelihood,
    optimal_policy as optimal_policy,
    optimal_values as optimal_values,
    sample as sample,
    soft_policy as soft_policy,
    soft_values as soft_values,
    state_visitation as state_visitation,
)
from messirl.selection import MESSICV as MESSICV
from messirl.selection.diagnostics import diagnose as diagnose

__version__: str
