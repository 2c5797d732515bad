"""The development broker: its settings, its start and end, and why a start has failed."""

from __future__ import annotations

import base64
import os
import re
import signal
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
from headgate.machine.process_tree import guard, owner, presence
from headgate.machine.process_tree.guard import Child, Order
from headgate.machine.process_tree.owner import ProcessTree
from headgate.machine.process_tree.ports import HOST, free_port, refusal
from headgate.setup.broker import client
from headgate.setup.broker.client import (
    HEAP_MB,
    BrokerError,
    FolderError,
    FolderInUseError,
    NotEnoughMemoryError,
    NotUpError,
    PortTakenError,
)

DATA = "data"
SERVER_LOG = "logs/server.log"

# One node: one replica of everything, small internal topics, no delay for more group members.
_ONE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # Relative to the broker's working directory: a comma in its path would separate two paths.
    "log.dirs": DATA,
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Retention uses the records' timestamps: it would delete events of last year within minutes.
    "log.retention.ms": "-1",
    # A killed broker cannot register again before its session times out: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The default is a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

LOG4J = f"""\
status = error
shutdownHook = disable
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.settings.name = org.apache.kafka.common.config.AbstractConfig
logger.settings.level = warn
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {SERVER_LOG}
appender.file.filePattern = {SERVER_LOG}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}}{{UTC}}Z %p %m (%c{{1}})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def server_properties(port: int, controller_port: int, more: Mapping[str, str]) -> str:
    """``server.properties``. ``more`` overrides the defaults; its values are not escaped."""
    every = {
        **_ONE_NODE,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        # Set here because the port changes with each start; `format --standalone` would write it
        # into the data.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in sorted(every.items()))


_LINES_SHOWN = 8
_WIDE = 300
_NO_MEMORY = re.compile(
    r"insufficient memory|Cannot allocate memory|Could not reserve enough space|OutOfMemoryError"
    r"|errno=12|exceeds? the maximum representable size|unable to create native thread"
)
_NO_PORT = re.compile(r"failed to bind to \S*?:(?P<port>\d+)|Address already in use")
_RELEVANT = re.compile(r" (WARN|ERROR|FATAL) |^Caused by: |^\S*(Exception|Error)\b")
_NOISE = re.compile(r"\s*$|\s+at ")  # blank, or a frame of a stack
_HOW = {
    None: "did not answer in time",
    guard.NOT_PREPARED: "could not format its folder",
    128 + signal.SIGKILL: "was killed, by somebody or by the system for lack of memory",
}


def failure(folder: Path, port: int, code: int | None) -> BrokerError:
    """The error for a failed start. ``code`` is the guard's exit code, None if it still runs."""
    if code == guard.IN_USE:
        other = presence.running(folder)
        return FolderInUseError(folder, other.guard if other else None)
    output = last_lines(folder / "logs")
    text = "\n".join(output)
    if code is not None and (match := _NO_PORT.search(text)) is not None:
        return PortTakenError(int(match["port"] or port))
    if code is not None and _NO_MEMORY.search(text):
        return NotEnoughMemoryError(output)
    return NotUpError(_HOW.get(code, f"ended with exit code {code}"), output, folder / "logs")


def last_lines(logs: Path) -> list[str]:
    """The last lines of the JVMs' output, then the last warnings and errors of the broker's log."""
    names = (f"{guard.PREPARE}.log", "jvm.log")
    printed = [line for name in names for line in _lines(logs / name) if not _NOISE.match(line)]
    logged = [line for line in _lines(logs / Path(SERVER_LOG).name) if _RELEVANT.search(line)]
    return [line.strip()[:_WIDE] for line in (*printed[-_LINES_SHOWN:], *logged[-_LINES_SHOWN:])]


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


UP_WITHIN = 60.0  # seconds, on a busy machine; 4 on an idle one

_CLOSES_WITHIN = 10.0  # seconds that a JVM has to close its files
_META = f"{DATA}/meta.properties"
_LOG4J_FILE = "log4j2.properties"
_SERVER_FILE = "server.properties"
_TRIES = 3  # with other ports, if none was given


@dataclass(frozen=True)
class RunningBroker:
    """A broker that runs, or has just ended. ``pid`` is that of its JVM, or of its guard before the
    JVM starts."""

    servers: str
    pid: int


def running(folder: Path) -> RunningBroker | None:
    """The broker that runs on ``folder``, whichever process started it; None if there is none."""
    return _broker(presence.running(folder))


def end(folder: Path) -> RunningBroker | None:
    """End the broker that runs on ``folder``, and wait; None if there is none."""
    return _broker(presence.end(folder))


def _broker(found: presence.Presence | None) -> RunningBroker | None:
    if found is None:
        return None
    return RunningBroker(found.told["servers"], found.children.get("jvm", found.guard))


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
