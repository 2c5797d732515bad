"""Imports Great Expectations."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from headgate import exit_codes
from headgate.commands import install_extra
from headgate.errors import HeadgateError


class NoGreatExpectationsError(HeadgateError, code=exit_codes.MACHINE):
    """The environment has no Great Expectations."""


def great_expectations() -> ModuleType:
    """The package. It is imported when it is first needed, because the import takes seconds. Raises
    NoGreatExpectationsError."""
    if find_spec("great_expectations") is None:
        raise NoGreatExpectationsError(
            "Great Expectations, which validates gold tables, is not installed in this environment",
            remedy=f"install it: {install_extra('quality')}",
        )
    # Releases before 1.10 sent usage statistics. This prevents it in all releases.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with _named_main(), warnings.catch_warnings():
        # It imports modules of Python that are deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        import great_expectations
        import great_expectations.expectations.registry
    return great_expectations


@contextmanager
def _named_main() -> Iterator[None]:
    """While Great Expectations is imported, the main module has a file.

    Great Expectations imports PySpark's client of Spark Connect. This client ends the process with
    exit code 0 if gRPC is not installed and the main module has no file, as in ``python -c`` and in
    workers of pytest.
    """
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) is not None or main.__spec__ is not None:
        yield
        return
    main.__file__ = "python -c"
    try:
        yield
    finally:
        del main.__file__
