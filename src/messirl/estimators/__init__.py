"""The learning methods, one per file: wiring only."""

from __future__ import annotations

from messirl._lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from messirl.estimators.em import EMMaxEnt
    from messirl.estimators.maxent import MaxEntIRL
    from messirl.estimators.messi import MESSI
    from messirl.estimators.standing import IdentifiabilityWarning

_NAMES = {
    "messirl.estimators.em": ["EMMaxEnt"],
    "messirl.estimators.maxent": ["MaxEntIRL"],
    "messirl.estimators.messi": ["MESSI"],
    "messirl.estimators.standing": ["IdentifiabilityWarning"],
}
__all__ = ["MESSI", "EMMaxEnt", "IdentifiabilityWarning", "MaxEntIRL"]
__getattr__, __dir__ = lazily(__name__, _NAMES)
