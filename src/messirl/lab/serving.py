"""The server: one socket on this machine, until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any

import uvicorn

LIMITS: dict[str, Any] = {
    "limit_concurrency": 256,  # requests at once; more are told to try again
    "timeout_keep_alive": 10,
    "h11_max_incomplete_event_size": 16_384,  # bytes of headers
    "backlog": 128,
}


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
        http="h11",
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
