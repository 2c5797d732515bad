"""`headgate quarantine replay` is killed; the next driver finishes the replay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.drivers import PATIENCE, REPOSITORY
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


def headgate(verb: str, *options: str, failpoint: str = "") -> tuple[int, str]:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "pipelines")])
    settings = {
        "PYTHONPATH": paths,
        "HEADGATE_FAILPOINT": failpoint,
        "HEADGATE_DRIVER_MEMORY": "1g",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate.cli", *verb.split(), *options],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the JVM of a process that was killed
    print(output)
    return process.returncode, output


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
    assert headgate("run", *of, "--once")[0] == 0
    patch = ("--patch", """json_merge_patch(value, '{"level": "50"}')""")
    code, said = headgate("quarantine replay", *of, *patch, failpoint=place)
    assert code == -signal.SIGKILL, said
    if place == "replay.written":  # nobody knows of the request yet
        assert headgate("quarantine replay", *of, *patch)[0] == 0
    elif place == "replay.committed":
        assert "waits for a driver" in headgate("quarantine replay", *of, *patch)[1]
    assert headgate("run", *of, "--once")[0] == 0
    rows = read(tmp_path / "root", "silver/clean")
    silver = sorted((row["_event_id"], row["level"]) for row in rows)
    assert silver == [("a", 20), ("b", 50), ("c", 50), ("d", 50)]
    code, said = headgate("ledger", *of, "--by-id", "--json")
    assert code == 0, said
    assert json.loads(said.splitlines()[-1])["replayed"] == 3
    assert "no open record is refused" in headgate("quarantine show", *of)[1]
