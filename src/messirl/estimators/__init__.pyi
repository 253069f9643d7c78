"""The public names and where they are; they are imported when first used."""

from messirl.estimators._convergence_report import IdentifiabilityWarning as IdentifiabilityWarning
from messirl.estimators.abbeel_ng import AbbeelNg as AbbeelNg
from messirl.estimators.bayesian import BayesianIRL as BayesianIRL
from messirl.estimators.cloning import BehaviourCloning as BehaviourCloning
from messirl.estimators.demodice import DemoDICE as DemoDICE
from messirl.estimators.dwbc import DWBC as DWBC
from messirl.estimators.em import EMMaxEnt as EMMaxEnt
from messirl.estimators.iswbc import ISWBC as ISWBC
from messirl.estimators.lpal import LPAL as LPAL
from messirl.estimators.maxent import MaxEntIRL as MaxEntIRL
from messirl.estimators.messi import MESSI as MESSI
from messirl.estimators.mixture import MixtureMESSI as MixtureMESSI
from messirl.estimators.multi_expert import SeveralExperts as SeveralExperts
from messirl.estimators.mwal import MWAL as MWAL
from messirl.estimators.ng_russell import NgRussell as NgRussell
from messirl.estimators.own_policy import OwnPolicyMESSI as OwnPolicyMESSI
from messirl.estimators.relative_entropy import RelativeEntropyIRL as RelativeEntropyIRL
from messirl.estimators.ssirl import SSIRL as SSIRL
from messirl.estimators.uniform import UniformPolicy as UniformPolicy
