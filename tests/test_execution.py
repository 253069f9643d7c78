"""Work in this process and over others: the same answers in the same order, and nothing left running."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems import problem
from sklearn.base import clone

from messirl import MESSI, MaxEntIRL
from messirl.dynamics import estimate_mdp, posterior_spread
from messirl.parallel import THREADS, processes, run, run_ahead, uninterrupted
from messirl.selection import MESSICV, bootstrap, nested_score
from messirl.selection.diagnostics import leave_one_out
from messirl.selection.resampling import stability
from messirl.similarity import RBF

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::messirl.IdentifiabilityWarning"),
]


def square(x):
    return x * x


def threads(_):
    with uninterrupted():
        return [os.environ.get(name) for name in THREADS]


def fails_at(wrong, x):
    if x == wrong:
        raise ValueError(f"no {x}")
    return x


@pytest.fixture(scope="module")
def two():
    with processes(2) as executor:
        yield executor


def test_answers_come_in_the_order_of_the_tasks_and_each_is_told(two):
    told = []
    for executor in (None, two):
        found = run(square, range(7), executor, lambda done, total: told.append((done, total)))
        assert list(found) == [0, 1, 4, 9, 16, 25, 36]
    assert told == 2 * [(i, 7) for i in range(1, 8)]


def test_large_results_are_asked_for_only_so_far_ahead_and_come_in_order():
    begun = []
    with ThreadPoolExecutor(1) as pool:
        found = run_ahead(lambda x: begun.append(x) or square(x), range(9), pool, 3)
        for i in range(9):
            assert next(found) == i * i
            assert len(begun) <= i + 4
        assert list(found) == []


def test_anything_that_can_be_handed_work_is_an_executor():
    here = threading.get_ident()
    with ThreadPoolExecutor(2) as pool:
        assert here not in run(lambda _: threading.get_ident(), range(3), pool)


def test_one_job_is_this_process_and_workers_have_one_thread_each(two):
    with processes(1) as executor:
        assert executor is None
    before = {name: os.environ.get(name) for name in THREADS}
    assert list(run(threads, [0], two)) == [["1"] * len(THREADS)]
    with processes(2):
        pass
    assert {name: os.environ.get(name) for name in THREADS} == before


def test_a_failure_is_raised_where_its_answer_was_due(two):
    for executor in (None, two):
        found = run(partial(fails_at, 2), range(5), executor)
        assert [next(found), next(found)] == [0, 1]
        with pytest.raises(ValueError, match="no 2"):
            next(found)


# ------------------------------------------------------------ the same answers


def grid():
    mdp, expert, unlabelled = problem("finite")
    return mdp, expert[:5], unlabelled[:8]


MODEL = MESSI(RBF(1.0), lambda0=3.0, max_iter=30)
CV = MESSICV([RBF(1.0)], lambdas=(1.0,), max_iter=30)


def chosen(executor):
    model = clone(CV).fit(*grid(), executor=executor)
    return model.validation_.scores, model.theta_


def nested(executor):
    found = nested_score(clone(CV).set_params(cv=2), *grid(), executor=executor)
    return (found.scores,)


def resampled(executor):
    found = bootstrap(MODEL, *grid(), n=4, random_state=0, executor=executor)
    return found.theta, found.policy


def halved(executor):
    return ([row["spread"] for row in stability(MODEL, *grid(), (0.1, 1.0), n=2, random_state=0, executor=executor)],)


def left_out(executor):
    mdp, expert, unlabelled = grid()
    model = clone(MODEL).fit(mdp, expert, unlabelled)
    return (leave_one_out(model, mdp, expert, unlabelled, np.array([3, 0]), executor=executor),)


def drawn(executor):
    mdp, expert, unlabelled = problem("finite")
    estimated = estimate_mdp(
        expert + unlabelled, mdp.features, n_actions=mdp.n_actions, discount=0.9, horizon=mdp.horizon
    )
    found = posterior_spread(estimated, MaxEntIRL(max_iter=30), expert, n=3, random_state=0, executor=executor)
    return found.theta, found.policy


@pytest.mark.slow
@pytest.mark.parametrize("work", [chosen, nested, resampled, halved, left_out, drawn], ids=lambda f: f.__name__)
def test_the_answers_do_not_depend_on_the_processes(work, two):
    for here, there in zip(work(None), work(two), strict=True):
        assert_allclose(here, there, rtol=1e-4, atol=1e-6)  # sums over threads round otherwise
