"""Reads and serves metrics beside other work, which never waits for them nor fails because of
them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from headgate import exit_codes
from headgate.commands import shell_command
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError, cause_of
from headgate.insight.metrics import otlp
from headgate.insight.metrics.collector import Collector
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.server import MetricsServer, token_of
from headgate.lake.storage.layout import Layout
from headgate.machine.loopback import http_address

TRY_AGAIN = 15.0  # seconds after the port was not free
ENDS_WITHIN = 2.0  # seconds that a run waits at its end for the reading thread

Say = Callable[[str], None]


@dataclass(frozen=True)
class Address:
    """Where to listen. ``token`` is what clients must send; None if they need none."""

    host: str
    port: int
    token: str | None = None

    def __str__(self) -> str:
        return http_address(self.host, self.port, "/metrics")


@contextmanager
def metrics_served(declared: Pipeline, layout: Layout, say: Say) -> Iterator[None]:
    """Serve the metrics of a pipeline as its declaration says, until the block ends.

    If the port is not free, ``say`` is called with a message, and the port is tried again later.
    Raises TokenFileError before the block begins.
    """
    settings = declared.metrics
    if settings is None:
        yield
        return
    address = None
    if settings.port is not None:
        address = Address(settings.host, settings.port, token_of(settings.token_file))
    histograms = Histograms()
    reading = PipelineReading(declared, layout, histograms)
    collector = Collector(histograms, lambda: (reading,))
    with collected(collector, address, say):
        yield


@contextmanager
def collected(
    collector: Collector, address: Address | None, say: Say, *, must_listen: bool = False
) -> Iterator[None]:
    """Keep ``collector`` fresh, serve it at ``address`` and by OTLP, until the block ends. With
    ``must_listen``, raises NotServedError if the port is not free."""
    ended, service = threading.Event(), _Service(collector, address, say)
    if must_listen:
        collector.refresh()
        service.listen()
    thread = threading.Thread(
        target=collector.keep, args=(ended, service.keep), name="metrics", daemon=True
    )
    export = _export(collector, say)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(ENDS_WITHIN)
        service.close()
        if export is not None:
            export.close()


class NotServedError(HeadgateError, code=exit_codes.USAGE):
    """The server cannot listen at its address."""


class _Service:
    """Listens as soon as the port is free."""

    def __init__(self, collector: Collector, address: Address | None, say: Say) -> None:
        self._collector, self._address, self._say = collector, address, say
        self._server: MetricsServer | None = None
        self._due, self._said = 0.0, ""
        self._lock = threading.Lock()
        self._is_closed = False

    def keep(self) -> None:
        with self._lock:
            if self._address is None or self._server is not None or self._is_closed:
                return
            if time.monotonic() < self._due:
                return
            self._due = time.monotonic() + TRY_AGAIN
            try:
                self.listen()
            except NotServedError as error:
                self._tell(error.message)

    def listen(self) -> None:
        """Raises NotServedError."""
        assert self._address is not None
        at = self._address
        try:
            self._server = MetricsServer(at.host, at.port, self._collector.text, at.token)
        except (OSError, OverflowError) as error:
            raise NotServedError(
                f"metrics are not served at {at}: {cause_of(error)}",
                remedy="take another port: " + shell_command("metrics", "--port", str(at.port + 1)),
            ) from error
        self._tell(f"metrics at {replace(at, port=self._server.port)}")

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._server is not None:
                self._server.close()

    def _tell(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._say(text)


def _export(collector: Collector, say: Say) -> otlp.OtlpExport | None:
    if why := otlp.why_not(os.environ):
        say(why)
        return None
    if not otlp.is_asked(os.environ):
        return None
    try:
        return otlp.OtlpExport(collector)
    except Exception as error:
        say(f"metrics are not sent by OTLP: {error}")
        return None
