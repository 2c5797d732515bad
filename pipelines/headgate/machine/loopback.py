"""Hosts at which servers listen."""

from __future__ import annotations

from ipaddress import ip_address

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine can reach a server that listens at ``host``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def http_address(host: str, port: int, path: str) -> str:
    """The address of a server; ``path`` begins with a slash."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
