"""A toy sink: appends each message as a line of JSON to a file, at least once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.declaration.contracts.sink import Sink
from headgate.declaration.keys.key import Key
from headgate.declaration.reading.checked import ProblemReport, Section
from headgate.flow.publish.sinks.writers import Outgoing, SinkContext, Writer


@dataclass(frozen=True)
class Lines:
    path: str
    password: str = field(default="", repr=False)


class LinesWriter(Writer):
    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, outgoing: Outgoing) -> bool:
        with self._path.open("a", encoding="utf-8") as file:
            for row in outgoing.messages.collect():
                headers = {header["key"]: header["value"].decode() for header in row["headers"]}
                value = None if row["value"] is None else json.loads(row["value"])
                key = None if row["key"] is None else row["key"].decode()
                message = {"key": key, "value": value, "id": headers["headgate-id"]}
                file.write(json.dumps(message) + "\n")
        return True

    def failure(self, error: Exception) -> str | None:
        return f"{self._path} takes no lines" if isinstance(error, OSError) else None


class LinesKind(Sink[Lines]):
    key = Key(
        "jsonl",
        "section",
        "A file of JSON lines.",
        children=(
            Key("path", "text", "The file.", required=True),
            Key("password", "text", "Nothing needs it.", deployment=True),
        ),
    )
    place = "path"
    accepts = "the file can be written"
    check_hint = "see whether its folder is there"

    def build(self, section: Section, report: ProblemReport) -> Lines | None:
        path = section.get("path")
        if path is None:
            return None
        if not path.text.endswith(".jsonl"):
            report.at(path, "does not end with .jsonl")
            return None
        return Lines(path.text, section.text("password") or "")

    def plan(self, sink: Lines) -> dict[str, Any]:
        return {"path": sink.path}

    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        return (f"  jsonl    {planned['path']}",)

    def secrets(self, sink: Lines) -> Iterable[str]:
        return (sink.password,) if sink.password else ()

    def writer(self, sink: Lines, context: SinkContext) -> Writer:
        return LinesWriter(Path(sink.path))


MEMBER = LinesKind()
