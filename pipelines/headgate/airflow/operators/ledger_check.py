"""Fails if a pipeline's ledger does not balance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.tables_task import TablesTask

if TYPE_CHECKING:
    from airflow.sdk import Context


class LedgerCheck(TablesTask):
    """Returns the ledger of the pipeline that ``file`` declares. Fails without retry, with every
    difference, if events are missing. ``by_id`` compares every event by its id and reads the
    tables."""

    def __init__(self, *, by_id: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.by_id = by_id

    def execute(self, context: Context) -> dict[str, Any]:
        from headgate.ledger import balance
        from headgate.ledger.by_id import by_id

        declared, layout = self._opened()
        account = balance(layout, declared)
        found = [str(difference) for difference in account.differences]
        if self.by_id:
            proof = by_id(layout, declared)
            found += [f"{f.table}: {f.count:,} rows: {f.problem}" for f in proof.findings]
        if found:
            differences = "\n".join(found)
            raise AirflowFailException(f"{declared.name} does not balance:\n{differences}")
        self.log.info("%s balances: %s events read", declared.name, f"{account.read:,}")
        return account.as_dict()
