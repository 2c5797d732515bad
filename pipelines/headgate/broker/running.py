"""Starts the development broker and holds on to it."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType

from headgate.broker import client, guard, presence
from headgate.broker.errors import (
    BrokerError,
    FolderError,
    FolderInUseError,
    NoJavaError,
    PortTakenError,
)
from headgate.broker.failures import failure
from headgate.broker.ports import free_port, require_free
from headgate.broker.properties import DATA, LOG4J, Settings, server_properties
from headgate.commands import shell_command
from headgate.jars import LockSet, cached_jars
from headgate.jars import java as javas

HEAP_MB = 512
UP_WITHIN = 60.0  # seconds, on a busy machine; 4 on an idle one

_STOPS_WITHIN = 20.0  # seconds: longer than the guard waits before it kills
_OLDEST_JAVA = 17
_META = f"{DATA}/meta.properties"
_LOG4J_FILE = "log4j2.properties"
_SERVER_FILE = "server.properties"
_TRIES = 3  # with other ports, where they are ours to choose


@dataclass
class Broker:
    """A broker that was started here. It ends with this process, unless it is ``detached``.

    ``servers`` is what clients connect to, ``sasl_servers`` the same for users with a password.
    """

    folder: Path
    settings: Settings
    heap_mb: int
    detached: bool
    _guard: subprocess.Popen[bytes] = field(repr=False)

    @property
    def servers(self) -> str:
        return self.settings.servers

    @property
    def sasl_servers(self) -> str | None:
        return self.settings.sasl_servers

    @property
    def pid(self) -> int | None:
        """Of the JVM; None where it has ended."""
        found = presence.running(self.folder) if self.is_alive else None
        return found.jvm if found else None

    @property
    def is_alive(self) -> bool:
        return self._guard.poll() is None

    @property
    def ended_well(self) -> bool:
        """It has ended, as somebody asked it to."""
        return self._guard.poll() == 0

    def stop(self) -> None:
        """End it and wait until it has; nothing happens where it has ended already."""
        found = presence.running(self.folder)
        if found is not None and found.guard == self._guard.pid:
            presence.end(self.folder)
        self._reap()

    def kill(self) -> None:
        """SIGKILL, as a crash would be. What it acknowledged is still there after a restart."""
        if (pid := self.pid) is not None:
            os.kill(pid, signal.SIGKILL)
        self._reap()

    def restart(self) -> None:
        """Stop it if it runs, then start it on the same folder and ports. Blocks and raises as
        :func:`start` does."""
        self.stop()
        self.settings = replace(self.settings, controller_port=free_port())
        self._guard = _launch(self.folder, self.settings, self.heap_mb, self.detached, UP_WITHIN)

    def failure(self) -> BrokerError:
        """Why it has ended, when nobody asked it to."""
        return failure(self.folder, self.settings, self.heap_mb, self._guard.returncode)

    def _reap(self) -> None:
        self._guard.wait(_STOPS_WITHIN)
        if self._guard.stdin is not None:
            with suppress(OSError):
                self._guard.stdin.close()

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()


def start(
    folder: Path,
    port: int = 0,
    *,
    sasl_users: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    heap_mb: int = HEAP_MB,
    detached: bool = False,
    patience: float = UP_WITHIN,
) -> Broker:
    """Start a single-node broker on 127.0.0.1, with its data in ``folder``; 0 is any free port.

    Returns when it answers. ``sasl_users`` (name to password) get a second listener;
    ``properties`` win over ours. Needs Java and the broker's jars, which are not fetched here.
    Raises HeadgateError, mostly a BrokerError, with the broker's last words; then nothing is left
    running.
    """
    folder = folder.absolute()
    _require_java()
    cached_jars(LockSet.KAFKA)
    _make(folder)
    if (other := presence.running(folder)) is not None:
        raise FolderInUseError(folder, other.pid)
    if port:
        require_free(port)
    for tries_left in reversed(range(_TRIES)):
        settings = Settings(
            port=port or free_port(),
            controller_port=free_port(),
            sasl_port=free_port() if sasl_users else None,
            sasl_users=sasl_users or {},
            properties=properties or {},
        )
        try:
            launched = _launch(folder, settings, heap_mb, detached, patience)
        except PortTakenError as error:
            # Another process was faster: with a port of our choice we simply choose again.
            if error.port == port or not tries_left:
                raise
        else:
            return Broker(folder, settings, heap_mb, detached, launched)
    raise AssertionError("the last try returns or raises")


def _launch(
    folder: Path, settings: Settings, heap_mb: int, detached: bool, patience: float
) -> subprocess.Popen[bytes]:
    require_free(settings.port)
    order = {
        "folder": str(folder),
        "owned": not detached,
        "files": {_SERVER_FILE: server_properties(settings), _LOG4J_FILE: LOG4J},
        "formatted": _META,
        "format": _format(),
        "serve": _serve(heap_mb),
        "tell": {"servers": settings.servers, "sasl_servers": settings.sasl_servers},
    }
    jars = os.pathsep.join(map(str, cached_jars(LockSet.KAFKA)))
    # A session of its own: a Ctrl-C of the terminal is for the owner, who then ends the broker.
    launched = subprocess.Popen(
        [sys.executable, "-I", guard.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"CLASSPATH": jars},
        start_new_session=True,
    )
    try:
        assert launched.stdin is not None
        launched.stdin.write(json.dumps(order).encode() + b"\n")
        launched.stdin.flush()
        _await_answer(folder, settings, heap_mb, launched, patience)
    except BaseException:
        launched.terminate()
        launched.wait(_STOPS_WITHIN)
        raise
    return launched


def _await_answer(
    folder: Path,
    settings: Settings,
    heap_mb: int,
    launched: subprocess.Popen[bytes],
    patience: float,
) -> None:
    """Until the cluster of this folder, and no other, answers on its port."""
    deadline = time.monotonic() + patience
    asked = client.admin(settings.servers)
    while (answer := client.cluster_id(asked, timeout=0.5)) is None or answer != _id(folder):
        if launched.poll() is not None:
            raise failure(folder, settings, heap_mb, launched.returncode)
        if time.monotonic() > deadline:
            raise failure(folder, settings, heap_mb, None, patience)


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


def _serve(heap_mb: int) -> Sequence[str]:
    return [
        *(str(javas.executable()), f"-Xmx{heap_mb}m", "-Xms64m", "-XX:+UseSerialGC"),
        # The quick compiler alone: 2 CPU-seconds less at a start, and no more under load since.
        "-XX:TieredStopAtLevel=1",
        *("-XX:+ExitOnOutOfMemoryError", "-XX:ErrorFile=logs/crash.log"),
        *(f"-Dlog4j2.configurationFile={_LOG4J_FILE}", "kafka.Kafka", _SERVER_FILE),
    ]


def _require_java() -> None:
    found = javas.find()
    if found is None:
        raise NoJavaError(
            "Java was not found: neither JAVA_HOME nor PATH leads to it",
            f"See what to install: {shell_command('doctor')}",
        )
    if found.major is not None and found.major < _OLDEST_JAVA:
        raise NoJavaError(
            f"{found.executable} is Java {found.version}; the broker needs {_OLDEST_JAVA} or later",
            f"See what to install: {shell_command('doctor')}",
        )


def _make(folder: Path) -> None:
    """Raises FolderError where the broker could not write."""
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FolderError(
            f"the broker's folder {folder} cannot be written: {error.strerror}",
            "Choose another folder: --root <folder>",
        ) from error
