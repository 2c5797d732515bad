"""Pipelines with several sources, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from headgate.flow.sources.files.declared import FilesSource
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import Lake, declared, put_into

_SOURCE = """
  {0}:
    files: {{path: landing/{0}, format: json, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 1 hour}}
      schema: {{id: string, at: timestamp, amount: int}}
"""
_GOLD = """
  {0}_per_minute:
    from: {1}
    window: {{tumbling: 1 minute}}
    measures: {{events: count(*)}}
    allowed_lateness: 0 seconds
"""
TWO = f"""
pipeline: shop
sources:
{_SOURCE.format("orders")}
{_SOURCE.format("clicks")}
silver:
  paid: {{from: orders}}
  seen: {{from: clicks}}
gold:
{_GOLD.format("orders", "paid")}
{_GOLD.format("clicks", "seen")}
"""
"""Two sources, each with a silver and a gold table."""
ONE = f"""
pipeline: shop
sources:
{_SOURCE.format("orders")}
silver:
  paid: {{from: orders}}
gold:
{_GOLD.format("orders", "paid")}
"""
"""The same pipeline without ``clicks``."""


@pytest.fixture
def two_sources(tmp_path: Path) -> Iterator[Lake]:
    """``orders`` has three batches, of which the third is in bronze only. ``clicks`` has one. The
    sources have records with the same positions and ids."""
    with without_spark():
        lake = Lake(declared(tmp_path, TWO), tmp_path / "lake")
        land(lake, "orders", [Record(), Record(bad=True), Record(duplicate=True)])
        ingest(lake, "orders")
        land(lake, "clicks", [Record(), Record(late=True)])
        ingest(lake, "clicks")
        lake.catch_up()
        land(lake, "orders", [Record(minute=1)])
        ingest(lake, "orders")
        lake.catch_up()
        land(lake, "orders", [Record(minute=2)] * 2)
        ingest(lake, "orders")
        yield lake


def only(source: str) -> str:
    """The declaration of one of the two sources."""
    lines, kept, keep = TWO.splitlines(), list[str](), True
    own = {"orders": ("orders", "paid"), "clicks": ("clicks", "seen")}[source]
    for line in lines:
        if line.startswith("  ") and not line.startswith("   "):
            keep = line.strip().split(":")[0].split("_")[0] in own
        elif line and not line.startswith(" "):
            keep = True
        kept += [line] * keep
    return "\n".join(kept) + "\n"


def land(lake: Lake, source: str, *files: Sequence[Record]) -> None:
    """Write new landing files of one source, and list them."""
    reads = lake.pipeline.sources[source].reads
    assert isinstance(reads, FilesSource)
    put_into(Path(reads.path), *files)
    lake.list_new(source)


def ingest(lake: Lake, source: str) -> None:
    """One batch of bronze with all listed files of one source. The others have no batch."""
    lake.ingest(source=source)
