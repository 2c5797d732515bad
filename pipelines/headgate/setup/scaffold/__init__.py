"""Creates a project with declarations, tests and sample data."""

from __future__ import annotations

from headgate.setup.scaffold.project import create_project

__all__ = ["create_project"]
