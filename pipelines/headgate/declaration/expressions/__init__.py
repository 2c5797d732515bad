"""Expressions and conditions: parsed, checked, typed, and written as Spark SQL."""
