"""The append door: what comes in is redacted and checked here, once, whoever appends.

Secrets are replaced by typed markers, `[redacted:github-token]`, before anything is sealed; a `payload.redacted` event
right after says what kinds were found, never what they were. It is a net for accidents, not a guarantee.
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
    """The redaction of every store that is not told otherwise."""
    return _default()[0](event)


@functools.cache
def _default() -> tuple[Redact, Callable[[Sequence[ev.Event]], bool]]:
    # Imported at the first append: its expressions take longer to compile than a reader takes to read.
    from wakelog.redaction import are_clean, redact_event

    return redact_event, are_clean


def admit(events: Iterable[ev.Event | EventDraft], redact: Redact | None) -> list[SealStep]:
    """What callers append, redacted and checked."""
    steps: list[SealStep] = []
    given = list(events)
    drafts = [each if isinstance(each, EventDraft) else EventDraft(each) for each in given]
    authored = [draft.event for draft in drafts]
    if redact is default_redact and _default()[1](authored):
        redact = None
    encoded = encode_plain(authored) if encode_plain is not None and redact is None else [None] * len(given)
    for each, draft, ready in zip(given, drafts, encoded, strict=True):
        is_bare = draft is not each
        kind = draft.event.kind
        if kind in OWN_KINDS:
            raise NotAllowedError(f"{kind} is written by the log itself", kind="own-kind", hint=OWN_KINDS[kind])
        if ready is not None:
            steps.append(SealStep(draft, is_bare=is_bare, encoded=ready))
            continue
        event, found = redact(draft.event) if redact is not None else (draft.event, ())
        event = check_event(event)
        if event is not draft.event:
            draft = msgspec.structs.replace(draft, event=event)
        steps.append(SealStep(draft, is_checked=True, is_bare=is_bare))
        if found:
            # Sealing fills in the target: the event before it.
            steps.append(
                SealStep(EventDraft(ev.PayloadRedacted(target=0, markers=found), actor="runtime"), is_checked=True)
            )
    return steps
