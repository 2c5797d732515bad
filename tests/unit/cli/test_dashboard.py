"""``headgate dashboard``: what it refuses, what it checks, and a server that answers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from headgate.cli import dashboard
from headgate.cli.main import answer
from headgate.insight.dashboard import FOLDER
from headgate.insight.dashboard.login.passwords import FILE, Password, made
from tests.support.charted import Charted, sale

RIGHT = "dashboard: one\ncharts:\n  a: {kind: number, sql: SELECT sum(orders) FROM gold.sales}\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Charted:
    made = Charted(tmp_path)
    made.sell(final=[sale(0, "app", 4, "40.00")])
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.slow
def test_dashboards_are_checked(shop: Charted, capsys: pytest.CaptureFixture[str]) -> None:
    shop.board(RIGHT)
    assert answer(["dashboard", "--check"]) == 0
    assert "no mistake in: one" in capsys.readouterr().out
    shop.board(RIGHT.replace("orders", "ordres"))
    assert answer(["dashboard", "shop", "--check"]) == 2
    said = capsys.readouterr().err
    assert 'board.yml:3: charts.a.sql: Binder Error: Referenced column "ordres"' in said
    assert "headgate dashboard --check" in said


def test_of_one_pipeline_only_its_dashboards_are_checked(
    shop: Charted, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.board(RIGHT)
    declared, board = Path("pipelines/shop.yml").read_text(), Path("dashboards/board.yml")
    other = declared.replace("pipeline: shop", "pipeline: clicks").replace("  sales:", "  visits:")
    Path("pipelines/clicks.yml").write_text(other)
    wrong = RIGHT.replace("dashboard: one", "dashboard: two").replace("orders", "ordres")
    for sql in ("clicks.gold.visits", "gold.visits"):
        Path("dashboards/clicks.yml").write_text(wrong.replace("gold.sales", sql))
        assert answer(["dashboard", "clicks", "--check"]) == 2
        assert answer(["dashboard", "shop", "--check"]) == 0
        assert capsys.readouterr().out == "no mistake in: one\n"
    Path("pipelines/clicks.yml").write_text("pipeline: clicks\nsources: 3\n")
    Path("dashboards/clicks.yml").write_text(wrong.replace("gold.sales", "clicks.gold.visits"))
    assert answer(["dashboard", "shop", "--check"]) == 0
    board.write_text(RIGHT.replace("gold.sales", "shpo.gold.sales"))
    assert answer(["dashboard", "shop", "--check"]) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--no-login", "--host", "0.0.0.0"], "is served on loopback alone"),
        (["--base-path", "/a b"], "is not a path"),
        (["--host", "999.1.1.1"], "headgate dashboard --host 127.0.0.1"),
        (["nothing"], "nothing"),
    ],
)
def test_what_is_refused(
    shop: Charted, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    assert answer(["dashboard", *options, "--root", shop.root]) != 0
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--no-login", "--host", "0.0.0.0"], ["--base-path", "/a b"]])
def test_a_remedy_keeps_the_root(
    shop: Charted, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    elsewhere = f"{shop.root}-2"
    assert answer(["dashboard", *options, "--root", elsewhere]) != 0
    err = capsys.readouterr().err
    assert re.search(rf"headgate dashboard {options[-2]} \S+ --root {elsewhere}$", err, re.M)


def test_its_help_shows_no_default_that_is_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["dashboard", "--help"]) == 0
    assert "<class" not in capsys.readouterr().out


def test_a_port_that_is_taken_costs_no_password(
    shop: Charted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "nice", lambda _: None)
    keep = Path(shop.root) / FOLDER
    shown = made(keep)
    assert shown is not None
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert answer(["dashboard", "--new-password", "--port", port]) != 0
        assert "cannot listen" in capsys.readouterr().err
        assert Password(keep).is_right(shown)
        (keep / FILE).unlink()
        assert answer(["dashboard", "--port", port]) != 0
    assert made(keep) is not None, "there was none before"


@pytest.mark.parametrize("before", [False, True])
def test_beside_airflow_it_makes_no_password(
    shop: Charted, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """Its output is a log."""
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(dashboard, "serve", lambda _, started: started())
    keep = Path(shop.root) / FOLDER
    assert made(keep)
    if not before:
        (keep / FILE).unlink()
    assert answer(["dashboard", "--port", "0", "--awaits-password"]) == 0
    assert (made(keep) is None) == before


@pytest.mark.slow
def test_it_answers_until_it_is_ended(shop: Charted) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "headgate.cli", "dashboard", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stdout is not None
        told = json.loads(started.stdout.readline())
        with httpx.Client(base_url=told["address"], trust_env=False, timeout=30) as client:
            assert client.get("api/overview").status_code == 401
            client.post("login", data={"password": told["password"]})
            assert client.get("api/gold/shop/sales").json()["rows"] == 1
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == 0
    finally:
        started.kill()
        started.wait()
    assert (shop.folder / "lake/_dashboard/password.json").exists()
