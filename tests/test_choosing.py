"""The ways to choose a candidate, small: what each gives, its regret, and leave-one-out by a Newton step."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from seeds import pinned

from messirl.selection import Candidate
from messirl.selection.candidates import CandidateFitter
from messirl.similarity import CompleteGraph
from studies import choosing
from studies.choosing import Draw, regrets, summary
from studies.ways import WAYS, Fitted, leave_one_out, log_evidence

STRONG = [Candidate("RidgeStd", 100.0), Candidate("MESSI", 100.0, choosing.STANDARD),
          Candidate("ReferenceStd", 100.0, strength=10.0), Candidate("LightPoolingStd", 100.0, weight=0.1)]  # fmt: skip


@cache
def small(kind: str) -> tuple[Draw, Fitted]:
    mdp, expert, unlabelled = problem(kind)
    draw = Draw(mdp, expert[:6], unlabelled, test=expert[6:], lambdas=(0.3,))
    return draw, draw.fitted()


@pytest.mark.parametrize("kind", ["endless", "goals"])
def test_every_way_gives_a_candidate_or_weights_and_none_beats_the_best_candidate(kind):
    draw, fitted = small(kind)
    rows = {row["way"]: row for row in regrets(draw, fitted)}
    assert set(rows) == set(WAYS) - ({"average"} if kind == "goals" else set())
    names = {str(c) for c in fitted.candidates}
    for way, row in rows.items():
        assert np.isfinite(row["score"])
        assert row["alone"] == rows["alone"]["score"]
        if way != "average":
            assert row["chosen"] in names
            assert row["regret"] >= 0.0
    if kind != "goals":
        weights = WAYS["average"](fitted)
        assert weights.shape == (len(names),)
        assert weights.sum() == pytest.approx(1.0)


def test_the_regret_of_the_best_candidate_is_zero(monkeypatch):
    draw, fitted = small("endless")
    scores = [draw.score(fitted, i) for i in range(len(fitted.candidates))]
    monkeypatch.setitem(WAYS, "rule", lambda fitted: int(np.argmax(scores)))
    assert regrets(draw, fitted)[0]["regret"] == 0.0


def test_weights_on_one_candidate_score_as_it_does():
    draw, fitted = small("endless")
    for i in (0, len(fitted.candidates) - 1):
        assert draw.score(fitted, np.eye(len(fitted.candidates))[i]) == pytest.approx(draw.score(fitted, i))


def test_one_standard_error_takes_what_fits_the_experts_least_among_the_near_best():
    _, fitted = small("endless")
    best, chosen = WAYS["best held out"](fitted), WAYS["one standard error"](fitted)
    assert fitted.seen[chosen] <= fitted.seen[best]


@pytest.mark.parametrize("kind", ["endless", "episodic", "goals"])
@pytest.mark.parametrize("candidate", STRONG, ids=lambda c: c.method)
def test_leave_one_out_by_a_newton_step_is_near_where_one_expert_moves_little(kind, candidate):
    mdp, expert, unlabelled = problem(kind)
    different = {tuple(states): i for i, (states, _, _) in enumerate(expert) if len(states) > 1}
    some = list(different.values())[:5]
    n, options = len(some), {"yardstick": choosing.STANDARD, "tol": 1e-9}
    expert = expert[np.tile(some, 32)]  # each is one of very many like it: what the step leaves out is of second order
    bench = CandidateFitter(mdp, expert, unlabelled, **options)
    q, theta, steps = bench.penalty(candidate), bench.fit(candidate), expert.lengths[:n] - 1
    if np.abs(bench.likelihood(candidate).penalised(q)(theta).gradient).max() > 1e-3:
        pytest.skip("so strong a penalty draws θ to the edge of finite values: no optimum, and no step from it")
    exact = np.empty(n)
    for i in range(n):
        part = CandidateFitter(mdp, expert[np.delete(np.arange(len(expert)), i)], unlabelled, **options)
        part.penalty = lambda candidate: q  # the step keeps it
        exact[i] = part.log_probabilities(candidate, part.fit(candidate), expert[[i]])[0]
    gap = np.abs(leave_one_out(bench, candidate, theta)[:n] - exact) / steps
    without = np.abs(bench.log_probabilities(candidate, theta, expert[:n]) - exact) / steps
    assert gap.max() < 0.25 * without.max()


def test_the_evidence_of_one_weight_is_an_integral():
    with pinned():  # how near Laplace's method comes depends on the draw
        mdp, expert, _ = problem.__wrapped__("endless")
    mdp = mdp.replace(features=mdp.feature_rows[:, :1])
    bench, candidate = CandidateFitter(mdp, expert, None, yardstick=CompleteGraph()), Candidate("RidgeStd", 0.1)
    theta, q = bench.fit(candidate), float(bench.penalty(candidate)[0, 0])
    n = expert.lengths.size * (expert.lengths[0] - 1) * (1.0 - mdp.discount)  # n / c, of endless ones
    grid = np.linspace(-10.0, 10.0, 801)
    logs = [bench.score(candidate, np.array([x]), expert) - 0.5 * n * q * x * x for x in grid]
    integral = np.log(np.exp(np.array(logs) - max(logs)).sum() * (grid[1] - grid[0])) + max(logs)
    exact = integral + 0.5 * np.log(n * q / (2.0 * np.pi))
    assert_allclose(log_evidence(bench, candidate, theta, bench.score(candidate, theta, expert)), exact, atol=0.05)


def test_a_summary_has_a_row_for_each_way_and_case():
    row = {"problem": "mice", "experts": 15, "source": "", "way": "rule"}
    (found,) = summary([{**row, "score": "-1.0", "regret": "0.1"}, {**row, "score": "-2.0", "regret": "0.3"}])
    assert (found["runs"], found["score"], found["regret"]) == (2, -1.5, pytest.approx(0.2))
    assert found["low"] < 0.2 < found["high"]
