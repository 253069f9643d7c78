"""Threads of linear algebra: one for small matrices, and afterwards as many as before."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from messirl._blas import SMALL, few_threads


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_small_matrices_have_one_thread_and_large_ones_as_many_as_there_are():
    with few_threads(SMALL):
        assert threads() == {1}
        with few_threads(1.0):
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}
    with few_threads(2.0 * SMALL):
        assert threads() == {2}


def test_an_error_lifts_the_limit_too():
    with pytest.raises(ZeroDivisionError), few_threads(1.0):
        _ = 1 / 0
    assert threads() == {2}


def test_other_threads_leave_it_to_the_main_one():
    seen = []

    def other():
        with few_threads(1.0):
            seen.append(threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [{2}]
    assert threads() == {2}
