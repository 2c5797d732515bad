"""The files source: a landing folder turned into a log that can be read again and again."""
