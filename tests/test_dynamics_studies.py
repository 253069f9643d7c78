"""The studies of learnt dynamics, small: what they draw, cut, record and measure."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from messirl import Trajectories

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from studies import mountaincar, unknown_dynamics
from studies.common import column


def test_first_cuts_the_last_trajectory_and_keeps_exactly_n_transitions():
    every = Trajectories.from_lists([[0, 1, 2], [3, 4, 5, 6]], [[0, 1], [1, 0, 1]])
    cut = unknown_dynamics.first(every, 3)
    assert [t.states.tolist() for t in cut] == [[0, 1, 2], [3, 4]]
    assert cut.actions.tolist() == [0, 1, 1]
    assert len(unknown_dynamics.first(every, 2)) == 1
    with pytest.raises(ValueError, match="5 transitions are there, not 6"):
        unknown_dynamics.first(every, 6)


@pytest.mark.parametrize("domain", sorted(unknown_dynamics.DOMAINS))
def test_the_log_suffices_and_takes_the_behaviours_in_turn(domain):
    made = unknown_dynamics.DOMAINS[domain]
    scene = made.scene(0)
    log = unknown_dynamics.log(scene.mdp, scene.pools, made.settings["length"], 0)
    assert (log.lengths - 1).sum() >= unknown_dynamics.SIZES[-1]
    for at, source, j in ((0, "star", 0), (1, "one", 0), (3, "star", 1), (4, "two", 1)):
        assert log[at].states.tolist() == scene.pools[source][j].states.tolist()


def test_every_move_of_an_mdp_is_in_its_graph():
    mdp = unknown_dynamics.DOMAINS["pit"].mdp
    graph = unknown_dynamics.moves(mdp).toarray() > 0
    assert (graph == (mdp.transitions.toarray().reshape(36, 4, 36) > 0).any(axis=1)).all()
    assert graph.sum(axis=1).max() <= 5


def test_many_transitions_come_near_to_known_dynamics_in_the_pit(monkeypatch):
    monkeypatch.setattr(unknown_dynamics, "SIZES", (200, 3000))
    rows = unknown_dynamics.one("pit", 0)
    assert {row["way"] for row in rows} == set(unknown_dynamics.WAYS)
    assert (column(rows, "share", transitions=3000) > 0.9).all()
    table = unknown_dynamics.summary(rows + [{**row, "seed": 1} for row in rows])
    assert {row["runs"] for row in table} == {2}


def test_the_expert_drives_up_the_mountain_and_random_pushes_do_not():
    pytest.importorskip("gymnasium")
    expert = mountaincar.drive([mountaincar.pump] * 2, seed=0)
    lost = mountaincar.drive([mountaincar.uniform], seed=0)
    assert all(one.terminated and len(one) < 130 and one.observations[-1, 0] >= 0.5 for one in expert)
    assert len(lost[0]) == 200
    assert lost[0].truncated
    assert set(np.unique(lost[0].actions)) == {0, 1, 2}


def test_recordings_are_the_same_for_the_same_seed_and_differ_between_seeds():
    pytest.importorskip("gymnasium")
    first, again, other = (mountaincar.recorded(seed, 1, 2)[1] for seed in (0, 0, 1))
    assert all((a.observations == b.observations).all() for a, b in zip(first, again, strict=True))
    assert first[0].observations[0, 0] != other[0].observations[0, 0]


@pytest.mark.parametrize("way", ["cloning expert", "cloning all", "fitted MESSI", "fitted MaxEnt", "grid MaxEnt"])
def test_every_way_learns_a_policy_from_recordings(way, monkeypatch):
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(mountaincar, "ITERATIONS", 3)
    monkeypatch.setattr(mountaincar, "ON_GRID", 3)
    expert, mixed = mountaincar.recorded(0, 2, 3)
    with pytest.warns() if way.endswith(("MESSI", "MaxEnt")) else nullcontext():
        policy = mountaincar.learn(way, expert, mixed, 0)
    chances = policy(np.array([[-0.5, 0.0], [0.3, 0.04]]))
    assert chances.shape == (2, 3)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
