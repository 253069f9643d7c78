"""Tables of one fit: scores, estimates, the policy in the most visited states, settings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np

from messirl._formatting import decimals
from messirl.app.report.common.feature_labels import name_html, one_line, shorten
from messirl.app.report.common.markup import Html, join, row, table, tag
from messirl.app.report.common.number_format import fixed, plain, rounded, score
from messirl.app.workflow.narrative import feature_names, plain_names
from messirl.app.workflow.preferences import Preferences
from messirl.app.workflow.ranking import ranked
from messirl.app.workflow.record import FitRecord, Score
from messirl.inference import EstimationTable
from messirl.inference.paired_gain import Gain

MOST_ROWS = 200  # per table
MOST_STATES = 15
CHOICES = 3  # actions shown per state, the most likely first
ERRORS = ("robust_std_error", "std_error", "outer_std_error")
MOST_DECIMALS = 8
LARGE = 1e6


def scores_table(scores: list[Score]) -> Html:
    """Return all scores, and their differences from experts only or, if unknown, from the fitted method."""
    held_out = any(s.held_out is not None for s in scores)
    gained = any(s.gain is not None for s in scores)
    notes = any(s.note for s in scores)
    apart = "gain over experts only, 95 % interval" if gained else f"difference from {shorten(scores[0].name, 30)}"
    heads = ["method", "fitted to", "experts", *(["held out", apart] if held_out else []), *(["note"] if notes else [])]
    rows = []
    for s in scores:
        cells: list[Html | str] = [name_html(s.fit_on, 60) if s.fit_on not in ("", "-") else "–", _nats(s.expert)]
        if held_out:
            far = _gain(s.gain) if gained else "" if s is scores[0] else _difference(s, scores[0])
            cells += [_nats(s.held_out), far]
        if notes:
            cells.append(tag("span", one_line(s.note) if s.note else "", class_="note"))
        name = name_html(s.name)
        rows.append(row(tag("b", name) if s is scores[0] else name, *cells))
    return table([row(*heads, head=True)], rows, "fit numbers")


def estimates_table(record: FitRecord) -> Html:
    """Return θ by size, with standard errors, t and p if they were estimated."""
    if record.estimates is None:
        names, shown = feature_names(record.model.mdp_), record.by_size[:MOST_ROWS]
        rows = [row(name_html(names[j]), rounded(float(record.model.theta_[j]))) for j in shown]
        return join([table([row("feature", "weight θ", head=True)], rows, "fit"), _left_out(record.by_size.size)])
    found, size = _estimated(record.estimates, _plain(record))
    return join([found, _left_out(size), _replaced(record.table)])


def preferences_table(found: Preferences | None) -> Html:
    """Return the estimates of the fit without the penalty, if that is not the fit of the page."""
    if found is None or found.table is None or not found.refitted:
        return Html("")
    mdp = found.model.mdp_
    called = dict(zip(map(str, mdp.feature_ids), feature_names(mdp), strict=True))
    rows, size = _estimated(found.table.rows(), lambda name: called[str(name)])
    return join([tag("h3", "Without the penalty, experts only"), rows, _left_out(size), _replaced(found.table)])


def _replaced(found: EstimationTable | None) -> Html:
    """Explain where intervals do not rest on the robust errors."""
    if found is None or not found.replaced.any():
        return Html("")
    return tag(
        "p", "Where the robust std. error is below a third of the std. error, robust t, p and interval use the latter."
    )


def _estimated(estimates: Sequence[dict[str, Any]], called: Callable[[Any], str]) -> tuple[Html, int]:
    """Return a table of estimates with their errors, the largest first, and their number."""
    columns = {
        "estimate": "estimate",
        "std_error": "std. error",
        "t": "t",
        "outer_std_error": "std. error, outer product",
        "robust_std_error": "robust std. error",
        "robust_t": "robust t",
        "degrees_of_freedom": "degrees of freedom",
        "p": "p, robust",
        "low": "95 % interval from",
        "high": "to",
    }
    known = [key for key in columns if any(_given(r.get(key)) for r in estimates)]
    by_size = sorted(estimates, key=lambda r: -abs(_sortable(r.get("estimate"))))
    rows = [row(name_html(called(r.get("name", ""))), *_estimate(r, known)) for r in by_size[:MOST_ROWS]]
    head = row("feature", *(columns[k] for k in known), head=True)
    return table([head], rows, "fit"), len(by_size)


def _estimate(found: dict[str, Any], keys: list[str]) -> list[str]:
    """Format a row: estimates and errors with three digits of the smallest error, t with two decimals."""
    places = _places(*(found.get(key) for key in ERRORS))
    said = []
    for key in keys:
        value = found.get(key)
        if key == "p":
            said.append(_p(value))
        elif key in ("t", "robust_t") and _known(value):
            said.append(fixed(value, 2))
        elif key == "degrees_of_freedom" and _known(value):
            said.append(fixed(value, 1))
        else:
            said.append(_to(places, value))
    return said


def ratios_table(record: FitRecord) -> Html:
    """Return the ratios of weights with both intervals, if any were asked for."""
    if not record.ratios:
        return Html("")
    called = _plain(record)
    rows = [
        row(name_html(f"{called(ratio.numerator)}/{called(ratio.denominator)}"), *_ratio(ratio))
        for ratio in record.ratios
    ]
    level = f"{100 * record.ratios[0].level:g} % interval"
    heads = ("ratio", "value", "std. error", "robust std. error", f"{level}, delta method", f"{level}, Fieller")
    return table([row(*heads, head=True)], rows, "fit")


def tests_table(record: FitRecord) -> Html:
    """Return the likelihood-ratio tests of features, if any were asked for."""
    if not record.tests:
        return Html("")
    called = _plain(record)
    rows = [
        row(
            name_html(", ".join(called(name) for name in test["without"])),
            rounded(test["statistic"]),
            str(test["degrees"]),
            _p(test["p"]),
        )
        for test in record.tests
    ]
    heads = ("features left out", "likelihood ratio", "degrees of freedom", "p")
    return table([row(*heads, head=True)], rows, "fit")


def policy_table(record: FitRecord) -> Html:
    """Return the most visited states, and the most likely actions there."""
    policy, model = record.policy, record.model
    if policy is None:
        return tag("p", "With a horizon of one state there is nothing to choose.")
    visits = np.nan_to_num(model.visitation_)
    choosing = np.where(policy.sum(axis=1) > 0, visits, -1.0)
    order = ranked(choosing)[:MOST_STATES]
    rows = []
    for s in (int(s) for s in order if choosing[s] > 0):
        likely = ranked(policy[s])[:CHOICES]
        cells = [step_words(record, s, int(a), float(policy[s, a])) if policy[s, a] > 0 else "" for a in likely]
        rows.append(row(name_html(record.called("state", s), 32), rounded(float(visits[s]), 3), *cells))
    if not rows:
        return tag("p", "No visited state has a choice of actions.")
    ranks = ("most likely action", "second", "third")[: min(CHOICES, policy.shape[1])]
    return table([row("state", "expected visits", *ranks, head=True)], rows, "fit policy")


def statistics_table(statistics: dict[str, float]) -> Html:
    """Return a table of all statistics, in the order given."""
    return table([], [row(name_html(name), _measured(value)) for name, value in statistics.items()], "fit")


def words_table(words: dict[str, str]) -> Html:
    """Return a table of the settings, if there are any."""
    rows = [row(name_html(name), name_html(_setting(str(value)), 120)) for name, value in words.items()]
    return table([], rows, "settings") if rows else Html("")


def step_words(record: FitRecord, s: int, a: int, probability: float) -> Html:
    """Return `0.62 left → state 3`, without the next state if there are several."""
    mdp = record.model.mdp_
    r = s * mdp.n_actions + a
    to = mdp.transitions.indices[mdp.transitions.indptr[r] : mdp.transitions.indptr[r + 1]]
    likely = fixed(probability, 2) if probability >= 0.005 else "< 0.01"
    parts = [tag("b", likely), " ", name_html(record.called("action", a), 24)]
    if to.size == 1:
        parts += [" → ", name_html(record.called("state", int(to[0])), 24)]
    return join(parts)


def with_plain_names(texts: Iterable[str], columns: Sequence[str] | None) -> list[str]:
    """Replace the column names of features in warnings by the names on the page, such as `'painting'`."""
    out = list(texts)
    for column, name in zip(columns or (), plain_names(columns or ()), strict=True):
        out = [text.replace(repr(str(column)), repr(name)) for text in out]
    return out


def _plain(record: FitRecord) -> Callable[[Any], str]:
    """Return a function from the name of a feature in files to its name on the page."""
    mdp = record.model.mdp_
    called = dict(zip((str(name) for name in mdp.feature_ids), feature_names(mdp), strict=True))
    return lambda name: called.get(str(name), str(name))


def _left_out(n: int) -> Html:
    return tag("p", f"The {MOST_ROWS} largest of {n:,} are shown.") if n > MOST_ROWS else Html("")


def _measured(value: float | None) -> str:
    """Format a count as an integer, other numbers with three or four decimals."""
    if value is None or not math.isfinite(value):
        return rounded(value)
    if float(value).is_integer() and abs(value) < LARGE:
        return fixed(value, 0)
    size = abs(value)
    return plain(value) if size >= LARGE else score(value, 4 if 1 <= size < 100 else 3)


def _setting(value: str) -> str:
    """Round numbers of many digits in a setting; the files have them in full."""
    return re.sub(r"-?\d+\.\d{7,}(?:e[-+]?\d+)?", lambda found: f"{float(found[0]):.6g}", value)


def _nats(value: float | None) -> str:
    return "–" if value is None else score(value)


def _difference(one: Score, method: Score) -> str:
    if one.held_out is None or method.held_out is None:
        return "–"
    gap = one.held_out - method.held_out
    return score(gap, signed=True) if math.isfinite(gap) else "–"


def _gain(gain: Gain | None) -> Html | str:
    """Format the gain with its interval, and a note where that includes zero."""
    if gain is None:
        return "–"
    if not math.isfinite(gain.low):
        return score(gain.mean, signed=True)
    ends = f" [{score(gain.low, signed=True)}, {score(gain.high, signed=True)}]"
    unclear = "" if gain.significant else tag("span", " no clear difference", class_="note")
    return join([score(gain.mean, signed=True), ends, unclear])


def _ratio(ratio: Any) -> list[str]:
    """Format value, errors and both intervals, all with three digits of the standard error."""
    places = _places(ratio.std_error)
    ends = (ratio.low, ratio.high), (ratio.fieller_low, ratio.fieller_high)
    numbers = [_to(places, value) for value in (ratio.value, ratio.std_error, ratio.robust_std_error)]
    return numbers + [f"[{_to(places, low)}, {_to(places, high)}]" for low, high in ends]


def _places(*errors: float | None) -> int | None:
    """Return the decimals that show three digits of the smallest error; None if no error is known."""
    known = [error for error in errors if _known(error) and error > 0]
    return decimals(min(known), MOST_DECIMALS) + 1 if known else None


def _to(places: int | None, value: float | None) -> str:
    """Format a number with `places` decimals, or with four significant digits if that is None."""
    return rounded(value) if places is None or value is None else fixed(value, places)


def _p(value: Any) -> str:
    if value is None or not math.isfinite(value):
        return rounded(value)
    return "< 0.001" if value < 0.001 else fixed(value, 3)


def _known(value: Any) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _given(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def _sortable(value: Any) -> float:
    return float(value) if _given(value) else 0.0
