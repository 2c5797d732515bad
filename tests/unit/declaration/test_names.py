"""Names that an author may choose, beside those in `test_wrong_declarations.py`."""

from __future__ import annotations

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.names import check_column, check_header, check_name


def test_a_line_break_ends_no_name() -> None:
    for check, name in ((check_header, "X-A"), (check_name, "a_b"), (check_column, "aB")):
        check(name)
        with pytest.raises(Invalid):
            check(f"{name}\n")
