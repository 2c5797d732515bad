"""``${env:NAME}`` and ``${file:PATH}``: values that a declaration must not hold itself.

They are resolved only in keys that say where a source or a sink is, and how it is read or reached.
No error message contains a resolved value. The messages of this module do not contain the text
around a placeholder either.

Callers that only read tables need no secrets: for them, a placeholder without a value stays as it
is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from headgate.declaration.errors import Invalid

_PLACEHOLDER = re.compile(r"\$\{(env|file):([^{}]*)\}")


class MissingError(Invalid):
    """There is no such environment variable or file."""


def has_placeholder(text: str) -> bool:
    return "${" in text


def resolve(text: str, folder: Path) -> str:
    """``text`` with its placeholders replaced; relative files start at ``folder``. Raises
    MissingError, or Invalid for a ``${`` that does not begin a placeholder."""
    resolved = _PLACEHOLDER.sub(lambda found: _value(found[1], found[2], folder), text)
    if "${" in _PLACEHOLDER.sub("", text):
        raise Invalid(
            "contains ${ that does not begin a placeholder: "
            "a placeholder is ${env:NAME} or ${file:PATH}"
        )
    return resolved


def _value(kind: str, name: str, folder: Path) -> str:
    if not name.strip():
        what = "${env:NAME}" if kind == "env" else "${file:PATH}"
        raise Invalid(f"contains a placeholder without a name; write it as {what}")
    if kind == "env":
        if name not in os.environ:
            raise MissingError(
                f"the environment variable {name} is not set; type: export {name}=..."
            )
        return os.environ[name]
    try:
        return (folder / name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        raise MissingError(f"the file {name} of ${{file:{name}}} cannot be read") from None
