"""The names by which browsers may call the server.

A page of another site may give its own name this address, and would then read the answers as if
they were its own. Its requests have that name as their host.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:]+)(:[0-9]*)?")


def host_of(header: str) -> str | None:
    """The host in a header: a name in small letters, or an address; None if it is neither."""
    found = _HOST.fullmatch(header)
    return _plain(found[1].strip("[]")) if found else None


class HostCheck:
    """Refuses what is asked under a host that is none of ``hosts``."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app, self._hosts = app, frozenset(map(_plain, hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_ours = host_of(Headers(scope=scope).get("host", "")) in self._hosts
        answer = self._app if is_ours else PlainTextResponse("Invalid host header", 400)
        await answer(scope, receive, send)


def _plain(host: str) -> str:
    """An IPv6 address has many texts, and a browser sends the shortest."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host.lower()
