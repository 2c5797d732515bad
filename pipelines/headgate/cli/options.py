"""The arguments and options that verbs share, and times that a person types."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.commands import Place, pipeline_command, program, rendered, set_subject
from headgate.errors import UsageError
from headgate.lake.storage.places import absolute, is_uri, not_for_tables
from headgate.supervision.logs import FORMAT_OPTION, FORMAT_VARIABLE, LogFormat

DEFAULT_ROOT = "lake"
MOST_SHOWN = 1_000_000
"""The most lines, rows or records that a verb shows: they are in memory at the same time."""


def escaped(text: str) -> str:
    """A text that was typed, with escapes for bytes that are not UTF-8."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")


def checked_root(root: str) -> str:
    """The absolute path of a root that a person typed. Raises UsageError."""
    shown = escaped(root)
    if not root:
        raise UsageError(
            "the name of the folder is empty", remedy=f"name a folder: --root {DEFAULT_ROOT}"
        )
    if is_uri(root):
        said = (
            f"{shown} is not a folder of this machine; tables on an object store are not built yet"
        )
        raise UsageError(said, remedy=f"name a folder: --root {DEFAULT_ROOT}")
    if shown != root:
        raise UsageError(f"{shown} is not UTF-8", remedy="name a folder whose path is UTF-8")
    path = absolute(root)
    if (part := not_for_tables(path)) is not None:
        said = part if part.isprintable() else repr(part)
        raise UsageError(
            f"{path}: Delta cannot keep tables in a folder with {said} in its path",
            remedy="choose another folder: --root FOLDER",
        )
    return path


def _asked_root(root: str) -> str:
    """The root as an absolute path. Commands in texts use it from now on. Raises UsageError."""
    root = checked_root(root)
    set_subject(root=root, known=_is_known(root))
    return root


PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE", help="A declaration's path, or its name.", show_default=False
    ),
]
GoldName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="Such as gold.per_minute.", show_default=False),
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source", metavar="SOURCE", help="The source that is meant, if there are several."
    ),
]
Root = Annotated[
    str,
    typer.Option(
        "--root",
        envvar="HEADGATE_ROOT",
        help="The folder that holds the tables.",
        callback=_asked_root,
    ),
]
AcceptGap = Annotated[
    bool,
    typer.Option(
        "--accept-gap",
        help="Continue after records that the topic has lost unread. The ledger shows the gap.",
    ),
]
FromSavepoint = Annotated[
    str | None,
    typer.Option(
        "--from-savepoint",
        metavar="ID",
        help="Go back to this savepoint first: its id, its beginning, or latest.",
    ),
]
LogFormatted = Annotated[
    LogFormat,
    typer.Option(
        FORMAT_OPTION,
        envvar=FORMAT_VARIABLE,
        help="How the driver logs: json is one object a line.",
    ),
]
TakeOver = Annotated[
    bool, typer.Option("--take-over", help="Take the pipeline from whoever runs it.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would happen, and write nothing.")
]
Note = Annotated[str, typer.Option("--note", help="Kept in bronze's commits.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=MOST_SHOWN, help="At most so many rows.")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on as more come, until Ctrl-C.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 for any that is free.")]
Json = Annotated[
    bool, typer.Option("--json", help="End with one JSON object as the last line of stdout.")
]


def pipeline_names(help: str) -> Any:
    """The argument of a verb that takes any number of pipelines, or none."""
    return typer.Argument(metavar="PIPELINE", help=help, show_default=False, default_factory=list)


def time_option(name: str, help: str) -> Any:
    """An option for a time as :func:`time_given` reads it."""
    return typer.Option(name, metavar="TIME", help=help, show_default=False)


def command(verb: str, *arguments: str) -> str:
    """A command line that a person can paste, for the pipeline and the root that were typed."""
    return rendered(pipeline_command(verb, *arguments))


def command_at(verb: str, pipeline: str, root: str, *arguments: str) -> str:
    """As ``command``, for another pipeline or root."""
    return rendered(pipeline_command(verb, *arguments), place_at(pipeline, root))


def place_at(pipeline: str, root: str) -> Place:
    """The place for which commands about another pipeline or root are rendered."""
    return Place(program(), pipeline, root, _is_known(root))


def _is_known(root: str) -> bool:
    """Whether ``root`` is the default root in the user's shell."""
    return root == absolute(os.environ.get("HEADGATE_ROOT", DEFAULT_ROOT))


def time_range(
    begin: str | None, end: str | None, now: datetime, options: tuple[str, str] = ("--from", "--to")
) -> tuple[datetime | None, datetime | None]:
    """Two times as :func:`time_given`, the first before the second. Raises BadParameter."""
    first, last = time_given(begin, options[0], now), time_given(end, options[1], now)
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter(f"it is not after {options[0]}", param_hint=options[1])
    return first, last


def as_typed(given: Iterable[tuple[str, str | None]]) -> str:
    """Options as they were typed; those without a value are left out."""
    return " ".join(f"{name} {value}" for name, value in given if value is not None)


def time_given(text: str | None, option: str, now: datetime) -> datetime | None:
    """A time in UTC; a duration counts back from now. Raises BadParameter."""
    from headgate.declaration.errors import Invalid
    from headgate.declaration.quantities import parse_duration

    if text is None:
        return None
    try:
        with suppress(Invalid):
            return now - parse_duration(text)
        given = datetime.fromisoformat(text)
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        said = f'{text!r} is neither a time ("2026-01-31 12:00") nor a duration ("2 hours")'
        raise typer.BadParameter(said, param_hint=option) from error
