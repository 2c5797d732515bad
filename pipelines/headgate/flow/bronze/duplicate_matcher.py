"""Finds the copies in a batch, among the few rows whose hash occurs more than once."""

from __future__ import annotations

from functools import cached_property

import duckdb
import pyarrow as pa

_NEARBY = """
nearby as (
  partition by partition, hash_a, hash_b order by time
  range between {within} preceding and {within} following)
"""

# Earlier means in bronze (-1), or at a lower number in this batch, which is numbered in log order.
# A window is used, not a join, because a join is quadratic if a producer gives all records one id.
_MATCHES = f"""
select i, coalesce(same, false) as same from (
  select i, min(known) over nearby < i as found, min(known) over alike < i as same
    from (select *, if(conforms, i, null) as known from candidates
          union all by name select *, -1 as i, -1 as known from {{earlier}})
  window {_NEARBY},
         alike as (
           partition by partition, hash_a, hash_b, content order by time
           range between {{within}} preceding and {{within}} following)
) where i >= 0 and found
"""

# The first valid copy corrects the invalid records, unless it is a duplicate itself.
_CORRECTED = f"""
select count(*) from (
  select is_failure, min(known) over nearby as first, min(opener) over nearby as opened
    from (select *, true as is_failure from failures
          union all by name select *, i as known, if(opens, i, null) as opener from candidates
          union all by name select *, -1 as known from {{earlier}})
  window {_NEARBY}
) where is_failure and first = opened
"""

# Keeps the window small if a producer gives all records one id. Of the rows in one span, only the
# first and the last are needed: every row that is within reach of a row between them is within
# reach of one of these two. Contents that the batch does not have are not needed.
_REDUCED = """
(select partition, hash_a, hash_b, null as content, unnest([min(time), max(time)]) as time
   from earlier group by partition, hash_a, hash_b, time // {span}
 union all
 select partition, hash_a, hash_b, content, unnest([min(time), max(time)]) as time
   from earlier where content in (select content from candidates)
  group by partition, hash_a, hash_b, content, time // {span})
"""


class DuplicateMatcher:
    """``within`` in microseconds: how far apart in event time copies of an id may be."""

    def __init__(self, within: int) -> None:
        self._within = within
        self._reduced = _REDUCED.format(span=max(within, 1))

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        # Opened for the first batch with copies: it starts threads, and most drivers see no copies.
        return duckdb.connect(":memory:", config={"threads": 2})

    def matches(self, candidates: pa.Table, earlier: pa.Table) -> pa.Table:
        """``i`` of the candidates that have an earlier valid copy within reach, and whether one of
        these copies has the ``same`` content.

        ``candidates`` have the columns of ``DEDUP_ROWS`` and their position ``i`` in the batch;
        ``earlier`` are valid records of bronze.
        """
        return self._ask(_MATCHES, candidates, earlier)

    def corrected(self, failed: pa.Table, candidates: pa.Table, earlier: pa.Table) -> int:
        """How many of the ``failed`` records get their first valid copy within reach, if that copy
        is not a duplicate.

        ``failed`` are invalid records of bronze, and those of the batch without an earlier valid
        copy. ``candidates`` are the valid records of the batch; ``opens`` is true for those that
        are not copies. ``earlier`` are valid records of bronze.
        """
        self._connection.register("failures", failed)
        return int(self._ask(_CORRECTED, candidates, earlier).column(0)[0].as_py())

    def _ask(self, question: str, candidates: pa.Table, earlier: pa.Table) -> pa.Table:
        self._connection.register("candidates", candidates)
        self._connection.register("earlier", earlier)
        rows = self._reduced if len(earlier) >= len(candidates) else "earlier"
        sql = question.format(within=self._within, earlier=rows)
        return self._connection.sql(sql).to_arrow_table()
