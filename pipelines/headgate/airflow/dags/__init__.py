"""DAGs from declarations."""
