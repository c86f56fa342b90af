"""Custom extractors: functions, often with a model inside, that read turns and report decisions and dead ends.

Rules derive insight without writing to the log (insight/). What an extractor finds is *recorded*, as ordinary events
with the extractor as actor. Nothing runs one unless a program calls `extract`.

An extractor is not trusted. Each find must quote its event exactly, so a model cannot invent a decision. The recorded
event is trusted no more than the event that it quotes, and at most as `unverified`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.insight.blocks import SpokenText, TurnBlocks
from wakelog.insight.log_blocks import turn_blocks
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.trust import least_trusted
from wakelog.runtime.ambient import TrustMark
from wakelog.session.base import Where
from wakelog.session.insights import record_even_if_ended, turns_at

if TYPE_CHECKING:
    from wakelog.session.session import Session


class Extracted(msgspec.Struct, frozen=True):
    """One find: a decision or dead end, quoted from event `seq`, and the quoted reason."""

    kind: Literal["decision", "dead_end"]
    seq: Seq
    quote: str
    reason: str = ""


Extractor = Callable[[TurnBlocks], Iterable[Extracted]]
"""Reads one turn, what was said and done in order, and returns what it found."""


class Extraction(msgspec.Struct, frozen=True):
    """The result of an extraction."""

    recorded: tuple[Seq, ...]
    refused: tuple[str, ...]
    """Finds that were not recorded, and why."""


def extract(session: Session[Any], extractor: Extractor, where: Where = None, *, name: str = "") -> Extraction:
    """Runs an extractor over ended turns, by default the newest, and records what it finds. `name` is its name in the
    log, by default that of the function. A find that was recorded before is skipped."""
    actor = f"extractor:{name or getattr(extractor, '__name__', 'unnamed')}"
    known = {
        (e.kind, e.body.get("choice") or e.body.get("tried"), e.header.derived_from)
        for e in session.log.entries()
        if e.header.actor == actor
    }
    recorded: list[Seq] = []
    refused: list[str] = []
    for blocks in (turn_blocks(session.log, turn) for turn in turns_at(session.log, where)):
        if not blocks.is_over:
            refused.append(f"@{blocks.turn} is still open")
            continue
        for extraction in extractor(blocks):
            if why := _problem_of(extraction, blocks):
                refused.append(why)
                continue
            event = _event(extraction, actor)
            if (event.kind, extraction.quote, ((extraction.seq, extraction.seq),)) not in known:
                recorded.append(_record(session, extraction, event, actor))
    return Extraction(tuple(recorded), tuple(refused))


def _problem_of(extraction: Extracted, blocks: TurnBlocks) -> str:
    """Returns why a find is not recorded; empty if it is fine."""
    if not isinstance(extraction, Extracted):
        raise InvalidInputError(
            f"an extractor must return Extracted values, not {type(extraction).__name__}", kind="bad-extractor"
        )
    texts = [b.text for b in blocks.blocks if isinstance(b, SpokenText) and b.seq == extraction.seq]
    for words in (extraction.quote, extraction.reason):
        if words and not any(words in text for text in texts):
            return f"e{extraction.seq} does not say {words[:80]!r}"
    return "" if extraction.quote.strip() else f"a find in e{extraction.seq} has no words"


def _event(extraction: Extracted, actor: str) -> ev.Event:
    why = f"found in e{extraction.seq} by {actor}"
    if extraction.kind == "dead_end":
        return ev.DeadEndNoted(tried=extraction.quote, learned=extraction.reason, why=why)
    return ev.DecisionMade(choice=extraction.quote, because=extraction.reason, evidence=(extraction.seq,), why=why)


def _record(session: Session[Any], extraction: Extracted, event: ev.Event, actor: str) -> Seq:
    header = session.log.entry(extraction.seq).header
    mark = TrustMark(*least_trusted(((header.trust, header.source), ("unverified", header.source or actor))))
    draft = session._runtime.flow.draft(event, actor=actor, mark=mark, derived_from=((extraction.seq, extraction.seq),))
    return record_even_if_ended(session, draft, f"{actor} read e{extraction.seq}")
