"""Fails if a pipeline's ledger does not balance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.tables_task import TablesTask
from headgate.commands import pipeline_command, rendered
from headgate.declaration.quantities import plural

if TYPE_CHECKING:
    from airflow.sdk import Context


class LedgerCheck(TablesTask):
    """Returns the ledger of the pipeline that ``file`` declares. Fails without retry, with every
    difference, if events are missing. ``by_id`` compares every event by its id and reads the
    tables. Tables that are not deployed yet are left out; the log names them."""

    def __init__(self, *, by_id: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.by_id = by_id

    def execute(self, context: Context) -> dict[str, Any]:
        from headgate.insight.ledger import balance, deployed
        from headgate.insight.ledger.by_id import by_id

        declared, layout = self._opened()
        of = deployed(layout, declared)
        if new := [*(declared.silver.keys() - of.silver), *(declared.gold.keys() - of.gold)]:
            do = rendered(pipeline_command("upgrade"))
            self.log.warning("not deployed yet, so left out: %s; %s", ", ".join(sorted(new)), do)
        account = balance(layout, of)
        found = [str(difference) for difference in account.differences]
        if self.by_id:
            proof = by_id(layout, of)
            found += [f"{f.table}: {plural(f.count, 'row')}: {f.problem}" for f in proof.findings]
        if found:
            differences = "\n".join(found)
            raise AirflowFailException(f"{declared.name} does not balance:\n{differences}")
        self.log.info("%s balances: %s events read", declared.name, f"{account.read:,}")
        return account.as_dict()
