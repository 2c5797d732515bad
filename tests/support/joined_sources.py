"""The joins of ``joined_project``, with clicks and purchases from sources of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from tests.support.engine import Engine
from tests.support.joined_project import Event, JoinedProject, late, output
from tests.support.landing import Landing, lines

SOURCES = {"web": "click", "till": "purchase"}
"""The kind of the events of each source."""
LOG = "till-web"
"""The input log of both."""
SOURCE = """
  {name}:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    idle_after: 10 minutes
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, kind: string, user: string, amount: int, at: timestamp}}
"""
DECLARATION = """
pipeline: shop
sources:
{sources}
silver:
  clicks: {{from: web}}{views}
  purchases: {{from: till}}
gold:
{gold}
"""


@dataclass
class JoinedSources(JoinedProject):
    """``views`` are more silver tables."""

    views: str = ""
    landings: dict[str, Landing] = field(init=False)

    def __post_init__(self) -> None:
        self.landings = {name: Landing(self.folder / name) for name in SOURCES}
        for landing in self.landings.values():
            landing.folder.mkdir(parents=True)

    def pipeline(self) -> Pipeline:
        file = self.folder / "shop.yml"
        sources = "".join(
            SOURCE.format(name=name, landing=landing.folder)
            for name, landing in self.landings.items()
        )
        gold = "".join(each.text for each in self.joins) + self.more
        file.write_text(DECLARATION.format(sources=sources, views=self.views, gold=gold))
        return load(file)

    def land(self, sent: Sequence[Event]) -> None:
        """Give each source its events."""
        for name, kind in SOURCES.items():
            if own := [event for event in sent if event.kind == kind]:
                landing = self.landings[name]
                number = len(landing.written) + 1
                landing.write(f"{number:05d}.json", lines(event.line for event in own))
        self.sent += sent

    def of(self, source: str) -> list[Event]:
        """The events of a source that were sent."""
        return [event for event in self.sent if event.kind == SOURCES[source]]

    def late(self) -> list[Event]:
        """The events that are late by the log of their own source."""
        return [event for source in SOURCES for event in late(self.of(source))]

    def on_time(self) -> list[Event]:
        left_out = self.late()
        return [event for event in self.sent if event not in left_out]

    def upto(self) -> int:
        """The output watermark, if no source is idle."""
        return min(output(self.of(source)) for source in SOURCES)

    def run(self, engine: Engine, *order: str) -> Engine:
        """Ingest what the sources have, in this order, and catch up after each of them."""
        for source in order or SOURCES:
            engine.list_new(source)
            if engine.position_of(source) < engine.files_of(source).log.last_sequence:
                engine.ingest(None, source)
            engine.catch_up()
        return engine
