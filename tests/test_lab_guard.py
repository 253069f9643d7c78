"""The guard of the lab's page: who may ask, how much, and what a browser is told with every answer."""

from __future__ import annotations

import pytest
from labs import HOST, asked

from messirl.app.lab.security import BODY, POLICY, SecurityMiddleware, allowed_hosts

JSON = {"content-type": "application/json", "origin": f"http://{HOST}"}


async def echo(scope, receive, send):
    """An application that reads everything it is sent."""
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOW")]})
    await send({"type": "http.response.body", "body": str(size).encode()})


APP = SecurityMiddleware(echo, allowed_hosts(8377))


@pytest.mark.parametrize("host", ["127.0.0.1:8377", "localhost:8377", "LOCALHOST:8377", "[::1]:8377"])
def test_the_names_of_this_machine_are_answered(host):
    assert asked(APP, headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8377",  # a foreign name that leads here: DNS rebinding
        "evil.example",
        "127.0.0.1",  # another port
        "127.0.0.1:80",
        "localhost.evil.example:8377",
        "127.0.0.1:8377@evil.example",
        "",
        ["127.0.0.1:8377", "evil.example"],
    ],
)
def test_a_foreign_host_is_refused(host):
    assert asked(APP, headers={"host": host}).status == 421


def test_other_machines_are_served_by_address_only_if_asked_for_and_a_foreign_name_never():
    wide = SecurityMiddleware(echo, allowed_hosts(8377, "lab.local"), numbers=True)
    for host in ("192.168.1.5:8377", "[fe80::1]:8377", "lab.local:8377"):
        assert asked(wide, headers={"host": host}).status == 200
        assert asked(APP, headers={"host": host}).status == 421
    assert asked(wide, headers={"host": "evil.example:8377"}).status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8377", "http://127.0.0.1:9", "http://localhost:8377"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_foreign_origin_is_refused(method, origin):
    assert asked(APP, method=method, headers=JSON | {"origin": origin}).status == 403


def test_a_request_that_does_something_must_say_where_it_comes_from():
    assert asked(APP, method="POST", headers=JSON).status == 200
    assert asked(APP, method="POST", headers={"content-type": "application/json"}).status == 403
    assert asked(APP, headers={"sec-fetch-site": "cross-site"}).status == 403
    assert asked(APP, headers={"sec-fetch-site": ["same-origin", "cross-site"]}).status == 403
    # What a form of another page could send without asking the browser first.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert asked(APP, method="POST", headers=JSON | {"content-type": kind}).status == 415
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert asked(APP, method=method, headers=JSON).status == 405


def test_a_link_of_another_page_leads_to_ours_but_to_nothing_else_of_it():
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert asked(APP, headers=link).status == 200
    assert asked(APP, "/api/catalogue", headers=link).status == 403
    assert asked(APP, method="POST", headers=JSON | link).status == 403
    for other in ({"sec-fetch-dest": "iframe"}, {"sec-fetch-mode": "no-cors"}):
        assert asked(APP, headers=link | other).status == 403


def test_a_body_of_a_hundred_megabytes_is_refused_before_it_is_read():
    told = JSON | {"content-length": "100000000"}
    answer = asked(APP, method="POST", headers=told, chunks=[b"x" * 10**6] * 100)
    assert (answer.status, answer.pulled) == (413, 0)
    assert asked(APP, method="POST", headers=JSON | {"content-length": "-5"}).status == 413
    # Without a length it is counted as it comes, and no more is taken than may be.
    answer = asked(APP, method="POST", headers=JSON, chunks=[b"x" * 65536] * 1600)
    assert answer.status == 413
    assert answer.pulled <= BODY // 65536 + 1


def test_a_body_that_is_too_large_is_refused_by_the_real_application_too():
    """Which would answer an error of the body with 500, before it gets to the guard."""
    from messirl.app.lab.routes import make_app

    answer = asked(
        make_app([], allowed_hosts(8377)), "/api/draw", method="POST", headers=JSON, chunks=[b"x" * 65536] * 40
    )
    assert answer.status == 413


def test_headers_of_more_than_sixteen_kilobytes_are_refused():
    assert asked(APP, headers={"cookie": "x" * 15_000}).status == 200
    answer = asked(APP, headers={f"x-{i}": "y" * 1000 for i in range(20)})
    assert answer.status == 431
    assert b"16,384 bytes" in answer.body


def test_every_answer_says_what_a_page_may_do():
    for answer in (asked(APP), asked(APP, headers={"host": "evil.example"})):
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")
