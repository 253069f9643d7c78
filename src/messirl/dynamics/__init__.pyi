"""Public names and their modules, which are imported when first used."""

from messirl.dynamics.estimated import EstimatedMDP as EstimatedMDP, Evidence as Evidence, estimate_mdp as estimate_mdp
from messirl.dynamics.fitted_messi import FittedMESSI as FittedMESSI
from messirl.dynamics.posterior_refits import PosteriorSpread as PosteriorSpread, posterior_spread as posterior_spread
