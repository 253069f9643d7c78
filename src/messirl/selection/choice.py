"""The choice among validated candidates, and what it says of the unlabelled trajectories.

It is made here, in one place, for `MESSICV`, `messirl select`, `diagnose` and `messirl diagnose`.

Few experts cannot tell candidates apart: the best of many scores on a handful of trajectories is luck, and choosing it
loses more than methods differ. So there is a fixed default, the same for all data: light pooling with a light ridge or,
without unlabelled trajectories, the light ridge alone. What another candidate gains over it on held-out units is
believed as far as it is certain: with standard error e on n units, a gain g counts

    g · τ² / (τ² + e² (n − 1)/(n − 3)),

about its posterior mean if gains were normal around zero with a standard deviation τ, 3 % of the default's own score.
The candidate whose gain counts most is chosen.

Whether the unlabelled trajectories are used at all is decided by whether they lean towards what the experts do
(selection/likeness.py), unless held-out experts clearly say otherwise. Where they lean, the experts alone are no
candidates unless the 95 % interval of their gain over the default lies above zero. Where nothing shows that they lean,
the experts alone are taken, in the same way, unless the 99.9 % interval of what using the others gains over that does:
some thirty ways are compared.

The verdict on the unlabelled trajectories is what using them gains for held-out experts over the best that the experts
alone give, chosen in the same way: they *help* where the 95 % interval of the gain lies above zero, *hurt* where it
lies below, and else *do not matter*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from messirl.estimators.methods import LIGHT, LIGHT_RIDGE
from messirl.evaluation.paired import NOTHING, Gain
from messirl.selection.candidates import Candidate
from messirl.selection.likeness import Likeness
from messirl.selection.validation import Validation

BELIEF = 0.03  # how much gains differ from zero, as a share of the score they are gained on
CLEAR = 0.999  # confidence with which using strangers must be better than the experts alone
FEWEST = 4  # units below which nothing is chosen
MOST = 100_000  # more units than this are not asked for


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    index : int
        Its place among the candidates.
    candidate : Candidate
        The method and its knobs.
    reason : str
        Why it was chosen, in a sentence.
    default : int
        The place of the fixed default among the candidates.
    rival : int or None
        The candidate that did best, if that is not the choice: its gain is too uncertain.
    needed : int or None
        How many held-out units would make it the choice, if it is as much better as it seems.
    """

    index: int
    candidate: Candidate
    reason: str
    default: int
    rival: int | None = None
    needed: int | None = None


def default_among(every: Sequence[Candidate], *, unlabelled: bool) -> int:
    """The place of the fixed default: light pooling with a light ridge, or the ridge alone."""
    alone = Candidate("RidgeStd", LIGHT_RIDGE)
    return list(every).index(Candidate("LightPoolingStd", LIGHT_RIDGE, weight=LIGHT) if unlabelled else alone)


def untested(every: Sequence[Candidate], why: str, *, unlabelled: bool) -> Choice:
    """The fixed default, where nothing can be held out."""
    index = default_among(every, unlabelled=unlabelled)
    return Choice(index, every[index], f"{why}. So nothing can be chosen, and the fixed default is taken", index)


def choose(validation: Validation, like: Likeness | None = None, *, unlabelled: bool = True) -> Choice:
    """The candidate to learn with.

    like : how much the unlabelled trajectories look like the expert's, where that is known
    unlabelled : whether it may use the unlabelled trajectories
    """
    every, n = validation.candidates, validation.steps.size
    if n < FEWEST:
        few = f"{n} held-out expert trajectories, or groups, are too few to choose by"
        return untested(every, few, unlabelled=unlabelled)
    leaning = like.leaning if unlabelled and like is not None else None
    if leaning is False:
        return _without(validation, "nothing shows that the unlabelled trajectories lean towards what the experts do")
    default = default_among(every, unlabelled=unlabelled)
    found = {i: validation.gain(i, default) for i, c in enumerate(every) if unlabelled or not c.unlabelled}
    if leaning:  # to do without the others, it must be clear that they do harm
        found = {i: gain for i, gain in found.items() if every[i].unlabelled or (gain.clear and gain.mean > 0.0)}
    some, gains, tau = list(found), list(found.values()), BELIEF * abs(float(validation.scores[default]))
    counted = [believed(gain, tau, n) for gain in gains]
    place, best = int(np.argmax(counted)), int(np.argmax([_or_worst(gain.mean) for gain in gains]))
    if not counted[place] > NOTHING:
        return Choice(default, every[default], "the fixed default, and nothing does better", default)
    index, told = some[place], f"better than the fixed default, {every[default]}: {gains[place]}"
    if best == place:
        return Choice(index, every[index], told, default)
    rival = some[best]
    told += f"; {every[rival]} does best, but less certainly: {gains[best]}"
    return Choice(index, every[index], told, default, rival, units_needed(gains, best, tau, n))


def _without(validation: Validation, why: str) -> Choice:
    """The experts alone, unless using the others is clearly better."""
    every, alone = validation.candidates, choose(validation, unlabelled=False)
    default = default_among(every, unlabelled=True)
    gains = {i: validation.gain(i, alone.index, CLEAR) for i, c in enumerate(every) if c.unlabelled}
    clear = {i: gain for i, gain in gains.items() if gain.clear and gain.mean > 0.0}
    if clear:
        index = max(clear, key=lambda i: np.inf if np.isnan(clear[i].low) else clear[i].low)
        told = f"{why}, but using them is clearly better than the experts alone, {every[alone.index]}"
        return Choice(index, every[index], f"{told}: {clear[index]}", default)
    return Choice(alone.index, alone.candidate, f"{why}: the experts alone", default)


def believed(gain: Gain, tau: float, n: int) -> float:
    """What a gain on n units counts: the less, the less certain it is. τ is how much gains differ from zero."""
    if not np.isfinite([gain.mean, tau]).all():
        return _or_worst(gain.mean)
    doubt = gain.error**2 * (n - 1) / (n - 3)  # the variance of Student's t, for the error is not known either
    return gain.mean * tau**2 / (tau**2 + doubt) if tau > 0.0 else 0.0


def units_needed(gains: Sequence[Gain], rival: int, tau: float, n: int) -> int | None:
    """How many units, instead of n, would make the rival's gain count most, if all gains stay as they are."""
    for more in np.unique(np.geomspace(n + 1, MOST, 400).astype(int)):
        surer = [replace(gain, error=gain.error * np.sqrt(n / more)) for gain in gains]
        counted = [believed(gain, tau, int(more)) for gain in surer]
        if counted[rival] >= max(counted):
            return int(more)
    return None


def _or_worst(gain: float) -> float:
    """A gain, or the worst one where both rule out what was seen."""
    return -np.inf if np.isnan(gain) else gain


@dataclass(frozen=True)
class Use:
    """What the unlabelled trajectories are worth to held-out experts.

    Attributes
    ----------
    verdict : {"help", "do not matter", "hurt"}
        What they do.
    gain : Gain
        What using them gains over the experts alone, in nats per step, with its 95 % interval.
    using, alone : Candidate
        The two that are compared.
    """

    verdict: str
    gain: Gain
    using: Candidate
    alone: Candidate

    @property
    def sentence(self) -> str:
        """The same in one sentence."""
        words = {"help": "helps", "do not matter": "makes no clear difference", "hurt": "hurts"}[self.verdict]
        return (
            f"using the unlabelled trajectories ({self.using}) {words}: held-out experts are predicted "
            f"{self.gain} against the experts alone ({self.alone})"
        )

    def summary(self) -> dict[str, Any]:
        """What files hold of it."""
        told = {"using": str(self.using), "alone": str(self.alone)}
        return {"gain": self.gain.mean, "low": self.gain.low, "high": self.gain.high, **told}


def worth(validation: Validation, choice: Choice) -> Use:
    """What the unlabelled trajectories are worth under what was chosen, or under the default if that does not use them.

    The experts alone are those that the same rule would choose without the others.
    """
    alone = choose(validation, unlabelled=False).index
    using = choice.index if choice.candidate.unlabelled else choice.default
    gain = validation.gain(using, alone)
    verdict = "do not matter" if not gain.clear else "help" if gain.mean > 0.0 else "hurt"
    every = validation.candidates
    return Use(verdict, gain, every[using], every[alone])
