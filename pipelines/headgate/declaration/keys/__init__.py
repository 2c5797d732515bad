"""The keys that a declaration may have, with their types, defaults and meanings."""
