"""The functions whose types and rules Headgate knows itself. Spark's analysis decides about all
others (``spark_functions.py``).

All exist in Spark 4.2, give the same result every time, read nothing but their arguments, and
cannot fail a query at run time with ``spark.sql.ansi.enabled=false``, whatever the data holds.
An argument that could (a pattern, a position, a length) must be a literal and is checked.

A row is ``name: arguments -> result``. A line with ``#`` begins a group. Arguments:
    string number integral boolean array map    of that type
    array_or_map    one of the two
    texts plain sortable    an array of strings; of values without parts; of sortable values
    member          of the type of the array's elements
    place           a position other than 0 as a literal, or a key
    lambda          such as ``x -> x > 0``: `lambdas.py` checks it and gives the result
    time / time!    a date or timestamp; with ``!`` one that is certainly far from overflow
    timestamp       a timestamp, or a date that is certainly far from overflow
    scalar          any type without parts
    same            all of these are cast to their common type, which has no parts
    alike           all of these are cast to their common type
    int:LOW:HIGH    an integer literal in that range
    oneof:a|b       a literal, one of these
    flag            true or false
    unit            a unit of time, written without quotes
    regex format parse literal ...    a string literal that `literals.py` checks
``?`` marks an optional argument, ``*`` any number of arguments. Results are a type, ``=1`` (the
type of the first argument), ``same``, or the name of a rule in ``calls.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DataType

_ROWS = """
# Text
lower: string -> string
upper: string -> string
lcase: string -> string
ucase: string -> string
initcap: string -> string
trim: string -> string
ltrim: string -> string
rtrim: string -> string
btrim: string string? -> string
reverse: string -> string
length: string -> int
char_length: string -> int
character_length: string -> int
octet_length: string -> int
bit_length: string -> int
ascii: string -> int
substring: string integral integral? -> string
substr: string integral integral? -> string
left: string integral -> string
right: string integral -> string
lpad: string int:0:65536 string? -> string
rpad: string int:0:65536 string? -> string
replace: string string short? -> string
translate: string string string -> string
concat: scalar scalar* -> string
concat_ws: string scalar scalar* -> string
instr: string string -> int
locate: string string integral? -> int
position: string string integral? -> int
find_in_set: string string -> int
contains: string string -> boolean
startswith: string string -> boolean
endswith: string string -> boolean
# Patterns in text
split: string regex int:1:1000? -> array<string>
substring_index: string string int:-1000:1000 -> string
regexp_extract: string regex int:0:20? -> string
regexp_replace: string regex replacement -> string
regexp_like: string regex -> boolean
# Hashes and codes
conv: string int:2:36 int:2:36 -> string
md5: string -> string
sha1: string -> string
sha: string -> string
sha2: string oneof:0|224|256|384|512 -> string
crc32: string -> bigint
hash: scalar scalar* -> int
xxhash64: scalar scalar* -> bigint
get_json_object: string path -> string
try_parse_url: string oneof:HOST|PATH|QUERY|REF|PROTOCOL|AUTHORITY|USERINFO|FILE key? -> string
url_encode: string -> string
try_url_decode: string -> string
# Numbers
abs: number -> =1
sign: number -> double
signum: number -> double
sqrt: number -> double
cbrt: number -> double
exp: number -> double
expm1: number -> double
ln: number -> double
log: number number? -> double
log10: number -> double
log2: number -> double
log1p: number -> double
pow: number number -> double
power: number number -> double
sin: number -> double
cos: number -> double
tan: number -> double
asin: number -> double
acos: number -> double
atan: number -> double
atan2: number number -> double
degrees: number -> double
radians: number -> double
hypot: number number -> double
rint: number -> double
round: number int:-38:38? -> round
bround: number int:-38:38? -> round
ceil: number -> ceil
ceiling: number -> ceil
floor: number -> ceil
mod: number number -> remainder
pmod: number number -> remainder
negative: number -> =1
positive: number -> =1
isnan: number -> boolean
nanvl: number number -> double
factorial: integral -> bigint
bin: integral -> string
bit_count: integral -> int
shiftleft: integral int:0:63 -> shift
shiftright: integral int:0:63 -> shift
# Choice and null
greatest: same same same* -> same
least: same same same* -> same
coalesce: alike alike* -> same
ifnull: alike alike -> same
nvl: alike alike -> same
nvl2: any alike alike -> same
nullif: same same -> =1
nullifzero: number -> =1
if: boolean alike alike -> same
isnull: any -> boolean
isnotnull: any -> boolean
equal_null: same same -> boolean
# Parts of a time
year: time -> int
quarter: time -> int
month: time -> int
day: time -> int
dayofmonth: time -> int
dayofweek: time -> int
weekday: time -> int
dayofyear: time -> int
weekofyear: time -> int
hour: timestamp -> int
minute: timestamp -> int
second: timestamp -> int
dayname: time -> string
monthname: time -> string
# Moving and cutting times
date_add: time! int:-100000:100000 -> date
dateadd: time! int:-100000:100000 -> date
date_sub: time! int:-100000:100000 -> date
add_months: time! int:-12000:12000 -> date
last_day: time! -> date
next_day: time! oneof:MON|TUE|WED|THU|FRI|SAT|SUN -> date
trunc: time! oneof:YEAR|QUARTER|MONTH|WEEK -> date
date_trunc: oneof:YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND time! -> timestamp
datediff: time time -> int
date_diff: time time -> int
timestampdiff: unit time! time! -> bigint
months_between: time! time! -> double
# Making and printing times
to_date: time_or_string parse? -> date
to_timestamp: string parse? -> timestamp
date_format: timestamp format -> string
from_unixtime: integral format? -> string
unix_timestamp: timestamp -> bigint
to_unix_timestamp: timestamp -> bigint
unix_seconds: timestamp -> bigint
unix_millis: timestamp -> bigint
unix_micros: timestamp -> bigint
unix_date: date -> int
timestamp_micros: integral -> timestamp
from_utc_timestamp: timestamp! zone -> timestamp
to_utc_timestamp: timestamp! zone -> timestamp
# Arrays
size: array_or_map -> int
cardinality: array_or_map -> int
array_size: array -> int
array_contains: array member -> boolean
array_position: array member -> bigint
array_join: texts short -> string
array_distinct: plain -> =1
array_compact: array -> =1
array_min: sortable -> element
array_max: sortable -> element
sort_array: sortable flag? -> =1
get: array integral -> element
element_at: array_or_map place -> part
# Maps
map_keys: map -> keys
map_values: map -> values
map_contains_key: map string -> boolean
# Lambdas
exists: array lambda -> boolean
forall: array lambda -> boolean
filter: array lambda -> =1
transform: array lambda -> lambdas
aggregate: array any lambda lambda? -> lambda
reduce: array any lambda lambda? -> lambda
"""


@dataclass(frozen=True)
class Argument:
    kind: str
    optional: bool
    repeated: bool


@dataclass(frozen=True)
class Function:
    name: str
    arguments: tuple[Argument, ...]
    result: DataType | str
    group: str

    @property
    def usage(self) -> str:
        """How many arguments it takes, such as ``1 argument`` and ``2 to 3 arguments``."""
        least = sum(not (a.optional or a.repeated) for a in self.arguments)
        if any(a.repeated for a in self.arguments):
            return f"at least {least} argument{'' if least == 1 else 's'}"
        most = len(self.arguments)
        counts = str(least) if least == most else f"{least} to {most}"
        return f"{counts} argument{'' if most == 1 else 's'}"


_RULES = frozenset(("=1", "same", "remainder", "element", "part", "keys", "values"))
_RULES |= {"lambda", "lambdas", "shift", "round", "ceil"}
_AGGREGATES = (
    "count sum min max avg mean stddev count_distinct count_if approx_count_distinct first last "
    "collect_list collect_set median percentile stddev_samp stddev_pop variance max_by min_by "
    "any_value first_value last_value bool_and bool_or every some any"
)
AGGREGATES = frozenset(_AGGREGATES.split())
# Functions of Spark that are refused, by the reason that a message gives.
REFUSED_FOR = {
    "is not deterministic": "rand randn random uuid shuffle now current_date "
    "current_timestamp current_time curdate current_timezone localtimestamp "
    "monotonically_increasing_id spark_partition_id current_user user session_user "
    "current_catalog current_database current_schema version randstr uniform",
    "runs code outside the pipeline": "java_method reflect try_reflect",
    "reads where the data came from": "input_file_name input_file_block_start "
    "input_file_block_length",
    "would stop the pipeline": "raise_error assert_true",
    "returns several rows for one; use exists, filter, transform or aggregate": "explode "
    "explode_outer posexplode posexplode_outer inline inline_outer stack",
}
REFUSED = {name: reason for reason, names in REFUSED_FOR.items() for name in names.split()}


@cache
def functions() -> dict[str, Function]:
    """All allowed functions by name."""
    found: dict[str, Function] = {}
    group = ""
    for row in _ROWS.strip().splitlines():
        if row.startswith("# "):
            group = row.removeprefix("# ")
            continue
        name, rest = row.split(": ", 1)
        arguments, result = rest.split(" -> ")
        parsed = tuple(map(_parse_argument, arguments.split()))
        typed = result if result in _RULES else parse_type(result)
        found[name] = Function(name, parsed, typed, group)
    return found


def _parse_argument(text: str) -> Argument:
    return Argument(text.rstrip("?*"), text.endswith("?"), text.endswith("*"))
