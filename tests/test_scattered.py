"""Tables whose rows stay on a cluster: used like an array, and sums over them are the same without moving the rows."""

from __future__ import annotations

import numpy as np
import pytest
from keeping import Here, Keeping
from numpy.testing import assert_allclose, assert_array_equal
from seeds import generator
from test_similarity import many, spread_out  # noqa: F401

from messirl.data.chunked_reduce import run_pass, summed
from messirl.data.distributed_table import DistributedTable, DistributedTableBuilder
from messirl.data.spill import stack_tables
from messirl.similarity import RBF, CompleteGraph, Exponential
from messirl.similarity.approximate_penalty import PROBES

RANKS = 256  # the most rows of sums that `many` leaves


def scattered(table, blocks=7, executor=None):
    """The table in blocks of any size, also empty ones, of which every third is here."""
    cuts = np.sort(generator(1).integers(len(table) + 1, size=blocks - 1))
    parts = np.split(table, cuts)
    kept = [part if i % 3 == 1 else Here(part) for i, part in enumerate(parts)]
    return DistributedTable(executor or Keeping(), table.shape[1], kept, [len(part) for part in parts])


@pytest.mark.parametrize("blocks", [1, 2, 7, 40])
def test_it_is_used_like_an_array(blocks):
    table = generator(0).normal(size=(23, 3))
    there = scattered(table, blocks)
    some = generator(2).integers(-23, 23, size=9)
    for rows in (
        slice(None),
        slice(3, 11),
        slice(20, 3, -2),
        some,
        some % 23 == 2,
        np.arange(23) % 2 == 0,
        slice(5, 5),
    ):
        if np.asarray(rows).dtype == bool and np.asarray(rows).size != 23:
            continue
        assert_array_equal(there[rows], table[rows])
    assert_array_equal(np.asarray(there), table)
    assert len(there) == 23
    assert there.shape == table.shape
    assert_array_equal(there.max(), table.max(axis=0))
    assert_array_equal(there.min(), table.min(axis=0))
    for name in ("sum", "mean"):
        assert_allclose(getattr(there, name)(), getattr(table, name)(axis=0), rtol=1e-12, atol=1e-12)
    head = generator(3).normal(size=(4, 3))
    assert_array_equal(np.asarray(stack_tables(head, there)), np.concatenate([head, table]))


def around(rows, along):
    return (rows * along[:, None]).sum(axis=0), rows[:, 0] + along


@pytest.mark.parametrize("blocks", [1, 5, 40])
def test_a_pass_finds_the_same_and_in_the_same_order(blocks):
    table, along = generator(0).normal(size=(50, 3)), generator(1).normal(size=50)
    total, each = run_pass(around, scattered(table, blocks), 3, [along])
    assert_allclose(total, around(table, along)[0], rtol=1e-12, atol=1e-12)
    assert_array_equal(each, around(table, along)[1])


def test_a_table_that_came_out_longer_or_shorter_is_noticed():
    for n, match in ((3, "more trajectories than"), (9, "fewer trajectories than")):
        place = DistributedTableBuilder(n, 2, Keeping())
        place.add(np.zeros((5, 2)), 5)
        with pytest.raises(ValueError, match=match):
            place.table()


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("measure", [RBF(4.0, standardise=True), RBF(40.0), Exponential(5.0), CompleteGraph()])
@pytest.mark.filterwarnings("ignore::messirl.similarity.approximate_penalty.ApproximationWarning")
def test_the_penalty_of_rows_elsewhere_is_that_of_rows_here_and_they_stay_there(measure):
    table, executor = spread_out(2000), Keeping()
    found = measure.penalty(None, scattered(table, 40, executor))
    wanted = measure.penalty(None, table)
    unit = np.sqrt(np.outer(wanted.diagonal(), wanted.diagonal()))
    assert_allclose(found / unit, wanted / unit, atol=1e-8)  # roots of distances that are rounding, not 0
    sums = RANKS * (1 + 6 + PROBES)
    assert max(executor.came) < 8 * (sums + len(table)) + 2000  # and one number for each row, but no rows


@pytest.mark.usefixtures("many")
@pytest.mark.filterwarnings("ignore::messirl.similarity.approximate_penalty.ApproximationWarning")
def test_the_median_width_is_found_from_rows_elsewhere():
    table = spread_out(2000)
    measure = RBF("median", standardise=True)
    assert_allclose(measure.penalty(None, scattered(table, 9)), measure.penalty(None, table), rtol=1e-9, atol=1e-9)


def test_the_sum_of_a_table_is_that_of_its_rows():
    table = generator(0).normal(size=(50, 3))
    for one in (table, scattered(table, 5)):
        assert_allclose(summed(one), table.sum(axis=0), rtol=1e-12, atol=1e-12)
