"""Ports of this machine's loopback."""

from __future__ import annotations

import random
import socket

from headgate.broker.errors import PortTakenError
from headgate.broker.properties import HOST

# Below those that systems lend to clients: a client that keeps calling a broker which is down could
# be lent the broker's own port, and would then hold it.
_CHOICE = range(20_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on now. Another process may still be faster."""
    for port in random.sample(_CHOICE, k=len(_CHOICE)):
        if refusal(port) is None:
            return port
    raise PortTakenError(0, "no port is free")


def refusal(port: int) -> OSError | None:
    """Why nobody can listen on ``port`` now; None where one can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As the JVM does: connections that have just ended are no obstacle, a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error
    return None


def require_free(port: int) -> None:
    """Raises PortTakenError."""
    error = refusal(port)
    if isinstance(error, PermissionError):
        raise PortTakenError(port, "this user may not listen there")
    if error is not None:
        raise PortTakenError(port)
