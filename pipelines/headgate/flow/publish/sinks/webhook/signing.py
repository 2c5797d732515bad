"""Signatures of requests, by the specification Standard Webhooks.

The text that is signed is ``ID.SECONDS.BODY``. The header ``webhook-signature`` has ``v1,`` and the
HMAC-SHA256 of this text in Base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

_PREFIX = "whsec_"


def signature(secret: str, id_: str, seconds: int, body: bytes) -> str:
    """The value of ``webhook-signature``."""
    signed = f"{id_}.{seconds}.".encode() + body
    digest = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """The key of a secret: ``whsec_`` and Base64, or any other text. Raises ValueError if no key
    follows ``whsec_``."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    # Without ``validate``, invalid characters are dropped, and the receiver has another key.
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    if not key:
        raise ValueError("an empty key")  # anyone could sign with it
    return key
