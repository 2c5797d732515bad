"""Starts the development broker, and ends a broker of another process."""

from __future__ import annotations

import base64
import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.machine.jars import LockSet, cached_jars
from headgate.machine.jars import java as javas
from headgate.machine.process_tree import owner, presence
from headgate.machine.process_tree.order import Child, Order
from headgate.machine.process_tree.owner import ProcessTree
from headgate.machine.process_tree.ports import HOST, free_port, refusal
from headgate.setup.broker import client
from headgate.setup.broker.errors import (
    HEAP_MB,
    BrokerError,
    FolderError,
    FolderInUseError,
    PortTakenError,
)
from headgate.setup.broker.failures import failure
from headgate.setup.broker.properties import DATA, LOG4J, server_properties

UP_WITHIN = 60.0  # seconds, on a busy machine; 4 on an idle one

_CLOSES_WITHIN = 10.0  # seconds that a JVM has to close its files
_META = f"{DATA}/meta.properties"
_LOG4J_FILE = "log4j2.properties"
_SERVER_FILE = "server.properties"
_TRIES = 3  # with other ports, if none was given


@dataclass(frozen=True)
class Presence:
    """A broker that runs, or has just ended. ``pid`` is that of its JVM, or of its guard before the
    JVM starts."""

    servers: str
    pid: int


def running(folder: Path) -> Presence | None:
    """The broker that runs on ``folder``, whichever process started it; None if there is none."""
    return _broker(presence.running(folder))


def end(folder: Path) -> Presence | None:
    """End the broker that runs on ``folder``, and wait; None if there is none."""
    return _broker(presence.end(folder))


def _broker(found: presence.Presence | None) -> Presence | None:
    if found is None:
        return None
    return Presence(found.told["servers"], found.children.get("jvm", found.guard))


@dataclass
class Broker:
    """A broker that was started here. It ends with this process, unless it is detached. Clients
    connect to ``servers``."""

    folder: Path
    port: int
    _tree: ProcessTree = field(repr=False)

    @property
    def servers(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The pid of the JVM; None if the broker has ended."""
        found = running(self.folder) if self.is_alive else None
        return found.pid if found else None

    @property
    def is_alive(self) -> bool:
        return self._tree.code is None

    @property
    def ended_well(self) -> bool:
        """Whether it has ended on request."""
        return self._tree.code == 0

    def stop(self) -> None:
        """End it, and wait. Does nothing if it has ended."""
        self._tree.end()

    def failure(self) -> BrokerError:
        """Why it has ended without a request."""
        return failure(self.folder, self.port, self._tree.code)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()


def start(
    folder: Path,
    port: int = 0,
    *,
    properties: Mapping[str, str] | None = None,
    detached: bool = False,
) -> Broker:
    """Start a single-node broker on 127.0.0.1 with its data in ``folder``. Port 0 is any free port.

    Returns when it answers. ``properties`` override the defaults. Needs Java and the broker's jars,
    which are not fetched here. Raises HeadgateError, mostly a BrokerError, with the broker's last
    output; then nothing is left running.
    """
    folder = folder.absolute()
    jars = cached_jars(LockSet.KAFKA)
    _require_writable(folder)
    if (other := running(folder)) is not None:
        raise FolderInUseError(folder, other.pid)
    if port and (why := refusal(port)) is not None:
        raise PortTakenError(port, why)
    for tries_left in reversed(range(_TRIES)):
        chosen = port or free_port()
        try:
            order = _order(folder, chosen, jars, properties or {}, owned=not detached)
            return Broker(folder, chosen, _launch(folder, chosen, order))
        except PortTakenError as error:
            # Another process took the port: choose another, unless the port was given.
            if error.port == port or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def _launch(folder: Path, port: int, order: Order) -> ProcessTree:
    asked = client.admin(f"{HOST}:{port}")

    def is_up() -> bool:
        """Whether the cluster of this folder answers on its port."""
        answer = client.cluster_id(asked, timeout=0.5)
        return answer is not None and answer == _id(folder)

    return owner.start(order, is_up, lambda code: failure(folder, port, code), UP_WITHIN)


def _order(
    folder: Path, port: int, jars: Sequence[Path], properties: Mapping[str, str], owned: bool
) -> Order:
    return Order(
        folder=str(folder),
        work=str(folder),
        environment={**os.environ, "CLASSPATH": os.pathsep.join(map(str, jars))},
        files={
            _SERVER_FILE: server_properties(port, free_port(), properties),
            _LOG4J_FILE: LOG4J,
        },
        prepare=None if (folder / _META).exists() else _format(),
        children={"jvm": Child(_serve(), ended="all end")},
        tell={"servers": f"{HOST}:{port}"},
        graces=(_CLOSES_WITHIN, 0.0),
        owned=owned,
    )


def _id(folder: Path) -> str | None:
    """The cluster id that the data was formatted with."""
    with suppress(FileNotFoundError):
        for line in (folder / _META).read_text(encoding="utf-8").splitlines():
            if line.startswith("cluster.id="):
                return line.partition("=")[2].replace("\\", "")
    return None


def _format() -> Sequence[str]:
    new = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    tool = ("kafka.tools.StorageTool", "format", "--ignore-formatted")
    return [str(javas.executable()), "-Xmx128m", *tool, f"--cluster-id={new}", "-c", _SERVER_FILE]


def _serve() -> Sequence[str]:
    return [
        *(str(javas.executable()), f"-Xmx{HEAP_MB}m", "-Xms64m", "-XX:+UseSerialGC"),
        # Only the quick compiler (C1): a start takes 2 CPU-seconds less, later load takes no more.
        "-XX:TieredStopAtLevel=1",
        *("-XX:+ExitOnOutOfMemoryError", "-XX:ErrorFile=logs/crash.log"),
        *(f"-Dlog4j2.configurationFile={_LOG4J_FILE}", "kafka.Kafka", _SERVER_FILE),
    ]


def _require_writable(folder: Path) -> None:
    """Create the folder if needed. Raises FolderError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise FolderError(
            f"the broker's folder {folder} cannot be written: {error.strerror}",
            "Choose another folder: --root <folder>",
        ) from error
