"""The prose of ``docs/declaration.md``."""

from __future__ import annotations

INTRODUCTION = """# Declarations

<!-- Written by: python -m headgate.declaration.reference.page -->

A pipeline is one YAML file. `headgate plan FILE` checks it and prints what it would run; nothing
starts before every mistake in it is mended.

```yaml
{example}
```

- The file is YAML 1.2: `no`, `on` and dates are text. A key given twice, an alias, a merge key or
  a tag is an error.
- A name of a pipeline, a table, a measure or what is computed from measures matches
  `{name}`; a column (a record's field, or made from fields) may have
  letters of both cases: `{column}`. Names that start with an underscore
  are Headgate's own. No two columns of a table may differ only in case. Sources, silver and gold
  tables share one space of names, because each is queried by its name alone.
- A duration is a whole number and a unit: `10 minutes`, `1 hour`, `2 s`, `500 ms`, `1 day`. A size
  is a number of bytes, or one with a unit: `64 MB`.
- Inside `{{ }}` and `[ ]` a comma ends a value: quote an expression with a comma in it, or write it
  on a line of its own.
- `${{env:NAME}}` and `${{file:PATH}}` stand for an environment variable and for the text of a file.
  They are resolved in a source's place, batch limits and waits, in Kafka's `options`, and in the
  `kafka` of a publication; nowhere else. What they stand for is in no error about a declaration,
  and of Kafka in no plan. The digest is made of what `topic`, `pattern` and `start` stand for, and
  of no other. What is in `options` is shown nowhere: a secret belongs there, as a placeholder.
- An editor that knows JSON Schema completes and checks while you type. Put this line on top:
  `# yaml-language-server: $schema=headgate.schema.json`. `headgate init` does so, and puts the
  schema beside the declaration.

The digest of a pipeline is the SHA-256 of what it means. Comments, layout, defaults written out,
the order of tables, `jobs`, `publish`, `salt`, where a source lies, how it is reached and how it is
cut into batches, and what is expected of it, do not change it; which topics are read and where they
start does.
"""

EXPRESSIONS = """## Expressions

Expressions are Spark SQL, evaluated with `spark.sql.ansi.enabled=false` in UTC: a division by zero,
a cast that does not fit and a decimal out of range give null, while whole numbers wrap around (cast
to a decimal where they may grow so large). An expression does the same each time it runs, reads
only the columns it names, and cannot fail a query, whatever a producer sends; so only what is
listed here is allowed.

- **Columns** by name, case-sensitive. `columns` of silver see the record's fields, `where` of
  silver sees the results of `columns`, gold sees silver's columns, `columns` of gold see `by` and
  `measures`. Columns made side by side do not see each other. With `unknown_fields: rescue`,
  `columns` and `where` of silver also see `_rescued`, a `string`: a JSON object of the undeclared
  fields, null where there are none, such as in `get_json_object(_rescued, '$.colour')`.
- **Types**: {types} and
  `decimal(p,s)`. Nested types come next; today, `unknown_fields: rescue` keeps a field that is
  left out of `schema` as JSON text.
- **Literals**: `1`, `1L`, `1.5`, `1.5BD`, `1e3`, `'text'`, `r'raw text'`, `true`, `null`,
  `date '2026-01-31'`, `timestamp '2026-01-31 12:00:00'`. In `'text'` a backslash is written twice.
- **Operators**: `+ - * / % div`, `= == <> != < <= > >= <=>`, `and or not`, `||`, `& | ^ ~`,
  `is [not] null|true|false`, `[not] in (…)`, `[not] between … and …`, `[not] like|ilike|rlike '…'`,
  `case … end`, `cast(x as type)`, `try_cast`, `x::type`, `extract(year from x)`,
  `time + interval 1 hour`, and `[n]` for an element of what `split` gives. Where Spark's order of
  two operators surprises, parentheses are asked for.
- **Strictness**: text is not compared or computed with numbers or times unless it is cast, and
  branches of `case`, `coalesce` and the like must have types that go together.
- **Patterns** are literals. A regular expression may repeat a character or a class without bound,
  but not a group: on long input Java's matcher would overflow its stack. `split` gives at most
  1000 elements, the last holding the rest.
- **Times from text**: `to_timestamp(x)` reads `2026-01-31 12:00:00` and `2026-01-31T12:00:00Z`, and
  with a pattern `to_date` and `to_timestamp` read only text that has exactly its shape.
- **Times out of range**: a result outside the years 1 to 9999 is null. Inside one expression, a
  time made from a number, or a date made from text without a pattern, cannot be moved, cut or
  widened: it might overflow. Make it a silver column, and use it in gold.

### Functions
"""

AFTER_FUNCTIONS = """
Also refused: subqueries, window functions (`OVER`), lambdas, `*` outside `count(*)`, aggregates
outside `measures`, comments, hints, aliases and several statements.

## Measures

A measure is one call over one expression of silver columns, and nothing around it; compute with
measures in `columns`. Null arguments are left out; of nothing but nulls a
count is 0, and every other measure is null. `count(distinct x)` is `count_distinct(x)`.
"""

ERRORS = """A row may fall into at most {windows} windows.

## Errors

All the mistakes of a file are reported together, each with its line, its key and the nearest valid
name, and the command to type when they are mended. What is made of a wrong part (a column of a
mistyped field, say) is checked once that is mended:

```text
shop.yml:17: silver.clean_orders.frm: unknown key (did you mean "from"?)
shop.yml:19: silver.clean_orders.columns.channel: unknown column 'chanel' (did you mean "channel"?)
headgate plan shop.yml
```
"""
