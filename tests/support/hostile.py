"""Lines of a hostile producer, each with the reason for which it is invalid (None: it is valid).

``@`` stands for a good id, ``$`` for the rest of a good record.
"""

from __future__ import annotations

from dataclasses import dataclass

GOOD_TIME = b'"at": "2026-03-01T11:40:00Z"'
MB = 1 << 20


@dataclass(frozen=True)
class Line:
    name: str
    template: bytes
    reason: str | None
    column: str | None = None

    def value(self, number: int) -> bytes:
        return self.template.replace(b"@", b'"id": "h-%d"' % number).replace(b"$", GOOD_TIME)


def _field(text: bytes) -> bytes:
    return b"{@, %b, $}" % text


def _deep(levels: int) -> bytes:
    """A record with an undeclared field, ``levels`` deep: the object around the field is one
    level."""
    return _field(b'"deep": ' + b"[" * (levels - 1) + b"]" * (levels - 1))


def _named(column: str, text: bytes) -> tuple[str, bytes]:
    shown = text.decode() if len(text) < 30 else f"of {len(text)} characters"
    return f"{column} {shown}", _field(b'"%b": %b' % (column.encode(), text))


def _wrong(column: str, *texts: bytes) -> list[Line]:
    return [Line(*_named(column, text), W, column) for text in texts]


def _fits(column: str, *texts: bytes) -> list[Line]:
    return [Line(*_named(column, text), None) for text in texts]


def _times(reason: str | None, *texts: bytes) -> list[Line]:
    return [Line(f"at {text.decode()}", b'{@, "at": %b}' % text, reason) for text in texts]


U, W = "unparsable", "wrong_type"

HOSTILE: list[Line] = [
    Line("two documents", b"{@, $} {@, $}", U),
    Line("two documents without a space", b"{@, $}{@, $}", U),
    Line("a document and a bracket", b"{@, $}]", U),
    Line("a document and a word", b"{@, $} null", U),
    Line("cut", b'{@, "at": "2026-03-01T11', U),
    Line("cut before the last brace", b"{@, $", U),
    Line("single quotes", b"{@, 'site': 'x', $}", U),
    Line("a comment", b"{@, /* $ */ $}", U),
    Line("a trailing comma", b"{@, $,}", U),
    Line("no quotes around a name", b"{@, site: 1, $}", U),
    Line("NaN", _field(b'"weight": NaN'), U),
    Line("minus infinity", _field(b'"weight": -Infinity'), U),
    Line("a leading zero", _field(b'"level": 05'), U),
    Line("a leading plus", _field(b'"level": +5'), U),
    Line("a bare point", _field(b'"weight": 1.'), U),
    Line("a raw tab in a string", _field(b'"site": "a\tb"'), U),
    Line("a raw NUL in a string", _field(b'"site": "a\x00b"'), U),
    Line("a NUL behind the document", b"{@, $}\x00", U),
    Line("only a NUL", b"\x00", U),
    Line("only a vertical tab", b"\x0b", U),
    Line("invalid UTF-8", _field(b'"site": "\xff\xfe"'), U),
    Line("overlong UTF-8", _field(b'"site": "\xc0\xaf"'), U),
    Line("a surrogate in UTF-8", _field(b'"site": "\xed\xa0\x80"'), U),
    Line("UTF-8 cut in a character", _field(b'"site": "\xe2\x82"'), U),
    Line("a byte order mark", b"\xef\xbb\xbf{@, $}", U),
    Line("an unknown escape", _field(rb'"site": "\x41"'), U),
    Line("2000 deep", _deep(2000), U),
    Line("501 deep", _deep(501), U),
    Line("500 deep", _deep(500), None),
    Line("an array 501 deep", b"[" * 501 + b"]" * 501, U),
    Line("501 brackets in a text", _field(b'"text": "' + b"[" * 501 + b'\\""'), None),
    Line("501 objects side by side", _field(b'"wide": [' + b"{}," * 500 + b"{}]"), None),
    Line("an array", b"[{@, $}]", "not_an_object"),
    Line("an empty array", b"[]", "not_an_object"),
    Line("a string", b'"{}"', "not_an_object"),
    Line("a number", b"17", "not_an_object"),
    Line("null", b"null", "not_an_object"),
    Line("true", b" true ", "not_an_object"),
    Line("an empty object", b"{}", "missing_id"),
    Line("a wrong-case id", b'{"ID": "h", $}', "missing_id"),
    Line("a null id", b'{"id": null, $}', "missing_id"),
    Line("an object as id", b'{"id": {"a": 1}, $}', "missing_id"),
    Line("an array as id", b'{"id": ["a"], $}', "missing_id"),
    Line("a number beyond doubles as id", b'{"id": 1e400, $}', "missing_id"),
    Line("a number as id", b'{"id": 5.50, $}', None),
    Line("an id like an object", b'{"id": "{h}", $}', None),
    Line("an escaped name", b'{"\\u0069d": "escaped", $}', None),
    Line("no time", b"{@}", "missing_time"),
    Line("a wrong-case time", b'{@, "At": "2026-03-01T11:40:00Z"}', "missing_time"),
    Line("a null time", b'{@, "at": null}', "missing_time"),
    *_times(
        "unparsable_time",
        b"5",
        b'""',
        b"{}",
        b'["2026-03-01T11:40:00Z"]',
        b'"2026-03-01"',
        b'"2026-03-01T11:40:00"',
        b'"2026-03-01T24:00:00Z"',
        b'"2026-03-01T11:40:60Z"',
        b'"2026-02-30T11:40:00Z"',
        b'"2026-13-01T11:40:00Z"',
        b'"2026-03-01T11:40:00+19:00"',
        b'"2026-03-01T11:40:00+01:75"',
        b'"2026-03-01T11:40:00+0175"',
        b'"2026-03-01T11:40:00+19"',
        b'"2026-03-01T11:40:00+1"',
        b'"2026-03-01T11:40:00+010"',
        b'"2026-03-01T11:40:00  +01:00"',
        b'"2026-03-01T11:40:00.Z"',
        b'"0000-03-01T11:40:00Z"',
        b'"9999-12-31T23:59:59-01:00"',
        b'"0001-01-01T00:00:00+01:00"',
        b'"0001-01-01T00:00:00Z"',
        b'"0009-12-31T23:59:59.999999Z"',
        b'"0010-01-01T00:59:59+01:00"',
        b'"today"',
        '"２０２６-03-01T11:40:00Z"'.encode(),
    ),
    *_times(
        None,
        b'"2026-03-01T11:40:00.123456789Z"',
        b'"2026-03-01 11:40:00+00:00"',
        b'"2026-03-01T05:40:00-06:00"',
        b'"2026-03-01T12:40:00+0100"',
        b'"2026-03-01T12:40:00+01"',
        b'"2026-03-01 12:40:00.5 +01:00"',
        b'"2026-03-01T05:10:00 -0630"',
        b'"2026-03-01 11:40:00 Z"',
        b'"0010-01-01T00:00:00Z"',
        b'"2026-03-01T11:40Z"',
        b'"2026-03-01T11:40:00+01:00 "',
        b'"2026-03-01T11:40:00 UTC"',
        b'"2026-03-01T11:40:00z"',
        b'"2026-03-01T11:40:00Z\\n"',
    ),
    *_times("future", b'"2026-03-01T13:00:00.000001Z"', b'"9999-12-31T23:59:59Z"'),
    *_wrong("site", b"{}", b"[]", b'{"a": "b"}', b"[1, 2]", b"1e400", b"-1e400"),
    *_fits(
        "site",
        b'"{"',
        b'"["',
        b'"{}"',
        b"1.50",
        b"1e7",
        b"true",
        b'"\\u0000"',
        b'"\\ud800"',
        b'"}"',
    ),
    *_wrong("level", b"2147483648", b"-2147483649", b"1.5", b"1e30", b'"5"', b"true", b"[5]"),
    *_wrong("level", b"9" * 30, b"9" * 2000, b"{}"),
    *_fits("level", b"2147483647", b"-2147483648", b"-0", b"1.0", b"1e3"),
    *_wrong("value", b"10000000000", b"9999999999.995", b"1e400", b'"1,5"', b'"x"'),
    *_wrong("value", b'""', b"true", b'"\\u00a01"', b'"+1"', b'"1."', b'".5"', '"１"'.encode()),
    *_wrong("value", b"1e99999999", b"-1e" + b"9" * 30, b'"1e99999999"', b"{}"),
    *_fits("value", b"9999999999.994", b'"-12.345"', b"1e2", b"1e-400", b"-0.001", b"0e5"),
    *_fits("value", b'"1e2"', b'" 1\\t"'),
    *_fits("value", b"1e-99999999", b"1e00002", b'"007"', b'"\\u0031"', b'"12345678.91"'),
    Line("an escaped decimal", _field(b'"v\\u0061lue": "1e2"'), None),
    Line("an escaped huge decimal", _field(b'"val\\u0075e": "1e99999999"'), W, "value"),
    Line("an escaped exponent", _field(b'"value": "1\\u006599999999"'), W, "value"),
    Line("an escaped name of a huge number", _field(b'"valu\\u0065": 1e99999999'), W, "value"),
    Line("a decimal within", _field(b'"x": {"value": "1e2"}, "value": 1234567890.12'), None),
    Line("a huge number in a text", _field(b'"site": "a\\":1e99999999,", "value": 1e2'), None),
    *_wrong("weight", b"1e400", b"-1e400", b'"1"', b"false", b'"NaN"', b'"Infinity"'),
    *_fits("weight", b"1e-400", b"1", b"0." + b"3" * 400, b"1e308"),
    *_wrong("ok", b'"true"', b"1", b"{}"),
    *_wrong("day", b'"2026-02-30"', b'"2026-3-1"', b"5", b'"2026-03-01T00:00:00Z"', b'"today"'),
    *_wrong("day", b'"0000-03-01"', b'"2026-03 -01"', b"20260301", b"{}"),
    *_fits(
        "day",
        b'"2026-03-01\\n"',
        b'" 2026-03-01"',
        b'"2026-03-01"',
        b'"0001-01-01"',
        b'"9999-12-31"',
    ),
    Line("the first wrong column is named", _field(b'"ok": 1, "level": "x"'), W, "level"),
    Line("a wrong value made good", _field(b'"level": "x", "level": 5'), None),
    Line("a good value made wrong", _field(b'"level": 5, "level": "x"'), W, "level"),
    Line("a number of 2000 digits", _field(b'"unknown": ' + b"7" * 2000), None),
    Line("a number of 5000 digits", _field(b'"unknown": -' + b"7" * 5000), None),
    Line("a number of 5001 digits", _field(b'"unknown": ' + b"7" * 5001), U),
    Line("a name of 50001 letters", _field(b'"%b": 1' % (b"n" * 50_001)), U),
    Line("a field of the parser's", _field(b'"_corrupt": "x", "_raw": 1'), None),
    Line("a wrong-case field", _field(b'"Level": "x"'), None),
    Line("white space around", b"\t {@, $} \r", None),
    Line("a text of 21 MB", _field(b'"site": "' + b"x" * (21 * MB) + b'"'), None),
    Line("10 MB of rubbish", b"{" * (10 * MB), U),
]
