"""Why a record goes to quarantine. The reasons are checked in this order."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    TOMBSTONE = "tombstone"
    UNPARSABLE = "unparsable"
    NOT_AN_OBJECT = "not_an_object"
    MISSING_ID = "missing_id"
    MISSING_TIME = "missing_time"
    UNPARSABLE_TIME = "unparsable_time"
    FUTURE = "future"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_FIELD = "unknown_field"
    DIFFERING_DUPLICATE = "differing_duplicate"


UNREADABLE = (Reason.TOMBSTONE, Reason.UNPARSABLE, Reason.NOT_AN_OBJECT)
"""A record with one of these reasons has no fields, no id and no time."""

BEFORE_FUTURE = (*UNREADABLE, Reason.MISSING_ID, Reason.MISSING_TIME, Reason.UNPARSABLE_TIME)
"""Reasons that take precedence over ``future``."""
