"""The learning methods, one per file: wiring only."""

from __future__ import annotations

from messirl._lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from messirl.estimators.em import EMMaxEnt
    from messirl.estimators.maxent import MaxEntIRL
    from messirl.estimators.messi import MESSI
    from messirl.estimators.standing import IdentifiabilityWarning

_HOMES = {
    "EMMaxEnt": "messirl.estimators.em",
    "IdentifiabilityWarning": "messirl.estimators.standing",
    "MESSI": "messirl.estimators.messi",
    "MaxEntIRL": "messirl.estimators.maxent",
}
__all__ = ["MESSI", "EMMaxEnt", "IdentifiabilityWarning", "MaxEntIRL"]
__getattr__, __dir__ = lazily(__name__, _HOMES)
