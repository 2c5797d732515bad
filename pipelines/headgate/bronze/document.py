"""Is a text exactly one JSON document? As Spark columns, cheap for the usual line.

Spark's parser stops after the first document of a line and repairs invalid UTF-8. A line that
ends at its only closing brace, is valid UTF-8 and parsed without complaint needs no second look;
every other line is *suspect* and is parsed again, wrapped in two ways. Trailing text could close
one wrapping early, but not both.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

STRICT = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "columnNameOfCorruptRecord": "_corrupt",
}


def is_suspect(text: Column, corrupt: Column) -> Column:
    """Whether ``text`` needs :func:`is_document`; never false for a text that is not one."""
    from_second_last_brace = F.substring_index(text, "}", -2)
    one_brace = F.octet_length(from_second_last_brace) == F.octet_length(text)
    return ~(corrupt.isNull() & F.is_valid_utf8(text) & text.endswith("}") & one_brace)


def is_document(text: Column) -> Column:
    """Whether ``text`` is one strict JSON document of any kind, in valid UTF-8."""
    in_array = F.from_json(F.concat(F.lit("["), text, F.lit("]")), "array<string>", STRICT)
    in_object = F.from_json(F.concat(F.lit('{"v":'), text, F.lit("}")), "map<string,string>", STRICT)
    one = (F.size(in_array) == 1) & (F.size(in_object) == 1)
    return F.is_valid_utf8(text) & F.coalesce(one, F.lit(False))


def is_object(text: Column) -> Column:
    """Whether a document is an object."""
    return F.substring(F.ltrim(F.translate(text, "\t\r\n", "   ")), 1, 1) == "{"
