"""The bootstrap by individuals, whose trajectories are not independent: whole individuals are drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from seeds import generator
from worlds import random_mdp

from messirl import MDP, MaxEntIRL, Trajectories, sample, soft_policy
from messirl.selection import bootstrap

TRUTH = np.array([1.0, -0.5, 0.5])


def herd(seed: int, individuals: int = 20, each: int = 6) -> tuple[MDP, Trajectories, np.ndarray]:
    """Individuals with weights of their own, several trajectories each."""
    rng = generator(seed)
    mdp = random_mdp(3, by_step=True, discount=0.9, start=np.full(5, 0.2))
    parts = [
        sample(
            mdp, soft_policy(mdp, mdp.reward(TRUTH + 0.8 * rng.standard_normal(3))), each, 15, int(rng.integers(2**31))
        )
        for _ in range(individuals)
    ]
    every = parts[0]
    for part in parts[1:]:
        every = every + part
    return mdp, every, np.repeat(np.arange(individuals), each)


def widths(found) -> np.ndarray:
    low, high = found.interval(found.theta)
    return high - low


def test_every_resample_holds_whole_individuals(monkeypatch):
    from messirl.selection import resampling

    mdp, expert, groups = herd(0, individuals=5, each=3)
    rows = []
    monkeypatch.setattr(resampling, "_resampled", lambda *given: [rows.append(draw[0]) for draw in given[-1]] and [])
    bootstrap(MaxEntIRL(ridge=0.01), mdp, expert, n=6, random_state=0, groups=groups)
    assert len(rows) == 6
    for drawn in rows:
        times = np.bincount(drawn, minlength=15).reshape(5, 3)
        assert np.all(times == times[:, :1]), "all trips of an individual, or none"
        assert times[:, 0].sum() == 5


def test_individuals_make_intervals_wider_where_they_differ():
    mdp, expert, groups = herd(1)
    model = MaxEntIRL(ridge=1e-3)
    plain = bootstrap(model, mdp, expert, n=60, random_state=0)
    own = bootstrap(model, mdp, expert, n=60, random_state=0, groups=np.arange(len(expert)))
    assert np.array_equal(plain.theta, own.theta), "groups of one are no groups"
    by_individual = bootstrap(model, mdp, expert, n=60, random_state=0, groups=groups)
    assert np.mean(widths(by_individual) / widths(plain)) > 1.15


def test_groups_that_cannot_be_resampled_are_refused():
    mdp, expert, groups = herd(2, individuals=3, each=2)
    with pytest.raises(ValueError, match="groups names one individual only"):
        bootstrap(MaxEntIRL(), mdp, expert, n=2, groups=np.zeros(6))
    with pytest.raises(ValueError, match=r"groups has shape \(5,\): give one label for each of the 6 trajectories"):
        bootstrap(MaxEntIRL(), mdp, expert, n=2, groups=groups[:5])
    with pytest.raises(ValueError, match="unlabelled_groups has shape"):
        bootstrap(MaxEntIRL(), mdp, expert, expert, n=2, unlabelled_groups=groups[:5])


@pytest.mark.slow
def test_intervals_by_individuals_cover_and_others_do_not():
    mdp, many, _ = herd(99, individuals=3000, each=2)
    truth = MaxEntIRL(theta_max=None).fit(mdp, many).theta_
    covered = {"plain": [], "by individual": []}
    for seed in range(40):
        mdp, expert, groups = herd(200 + seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, labels in (("plain", None), ("by individual", groups)):
                found = bootstrap(MaxEntIRL(ridge=1e-4), mdp, expert, n=100, random_state=seed, groups=labels)
                low, high = found.interval(found.theta)
                covered[name].append((low <= truth) & (truth <= high))
    shares = {name: np.mean(inside) for name, inside in covered.items()}
    assert shares["by individual"] > 0.87, shares
    assert shares["plain"] < shares["by individual"] - 0.08, shares
