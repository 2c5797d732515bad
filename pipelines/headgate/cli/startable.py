"""What keeps a pipeline from being started, as far as it can be found without a JVM.

`start`, `run`, `restart`, `upgrade` and `doctor` ask the same questions, and so does the task
``preflight`` in Airflow, which runs `doctor`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headgate import exit_codes
from headgate.cli import declaration
from headgate.cli.driving import require_machine
from headgate.commands import rendered, shell_command
from headgate.driver.refusing import require_input, require_tables
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.setup.doctor.check_result import CheckResult, failed, passed

if TYPE_CHECKING:
    from headgate.declaration.model import Pipeline


def require_startable(declared: Pipeline, layout: Layout, *, once: bool = False) -> tuple[str, ...]:
    """Raises what a driver would raise about the machine and the sources. Returns remarks about
    sources that are away: a driver waits for them. A run with ``once`` does not, so they are raised
    as SourceUnreachableError. Changes nothing."""
    require_machine(declared)
    return require_input(declared, layout, once=once)


def check_startable(declared: Pipeline, layout: Layout, *, once: bool = False) -> None:
    """As :func:`require_startable`, with the remarks on stderr."""
    for remark in require_startable(declared, layout, once=once):
        print(remark, file=sys.stderr)


def check_tables(declared: Pipeline, layout: Layout) -> None:
    """As ``require_tables``, with the remarks on stderr."""
    for remark in require_tables(declared, layout):
        print(rendered(remark), file=sys.stderr)


def examined(pipeline: str, root: str) -> Iterator[CheckResult]:
    """The checks of a start of ``pipeline``: its declaration with its secrets, its sources, and its
    tables. After the first that fails, there are no others: they may need it."""
    needed = "a declaration without mistakes, and its secrets"
    try:
        declared = declaration.load(pipeline)
    except HeadgateError as error:
        yield _refused("declaration", needed, error)
        return
    yield passed("declaration", f"{declared.name}, in {declared.file}", needed)
    layout = Layout.of(root, declared.name)
    needed = "a machine that can run it, and sources that can be read"
    try:
        remarks = require_startable(declared, layout)
    except HeadgateError as error:
        yield _refused("source", needed, error)
        return
    yield passed("source", "; ".join(remarks) or "it can be read", needed)
    needed = "tables that fit the declaration, and files as they were recorded"
    try:
        remarks = require_tables(declared, layout)
    except HeadgateError as error:
        yield _refused("tables", needed, error)
        return
    yield passed("tables", "; ".join(map(rendered, remarks)) or "they fit", needed)


def _refused(name: str, needed: str, error: HeadgateError) -> CheckResult:
    return failed(name, error.message, needed, error.remedy, error.exit_code)


def make_root(layout: Layout) -> None:
    """Create the folder of a pipeline's documents and logs. Raises HeadgateError if that fails."""
    folder = Path(layout.storage.root) / CONTROL / "logs"
    doctor = shell_command("doctor", "--root", str(Path(layout.storage.root).parent))
    remedy = f"{doctor}, or choose another --root"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HeadgateError(
            f"{folder} cannot be made: {error.strerror}", remedy, code=exit_codes.MACHINE
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise HeadgateError(f"{folder} may not be written", remedy, code=exit_codes.MACHINE)
