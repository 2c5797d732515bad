"""``headgate publication letters | resend | discard``: rows that a sink has refused permanently."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.named import named
from headgate.cli.options import DEFAULT_ROOT, Json, PipelineName, Root
from headgate.cli.output import grid, respond
from headgate.commands import pipeline_command
from headgate.declaration.model import Publication
from headgate.errors import UsageError
from headgate.sinks.contract import SINKS, NoLettersError, SinkAwayError
from headgate.sinks.letters import DeadLetters, Letter

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Its name below publish.", show_default=False)
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Only the letters whose id begins like this.", show_default=False),
]
_SHOWN = 12  # characters of an id


def letters(
    pipeline: PipelineName, name: Name, root: Root = DEFAULT_ROOT, json: Json = False
) -> None:
    """Show the dead letters of a publication: rows that its sink has refused."""
    found = list(_letters(pipeline, name, root, needs_secrets=False)[0].all())
    rows = ((e.id[:_SHOWN], e.at, e.attempts, _table(e), e.why) for e in found)
    screen = grid("", "id", "at", "attempts:", "table", "refused because it", rows=rows)
    shown = [
        {"id": e.id, "at": e.at.isoformat(), "attempts": e.attempts, "why": e.why} for e in found
    ]
    respond(json, {"letters": shown}, screen, *([] if found else ["no dead letters"]))


def resend(
    pipeline: PipelineName,
    name: Name,
    id_: Id = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Send dead letters once more, under their ids. Exit code 3 if one is refused again, or if the
    sink is away: then the others are not tried."""
    kept, publication = _letters(pipeline, name, root)
    meant = _require(kept, name, id_)
    sent, refused, away = 0, [], None
    for letter in kept.all(id_ or ""):
        try:
            why = SINKS[publication.kind].resend(publication.sink, letter)
        except SinkAwayError as error:
            away = str(error)
            break
        except NoLettersError:
            raise UsageError(
                f"{name} has another sink than when it kept these letters: {publication.kind} does "
                "not take them",
                pipeline_command("publication discard", name),
            ) from None
        if why is None:
            kept.remove(letter.id)
            sent += 1
        else:
            refused.append({"id": letter.id, "why": why})
    words = [f"{each['id'][:_SHOWN]} {each['why']}" for each in refused]
    left = len(meant) - sent - len(refused)
    document = {"sent": sent, "refused": refused, "left": left, "away": away}
    if away is not None:
        words.append(f"the sink {away}: {left:,} not sent; try again once it is back")
    respond(json, document, f"{sent:,} sent, {len(refused):,} refused again", *words)
    if refused or away is not None:
        raise typer.Exit(exit_codes.SOURCE)


def discard(
    pipeline: PipelineName,
    name: Name,
    id_: Id = None,
    root: Root = DEFAULT_ROOT,
    json: Json = False,
) -> None:
    """Remove dead letters without sending them. The rows stay in their tables."""
    kept, _ = _letters(pipeline, name, root, needs_secrets=False)
    gone = _require(kept, name, id_)
    for each in gone:
        kept.remove(each)
    respond(json, {"discarded": len(gone)}, f"{len(gone):,} discarded")


def _letters(
    pipeline: str, name: str, root: str, *, needs_secrets: bool = True
) -> tuple[DeadLetters, Publication]:
    declared, layout = declaration.opened(pipeline, root, needs_secrets=needs_secrets)
    publication = named(declared.publish, name, f"{declared.name} has no publication")
    return DeadLetters(layout.storage, name), publication


def _require(kept: DeadLetters, name: str, id_: str | None) -> list[str]:
    """The ids of the selected letters. Raises UsageError if no letter has ``id_``."""
    found = kept.ids(id_ or "")
    if id_ is not None and not found:
        raise UsageError(f"no dead letter {id_!r}", pipeline_command("publication letters", name))
    return found


def _table(letter: Letter) -> str:
    return letter.headers.get("headgate-table", "")
