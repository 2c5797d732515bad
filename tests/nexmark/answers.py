"""What each query of Nexmark gives for a whole input, by DuckDB, and how the declaration's table
shows it.

The texts of the queries say what those of https://github.com/nexmark/nexmark say, over all events.
Where these leave open which of some equal rows counts, the order of the log decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from deltalake import DeltaTable


@dataclass(frozen=True)
class Answer:
    """``table`` is the layer and name of the table that answers the query, which ``shown`` reads as
    ``answer``. ``expected`` reads ``person``, ``auction`` and ``bid``: their columns in Nexmark,
    ``position`` in the log, and when a record has ``arrived``."""

    table: str
    shown: str
    expected: str


_RANKS = {
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}


def _ranked(what: str) -> str:
    """A measure of all bids, and of those of each rank."""
    return ", ".join([what, *(f"{what} FILTER ({rank})" for rank in _RANKS.values())])


def _names(of: str) -> str:
    return ", ".join(f"{group}_{of}" for group in ("total", *_RANKS))


_STATISTICS = ", ".join(
    _ranked(what) for what in ("count(*)", "count(DISTINCT bidder)", "count(DISTINCT auction)")
)
_STATISTICS_SHOWN = ", ".join(_names(of) for of in ("bids", "bidders", "auctions"))

_PAIRS = """
    SELECT auction.*, bidder, price, bid."dateTime" AS bid_time, bid.extra AS bid_extra,
      bid.position AS bid_position
    FROM auction JOIN bid ON auction.id = bid.auction
    WHERE bid."dateTime" BETWEEN auction."dateTime" AND expires
"""
_WINDOW = "time_bucket(INTERVAL 10 SECONDS, {})"
_HOPS = """
    SELECT auction, window_end, count(*) AS num
    FROM (
      SELECT auction, unnest(generate_series(
        time_bucket(INTERVAL 2 SECONDS, "dateTime") + INTERVAL 2 SECONDS,
        time_bucket(INTERVAL 2 SECONDS, "dateTime") + INTERVAL 10 SECONDS,
        INTERVAL 2 SECONDS)) AS window_end
      FROM bid)
    GROUP BY ALL
"""

ANSWERS: Mapping[str, Answer] = {
    "q0": Answer(
        "silver/q0",
        "SELECT auction, bidder, price, date_time, extra FROM answer",
        'SELECT auction, bidder, price, "dateTime", extra FROM bid',
    ),
    "q1": Answer(
        "silver/q1",
        "SELECT auction, bidder, price, date_time, extra FROM answer",
        'SELECT auction, bidder, 0.908 * price, "dateTime", extra FROM bid',
    ),
    "q2": Answer(
        "silver/q2",
        "SELECT auction, price FROM answer",
        "SELECT auction, price FROM bid WHERE mod(auction, 123) = 0",
    ),
    "q4": Answer(
        "gold/q4",
        "SELECT category, average FROM answer",
        f"""
        SELECT category, sum(final) // count(*) FROM (
          SELECT id, category, max(price) AS final FROM ({_PAIRS}) GROUP BY id, category)
        GROUP BY category
        """,
    ),
    "q5": Answer(
        "gold/q5",
        """
        SELECT starttime, window_end, hot.auction, hot.num
        FROM (SELECT *, unnest(top[:hottest]) AS hot FROM answer)
        """,
        f"""
        SELECT window_end - INTERVAL 10 SECONDS, window_end, auction, num
        FROM ({_HOPS}) QUALIFY num = max(num) OVER (PARTITION BY window_end)
        """,
    ),
    "q7": Answer(
        "gold/q7",
        """
        SELECT high.auction, high.price, high.bidder, high.date_time, high.extra
        FROM (SELECT unnest(top[:highest]) AS high FROM answer)
        """,
        f"""
        SELECT auction, price, bidder, bid."dateTime", extra
        FROM bid JOIN (
          SELECT max(price) AS maxprice, {_WINDOW.format('"dateTime"')} AS window_start
          FROM bid GROUP BY window_start) ON price = maxprice
        WHERE bid."dateTime" BETWEEN window_start AND window_start + INTERVAL 10 SECONDS
        """,
    ),
    "q8": Answer(
        "gold/q8",
        "SELECT id, name, window_start FROM answer",
        f"""
        SELECT DISTINCT person.id, name, {_WINDOW.format('person."dateTime"')}
        FROM person JOIN auction ON person.id = seller
        AND {_WINDOW.format('person."dateTime"')} = {_WINDOW.format('auction."dateTime"')}
        """,
    ),
    "q9": Answer(
        "gold/q9",
        """
        SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller,
          category, extra, bidder, price, bid_date_time, bid_extra
        FROM answer
        """,
        f"""
        SELECT id, "itemName", description, "initialBid", reserve, "dateTime", expires, seller,
          category, extra, bidder, price, bid_time, bid_extra
        FROM ({_PAIRS})
        QUALIFY row_number() OVER (
          PARTITION BY id ORDER BY price DESC, bid_time, bid_position) = 1
        """,
    ),
    "q11": Answer(
        "gold/q11",
        "SELECT bidder, bid_count, window_start, window_end FROM answer",
        """
        SELECT bidder, count(*), min("dateTime"), max("dateTime") + INTERVAL 10 SECONDS
        FROM (
          SELECT *, count(*) FILTER (begins) OVER (
            PARTITION BY bidder ORDER BY "dateTime", position) AS session
          FROM (
            SELECT *, coalesce("dateTime" - lag("dateTime") OVER (
              PARTITION BY bidder ORDER BY "dateTime", position) > INTERVAL 10 SECONDS, true)
              AS begins
            FROM bid))
        GROUP BY bidder, session
        """,
    ),
    "q12": Answer(
        "gold/q12",
        "SELECT bidder, bid_count, window_start, window_end FROM answer",
        f"""
        SELECT bidder, count(*), {_WINDOW.format("arrived")} AS window_start,
          window_start + INTERVAL 10 SECONDS
        FROM bid GROUP BY bidder, window_start
        """,
    ),
    "q14": Answer(
        "silver/q14",
        "SELECT auction, bidder, price, bid_time_type, date_time, extra, c_counts FROM answer",
        """
        SELECT auction, bidder, 0.908 * price,
          CASE WHEN hour("dateTime") >= 8 AND hour("dateTime") <= 18 THEN 'dayTime'
            WHEN hour("dateTime") <= 6 OR hour("dateTime") >= 20 THEN 'nightTime'
            ELSE 'otherTime' END,
          "dateTime", extra, len(regexp_replace(extra, '[^c]', '', 'g'))
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
        """,
    ),
    "q15": Answer(
        "gold/q15",
        f"SELECT strftime(window_start, '%Y-%m-%d'), {_STATISTICS_SHOWN} FROM answer",
        f"SELECT strftime(\"dateTime\", '%Y-%m-%d') AS day, {_STATISTICS} FROM bid GROUP BY day",
    ),
    "q16": Answer(
        "gold/q16",
        f"""
        SELECT channel, strftime(window_start, '%Y-%m-%d'), minute, {_STATISTICS_SHOWN}
        FROM answer
        """,
        f"""
        SELECT channel, strftime("dateTime", '%Y-%m-%d') AS day,
          max(strftime("dateTime", '%H:%M')), {_STATISTICS}
        FROM bid GROUP BY channel, day
        """,
    ),
    "q17": Answer(
        "gold/q17",
        f"""
        SELECT auction, strftime(window_start, '%Y-%m-%d'), {_names("bids")}, min_price, max_price,
          avg_price, sum_price
        FROM answer
        """,
        f"""
        SELECT auction, strftime("dateTime", '%Y-%m-%d') AS day, {_ranked("count(*)")}, min(price),
          max(price), sum(price) // count(*), sum(price)
        FROM bid GROUP BY auction, day
        """,
    ),
    "q18": Answer(
        "gold/q18",
        "SELECT auction, bidder, price, channel, url, bid_date_time, extra FROM answer",
        """
        SELECT auction, bidder, price, channel, url, "dateTime", extra FROM bid
        QUALIFY row_number() OVER (
          PARTITION BY bidder, auction ORDER BY "dateTime" DESC, position DESC) = 1
        """,
    ),
    "q19": Answer(
        "gold/q19",
        """
        SELECT auction, bid.bidder, bid.price, bid.channel, bid.url, bid.date_time, bid.extra, rank
        FROM (SELECT auction, unnest(top) AS bid, generate_subscripts(top, 1) AS rank FROM answer)
        """,
        """
        SELECT auction, bidder, price, channel, url, "dateTime", extra, row_number() OVER (
          PARTITION BY auction ORDER BY price DESC, "dateTime" DESC, position DESC) AS rank
        FROM bid QUALIFY rank <= 10
        """,
    ),
    "q21": Answer(
        "silver/q21",
        "SELECT auction, bidder, price, channel, channel_id FROM answer",
        r"""
        SELECT auction, bidder, price, channel,
          CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
            WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END
        FROM bid WHERE regexp_matches(url, '(&|^)channel_id=([^&]*)')
          OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
        """,
    ),
    "q22": Answer(
        "silver/q22",
        "SELECT auction, bidder, price, channel, dir1, dir2, dir3 FROM answer",
        """
        SELECT auction, bidder, price, channel, folders[4], folders[5], folders[6]
        FROM (SELECT *, string_split(url, '/') AS folders FROM bid)
        """,
    ),
}
"""The other queries wait for parts that are not there yet: ``docs/nexmark.md``."""


class Difference(NamedTuple):
    """Between the rows that a table shows and those that it has to show: how many it shows, and the
    first that only one of them has."""

    shown: int
    more: list[tuple[Any, ...]]
    fewer: list[tuple[Any, ...]]


class Input:
    """The events of some files, in the order of the log, with the times at which these were
    written. ``close`` it."""

    def __init__(self, files: Iterable[Path]) -> None:
        events = _events(files)
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        for number, kind in enumerate(("person", "auction", "bid")):
            of_kind = events.filter(pc.equal(events["event_type"], number))
            columns = {
                field.name: pc.struct_field(of_kind[kind], field.name)
                for field in events.schema.field(kind).type
            }
            columns |= {name: of_kind[name] for name in ("dateTime", "arrived", "position")}
            self._connection.register("texts", pa.table(columns))
            times = ("dateTime", "expires") if kind == "auction" else ("dateTime",)
            cast = ", ".join(f'"{name}"::TIMESTAMPTZ AS "{name}"' for name in times)
            self._connection.execute(f"CREATE TABLE {kind} AS SELECT * REPLACE ({cast}) FROM texts")

    def close(self) -> None:
        self._connection.close()

    def difference(self, query: str, lake: Path) -> Difference:
        """Compare the answer in the pipeline ``nexmark`` of a lake with the input's, row by row."""
        answer, ask = ANSWERS[query], self._connection.execute
        table = DeltaTable(str(lake / "nexmark" / answer.table)).to_pyarrow_table()
        self._connection.register("answer", pa.table(table))
        ask(f"CREATE OR REPLACE TABLE shown AS {answer.shown}")
        ask(f"CREATE OR REPLACE TABLE expected AS {answer.expected}")
        (number,) = ask("SELECT count(*) FROM shown").fetchall()
        more = ask("FROM shown EXCEPT ALL FROM expected LIMIT 3").fetchall()
        fewer = ask("FROM expected EXCEPT ALL FROM shown LIMIT 3").fetchall()
        return Difference(number[0], more, fewer)


def _events(files: Iterable[Path]) -> pa.Table:
    pieces = []
    for file in files:
        events = pj.read_json(file)
        arrived = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        times = pa.repeat(pa.scalar(arrived, pa.timestamp("us", "UTC")), len(events))
        pieces.append(events.append_column("arrived", times))
    events = pa.concat_tables(pieces, promote_options="permissive")
    return events.append_column("position", pa.array(range(len(events))))
