"""An example of a DAG after gold: it runs for every hour that is final, while the streams go on."""

from __future__ import annotations

from airflow.sdk import DAG, PartitionedAssetTimetable, task

from headgate.airflow import GoldTable, gold_tables


def report(gold: GoldTable) -> DAG:
    with DAG(
        f"{gold.pipeline}__{gold.name}_by_hour",
        schedule=PartitionedAssetTimetable(assets=gold.asset),
        catchup=False,
        tags=["example"],
    ) as dag:

        @task
        def count_rows(uri: str, hour: str) -> int:
            """Later events cannot change the rows that are read here."""
            from deltalake import DeltaTable

            start, end = GoldTable.hour(hour)
            filters = [("window_end", ">", start), ("window_end", "<=", end)]
            found = DeltaTable(uri).to_pyarrow_table(columns=["window_end"], filters=filters)
            rows = int(found.num_rows)
            print(f"{uri}: {rows} final rows in the hour from {start}")
            return rows

        count_rows(gold.uri, "{{ dag_run.partition_key }}")
    return dag


for table in gold_tables("pipelines/examples"):
    if (table.pipeline, table.name) == ("auctions", "bids_per_minute"):  # one is enough
        made = report(table)
        globals()[made.dag_id] = made
