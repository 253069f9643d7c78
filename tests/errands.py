"""What the tests have workers of a cluster do; it imports next to nothing, so that a new worker can begin at once."""

from __future__ import annotations

import time

LIMIT = 90.0  # seconds after which a test fails rather than waits


def wait_until(so):
    """Look until it is so, which takes an event and not a time; after LIMIT the test fails."""
    until = time.monotonic() + LIMIT
    while not so():
        assert time.monotonic() < until
        time.sleep(0.02)


def square(x):
    return x * x


def square_later(x):
    time.sleep(0.05)
    return x * x


def nap(_):
    begin = time.monotonic()
    time.sleep(0.1)
    return begin, time.monotonic()


def hold(place):
    wait_until(place.exists)


def do_all_slowly(tasks):
    """As the runner does it, but there is a middle to kill somebody in."""
    from messirl.paper.experiments import runner

    time.sleep(0.4)
    return runner.run_tasks(tasks)


def forgotten(keys, dask_scheduler):
    """Whether the scheduler has known these tasks, and does not any more."""
    return set(keys) <= {step[0] for step in dask_scheduler.transition_log if step[2] == "forgotten"}
