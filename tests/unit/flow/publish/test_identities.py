"""Which columns identify a published row."""

from __future__ import annotations

from headgate.flow.publish.publication import identity_of
from tests.support.joins import FOLD, declared

PUBLISHED = "publish:\n" + "".join(
    f"  {name}: {{from: {of}, kafka: {{servers: 'a:1', topic: {name}}}}}\n"
    for name, of in (
        ("pairs", "gold.bought"),
        ("late_pairs", "late.bought"),
        ("hours", "gold.per_hour"),
        ("late_hours", "late.per_hour"),
        ("refused", "quarantine.raw"),
    )
)


def test_each_kind_of_table_has_its_identity() -> None:
    """A late row of a join is one of either table: their rows have the same positions."""
    pipeline = declared(more=FOLD + PUBLISHED)
    assert {name: identity_of(pipeline, each) for name, each in pipeline.publish.items()} == {
        "pairs": ("row_id",),
        "late_pairs": ("input", "_partition", "_offset", "_item"),
        "hours": ("window_start",),
        "late_hours": ("_partition", "_offset", "_item", "window_start"),
        "refused": ("partition", "offset", "table"),
    }
