from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headgate.setup.doctor import examine


def test_every_check_is_reported_once_and_every_failure_has_a_remedy(tmp_path: Path) -> None:
    findings = examine(tmp_path / "lake")
    assert [finding.name for finding in findings] == [
        "Java",
        "Python",
        "names of files",
        "pyspark",
        "delta-spark",
        "deltalake",
        "PYSPARK_PYTHON",
        "SPARK_HOME",
        "jars",
        "broker jars",
        "memory",
        "disk",
        "writing",
        "renaming",
    ]
    assert all(finding.ok or finding.remedy for finding in findings)


def test_the_doctor_needs_no_spark(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from headgate.setup.doctor import examine; "
        f"examine(Path({str(tmp_path)!r})); assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
