"""Admission: every event that a caller appends is redacted and checked here, once.

Secrets are replaced by typed markers, `[redacted:github-token]`, before anything is sealed. A `payload.redacted` event
right after names the kinds that were found, never the secrets. It is a net for accidents, not a guarantee.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import msgspec

from wakelog.codec.records import check_event, encode_plain
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
def _default() -> tuple[Redact, Callable[[Sequence[ev.Event]], bool]]:
    # Imported at the first append: compiling its expressions takes longer than a whole command that only reads.
    from wakelog.redaction import are_clean, redact_event

    return redact_event, are_clean


def admit(events: Iterable[ev.Event | EventDraft], redact: Redact | None) -> list[SealStep]:
    """The events that a caller appends, redacted and checked."""
    steps: list[SealStep] = []
    given = list(events)
    authored = [each.event if isinstance(each, EventDraft) else each for each in given]
    if redact is default_redact and _default()[1](authored):
        redact = None
    encoded = encode_plain(authored) if encode_plain is not None and redact is None else [None] * len(given)
    for each, event, ready in zip(given, authored, encoded, strict=True):
        draft = each if isinstance(each, EventDraft) else EventDraft(each)
        is_bare, kind = draft is not each, event.kind
        if kind in OWN_KINDS:
            raise NotAllowedError(f"{kind} is written by the log itself", kind="own-kind", hint=OWN_KINDS[kind])
        if ready is not None:
            steps.append(SealStep(draft, is_bare=is_bare, encoded=ready))
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
