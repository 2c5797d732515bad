"""Metrics beside a run: the run never waits for them, nor fails because of them."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.declaration.model import MetricsSettings
from headgate.insight.metrics import collector as collectors
from headgate.insight.metrics import serving
from headgate.insight.metrics.collector import Collector
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.serving import Address, NotServedError, collected, metrics_served
from headgate.machine.process_tree.ports import free_port
from tests.support.waiting import wait_until
from tests.unit.insight.ledger.conftest import Lake, fill


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "TRY_AGAIN", 0.2)
    monkeypatch.setattr(collectors, "EVERY", 0.05)


def get(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def served_by(place: WatchedPipeline, port: int | None) -> WatchedPipeline:
    settings = MetricsSettings(port, "127.0.0.1", None, None)
    return replace(place, declared=replace(place.declared, metrics=settings))


def is_served(port: int, wanted: str) -> Callable[[], bool]:
    def is_there() -> bool:
        try:
            return wanted in get(port)
        except OSError:
            return False

    return is_there


@pytest.mark.slow
def test_a_run_serves_what_its_declaration_says(place: WatchedPipeline, lake: Lake) -> None:
    fill(lake)
    port, said = free_port(), list[str]()
    at = served_by(place, port)
    with metrics_served(at.declared, at.layout, said.append):
        wanted = 'headgate_read_records_total{pipeline="tiny",source="events"} 7.0'
        wait_until(is_served(port, wanted), "nothing is served", 20)
    assert said == [f"metrics at http://127.0.0.1:{port}/metrics"]
    with pytest.raises(OSError, match="refused"):
        get(port)


def test_without_a_port_nothing_listens(place: WatchedPipeline) -> None:
    said = list[str]()
    for at in (place, served_by(place, None)):
        with metrics_served(at.declared, at.layout, said.append):
            pass
    assert said == []


@pytest.mark.slow
def test_a_port_that_is_taken_is_told_once_and_taken_when_it_is_free(
    place: WatchedPipeline,
) -> None:
    said = list[str]()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        at = served_by(place, port)
        with metrics_served(at.declared, at.layout, said.append):
            wait_until(lambda: bool(said), "it was not told", 20)
            time.sleep(0.5)
            assert len(said) == 1
            assert "not served" in said[0]
            other.close()
            wait_until(is_served(port, "headgate_condition"), "the port was not taken over", 20)


@pytest.mark.slow
def test_of_two_drivers_the_second_takes_over(place: WatchedPipeline) -> None:
    port = free_port()
    at = served_by(place, port)
    first, second = list[str](), list[str]()
    with metrics_served(at.declared, at.layout, first.append):
        wait_until(is_served(port, "headgate_condition"), "the first does not serve", 20)
        following = metrics_served(at.declared, at.layout, second.append)
        following.__enter__()
        wait_until(lambda: len(second) == 1, "the second has not tried", 20)
    try:
        wait_until(lambda: len(second) == 2, "the second does not serve", 20)
        assert "headgate_condition" in get(port)
    finally:
        following.__exit__(None, None, None)


def test_an_error_while_reading_ends_neither_the_reading_nor_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = list[int]()

    def readings() -> tuple[PipelineReading, ...]:
        calls.append(1)
        raise RuntimeError("a bug")

    with collected(Collector(Histograms(), readings), None, lambda _: None):
        wait_until(lambda: len(calls) > 2, "it has not gone on", 20)
    assert "a bug" in caplog.text


def test_the_end_waits_for_no_reading_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "ENDS_WITHIN", 0.2)
    released = threading.Event()

    def hang() -> tuple[PipelineReading, ...]:
        released.wait(30)
        return ()

    hangs = Collector(Histograms(), hang)
    began = time.monotonic()
    with collected(hangs, None, lambda _: None):
        pass
    released.set()
    assert time.monotonic() - began < 5


def test_the_verb_needs_its_port(place: WatchedPipeline) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = Address("127.0.0.1", other.getsockname()[1])
        collector = Collector(Histograms(), lambda: ())
        with (
            pytest.raises(NotServedError, match="in use") as refused,
            collected(collector, address, lambda _: None, must_listen=True),
        ):
            pass
    assert "--port" in refused.value.remedy


def test_a_scrape_reads_no_file(place: WatchedPipeline, lake: Lake, tmp_path: Path) -> None:
    fill(lake)
    histograms = Histograms()
    reading = PipelineReading(place.declared, place.layout, histograms)
    collector = Collector(histograms, lambda: (reading,))
    collector.refresh()
    (tmp_path / "lake").rename(tmp_path / "moved")
    first = collector.text()
    assert b'headgate_read_records_total{pipeline="tiny",source="events"} 7.0' in first
    assert collector.text() is first, "a second scrape renders nothing"
    collector.refresh()
    assert collector.text() is not first
