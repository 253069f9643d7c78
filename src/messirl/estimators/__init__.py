"""The learning methods, one per file: wiring only."""

from messirl.estimators.base import IdentifiabilityWarning
from messirl.estimators.em import EMMaxEnt
from messirl.estimators.maxent import MaxEntIRL
from messirl.estimators.messi import MESSI
from messirl.estimators.persistence import load

__all__ = ["MESSI", "EMMaxEnt", "IdentifiabilityWarning", "MaxEntIRL", "load"]
