"""Documents that lack a field are damaged, although their checksum is right."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from headgate.flow.gates.documents import Hold, Release
from headgate.flow.publish.sinks.letters import Letter
from headgate.flow.sources.loading import LoadPlan
from headgate.history.repair.documents import damaged_documents
from headgate.lake.control.driver_reports import Failure
from headgate.lake.control.requests import send_request
from headgate.lake.storage.documents import encoded, write_document
from headgate.lake.storage.layout import Layout
from tests.unit.history.repair.conftest import NOW

PLAN = LoadPlan({"sequence": 0}, {"sequence": 3}, "landing files", "files")
VALUES = {
    "failure": Failure(1, "why", "what to do", NOW),
    "dead_letters/out/id": Letter("id", b"body", {}, "refused", 1, NOW),
    "gates/sales.held": Hold("sales", 1, 2, NOW, NOW, ()),
    "gates/sales.rebuild.release": Release(2, "a person", "reason", NOW),
}


def found(layout: Layout) -> dict[str, str]:
    return {each.path: each.what for each in damaged_documents(layout)}


@pytest.mark.parametrize("name", VALUES)
def test_a_document_that_lacks_a_field(layout: Layout, name: str) -> None:
    value: Any = VALUES[name]
    path, whole = Layout.document(name), encoded(value)
    write_document(layout.storage, path, whole)
    assert found(layout) == {}
    needed = [f.name for f in fields(value) if f.default is f.default_factory is MISSING]
    for field in needed:
        write_document(layout.storage, path, {k: v for k, v in whole.items() if k != field})
        what = f"the document is damaged (Object missing required field `{field}`)"
        assert found(layout) == {path: what}


def test_a_request_has_its_id_in_its_name(layout: Layout) -> None:
    path = send_request(layout, "drain", {}, NOW).path
    assert found(layout) == {}
    write_document(layout.storage, path, {"kind": "drain", "at": NOW.isoformat()})
    assert found(layout) == {
        path: "the document is damaged (Object missing required field `document`)"
    }


def test_other_documents_may_have_any_fields(layout: Layout) -> None:
    """A source keeps documents of its own beside a load, and a gate has its requests."""
    for name in ("loads/l1/folder", "gates/sales.retry", "status-fused", "anything"):
        write_document(layout.storage, Layout.document(name), {})
    assert found(layout) == {}
