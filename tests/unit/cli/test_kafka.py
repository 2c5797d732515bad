"""The verbs of `kafka` as far as they need no broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate.cli.kafka import _run
from headgate.cli.main import answer
from headgate.setup.broker import consuming, running
from headgate.setup.broker.client import NotUpError
from tests.unit.cli.conftest import Ask, last_object


def test_without_a_broker_the_next_command_is_up(ask: Ask, tmp_path: Path) -> None:
    for verb in (("topics",), ("produce", "bids"), ("consume", "bids")):
        code, out, err = ask("kafka", *verb, "--root", tmp_path / "other")
        assert (code, out) == (1, "")
        assert f"no broker runs in {tmp_path}/other/_kafka" in err
        assert f"headgate kafka up --root {tmp_path}/other" in err


def test_down_where_nothing_runs_is_fine(ask: Ask) -> None:
    assert ask("kafka", "down")[0] == 0
    assert last_object(ask("kafka", "down", "--json")[1])["stopped"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("topics", "--partitions", "2"), "belongs to --create"),
        (("topics", "--create", "x", "--partitions", "0"), "--partitions"),
        (("consume", "bids", "--from", "-1", "--servers", "x:1"), "earliest, latest, or an offset"),
        (("consume", "bids", "--max", "0"), "--max"),
        (("up", "--port", "65536"), "--port"),
        (("up", "--root", "s3://lake"), "is not a folder of this machine"),
        (("produce", "bids", "nowhere.json", "--servers", "x:1"), "nowhere.json cannot be read"),
    ],
)
def test_a_wrong_command_line_is_2(ask: Ask, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = ask("kafka", *arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_up_without_java_leads_to_the_doctor(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = ask("kafka", "up")
    assert (code, out) == (8, "")
    assert "Java: none on PATH" in err


def test_up_says_what_it_fetches_and_what_to_do_offline(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headgate.machine.jars import ivy

    monkeypatch.setenv("HEADGATE_JARS", str(tmp_path / "jars"))
    monkeypatch.setattr(ivy, "_run_ivy", lambda *_: "UnknownHostException: no network")
    code, _, err = ask("kafka", "up")
    assert code == 1
    assert "fetching 46 jars of the broker" in err
    assert "no network" in err
    assert "Check the network" in err
    assert not (tmp_path / "lake").exists()


def test_a_value_is_shown_and_never_obeyed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "\x1b[2J\x9b2J ä"

    def consume(*_: object, **__: object) -> Iterator[consuming.ConsumedRecord]:
        yield consuming.ConsumedRecord(0, 0, None, None, (), value.encode())

    monkeypatch.setattr(consuming, "consume", consume)
    assert answer(["kafka", "consume", "bids", "--servers", "x:1"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x9b" not in out
    assert "ä" in out
    assert json.loads(out)["value"] == value


@pytest.mark.parametrize("ended_well", [True, False])
def test_a_broker_in_the_foreground_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended_well: bool
) -> None:
    failure = NotUpError("was killed", [], tmp_path)
    broker = SimpleNamespace(servers="127.0.0.1:1", pid=7, is_alive=False, ended_well=ended_well)
    broker.failure = lambda: failure
    monkeypatch.setattr(running, "start", lambda *_: nullcontext(broker))
    with nullcontext() if ended_well else pytest.raises(NotUpError):
        _run(tmp_path, 0, foreground=True, root="lake", json=False)
