"""What the `kafka` parts of sources and publications have in common."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.declaration.reading.checked import Section


def options_of(section: Section) -> Mapping[str, str]:
    """The client properties, resolved."""
    return {name: field.text for name, field in section.entries("options").items()}


def written_of(section: Section) -> Mapping[str, str]:
    """The values with placeholders, as the declaration writes them."""
    return {name: field.written for name, field in section.fields.items() if field.written}
