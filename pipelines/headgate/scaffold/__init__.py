"""Makes a new project: declarations, tests and sample data that run as they are."""

from __future__ import annotations

from headgate.scaffold.project import create_project

__all__ = ["create_project"]
