"""The replacement of an erased body: the same structure without its content.

A replacement keeps the fields that hold positions and choices the machines read, and the delta with every text
masked as `{"$erased": seq}`. Below `/data` and in a fact's value every scalar is masked, since there even a number
is content. Containers and keys stay, so that later deltas still fit.

A rewind copies earlier state forward. Where that state changes by masking, the rewind's copy changes with it. An
adoption copies a fork's state, which may be gone by now: in its delta, what an erased event wrote is found by place and
value. Keys are structure and stay: what a key names (a file's path, a fact's key) is not erased with the value under
it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.log.log import Log
from wakelog.log.reader import Entry, fold_at, read_entries
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.payloads import as_ref, is_erased
from wakelog.model.values import Value
from wakelog.state.fold import Fold
from wakelog.state.patch import Delta, Op, copy, equal, escape, get, tokens_of

# Body fields that hold positions, ids, or choices from a closed list.
_KEPT_FIELDS = frozenset({
    "action", "approval", "at", "attempt", "category", "change", "compacted", "copied", "counts", "effect", "epoch",
    "files", "first", "gone", "group", "handle", "hash", "ids", "inherited", "inside", "last", "last_hash", "media",
    "mode", "on", "parent", "remove", "request", "retry", "reused", "role", "session", "severity", "target",
    "targets", "to", "tool", "ttl_us", "under", "upto",
})  # fmt: skip
_KEPT_OUTCOMES = frozenset(
    {"completed", "failed", "interrupted", "succeeded", "timed_out", "never_ran", "denied", "cancelled"}
)
# State keys whose text is such a choice.
_KEPT_KEYS = frozenset({"status", "effect", "trust", "severity", "change", "tool", "holder", "media"})
_STRUCTURE = frozenset({"status", "turn", "view", "lease", "budget", "checkpoints", "trust"})


class ErasedValues:
    """Values that erased events wrote into the state, by place; all list indexes count as one."""

    def __init__(self) -> None:
        self._values: dict[str, list[Value]] = {}

    def note(self, before: Delta, masked: Delta) -> None:
        """Adds the values that masking removed from a delta."""
        for op, after in zip(before, masked, strict=True):
            for pointer, value in _erased_places(op.get("value"), after.get("value"), op["path"]):
                self._values.setdefault(_anywhere(pointer), []).append(value)

    def masked(self, delta: Delta, seq: Seq) -> Delta:
        """A delta without its content."""
        return [{**op, **self._masked(op, _mask_op(op, seq))} for op in delta] if self._values else delta

    def _masked(self, op: Op, after: Op) -> Op:
        return {"value": self._partly(op["value"], after["value"], op["path"])} if "value" in op else {}

    def _partly(self, before: Value, after: Value, pointer: str) -> Value:
        if is_erased(after) and not is_erased(before):
            return after if any(equal(before, v) for v in self._values.get(_anywhere(pointer), ())) else before
        if type(before) is dict:
            return {k: self._partly(v, after[k], f"{pointer}/{escape(k)}") for k, v in before.items()}
        if type(before) is list:
            return [self._partly(v, after[n], f"{pointer}/{n}") for n, v in enumerate(before)]
        return before


def _erased_places(before: Value, after: Value, pointer: str) -> Iterator[tuple[str, Value]]:
    if is_erased(after):
        if not is_erased(before):
            yield pointer, before
    elif type(before) is dict:
        for key, value in before.items():
            yield from _erased_places(value, after[key], f"{pointer}/{escape(key)}")
    elif type(before) is list:
        for n, value in enumerate(before):
            yield from _erased_places(value, after[n], f"{pointer}/{n}")


def _anywhere(pointer: str) -> str:
    return "/".join("*" if token.isdigit() else token for token in pointer.split("/"))


def replacements_for(
    log: Log, targets: frozenset[Seq], *, adopted: frozenset[Seq] = frozenset(), said: ErasedValues | None = None
) -> list[ev.Replacement]:
    """Replacement bodies for the targets, and for every later event that repeats what they held: mentions of the same
    payload, rewinds that copied it, and checkpoints, whose unsalted state hash could be used to test guesses. With
    `said`, adoptions from `adopted` on are rid of what was said in a fork: what they hold is the fork's own."""
    first = min(targets | adopted)
    rewinds = {e.seq: e.body["to"] for e in _rewinds(log, first)}
    fold = fold_at(log.engine, log.segments, first - 1).fold if first > 1 else Fold()
    then: dict[Seq, dict[str, Value]] = {}
    gone: set[bytes] = set()
    out: list[ev.Replacement] = []
    for entry in read_entries(log.engine, log.segments, after=first - 1):
        delta = entry.delta
        mentioned = {digest for digest, _ in mentions(entry)}
        if entry.is_intact and (entry.seq in targets or mentioned & gone):
            gone |= mentioned
            delta = [_mask_op(op, entry.seq) for op in delta]
            out.append(ev.Replacement(entry.seq, _masked_body(entry, delta)))
        elif entry.kind == "payload.erased" and entry.is_intact:
            # An erase event carries replacements: those of an event that is replaced again must go.
            if (body := _restated(entry, out)) is not None:
                out.append(ev.Replacement(entry.seq, body))
        elif entry.kind == "history.adopted" and said is not None:
            delta = said.masked(delta, entry.seq)
            if not equal(delta, entry.delta):
                out.append(ev.Replacement(entry.seq, _masked_body(entry, delta)))
        elif rewinds.get(entry.seq, 0) >= first:
            delta = [_recopied(op, then[rewinds[entry.seq]]) for op in delta]
            if not equal(delta, entry.delta):
                out.append(ev.Replacement(entry.seq, _masked_body(entry, delta)))
        elif entry.is_intact and entry.body.get("state_hash"):
            body = {name: value for name, value in entry.body.items() if name != "state_hash"}
            out.append(ev.Replacement(entry.seq, {"$erased": entry.seq, **body}))
        fold.apply(copy(delta))
        if entry.seq in rewinds.values():
            then[entry.seq] = fold.copy()
    return out


def said_by(log: Log, targets: frozenset[Seq]) -> ErasedValues:
    """The values that some events wrote into the state."""
    erased = ErasedValues()
    for seq in targets:
        delta = log.entry(seq).delta
        erased.note(delta, [_mask_op(op, seq) for op in delta])
    return erased


def _restated(entry: Entry, replaced: list[ev.Replacement]) -> dict[str, Value] | None:
    """An earlier erase event's body with the newest replacements; None when none of its own changed."""
    newest = {r.seq: {"seq": r.seq, "body": r.body} for r in replaced}
    erased = [newest.get(each["seq"], each) for each in entry.body.get("erased", [])]
    if equal(erased, entry.body.get("erased", [])):
        return None
    return {**entry.body, "$erased": entry.seq, "erased": erased}


def mentions(entry: Entry) -> Iterator[tuple[bytes, Seq]]:
    """The payloads an event mentions: content hash, and the event that brought it (0: this one's commit)."""
    if b'"$payload"' in entry.record.body:
        for value in entry.body.values():
            ref = as_ref(value)
            if ref is not None:
                yield bytes.fromhex(ref.hash), ref.at


def _rewinds(log: Log, after: Seq) -> Iterator[Entry]:
    return (e for e in log.entries(after=after) if e.kind == "history.rewound" and "to" in e.body)


def _masked_body(entry: Entry, delta: Delta) -> dict[str, Value]:
    body: dict[str, Value] = {"$erased": entry.seq}
    body |= {name: value for name, value in entry.body.items() if name in _KEPT_FIELDS and as_ref(value) is None}
    if entry.body.get("outcome") in _KEPT_OUTCOMES:
        body["outcome"] = entry.body["outcome"]
    if delta:
        body["delta"] = delta
    return body


def _mask_op(op: Op, seq: Seq) -> Op:
    if "value" not in op:
        return op
    return {**op, "value": _mask(op["value"], tokens_of(op["path"]), seq)}


def _mask(value: Value, tokens: list[str], seq: Seq) -> Value:
    part = tokens[0] if tokens else ""
    if part in _STRUCTURE:
        return value
    if type(value) is dict:
        if "$erased" in value:
            return value
        return {k: _mask(v, [*tokens, k], seq) for k, v in value.items()}
    if type(value) is list:
        return [_mask(v, [*tokens, "0"], seq) for v in value]
    is_content = part == "data" or (part == "facts" and len(tokens) > 2 and tokens[2] == "value")
    if value is None or (type(value) is not str and not is_content):
        return value
    if not is_content and tokens[-1] in _KEPT_KEYS:
        return value
    return {"$erased": seq}


def _recopied(op: Op, then: dict[str, Value]) -> Op:
    """A rewind's operation, with the value from the masked past state."""
    if "value" not in op or op["path"] == "/view":
        return op
    return {**op, "value": copy(get(then, op["path"]))}
