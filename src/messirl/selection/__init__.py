"""Model selection by cross-validation, and uncertainty of fits by resampling."""

from messirl.selection.candidates import LAMBDAS, Bench, Candidate, Fit, candidates
from messirl.selection.cross_validation import NothingHeldOut, Validation, cross_validate, splits
from messirl.selection.decision_rule import Choice, Use, choose, worth
from messirl.selection.expert_agreement import Lean, Likeness, likeness
from messirl.selection.group_value import use_by_group
from messirl.selection.messicv import MESSICV, NestedScore, nested_score
from messirl.selection.resampling import Bootstrap, bootstrap, stability
from messirl.selection.sklearn_adapter import Adapted

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
