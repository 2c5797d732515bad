"""The pages: one document, which scripts fill, its files, and the headers of every response."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.insight.dashboard.server.context import Context, context_of


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


STATIC = resources.files("headgate.insight.dashboard") / "static"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}


async def page(request: Request) -> Response:
    """The document of every page: its script reads the address to choose the content."""
    return HTMLResponse(document("page.html", context_of(request)))


async def file(request: Request) -> Response:
    context_of(request)
    return static(request.path_params["name"])


def static(name: str) -> Response:
    """A file of the folder ``static``. Raises HTTPException 404."""
    kind = _TYPES.get(name.rpartition(".")[2])
    for folder in (STATIC, STATIC / "vendor"):
        if kind is not None and "/" not in name and (folder / name).is_file():
            content = (folder / name).read_bytes()
            return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})
    raise HTTPException(404, "there is no such file")


def document(name: str, context: Context, **more: str) -> str:
    """A document of ``static``, filled with the values of this installation."""
    text = (STATIC / name).read_text(encoding="utf-8")
    title, address = context.home or ("", "")
    values = {
        "base": context.base,
        "login": "yes" if context.has_login else "no",
        "home-title": title,
        "home-address": address,
        **more,
    }
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", escape(value, quote=True))
    return text
