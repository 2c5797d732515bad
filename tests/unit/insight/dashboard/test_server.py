"""The server of the dashboard, with clients that guess, hold connections or forge a host name."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from headgate.insight.dashboard.login.passwords import Password
from headgate.insight.dashboard.login.throttle import FREE
from headgate.insight.dashboard.reading.shown import Declarations
from headgate.insight.dashboard.server.questions import Desk
from headgate.insight.dashboard.server.serving import (
    DashboardSettings,
    PromptProtocol,
    _shown,
    application,
    host_of,
)
from tests.support.charted import Charted
from tests.support.served import Served, served

HEAD = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PARTS = {
    "nothing": b"",
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Length: 100\r\n\r\npassword=",
}


def connected(site: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", site.settings.port), timeout=10)


@pytest.mark.slow
@pytest.mark.usefixtures("time_stands_still")
def test_guesses_that_come_together_are_slowed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, most = threading.Semaphore(1), []

    def is_right(_: Password, given: str) -> bool:
        most.append(at_once.acquire(blocking=False))
        time.sleep(0.02)
        at_once.release()
        return False

    monkeypatch.setattr(Password, "is_right", is_right)
    shop = Charted(tmp_path)
    with served(shop.file, shop.root) as site, site.client(logged_in=False) as client:

        def guess(number: int) -> int:
            return client.post("/login", data={"password": f"guess {number}"}).status_code

        with ThreadPoolExecutor(20) as clients:
            codes = list(clients.map(guess, range(40)))
    assert (codes.count(403), codes.count(429)) == (FREE, 40 - FREE)
    assert most == [True] * FREE, "passwords are looked at one by one"


@pytest.mark.slow
@pytest.mark.usefixtures("time_stands_still")
@pytest.mark.parametrize("hosts", [(), ("data.example.org",)])
def test_only_a_proxy_says_whose_guess_it_is(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    shop = Charted(tmp_path)
    with (
        served(shop.file, shop.root, hosts=hosts) as site,
        site.client(logged_in=False) as client,
    ):
        codes = [
            client.post("/login", headers={"X-Forwarded-For": f"10.0.0.{each}"}).status_code
            for each in range(FREE + 1)
        ]
    assert codes == [403] * FREE + [403 if hosts else 429]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    shop = Charted(tmp_path)
    with served(shop.file, shop.root) as site:
        yield site


def is_cut(client: socket.socket, part: bytes) -> None:
    """The server closes the connection after a part of a request. Raises TimeoutError if not."""
    with suppress(ConnectionError):  # if it was cut before all of it was sent
        client.sendall(part)
        while client.recv(65_536):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("sent", PARTS)
def test_a_request_that_does_not_end_is_cut(
    site: Served, monkeypatch: pytest.MonkeyPatch, sent: str
) -> None:
    monkeypatch.setattr(PromptProtocol, "_asks_within", 1.0)
    with connected(site) as client:
        is_cut(client, PARTS[sent])


@pytest.mark.slow
def test_the_second_request_of_a_connection_is_cut_too(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(site) as client:
        client.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert b"403" in client.recv(65_536)
        monkeypatch.setattr(PromptProtocol, "_asks_within", 1.0)
        is_cut(client, HEAD)


@pytest.mark.slow
def test_an_answer_may_take_longer_than_its_request(
    site: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site.client() as client:
        monkeypatch.setattr(PromptProtocol, "_asks_within", 1.0)
        monkeypatch.setattr(Password, "is_right", lambda *_: time.sleep(1.5))
        assert client.post("/login", data={"password": "x"}).status_code == 403
        assert client.get("/api/overview").status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1", "::"])
def test_the_printed_address_is_answered(tmp_path: Path, host: str) -> None:
    shop = Charted(tmp_path)
    settings = DashboardSettings([shop.file], shop.root, host, 8090)
    transport = httpx.ASGITransport(application(settings, Desk()))

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url=settings.address) as client:
            feigned = ("evil.example:8090", "[::2]:8090", "[::1].evil.example", "::1", "")
            answers = [await client.get("/static/app.js")]
            answers += [await client.get("/", headers={"Host": each}) for each in feigned]
            return [each.status_code for each in answers]

    assert asyncio.run(ask()) == [200] + [400] * 5


@pytest.mark.parametrize("draft", ["a", "z"])
def test_a_draft_beside_a_declaration_is_not_shown(tmp_path: Path, draft: str) -> None:
    shop = Charted(tmp_path)
    other = shop.file.with_name(f"{draft}.yml")
    other.write_text(shop.file.read_text())
    files = sorted((other, shop.file))
    shown, problems = _shown(DashboardSettings(files, shop.root, "::1", 8090), Declarations())
    assert [(name, each.pipeline.file) for name, each in shown.items()] == [("shop", shop.file)]
    assert problems == []


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("Data.Example.org", "data.example.org"),
        ("localhost:8090", "localhost"),
        ("[::1]:8090", "::1"),
        ("[0:0::1]", "::1"),
        ("::1", None),
        ("[::1", None),
        ("a:1:2", None),
        ("localhost:x", None),
        ("", None),
    ],
)
def test_hosts_of_headers(header: str, host: str | None) -> None:
    assert host_of(header) == host
