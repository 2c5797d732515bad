"""The documentation of each DAG: what Airflow's buttons do to a stream."""

from __future__ import annotations

from datetime import timedelta

from headgate.airflow.dags.common import Schedule
from headgate.declaration.quantities import format_duration

STREAM = """\
Keeps the stream **{name}** running: `{file}`, tables under `{root}`.

One run lasts {hours:.0f} hours; the next one adopts the same driver. The driver is a process of its
own: nothing that happens to tasks, workers or Airflow itself ends it.

| In Airflow | Effect on the stream |
|---|---|
| **pause the DAG** | It continues, but is not restarted when it dies. |
| **clear** the task | It continues; the new attempt adopts it. To restart it: `{name}__control`. |
| **mark failed**, **mark success** | It stops after its batch. The next run leaves it stopped. |
| **delete the DAG** or a run | Same as marking the task failed, if it is still running. |
| **trigger** | The run waits until the running one is over. |

Stop, restart, savepoints: trigger **{name}__control**. From a shell: `{status}`.
"""

CONTROL = """\
Performs one action on the stream **{name}**. No action is selected by default. Only *start from
savepoint* needs a savepoint: its id, or `latest`.

*Release* and *Reject* ask for an approval in Airflow (*Required actions*), which shows the rows,
and for a reason, which the commit keeps; other actions do not wait for it.

A stopped stream stays stopped until it is started again; `{name}__stream` does not start it.
*Pause*, *clear*, *mark* and *delete* have their usual effect on these runs; a cleared run repeats
its action.
"""

GOLD = """\
Emits an event of the table's asset for each hour of {tables} that becomes **final** and has rows,
while the stream **{name}** continues, and again if a final row changes: after a late replay, a
backfill, a restore or a rebuild. The partition key is the hour (`2026-11-20T14:00:00`, in UTC). A
DAG with `schedule=PartitionedAssetTimetable(assets=gold_asset("{name}", …))` runs once for each
event. `gold_days` is the asset of the table's days (`2026-11-20`).

A run lasts until something is due; then the next run begins. The assets' own events show what was
emitted, so *clear*, *mark* and *delete* repeat and omit none. *Pause* delays events until the DAG
is on again; *trigger* waits for the current run. None of them changes the stream.
"""

BACKFILL = """\
Computes each interval of gold of **{name}** again from bronze, once it is final, beside the stream,
and compares it with the tables. The report is in the log of the task `compute`; its XCom
`computed_by` says which declaration was used. Mode: `{mode}`; publish: `{publish}` (`airflow:
{{backfill: …}}` in the declaration).

| In Airflow | Effect |
|---|---|
| **backfill** (or `airflow backfill create`) | Computes past intervals, two at a time. |
| **clear** a run | Computes it again; what is equal by then is not published again. |
| **clear** `compute` | The same; a person is asked again. |
| **pause**, **mark**, **delete** | Change no table and no stream. |

A savepoint is taken before an interval is published; restoring it undoes the publication.
`{name}__gold` emits the hours that have changed again. An approval holds for the rows that were
computed when it was asked for: others are not published.
"""

HEALTH = """\
Checks every stream {when}. A check fails if the driver makes no progress
(`freshness`), what it reads from does not answer (`outage`), a source cannot be read before a
person acts (`source`), the backlog is long (`backlog`), input is missing (`input`), the watermark
is far behind (`event_time`), many rows are late (`late`) or refused (`quarantine`), files are set
aside (`set_aside`), rules hold a gold table (`gate`), the circuit breaker pauses publications
(`breaker`), a sink takes no rows or refuses some (`publications`), or the ledger does not balance
(`ledger`).

One task for each stream makes all checks. It fails with the problems, so that callbacks and alerts
fire. Its log and its XCom `health` have the result of every check by name.
A stream that was stopped or paused on request is healthy.

*Pause* ends the checks, *clear* repeats them, *mark* and *delete* change no stream.
"""

MAINTENANCE = """\
For every stream, {when}, beside the running drivers: takes a **savepoint**; merges small files
(**compact**) and removes files that nothing needs (**vacuum**); proves the **ledger** by id; and
stops a stream whose task was ended while no triggerer could stop it (**reconcile**).

It keeps its newest 24 savepoints and those of a week; it deletes no others.

*Pause* lets files and logs grow, *clear* repeats a run, *mark* and *delete* change no stream. The
driver takes a declaration's own `savepoints`, whether this DAG is on or not.
"""


def when(schedule: Schedule) -> str:
    """The schedule in a sentence."""
    if schedule is None:
        return "whenever it is triggered"
    if isinstance(schedule, timedelta):
        return f"every {format_duration(schedule)}"
    return f"by the schedule `{schedule}`"
