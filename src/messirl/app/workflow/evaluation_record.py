"""The record of an evaluation: everything that its page, the terminal and evaluate.json show."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl import __version__
from messirl._types import Floats
from messirl.app.workflow import narrative

if TYPE_CHECKING:
    from messirl.inference.paired_gain import Gain


@dataclass(frozen=True)
class EvaluationRecord:
    """The predictions of a saved model on trajectories; `summary()` is the content of evaluate.json.

    Attributes
    ----------
    model, folder : str
        Their names.
    test : str or None
        The filter that selected the trajectories; None if all were used.
    trajectories, steps : int
        The numbers of trajectories and steps scored.
    score : float
        The log-probability per step under the model.
    uniform : float
        The log-probability per step under the uniform policy over allowed actions.
    next_state_accuracy : float
        The share of steps into the state that the model considers most likely.
    differences : list of str
        The differences from the problem that the model was fitted to.
    gain : Gain
        The gain over the uniform policy, paired by trajectory.
    each : array (n,)
        The gain per step on every single trajectory that makes a step.
    command : str
        The command line that produces the record again.
    """

    model: str
    folder: str
    test: str | None
    trajectories: int
    steps: int
    score: float
    uniform: float
    next_state_accuracy: float
    differences: list[str]
    gain: Gain
    each: Floats = field(default_factory=lambda: np.zeros(0), compare=False, repr=False)
    command: str = ""

    @property
    def in_words(self) -> list[str]:
        """The verdict, in sentences."""
        return narrative.evaluation_sentences(self)

    def summary(self) -> dict[str, Any]:
        """Return the content of evaluate.json, which the command prints."""
        first = {name: value for name, value in asdict(self).items() if name != "each"}
        last = {name: first.pop(name) for name in ("uniform", "gain", "next_state_accuracy", "differences", "command")}
        words = {"in_words": self.in_words, "version": __version__}
        return {**first, "log_likelihood": self.score * self.steps, **last, **words}
