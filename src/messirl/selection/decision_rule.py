"""Choice among validated candidates, and the verdict on the unlabelled trajectories.

`MESSICV`, `messirl select`, `diagnose` and `messirl diagnose` share this rule.

Few experts cannot distinguish candidates: the best of many scores on a handful of trajectories is luck, and choosing it
loses more than methods differ. There is therefore a fixed default, the same for all data: weighted pooling with a light
ridge or, without unlabelled trajectories, the light ridge on the experts only. Another candidate replaces it only if it
is significantly better at 99.9 %: the interval of the gain, paired by held-out unit, lies above zero. Of several such
candidates, the one whose interval has the highest lower end is taken.

Leaving out the unlabelled trajectories takes less evidence. If they hurt (below), or nothing shows that they lean
towards the experts (selection/expert_agreement.py), the choice among fits to the experts only replaces the default.

The verdict on the unlabelled trajectories is the gain from using them, for held-out experts, over the best fit to the
experts only, chosen by the same rule. They *help* if the 95 % interval of the gain lies above zero and *hurt* if it
lies below. They have *no effect* if it includes zero and lies within ±0.01 nats per step; else it is *unclear*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from messirl._repr_html import card
from messirl.estimators.registry import DEFAULT_POOLING_RIDGE, DEFAULT_POOLING_WEIGHT
from messirl.inference.paired_gain import MARGIN, Gain
from messirl.selection.candidates import Candidate
from messirl.selection.cross_validation import Validation
from messirl.selection.expert_agreement import ExpertAgreement

SWITCH_CONFIDENCE = 0.999  # confidence at which a candidate must be better than the default: some forty are compared
STRANGERS = "nothing shows that the unlabelled trajectories lean towards the experts"
FEWEST = 4  # with fewer units nothing is chosen; a single divided trajectory gives three
MOST = 100_000  # the largest number of units that is ever suggested


@dataclass(frozen=True)
class Choice:
    """The chosen candidate and the reason.

    Attributes
    ----------
    index : int
        Its place among the candidates.
    candidate : Candidate
        The method and its knobs.
    reason : str
        The reason for the choice, in a sentence.
    default : int
        The place of the fixed default among the candidates.
    rival : int or None
        The best other candidate: the next one, or one with a higher score that is not significantly better.
    needed : int or None
        The number of held-out units that would make the rival significantly better at the observed difference.
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


def default_index(every: Sequence[Candidate], *, unlabelled: bool) -> int:
    """Return the index of the fixed default: weighted pooling with a light ridge, or the ridge on the experts only."""
    alone = Candidate("RidgeStd", DEFAULT_POOLING_RIDGE)
    return list(every).index(
        Candidate("LightPoolingStd", DEFAULT_POOLING_RIDGE, weight=DEFAULT_POOLING_WEIGHT) if unlabelled else alone
    )


def choose_default(every: Sequence[Candidate], why: str, *, unlabelled: bool) -> Choice:
    """Return the fixed default, for when nothing can be held out."""
    index = default_index(every, unlabelled=unlabelled)
    return Choice(index, every[index], f"{why}, so the fixed default is used", index)


def choose_candidate(validation: Validation, like: ExpertAgreement | None = None, *, unlabelled: bool = True) -> Choice:
    """Choose the candidate to fit.

    like : agreement of the unlabelled trajectories with the expert policy, if known
    unlabelled : whether the choice may use the unlabelled trajectories
    """
    every, n = validation.candidates, validation.steps.size
    some = [i for i, c in enumerate(every) if unlabelled or not c.unlabelled]
    default = default_index(every, unlabelled=unlabelled)
    if n < FEWEST:
        few = f"{n} held-out expert trajectories, groups or parts are too few to choose by"
        if unlabelled and like is not None and like.is_significant is False:
            return replace(choose_default(every, f"{few}, and {STRANGERS}", unlabelled=False), default=default)
        return choose_default(every, few, unlabelled=unlabelled)
    base, why = default, "the fixed default"
    if unlabelled:
        alone = choose_candidate(validation, unlabelled=False).index
        harm = validation.gain(alone, default)
        if harm.significant and harm.mean > 0.0:
            base, why = alone, f"the unlabelled trajectories hurt: without them {harm} over the fixed default"
        elif like is not None and like.is_significant is False:
            base, why = alone, f"{STRANGERS}, so only the experts are used"
    gains = {i: validation.gain(i, base, SWITCH_CONFIDENCE) for i in some if i != base}
    clear = {i: gain for i, gain in gains.items() if gain.significant and gain.mean > 0.0}
    best = max(gains, key=lambda i: np.nan_to_num(gains[i].mean, nan=-np.inf))
    if clear:
        index = max(clear, key=lambda i: np.inf if np.isnan(clear[i].low) else clear[i].low)
        than = "the fixed default" if base == default else "the experts only"
        told = f"significantly better than {than} at {100 * SWITCH_CONFIDENCE:g} %, {every[base]}: {clear[index]}"
        return Choice(index, every[index], told, default, best if best != index else None)
    if not gains[best].mean > 0.0:
        return Choice(base, every[base], f"{why}, and no candidate does better", default, best)
    told = f"{why}; {every[best]} does best, but not significantly at {100 * SWITCH_CONFIDENCE:g} %: {gains[best]}"
    return Choice(base, every[base], told, default, best, units_needed(gains[best], n))


def units_needed(gain: Gain, n: int) -> int | None:
    """Return how many units, instead of n, would make the interval exclude zero if the difference stayed the same."""
    if not (np.isfinite(gain.low) and gain.mean > 0.0):
        return None
    units = np.unique(np.geomspace(n + 1, MOST, 2000).astype(int))
    reach = (
        student.ppf(0.5 + SWITCH_CONFIDENCE / 2, units - 1)
        / student.ppf(0.5 + SWITCH_CONFIDENCE / 2, n - 1)
        * np.sqrt(n / units)
    )
    enough = reach * (gain.mean - gain.low) < gain.mean
    return int(units[np.argmax(enough)]) if enough.any() else None


@dataclass(frozen=True)
class UnlabelledGain:
    """The gain from using the unlabelled trajectories, for held-out experts.

    Attributes
    ----------
    verdict : {"help", "hurt", "no effect", "unclear"}
        The effect of the unlabelled trajectories.
    gain : Gain
        The gain over the experts only, in nats per step, with its 95 % interval.
    using, alone : Candidate
        The two candidates that are compared.
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
        """The verdict in one sentence."""
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
        """Return the entry of result files."""
        told = {"using": str(self.using), "alone": str(self.alone)}
        return {"gain": self.gain.mean, "low": self.gain.low, "high": self.gain.high, **told}


def unlabelled_gain(validation: Validation, choice: Choice) -> UnlabelledGain:
    """Return the gain from the unlabelled trajectories with the chosen candidate, or the default if it uses none.

    The comparison is with the candidate that the same rule would choose among those for the experts only.
    """
    alone = choose_candidate(validation, unlabelled=False).index
    using = choice.index if choice.candidate.unlabelled else choice.default
    gain = validation.gain(using, alone)
    verdict = "no effect" if gain.negligible else "unclear"
    if gain.significant:
        verdict = "help" if gain.mean > 0.0 else "hurt"
    every = validation.candidates
    return UnlabelledGain(verdict, gain, every[using], every[alone])
