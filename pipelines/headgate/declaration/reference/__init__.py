"""The reference of declarations (``docs/declaration.md``) and JSON Schemas, from the keys."""
