"""The learning methods, one a file: wiring only. Beside them, how sure a fit is and what it predicts."""

from messirl.estimators.base import IdentifiabilityWarning
from messirl.estimators.em import EMMaxEnt
from messirl.estimators.inference import EstimationTable, LikelihoodRatio, estimation_table, likelihood_ratio_test
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.estimators.persistence import load
from messirl.estimators.prediction import expected_flows, next_state_accuracy

__all__ = [
    "MESSI",
    "EMMaxEnt",
    "EstimationTable",
    "IdentifiabilityWarning",
    "LikelihoodRatio",
    "MaxEntIRL",
    "estimation_table",
    "expected_flows",
    "likelihood_ratio_test",
    "load",
    "next_state_accuracy",
]
