"""Security checks of all requests: access only from this machine and from the page itself.

Host      only served names and the port: a foreign name that resolves to this machine (DNS rebinding) is refused
Origin    a page from another site can neither read answers nor start any work
headers   at most 16 kilobytes, and bodies of at most one megabyte, counted while they arrive
answers   a content security policy that allows only own scripts and styles, and no connections to other servers
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY = 1_000_000  # bytes
HEAD = 16_384  # bytes of all headers
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-cache",
}


class SecurityMiddleware:
    """Middleware that checks every request before the application sees it, and adds headers to every answer.

    hosts : allowed values of the Host header, with the port
    numbers : whether any numeric address is allowed too, to serve other machines; foreign names never are
    """

    def __init__(self, app: Any, hosts: frozenset[str], *, numbers: bool = False) -> None:
        self.app, self.hosts, self.numbers = app, hosts, numbers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # other protocols are not supported
            return
        given = _headers(scope)
        fault = self._fault(scope, given)
        if fault is not None:
            await _refuse(send, *fault)
            return
        body = await _whole_body(receive)
        if body is None:
            await _refuse(send, 413, f"the body is larger than {BODY:,} bytes")
            return

        async def received() -> Message:
            return body.pop(0) if body else await receive()

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with_ours(message.get("headers", []))
            await send(message)

        await self.app(scope, received, guarded)

    def _served(self, host: str) -> bool:
        return host in self.hosts or (self.numbers and _in_numbers(host))

    def _fault(self, scope: Scope, given: dict[bytes, list[bytes]]) -> tuple[int, str] | None:
        """Return status and reason of a refusal, or None."""
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD:
            return 431, f"the headers are larger than {HEAD:,} bytes"
        host = given.get(b"host", [])
        if len(host) != 1 or not self._served(host[0].decode("latin-1").lower()):
            return 421, "this address is not served here: open the one that messirl lab printed"
        origin = given.get(b"origin", [])
        own = [b"http://" + host[0].lower()]
        if origin and [one.lower() for one in origin] != own:
            return 403, "the request comes from another page"
        if not {*given.get(b"sec-fetch-site", [])} <= {b"none", b"same-origin"} and not _link(scope, given):
            return 403, "the request comes from another page"
        if scope["method"] == "POST":
            if not origin:
                return 403, "a POST request must have an Origin header"
            if given.get(b"content-type", [b""])[0].split(b";")[0].strip() != b"application/json":
                return 415, "the body must be JSON"
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "the method must be GET, HEAD or POST"
        length = given.get(b"content-length", [b"0"])[0]
        if not length.isdigit() or int(length) > BODY:
            return 413, f"the body is larger than {BODY:,} bytes"
        return None


async def _whole_body(receive: Receive) -> list[Message] | None:
    """Return the messages with the body of a request, or None if it is too large."""
    messages: list[Message] = []
    size, more = 0, True
    while more:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > BODY:
            return None
        more = message["type"] == "http.request" and bool(message.get("more_body"))
    return messages


def allowed_hosts(port: int, *more: str) -> frozenset[str]:
    """Return the allowed Host headers of a server on this machine. more : further names of it."""
    names = ("127.0.0.1", "localhost", "[::1]", *(name.lower() for name in more))
    return frozenset(f"{name}:{port}" for name in names) | (frozenset(names) if port == 80 else frozenset())


def _link(scope: Scope, given: dict[bytes, list[bytes]]) -> bool:
    """Return whether a user followed a link from another page, which can neither read nor frame this one."""
    top = given.get(b"sec-fetch-mode") == [b"navigate"] and given.get(b"sec-fetch-dest") == [b"document"]
    return top and scope["method"] == "GET" and scope["path"] == "/"


def _in_numbers(host: str) -> bool:
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    out: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        out.setdefault(name.lower(), []).append(value)
    return out


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    return [*((k, v) for k, v in headers if k.lower() not in HEADERS), *HEADERS.items()]


async def _refuse(send: Send, status: int, why: str) -> None:
    body = why.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close"), *HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
