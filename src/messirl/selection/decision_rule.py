"""The choice among validated candidates, and what it says of the unlabelled trajectories.

It is made here, in one place, for `MESSICV`, `messirl select`, `diagnose` and `messirl diagnose`.

Few experts cannot tell candidates apart: the best of many scores on a handful of trajectories is luck, and choosing it
loses more than methods differ. So there is a fixed default, the same for all data: light pooling with a light ridge or,
without unlabelled trajectories, the light ridge alone. It is left only for what is significantly better at 99.9 %: the
interval of the gain, paired by held-out unit, lies above zero. Of several such, the one whose interval has the highest
lower end is taken.

To leave the unlabelled trajectories out takes less: where they hurt (below), or where nothing shows that they lean
towards what the experts do (selection/expert_agreement.py), what the experts alone give takes the place of the default.

The verdict on the unlabelled trajectories is what using them gains for held-out experts over the best that the experts
alone give, chosen in the same way: they *help* where the 95 % interval of the gain lies above zero and *hurt* where it
lies below. They have *no effect* where it includes zero and lies within ±0.01 nats per step; else it is *unclear*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from messirl._repr_html import card
from messirl.estimators.registry import LIGHT, LIGHT_RIDGE
from messirl.inference.paired_gain import MARGIN, Gain
from messirl.selection.candidates import Candidate
from messirl.selection.cross_validation import Validation
from messirl.selection.expert_agreement import Likeness

CLEAR = 0.999  # confidence with which a candidate must be better than the default: some forty are compared
STRANGERS = "nothing shows that the unlabelled trajectories lean towards the experts"
FEWEST = 4  # units below which nothing is chosen; a single trajectory that is divided makes three
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
        The candidate that did best after it, or before it without being clearly better.
    needed : int or None
        How many held-out units would make the rival clearly better, if it is as much better as it seems.
    """

    index: int
    candidate: Candidate
    reason: str
    default: int
    rival: int | None = None
    needed: int | None = None

    def _repr_html_(self) -> str:
        needed = {} if self.needed is None else {"held-out units needed": self.needed}
        return card("Choice", str(self.candidate), {"because": self.reason, **needed})


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
    some = [i for i, c in enumerate(every) if unlabelled or not c.unlabelled]
    default = default_among(every, unlabelled=unlabelled)
    if n < FEWEST:
        few = f"{n} held-out expert trajectories, groups or parts are too few to choose by"
        if unlabelled and like is not None and like.leaning is False:
            return replace(untested(every, f"{few}, and {STRANGERS}", unlabelled=False), default=default)
        return untested(every, few, unlabelled=unlabelled)
    base, why = default, "the fixed default"
    if unlabelled:
        alone = choose(validation, unlabelled=False).index
        harm = validation.gain(alone, default)
        if harm.clear and harm.mean > 0.0:
            base, why = alone, f"the unlabelled trajectories hurt: without them {harm} over the fixed default"
        elif like is not None and like.leaning is False:
            base, why = alone, f"{STRANGERS}, who are taken alone"
    gains = {i: validation.gain(i, base, CLEAR) for i in some if i != base}
    clear = {i: gain for i, gain in gains.items() if gain.clear and gain.mean > 0.0}
    best = max(gains, key=lambda i: np.nan_to_num(gains[i].mean, nan=-np.inf))
    if clear:
        index = max(clear, key=lambda i: np.inf if np.isnan(clear[i].low) else clear[i].low)
        than = "the fixed default" if base == default else "the experts alone"
        told = f"significantly better than {than} at {100 * CLEAR:g} %, {every[base]}: {clear[index]}"
        return Choice(index, every[index], told, default, best if best != index else None)
    if not gains[best].mean > 0.0:
        return Choice(base, every[base], f"{why}, and nothing does better", default, best)
    told = f"{why}; {every[best]} does best, but not significantly at {100 * CLEAR:g} %: {gains[best]}"
    return Choice(base, every[base], told, default, best, units_needed(gains[best], n))


def units_needed(gain: Gain, n: int) -> int | None:
    """How many units, instead of n, would leave zero out of a clear interval, if the difference stays as it is."""
    if not (np.isfinite(gain.low) and gain.mean > 0.0):
        return None
    units = np.unique(np.geomspace(n + 1, MOST, 2000).astype(int))
    reach = student.ppf(0.5 + CLEAR / 2, units - 1) / student.ppf(0.5 + CLEAR / 2, n - 1) * np.sqrt(n / units)
    enough = reach * (gain.mean - gain.low) < gain.mean
    return int(units[np.argmax(enough)]) if enough.any() else None


@dataclass(frozen=True)
class Use:
    """What the unlabelled trajectories are worth to held-out experts.

    Attributes
    ----------
    verdict : {"help", "hurt", "no effect", "unclear"}
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

    def _repr_html_(self) -> str:
        facts = {"gain": self.gain, "using": self.using, "alone": self.alone}
        return card("Use", f"verdict on the unlabelled trajectories: {self.verdict}", facts)

    @property
    def sentence(self) -> str:
        """The same in one sentence."""
        words = {
            "help": "helps",
            "hurt": "hurts",
            "no effect": f"has no effect larger than {MARGIN:g} nats per step",
            "unclear": "makes no clear difference",
        }
        return (
            f"using the unlabelled trajectories ({self.using}) {words[self.verdict]}: on held-out experts the gain "
            f"over experts only ({self.alone}) is {self.gain}"
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
    verdict = "no effect" if gain.negligible else "unclear"
    if gain.clear:
        verdict = "help" if gain.mean > 0.0 else "hurt"
    every = validation.candidates
    return Use(verdict, gain, every[using], every[alone])
