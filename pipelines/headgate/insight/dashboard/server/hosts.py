"""The names by which browsers may call the server.

Another site may let its own name resolve to this server's address (DNS rebinding). Its pages could
then read the answers. The host of their requests is that site's name, so they can be refused.
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
    """The host in a header: a name in lower case, or an address; None if it is neither."""
    found = _HOST.fullmatch(header)
    return _plain(found[1].strip("[]")) if found else None


class HostCheck:
    """Refuses requests whose host is not one of ``hosts``."""

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
