"""Declarations: from YAML to frozen values, checked before anything starts."""
