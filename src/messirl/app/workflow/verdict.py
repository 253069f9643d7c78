"""The comparison of methods on held-out trajectories: the best one, with intervals and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from messirl._text import join_names, quote_name
from messirl._types import Floats, Ints
from messirl.app.workflow.ranking import ranked
from messirl.inference.paired_gain import Gain, paired_gain

NAMED = 3  # methods that a sentence names


@dataclass(frozen=True)
class Verdict:
    """The method that predicts the held-out trajectories best.

    Attributes
    ----------
    best : str
        The method with the highest score, in words.
    alone : str
        The method that learns from the experts only, in words.
    gain : Gain or None
        What the best gains over `alone`, paired by trajectory; None if that is the best itself.
    alike : list of str
        The methods without a clear difference from the best: the 95 % interval of the difference includes zero.
    methods, trajectories : int
        How many methods were compared, and on how many held-out trajectories.
    without : dict from str to Gain
        If the first method uses unlabelled trajectories, what it gains over each method that learns from the experts
        only.
    """

    best: str
    alone: str
    gain: Gain | None
    alike: list[str]
    methods: int
    trajectories: int
    without: dict[str, Gain] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.trajectories < 2:
            return f"{self.best} predicts the one held-out trajectory best; one trajectory allows no interval."
        said = f"{self.best} predicts the {self.trajectories:,} held-out trajectories best"
        if self.gain is not None and np.isinf(self.gain.mean):
            said += f"; {self.alone} on the experts only gives some of them zero probability"
        elif self.gain is not None:
            said += f", {self.gain} over {self.alone} on the experts only"
        if not self.alike:
            return f"{said}; every other method is clearly behind."
        if len(self.alike) > NAMED:
            return f"{said}; no clear difference from {len(self.alike)} of the {self.methods - 1} other methods."
        return f"{said}; no clear difference from {join_names([quote_name(name) for name in self.alike])}."

    def summary(self) -> dict[str, Any]:
        """Return the entry of fit.json."""
        return {**asdict(self), "sentence": self.sentence}


def compare_scores(
    names: Sequence[str],
    logs: Sequence[Floats],
    steps: Ints,
    alone: int,
    without: Sequence[int] = (),
    cluster: Sequence[str] | None = None,
) -> tuple[Verdict, list[Gain]]:
    """Return the verdict, and what each method gains over the one that learns from the experts only.

    names, logs : the methods, and the log-probabilities (n,) that each gives the held-out trajectories
    steps : (n,) steps of the trajectories
    alone : index of the method that learns from the experts only
    without : indices of the methods without unlabelled trajectories that the first one, which uses them, is compared to
    cluster : (n,) the individual of each trajectory, where those of one individual may be dependent
    """
    best = int(ranked(np.maximum([own.sum() for own in logs], -np.finfo(np.float64).max))[0])
    gains = [paired_gain(own, logs[alone], steps, cluster=cluster) for own in logs]
    behind = [paired_gain(logs[best], own, steps, cluster=cluster) for own in logs]
    alike = [name for i, (name, by) in enumerate(zip(names, behind, strict=True)) if i != best and not by.significant]
    gain = None if best == alone else gains[best]
    apart = {names[i]: paired_gain(logs[0], logs[i], steps, cluster=cluster) for i in without}
    return Verdict(names[best], names[alone], gain, alike, len(names), int((steps > 0).sum()), apart), gains
