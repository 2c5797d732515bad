"""`headgate quarantine replay` is killed; the next driver finishes the replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.drivers import headgate
from tests.support.landing import Landing
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = pytest.mark.recovery

DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: csv, order: name, settle: "0 s"}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, level: int, at: timestamp}}
silver:
  clean: {{from: raw, expectations: clean}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    measures: {{events: count(*)}}
    allowed_lateness: 0 s
"""
CELLS = b"""id,at,level
a,2026-03-01T11:30:00Z,20
b,2026-03-01T11:30:01Z,1
c,2026-03-01T11:30:02Z,many
d,2026-03-01T11:30:03Z,2
"""
PLACES = ("replay.committed", "replay.written", "bronze.staged", "silver.committed")


@in_full
@pytest.mark.parametrize("place", PLACES)
def test_a_killed_replay_takes_place_once(tmp_path: Path, place: str) -> None:
    landing = Landing(tmp_path / "landing")
    file = tmp_path / "readings.yml"
    file.write_text(DECLARATION.format(landing=landing.folder))
    (tmp_path / "expectations").mkdir()
    rules = "expectations: [{id: low, expect: level >= 10}]"
    (tmp_path / "expectations" / "clean.yml").write_text(rules)
    landing.write("1.csv", CELLS)
    of = (str(file), "--root", str(tmp_path / "root"))
    assert headgate("run", *of, "--once").code == 0
    patch = ("--patch", """json_merge_patch(value, '{"level": "50"}')""")
    assert headgate("quarantine replay", *of, *patch, failpoint=place).was_killed
    if place == "replay.written":  # the request is not recorded yet
        assert headgate("quarantine replay", *of, *patch).code == 0
    elif place == "replay.committed":
        assert "waits for a driver" in headgate("quarantine replay", *of, *patch).output
    assert headgate("run", *of, "--once").code == 0
    rows = read(tmp_path / "root", "silver/clean")
    silver = sorted((row["_event_id"], row["level"]) for row in rows)
    assert silver == [("a", 20), ("b", 50), ("c", 50), ("d", 50)]
    ledger = headgate("ledger", *of, "--by-id", "--json")
    assert ledger.code == 0
    assert json.loads(ledger.last_line)["replayed"] == 3
    assert "no open record is refused" in headgate("quarantine show", *of).output
