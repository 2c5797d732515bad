"""Great Expectations is an extra."""

from __future__ import annotations

import pytest

from headgate.declaration.expectations import library


def test_without_it_a_person_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find_spec", lambda name: None)
    with pytest.raises(library.NoGreatExpectationsError) as refused:
        library.great_expectations()
    assert 'pip install "headgate[quality]"' in (refused.value.remedy or "")
