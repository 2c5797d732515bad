"""Reads a YAML file that is checked: declarations, their suites and dashboards."""

from __future__ import annotations

from pathlib import Path

from headgate.declaration.quantities import format_size
from headgate.declaration.reading.checked import Report
from headgate.declaration.reading.document import Node, read

# Parsing YAML is slow, and a file larger than this is not written by a person.
_MOST_BYTES = 1 << 20


def read_file(file: Path, report: Report, what: str) -> str | None:
    """The text of a file; None if it cannot be read, which is reported. ``what`` names the kind of
    file for messages, such as "declaration"."""
    try:
        content = file.read_bytes()
        if len(content) <= _MOST_BYTES:
            return content.decode("utf-8-sig")
        report.add(1, "", f"is larger than {format_size(_MOST_BYTES)}: not a {what}")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        report.add(line, "", "is not UTF-8 text")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        report.add(1, "", f"cannot be read: {reason}")
    return None


def parse(text: str | None, report: Report) -> Node | None:
    """The document in a text, if there is one. What is wrong with the YAML is reported; the result
    is None if nothing could be read."""
    node, faults = read(text) if text is not None else (None, ())
    for fault in faults:
        report.add(fault.line, fault.path, fault.message)
    return node
