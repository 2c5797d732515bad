"""Ports of this machine's loopback for an Airflow."""

from __future__ import annotations

import socket

from headgate.commands import ROOT, shell_command
from headgate.standalone.errors import AskedWrongError
from headgate.standalone.settings import Ports

WEB = 8080


def chosen(web: int) -> Ports:
    """``web`` as asked for, 0 for any that is free. Raises AskedWrongError where it is taken."""
    if web:
        _require(web)
    return Ports(web or _free(), _free(), _free())


def _require(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise AskedWrongError(
                f"port {port} cannot be had: {error.strerror}",
                f"choose another one: {shell_command('up', ROOT, '--port', '0')}",
            ) from error


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
