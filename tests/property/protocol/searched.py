"""The digest of the model that was searched to the end. ``python -m
tests.property.protocol.searched`` searches the present model, then writes its digest and the traces
that break its mutants. An unchanged model need not be searched on each run."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

from tests.property.protocol.search import explore
from tests.property.protocol.test_mutants import MUTANTS, label
from tests.property.protocol.test_search import SCENARIOS
from tests.property.protocol.test_sources import SOURCES
from tests.property.protocol.traces import store

FOLDER = Path(__file__).parent
DIGEST = FOLDER / "searched.sha256"
BINDING = (
    "__init__.py",
    "searched.py",
    "entries.py",
    "histories.py",
    "players.py",
    "lockstep.py",
    "traces.py",
    "test_histories.py",
    "test_lockstep.py",
    "test_broken_engine.py",
    "test_searched.py",
)
"""The files that compare the engine with the model. They are not part of the model."""


def digest() -> str:
    """The digest of the model, its scenarios and its mutants."""
    found = hashlib.sha256()
    for file in sorted(FOLDER.glob("*.py")):
        if file.name not in BINDING:
            found.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


def main() -> str | None:
    for name, scenario in (*SCENARIOS.items(), *SOURCES.items()):
        findings = explore(scenario)
        if findings.violation is not None:
            return "\n".join((name, *findings.trace, str(findings.violation)))
    for mutant in MUTANTS:
        scenario = replace(mutant.scenario, without=frozenset(mutant.rules))
        violation = explore(scenario, frozenset({mutant.kind})).violation
        if violation is None or mutant.words not in violation.text:
            return f"{label(mutant)}: {violation}"
    store()
    DIGEST.write_text(f"{digest()}\n")
    return None


if __name__ == "__main__":
    sys.exit(main())
