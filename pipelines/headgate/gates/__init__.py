"""Gates: a version of a gold table that breaks a rule never becomes visible."""
