"""A pipeline's tables as plain rows, and a comparison of every table with the oracle's.

Positions are compared only by order: an offset of the engine depends on the splits of a file, an
offset of the oracle is where the line starts. So each becomes the record's rank in its partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.oracle import Floor, Tables, compare
from tests.support.readings import APPROXIMATE, GOLD_KEYS

Row = dict[str, Any]
Rank = Mapping[tuple[int, int], int]
SOURCE = "raw"


def read(root: Path, table: str, pipeline: str = "readings") -> list[Row]:
    """The rows of one table at its newest version; ``table`` such as ``gold/per_minute``."""
    found = DeltaTable(str(root / pipeline / table)).to_pyarrow_table()
    rows: list[Row] = pa.table(found).to_pylist()
    return rows


def differences(
    root: Path, expected: Tables, keys: Mapping[str, Sequence[str]] = GOLD_KEYS
) -> dict[str, list[str]]:
    """How each table under ``root`` differs from the oracle's, in words; empty if none does.
    ``keys`` are those of the gold tables."""
    bronze = read(root, f"bronze/{SOURCE}")
    theirs, ours = ranks(expected.bronze), ranks(bronze)
    found = {
        "bronze": compare_bronze(bronze, expected),
        "quarantine": compare(
            ranked(expected.quarantine, theirs),
            ranked(read(root, f"quarantine/{SOURCE}"), ours),
            ("partition", "offset", "table"),
        ),
    }
    for name, rows in expected.silver.items():
        actual = ranked(read(root, f"silver/{name}"), ours, "_")
        found[f"silver/{name}"] = compare(
            ranked(rows, theirs, "_"), actual, ("_partition", "_offset", "_item")
        )
    for name, rows in expected.rejected.items():
        actual = ranked(read(root, f"rejected/{name}"), ours)
        found[f"rejected/{name}"] = compare(
            ranked(rows, theirs), actual, ("partition", "offset", "item")
        )
    for name, rows in expected.late.items():
        actual = ranked(read(root, f"late/{name}"), ours, "_")
        found[f"late/{name}"] = compare(
            [_late(row) for row in ranked(rows, theirs, "_")],
            actual,
            ("_partition", "_offset", "_item", "window_start"),
        )
    for name, rows in expected.gold.items():
        actual = read(root, f"gold/{name}")
        found[f"gold/{name}"] = [
            *compare(rows, actual, keys[name], APPROXIMATE.get(name)),
            *_misplaced_states(root / "readings/gold" / name),
        ]
    found["counts"] = _miscounted(root, expected.counts)
    return {table: lines for table, lines in found.items() if lines}


def state(root: Path, table: str, pipeline: str = "readings") -> dict[str, Any]:
    """The state in the last commit of a table, with the keys of its payload beside the others."""
    newest = max((root / pipeline / table / "_delta_log").glob("*.json"))
    actions = map(json.loads, newest.read_text().splitlines())
    (commit,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
    return _flat(commit)


def states(root: Path, table: str, pipeline: str = "readings") -> list[dict[str, Any]]:
    """Like ``state``, for every commit of a table, the oldest first."""
    history = DeltaTable(str(root / pipeline / table)).history()
    return [_flat(commit) for commit in reversed(history)]


def _flat(commit: dict[str, Any]) -> dict[str, Any]:
    said = commit["headgate"]
    flat: dict[str, Any] = said["payload"] | said
    return flat


def floors(root: Path) -> list[Floor]:
    """The watermarks that bronze's commits recorded."""
    since = datetime(1970, 1, 1, tzinfo=UTC)
    return [
        Floor(
            {int(partition): end for partition, end in said["offsets"].items()},
            None
            if said["watermark"] is None
            else since + timedelta(microseconds=said["watermark"]),
        )
        for said in states(root, f"bronze/{SOURCE}")
    ]


def _miscounted(root: Path, counts: Mapping[str, Any]) -> list[str]:
    """How the cumulative counts in the tables' last commits differ from the oracle's."""
    sizes = ("read_bytes", "duplicate_bytes", "quarantined_bytes")
    of_records = ("read", "duplicate", "differing", "corrected", *sizes)
    wanted = {f"bronze/{SOURCE}": {k: counts[k] for k in of_records if k in counts}}
    for name, rows in counts["silver"].items():
        outcomes = {"silver": rows, "filtered": counts["filtered"][name]}
        records = {k: counts[k] for k in ("quarantined", "duplicate")}
        wanted[f"silver/{name}"] = outcomes | records
    for name, numbers in counts["exploded"].items():
        wanted[f"silver/{name}"] |= numbers
    for name, numbers in counts["suites"].items():
        # Bronze counts a copy that replaces a rejected row as a duplicate; silver does not.
        of = counts["exploded"].get(name, {"replacing": numbers["replaced"]})
        duplicates = counts["duplicate"] - of["replacing"]
        wanted[f"silver/{name}"] |= {**numbers, "duplicate": duplicates}
    for name, gold in counts["gold"].items():
        wanted[f"gold/{name}"] = {k: gold[k] for k in ("folded", "late", "replayed")}
        wanted[f"late/{name}"] = {k: gold[k] for k in ("late", "replayed")}
    wanted[f"quarantine/{SOURCE}"] = {"quarantined": counts["quarantined"]}
    return [
        f"{table}: {key} is {total.get(key, 0)}, expected {number}"
        for table, numbers in wanted.items()
        for total in (state(root, table)["total"],)
        for key, number in numbers.items()
        if total.get(key, 0) != number
    ]


def compare_bronze(rows: Iterable[Row], expected: Tables) -> list[str]:
    return compare(
        ranked(expected.bronze, ranks(expected.bronze)),
        [row | {"column": row["reason_column"]} for row in ranked(rows, ranks(rows))],
        ("partition", "offset"),
    )


def ranks(bronze: Iterable[Row]) -> Rank:
    """(partition, offset) -> how many records of the partition come before it."""
    rank: dict[tuple[int, int], int] = {}
    seen: dict[int, int] = {}
    for partition, offset in sorted((row["partition"], row["offset"]) for row in bronze):
        rank[partition, offset] = seen.get(partition, 0)
        seen[partition] = rank[partition, offset] + 1
    return rank


def ranked(rows: Iterable[Row], rank: Rank, prefix: str = "") -> list[Row]:
    partition, offset = f"{prefix}partition", f"{prefix}offset"
    return [_parsed(row) | {offset: rank[row[partition], row[offset]]} for row in rows]


def _parsed(row: Row) -> Row:
    """Parses JSON in a column, so that its format does not matter."""
    text = row.get("_rescued")
    return row if text is None else row | {"_rescued": json.loads(text)}


def _late(row: Row) -> Row:
    late_by: timedelta | None = row.pop("late_by")
    return row | {"late_seconds": None if late_by is None else late_by / timedelta(seconds=1)}


def _misplaced_states(gold: Path) -> list[str]:
    """Errors of the state column, which readers must not see: each open row needs a state to be
    folded on from, and a final row must have none."""
    table = DeltaTable(str(gold))
    found = ["readers see _state"] if "_state" in table.schema().to_json() else []
    for path in table.file_uris():
        rows = pq.ParquetFile(path).read()
        states = rows.column("_state").drop_null() if "_state" in rows.column_names else ()
        if len(states) != (len(rows) if "final=false" in path else 0):
            found.append(f"{path}: {len(states)} of {len(rows)} rows have a state")
    return found
