"""What an evaluation found: all that its page, the terminal and evaluate.json show."""

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
    """How well a saved model predicts trajectories; `summary()` is what evaluate.json holds.

    Attributes
    ----------
    model, folder : str
        What the model and the problem are called.
    test : str or None
        The filter that chose the trajectories; None if all were taken.
    trajectories, steps : int
        How many trajectories and steps were scored.
    score : float
        The log-probability per step under the model.
    uniform : float
        The same under the policy that takes every allowed action with the same probability.
    next_state_accuracy : float
        How often the next state was the one that the model considers most likely.
    differences : list of str
        In what the problem differs from the one that the model was fitted to.
    gain : Gain
        What the model gains over that policy, paired by trajectory.
    each : array (n,)
        The same of every single trajectory that makes a step.
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
        """What evaluate.json holds, and `messirl evaluate --json` prints."""
        first = {name: value for name, value in asdict(self).items() if name != "each"}
        last = {name: first.pop(name) for name in ("uniform", "gain", "next_state_accuracy", "differences", "command")}
        words = {"in_words": self.in_words, "version": __version__}
        return {**first, "log_likelihood": self.score * self.steps, **last, **words}
