"""The login of a dashboard that is served without Airflow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from urllib.parse import parse_qs, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.insight.dashboard.login.passwords import Password
from headgate.insight.dashboard.login.sessions import LASTS, LoginSessions
from headgate.insight.dashboard.login.throttle import Throttle
from headgate.insight.dashboard.server.context import SCOPE, Context
from headgate.insight.dashboard.server.pages import document, static

LOGIN, STYLE = "/login", "/static/login.css"
OPEN = (LOGIN, STYLE)
"""All that is answered without a login."""
_MOST_BYTES = 65_536  # bytes of a form with a page's address, which is long with many filters


@dataclass
class Login:
    """``password`` is None if there is no login. ``context`` returns what a request may see.
    ``cookie`` is the name of the session cookie. It differs for each port, because browsers share
    cookies among the ports of a host."""

    context: Callable[[], Context]
    password: Password | None
    cookie: str
    sessions: LoginSessions = field(default_factory=LoginSessions)
    throttle: Throttle = field(default_factory=Throttle)
    _hashing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def routes(self) -> Sequence[BaseRoute]:
        if self.password is None:
            return []
        return [
            Route(LOGIN, self.page, methods=["GET"]),
            Route(LOGIN, self.begin, methods=["POST"]),
            Route("/logout", self.end, methods=["POST"]),
            Route(STYLE, self.style),
        ]

    def allows(self, request: Request) -> bool:
        return self.password is None or self.sessions.is_open(request.cookies.get(self.cookie))

    async def page(self, request: Request) -> Response:
        return self._page(request, "", request.query_params.get("next", ""))

    async def style(self, _: Request) -> Response:
        return static("login.css")

    async def begin(self, request: Request) -> Response:
        assert self.password is not None
        form = await _form(request)
        next_ = form.get("next", [""])[0]
        address = request.client.host if request.client else ""
        if (wait := self.throttle.attempt(address)) > 0:
            said = f"Too many wrong passwords. Try again in {ceil(wait)} s."
            return self._page(request, said, next_, 429, {"Retry-After": str(ceil(wait))})
        given = form.get("password", [""])[0]
        # One at a time: each takes a core and 16 MB.
        async with self._hashing:
            is_right = await run_in_threadpool(self.password.is_right, given)
        if not is_right:
            return self._page(request, "The password is wrong.", next_, 403)
        self.throttle.succeeded(address)
        base = request.scope.get("root_path", "")
        answer = RedirectResponse(_inside(base, next_), 303)
        answer.set_cookie(
            self.cookie,
            self.sessions.begin(),
            max_age=int(LASTS),
            path=base or "/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def end(self, request: Request) -> Response:
        self.sessions.end(request.cookies.get(self.cookie))
        base = request.scope.get("root_path", "")
        answer = RedirectResponse(f"{base}{LOGIN}", 303)
        answer.delete_cookie(self.cookie, path=base or "/", httponly=True, samesite="strict")
        return answer

    def _page(
        self,
        request: Request,
        said: str,
        next_: str,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        base = request.scope.get("root_path", "")
        nothing = Context({}, (), base)
        content = document("login.html", nothing, said=said, next=_inside(base, next_))
        return HTMLResponse(content, status, headers)


class RequireLogin:
    """Passes on requests that have logged in, with their context, and those for ``OPEN``; refuses
    all others."""

    def __init__(self, app: ASGIApp, login: Login) -> None:
        self._app, self._login = app, login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope)
        base = scope.get("root_path", "")
        path = scope["path"].removeprefix(base)
        if self._login.allows(request):
            context = await run_in_threadpool(self._login.context)
            return await self._app({**scope, SCOPE: context}, receive, send)
        if path in OPEN and self._login.password is not None:
            return await self._app(scope, receive, send)
        answer = self._refusal(request, base, path)
        return await answer(scope, receive, send)

    @staticmethod
    def _refusal(request: Request, base: str, path: str) -> Response:
        if request.method == "GET" and not path.startswith(("/api/", "/static/")):
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{base}{LOGIN}?next={quote(f'{base}{path}{query}')}", 303)
        return JSONResponse({"error": {"message": "log in first", "remedy": ""}}, 401)


async def _form(request: Request) -> Mapping[str, Sequence[str]]:
    """The fields of a form; empty if it is too long, or not a form of this page."""
    try:
        return parse_qs(await _body(request), max_num_fields=8)
    except ValueError:
        return {}


async def _body(request: Request) -> str:
    content = b""
    try:
        async for part in request.stream():
            content += part
            if len(content) > _MOST_BYTES:
                return ""
    except ClientDisconnect:
        return ""
    return content.decode("utf-8", "replace")


def _inside(base: str, address: str) -> str:
    """The address, if it is a page of this application; else its first page."""
    is_path = address.startswith(f"{base}/") and not address.startswith(("//", "/\\"))
    plain = all(" " < c < "\x7f" and c != "\\" for c in address)
    return address if is_path and plain else f"{base}/"
