"""The public names and where they are; they are imported when first used."""

from messirl.estimators.em import EMMaxEnt as EMMaxEnt
from messirl.estimators.maxent import MaxEntIRL as MaxEntIRL
from messirl.estimators.messi import MESSI as MESSI
from messirl.estimators.standing import IdentifiabilityWarning as IdentifiabilityWarning
from messirl.estimators.uniform import UniformPolicy as UniformPolicy
