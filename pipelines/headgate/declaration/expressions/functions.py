"""The functions whose types and rules Headgate knows itself. Spark's analysis decides about all
others (``SPARK_FUNCTIONS``).

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
class Parameter:
    kind: str
    optional: bool
    repeated: bool


@dataclass(frozen=True)
class Function:
    name: str
    arguments: tuple[Parameter, ...]
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


def _parse_argument(text: str) -> Parameter:
    return Parameter(text.rstrip("?*"), text.endswith("?"), text.endswith("*"))


# The names of all other functions of Spark are here so that a misspelt name is reported at once. A
# test compares them with Spark's own list. Which of them are allowed, the analysis finds
# (``catalyst``): aggregates and sketches of many rows, for example, are not.
_NAMES = """
acosh aes_decrypt aes_encrypt approx_percentile approx_top_k approx_top_k_accumulate
approx_top_k_combine approx_top_k_estimate array array_agg array_append array_except array_insert
array_intersect array_prepend array_remove array_repeat array_sort array_union arrays_overlap
arrays_zip asinh atanh base64 bigint binary bit_and bit_get bit_or bit_xor bitmap_and_agg
bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg boolean
char chr collate collation convert_timezone corr cosh cot count_min_sketch covar_pop covar_samp
csc cume_dist current_path date date_from_unix_date date_part datepart decimal decode dense_rank
double e elt encode flatten float format_number format_string from_avro from_csv from_json
from_protobuf from_xml getbit grouping grouping_id hex histogram_numeric hll_sketch_agg
hll_sketch_estimate hll_union hll_union_agg int is_valid_utf8 is_valid_variant is_variant_null
json_array_length json_object_keys json_tuple kll_merge_agg_bigint kll_merge_agg_double
kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
kll_sketch_to_string_double kll_sketch_to_string_float kurtosis lag lead len levenshtein listagg
luhn_check make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_entries map_filter
map_from_arrays map_from_entries map_zip_with mask mode named_struct nth_value ntile overlay
parse_json parse_url percent_rank percentile_approx percentile_cont percentile_disc pi printf
quote rank regexp regexp_count regexp_extract_all regexp_instr regexp_substr regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat rlike row_number
schema_of_avro schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg schema_of_xml
sec sentences sequence session_window shiftrightunsigned sinh skewness slice smallint soundex
space split_part st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid std str_to_map
string string_agg struct tanh theta_difference theta_intersection theta_intersection_agg
theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time time_bucket time_diff
time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds
time_trunc timestamp timestamp_millis timestamp_seconds tinyint to_avro to_binary to_char to_csv
to_json to_number to_protobuf to_time to_timestamp_ltz to_timestamp_ntz to_varchar
to_variant_object to_xml transform_keys transform_values try_add try_aes_decrypt try_avg
try_divide try_element_at try_make_interval try_make_timestamp try_make_timestamp_ltz
try_make_timestamp_ntz try_mod try_multiply try_parse_json try_subtract try_sum try_to_binary
try_to_date try_to_number try_to_time try_to_timestamp try_validate_utf8 try_variant_get
tuple_difference_double tuple_difference_integer tuple_difference_theta_double
tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
tuple_union_theta_double tuple_union_theta_integer typeof unbase64 unhex url_decode validate_utf8
var_pop var_samp variant_get vector_avg vector_cosine_similarity vector_inner_product
vector_l2_distance vector_norm vector_normalize vector_sum width_bucket window window_time xpath
xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
zeroifnull zip_with
"""
# Calls of Spark's grammar that are not in its list of functions.
_OF_THE_GRAMMAR = ("timestampadd", "like", "ilike")
SPARK_FUNCTIONS = frozenset((*_NAMES.split(), *_OF_THE_GRAMMAR))
"""The names of the functions whose rules only Spark's analysis knows."""
