"""Model selection by cross-validation, and uncertainty of fits by resampling."""

from messirl.selection.adapter import Adapted
from messirl.selection.candidates import LAMBDAS, Bench, Candidate, Fit, candidates
from messirl.selection.choice import Choice, Use, choose, worth
from messirl.selection.estimator import MESSICV, NestedScore, nested_score
from messirl.selection.groups import use_by_group
from messirl.selection.likeness import Lean, Likeness, likeness
from messirl.selection.uncertainty import Bootstrap, bootstrap, stability
from messirl.selection.validation import NothingHeldOut, Validation, cross_validate, splits

__all__ = [
    "LAMBDAS",
    "MESSICV",
    "Adapted",
    "Bench",
    "Bootstrap",
    "Candidate",
    "Choice",
    "Fit",
    "Lean",
    "Likeness",
    "NestedScore",
    "NothingHeldOut",
    "Use",
    "Validation",
    "bootstrap",
    "candidates",
    "choose",
    "cross_validate",
    "likeness",
    "nested_score",
    "splits",
    "stability",
    "use_by_group",
    "worth",
]
