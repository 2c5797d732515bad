"""What every DAG says of itself: above all, what Airflow's buttons do to a stream."""

from __future__ import annotations

STREAM = """\
Keeps the stream **{name}** running: `{file}`, tables under `{root}`.

One run lasts {hours:.0f} hours; the next one adopts the same driver. The driver is a process of its
own: nothing that happens to tasks, workers or Airflow itself ends it.

| In Airflow | What becomes of the stream |
|---|---|
| **pause the DAG** | It runs on, and nobody restarts it when it dies. |
| **clear** the task | It runs on; the new attempt adopts it. To restart it: `{name}__control`. |
| **mark failed**, **mark success** | It ends after its batch. The next run leaves it at rest. |
| **delete the DAG** or a run | As marking the task failed, where it is still running. |
| **trigger** | The run waits until the running one is over. |

Stop, restart, savepoints: trigger **{name}__control**. From a shell: `{status}`.
"""

CONTROL = """\
Asks something of the stream **{name}**, once. No action is chosen beforehand; only *start from
savepoint* needs a savepoint: its id, or `latest`.

A stop lasts until somebody starts the stream again; `{name}__stream` leaves it at rest meanwhile.
*Pause*, *clear*, *mark* and *delete* do to these runs what they do to any other DAG's; a cleared
run does its action again.
"""

GOLD = """\
Tells which hours of {tables} are **final**, while the stream **{name}** goes on: an event of the
table's asset for each, with the hour as its partition key (`2026-11-20T14:00:00`, in UTC). A DAG
with `schedule=PartitionedAssetTimetable(assets=gold_asset("{name}", …))` runs once for each.

A run lasts until something is final, and the next begins. What was told is known from the assets'
events: *clear*, *mark* and *delete* repeat nothing and leave nothing out. *Pause* holds events back
until it is on again; *trigger* waits for the run there is. None of them changes the stream.
"""

HEALTH = """\
Asks of every stream, every five minutes: is gold **fresh**, is the **backlog** short, does
**input** come, is **event time** recent, are few rows **late** or in **quarantine**, does the
**ledger** balance. One task for each stream asks all of it and fails with what is wrong, so that
callbacks and alerts fire; its log and its XCom `health` have the result of every check by its name.
A stream that somebody asked to stop or to pause is well.

*Pause* ends the questions, *clear* asks again, *mark* and *delete* change no stream.
"""

MAINTENANCE = """\
For every stream, every hour, beside the running drivers: a **savepoint**; small files are merged
(**compact**), and what nobody needs is removed (**vacuum**); the **ledger** is proved by id; and a
stream that was to end, while nobody was there to end it, is ended (**reconcile**).

Of its savepoints the newest 24 are kept, and a week of them; nobody else's are touched.

*Pause* leaves files and logs to grow, *clear* does it again, *mark* and *delete* change no stream.
A declaration's own `savepoints` are taken by the driver, whether this DAG is on or not.
"""
