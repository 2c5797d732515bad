"""``headgate metrics``: metrics of pipelines for Prometheus, without Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli import declaration
from headgate.cli.driving import on_signals
from headgate.cli.options import DEFAULT_ROOT, Port, Root, pipeline_names
from headgate.commands import rendered
from headgate.insight.metrics.alerts import rules
from headgate.insight.metrics.collector import Collector
from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.server import token_of
from headgate.insight.metrics.serving import Address, collected
from headgate.insight.metrics.watched import Watched
from headgate.machine.loopback import is_loopback

PORT = 9464

Pipelines = Annotated[
    list[str],
    pipeline_names("Declarations' paths, or names. Default: all that are found here and have run."),
]


def metrics(
    pipelines: Pipelines,
    port: Port = PORT,
    host: Annotated[
        str, typer.Option("--host", help="Any but this machine's loopback needs --token-file.")
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Clients must send the token in it."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the metrics and end.")] = False,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Print the alert rules for Prometheus and end.")
    ] = False,
    root: Root = DEFAULT_ROOT,
) -> None:
    """Serve metrics of pipelines for Prometheus, until Ctrl-C.

    Reads the logs of tables and documents, whether drivers run or not. No JVM is started.
    """
    if alerts and once:
        raise typer.BadParameter("--once prints metrics, not rules: choose one of the two")
    if alerts:
        sys.stdout.write(rules())
        return

    histograms = Histograms()
    watched = Watched(_files(pipelines), root, histograms, only_run=not pipelines, say=_say)
    collector = Collector(histograms, watched.readings)
    if once:
        collector.refresh()
        sys.stdout.write(collector.text().decode())
        return
    _serve(collector, host, port, token_file)


def _serve(collector: Collector, host: str, port: int, token_file: Path | None) -> None:
    if not is_loopback(host) and token_file is None:
        raise typer.BadParameter(
            f"{host} can be reached from other machines: add --token-file", param_hint="--host"
        )
    address = Address(host, port, token_of(token_file))
    with on_signals() as asked, collected(collector, address, _say, must_listen=True):
        while not asked:
            time.sleep(0.2)


def _files(pipelines: list[str]) -> Callable[[], Iterable[Path]]:
    """A function that returns the declarations to watch. If none is named, each call searches
    again."""
    if pipelines:
        named = tuple(dict.fromkeys(declaration.find(name).absolute() for name in pipelines))
        return lambda: named

    def found() -> Iterable[Path]:
        by_name: dict[str, Path] = {}
        for file in declaration.declarations():
            by_name.setdefault(file.stem, file)
        return by_name.values()

    return found


def _say(text: str) -> None:
    print(rendered(text), file=sys.stderr, flush=True)
