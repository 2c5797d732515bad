"""The part of a plan that describes a landing folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.declaration.quantities import format_duration, format_size
from headgate.sources.files.declared import FilesSource


def planned_files(files: FilesSource) -> dict[str, Any]:
    """A document of plain values."""
    described: dict[str, Any] = {
        "path": files.path,
        "format": files.format,
        "order": files.order,
        "settle": format_duration(files.settle),
        "max_files_per_batch": files.max_files_per_batch,
        "max_bytes_per_batch": format_size(files.max_bytes_per_batch),
    }
    if files.format == "csv":
        described["csv"] = {
            "header": files.csv_header,
            "delimiter": files.csv_delimiter,
            "multiline": files.csv_multiline,
        }
    return described


def files_lines(files: Mapping[str, Any]) -> list[str]:
    """The same as text for a person."""
    most = f"{files['max_files_per_batch']} files, {files['max_bytes_per_batch']}"
    return [
        f"  files    {files['path']} ({files['format']}, by {files['order']})",
        f"  batch    at most {most}",
    ]
