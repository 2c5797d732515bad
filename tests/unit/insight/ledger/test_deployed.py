"""The ledger of a pipeline whose declaration has tables that are not deployed yet."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from headgate.declaration.files import project_folder
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.history.savepoints.declarations import keep_declaration
from headgate.insight.ledger import balance, deployed
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill

TABLE = DECLARATION[DECLARATION.index("  per_minute:") :]
PER_HOUR, PER_DAY = (
    TABLE.replace("per_minute", name).replace("from: good", f"from: {above}")
    for name, above in (("per_hour", "per_minute"), ("per_day", "per_hour"))
)
NEW = {
    "gold": DECLARATION + TABLE.replace("per_minute", "per_hour"),
    "silver": DECLARATION.replace("gold:", "  other: {from: events}\ngold:")
    + TABLE.replace("per_minute", "per_hour").replace("from: good", "from: other"),
    "rollups": DECLARATION + PER_HOUR + PER_DAY,
    "suite": DECLARATION.replace("where: amount > 0", "where: amount > 0\n    expectations: sane"),
    "publication": DECLARATION
    + TABLE.replace("per_minute", "per_hour")
    + "publish: {p: {from: gold.per_hour, webhook: {url: 'https://a.example'}}}\n",
}


@pytest.fixture(params=NEW)
def declared(lake: Lake, request: pytest.FixtureRequest) -> Pipeline:
    """A declaration with more tables than the lake has."""
    file = lake.pipeline.file
    file.write_text(NEW[request.param])
    folder = project_folder(file) / "expectations"
    folder.mkdir()
    (folder / "sane.yml").write_text("expectations: [{id: sane, expect: amount < 9}]")
    return load(file)


def test_tables_that_are_not_deployed_yet_are_left_out(lake: Lake, declared: Pipeline) -> None:
    with pytest.raises(HeadgateError, match=r"no table (silver/other|gold/per_hour|rejected/good)"):
        balance(lake.layout, declared)
    part = deployed(lake.layout, declared)
    account = balance(lake.layout, part)
    assert account.balanced
    assert account.as_dict() == balance(lake.layout, lake.pipeline).as_dict()
    assert by_id(lake.layout, part).findings == by_id(lake.layout, lake.pipeline).findings


def test_what_is_there_is_still_compared(empty_lake: Lake) -> None:
    fill(empty_lake, late_rows=())
    empty_lake.pipeline.file.write_text(NEW["gold"])
    part = deployed(empty_lake.layout, load(empty_lake.pipeline.file))
    assert len(balance(empty_lake.layout, part).differences) == 1


def test_a_table_that_is_missing_after_it_was_deployed_is_an_error(lake: Lake) -> None:
    keep_declaration(lake.layout, lake.pipeline)
    for folder in ("gold", "late"):
        shutil.rmtree(lake.layout.storage.uri(folder))
    with pytest.raises(HeadgateError, match="has no table"):
        balance(lake.layout, deployed(lake.layout, lake.pipeline))


def test_a_table_is_left_out_with_those_that_it_reads(empty_lake: Lake) -> None:
    """Two tables of the lake now read a new one."""
    file, storage = empty_lake.pipeline.file, empty_lake.layout.storage
    file.write_text(DECLARATION + PER_HOUR)
    schema = pa.schema([("window_start", pa.timestamp("us", "UTC")), ("final", pa.bool_())])
    table = Table(storage, "gold/per_hour", pipeline="tiny")
    table.create(schema, "digest", time_column="window_start")
    assert [*deployed(empty_lake.layout, load(file)).gold] == ["per_minute", "per_hour"]
    new = TABLE.replace("per_minute", "per_second").replace("1 minute", "1 second")
    file.write_text(DECLARATION.replace("from: good", "from: per_second") + new + PER_HOUR)
    declared = load(file)
    assert [*declared.gold] == ["per_second", "per_minute", "per_hour"]
    assert deployed(empty_lake.layout, declared).gold == {}
    assert balance(empty_lake.layout, deployed(empty_lake.layout, declared)).balanced
