"""The sink that sends requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from headgate.declaration.contracts.sink import Sink
from headgate.declaration.errors import Invalid
from headgate.declaration.reading.checked import Field, ProblemReport, Section
from headgate.declaration.reading.placeholders import has_placeholder
from headgate.flow.publish.sinks.letters import Letter
from headgate.flow.publish.sinks.webhook.declared import WEBHOOK, WebhookSink
from headgate.flow.publish.sinks.webhook.signing import key_of
from headgate.flow.publish.sinks.writers import SinkAwayError, SinkContext, Writer
from headgate.machine.loopback import is_loopback

_SECRET_NAME = re.compile(r"authorization|cookie|token|secret|password|key$", re.IGNORECASE)
_OURS = re.compile(r"headgate-|webhook-|content-|host$|transfer-|connection$", re.IGNORECASE)
_NOT_IN_HOSTS = re.compile(r"[\s\"<>\\^`{|}]")
_LONG = 8  # a shorter part of a secret may be an ordinary word
_SHORTEST = 3  # shorter texts occur in every message


class Webhook(Sink[WebhookSink]):
    key = WEBHOOK
    place = "url"
    accepts = "the receiver takes them"
    check_hint = "see whether the receiver answers"

    def build(self, section: Section, report: ProblemReport) -> WebhookSink | None:
        url, secret, headers = section.get("url"), section.get("secret"), section.entries("headers")
        if url is None:
            return None
        before, allowed = len(report.problems), section.get("allow_http")
        try:
            if not url.is_missing:
                _check_url(url, allow_http=bool(allowed and allowed.value))
        except Invalid as error:
            report.invalid(url, error)
        for name, field in headers.items():
            if field.value is not None and (wrong := _wrong_header(name, field)) is not None:
                report.at(field, wrong)
        if secret is not None and (wrong := _wrong_secret(secret)) is not None:
            report.at(secret, wrong)
        if len(report.problems) > before:
            return None
        return WebhookSink(
            url.text,
            url.written or url.text,
            {name: field.text for name, field in headers.items()},
            secret.text if secret else None,
            hidden=(*_hidden(url, secret, *headers.values()), *_hidden_path(url)),
            **section.values("attempts"),
        )

    def plan(self, sink: WebhookSink) -> dict[str, Any]:
        signed = sink.secret is not None
        return {"url": sink.written, "headers": sorted(sink.headers), "signed": signed}

    def lines(self, planned: Mapping[str, Any]) -> tuple[str, ...]:
        signed = "signed" if planned["signed"] else "not signed"
        where = f"  webhook  {planned['url']}, {signed}"
        more = (f"  headers  {', '.join(planned['headers'])}",) if planned["headers"] else ()
        return where, *more

    def secrets(self, sink: WebhookSink) -> Iterable[str]:
        return sink.hidden

    def writer(self, sink: WebhookSink, context: SinkContext) -> Writer:
        from headgate.flow.publish.sinks.webhook.writer import WebhookWriter

        return WebhookWriter(sink, context)

    def resend(self, sink: WebhookSink, letter: Letter) -> str | None:
        from headgate.flow.publish.sinks.webhook.receiver import Message, Receiver

        outcome = Receiver(sink).post(Message(letter.id, None, letter.body, letter.headers))
        if outcome.is_away:
            raise SinkAwayError(outcome.why)
        return None if outcome.taken else outcome.why


def _check_url(url: Field, *, allow_http: bool) -> None:
    """Raises Invalid. The message contains no part of the resolved url."""
    example = "https://receiver.example/orders"
    try:
        parts = urlsplit(url.text)
        port = parts.port
    except ValueError:
        raise Invalid(f"is not an address such as {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise Invalid(f"is not an address such as {example}")
    if not _can_be_host(parts.hostname):
        raise Invalid(f"is not an address such as {example}")
    if parts.username is not None or parts.password is not None:
        raise Invalid("has a user or a password; write the header Authorization instead")
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        raise Invalid("is not encrypted: write https, or allow_http: true")


def _can_be_host(host: str) -> bool:
    if _NOT_IN_HOSTS.search(host):
        return False
    try:
        host.encode("idna")
    except UnicodeError:  # a part is empty, or has more than 63 characters
        return False
    return True


def _wrong_secret(field: Field) -> str | None:
    """Why a secret is not valid, without any part of it; None if it is valid."""
    if field.written is None:
        return "is a secret: write ${env:NAME} or ${file:PATH}"
    try:
        if not field.is_missing:
            key_of(field.text)
    except ValueError:
        return "is not a secret of Standard Webhooks: whsec_ and base64"
    return None


def _wrong_header(name: str, field: Field) -> str | None:
    if _OURS.match(name):
        return "is set by Headgate"
    if _SECRET_NAME.search(name) and not has_placeholder(field.written or ""):
        return "is a secret: write ${env:NAME} or ${file:PATH}"
    if not field.text.isascii() or not field.text.isprintable():
        return "has a character that a header cannot have"
    return None


def _hidden(*fields: Field | None) -> Iterator[str]:
    """The values of fields with placeholders. For `Bearer TOKEN`, also the token alone."""
    for field in fields:
        if field is not None and field.written is not None:
            yield from (each for each in (field.text, *field.text.split()) if len(each) >= _LONG)
            if len(field.text) >= _SHORTEST:
                yield field.text


def _hidden_path(url: Field) -> Iterator[str]:
    """The path and the query of a url with placeholders, which may be a token. They are hidden
    without the part before them, which libraries write in their own way, for example with the
    port."""
    if url.written is None or url.is_missing:
        return
    parts = urlsplit(url.text)
    yield from (each for each in (parts.path, parts.query) if len(each) >= _LONG)
