"""The rules of the protocol, one by one. A mutant is the protocol without one of them."""

from __future__ import annotations

from enum import Enum


class Rule(Enum):
    # Commits
    APP_TRANSACTION = "every commit carries the table's app transaction"
    OLD_HANDLE = "a commit is made on the handle that its step began with, never refreshed"
    REFUSED_ENDS = "a refused commit ends the driver; nothing is retried on a new handle"
    UNIQUE_ATTEMPT = "each attempt stages into a directory of its own"
    COPY_FORWARD = "commits without data copy the table's state forward"
    # Epochs and fences
    RISING_EPOCH = "each driver that starts gets a higher epoch than all before"
    EPOCH_CHECK = "a step ends the driver when the table shows a higher epoch"
    FENCE = "a driver commits its epoch to its tables before any stage runs"
    FENCE_EVERY_TABLE = "side tables are fenced as well"
    FENCE_CHECK = "a fence, too, ends the driver when the table shows a higher epoch"
    FENCE_OWN_LAYER = "a process of one layer fences the tables of that layer only"
    # Bronze
    CHECKPOINT_IN_BRONZE = "the next range starts where bronze's last commit ended"
    START_AFTER_FENCE = "that end is read after the fences"
    RANGE_CHECK = "bronze takes only a range that starts where its last commit ended"
    FILES_LOG_FENCED = "the files log is committed to like every table"
    # Stages
    CATCH_UP_AT_START = "a driver brings its stages level before it plans a batch"
    WHOLE_RANGE = "a stage processes all of (h, n], not only batch n"
    NO_MORE_THAN_RANGE = "a stage processes no more than (h, n], even if upstream has more"
    SIDE_FIRST = "side tables are committed before the dense table of their stage"
    SIDE_LOWER_BOUND = "a side table starts at the greater of its own h and its stage's"
    PINNED_DEFINITION = "a step is finished under the definition that it was begun with"
    # Decisions, operations, maintenance
    DECISION_FENCED = "a decision is a commit of control, fenced like every other"
    CONTROL_FENCED = "who may decide fences control with the tables"
    POSITION_OF_BRONZE = "an operation takes place after the last batch of bronze at the decision"
    DECISIONS_READ_LAST = "a job reads the decisions after it read how far the table above is"
    SILVER_STOPS = "no step of silver passes the n of an operation"
    GOLD_STOPS = "gold carries an operation out at its n, behind no more and no fewer batches"
    OPERATION_ONCE = "a table that has operation o is not operated on again"
    COMPACT_PROCESSED = "compaction leaves alone what a stage downstream has yet to process"
    # Resets: decisions
    RESTORE_FENCES = "what asks for resets has fenced every table before"
    ONE_DECISION = "one decision asks for all tables that have to go back together"
    SIDES_TOO = "a side table goes back with the dense table of its stage"
    NEWEST_BY_TABLE = "a table awaits the newest reset that names it, not the newest of all"
    ASKED_ANEW = "a restore asks for all tables again, even if the same one was left open"
    SAME_PAST = "a restore that leaves bronze is refused if bronze no longer has that past"
    BATCH_IDENTITY = "a batch is known by bronze's generation at its commit and by its number"
    VOID_LATER = "if bronze goes back, later operations are not in force any more"
    VOID_AGAIN = "operations that were not in force at a savepoint are not after its restore"
    IN_FORCE_AGAIN = "operations that were in force at a savepoint are after its restore"
    # Resets: carrying them out
    RESET_AT_START = "who owns a table finishes its reset before any stage runs"
    RESET_ENDS = "a driver ends before its next step, and behind a gap, if one was asked for since"
    PUBLICATION_TAKEN = "a running driver carries out the publication of a rebuild and goes on"
    SILVER_WAITS = "silver processes nothing of a bronze table that awaits its reset"
    GOLD_WAITS = "gold processes nothing of a silver table that awaits its reset"
    NEW_GENERATION = "a reset raises the table's generation to that of its decision"
    TARGET_POSITION = "a reset table stands at the n that its files have processed"
    TARGET_STATE = "counts, operation and what is closed go back with the files"
    CLOSED_AGAIN = "a table that is built anew carries out every operation again"
    LINEAGE = "reading batches back goes on, behind a reset, at the version that it restored"
    # Several sources
    FAILING_ALONE = "a source of which no batch can be read does not stop the others"
    DAMAGED_ALONE = "a source whose silver or gold cannot go on does not stop the others"
    POSITION_BY_SOURCE = "a decision has a position for each source"
    ADDED_UNTOUCHED = "an operation of before a source was added does not touch its tables"
    LEFT_FENCED = "a driver fences the tables of sources that are not declared any more, too"
    PAST_OF_EACH = "a restore that leaves bronze is refused if one bronze table has another past"
    VOID_BY_SOURCE = "an operation is not in force for the sources whose bronze goes back"
    VOID_OF_LEFT = "a reset says what is not in force for all sources, declared or not"
    REBUILT_WAITS = "no operation is decided that touches a source whose bronze is rebuilt"
    # Savepoints
    CUT_UPWARDS = "a savepoint reads the tables from gold up to bronze"
    CUT_DECISIONS = "a savepoint reads the last decision after silver and before bronze"
    CUT_WHOLE = "no savepoint is taken of a table that awaits a reset, as control says at the end"
    CUT_BY_KIND = "a savepoint reads gold and silver of all sources before any bronze"
