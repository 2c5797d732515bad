"""Serves the dashboard without Airflow until it is stopped; by default on loopback, with a
login."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.types import ASGIApp

from headgate.commands import anywhere, shell_command
from headgate.declaration.files import is_preferred, project_folder
from headgate.errors import HeadgateError
from headgate.insight.dashboard.errors import DashboardError
from headgate.insight.dashboard.login.passwords import Password
from headgate.insight.dashboard.reading.shown import Declarations, Shown
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.connections import PromptProtocol
from headgate.insight.dashboard.server.context import Context
from headgate.insight.dashboard.server.hosts import HostCheck
from headgate.insight.dashboard.server.login import Guard, Login
from headgate.insight.dashboard.server.questions import Desk
from headgate.machine.loopback import http_address, is_loopback

LOOPBACK = ("127.0.0.1", "localhost")
_ENDS_WITHIN = 2  # seconds, for requests that run


@dataclass(frozen=True)
class Settings:
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


def application(settings: Settings, desk: Desk) -> ASGIApp:
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
        desk, Commits(), more=login.routes(), middleware=[Middleware(Guard, login=login)]
    )
    mounted = Starlette(routes=[Mount(settings.base, app=inner)]) if settings.base else inner
    return HostCheck(mounted, _hosts(settings))


def _hosts(settings: Settings) -> list[str]:
    hosts = [*LOOPBACK, settings.host, *settings.hosts]
    if is_loopback(settings.host):
        return hosts
    return [*hosts, socket.gethostname(), socket.getfqdn()]


def _contexts(settings: Settings, declarations: Declarations) -> Callable[[], Context]:
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
    settings: Settings, declarations: Declarations
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


def serve(settings: Settings, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGINT or SIGTERM. ``started`` is called when the server accepts requests. Raises
    DashboardError if it cannot listen at the address."""
    desk = Desk()
    try:
        with _listening(settings) as listener:
            _Server(configured(settings, desk), started).run(sockets=[listener])
    finally:
        desk.charts.close()


def configured(settings: Settings, desk: Desk) -> uvicorn.Config:
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


def _listening(settings: Settings) -> socket.socket:
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
