"""The public names and where they are; they are imported when first used."""

from messirl.inference.group_breakdown import Breakdown as Breakdown, Group as Group, by_group as by_group
from messirl.inference.prediction import expected_flows as expected_flows, next_state_accuracy as next_state_accuracy
from messirl.inference.standard_errors import (
    EstimationTable as EstimationTable,
    FewClustersWarning as FewClustersWarning,
    LikelihoodRatio as LikelihoodRatio,
    estimation_table as estimation_table,
    likelihood_ratio_test as likelihood_ratio_test,
)
from messirl.inference.weight_ratios import WeightRatio as WeightRatio, weight_ratio as weight_ratio
