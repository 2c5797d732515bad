"""Ports of this machine's loopback."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"

# Below the ephemeral ports: a client that retries a server which is down could get the server's own
# port as its ephemeral port.
_CHOICE = range(20_000, 32_000)


def free_port() -> int:
    """A port without a listener. Another process may still take it first."""
    return next(port for port in random.sample(_CHOICE, k=len(_CHOICE)) if refusal(port) is None)


def refusal(port: int) -> str | None:
    """Why a server cannot listen on ``port`` now; None if it can."""
    with socket.socket() as probe:
        # Connections that have just ended do not prevent listening, but a listener does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            return "this user may not listen there"
        except OSError:
            return "another process listens there"
    return None
