"""The desk: of each page the newest request wins, work has an end, and a worker that dies is replaced."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from messirl.app.lab import job_queue
from messirl.app.lab.job_queue import RequestQueue

# A worker that says what it was asked, sleeps, dies, or waits until it is cancelled.
STAND_IN = """
import json, sys, time
told = map(json.loads, sys.stdin)
next(told)
for message in told:
    if "cancel" in message:
        continue
    if message["what"] == "sleep":
        time.sleep(60)
    if message["what"] == "die":
        sys.exit(3)
    if message["what"] == "wait":
        assert next(told) == {"cancel": message["id"]}
    print(json.dumps({"id": message["id"], "status": 200, "what": message["what"]}), flush=True)
"""


def at_a_desk(work, **options):
    async def run():
        desk = RequestQueue([], command=(sys.executable, "-c", STAND_IN), **options)
        await desk.open()
        try:
            return await asyncio.wait_for(work(desk), 30)
        finally:
            await desk.close()

    return asyncio.run(run())


def test_the_newest_request_of_a_page_wins_and_others_are_dropped():
    async def work(desk):
        first = asyncio.create_task(desk.ask("a", {"what": "wait"}))
        await asyncio.sleep(0.3)  # it is in work
        more = [asyncio.create_task(desk.ask("a", {"what": f"n{i}"})) for i in range(5)]
        other = asyncio.create_task(desk.ask("b", {"what": "other"}))
        return [json.loads((await one)[1]) for one in (first, *more, other)]

    first, *dropped, last, other = at_a_desk(work)
    assert first["what"] == "wait"  # cancelled: the stand-in answers at once
    assert all(one["dropped"] for one in dropped)
    assert last["what"] == "n4"
    assert other["what"] == "other"


def test_work_without_end_is_ended_and_the_next_request_is_answered():
    async def work(desk):
        late = await desk.ask("a", {"what": "sleep"})
        return late, await desk.ask("a", {"what": "fine"})

    late, fine = at_a_desk(work, deadline=1.0)
    assert late[0] == 503
    assert b"more than 1 seconds" in late[1]
    assert fine[0] == 200


def test_a_worker_that_dies_is_replaced():
    async def work(desk):
        return await desk.ask("a", {"what": "die"}), await desk.ask("a", {"what": "fine"})

    died, fine = at_a_desk(work)
    assert (died[0], fine[0]) == (500, 200)


def test_no_more_pages_wait_than_may(monkeypatch):
    monkeypatch.setattr(job_queue, "WAITING", 3)

    async def work(desk):
        first = asyncio.create_task(desk.ask("first", {"what": "wait"}))
        await asyncio.sleep(0.3)
        some = [asyncio.create_task(desk.ask(f"p{i}", {"what": "x"})) for i in range(6)]
        last = asyncio.create_task(desk.ask("first", {"what": "x"}))  # cancels; but there is no room for it
        refused = [(await one)[0] for one in some[3:]]
        return refused, (await last)[0], first

    refused, last, _ = at_a_desk(work)
    assert refused == [503] * 3
    assert last == 503


def test_work_of_a_page_that_is_closed_is_stopped():
    async def work(desk):
        running = asyncio.create_task(desk.ask("a", {"what": "wait"}))
        await asyncio.sleep(0.3)  # it is in work
        waiting = asyncio.create_task(desk.ask("b", {"what": "sleep"}))
        await asyncio.sleep(0)
        waiting.cancel()  # the stand-in would sleep for a minute
        running.cancel()  # it is told, or would wait for ever
        return await desk.ask("c", {"what": "fine"})

    assert at_a_desk(work)[0] == 200


def test_a_request_whose_page_hangs_up_leaves_the_desk():
    pytest.importorskip("plotly")
    from starlette.requests import Request

    from messirl.app.lab.routes import _asked

    async def hangs_up():
        return {"type": "http.disconnect"}

    async def work(desk):
        request = Request({"type": "http", "headers": []}, hangs_up)
        await _asked(request, desk, "a", {"what": "sleep"})
        return await desk.ask("b", {"what": "fine"})

    assert at_a_desk(work)[0] == 200


@pytest.mark.parametrize("line", [b'{"id":12,"status":422,"error":"\\"status\\":200"}'])
def test_the_status_is_that_of_the_answer(line):
    assert job_queue._status(line) == 422
