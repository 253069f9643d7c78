"""Asking an ASGI application, and a server of `messirl lab` in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys

HOST = "127.0.0.1:8377"


class Answer:
    """A status, headers and a body."""

    def __init__(self):
        self.status, self.headers, self.body, self.pulled = 0, {}, b"", 0


def asked(app, path="/", *, method="GET", headers=None, chunks=(b"",)):
    """The answer of an application; `pulled` says how many chunks of the body it took."""
    told = {"host": HOST} | (headers or {})
    pairs = [
        (k.encode(), v.encode())
        for k, values in told.items()
        for v in ([values] if isinstance(values, str) else values)
    ]
    answer, left = Answer(), iter(chunks)
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http"}
    scope |= {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": pairs}
    scope |= {"client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8377)}

    async def receive():
        if answer.pulled == len(chunks):  # nothing more comes, and nobody hangs up
            await asyncio.Event().wait()
        answer.pulled += 1
        return {"type": "http.request", "body": next(left), "more_body": answer.pulled < len(chunks)}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    asyncio.run(app(scope, receive, send))
    return answer


@contextlib.contextmanager
def serving(*words):
    """A server of the command: its process and its port."""
    command = [sys.executable, "-m", "messirl.app.cli", "lab", "--port", "0", "--no-browser", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        yield process, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
        process.wait(20)
        process.stdout.close()
