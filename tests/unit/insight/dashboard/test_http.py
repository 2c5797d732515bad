"""The dashboard over HTTP, by a real server: logins, rights, headers, answers."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from headgate.insight.dashboard.login.passwords import PasswordFileError
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.context import SCOPE, Context
from headgate.insight.dashboard.server.login import OPEN
from headgate.insight.dashboard.server.questions import Desk
from headgate.insight.dashboard.server.serving import DashboardSettings, application
from tests.support.charted import Charted, sale
from tests.support.served import Served, served

GOLD = "/api/gold/shop/sales"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shop = Charted(tmp_path_factory.mktemp("shop"))
    shop.sell(open_=[sale(1, "app", 2, "5.00")], final=[sale(0, "<b>", 4, "40.00")])
    shop.add("quarantine/orders", [])
    shop.board("dashboard: one\ncharts:\n  a: {kind: number, sql: 'SELECT 41 + 1 AS n'}\n")
    with served(shop.file, shop.root) as running:
        yield running


def routes() -> list[Route]:
    """Every route of the application, found in it: a new one is tested, too."""
    app = dashboard_app().app
    assert isinstance(app, Starlette)
    found = [route for route in app.routes if isinstance(route, Route)]
    assert len(found) == len(app.routes) > 15
    return found


def address_of(route: Route) -> str:
    values = {"pipeline": "shop", "table": "sales", "board": "one", "chart": "a"}
    values |= {"name": "app.js", "form": "csv", "source": "orders"}
    return re.sub(r"{(\w+)}", lambda found: values[found[1]], route.path)


@pytest.mark.slow
@pytest.mark.parametrize("path", [address_of(route) for route in routes()])
def test_everything_asks_for_a_login(site: Served, path: str) -> None:
    with site.client(logged_in=False) as client:
        for headers in ({}, {"Cookie": f"headgate_{site.settings.port}=guessed"}):
            answer = client.get(path, headers=headers)
            if path.startswith(("/api/", "/static/")):
                assert answer.status_code == 401, path
                assert answer.json() == {"error": {"message": "log in first", "remedy": ""}}
            else:
                assert (answer.status_code, answer.text) == (303, "")
                assert answer.headers["Location"].startswith("/login?next=")
        assert client.post(path).status_code in (401, 405)


@pytest.mark.slow
@pytest.mark.parametrize("path", [address_of(r) for r in routes() if r.path != "/api/events"])
def test_everything_answers_after_a_login(site: Served, path: str) -> None:
    with site.client() as client:
        answer = client.get(path)
    # The table has no rules, so it has no rejected rows.
    is_there = not path.startswith("/api/rejected/")
    assert answer.status_code == (200 if is_there else 404), answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_an_endpoint_refuses_what_nobody_has_allowed() -> None:
    """Also if a server forgets to guard the application."""
    transport = httpx.ASGITransport(app=dashboard_app())

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return [(await client.get(address_of(route))).status_code for route in routes()]

    assert set(asyncio.run(ask())) == {401}


def test_the_login_page_needs_nothing_else(site: Served) -> None:
    with site.client(logged_in=False) as client:
        page = client.get("/login?next=/gold/shop/sales")
        assert page.status_code == 200
        linked = re.findall(r'(?:href|src)="(?!data:)([^"]+)"', page.text)
        assert linked == ["/static/login.css"]
        assert set(OPEN) == {"/login", *linked}
        assert client.get(linked[0]).headers["Content-Type"].startswith("text/css")


def test_the_cookie_is_for_this_site_alone(site: Served) -> None:
    with site.client(logged_in=False) as client:
        wrong = client.post("/login", data={"password": "wrong"})
        assert (wrong.status_code, "Set-Cookie" in wrong.headers) == (403, False)
        right = client.post("/login", data={"password": site.password, "next": "/ledger/shop"})
        cookie = right.headers["Set-Cookie"]
        assert right.headers["Location"] == "/ledger/shop"
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert client.get("/").status_code == 200
        assert client.post("/logout").status_code == 303
        client.cookies.clear()
        client.headers["Cookie"] = cookie.partition(";")[0]
        assert client.get("/").status_code == 303, "a session that has ended stays ended"


@pytest.mark.parametrize(
    "next_",
    ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:1", "/a\nb"],
)
def test_a_login_leads_to_no_other_site(site: Served, next_: str) -> None:
    with site.client(logged_in=False) as client:
        wrong = client.post("/login", data={"password": "wrong", "next": next_})
        assert '<input type="hidden" name="next" value="/" />' in wrong.text
        answer = client.post("/login", data={"password": site.password, "next": next_})
        assert answer.headers["Location"] == "/"


def test_a_wrong_password_does_not_change_where_a_login_leads(site: Served) -> None:
    with site.client(logged_in=False) as client:
        wrong = client.post("/login", data={"password": "wrong", "next": "/ledger/shop?a=1"})
        assert '<input type="hidden" name="next" value="/ledger/shop?a=1" />' in wrong.text
        assert client.post("/login", data={"password": site.password}).status_code == 303


def test_what_is_no_form_of_the_login_page_is_a_wrong_password(site: Served) -> None:
    with site.client(logged_in=False) as client:
        fields = {f"field{number}": "1" for number in range(9)}
        assert client.post("/login", data={"password": site.password, **fields}).status_code == 403
        assert client.post("/login", content=b"\xff" * 100_000).status_code == 403


def test_a_login_leads_to_a_page_with_a_long_filter(site: Served) -> None:
    next_ = f"/gold/shop/sales?key.channel={'%C3%A9' * 500}"
    with site.client(logged_in=False) as client:
        answer = client.post("/login", data={"password": site.password, "next": next_})
        assert answer.headers["Location"] == next_


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_another_name_for_this_address_is_refused(site: Served, host: str) -> None:
    with site.client() as client:
        for path in ("/", "/login", GOLD):
            assert client.get(path, headers={"Host": host}).status_code == 400


@pytest.mark.slow
@pytest.mark.usefixtures("time_stands_still")
def test_guesses_are_slowed_down(tmp_path: Path) -> None:
    shop = Charted(tmp_path)
    with served(shop.file, shop.root) as site, site.client(logged_in=False) as client:
        tried = [client.post("/login", data={"password": f"guess {n}"}) for n in range(7)]
        assert [answer.status_code for answer in tried] == [403] * 5 + [429] * 2
        refused = client.post("/login", data={"password": site.password})
        assert refused.status_code == 429, "the right password has to wait, too"
        assert int(refused.headers["Retry-After"]) >= 1


@pytest.mark.slow
def test_the_password_is_kept_as_a_hash(tmp_path: Path) -> None:
    shop = Charted(tmp_path)
    with served(shop.file, shop.root) as site:
        kept = {file.name: file for file in (tmp_path / "lake/_dashboard").iterdir()}
        assert set(kept) == {"password.json", "password.json.lock"}
        assert not any(site.password in file.read_text() for file in kept.values())
        assert set(json.loads(kept["password.json"].read_text())) == {"salt", "scrypt"}
        assert {file.stat().st_mode & 0o777 for file in kept.values()} == {0o600}


@pytest.mark.slow
def test_behind_a_proxy(tmp_path: Path) -> None:
    shop = Charted(tmp_path)
    shop.sell(final=[sale(0, "app", 4, "40.00")])
    with served(shop.file, shop.root, base="/head/gate") as site:
        with site.client() as client:
            page = client.get("/")
            assert page.status_code == 200
            linked = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
            assert linked
            assert all(path.startswith("/head/gate/") for path in linked)
            assert client.get(GOLD).json()["n"] == 1
        with httpx.Client(trust_env=False) as other:
            bare = f"http://127.0.0.1:{site.settings.port}"
            assert other.get(f"{bare}/").status_code == 404
            to = other.get(f"{site.address}/gold/shop/sales?by=channel").headers["Location"]
            assert to == "/head/gate/login?next=/head/gate/gold/shop/sales%3Fby%3Dchannel"


def test_an_answer_is_sent_once(site: Served) -> None:
    with site.client() as client:
        first = client.get(f"{GOLD}/series")
        again = client.get(f"{GOLD}/series", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/gold/nothing/sales", 404, "there is no pipeline nothing here"),
        ("/api/gold/shop/nothing", 404, "shop has no gold table nothing"),
        (f"{GOLD}/series?figure=nothing", 400, "has no number called"),
        (f"{GOLD}/rows?sort=nothing", 400, "has no column 'nothing'"),
        (f"{GOLD}/rows.exe", 400, "no file of the format"),
        ("/api/board/nothing", 404, "there is no dashboard nothing here"),
        ("/static/..%2fpage.html", 404, "Not Found"),
        ("/static/page.html", 404, "there is no such file"),
    ],
)
def test_errors_say_what_is_wrong(site: Served, path: str, status: int, says: str) -> None:
    with site.client() as client:
        answer = client.get(path)
    assert answer.status_code == status
    assert says in answer.json()["error"]["message"]


def test_a_page_beyond_the_last_one_is_empty(site: Served) -> None:
    with site.client() as client:
        for path in (f"{GOLD}/rows", "/api/quarantine/shop"):
            answers = [client.get(f"{path}?page={page}&size=25") for page in (2_001, 10**9)]
            assert [(each.status_code, each.json()["cells"]) for each in answers] == [(200, [])] * 2


def test_markup_is_no_markup(site: Served) -> None:
    with site.client() as client:
        answer = client.get(f"{GOLD}/rows")
    assert "<b>" in answer.text
    assert answer.headers["Content-Type"] == "application/json"


def test_files_are_downloaded(site: Served) -> None:
    with site.client() as client:
        found = client.get(f"{GOLD}/rows.csv?key.channel=app")
    assert found.headers["Content-Disposition"] == 'attachment; filename="shop.sales.csv"'
    assert found.text.count("\n") == 2


def test_a_download_leaves_no_file(shop: Charted, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a download ends, its file is already deleted when the first byte is sent."""
    folder = shop.folder / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": f"{GOLD}/rows.csv",
        "query_string": b"",
    }
    scope |= {"headers": [], SCOPE: Context({"shop": shop.shown()}, (), "")}
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)
        assert list(folder.iterdir()) == []

    asyncio.run(dashboard_app()(scope, receive, send))
    assert sent[0]["status"] == 200
    content = b"".join(part.get("body", b"") for part in sent[1:])
    assert dict(sent[0]["headers"])[b"content-length"] == str(len(content)).encode()
    assert content.count(b"\n") == 6


def test_the_root_path_is_checked(tmp_path: Path) -> None:
    from headgate.insight.dashboard.errors import DashboardError
    from headgate.insight.dashboard.server.serving import checked_base
    from headgate.machine.loopback import is_loopback

    assert [checked_base(each) for each in ("", "/", "a/b/", "/a")] == ["", "", "/a/b", "/a"]
    for wrong in ("/a b", '/"', "/a//b", "/../x", "/é"):
        with pytest.raises(DashboardError):
            checked_base(wrong)
    hosts = ("127.0.0.1", "127.8.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "example")
    assert [is_loopback(each) for each in hosts] == [True] * 4 + [False] * 3
    with pytest.raises(PasswordFileError, match="hash cannot be read"):
        application(DashboardSettings([], str(tmp_path), "127.0.0.1", 1, keep=tmp_path), Desk())
