"""`messirl lab` as a whole: its files, its command, and a minute of far too many requests."""

from __future__ import annotations

import asyncio
import builtins
import http.client
import json
import socket
import threading
import time
from pathlib import Path

import pytest
from labs import HOST, asked, serving as running

from messirl.app import cli

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("plotly")

import uvicorn

from messirl.app.lab import server
from messirl.app.lab.routes import inline_styles, make_app
from messirl.app.lab.security import allowed_hosts

MINUTE, AT_ONCE = 60, 200


@pytest.fixture(scope="module")
def app():
    return make_app([], allowed_hosts(8377))


def test_our_files_and_plotly_are_served(app):
    assert b"<title>messirl lab</title>" in asked(app).body
    assert asked(app, "/static/main.js").headers["content-type"].startswith("text/javascript")
    assert len(asked(app, "/plotly.js").body) > 10**6
    assert json.loads(asked(app, "/plotly-styles").body) == inline_styles()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/../../__init__.py",
        "/static//etc/passwd",
        "/static/%2e%2e/app.py",
        "/etc/passwd",
        "/static/",
    ],
)
def test_no_path_leaves_our_files(app, path):
    assert asked(app, path).status == 404


def test_the_page_loads_nothing_from_elsewhere():
    static = Path(cli.__file__).parent.parent / "lab" / "static"
    texts = {path.name: path.read_text(encoding="utf-8") for path in static.iterdir()}
    for name, text in texts.items():
        assert "innerHTML" not in text, name
        foreign = [word for word in text.replace("http://www.w3.org/2000/svg", "").split() if "://" in word]
        assert foreign == [], name
    assert "style=" not in texts["index.html"]
    assert "onclick" not in texts["index.html"]


def test_a_request_that_is_not_understood_is_refused_without_asking_the_worker(app):
    told = {"content-type": "application/json", "origin": f"http://{HOST}"}
    answer = asked(app, "/api/fit", method="POST", headers=told, chunks=[b'{"scene": "pit", "u": -1}'])
    assert answer.status == 422
    assert "u must be" in json.loads(answer.body)["error"]


@pytest.mark.parametrize("words", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"])
def test_who_does_not_finish_a_request_is_hung_up_on(words, monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    assert asyncio.run(said_to(words)) == b""


def test_an_answer_may_take_longer_than_a_request(monkeypatch):
    monkeypatch.setattr(server, "PATIENCE", 0.05)
    assert asyncio.run(said_to(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).startswith(b"HTTP/1.1 204")


async def said_to(words):
    """What a server that takes long to answer says before it hangs up."""

    async def slowly(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(0.2)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    config, state = uvicorn.Config(slowly, log_level="critical"), uvicorn.server.ServerState()
    listening = await asyncio.get_running_loop().create_server(
        lambda: server.TimeoutProtocol(config, state, {}), "127.0.0.1", 0
    )
    async with listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(words)
        found = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    return found


def test_a_port_that_is_taken_is_said(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["lab", "--no-browser", "--port", str(port)]) == 2
    assert f"port {port} is in use" in capsys.readouterr().err


def test_without_its_packages_one_sentence_says_how_to_get_them(capsys, monkeypatch):
    before = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] in ("starlette", "uvicorn", "plotly") or name.startswith("messirl.app.lab.routes"):
            raise ModuleNotFoundError(f"No module named {name!r}", name="starlette")
        return before(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert cli.main(["lab"]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install 'messirl[lab]'")


def post(port, body, *, origin=None, timeout=120):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        told = {"Content-Type": "application/json", "Origin": origin or f"http://127.0.0.1:{port}"}
        connection.request("POST", "/api/fit", body, told)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once():
    with running() as (process, port):
        assert post(port, json.dumps({"scene": "pit", "mixture": "mu1"}))[0] == 200
        begin = time.monotonic()
        process.send_signal(2)
        process.wait(15)
        assert time.monotonic() - begin < 5  # a loaded machine; about 0.2 s on one that is not


@pytest.mark.slow
def test_two_hundred_requests_at_once_for_a_minute_leave_it_up_and_its_memory_bounded():
    with running() as (process, port):
        good = json.dumps({"scene": "pit", "mixture": "mu1", "rough": True})
        assert post(port, good)[0] == 200
        before, seen, end = memory(process.pid), {}, time.monotonic() + MINUTE
        bodies = [
            good,
            good.replace("pit", "highway"),
            '{"scene": "pit", "u": 1e9}',
            "[" * 900_000,
            good.replace("mu1", "mu2"),
        ]

        def press(i):
            while time.monotonic() < end:
                page = json.dumps({**json.loads(good), "page": f"p{i}"}) if i % 3 else bodies[i % len(bodies)]
                try:
                    status = post(port, page, origin="http://evil.example" if i % 17 == 0 else None, timeout=30)[0]
                except (OSError, http.client.HTTPException):
                    status = 0  # not even heard, which a server with too much to do may do
                seen[status] = seen.get(status, 0) + 1
                time.sleep(0.02)

        threads = [threading.Thread(target=press, args=(i,), daemon=True) for i in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(MINUTE + 60)
        assert process.poll() is None
        for _ in range(20):  # when it is quiet again it answers
            status = post(port, good)[0]
            if status == 200:
                break
            time.sleep(0.5)
        assert status == 200
        assert set(seen) <= {0, 200, 403, 413, 422, 503}
        assert seen.get(200, 0) > 20
        assert memory(process.pid) < before + 300e6


def memory(pid: int) -> float:
    """Bytes that a process and its children hold."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            continue
        if int(fields["Pid"]) == pid or int(fields["PPid"]) == pid:
            total += 1024 * float(fields.get("VmRSS", "0 kB").split()[0])
    return total
