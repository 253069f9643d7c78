"""Sentences that summarise a result: the experts' preferences, and whether the unlabelled trajectories helped.

Pages and terminals take their verdict from here. No sentence claims a direction that its own interval does not support:
where the 95 % interval of a difference includes zero there is no clear difference, and a missing interval is stated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._formatting import decimals, percentage
from messirl._text import join_names, quote_name
from messirl.app.workflow.preferences import FeatureSigns, Preferences, contributions, sort_by_sign
from messirl.app.workflow.ranking import ranked
from messirl.inference.paired_gain import MARGIN, Gain

if TYPE_CHECKING:
    from messirl.app.workflow.evaluation_record import EvaluationRecord
    from messirl.app.workflow.fit_recordings import RecordingsRecord
    from messirl.app.workflow.record import DiagnosisRecord, FitRecord, Record, SelectionRecord

NATS = " nats per step"
HELPED, HURT, UNCLEAR = "helped", "hurt", "made no clear difference"
NO_EFFECT = f"had no effect larger than {MARGIN:g} nats per step"
MIXED = "had mixed effects"
VERB = {  # how a verdict goes on: Using them helped to predict ...
    HELPED: "to predict",
    HURT: "the prediction of",
    UNCLEAR: "to predicting",
    NO_EFFECT: "on predicting",
    MIXED: "on predicting",
}
NEITHER = "neither clearly better nor clearly worse than"
NAMED = 4  # features of one sign that a sentence names
LEAST = 0.2  # of the largest weight: without intervals, smaller ones are not named
LONGEST = 60  # characters of a name or a filter
MOST_DECIMALS = 6
PLAIN = "95 % intervals"
REFITTED = "95 % intervals of a fit to the experts only, without penalty"


def difference(gain: Gain, than: str, unit: str = NATS) -> str:
    """Return a difference in words with its 95 % interval: `better than chance: +0.05 nats per step [0.03, 0.07]`."""
    if gain.significant and not math.isfinite(gain.mean):
        if gain.mean > 0:
            return f"better than {than}, which gives some trajectories zero probability"
        return f"worse than {than}, which gives no trajectory zero probability"
    if not math.isfinite(gain.mean):
        return f"not comparable with {than}: both give some trajectories zero probability"
    kind = ("better than" if gain.mean > 0 else "worse than") if gain.significant else NEITHER
    return f"{kind} {than}: {_with_interval(gain, unit)}"


def _with_interval(gain: Gain, unit: str = NATS) -> str:
    """Return a finite difference and its interval: `+0.05 nats per step [0.03, 0.07]`."""
    if not (math.isfinite(gain.low) and math.isfinite(gain.high)):
        (mean,) = _digits(gain.mean, signed=True)
        return f"{mean}{unit}, from too few trajectories for an interval"
    mean, low, high = _digits(gain.mean, gain.low, gain.high, signed=True)
    if gain.low > 0.0:
        low, high = low.lstrip("+"), high.lstrip("+")
    return f"{mean}{unit} [{low}, {high}]"


def _compared(gain: Gain, than: str, by: str = "") -> str:
    """Return a difference and what it is compared with: `+0.05 nats per step [0.03, 0.07] compared with L2`."""
    if not math.isfinite(gain.mean):
        return difference(gain, than)
    return f"{_with_interval(gain)}{by} compared with {than}"


def use_of(gains: Mapping[str, Gain]) -> tuple[str, list[str]]:
    """Return whether using the unlabelled trajectories helped, from the gain over each method that does not use them.

    They helped, or hurt, if they clearly did so compared with every one of these methods. They had no effect if no gain
    can be larger than the margin. The list names the methods to report: the closest one, else one without a clear
    difference, else the best and the worst.
    """
    by_gain = sorted(gains, key=lambda name: np.nan_to_num(gains[name].mean, nan=0.0))
    better = [name for name in by_gain if gains[name].significant and gains[name].mean > 0]
    worse = [name for name in by_gain if gains[name].significant and gains[name].mean < 0]
    if len(better) == len(gains):
        return HELPED, better[:1]
    if len(worse) == len(gains):
        return HURT, worse[-1:]
    unclear = [name for name in by_gain if name not in better + worse]
    if not unclear:
        return MIXED, [better[0], worse[-1]]
    none = all(gain.negligible for gain in gains.values())
    return (NO_EFFECT if none else UNCLEAR), unclear[:1]


def fit_sentences(record: FitRecord) -> list[str]:
    """Summarise a fit: the experts' preferences, and whether using the unlabelled trajectories helped."""
    model = record.model
    said = [] if record.preferences is None else [preference_sentence(record, record.preferences)]
    if not model.converged_:
        said.append(f"But the fit did not converge: {record.termination}.")
    if "unlabelled" not in record.counts:
        return said
    others = _group(record, "unlabelled")
    verdict = record.verdict
    if record.scores and not record.uses_unlabelled:
        said.append(f"The fit did not use the {others}.")
    elif verdict is None or not verdict.without:
        held = "no trajectories were held out" if "test" not in record.counts else ""
        why = held or "no method that does without them was fitted"
        said.append(_unknown(others, f"{why}. Run messirl select to find out"))
    elif not (comparable := {name: gain for name, gain in verdict.without.items() if not math.isnan(gain.mean)}):
        why = "with and without them, the model gives some held-out trajectories zero probability"
        said.append(_unknown(others, why))
    else:
        said.append(use_sentence(others, _held_out(verdict.trajectories), comparable))
    return [*said, *_by_group(record)]


def selection_sentences(record: SelectionRecord) -> list[str]:
    """Summarise a selection: the experts' preferences, whether the unlabelled trajectories help, and the choice."""
    use = record.model.use_
    said = [] if record.preferences is None else [preference_sentence(record, record.preferences)]
    if use is not None:
        said.append(_of_candidates(_group(record, "unlabelled"), use))
    elif "unlabelled" in record.counts:
        said.append(_unknown(_group(record, "unlabelled"), "nothing can be held out"))
    return [*said, f"Chosen: {record.choice.candidate}; {record.choice.reason}."]


def diagnosis_sentences(record: DiagnosisRecord) -> list[str]:
    """Summarise a diagnosis: whether the unlabelled trajectories help, and how many of them behave like an expert."""
    found, others = record.diagnosis, _group(record, "unlabelled", len(record.ids))
    first = _unknown(others, "the difference has no interval")
    if found.use is not None:
        first = _of_candidates(others, found.use)
    alike, many = int(found.agreement_with_experts.alike.sum()), found.agreement_with_experts.unlabelled.size
    some = f"{alike:,}" if alike else "none"
    said = f"The experts explain {some} of these {many:,} trajectories better than chance does."
    return [first, *_by_group(record), said]


def evaluation_sentences(record: EvaluationRecord) -> list[str]:
    """Summarise an evaluation: how much better than chance the model predicts, and its next-state accuracy."""
    n = record.trajectories
    which = f" ({_short(record.test)})" if record.test is not None else ""
    first = f"The {n:,} {'trajectory' if n == 1 else 'trajectories'}{which} {'is' if n == 1 else 'are'} predicted "
    first += difference(record.gain, "by chance")
    accuracy = percentage(record.next_state_accuracy, 0).replace("%", " %")
    said = [f"{first}.", f"The next state was the one that the model considered most likely in {accuracy} of steps."]
    if record.test is None:
        said.append("These are all trajectories of the folder. Those that the model was fitted to may be among them.")
    return said


def use_sentence(others: str, held: str, gains: Mapping[str, Gain]) -> str:
    """Say whether using the unlabelled trajectories helped, with the difference from methods that do not use them.

    others : the unlabelled trajectories in words, `625 unlabelled trajectories`
    held : what is predicted, `the 42 held-out trajectories`
    """
    verdict, rivals = use_of(gains)
    said = [_compared(gains[name], f"{quote_name(name)} on the experts only") for name in rivals]
    return f"Using the {others} {verdict} {VERB[verdict]} {held}: {', but '.join(said)}."


def _unknown(others: str, why: str) -> str:
    """Say that it is not known whether the unlabelled trajectories helped, and why."""
    return f"It is not known whether using the {others} helps: {why}."


def _held_out(n: int) -> str:
    """Return `the 42 held-out trajectories`."""
    return f"the {n:,} held-out {'trajectory' if n == 1 else 'trajectories'}"


def preference_sentence(record: Record, found: Preferences) -> str:
    """Say which features the experts prefer and avoid, and for which they show no clear preference."""
    names = [quote_name(name) for name in feature_names(found.model.mdp_)]
    signs = sort_by_sign(names, *found.ends, contributions(found.model))
    who = f"the experts{_told(record, 'expert')}"
    versus = "" if found.model.reference_ is None else "compared with the unlabelled trajectories"
    if found.below_chance:
        why = "the fitted model explains their choices worse than chance does"
        return f"No preference of {_joined(who, versus)} can be claimed: {why}."
    return _preferences(who, signs, REFITTED if found.refitted else PLAIN, versus)


def recording_sentences(record: RecordingsRecord) -> list[str]:
    """Summarise a fit to recordings: the largest weights, the prediction of held-out experts, and the unlabelled."""
    weights = record.model.theta_ * record.spreads
    large = [j for j in ranked(np.abs(weights)) if abs(weights[j]) >= LEAST * np.abs(weights).max(initial=0.0)]
    named = [f"{record.aims[j]} ({'+' if weights[j] > 0 else '−'})" for j in large if weights[j] != 0.0]
    which = f"the largest are those of {_few(named)}" if named else "all are zero"
    said = [f"The weights of the experts{_told(record, 'expert')} have no intervals; {which}."]
    if not record.model.converged_:
        said.append(f"But the fit did not converge: {record.model.termination_}.")
    n = record.counts.get("test", 0)
    held = _held_out(n)
    if record.gain is not None:
        said.append(f"T{held[1:]} {'is' if n == 1 else 'are'} predicted {difference(record.gain, 'by chance')}.")
    if "unlabelled" in record.counts:
        others = _group(record, "unlabelled")
        why = "nothing was fitted without them" if n else "no test trajectories were held out"
        known = use_sentence(others, held, record.without) if record.without else _unknown(others, why)
        said.append(known)
    if record.without and record.beyond is not None:
        rest = difference(record.beyond, "learning it from the experts only")
        said.append(f"With the same dynamics, learning the reward from them too is {rest}.")
    return said


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _preferences(who: str, found: FeatureSigns, basis: str, versus: str) -> str:
    """Say which features somebody prefers and avoids; `basis` describes the intervals, `versus` a comparison."""
    if not found.tested:
        need = "a fit that converged, and choices that differ between trajectories or individuals"
        why = f"their weights have no intervals. Intervals need {need}"
        return f"No preference of {_joined(who, versus)} can be claimed: {why}."
    rest = [f"No clear preference: {_few(found.unclear)}."] if found.unclear else []
    rest += [f"Without an interval: {_few(found.unknown)}."] if found.unknown else []
    parts = [f"prefer {_few(found.preferred)}"] if found.preferred else []
    parts += [f"avoid {_few(found.avoided)}"] if found.avoided else []
    if not parts:
        return f"No preference of {_joined(who, versus)} is significant at 5 % ({basis}). {' '.join(rest)}"
    who = f"{versus}, {who}" if versus else who
    between = ", and " if len(found.preferred) > 1 else " and "
    return " ".join([f"{who[0].upper()}{who[1:]} {between.join(parts)} ({basis}).", *rest])


def feature_names(mdp: Any) -> list[str]:
    """Return the names of features for sentences, without the prefix of their column in a problem folder."""
    if mdp.feature_names is None:
        return [f"feature {j}" for j in range(mdp.n_features)]
    return plain_names(mdp.feature_names)


def plain_names(columns: Sequence[str]) -> list[str]:
    """Return the names of such columns without `f_` and `g_`, unless two names would then be equal."""
    plain = [str(name)[2:] if str(name)[:2] in ("f_", "g_") else str(name) for name in columns]
    short = [_short(name) for name in (plain if len(set(plain)) == len(plain) else map(str, columns))]
    return [name if short.count(name) == 1 else f"{name} (feature {j})" for j, name in enumerate(short)]


def _of_candidates(others: str, use: Any) -> str:
    """Say whether the unlabelled trajectories help, from the two candidates that a selection compares."""
    verdict, _ = use_of({"": use.gain})
    what = _compared(
        use.gain, f"{quote_name(str(use.alone))} on the experts only", f" by {quote_name(str(use.using))},"
    )
    return f"Using the {others} {verdict} {VERB[verdict]} held-out experts: {what}."


def _by_group(record: Record) -> list[str]:
    """Say which groups help and which hurt, if `by` names a column."""
    return [f"{found.sentence}." for found in record.by if found.measure in ("use", "gain")]


def _group(record: Record, kind: str, n: int | None = None) -> str:
    """Return `625 unlabelled trajectories (who = tourist)`."""
    n = record.counts.get(kind, 0) if n is None else n
    text = record.filters.get(kind)
    noun = "trajectory" if n == 1 else "trajectories"
    return f"{n:,} {kind} {noun}{'' if text is None else f' ({_short(text)})'}"


def _told(record: Record, kind: str) -> str:
    """Return ` (28 trajectories, who = guide)`, or "" if the record has neither number nor filter."""
    n, text = record.counts.get(kind), record.filters.get(kind)
    words = [] if n is None else [f"{n:,} {'trajectory' if n == 1 else 'trajectories'}"]
    words += [] if text is None else [_short(text)]
    return f" ({', '.join(words)})" if words else ""


def _few(names: Sequence[str]) -> str:
    """Return `painting, glass and 3 more`."""
    if len(names) <= NAMED:
        return join_names(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _short(text: str) -> str:
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split()) or "no name"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _digits(*values: float, signed: bool = False) -> list[str]:
    """Format numbers with two digits of their spread; none that differs from zero is shown as zero."""
    half = (max(values) - min(values)) / 2 if len(values) > 1 else abs(values[0]) / 10
    largest = max(abs(value) for value in values)
    places = min(decimals(half), 2 - math.floor(math.log10(largest))) if largest > 0 else 1
    places = max(places, 0)
    while places < MOST_DECIMALS and any(v != 0 and float(f"{v:.{places}f}") == 0 for v in values):
        places += 1
    texts = [f"{v:+.{places}f}" if signed else f"{v:.{places}f}" for v in values]
    return [text.lstrip("+-") if float(text) == 0 else text for text in texts]
