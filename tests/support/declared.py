"""What a declaration holds, where the test knows which of its kinds it is."""

from __future__ import annotations

from headgate.declaration.model import FilesSource, Pipeline


def files_of(pipeline: Pipeline) -> FilesSource:
    files = pipeline.source.files
    assert files is not None, f"{pipeline.name} does not read files"
    return files
