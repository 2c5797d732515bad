"""Builds the `files` part of a source from its keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from headgate.declaration.reading.checked import Report, Section
from headgate.sources.files.declared import FilesSource
from headgate.storage.places import at_home, is_uri


def build_files(section: Section, report: Report, project: Path) -> FilesSource | None:
    """The source, or None after reporting what is wrong with it."""
    csv = section.section("csv")
    format_, path = section.text("format"), section.text("path")
    if csv and format_ and format_ != "csv":
        report.add(csv.line, csv.path, f"is only for format csv, but the format is {format_}")
    if format_ is None or path is None:
        return None
    values: dict[str, Any] = {
        name: field.value
        for name, field in section.fields.items()
        if name in ("order", "settle", "max_files_per_batch", "max_bytes_per_batch")
    }
    if csv:
        values |= {f"csv_{name}": field.value for name, field in csv.fields.items()}
    return FilesSource(path=_located(path, project), format=format_, **values)  # type: ignore[arg-type]


def _located(path: str, project: Path) -> str:
    """The absolute path, without `..`. Links are resolved only when files are read, so that a link
    may be switched to another folder."""
    return path if is_uri(path) else os.path.normpath(project / at_home(path))
