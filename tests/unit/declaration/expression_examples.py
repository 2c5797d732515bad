"""Expressions and the Spark types they have, over ``SCOPE``. Every allowed function is here.

Plain data, so that a test with Spark can compare each type with the one Spark itself infers.
"""

from __future__ import annotations

from headgate.declaration.type_parser import parse_type

_SCOPE = {
    "t": "tinyint",
    "i": "int",
    "b": "bigint",
    "f": "float",
    "x": "double",
    "p": "decimal(18,2)",
    "q": "decimal(10,4)",
    "w": "decimal(38,10)",
    "s": "string",
    "u": "string",
    "ok": "boolean",
    "d": "date",
    "ts": "timestamp",
    "ts2": "timestamp",
    "order": "int",
}
SCOPE = {name: parse_type(text) for name, text in _SCOPE.items()}

LITERALS = {
    "1": "int",
    "-2147483648": "int",
    "- +2147483648": "bigint",
    "+2": "int",
    "2147483648": "bigint",
    "-9223372036854775808": "bigint",
    "9223372036854775808": "decimal(19,0)",
    "1L": "bigint",
    "1.5": "decimal(2,1)",
    "0.05": "decimal(2,2)",
    "1.5BD": "decimal(2,1)",
    "1e3": "double",
    "1e-400": "double",
    "1.5D": "double",
    "'text'": "string",
    '"text"': "string",
    r"r'\d+'": "string",
    r"'it\'s'": "string",
    "true": "boolean",
    "date '2026-01-31'": "date",
    "timestamp '2026-01-31 12:00:00'": "timestamp",
    "cast(null as int)": "int",
}

ARITHMETIC = {
    "t + t": "tinyint",
    "i + b": "bigint",
    "b + f": "float",
    "f + x": "double",
    "i / i": "double",
    "b % i": "bigint",
    "b div i": "bigint",
    "p div i": "bigint",
    "-p": "decimal(18,2)",
    "+i": "int",
    "p + q": "decimal(21,4)",
    "p - i": "decimal(19,2)",
    "p * q": "decimal(29,6)",
    "p / q": "decimal(33,13)",
    "p / b": "decimal(38,22)",
    "p % q": "decimal(10,4)",
    "p * 2": "decimal(20,2)",
    "p + 1": "decimal(19,2)",
    "p * 2L": "decimal(20,2)",
    "p * -2": "decimal(20,2)",
    "p * ((-2l))": "decimal(20,2)",
    "007L * p": "decimal(20,2)",
    "p * -9223372036854775808": "decimal(38,2)",
    "p * (1000)": "decimal(23,2)",
    "p * 1000L": "decimal(23,2)",
    "p * +2": "decimal(29,2)",
    "p * +(2)": "decimal(29,2)",
    "p * (+2L)": "decimal(38,2)",
    "p * - -2": "decimal(29,2)",
    "p * -(2)": "decimal(29,2)",
    "p * - +2": "decimal(29,2)",
    "p * 2::bigint": "decimal(38,2)",
    "p * cast(2 as bigint)": "decimal(38,2)",
    "p / 100": "decimal(22,6)",
    "p * x": "double",
    "p + f": "double",
    "w * w": "decimal(38,6)",
    "w + w": "decimal(38,9)",
    "w / w": "decimal(38,6)",
    "(p + q) * 2": "decimal(23,4)",
    "i & b": "bigint",
    "~i": "int",
    "i | 1": "int",
    "i ^ 1": "int",
    "s || u": "string",
    "s || i": "string",
    "s || (i + 1)": "string",
    "(i & b) || s": "string",
    "~i || s": "string",
}

CONDITIONS = {
    "p > 0": "boolean",
    "i = b": "boolean",
    "s == 'x'": "boolean",
    "s <> u": "boolean",
    "s != u": "boolean",
    "s <=> null": "boolean",
    "i is distinct from b": "boolean",
    "ok and not (i > 1 or s is null)": "boolean",
    "!ok": "boolean",
    "ok is not true": "boolean",
    "i in (1, 2, 3)": "boolean",
    "s not in ('a', 'b')": "boolean",
    "p between 1 and 2.5": "boolean",
    "s like 'a%'": "boolean",
    "s not like '%b_'": "boolean",
    "s ilike 'A%'": "boolean",
    r"s rlike '^\\d{4}-[a-z]+$'": "boolean",
    "s regexp r'(ab|cd)x*'": "boolean",
    "s rlike '(^|&)a=[^&]*'": "boolean",
    "ts > '2026-01-31'": "boolean",
    "d >= date '2026-01-31'": "boolean",
    "d in ('2026-01-31', '2026-02-28')": "boolean",
    "ts in (timestamp '2026-01-31T12:00:00Z', d)": "boolean",
    "ts > d": "boolean",
}

FORMS = {
    "case when ok then 1 else 2L end": "bigint",
    "case i when 1 then p end": "decimal(18,2)",
    "case when ok then d else ts end": "timestamp",
    "cast(s as bigint)": "bigint",
    "try_cast(s as decimal(10,2))": "decimal(10,2)",
    "s::double": "double",
    "cast(b as timestamp)": "timestamp",
    "cast(d as timestamp)": "timestamp",
    "cast(ts as date)": "date",
    "cast(s as date)": "date",
    "cast(ts as bigint)": "bigint",
    "cast(ok as int)": "int",
    "cast(i as boolean)": "boolean",
    "extract(year from ts)": "int",
    "extract(day from d)": "int",
    "split(s, ',')[0]": "string",
    "ts + interval 1 hour": "timestamp",
    "ts - interval '90' minutes": "timestamp",
    "ts - interval '- 2 days'": "timestamp",
    "ts + interval + 1 hour": "timestamp",
    "date_add(d, +1)": "date",
    "round(p, - -1)": "decimal(18,1)",
    "ts > timestamp '2026-01-31 12:00:00.5-18:00'": "boolean",
    "d + interval 2 days": "date",
    "order + 1": "int",
    "`order`": "int",
}

# Calls by their type, separated by bars.
_CALLS = {
    "string": r"""
        lower(s) | upper(s) | lcase(s) | ucase(s) | initcap(s) | trim(s) | ltrim(s) | rtrim(s)
        btrim(s) | btrim(s, 'x') | reverse(s) | substring(s, 1, 2) | substr(s, 2) | left(s, 2)
        right(s, i) | lpad(s, 9, '0') | rpad(s, 9) | replace(s, 'a') | replace(s, u, 'b')
        translate(s, 'ab', 'cd') | concat(s, i, d) | concat_ws('-', s, i)
        substring_index(s, '.', -1) | regexp_extract(s, '(a+)b')
        regexp_extract(s, r'(\d)(\w)', 2) | regexp_replace(s, '[^a-z]', '_') | conv(s, 16, 10)
        md5(s) | sha1(s) | sha(s) | sha2(s, 256) | url_encode(s)
        get_json_object(s, '$.a.b[0]') | try_parse_url(s, 'HOST') | try_url_decode(s)
        try_parse_url(s, 'QUERY', 'id') | bin(i) | dayname(d) | monthname(ts)
        date_format(ts, 'yyyy-MM-dd HH') | date_format(d, 'MMM yyyy') | from_unixtime(b)
        from_unixtime(b, 'yyyy') | array_join(split(s, ','), '-') | get(split(s, ','), 1)
        ifnull(s, 'x')
    """,
    "int": r"""
        length(s) | char_length(s) | character_length(s) | octet_length(s) | bit_length(s)
        ascii(s) | instr(s, 'a') | locate('a', s) | locate('a', s, 2) | position('a', s)
        find_in_set('a', s) | hash(s, i) | bit_count(b) | year(ts) | quarter(d) | month(d)
        day(d) | dayofmonth(d) | dayofweek(d) | weekday(ts) | dayofyear(ts) | weekofyear(d)
        hour(ts) | minute(ts) | second(ts) | datediff(ts, d) | date_diff(d, d) | unix_date(d)
        size(split(s, ',')) | array_size(split(s, ',')) | shiftleft(i, 2) | shiftright(t, 1)
        year(to_date(s)) | hour(to_timestamp(s)) | round(i, 2) | nvl2(s, 1, 2) | nullifzero(i)
    """,
    "bigint": r"""
        crc32(s) | xxhash64(s, d) | ceil(x) | ceiling(i) | floor(b) | factorial(i)
        shiftleft(b, 2) | unix_timestamp(ts) | to_unix_timestamp(ts) | unix_seconds(ts)
        unix_millis(ts) | unix_micros(ts) | timestampdiff(SECOND, ts, ts2)
        array_position(split(s, ','), 'a') | coalesce(i, b) | mod(b, i)
    """,
    "double": r"""
        sign(p) | signum(i) | sqrt(x) | cbrt(x) | exp(x) | expm1(x) | ln(x) | log(x)
        log(2, x) | log10(x) | log2(x) | log1p(x) | pow(x, 2) | power(i, 2) | sin(x) | cos(x)
        tan(x) | asin(x) | acos(x) | atan(x) | atan2(x, x) | degrees(x) | radians(x)
        hypot(x, x) | rint(x) | nanvl(x, 0) | round(x, 2) | abs(x) | months_between(ts, ts2)
        greatest(p, x) | positive(x)
    """,
    "boolean": r"""
        contains(s, 'a') | startswith(s, 'a') | endswith(s, 'a') | regexp_like(s, 'a+')
        isnan(x) | isnull(s) | isnotnull(s) | equal_null(s, u)
        array_contains(array_distinct(split(s, ',')), 'a')
    """,
    "date": r"""
        date_add(d, 1) | dateadd(ts, 1) | date_sub(d, 1) | add_months(d, 1) | last_day(d)
        next_day(d, 'MON') | trunc(ts, 'MONTH') | to_date(ts) | to_date(s)
        to_date(s, 'yyyy-MM-dd') | nvl(d, date '2026-01-31')
    """,
    "timestamp": r"""
        date_trunc('HOUR', ts) | date_trunc('DAY', d) | to_timestamp(s) | timestamp_micros(b)
        to_timestamp(s, "yyyy-MM-dd'T'HH:mm:ssXXX") | from_utc_timestamp(ts, 'Asia/Tokyo')
        to_utc_timestamp(ts, 'Europe/Paris') | least(d, ts)
    """,
    "decimal(18,2)": r"""
        abs(p) | negative(p) | coalesce(p, 0) | nullif(p, 0) | if(ok, p, null)
    """,
    "decimal(17,0)": r"""
        round(p) | bround(p, -2) | ceil(p)
    """,
    "decimal(18,1)": r"""
        round(p, 1)
    """,
    "decimal(10,4)": r"""
        pmod(p, q)
    """,
    "decimal(20,4)": r"""
        least(p, q)
    """,
    "decimal(38,10)": r"""
        greatest(w, b)
    """,
}
FUNCTIONS = {
    call: type_
    for type_, block in _CALLS.items()
    for line in block.strip().splitlines()
    for call in line.strip().split(" | ")
}

EXAMPLES = {**LITERALS, **ARITHMETIC, **CONDITIONS, **FORMS, **FUNCTIONS}
