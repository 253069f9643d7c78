"""The public names and where they are; they are imported when first used."""

from messirl.inference.group_breakdown import by_group as by_group
from messirl.inference.metrics import (
    epic_distance as epic_distance,
    expected_value_difference as expected_value_difference,
    inverse_learning_error as inverse_learning_error,
    policy_kl as policy_kl,
    policy_value as policy_value,
)
from messirl.inference.prediction import expected_flows as expected_flows, next_state_accuracy as next_state_accuracy
from messirl.inference.standard_errors import (
    EstimationTable as EstimationTable,
    FewClustersWarning as FewClustersWarning,
    LikelihoodRatio as LikelihoodRatio,
    estimation_table as estimation_table,
    likelihood_ratio_test as likelihood_ratio_test,
)
from messirl.inference.weight_ratios import WeightRatio as WeightRatio, weight_ratio as weight_ratio
