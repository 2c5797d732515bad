"""Serves the dashboard without Airflow until it is stopped; by default on loopback, with a
login."""

from __future__ import annotations

import errno
import logging
import re
import socket
from asyncio import BaseTransport, TimerHandle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.commands import anywhere, shell_command
from headgate.declaration.files import is_preferred, project_folder
from headgate.errors import HeadgateError
from headgate.insight.dashboard.errors import DashboardError
from headgate.insight.dashboard.login.passwords import Password
from headgate.insight.dashboard.reading.shown import Declarations, Shown
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.context import Context
from headgate.insight.dashboard.server.login import Login, RequireLogin
from headgate.insight.dashboard.server.questions import Desk
from headgate.machine.loopback import http_address, is_loopback

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(:[0-9]*)?")


def host_of(header: str) -> str | None:
    """The host in a header: a name in lower case, or an address; None if it is neither."""
    found = _HOST.fullmatch(header)
    return _plain(found[1].strip("[]")) if found else None


class HostCheck:
    """Refuses requests whose host is not one of ``hosts``.

    Another site may let its own name resolve to this server's address (DNS rebinding). Its pages
    could then read the answers. The host of their requests is that site's name.
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app, self._hosts = app, frozenset(map(_plain, hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = host_of(Headers(scope=scope).get("host", "")) in self._hosts
        answer = self._app if is_ours else PlainTextResponse("Invalid host header", 400)
        await answer(scope, receive, send)


def _plain(host: str) -> str:
    """An IPv6 address can be written in many ways; a browser sends the shortest."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host.lower()


ASKS_WITHIN = 10.0  # seconds


class PromptProtocol(H11Protocol):
    """Cuts a connection whose request, with its body, is not complete in time: connections are few,
    and clients that only hold them would keep all others out."""

    _asks_within = ASKS_WITHIN
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Set or remove the deadline of a request. Further bytes do not move it."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._asks_within, self.transport.abort)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


LOOPBACK = ("127.0.0.1", "localhost")
_ENDS_WITHIN = 2  # seconds, for requests that run


@dataclass(frozen=True)
class DashboardSettings:
    """``files`` are declarations; their tables are under ``root``. ``base`` is the path behind a
    proxy, empty without one. ``hosts`` are further names by which browsers may call the server.
    ``keep`` is the folder of the password's hash; None for no login."""

    files: Sequence[Path]
    root: str
    host: str
    port: int
    base: str = ""
    hosts: Sequence[str] = ()
    keep: Path | None = None
    show_values: bool = False

    @property
    def address(self) -> str:
        return http_address(self.host, self.port, f"{self.base}/")


def checked_base(base: str) -> str:
    """A path such as ``/headgate``, without a slash at its end. Raises DashboardError."""
    plain = all(c.isascii() and (c.isalnum() or c in "-._~/") for c in base)
    if base.strip("/") == "":
        return ""
    if not plain or "//" in base or ".." in base:
        raise DashboardError(
            f"{base!r} is not a path",
            remedy=f"such as: {shell_command('dashboard', '--base-path', '/headgate')}",
        )
    return f"/{base.strip('/')}"


def application(settings: DashboardSettings, desk: Desk) -> ASGIApp:
    """The whole application. Raises PasswordFileError; DeclarationError if no declaration is valid.
    If some are, the page shows the problems of the others."""
    declarations = Declarations()
    shown, _ = _shown(settings, declarations)
    for file in settings.files if not shown else ():
        declarations.shown(file, settings.root)
    login = Login(
        _contexts(settings, declarations),
        Password(settings.keep) if settings.keep is not None else None,
        cookie=f"headgate_{settings.port}",
    )
    inner = dashboard_app(
        desk, Commits(), more=login.routes(), middleware=[Middleware(RequireLogin, login=login)]
    )
    mounted = Starlette(routes=[Mount(settings.base, app=inner)]) if settings.base else inner
    return HostCheck(mounted, _hosts(settings))


def _hosts(settings: DashboardSettings) -> list[str]:
    hosts = [*LOOPBACK, settings.host, *settings.hosts]
    if is_loopback(settings.host):
        return hosts
    return [*hosts, socket.gethostname(), socket.getfqdn()]


def _contexts(settings: DashboardSettings, declarations: Declarations) -> Callable[[], Context]:
    projects = tuple(dict.fromkeys(project_folder(file) for file in settings.files))

    def context() -> Context:
        shown, problems = _shown(settings, declarations)
        return Context(
            shown,
            projects,
            settings.base,
            problems=problems,
            show_values=settings.show_values,
            has_login=settings.keep is not None,
        )

    return context


def _shown(
    settings: DashboardSettings, declarations: Declarations
) -> tuple[Mapping[str, Shown], Sequence[str]]:
    """The pipelines by name, and the problems of the others."""
    found: dict[str, Shown] = {}
    problems = []
    for file in settings.files:
        try:
            each = declarations.shown(file, settings.root)
            before = found[each.name].pipeline.file if each.name in found else None
            if is_preferred(file, before, each.name):
                found[each.name] = each
        except HeadgateError as error:
            problems.append(error.text(anywhere(file, settings.root)))
    return found, problems


def serve(settings: DashboardSettings, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM. ``started`` is called when the server accepts requests. Raises
    DashboardError if it cannot listen at the address."""
    desk = Desk()
    try:
        with _listening(settings) as listener:
            _Server(configured(settings, desk), started).run(sockets=[listener])
    finally:
        desk.charts.close()


def configured(settings: DashboardSettings, desk: Desk) -> uvicorn.Config:
    return uvicorn.Config(
        application(settings, desk),
        host=settings.host,
        port=settings.port,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        # Only behind a proxy: otherwise a client could choose the address by which its guesses are
        # counted.
        proxy_headers=bool(settings.base or settings.hosts),
        timeout_graceful_shutdown=_ENDS_WITHIN,
        http=PromptProtocol,
        ws="none",
        h11_max_incomplete_event_size=16_384,
        limit_concurrency=200,
        lifespan="off",
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._told = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._told()


def _listening(settings: DashboardSettings) -> socket.socket:
    """A socket that is bound to the address. Raises DashboardError."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        remedy = f"choose another port: {shell_command('dashboard', '--port', '0')}"
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            here = shell_command("dashboard", "--host", LOOPBACK[0])
            remedy = f"name an address of this machine: {here}"
        raise DashboardError(
            f"the dashboard cannot listen at {settings.host}:{settings.port}: {error.strerror}",
            remedy=remedy,
        ) from error
    return listener
