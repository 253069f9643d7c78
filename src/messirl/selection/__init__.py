"""Model selection by cross-validation, and uncertainty of fits by resampling."""

from messirl.selection.candidates import Candidate
from messirl.selection.cross_validation import NothingHeldOut, Validation, cross_validate
from messirl.selection.group_value import gain_by_group
from messirl.selection.messicv import MESSICV, NestedScore, nested_score
from messirl.selection.resampling import bootstrap
from messirl.selection.sklearn_adapter import Adapted

__all__ = [
    "MESSICV",
    "Adapted",
    "Candidate",
    "NestedScore",
    "NothingHeldOut",
    "Validation",
    "bootstrap",
    "cross_validate",
    "gain_by_group",
    "nested_score",
]
