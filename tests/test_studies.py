"""The parts of the studies on base policies, small: objectives in groups, and what the base policies are made of."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem

from messirl.estimators._prior_policy import fit_population_policy
from messirl.objective import Objective
from studies import common, goals, mice, ssirl


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_policy_by_policy_both_searches_come_closer_to_the_experts(monkeypatch):
    monkeypatch.setattr(ssirl, "AFTER", (1, 2, 4))
    rows = ssirl.searches("highway", 0)
    assert [(row["method"], row["policies"]) for row in rows] == [(m, k) for m in ssirl.METHODS for k in (1, 2, 4)]
    for name in ssirl.METHODS:
        margins = ssirl.column(rows, "margin", method=name)
        assert (np.diff(margins) <= 1e-9 * margins[0]).all()
    assert rows[0]["performance"] == pytest.approx(rows[3]["performance"])  # the first policy is the same


def test_groups_with_one_base_policy_are_the_whole():
    mdp, expert, unlabelled = problem("goals")
    based = mdp.with_prior_policy(fit_population_policy(mdp, unlabelled, 10.0))
    group = np.arange(mdp.n_states) % 4
    some = goals.by_group(expert, group)
    assert len(some) > 1
    penalty = np.diag(np.linspace(0.1, 0.5, mdp.n_features))
    shares = [(len(trips) / len(expert), Objective.from_trajectories(based, trips)) for trips in some.values()]
    theta = -np.linspace(0.5, 1.5, mdp.n_features)
    parts, whole = goals.Parts(shares, penalty)(theta), Objective.from_trajectories(based, expert, quadratic=penalty)
    assert parts.value == pytest.approx(whole(theta).value)
    assert_allclose(parts.gradient, whole(theta).gradient, atol=1e-9)


def test_a_group_without_trips_does_as_all_do_and_every_other_as_its_own():
    mdp, _, unlabelled = problem("goals")
    group = np.zeros(mdp.n_states, dtype=int)
    empty = next(s for s in range(mdp.n_states) if s not in unlabelled.goals)
    group[empty], group[unlabelled.goals[0]] = 2, 1
    found, common = goals.base_policies(mdp, unlabelled, group), fit_population_policy(mdp, unlabelled, goals.STRENGTH)
    assert set(found) == {0, 1, 2}
    assert_allclose(found[2].reference, common)
    own = unlabelled[np.flatnonzero(unlabelled.goals == unlabelled.goals[0])]
    n = np.bincount(own.states[own.leaves], minlength=mdp.n_states)
    taken = fit_population_policy(mdp, own, 1e-9)
    s = int(np.argmax(n))
    expected = (n[s] * taken[s] + goals.STRENGTH * common[s]) / (n[s] + goals.STRENGTH)
    assert_allclose(found[1].reference[s], expected, atol=1e-9)
    assert np.abs(found[1].reference - common).max() > 0.01


def test_a_shuffled_base_policy_has_the_same_rows_elsewhere():
    mdp, _, unlabelled = problem("endless")
    found = mice.controls(mdp, unlabelled, np.random.default_rng(0))
    usual, shuffled = fit_population_policy(mdp, unlabelled, 10.0), found["shuffled"].reference
    assert found[None].reference is None
    assert_allclose(np.sort(shuffled, axis=0), np.sort(usual, axis=0))
    assert np.abs(shuffled - usual).max() > 0.01


@pytest.mark.parametrize(
    ("name", "strengths", "weights"),
    [
        ("complete graph", {None}, {0.0}),
        ("reference, L2, standardised", set(mice.STRENGTHS), {0.0}),
        ("light pooling", {None}, set(mice.WEIGHTS)),
        ("pooling", {None}, {1.0}),
        (mice.BOTH, {10.0}, set(mice.WEIGHTS)),
    ],
)
def test_a_method_chooses_from_the_knobs_it_has(name, strengths, weights):
    every = mice.fits(name, 5)
    assert {key for key, _ in every} == {None}
    assert {candidate.strength for _, candidate in every} == strengths
    assert {candidate.weight for _, candidate in every} == weights
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("key", list(mice.CONTROLS))
def test_a_control_is_the_same_penalty_on_a_base_policy_of_its_own(key):
    plain = [candidate for _, candidate in mice.fits("complete graph", 5)]
    assert mice.fits(mice.CONTROLS[key], 5) == [(key, candidate) for candidate in plain]


def test_a_study_that_is_run_again_draws_what_is_missing_and_keeps_the_rest(tmp_path):
    def work(kind, seed):
        drawn.append((kind, seed))
        return [{"kind": kind, "seed": seed, "part": part, "score": seed + 0.5} for part in ("a", "b")]

    def ask(seeds):
        tasks = [("one", seed) for seed in seeds]
        return common.resumed(work, tasks, [{"kind": k, "seed": s} for k, s in tasks], 1, tmp_path / "table.csv")

    drawn: list[tuple[str, int]] = []
    first = ask([3, 1])
    assert drawn == [("one", 3), ("one", 1)]
    assert [(row["seed"], row["part"], row["score"]) for row in first[1:3]] == [(3, "b", 3.5), (1, "a", 1.5)]
    drawn.clear()
    assert [row["seed"] for row in ask([1, 2])] == [3, 3, 1, 1, 2, 2]
    assert drawn == [("one", 2)]
