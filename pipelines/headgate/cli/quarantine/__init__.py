"""``headgate quarantine``: refused records."""
