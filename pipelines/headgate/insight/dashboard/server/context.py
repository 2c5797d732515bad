"""What a request may see. The server of the application puts it into the scope of each request that
is allowed; without it, no endpoint answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from headgate.commands import Place, program
from headgate.insight.dashboard.errors import NotFoundError
from headgate.insight.dashboard.reading.shown import Shown

SCOPE = "headgate.insight.dashboard"


@dataclass(frozen=True)
class Context:
    """``pipelines`` are those that this request may see, ``projects`` the folders whose dashboards
    it may see, ``problems`` the errors of other pipelines. ``base`` is the path of the application,
    with no slash at its end. ``home`` is the title and the address of a page above it."""

    pipelines: Mapping[str, Shown]
    projects: Sequence[Path]
    base: str
    problems: Sequence[str] = ()
    show_values: bool = False
    has_login: bool = False
    home: tuple[str, str] | None = None

    def pipeline(self, name: str) -> Shown:
        """Raises NotFoundError, also for one that this request may not see."""
        if (found := self.pipelines.get(name)) is None:
            known = ", ".join(self.pipelines) or "none"
            raise NotFoundError(f"there is no pipeline {name} here", remedy=f"there are: {known}")
        return found


def context_of(request: Request) -> Context:
    """Raises HTTPException 401 if the request has no context: it is not allowed."""
    found = request.scope.get(SCOPE)
    if not isinstance(found, Context):
        raise HTTPException(401, "log in first")
    return found


def is_about(request: Request, *pipelines: Shown) -> None:
    """Set the pipelines of a request whose address names none: commands in its errors need them."""
    names = {shown.name for shown in pipelines}
    request.state.place = pipelines[0].place if len(names) == 1 else Place(program(anywhere=True))


def place_of(request: Request) -> Place | None:
    """Where commands about the pipeline of a request are typed; None if it is about none."""
    context, name = request.scope.get(SCOPE), request.path_params.get("pipeline", "")
    if isinstance(context, Context) and name in context.pipelines:
        return context.pipelines[name].place
    place: Place | None = getattr(request.state, "place", None)
    return place
