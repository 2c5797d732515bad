"""The pages: one document, which scripts fill, and its files."""

from __future__ import annotations

from html import escape
from importlib import resources

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from headgate.insight.dashboard.server.context import Context, context_of

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
