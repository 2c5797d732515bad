"""YAML as nodes that know their lines, checked against the keys."""
