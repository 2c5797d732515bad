"""Ports of this machine's loopback."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"

# Below those that systems lend to clients: a client that keeps calling a server which is down could
# be lent the server's own port, and would then hold it.
_CHOICE = range(20_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on now. Another process may still be faster."""
    return next(port for port in random.sample(_CHOICE, k=len(_CHOICE)) if refusal(port) is None)


def refusal(port: int) -> str | None:
    """Why nobody can listen on ``port`` now; None where one can."""
    with socket.socket() as probe:
        # Connections that have just ended are no obstacle, a listener is.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            return "this user may not listen there"
        except OSError:
            return "another process listens there"
    return None
