"""The declaration of readings once for each of several sources. The tables of each are named after
their source, and compared with the oracle as those of an only source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.lake.tables.decisions import NO_OPERATIONS, Decisions
from tests.oracle import Floor, OtherDecision, Rules, SourceRecord, Tables, derive
from tests.oracle.rules import Happening
from tests.support.readings import GOLD_KEYS, Names, declare_source


def declare_several(
    folder: Path, sources: Mapping[str, str], *, gold: Names = GOLD_KEYS
) -> Pipeline:
    """``sources`` has the key of each source with its content, as ``files_key`` and ``kafka_key``
    return it."""
    parts: list[list[str]] = []
    for name, key in sources.items():
        file = declare_source(folder, key, gold=gold).file
        head, of_source, silver, gold_ = re.split(
            r"(?m)^(?:sources|silver|gold):\n", file.read_text()
        )
        named = rf"  {name}_\1:"
        silver = re.sub(r"(?m)^  (\w+):", named, silver).replace("from: raw", f"from: {name}")
        gold_ = re.sub(r"(?m)^  (\w+):", named, gold_)
        gold_ = re.sub(r"from: (\w+)", rf"from: {name}_\1", gold_)
        parts.append([of_source.replace("  raw:", f"  {name}:"), silver, gold_])
    sections = zip(("sources", "silver", "gold"), zip(*parts, strict=True), strict=True)
    file.write_text(head + "".join(f"{key}:\n{''.join(texts)}" for key, texts in sections))
    return load(file)


def tables_of(root: Path, source: str) -> Path:
    """A root that shows the tables of one source under the names that they have if it is the only
    one. The tables must exist."""
    shown = root.parent / f"only_{source}" / "readings"
    for table in (root / "readings").glob("[!_]*/*"):
        kind, name = table.parent.name, table.name
        if name != source and not name.startswith(f"{source}_"):
            continue
        link = shown / kind / ("raw" if name == source else name.removeprefix(f"{source}_"))
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(table)
    return shown.parent


def happenings(decisions: Decisions, meant: Iterable[Happening | None]) -> list[Happening]:
    """All decisions as they concern one source. ``meant`` has its operations; None for one that
    changes none of its tables. All other decisions take a number alone."""
    own, other = iter(meant), OtherDecision()
    found = [other if row.kind in NO_OPERATIONS else next(own) or other for row in decisions.rows]
    assert next(own, other) is other, "fewer operations were decided"
    return found


def derive_source(
    records: Sequence[SourceRecord],
    used: Rules,
    found: Sequence[Happening],
    floors: Sequence[Floor] = (),
) -> Tables:
    """The tables of a source. Each operation changes one of them: a test would not see that it was
    left out otherwise."""
    tables = derive(records, used, drains=found, floors=floors)
    for place, each in enumerate(found):
        if not isinstance(each, OtherDecision):
            without = [*found[:place], OtherDecision(), *found[place + 1 :]]
            assert derive(records, used, drains=without, floors=floors) != tables, each
    return tables
