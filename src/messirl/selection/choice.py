"""The choice among validated candidates: never one that may lose, and one that uses the unlabelled set if it can help.

It is made here, in one place, for `MESSICV`, `messirl select`, `diagnose` and `messirl diagnose`.

Gains are those of held-out expert log-probability per step over λ0 = 0, paired by split, with their standard errors.
In this order:

1. *clearly better*: gain − se · SE > margin; of several, the one with the largest gain.
2. *like the expert*: the experts explain the unlabelled set as a whole better than chance does, and MESSI with those
   of them that look like the expert's does not lose: gain ≥ −margin; of several, the one with the largest gain.
3. *cannot be told apart*: |gain| + se · SE ≤ margin. The experts predict each other as well with the penalty as
   without it, so it acts only in states where they never go; and there the unlabelled trajectories are needed. The
   strongest such MESSI is taken, unless the experts explain the unlabelled set worse than chance does: then the penalty
   would spread bad behaviour.
4. λ0 = 0.

If λ0 = 0 itself predicts held-out experts worse than chance, at any scale of θ, gains over it mean nothing: then the
rule is `choose_best`.

The verdict on the unlabelled trajectories follows: they *help* if the choice uses them; if not, they *hurt* if the
experts explain them worse than chance does or if every MESSI clearly loses; else they *do not matter*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from messirl.estimators.methods import METHODS
from messirl.selection.candidates import Candidate
from messirl.selection.likeness import Likeness
from messirl.selection.validation import Validation

BELOW_CHANCE = 0.05  # nats per step that λ0 = 0 may be worse than chance; scaled towards zero, θ can be close to chance
VERDICTS = ("help", "do not matter", "hurt")
MARGIN = 0.005  # nats per step; half a percent in the probability of a move counts as no difference
CLEAR = 2.0  # standard errors a difference must exceed to count as clear


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    index : int
        Its place among the candidates of the validation.
    candidate : Candidate
        The method, λ0 and similarity.
    reason : str
        Why it was chosen, in a sentence.
    """

    index: int
    candidate: Candidate
    reason: str


def decide(validation: Validation, like: Likeness | None, *, aim: str, margin: float = MARGIN) -> Choice:
    """The candidate to imitate with or, with aim="prediction", to predict with."""
    return choose(validation, like, margin=margin) if aim == "imitation" else choose_best(validation)


def verdict(validation: Validation, choice: Choice, like: Likeness | None, *, margin: float = MARGIN) -> str:
    """Whether the unlabelled trajectories help, do not matter or hurt (see the top of this file)."""
    if METHODS[choice.candidate.method].unlabelled:
        return "help"
    gain, spread = validation.gains()
    ours = [i for i, c in enumerate(validation.candidates) if c.method == "MESSI"]
    losing = bool(ours) and all(gain[i] + CLEAR * spread[i] < -margin for i in ours)
    return "hurt" if losing or (like is not None and like.mean < -margin) else "do not matter"


def best_gain(validation: Validation) -> tuple[Candidate, float, float] | None:
    """The MESSI that held-out experts gain most from, its gain over λ0 = 0 in nats per step, and the standard error."""
    gain, spread = validation.gains()
    ours = [i for i, c in enumerate(validation.candidates) if c.method == "MESSI"]
    if not ours:
        return None
    i = max(ours, key=lambda i: gain[i])
    return validation.candidates[i], float(gain[i]), float(spread[i])


def choose(
    validation: Validation, like: Likeness | None = None, *, margin: float = MARGIN, se: float = CLEAR
) -> Choice:
    """The candidate to imitate with.

    margin : nats per step; half a percent in the probability of a move counts as no difference
    se : standard errors a difference must exceed to count as clear
    """
    every = validation.candidates
    if not validation.scores[0].mean() >= validation.chance - BELOW_CHANCE:
        best = choose_best(validation)
        return Choice(best.index, best.candidate, f"λ0 = 0 predicts held-out experts worse than chance; {best.reason}")
    gain, spread = validation.gains()
    clear = [i for i in range(1, len(every)) if gain[i] - se * spread[i] > margin]
    if clear:
        return _chosen(validation, max(clear, key=lambda i: gain[i]), "clearly better than λ0 = 0")
    if like is not None and like.mean > 0.0:
        light = [i for i, c in enumerate(every) if c.method == "Screened" and gain[i] >= -margin]
        if light:
            why = f"the unlabelled trajectories look like the expert's ({like.mean:+.3f} nats a step over chance)"
            return _chosen(validation, max(light, key=lambda i: gain[i]), why)
    same = [i for i, c in enumerate(every) if c.method == "MESSI" and abs(gain[i]) + se * spread[i] <= margin]
    if same and like is not None and like.mean < 0.0:
        why = (
            "held-out experts cannot tell MESSI from λ0 = 0, and the unlabelled trajectories do not look like the "
            f"expert's ({like.mean:+.3f} nats a step over chance)"
        )
        return _chosen(validation, 0, why)
    if same:
        why = "held-out experts cannot tell it from λ0 = 0: the penalty acts where they never go"
        return _chosen(validation, max(same, key=lambda i: every[i].lambda0), why)
    return _chosen(validation, 0, "nothing can be shown to be better than λ0 = 0")


def choose_best(validation: Validation, *, se: float = 1.0) -> Choice:
    """The candidate to predict with: the one-standard-error rule on plain held-out log-probability.

    Of the candidates within `se` standard errors (paired by split) of the best, MESSI is preferred to the baselines,
    and then the strongest penalty: the simplest model that predicts as well.
    """
    every = validation.candidates
    best = int(validation.scores.mean(axis=1).argmax())
    gain, spread = validation.gains(over=best)
    near = np.flatnonzero(-gain <= se * spread + 1e-12)
    index = min(
        (int(i) for i in (near if near.size else [best])),
        key=lambda i: (METHODS[every[i].method].rank, -every[i].lambda0),
    )
    if index == best:
        return _chosen(validation, index, "the best held-out score")
    return _chosen(validation, index, f"within {se:g} standard error(s) of the best, {every[best]}")


def _chosen(validation: Validation, index: int, why: str) -> Choice:
    gain, spread = validation.gains()
    reason = why if index == 0 else f"{why}; gain {gain[index]:+.4f} ± {spread[index]:.4f} nats a step"
    return Choice(index, validation.candidates[index], reason)
