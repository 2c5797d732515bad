"""Finds the publication that the argument NAME names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headgate import exit_codes
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline, Publication

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name below publish.", show_default=False)
]


class NoPublicationError(HeadgateError, code=exit_codes.USAGE):
    """The declaration has no such publication, or its sink does not support the request."""


def of_name(declared: Pipeline, name: str) -> Publication:
    """Raises NoPublicationError."""
    if name not in declared.publish:
        names = ", ".join(declared.publish) or "none"
        raise NoPublicationError(
            f"{declared.name} has no publication {name!r}", remedy=f"its publications: {names}"
        )
    return declared.publish[name]
