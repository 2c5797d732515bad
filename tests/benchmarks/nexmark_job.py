"""One query of Nexmark over the files of its landing folder, one a batch, with a drain at the end:
python -m tests.benchmarks.nexmark_job PROJECT QUERY. Prints a line of JSON for each batch: the CPU
seconds of bronze, and those of silver and gold."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from headgate.driver.session import LocalSessions
from headgate.machine.jars import cached_jars
from tests.benchmarks.measuring import tree_cpu
from tests.nexmark.declared import declare
from tests.support.engine import Engine


def main(project: Path, query: str) -> None:
    spark = LocalSessions(2, cached_jars()).start("nexmark", project / "scratch")
    engine = Engine(spark, declare(project, [query]), project / "lake")
    engine.list_new()
    for sequence in range(1, engine.last_sequence + 1):
        began = tree_cpu()
        engine.ingest(sequence)
        ingested = tree_cpu()
        engine.catch_up()
        tables = tree_cpu() - ingested
        sys.stdout.write(json.dumps({"bronze": ingested - began, "tables": tables}) + "\n")
        sys.stdout.flush()
    engine.drain()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
    sys.stdout.flush()
    os._exit(0)
