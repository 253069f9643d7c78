"""Server of the page: one socket, until Ctrl-C."""

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
    "limit_concurrency": 256,  # maximum concurrent requests; further ones get status 503
    "timeout_keep_alive": 10,
    "h11_max_incomplete_event_size": 16_384,  # maximum bytes of headers
    "backlog": 128,
}
PATIENCE = 20.0  # seconds within which a request must be complete


class TimeoutProtocol(H11Protocol):
    """HTTP protocol that closes idle and very slow connections; the time of answers is not limited."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Start the timeout of the next request."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeout."""
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
    """Server that leaves Ctrl-C to the command."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signal handlers unchanged."""
        yield


def open_socket(address: str, port: int) -> socket.socket:
    """Return a listening socket; raise ValueError if the address or the port cannot be used."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    place = socket.socket(family, socket.SOCK_STREAM)
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        place.bind((address, port))
        place.listen(LIMITS["backlog"])  # early connections wait until the server is ready
    except (OSError, OverflowError) as error:
        place.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise ValueError(
                f"port {port} is in use: give another with `port`, or `port` 0 for any free port"
            ) from None
        raise ValueError(f"cannot listen at {address}, port {port}: {error}") from None
    return place


def serve(app: Any, place: socket.socket, opened: Callable[[], object] | None = None) -> None:
    """Serve until interrupted. opened : called once, in a thread, when the page is available."""
    config = uvicorn.Config(
        app,
        http=TimeoutProtocol,
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
