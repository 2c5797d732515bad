"""Which records of a batch have an earlier copy, among the few rows that share a hash with one."""

from __future__ import annotations

import duckdb
import pyarrow as pa

# Earlier means: in bronze already (i = -1), or further up in this batch, which is numbered in log
# order. A window and no join: a producer that gives every record one id must not stall the stream.
_MATCHES = """
select i, same from (
  select i, min(i) over nearby < i as found, min(i) over alike < i as same
    from (select * from candidates union all by name select *, -1 as i from {earlier})
  window nearby as (
           partition by partition, hash_a, hash_b order by time
           range between {within} preceding and {within} following),
         alike as (
           partition by partition, hash_a, hash_b, content order by time
           range between {within} preceding and {within} following)
) where i >= 0 and found
"""

# Nor must such a producer's past. Of rows no further apart than `within`, all that the ones between
# the first and the last can reach is reached by those two; and contents that the batch does not
# have are nobody's.
_THINNED = """
(select partition, hash_a, hash_b, null as content, unnest([min(time), max(time)]) as time
   from earlier group by partition, hash_a, hash_b, time // {span}
 union all
 select partition, hash_a, hash_b, content, unnest([min(time), max(time)]) as time
   from earlier where content in (select content from candidates)
  group by partition, hash_a, hash_b, content, time // {span})
"""


class Matching:
    """``within`` in microseconds: how far apart in event time copies of an id may be."""

    def __init__(self, within: int) -> None:
        thinned = _THINNED.format(span=max(within, 1))
        self._few = _MATCHES.format(within=within, earlier="earlier")
        self._many = _MATCHES.format(within=within, earlier=thinned)
        self._connection = duckdb.connect(":memory:", config={"threads": 2})

    def matches(self, candidates: pa.Table, earlier: pa.Table) -> pa.Table:
        """``i`` of the candidates that have an earlier one within reach, and whether one of those
        has the ``same`` content. Both tables have the columns of ``SEEN``, candidates their place
        ``i`` in the batch as well."""
        self._connection.register("candidates", candidates)
        self._connection.register("earlier", earlier)
        many = len(earlier) >= len(candidates)
        return self._connection.sql(self._many if many else self._few).to_arrow_table()
