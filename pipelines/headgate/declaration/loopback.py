"""Which hosts are this machine."""

from __future__ import annotations

from ipaddress import ip_address

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine can reach a server that listens at ``host``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
