"""Headers of every response."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def headers(frames: str) -> Mapping[str, str]:
    """``frames`` says who may show the pages in a frame: 'none' or 'self'."""
    return {
        # The pages show text from events: none of it may become a script, a style or a link.
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
        f"frame-ancestors {frames}",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


class Headers:
    """Adds the headers to what an application sends, errors too."""

    def __init__(self, app: ASGIApp, frames: str = "'none'") -> None:
        self.app, self._headers = app, headers(frames)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    found.setdefault(name, value)
                found.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with)
