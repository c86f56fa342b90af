"""Compaction: the caller's summary replaces a part of the conversation in view.

The log keeps everything, so a compaction can be inspected and reversed. The summary is stamped with the range it was
made from and the least trust of anything in it: a summary of an untrusted page is trusted no more than the page.
"""

from __future__ import annotations

import msgspec

from wakelog.context.items import Item
from wakelog.context.window import Window, read_recorded, read_window
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.trust import Trust, least_trusted
from wakelog.model.values import Value
from wakelog.timeline.compactions import Compaction, compactions_in, subtract
from wakelog.timeline.messages import content_of


class Summary(msgspec.Struct, frozen=True):
    """A compaction in effect: its event, the range it replaces, and the summary."""

    seq: Seq
    first: Seq
    last: Seq
    summary: Value
    trust: Trust
    source: str
    at: int
    covered_by: Seq = 0
    """The wider compaction that hides it, if there is one."""


def compact(log: Log, first: Seq, last: Seq, summary: Value, *, why: str = "") -> Seq:
    """Replaces the messages and calls from `first` to `last` by a summary, in view. Facts, decisions and other durable
    state are not changed. Returns the seq of the compaction, which `expand` reverses."""
    if summary is None or (isinstance(summary, str) and not summary.strip()):
        raise InvalidInputError(
            "a compaction needs a summary", kind="empty-summary", hint="say what the range was about"
        )
    window = read_window(log)
    inside = _covered(log, window, first, last)
    marks = [
        (entry.header.trust, entry.header.source)
        for a, b in inside
        for entry in log.entries(after=a - 1, upto=b)
        if entry.header.trust != "trusted"
    ]
    trust = least_trusted(marks)[0]
    source = ", ".join(sorted({s for t, s in marks if t == trust and s}))[:200]
    event = ev.HistoryCompacted(first=first, last=last, summary=summary, why=why)
    return log.record(EventDraft(event, derived_from=tuple(inside), trust=trust, source=source))


def _covered(log: Log, window: Window, first: Seq, last: Seq) -> list[tuple[Seq, Seq]]:
    """The part of the range that is in view; raises if it cannot be compacted."""
    view = log.view(window.at)
    if not first <= last or not all(any(a <= end <= b for a, b in view) for end in (first, last)):
        raise InvalidInputError(
            f"e{first}..e{last} is not a range in view",
            kind="bad-range",
            hint="the range begins and ends with events in view: " + ", ".join(f"e{a}..e{b}" for a, b in view[-3:]),
        )
    for each in compactions_in(window.state["evicted_keys"]):
        _refuse_overlap(each, first, last)
    touched = [i for i in window.items if any(first <= seq <= last for seq in (i.seq, *i.events))]
    for item in touched:
        _refuse_cut(item, first, last)
    if not touched and not any(e.first <= last and first <= e.last for e in window.evicted):
        raise InvalidInputError(
            f"nothing was said or done in e{first}..e{last}",
            kind="bad-range",
            hint="wakelog context lists what is there",
        )
    outside = [(1, first - 1), (last + 1, window.at)]
    return subtract(view, outside)


def _refuse_overlap(compaction: Compaction, first: Seq, last: Seq) -> None:
    if not compaction.meets(first, last) or (
        first <= compaction.first and compaction.last <= last and (first, last) != (compaction.first, compaction.last)
    ):
        return
    whole = min(first, compaction.first), max(last, compaction.last)
    held = compaction.first <= first and last <= compaction.last
    hint = (
        f"wakelog expand e{compaction.seq} reverts it first"
        if held
        else f"take all of it: e{whole[0]}..e{whole[1]}, or a range next to it"
    )
    raise NotAllowedError(
        f"e{first}..e{last} overlaps e{compaction.first}..e{compaction.last}, which e{compaction.seq} already replaces",
        kind="overlaps",
        hint=hint,
    )


def _refuse_cut(item: Item, first: Seq, last: Seq) -> None:
    ends = (item.seq, *item.events) if item.kind == "call" else (item.seq,)
    inside = [seq for seq in ends if first <= seq <= last]
    if item.role == "system" and inside:
        raise NotAllowedError(
            f"e{first}..e{last} contains a system message ({item.key}), which cannot be compacted",
            kind="not-compactable",
            hint="begin after it" if item.seq - first < last - item.seq else "end before it",
        )
    if item.is_pending and inside:
        raise NotAllowedError(
            f"e{first}..e{last} holds {item.name} ({item.key}), which is {item.status}",
            kind="not-compactable",
            hint="settle the call first, or leave it out of the range",
        )
    if inside and len(inside) < len(ends):
        raise NotAllowedError(
            f"e{first}..e{last} would cut the call {item.key} from its answer at e{max(ends)}",
            kind="cuts-a-call",
            hint=f"take e{min(first, *ends)}..e{max(last, *ends)}, or leave e{min(ends)}..e{max(ends)} out",
        )


def compactions(log: Log, at: Seq | None = None) -> list[Summary]:
    """The compactions in effect at a point, oldest first."""
    at = log.head().seq if at is None else at
    results = compactions_in(log.state(at)["evicted_keys"])
    return [_summary(log, each, results) for each in results]


def _summary(log: Log, compaction: Compaction, others: list[Compaction]) -> Summary:
    entry = log.entry(compaction.seq)
    covering = next((o.seq for o in reversed(others) if o is not compaction and o.holds(compaction)), 0)
    header = entry.header
    return Summary(
        compaction.seq,
        compaction.first,
        compaction.last,
        content_of(log, entry, "summary"),
        header.trust,
        header.source,
        header.at,
        covering,
    )


def inspect(log: Log, seq: Seq) -> tuple[Item, ...]:
    """What a compaction replaced."""
    compaction = _in_effect(log, seq)
    view = log.view()
    return read_recorded(log, subtract(view, [(1, compaction.first - 1), (compaction.last + 1, view[-1][1])]))


def expand(log: Log, seq: Seq, *, why: str = "") -> Seq:
    """Reverses a compaction: what it replaced is in view again."""
    _in_effect(log, seq)
    return log.record(EventDraft(ev.HistoryExpanded(compacted=seq, why=why)))


def _in_effect(log: Log, seq: Seq) -> Compaction:
    results = compactions_in(log.state()["evicted_keys"])
    for each in results:
        if each.seq == seq:
            return each
    known = f"in effect are {', '.join(f'e{c.seq}' for c in results)}" if results else "there is none"
    raise NotFoundError(f"e{seq} is not a compaction in effect: {known}", kind="compaction-not-found")
