"""The ledger: what is in the model's window within a budget, and what was evicted.

Items that do not fit are evicted in the order that a policy gives, and recorded in one commit. They stay evicted until
they are restored, so the same session and budget give the same window, byte for byte, without another event. System
messages, the newest turn, pending calls and pinned items are never evicted. The durable part of the state is written
into the window itself, so no eviction affects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from wakelog.codec.canonical import hash_value
from wakelog.context.evicted_ranges import changes, merge_evictions
from wakelog.context.handles import Evicted, output_key, read_evicted
from wakelog.context.items import Item
from wakelog.context.older_part import older_part
from wakelog.context.provider_formats import Shape, shape_items
from wakelog.context.sections import StateWriter
from wakelog.context.token_budget import Fitted, fit
from wakelog.context.token_count import Count, estimate
from wakelog.context.window import Window, read_window
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.model import machines
from wakelog.model.ids import Seq
from wakelog.model.trust import Trust, least_trusted
from wakelog.model.values import Value
from wakelog.timeline.compactions import parse_range

Policy = Callable[[Sequence[Item]], Iterable[str]]
"""From the items in the window, oldest first, to the keys to evict, in order: `e12`, or `e12:output` for only a call's
answer. As many keys are taken as needed; keys of items that may not be evicted are ignored."""

STUB = 24
"""The tokens of the note in place of an evicted answer; shorter answers are not worth evicting."""
SPARE = 16
"""Tokens kept free for the few words that a shape may add."""
EVERYTHING = 10**9
_HEAD = "# What is known\nKept outside this conversation; it stays when messages leave."


class Context(list[dict[str, Any]]):
    """The messages to send, with what they are made of. For Anthropic, pass `system` along."""

    def __init__(self, messages: list[dict[str, Any]], **fields: Any) -> None:
        super().__init__(messages)
        self.system: str = fields["system"]
        self.shape: Shape = fields["shape"]
        self.at: Seq = fields["at"]
        self.budget: int | None = fields["budget"]
        self.tokens: int = fields["tokens"]
        self.items: tuple[Item, ...] = fields["items"]
        self.known: str = fields["known"]
        """The durable part, as it is in the system message."""
        self.ranges: tuple[tuple[Seq, Seq], ...] = fields["ranges"]
        """The events whose content is in it."""
        self.evicted: tuple[Evicted, ...] = fields["evicted"]
        self.exposure: Trust = fields["exposure"]
        """The least trust of anything in it; `source` is where that came from."""
        self.source: str = fields["source"]
        self.hash = hash_value({"system": self.system, "messages": messages})

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self)


def oldest_first(items: Sequence[Item]) -> Iterator[str]:
    """The built-in policy: the oldest answers of calls, then the oldest messages and calls, and only then answers of
    the newest turn that the model has already seen."""
    yield from (output_key(i.seq) for i in items if i.kind == "call" and not i.is_new)
    yield from (i.key for i in items if not i.is_new)
    yield from (output_key(i.seq) for i in items if i.kind == "call")


def make_context(
    log: Log,
    budget: int | None = None,
    *,
    shape: Shape = "openai",
    policy: Policy = oldest_first,
    count: Count = estimate,
    pinned: Iterable[str] = (),
    headroom: int = 0,
    record: bool = True,
    at: Seq | None = None,
) -> Context:
    """The window in a provider's shape, in at most `budget` tokens (None: everything).

    When something must be evicted, `headroom` more tokens are freed, so that the window, and a provider's cache of it,
    stay the same for a while. Without `record`, or at a point in the past, nothing is written.
    """
    if shape not in ("openai", "responses", "anthropic", "items"):
        raise InvalidInputError(
            f"{shape!r} is not a shape", kind="bad-shape", hint="openai, responses, anthropic or items"
        )
    is_now = at is None
    at, state = log.now() if at is None else (at, log.state(at))
    listed = read_evicted(state["evicted_keys"])
    fixed, older = frozenset(pinned), None
    if budget is not None and count is estimate and policy is oldest_first:
        older = older_part(log, at, state, lambda window: _least_size(window, fixed), budget, fixed)
    peek = budget is not None and count is estimate
    window = read_window(log, at, state=state, count=count, evicted=older, peek=peek)
    while True:
        evicted = window.evicted
        fitted = durable_part(log, window.state, evicted, budget, count, since=window.resumed)
        if budget is not None and _total(window.items, fitted) > budget:
            evicted = _evict_to_fit(log, window, fitted, budget, policy, fixed, headroom, count)
            if record and is_now and machines.allowed_in(state["status"], "context.evicted"):
                log.append(*changes(listed, evicted))
            listed = evicted
        elif not window.is_peek:
            return _context(window, fitted, shape, budget)
        window = read_window(log, at, state=state, count=count, evicted=evicted)


def _context(window: Window, fitted: Fitted, shape: Shape, budget: int | None) -> Context:
    shaped = shape_items(window.items, fitted.text, shape)
    lines = [line for section in fitted.sections for line in section.lines]
    trust, source = exposure_of(window.items, fitted)
    seqs = {seq for item in window.items for seq in item.events} | {line.seq for line in lines if line.seq}
    return Context(
        shaped.messages,
        system=shaped.system,
        shape=shape,
        at=window.at,
        budget=budget,
        tokens=sum(i.tokens for i in window.items) + fitted.tokens,
        items=window.items,
        known=fitted.text,
        ranges=_ranges(sorted(seqs), window.quiet),
        evicted=window.evicted,
        exposure=trust,
        source=source,
    )


def exposure_of(items: Iterable[Item], fitted: Fitted) -> tuple[Trust, str]:
    """The least trust of what is shown, and its source."""
    lines = [line for section in fitted.sections for line in section.lines]
    return least_trusted([*((i.trust, i.source) for i in items), *((line.trust, line.source) for line in lines)])


def _ranges(seqs: list[Seq], quiet: frozenset[Seq]) -> tuple[tuple[Seq, Seq], ...]:
    """Positions as ranges, joined if the events between them show nothing."""
    out: list[tuple[Seq, Seq]] = []
    for seq in seqs:
        if out and seq - out[-1][1] <= 64 and all(n in quiet for n in range(out[-1][1] + 1, seq)):
            out[-1] = (out[-1][0], seq)
        else:
            out.append((seq, seq))
    return tuple(out)


def durable_part(
    log: Log,
    state: dict[str, Value],
    evicted: Iterable[Evicted],
    budget: int | None,
    count: Count = estimate,
    *,
    since: Seq = 0,
) -> Fitted:
    """The durable state and the list of evictions as text: complete if it fits into half of the budget, else cut, with
    counts. In a resumed turn, what its earlier attempts left behind before `since` is omitted."""
    writer = StateWriter(log, state, numbers=False, since=since)
    parts = [
        writer.goal(),
        writer.pending(),
        writer.decisions(),
        writer.facts(),
        writer.dead_ends(),
        writer.evicted(tuple(e for e in evicted if e.what != "compaction"), describe=False),
    ]
    if not any(p.total for p in parts):
        return Fitted("", (), 0)
    room = EVERYTHING if budget is None else budget // 2
    return fit(_HEAD, parts, room, count, rest=f"`wakelog state -s {writer.handle}`")


def _least_size(window: Window, pinned: frozenset[str]) -> int:
    """The tokens of a window after every answer that may be evicted was evicted."""
    answers = (i for i in window.items if i.kind == "call" and may_leave(window, i, True, pinned))
    return sum(i.tokens for i in window.items) - sum(max(0, i.output_tokens - STUB) for i in answers)


def _total(items: Iterable[Item], fitted: Fitted) -> int:
    return sum(i.tokens for i in items) + fitted.tokens + SPARE


# Eviction


def _evict_to_fit(
    log: Log,
    window: Window,
    fitted: Fitted,
    budget: int,
    policy: Policy,
    pinned: frozenset[str],
    headroom: int,
    count: Count,
) -> tuple[Evicted, ...]:
    """The list of evictions with which the rest fits, together with the durable part that lists them."""
    leaving: dict[str, int] = {}
    order = _allowed(window, policy, pinned)
    total = sum(i.tokens for i in window.items)
    while True:
        is_over = True
        for key, item, is_output in order:
            gain = _gain(item, is_output, leaving)
            if gain <= 0:
                continue
            leaving[key] = item.output_tokens if is_output else item.tokens
            if not is_output:
                leaving.pop(output_key(item.seq), None)
            total -= gain
            if total + fitted.tokens + SPARE + headroom <= budget:
                is_over = False
                break
        evicted = merge_evictions(window, leaving)
        fitted = durable_part(log, window.state, evicted, budget, count, since=window.resumed)
        if total + fitted.tokens + SPARE <= budget:
            return evicted
        if is_over:
            raise _too_small(window, leaving, total + fitted.tokens + SPARE, budget)


def _allowed(window: Window, policy: Policy, pinned: frozenset[str]) -> Iterator[tuple[str, Item, bool]]:
    """What the policy names and may be evicted: key, item, and whether it is only the answer."""
    items = {i.key: i for i in window.items}
    answers = {output_key(i.seq): i for i in window.items if i.kind == "call"}
    for key in policy(window.items):
        item, is_output = items.get(key) or answers.get(key), key in answers
        if item is None or not may_leave(window, item, is_output, pinned):
            continue
        yield key, item, is_output


def may_leave(window: Window, item: Item, is_output: bool, pinned: frozenset[str] = frozenset()) -> bool:
    """Whether an item, or only its answer, may be evicted by a policy."""
    if item.role == "system" or item.is_pending or is_pinned(item, pinned | window.restored):
        return False
    if is_output:
        is_seen = max(item.events) < window.seen
        return item.status != "evicted" and (not item.is_new or is_seen)
    return not item.is_new


def is_pinned(item: Item, keys: Iterable[str]) -> bool:
    names = {item.key, output_key(item.seq)}
    for key in keys:
        span = parse_range(key)
        if key in names or (span is not None and span[0] <= item.seq <= span[1]):
            return True
    return False


def _gain(item: Item, is_output: bool, leaving: dict[str, int]) -> int:
    if item.key in leaving or (is_output and output_key(item.seq) in leaving):
        return 0
    if is_output:
        return item.output_tokens - STUB
    return item.tokens - (item.output_tokens - STUB if output_key(item.seq) in leaving else 0)


def _too_small(window: Window, leaving: dict[str, int], needed: int, budget: int) -> NotAllowedError:
    staying = [i for i in window.items if i.key not in leaving and output_key(i.seq) not in leaving]
    largest = max(staying, key=lambda i: i.tokens, default=None)
    hint = "give it a larger budget, or compact"
    if largest is not None:
        key = output_key(largest.seq) if largest.output_tokens * 2 > largest.tokens else largest.key
        hint = (
            "give it a larger budget, compact, or"
            f" session.context.evict({key!r}), which takes {largest.tokens:,} tokens"
        )
    return NotAllowedError(
        f"the window needs at least {needed:,} tokens, and the budget is {budget:,}: the durable state,"
        " system messages, the newest turn, pending calls and pinned items always stay",
        kind="window-too-small",
        hint=hint,
    )
