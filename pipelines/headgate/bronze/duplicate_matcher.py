"""Which records of a batch are copies, among the few rows that share a hash with one."""

from __future__ import annotations

import duckdb
import pyarrow as pa

_NEARBY = """
nearby as (
  partition by partition, hash_a, hash_b order by time
  range between {within} preceding and {within} following)
"""

# Earlier means: in bronze already (-1), or further up in this batch, which is numbered in log
# order. A window and no join: a producer that gives every record one id must not stall the stream.
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

# The first conforming copy decides: it corrects what failed unless it is a duplicate itself.
_CORRECTED = f"""
select count(*) from (
  select is_failure, min(known) over nearby as first, min(opener) over nearby as opened
    from (select *, true as is_failure from failures
          union all by name select *, i as known, if(opens, i, null) as opener from candidates
          union all by name select *, -1 as known from {{earlier}})
  window {_NEARBY}
) where is_failure and first = opened
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


class DuplicateMatcher:
    """``within`` in microseconds: how far apart in event time copies of an id may be."""

    def __init__(self, within: int) -> None:
        self._within = within
        self._thinned = _THINNED.format(span=max(within, 1))
        self._connection = duckdb.connect(":memory:", config={"threads": 2})

    def matches(self, candidates: pa.Table, earlier: pa.Table) -> pa.Table:
        """``i`` of the candidates that have an earlier conforming one within reach, and whether
        one of those has the ``same`` content.

        ``candidates`` have the columns of ``SEEN`` and their place ``i`` in the batch; ``earlier``
        are conforming records of bronze.
        """
        return self._ask(_MATCHES, candidates, earlier)

    def corrected(self, failed: pa.Table, candidates: pa.Table, earlier: pa.Table) -> int:
        """How many of the ``failed`` records get their first conforming copy within reach, and
        that copy is no duplicate.

        ``failed`` are records of bronze, and of the batch those without an earlier conforming
        copy; ``candidates`` the conforming records of the batch, of which those are marked as
        ``opens`` that are no copy; ``earlier`` conforming records of bronze.
        """
        self._connection.register("failures", failed)
        return int(self._ask(_CORRECTED, candidates, earlier).column(0)[0].as_py())

    def _ask(self, question: str, candidates: pa.Table, earlier: pa.Table) -> pa.Table:
        self._connection.register("candidates", candidates)
        self._connection.register("earlier", earlier)
        past = self._thinned if len(earlier) >= len(candidates) else "earlier"
        sql = question.format(within=self._within, earlier=past)
        return self._connection.sql(sql).to_arrow_table()
