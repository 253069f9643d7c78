"""Registry of the similarities that have a name, in Python and in commands.

To add one, write a class that derives from `Similarity` and an entry here. Classes are imported on demand: the command
line reads this table before anything else, and must start quickly.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import messirl.similarity  # its classes, by their names
from messirl._parameters import default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from messirl.similarity.base import Similarity


@dataclass(frozen=True)
class NamedSimilarity:
    """A similarity with a name.

    name : its name; kind : the name of its class
    label : its name and formula on pages
    arguments : arguments that differ from the defaults of the class
    reads : what it compares besides feature counts, in words; empty: feature counts
    width : its parameter that says how fast it falls with the distance, if any
    coordinates : whether it needs coordinates of the states
    """

    name: str
    kind: str
    label: str
    arguments: dict[str, Any] = field(default_factory=dict, hash=False)
    reads: str = ""
    width: str | None = None
    coordinates: bool = False

    def make(self, **arguments: Any) -> Similarity:
        """Return the similarity, with these arguments instead of the usual ones."""
        made: Similarity = getattr(messirl.similarity, self.kind)(**{**self.arguments, **arguments})
        return made

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters."""
        from inspect import signature

        return list(signature(getattr(messirl.similarity, self.kind)).parameters)


STANDARDISED = {"standardise": True}
SIMILARITIES = {
    one.name: one
    for one in (
        NamedSimilarity("rbf", "RBF", "RBF: exp(−‖Δ‖²/2σ)", {"sigma": default("sigma"), **STANDARDISED}, width="sigma"),
        NamedSimilarity("exponential", "Exponential", "exponential: exp(−‖Δ‖/σ)", STANDARDISED, width="scale"),
        NamedSimilarity("complete", "CompleteGraph", "complete graph: 1"),
        NamedSimilarity("neighbours", "NearestNeighbours", "nearest neighbours"),
        NamedSimilarity("edit", "EditDistance", "edit distance", reads="in order", width="scale"),
        NamedSimilarity(
            "dtw", "DynamicTimeWarping", "dynamic time warping", reads="by x and y", width="scale", coordinates=True
        ),
        NamedSimilarity("visited", "VisitedStates", "visited states", reads="in any order"),
    )
}
