"""One module reaches through PySpark to the JVM: what PySpark may rename is in one place."""

from __future__ import annotations

import re
from pathlib import Path

import headgate

ENGINE = Path(headgate.__file__).parent
INTERNAL = re.compile(r"\._(jvm|jsc|jdf|jc|jcols|jseq|jmap|jrdd|jsparkSession|jreader|jwrite|sc)\b")


def test_no_other_module_knows_py4j() -> None:
    found = [p for p in ENGINE.rglob("*.py") if INTERNAL.search(p.read_text())]
    assert found == [ENGINE / "jvm.py"]
