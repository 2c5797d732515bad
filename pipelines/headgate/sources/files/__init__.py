"""The files source: a landing folder turned into a log that can be read again and again."""

from __future__ import annotations

from headgate.sources.files.kind import Files

MEMBER = Files()
