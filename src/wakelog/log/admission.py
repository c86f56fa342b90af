"""Admission: every event that a caller appends is redacted and checked here, once.

Secrets are replaced by typed markers, `[redacted:github-token]`, before anything is sealed. A `payload.redacted` event
right after names the kinds that were found, never the secrets. It is a net for accidents, not a guarantee.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import is_not
from typing import Any

import msgspec

from wakelog.codec.records import EncodedEvent, check_event, encode_clean, encode_plain
from wakelog.errors import NotAllowedError
from wakelog.log.seal import SealStep
from wakelog.model import events as ev
from wakelog.model.records import EventDraft

Redact = Callable[[ev.Event], tuple[ev.Event, tuple[str, ...]]]
"""From an event to the event without secrets, and the names of what was found."""

OWN_KINDS = {
    "session.forked": "use fork()",
    "session.deleted": "use delete()",
    "history.rewound": "use rewind()",
    "history.adopted": "use adopt()",
    "payload.erased": "use erase()",
    "payload.redacted": "the log adds it when it finds a secret",
    "range.pruned": "use prune()",
}
"""Kinds that only the log itself writes, because they say something about stored bytes or earlier events."""


def default_redact(event: ev.Event) -> tuple[ev.Event, tuple[str, ...]]:
    """The redaction of every store that sets no other."""
    return _default()[0](event)


@functools.cache
def _default() -> tuple[Redact, Callable[[Sequence[ev.Event]], bool], Any]:
    # Imported at the first append: a command that only reads does not need it.
    from wakelog.redaction import are_clean, redact_event
    from wakelog.redaction.redactor import DEFAULT

    return redact_event, are_clean, DEFAULT.scanner


def admit(events: Iterable[ev.Event | EventDraft], redact: Redact | None) -> list[SealStep]:
    """The events that a caller appends, redacted and checked."""
    given = list(events)
    drafts = [each if type(each) is EventDraft else EventDraft(each) for each in given]  # type: ignore[arg-type]
    authored = [draft.event for draft in drafts]
    encoded: Sequence[EncodedEvent | None] | None = None
    if redact is default_redact:
        _, are_clean, scanner = _default()
        encoded = encode_clean(authored, scanner) if encode_clean is not None else None
        if encoded is None and are_clean(authored):
            redact = None
    if encoded is None and redact is None and encode_plain is not None:
        encoded = encode_plain(authored)
    bare = map(is_not, drafts, given)
    if encoded is not None and None not in encoded:
        return list(map(SealStep, drafts, encoded, bare))
    steps: list[SealStep] = []
    for draft, ready, is_bare in zip(drafts, encoded or [None] * len(drafts), bare, strict=True):
        event = draft.event
        kind = event.kind
        if kind in OWN_KINDS:
            raise NotAllowedError(f"{kind} is written by the log itself", kind="own-kind", hint=OWN_KINDS[kind])
        if ready is not None:
            steps.append(SealStep(draft, ready, is_bare))
            continue
        clean, found = redact(event) if redact is not None else (event, ())
        checked = check_event(clean)
        if checked is not event:
            draft = msgspec.structs.replace(draft, event=checked)
        steps.append(SealStep(draft, is_checked=True, is_bare=is_bare))
        if found:
            # Sealing fills in the target: the event before it.
            steps.append(
                SealStep(EventDraft(ev.PayloadRedacted(target=0, markers=found), actor="runtime"), is_checked=True)
            )
    return steps
