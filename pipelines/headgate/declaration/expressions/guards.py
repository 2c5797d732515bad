"""Guards for calls that ``null_on_error`` does not make safe. Where a guard does not hold, the call
gives null.

- Their result, or their cost, can be far larger than their arguments: a hostile record must not
  fill the memory, or stop a batch.
- They make a map. Spark keeps the map under construction for the next row, so after a null key or a
  key that occurs twice, the next row would get entries of this one.

A guard is a condition over the arguments {0}, {1} and so on.
"""

from __future__ import annotations

import re
from itertools import pairwise

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.tokens import commas, tokenize

MOST_TEXT = 1 << 20
"""The greatest number of bytes of text that a call makes from a count, or reads into an array."""
MOST_ELEMENTS = 100_000
"""The greatest number of elements that a call makes from a count."""
MOST_DOCUMENT = 16 << 20
"""The greatest number of bytes of a document that a call parses."""
_MOST_PAIRS = 100_000_000  # of elements, or of characters, that a call compares

_MOST_DIGITS = 1_000  # of a printed number
# Their parsers call themselves for each level, and would overflow Java's stack.
_MOST_TAGS = 10_000
_MOST_GEOMETRY = 1 << 12  # bytes; a level of geometries takes 9

_FILLED = f"({{1}}) <= {MOST_TEXT}"
_TEXT_READ = f"octet_length({{0}}) <= {MOST_TEXT}"
_DOCUMENT = f"octet_length({{0}}) <= {MOST_DOCUMENT}"
_MARKUP = f"{_DOCUMENT} and length({{0}}) - length(replace({{0}}, '<', '')) <= {_MOST_TAGS}"
_EACH_WITH_EACH = f"size({{0}}) * cast(size({{1}}) as double) <= {_MOST_PAIRS}"
_REPLACED = f"(octet_length({{0}}) + 1.0) * (octet_length({{2}}) + 1.0) <= {MOST_DOCUMENT}"
_AS_NUMBER, _AS_DATE = "cast(cast({0} as string) as double)", "cast(cast({0} as string) as date)"
# A number of seconds or days is no date, and a date is no number.
_STEPS = (
    f"coalesce(abs({_AS_NUMBER.format('{1}')} - {_AS_NUMBER}), "
    f"abs(datediff({_AS_DATE.format('{1}')}, {_AS_DATE}))) <= {MOST_ELEMENTS}"
)
_LAST = f"({{0}}) + ({{2}}) * {MOST_ELEMENTS}BD"
_WITHIN = f"({{1}}) between least({{0}}, {_LAST}) and greatest({{0}}, {_LAST})"


def _distinct(keys: str) -> str:
    """Whether no key is null and no key occurs twice."""
    return f"size(array_distinct(array_compact({keys}))) = size({keys})"


_ENTRIES = "cast({0} as array<struct<_key: string, _value: string>>)._key"
_PAIRS = "transform(split({0}, %s), _pair -> split(_pair, %s, 2)[0])"
_COMMA, _COLON = "','", "':'"
_GUARDS: dict[str, str | dict[int, str]] = {
    "repeat": f"octet_length({{0}}) * cast(({{1}}) as double) <= {MOST_TEXT}",
    "space": f"({{0}}) <= {MOST_TEXT}",
    "lpad": _FILLED,
    "rpad": _FILLED,
    "array_repeat": (
        "coalesce(octet_length(cast({0} as string)), 1) * cast(({1}) as double) "
        f"<= {MOST_TEXT} and ({{1}}) <= {MOST_ELEMENTS}"
    ),
    "array_insert": f"abs({{1}}) <= {MOST_ELEMENTS}",
    "sequence": {2: _STEPS, 3: _WITHIN},
    "array_join": f"size({{0}}) * (octet_length({{1}}) + 1.0) <= {MOST_DOCUMENT}",
    "replace": {3: _REPLACED},
    "regexp_replace": _REPLACED,
    "levenshtein": f"octet_length({{0}}) * cast(octet_length({{1}}) as double) <= {_MOST_PAIRS}",
    "array_distinct": f"size({{0}}) * cast(size({{0}}) as double) <= {_MOST_PAIRS}",
    **dict.fromkeys(
        ("array_union", "array_intersect", "array_except", "arrays_overlap"), _EACH_WITH_EACH
    ),
    **dict.fromkeys(("sentences", "regexp_extract_all"), _TEXT_READ),
    "map_from_arrays": f"size({{0}}) = size({{1}}) and {_distinct('{0}')}",
    "map_from_entries": _distinct(_ENTRIES),
    "str_to_map": {
        1: f"{_TEXT_READ} and {_distinct(_PAIRS % (_COMMA, _COLON))}",
        2: f"{_TEXT_READ} and {_distinct(_PAIRS % ('{1}', _COLON))}",
        3: f"{_TEXT_READ} and {_distinct(_PAIRS % ('{1}', '{2}'))}",
    },
    **dict.fromkeys(
        (
            *("from_json", "from_csv", "from_xml", "parse_json", "try_parse_json"),
            *("schema_of_json", "schema_of_csv", "schema_of_xml", "json_object_keys"),
        ),
        _DOCUMENT,
    ),
    **dict.fromkeys(
        (
            *("xpath", "xpath_string", "xpath_boolean", "xpath_double", "xpath_float"),
            *("xpath_int", "xpath_long", "xpath_number", "xpath_short"),
        ),
        _MARKUP,
    ),
    **dict.fromkeys(
        ("st_geomfromwkb", "st_geogfromwkb"), f"octet_length({{0}}) <= {_MOST_GEOMETRY}"
    ),
    # Its second argument may also be a pattern.
    "format_number": f"coalesce(cast({{1}} as double), 0) <= {_MOST_DIGITS}",
    # Spark takes a random vector in place of an empty one.
    "aes_encrypt": dict.fromkeys((5, 6), "octet_length({4}) > 0"),
}


def bounded(text: str) -> str:
    """``text`` with a guard around each call that needs one. Raises Invalid for a call that cannot
    be guarded."""
    tokens = tokenize(text)
    # From the last call to the first, so that the tokens before a call do not move.
    for index in range(len(tokens) - 1, 0, -1):
        name = tokens[index - 1].lower
        if tokens[index].text != "(":
            continue
        given = _arguments(text, index)
        _check(name, given)
        if guard := _guard(name, given):
            text = _guarded(text, index, guard)
    return text


def _arguments(text: str, opening: int) -> list[str]:
    tokens = tokenize(text)
    between, end = commas(tokens, opening)
    edges = pairwise([opening, *between, end])
    given = [text[tokens[start].end : tokens[stop].start].strip() for start, stop in edges]
    return given if any(given) else []


def _guard(name: str, given: list[str]) -> str | None:
    """The condition under which a call is safe; None if it always is."""
    if name == "map":
        keys = given[::2]
        return None if _are_literals(keys) else _distinct(f"array({', '.join(keys)})")
    if name == "map_concat" and given:
        return _distinct(f"concat({', '.join(f'map_keys({each})' for each in given)})")
    guard = _GUARDS.get(name)
    condition = guard.get(len(given)) if isinstance(guard, dict) else guard
    try:
        return condition and condition.format(*given)
    except IndexError:  # too few arguments, which Spark reports
        return None


def _are_literals(keys: list[str]) -> bool:
    """Whether these are different texts, as in the options of from_json, which must be a call of
    map() itself."""
    return len(set(keys)) == len(keys) and all(
        len(tokens) == 1 and tokens[0].kind in ("string", "raw") for tokens in map(tokenize, keys)
    )


def _guarded(text: str, opening: int, condition: str) -> str:
    tokens = tokenize(text)
    _, end = commas(tokens, opening)
    start, stop = tokens[opening - 1].start, tokens[end].end
    return f"{text[:start]}if({condition}, {text[start:stop]}, null){text[stop:]}"


def _check(name: str, given: list[str]) -> None:
    """Raises Invalid for a call that no guard makes safe."""
    if name in ("format_string", "printf") and not _is_narrow(given[:1]):
        raise Invalid(
            f"{name}() takes its format as a literal text here, with widths of at most 3 digits"
        )
    if name == "transform_keys":
        raise Invalid(
            "transform_keys() is not supported; write map_from_entries(transform("
            "map_entries(...), e -> struct(new key, e.value)))"
        )
    has_vector = any(each not in ("''", '""') for each in given[4:5])
    if name == "aes_encrypt" and not has_vector and given[2:3] != ["'ECB'"]:
        raise Invalid("aes_encrypt() without an initialization vector is not deterministic")


def _is_narrow(form: list[str]) -> bool:
    """Whether a format is a literal; a width such as %999999999d would fill the memory."""
    return _are_literals(form) and not re.search(r"\d{4}", "".join(form))
