"""How good and how sure a fit is: standard errors, predictions, distances to a truth, comparison with baselines."""

from messirl.evaluation.inference import EstimationTable, LikelihoodRatio, estimation_table, likelihood_ratio_test
from messirl.evaluation.prediction import expected_flows, next_state_accuracy

__all__ = [
    "EstimationTable",
    "LikelihoodRatio",
    "estimation_table",
    "expected_flows",
    "likelihood_ratio_test",
    "next_state_accuracy",
]
