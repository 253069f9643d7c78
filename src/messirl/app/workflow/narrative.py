"""What was found, in sentences that a colleague understands: what experts want, and whether the others helped.

Pages and terminals take their verdict from here. No sentence names a direction that its own interval does not carry:
where the 95 % interval of a difference includes zero there is no clear difference, and where there is no interval the
sentence says that, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from messirl._formatting import decimals, percentage
from messirl._text import listed, quoted
from messirl.app.workflow.preferences import Preferences, Signs, contributions, signs_of
from messirl.app.workflow.ranking import ranked
from messirl.inference.paired_gain import MARGIN, Gain

if TYPE_CHECKING:
    from messirl.app.workflow.evaluation_record import EvaluationRecord
    from messirl.app.workflow.fit_recordings import RecordingsRecord
    from messirl.app.workflow.record import DiagnosisRecord, FitRecord, Record, SelectionRecord

NATS = " nats a step"
HELPED, HURT, UNCLEAR = "helped", "hurt", "made no clear difference"
NO_EFFECT = f"had no effect larger than {MARGIN:g} nats per step"
MIXED = "helped or hurt, by what they are compared with"
NEITHER = "neither clearly better nor clearly worse than"
NAMED = 4  # features of a kind that a sentence names
LEAST = 0.2  # of the largest weight: without intervals, smaller ones are not named
LONGEST = 60  # characters of a name or a filter
MOST_DECIMALS = 6
PLAIN = "95 % intervals"
REFITTED = "95 % intervals of a fit to the experts alone, without penalty"


def difference(gain: Gain, than: str, unit: str = NATS) -> str:
    """A difference in words with its 95 % interval: `0.05 nats a step better than chance (95 %: 0.03 to 0.07)`."""
    if gain.clear and not math.isfinite(gain.mean):
        words = ("better", "rules") if gain.mean > 0 else ("worse", "does not rule")
        return f"{words[0]} than {than}, which {words[1]} out what was done"
    if not math.isfinite(gain.mean):
        return f"not to be compared with {than}: both rule out what was done"
    if not (math.isfinite(gain.low) and math.isfinite(gain.high)):
        (mean,) = _digits(gain.mean, signed=True)
        return f"{NEITHER} {than}: {mean}{unit}, from too few for an interval"
    if gain.clear:
        better = gain.mean > 0
        ends = (gain.low, gain.high) if better else (-gain.high, -gain.low)
        mean, low, high = _digits(abs(gain.mean), *ends)
        return f"{mean}{unit} {'better' if better else 'worse'} than {than} (95 %: {low} to {high})"
    mean, low, high = _digits(gain.mean, gain.low, gain.high, signed=True)
    return f"{NEITHER} {than}: {mean}{unit} (95 %: {low} to {high}; above zero is better)"


def use_of(gains: Mapping[str, Gain]) -> tuple[str, list[str]]:
    """Return whether using the unlabelled ones helped, judged by the gain over each method that does without them.

    They helped, or hurt, if they clearly did against every one of these; they had no effect if none of the gains can be
    larger than the margin. Also the methods to name: of these the one
    that is closest, else one without a clear difference, else the best and the worst of them.
    """
    by_gain = sorted(gains, key=lambda name: np.nan_to_num(gains[name].mean, nan=0.0))
    better = [name for name in by_gain if gains[name].clear and gains[name].mean > 0]
    worse = [name for name in by_gain if gains[name].clear and gains[name].mean < 0]
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
    """Say what the experts prefer, and whether using the unlabelled trajectories helped."""
    model = record.model
    said = [] if record.preferences is None else [preference_sentence(record, record.preferences)]
    if not model.converged_:
        said.append(f"But the fit did not converge: {model.termination_}.")
    if "unlabelled" not in record.counts:
        return said
    others = _group(record, "unlabelled")
    verdict = record.verdict
    if record.scores and not record.uses_unlabelled:
        said.append(f"The {others} were not used by the fit itself.")
    elif verdict is None or not verdict.without:
        held = "no trajectories were held out" if "test" not in record.counts else ""
        why = held or "no method without them was fitted beside it"
        said.append(f"Whether using the {others} helped is not known: {why} (messirl select finds out).")
    elif not (comparable := {name: gain for name, gain in verdict.without.items() if not math.isnan(gain.mean)}):
        said.append(
            f"Whether using the {others} helped is not known: with and without them, the model rules out some held-out "
            "trajectories."
        )
    else:
        n = verdict.trajectories
        held = f"the {n:,} held-out {'trajectory is' if n == 1 else 'trajectories are'} predicted"
        said.append(use_sentence(others, held, comparable))
    return [*said, *_by_group(record)]


def selection_sentences(record: SelectionRecord) -> list[str]:
    """Say what the experts prefer, whether using the unlabelled trajectories helps, and what was chosen."""
    use = record.model.use_
    said = [] if record.preferences is None else [preference_sentence(record, record.preferences)]
    if use is not None:
        said.append(_of_candidates(_group(record, "unlabelled"), use))
    elif "unlabelled" in record.counts:
        said.append(f"Whether using the {_group(record, 'unlabelled')} helps is not known: nothing can be held out.")
    return [*said, f"Chosen: {record.choice.candidate}; {record.choice.reason}."]


def diagnosis_sentences(record: DiagnosisRecord) -> list[str]:
    """Whether using the unlabelled trajectories helps, and how many of them behave like an expert."""
    found, others = record.diagnosis, _group(record, "unlabelled", len(record.ids))
    first = f"Whether using the {others} helps is not known: there is no interval of the difference."
    if found.use is not None:
        first = _of_candidates(others, found.use)
    alike, many = int(found.likeness.alike.sum()), found.likeness.unlabelled.size
    some = f"{alike:,}" if alike else "none"
    said = f"The experts explain {some} of these {many:,} trajectories better than chance does."
    return [first, *_by_group(record), said]


def evaluation_sentences(record: EvaluationRecord) -> list[str]:
    """How much better than chance the model predicts, and how often it names the next state."""
    n = record.trajectories
    which = f" ({_short(record.test)})" if record.test is not None else ""
    first = f"The {n:,} {'trajectory' if n == 1 else 'trajectories'}{which} {'is' if n == 1 else 'are'} predicted "
    first += difference(record.gain, "by chance")
    accuracy = percentage(record.next_state_accuracy, 0).replace("%", " %")
    said = [f"{first}.", f"The state that the model held most likely was the next one in {accuracy} of steps."]
    if record.test is None:
        said.append("These are all trajectories of the folder: those that the model was fitted to may be among them.")
    return said


def use_sentence(others: str, held: str, gains: Mapping[str, Gain]) -> str:
    """Whether using the others helped, with the difference from the methods that do without them.

    others : what they are called
    held : what is predicted, up to the verb: `the 42 held-out trajectories are predicted`
    """
    verdict, rivals = use_of(gains)
    said = [difference(gains[name], f"without them, by {quoted(name)} on the experts alone") for name in rivals]
    return f"Using the {others} {verdict}: {held} {', but '.join(said)}."


def preference_sentence(record: Record, found: Preferences) -> str:
    """Say what the experts prefer and avoid, and of which features no clear preference is known."""
    names = [quoted(name) for name in feature_names(found.model.mdp_)]
    signs = signs_of(names, *found.ends, contributions(found.model))
    who = f"the experts{_told(record, 'expert')}"
    if found.model.reference_ is not None:
        who = f"compared with the unlabelled trajectories, {who}"
    if found.below_chance:
        return f"No preference of {who} can be claimed: the fitted model explains their choices worse than chance does."
    return _preferences(who, signs, REFITTED if found.refitted else PLAIN)


def recording_sentences(record: RecordingsRecord) -> list[str]:
    """Say which weights of recorded experts are largest, how they are predicted, and whether the others helped."""
    weights = record.model.theta_ * record.spreads
    large = [j for j in ranked(np.abs(weights)) if abs(weights[j]) >= LEAST * np.abs(weights).max(initial=0.0)]
    named = [f"{record.aims[j]} ({'+' if weights[j] > 0 else '−'})" for j in large if weights[j] != 0.0]
    which = f"the largest are those of {_few(named)}" if named else "all of them are zero"
    said = [f"The weights of the experts{_told(record, 'expert')} have no intervals; {which}."]
    if not record.model.converged_:
        said.append(f"But the fit did not converge: {record.model.termination_}.")
    n = record.counts.get("test", 0)
    held = f"the {n:,} held-out {'trajectory is' if n == 1 else 'trajectories are'} predicted"
    if record.gain is not None:
        said.append(f"T{held[1:]} {difference(record.gain, 'by chance')}.")
    if "unlabelled" in record.counts:
        others = _group(record, "unlabelled")
        why = "nothing was fitted without them" if n else "no trajectories were held out (--test)"
        known = f"Whether using the {others} helped is not known: {why}."
        said.append(use_sentence(others, held, record.without) if record.without else known)
    if record.without and record.beyond is not None:
        said.append(f"Beyond teaching where moves lead, using them is {difference(record.beyond, 'not using them')}.")
    return said


def _preferences(who: str, found: Signs, basis: str) -> str:
    """Say by the signs of features what somebody prefers; `basis` says what the intervals are."""
    if not found.tested:
        need = "a fit that converged, and choices that differ between trajectories or individuals"
        return f"No preference of {who} can be claimed: their weights have no intervals, which need {need}."
    rest = [f"No clear preference: {_few(found.unclear)}."] if found.unclear else []
    rest += [f"Without an interval: {_few(found.unknown)}."] if found.unknown else []
    parts = [f"prefer {_few(found.preferred)}"] if found.preferred else []
    parts += [f"avoid {_few(found.avoided)}"] if found.avoided else []
    if not parts:
        return f"No preference of {who} is significant at 5 % ({basis}). {' '.join(rest)}"
    between = ", and " if len(found.preferred) > 1 else " and "
    return " ".join([f"{who[0].upper()}{who[1:]} {between.join(parts)} ({basis}).", *rest])


def feature_names(mdp: Any) -> list[str]:
    """What features are called in sentences: without the mark of their column in a problem folder."""
    if mdp.feature_names is None:
        return [f"feature {j}" for j in range(mdp.n_features)]
    return plain_names(mdp.feature_names)


def plain_names(columns: Sequence[str]) -> list[str]:
    """The names of such columns without `f_` and `g_`, unless two would then be called alike."""
    plain = [str(name)[2:] if str(name)[:2] in ("f_", "g_") else str(name) for name in columns]
    short = [_short(name) for name in (plain if len(set(plain)) == len(plain) else map(str, columns))]
    return [name if short.count(name) == 1 else f"{name} (feature {j})" for j, name in enumerate(short)]


def _of_candidates(others: str, use: Any) -> str:
    """What the two candidates that a selection compares say of the unlabelled trajectories, called `others`."""
    verdict, _ = use_of({"": use.gain})
    what = difference(use.gain, f"without them, by {quoted(str(use.alone))}")
    way = f"by {quoted(str(use.using))}, held-out experts are predicted"
    return f"Using the {others} {verdict}: {way} {what}."


def _by_group(record: Record) -> list[str]:
    """Which groups help and which hurt, where a column was asked for."""
    return [f"{found.sentence}." for found in record.by if found.measure in ("use", "gain")]


def _group(record: Record, kind: str, n: int | None = None) -> str:
    """`625 unlabelled trajectories (who = tourist)`."""
    n = record.counts.get(kind, 0) if n is None else n
    text = record.filters.get(kind)
    noun = "trajectory" if n == 1 else "trajectories"
    return f"{n:,} {kind} {noun}{'' if text is None else f' ({_short(text)})'}"


def _told(record: Record, kind: str) -> str:
    """` (28 trajectories, who = guide)`; nothing where the record does not say."""
    n, text = record.counts.get(kind), record.filters.get(kind)
    words = [] if n is None else [f"{n:,} {'trajectory' if n == 1 else 'trajectories'}"]
    words += [] if text is None else [_short(text)]
    return f" ({', '.join(words)})" if words else ""


def _few(names: Sequence[str]) -> str:
    """`painting, glass and 3 more`."""
    if len(names) <= NAMED:
        return listed(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _short(text: str) -> str:
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split()) or "no name"
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _digits(*values: float, signed: bool = False) -> list[str]:
    """Numbers with two digits of their spread; one that is not zero does not look like zero."""
    half = (max(values) - min(values)) / 2 if len(values) > 1 else abs(values[0]) / 10
    largest = max(abs(value) for value in values)
    places = min(decimals(half), 2 - math.floor(math.log10(largest))) if largest > 0 else 1
    places = max(places, 0)
    while places < MOST_DECIMALS and any(v != 0 and float(f"{v:.{places}f}") == 0 for v in values):
        places += 1
    texts = [f"{v:+.{places}f}" if signed else f"{v:.{places}f}" for v in values]
    return [text.lstrip("+-") if float(text) == 0 else text for text in texts]
