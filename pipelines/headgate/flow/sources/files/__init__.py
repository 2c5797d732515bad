"""The files source: a landing folder, recorded as a log that can be read repeatedly."""

from __future__ import annotations

from headgate.flow.sources.files.kind import Files

MEMBER = Files()
