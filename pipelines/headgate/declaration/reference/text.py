"""The prose of ``docs/declaration.md``."""

from __future__ import annotations

INTRODUCTION = """# Declarations

<!-- Written by: python -m headgate.declaration.reference.page -->

One YAML file declares one pipeline. `headgate plan FILE` checks it and prints what it would run. A
pipeline with an error in its declaration does not start.

```yaml
{example}
```

- The file is YAML 1.2: `no`, `on` and dates are text. A repeated key, an alias, a merge key or a
  tag is an error.
- The name of a pipeline, a table, a measure or a column that is computed from measures matches
  `{name}`. A column of a record or of silver may use letters of both
  cases: `{column}`. Names that start with an underscore are reserved for
  Headgate. Two columns of a table must not differ only in case. Sources, silver tables and gold
  tables share one namespace, because each is queried by its name alone.
- A duration is a whole number and a unit: `10 minutes`, `1 hour`, `2 s`, `500 ms`, `1 day`. A size
  is a number of bytes, or a number with a unit: `64 MB`.
- Inside `{{ }}` and `[ ]`, a comma ends a value. Quote an expression that contains a comma, or
  write it on a line of its own.
- `${{env:NAME}}` and `${{file:PATH}}` are placeholders for an environment variable and for the
  text of a file. They are resolved in the location, batch limits and waiting times of a source, in
  Kafka's `options`, and in the sink of a publication, and nowhere else. Their values appear in no
  error message about a declaration, and those of Kafka and of sinks in no plan. The digest of the
  pipeline includes the values of `topic`, `pattern` and `start`, and of no other placeholder. The
  values of `options` are never shown: write a secret there, as a placeholder.
  Commands that check the declaration or start a driver need the values of the placeholders in
  `options` and in publications. `headgate query`, `status` and `stop` do not.
- An editor that supports JSON Schema completes and checks while you type. Put this line at the
  top: `# yaml-language-server: $schema=headgate.schema.json`. `headgate init` writes this line and
  puts the schema beside the declaration.

The digest of a pipeline is the SHA-256 of its meaning. It does not change with comments, layout,
explicit defaults, the order of tables, `jobs`, `publish`, `salt`, the location of a source, the
way it is reached, its batch limits and its `expect_…` keys. It changes with the topics that are
read and where they start.
"""

EXPRESSIONS = """## Expressions

Expressions are Spark SQL, evaluated with `spark.sql.ansi.enabled=false` in UTC. A division by
zero, a text that does not fit the type it is cast to and a decimal out of range return null. Whole
numbers wrap around on overflow (cast to a decimal if they may become that large). A number that is
cast to an integer type too small for it becomes another number: use `try_cast(x as int)`, which
returns null. An expression must be deterministic, read only the columns that it names, and never
fail, whatever a producer sends. Only the elements listed here are therefore allowed.

- **Columns** are used by name, case-sensitive. `columns` of silver can use the record's fields,
  `where` of silver the results of `columns`, gold the columns of silver, and `columns` of gold the
  `by` columns and `measures`. A column cannot use another column of the same map. With
  `unknown_fields: rescue`, `columns` and `where` of silver can also use `_rescued`, a `string`: a
  JSON object with the undeclared fields, or null if there are none. Example:
  `get_json_object(_rescued, '$.colour')`.
- **Types**: {types},
  `decimal(p,s)`, and of these `array<type>`, `map<string,type>` and `struct<name: type, …>`, at
  most 20 in each other. The keys of a map are strings. Fields of a struct have names as columns do,
  and may also begin with an underscore; one that a record lacks is null.
- **Literals**: `1`, `1L`, `1.5`, `1.5BD`, `1e3`, `'text'`, `r'raw text'`, `true`, `null`,
  `date '2026-01-31'`, `timestamp '2026-01-31 12:00:00'`. In `'text'`, write a backslash twice.
- **Operators**: `+ - * / % div`, `= == <> != < <= > >= <=>`, `and or not`, `||`, `& | ^ ~`,
  `is [not] null|true|false`, `[not] in (…)`, `[not] between … and …`,
  `[not] like|ilike|rlike '…'`, `case … end`, `cast(x as type)`, `try_cast`, `x::type`,
  `extract(year from x)`, and `time + interval 1 hour`. Where the precedence of two operators in
  Spark is surprising, parentheses are required.
- **Strictness**: cast text before you compare or compute it with numbers or times. The branches of
  `case`, `coalesce` and similar functions must have compatible types.
- **Parts of nested values**: `address.city` is a field of a struct, `items[0]` an element of an
  array (counted from 0), `tags['k']` the value of a key of a map, and `items.sku` the array of one
  field of all elements. A part that does not exist is null. `size` and `cardinality` of null
  are -1, as in Spark; `array_size` of null is null. `element_at` counts from 1 and takes a position
  other than 0, written as a number: Spark fails at position 0. Names of fields are case-sensitive;
  those that are words of SQL are written in backquotes.
- **Lambdas** such as `x -> x.price > 10`, or `(x, i) -> …` with the index in `filter` and
  `transform`. A variable must not have the name of a column. `aggregate(items, start,
  (total, x) -> …)` needs a start of exactly the type that the lambda yields: for a sum of decimals,
  `cast(0 as decimal(18,2))` and `cast(total + x.price as decimal(18,2))`.
  So that no record can make a call expensive, a lambda cannot read an array or a map from outside
  of it, the start is a number, a boolean or a time, and a lambda of `transform` that yields text
  cannot use text from outside, pad, or have more than 64 characters of literals.
- **Nulls in arrays**: `exists(items, x -> x.price > 100)` is null, and not false, if no element is
  known to match and the result for one of them is null: the element or its `price` is null. It is
  null too if `items` is null. `where: not exists(items, x -> x.price > 100)` then filters the
  record. To keep it, write `not coalesce(exists(items, x -> x.price > 100), false)`. `forall` is
  null in the same way.
- **Nested results**: a column of silver can have a nested type. `by`, `columns` of gold and the
  arguments of measures cannot, except that of `count`. Maps cannot be compared.
- **Patterns** are literals. A regular expression may repeat a character or a class without limit,
  but not a group, because Java's matcher would overflow its stack on long input. `split` returns
  at most 1000 elements; the last one contains the rest.
- **Times from text**: `to_timestamp(x)` reads `2026-01-31 12:00:00` and `2026-01-31T12:00:00Z`.
  With a pattern, `to_date` and `to_timestamp` read only text that matches the pattern exactly.
- **Times out of range**: a result outside the years 1 to 9999 is null. Within one expression, a
  time made from a number, or a date made from text without a pattern, cannot be shifted, truncated
  or widened to a timestamp, because it might overflow. Make it a silver column, and use the column
  in gold.

### Functions
"""

AFTER_FUNCTIONS = """
Also refused: subqueries, window functions (`OVER`), `*` outside `count(*)`, aggregates
outside `measures`, comments, hints, aliases and several statements.

## Measures

A measure is exactly one call over one expression of silver columns. Use `columns` to compute with
measures. Null arguments are ignored. If all arguments are null, a count is 0 and every other
measure is null. `count(distinct x)` is the same as `count_distinct(x)`.
"""

ERRORS = """
## Errors

All errors of a file are reported together, each with its line, its key and the nearest valid name,
followed by the command to type when they are fixed. An element that depends on a wrong one (for
example, a column that uses a field with a wrong type) is checked after that one is fixed:

```text
shop.yml:17: silver.clean_orders.frm: unknown key (did you mean "from"?)
shop.yml:19: silver.clean_orders.columns.channel: unknown column 'chanel' (did you mean "channel"?)
headgate plan shop.yml
```
"""
