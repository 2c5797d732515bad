"""``headgate publication``: publications, what they have not sent, dead letters."""
