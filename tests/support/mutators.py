"""Ways to spoil a good record: its fields, as JSON texts, or its bytes.

The outcome of a record is not known here: some records stay valid.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from tests.support.readings import NOON

Fields = list[tuple[str, str]]
OfFields = Callable[[Fields, random.Random], None]
OfBytes = Callable[[bytes, random.Random], bytes]

NUMBERS = ("value", "level", "weight")
TEXTS = ("id", "site")


def good(number: int, chance: random.Random) -> Fields:
    """A record that meets every rule. Its id is like no other."""
    at = NOON + timedelta(milliseconds=number * 100)
    texts = {
        "id": f"{chance.randrange(1 << 40):010x}-{number}"[-16:],
        "site": chance.choice(["North", "SOUTH", "east"]),
        "value": chance.choice([1, 2.5, -3.25, "12.34", 99.99]),
        "level": chance.choice([3, 5, 7, 12, 49]),
        "weight": chance.choice([0.5, 5, 1e-3, 400]),
        "ok": chance.choice([True, False]),
        "day": "2026-03-01",
        "at": at.isoformat().replace("+00:00", "Z"),
    }
    return [(name, json.dumps(value)) for name, value in texts.items()]


def rendered(fields: Fields) -> bytes:
    pairs = (f'"{name}": {text}' for name, text in fields)
    return f"{{{', '.join(pairs)}}}".encode("utf-8", "surrogatepass")


def _put(fields: Fields, name: str, text: str) -> None:
    fields[:] = [(each, text if each == name else old) for each, old in fields]


def _any(fields: Fields, chance: random.Random) -> int:
    return chance.randrange(len(fields))


def _puts(names: Sequence[str], *texts: str) -> OfFields:
    """Put one of some texts into one of some fields."""

    def put(fields: Fields, chance: random.Random) -> None:
        _put(fields, chance.choice(names), chance.choice(texts))

    return put


def _into_any(*texts: str) -> OfFields:
    def put(fields: Fields, chance: random.Random) -> None:
        _put(fields, chance.choice(fields)[0], chance.choice(texts))

    return put


def _appends(*ends: str) -> OfFields:
    """Append one of some texts to a text field."""

    def append(fields: Fields, chance: random.Random) -> None:
        name = chance.choice(TEXTS)
        old = next((text for each, text in fields if each == name), '""')
        _put(fields, name, f'{old[:-1]}{chance.choice(ends)}"')

    return append


def _drop(fields: Fields, chance: random.Random) -> None:
    del fields[_any(fields, chance)]


def _again(fields: Fields, chance: random.Random) -> None:
    """Add a second field with the name of one field and the value of another."""
    fields.append((chance.choice(fields)[0], chance.choice(fields)[1]))


def _swap(fields: Fields, chance: random.Random) -> None:
    """Exchange the values of two fields."""
    one, two = (chance.choice(fields) for _ in range(2))
    _put(fields, one[0], two[1])
    _put(fields, two[0], one[1])


def _rename(fields: Fields, chance: random.Random) -> None:
    at = _any(fields, chance)
    name, text = fields[at]
    other = (name.upper(), name.title(), f" {name}", f"{name}s", f"\\u{ord(name[0]):04x}{name[1:]}")
    fields[at] = (chance.choice(other), text)


def _quote(fields: Fields, chance: random.Random) -> None:
    """A number becomes a text, a text loses its quotes."""
    at = _any(fields, chance)
    name, text = fields[at]
    fields[at] = (name, text[1:-1] if text[:1] == '"' else f'"{text}"')


def _nest(fields: Fields, chance: random.Random) -> None:
    at = _any(fields, chance)
    name, text = fields[at]
    fields[at] = (name, chance.choice(('{"v": %s}', "[%s]", "[[%s], 1]")) % text)


def _add(fields: Fields, chance: random.Random) -> None:
    names = (
        "_corrupt_record",
        "record",
        "reason",
        "duplicate",
        "_warnings",
        "_broken",
        "__proto__",
    )
    fields.insert(_any(fields, chance), (chance.choice(names), chance.choice(('"x"', "1", "{}"))))


def _shuffle(fields: Fields, chance: random.Random) -> None:
    chance.shuffle(fields)


def _at(line: bytes, chance: random.Random) -> int:
    return chance.randrange(len(line))


def _cut(line: bytes, chance: random.Random) -> bytes:
    return line[: _at(line, chance)]


def _cut_head(line: bytes, chance: random.Random) -> bytes:
    return line[_at(line, chance) :]


def _flip(line: bytes, chance: random.Random) -> bytes:
    at = _at(line, chance)
    return line[:at] + bytes([line[at] ^ 1 << chance.randrange(8)]) + line[at + 1 :]


def _insert(line: bytes, chance: random.Random) -> bytes:
    at = _at(line, chance)
    return line[:at] + bytes([chance.randrange(256)]) + line[at:]


def _remove(line: bytes, chance: random.Random) -> bytes:
    at = _at(line, chance)
    return line[:at] + line[at + 1 :]


def _exchange(line: bytes, chance: random.Random) -> bytes:
    at = _at(line, chance)
    return line[:at] + line[at + 1 : at + 2] + line[at : at + 1] + line[at + 2 :]


def _repeat(line: bytes, chance: random.Random) -> bytes:
    start, end = sorted(_at(line, chance) for _ in range(2))
    return line[:end] + line[start:]


def _inserts(*parts: bytes) -> OfBytes:
    """Insert after a colon, a comma, a quote or a brace."""

    def insert(line: bytes, chance: random.Random) -> bytes:
        places = [at for at, byte in enumerate(line) if byte in b':,"{'] or [0]
        at = chance.choice(places) + 1
        return line[:at] + chance.choice(parts) + line[at:]

    return insert


def _wraps(*forms: bytes) -> OfBytes:
    return lambda line, chance: chance.choice(forms).replace(b"@", line)


OF_FIELDS: dict[str, OfFields] = {
    "a field is null": _into_any("null"),
    "a field is left out": _drop,
    "a field comes twice": _again,
    "two fields are swapped": _swap,
    "a name is another": _rename,
    "quotes come or go": _quote,
    "a value is nested": _nest,
    "a field is added": _add,
    "fields are in another order": _shuffle,
    "a container": _into_any("{}", "[]", '{"a": 1}', "[1, 2]"),
    "a boolean": _into_any("true", "false", '"true"'),
    "ends of integers": _puts(NUMBERS, "2147483647", "-2147483648", "2147483648", "1073741824"),
    "at the bounds of levels": _puts(("level",), "-101", "-100", "99", "100", "50", "51", "0"),
    "at the bounds of values": _puts(
        ("value",), "9999.99", "9999.994", "9999.995", "10000", "-1000", "-1000.004", "-1000.005"
    ),
    "at the bounds of weights": _puts(("weight",), "500.5", "500.49999999999994", "500.50000001"),
    "values of a set": _puts(("value",), "13.13", '"13.130"', "-13.13", "1.313e1", "13.134", "0"),
    "exponents": _puts(NUMBERS, "1e2", "1E+2", "1.0", "5e-1", "1e400", "1e-400", "-1e308"),
    "no numbers": _puts(NUMBERS, "05", "+5", ".5", "1.", "0x10", "NaN", "Infinity", "1_000"),
    "long numbers": _puts(NUMBERS, "9" * 40, "0." + "3" * 60, "-" + "1" * 20, "1" + "0" * 12),
    "zeros": _puts(NUMBERS, "-0", "0", "-0.0", "0e9", '"-0"'),
    "texts of numbers": _puts(NUMBERS, '" 1"', '"1 "', '"１"', '"1,5"', '"1e2"', '"007"', '""'),
    "line ends in a text": _appends(r"\n", r"\r", r"\r\n", r"\u2028", r"\u0085", r"\n\n"),
    "blanks in a text": _appends(" ", r"\t", r"\u00a0", r"\u200b", r"\u0000", r"\ufeff"),
    "look-alikes": _appends("о", "ｅ", "\u0301", "ß", "İ", "K", "Σ", "😀"),
    "surrogates": _appends(r"\ud800", r"\udc00", r"\ud83d\ude00", r"\ude00\ud83d"),
    "quotes in a text": _appends("'", r"\"", r"\\", "`", "; --", "%", r"\/", "' or 1=1"),
    "long texts": _appends("x" * 3, "x" * 12, "x" * 5000, "ü" * 17, "😀" * 9),
    "other texts": _puts(TEXTS, '""', '" "', '"O\'Neil"', '"west"', '"north "', '"\\u006eorth"'),
    "forms of times": _puts(
        ("at",),
        '"2026-03-01 11:40:00+00:00"',
        '"2026-03-01T12:40:00+0100"',
        '"2026-03-01T11:40:00"',
        '"2026-03-01T24:00:00Z"',
        '"2026-03-01T11:59:60Z"',
        '"2026-03-01T11:40:00.1234567891Z"',
        "1772365200",
    ),
    "at the bounds of times": _puts(
        ("at",),
        '"2026-03-01T11:00:00Z"',
        '"2026-03-01T10:59:59.999999999Z"',
        '"2026-03-01T11:50:00.0000009Z"',
        '"2026-03-01T11:50:00.000001Z"',
        '"0001-01-01T00:00:00Z"',
        '"1969-12-31T23:59:59.999999Z"',
        '"9999-12-31T23:59:59Z"',
    ),
    "days": _puts(("day",), '"2025-12-31"', '"2026-01-01"', '"2027-01-01"', '"2026-02-30"', "5"),
}
OF_BYTES: dict[str, OfBytes] = {
    "cut at its end": _cut,
    "cut at its start": _cut_head,
    "a bit is flipped": _flip,
    "a byte is inserted": _insert,
    "a byte is removed": _remove,
    "two bytes are exchanged": _exchange,
    "a part comes twice": _repeat,
    "bytes that are no UTF-8": _inserts(
        b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\x80"
    ),
    "control characters": _inserts(b"\x00", b"\t", b"\x0b", b"\x1f", b"\x7f", b"\r"),
    "comments": _inserts(b"/* */", b"// ", b"# "),
    "another around it": _wraps(
        b"[@]", b'{"r": @}', b"@@", b"@,", b"@ null", b'"@"', b"@}", b"(@)"
    ),
    "blanks around it": _wraps(b" @", b"@\r", b"\t@\t", b"\xef\xbb\xbf@", b"@\x00", b"\xc2\xa0@"),
}
MUTATORS = (*OF_FIELDS, *OF_BYTES)
ALONE = 10
"""How many records each mutator spoils alone: enough that most of its texts occur."""

SENT_AGAIN = 0.3


def mutated(fields: Fields, names: Sequence[str], chance: random.Random) -> bytes:
    """A record spoiled by some mutators, those of fields first."""
    for name in names:
        if name in OF_FIELDS and fields:
            OF_FIELDS[name](fields, chance)
    line = rendered(fields)
    for name in names:
        if name in OF_BYTES and line:
            line = OF_BYTES[name](line, chance)
    return line


def hostile_records(count: int, seed: int) -> Iterator[bytes]:
    """A fifth of the records are good. Each mutator alone spoils some, then up to four spoil one.
    Some spoiled records are followed by a good copy."""
    chance = random.Random(seed)
    alone = [*MUTATORS] * ALONE
    for number in range(count):
        fields = good(number, chance)
        as_good = rendered(fields)
        if number % 5 == 0:
            yield rendered(fields)
        elif alone:
            yield mutated(fields, [alone.pop()], chance)
        else:
            kinds = (*chance.sample(list(OF_FIELDS), chance.randint(1, 3)), chance.choice(MUTATORS))
            yield mutated(fields, kinds[: chance.randint(1, 4)], chance)
        if number % 5 and chance.random() < SENT_AGAIN:
            yield as_good
