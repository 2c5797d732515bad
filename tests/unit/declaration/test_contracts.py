"""The contracts of members name the types of what runs, and import nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import iter_modules

from headgate.declaration import contracts


def test_contracts_import_nothing_that_runs() -> None:
    names = [module.name for module in iter_modules(contracts.__path__, f"{contracts.__name__}.")]
    code = (
        f"import sys, {', '.join(names)}\n"
        "runs = ('headgate.flow', 'headgate.lake', 'pyspark')\n"
        "sys.exit(', '.join(name for name in sys.modules if name.startswith(runs)))"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stderr.strip() == ""
