"""The present model is the one that was searched."""

from __future__ import annotations

from tests.property.protocol.searched import DIGEST, digest


def test_this_model_was_searched_to_the_end() -> None:
    assert digest() == DIGEST.read_text().strip(), (
        "the model has changed: python -m tests.property.protocol.searched"
    )
