"""Tables of benchmarks: stored, kept as a baseline, compared by ratio."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import stored
from benchmarks.links import FAR, MOVES, STATES, small_world
from benchmarks.table import Row

ROWS = [
    Row("one: other", "1 ms", "9 ms", 9.0, 5.0),
    Row("counted", "3", "4"),
    Row("two, 40 sweeps: other", "1 s", "2 s", 2.0),
]


@pytest.mark.parametrize(("ratio", "fails"), [(9.0, 0), (6.1, 0), (5.9, 1)])
def test_a_ratio_that_fell_by_more_than_a_third_fails_the_check(tmp_path, capsys, ratio, fails):
    baseline = stored.keep(stored.write(ROWS, tmp_path / "before"), tmp_path / "baseline.csv")
    again = [replace(ROWS[0], ratio=ratio), ROWS[1], replace(ROWS[2], what="two, 38 sweeps: other")]
    assert stored.check(baseline, stored.newest(stored.write(again, tmp_path / "after").parent)) == fails
    assert f"{fails} of 2 ratios fell" in capsys.readouterr().out


def test_the_baseline_has_a_ratio_for_every_target():
    known = stored.read(stored.BASELINE)
    assert any(key.startswith("one evaluation, 64²") for key in known)
    assert any(key.startswith("long-range links") for key in known)


def test_the_small_world_has_as_many_moves_as_it_says():
    mdp, _, _ = small_world()
    assert mdp.deterministic
    assert mdp.n_states == STATES
    assert 0.99 * STATES * MOVES <= mdp.transitions.nnz <= STATES * MOVES
    row = mdp.transitions.indices.reshape(-1)
    source = mdp.transitions.tocoo().coords[0] // MOVES
    far = (abs(row - source) > MOVES) & (abs(row - source) < STATES - MOVES)
    assert abs(far.mean() - FAR) < 0.01
