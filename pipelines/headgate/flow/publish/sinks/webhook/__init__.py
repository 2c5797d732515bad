"""The webhook sink: an HTTP request for each row, at least once and signed."""

from __future__ import annotations

from headgate.flow.publish.sinks.webhook.kind import Webhook

MEMBER = Webhook()
