"""The server: one socket on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LIMITS: dict[str, Any] = {
    "limit_concurrency": 256,  # requests at once; more are told to try again
    "timeout_keep_alive": 10,
    "h11_max_incomplete_event_size": 16_384,  # bytes of headers
    "backlog": 128,
}
PATIENCE = 20.0  # seconds in which a request must have come as a whole


class Hurried(H11Protocol):
    """Hangs up on who connects and says nothing, or only ever the next letter; an answer may take its time."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Begin to wait for the next one."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(PATIENCE, self._waited)

    def _waited(self) -> None:
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):  # neither head nor body is complete
            self.transport.close()


class _Server(uvicorn.Server):
    """Leaves Ctrl-C to the command, which ends at once."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Change no signal's handler."""
        yield


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens there, or an error that says why it cannot."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((address, port))
        place.listen(LIMITS["backlog"])  # who comes before the server is ready waits
    except (OSError, OverflowError) as error:
        place.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise ValueError(f"port {port} is taken: give another with --port, or --port 0 for any") from None
        raise ValueError(f"cannot listen at {address}, port {port}: {error}") from None
    return place


def serve(app: Any, place: socket.socket, opened: Callable[[], object] | None = None) -> None:
    """Serve until interrupted. opened : called once, in a thread, when the page can be asked for."""
    config = uvicorn.Config(
        app,
        http=Hurried,
        loop="asyncio",
        ws="none",
        log_level="critical",
        access_log=False,
        server_header=False,
        **LIMITS,
    )
    if opened is not None:
        threading.Timer(0.5, opened).start()
    _Server(config).run(sockets=[place])
