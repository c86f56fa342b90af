"""Rules about content that is not to be trusted: a page that reaches a call with effects, a secret that was almost
stored."""

from __future__ import annotations

from wakelog.log.reader import Entry
from wakelog.model.calls import ASKS
from wakelog.model.events import Severity
from wakelog.model.ids import Seq
from wakelog.monitors.carried_addresses import Addresses, only_looks, reads_here, works_here
from wakelog.monitors.rules import Found, RuleFinding, over
from wakelog.monitors.session_view import EFFECTS, DistrustedEvent, SeenCall, SessionView

_READ = {
    "message.added": "content",
    "action.succeeded": "output",
    "action.recorded": "output",
    "action.failed": "output",
    "action.reconciled": "output",
    "turn.started": "input",
    "goal.set": "goal",
    "input.answered": "answer",
    "session.opened": "goal",
}
"""Where each kind keeps what a model could read."""


class UntrustedEffect:
    """A call that writes or reaches outside was asked for while the model had content in its window that is not
    trusted.

    That is its *exposure*: the least trust in the context of the model call that asked for it, where that is recorded.
    Else it is what the request itself is marked with. Where neither says anything it is assumed that the model saw all
    that is in view. Most agents read unverified content all day, so of that only calls that reach outside are judged,
    and by what they carry: an address that nothing trusted ever named is an alarm, content from elsewhere in the window
    a warning; reading the project at hand, and looking things up, is ordinary work.

    With `pause` every untrusted effect, and every alarm, is found; without, one of each flag in a turn, with a count.
    """

    name = "untrusted-effect"

    def __init__(self, *, pause: bool = False) -> None:
        self.pause = pause
        self._flagged: dict[str, set[Seq]] = {}
        """Flag → the untrusted events it depends on."""
        self._told: set[tuple[str, Severity]] = set()
        self._counts: dict[str, int] = {}
        self._alarmed: set[str] = set()
        self._addresses = Addresses()
        self._here: dict[str, bool] = {}
        """Calls under way → whether they read the project at hand."""
        self._elsewhere: dict[str, list[Seq]] = {}
        """Source → the newest events that brought in unverified content from there, where that is not the project."""

    def look(self, entry: Entry, seen: SessionView) -> Found:
        if entry.kind in ("turn.started", "session.resumed"):
            self._told.clear()
        elif entry.kind == "trust.endorsed":
            return self._endorsed(entry)
        found = self._judge(entry, seen) if entry.kind in ASKS else None
        self._remember(entry, seen)
        return found

    # What was read

    def _remember(self, entry: Entry, seen: SessionView) -> None:
        call, header = seen.call, entry.header
        if entry.kind in ASKS and call is not None and not call.is_model:
            self._here[call.action] = reads_here(call.tool, seen.read(entry, "input"))
        if entry.kind not in _READ or _is_by_model(entry, call):
            return  # that a model repeats an address does not make it one that somebody named
        self._addresses.take(seen.read(entry, _READ[entry.kind]), entry.seq, is_trusted=header.trust == "trusted")
        if header.trust == "unverified" and not self._is_here(entry, call):
            known = self._elsewhere.setdefault(header.source or "unnamed", [])
            known[:] = [*known[-63:], entry.seq]
        if call is not None and call.ended == entry.seq:
            self._here.pop(call.action, None)

    def _is_here(self, entry: Entry, call: SeenCall | None) -> bool:
        source = entry.header.source
        if source and not source.startswith(("tool:", "file:")):
            return False  # somebody said where it is from
        if call is None:
            return bool(source) and source not in self._elsewhere  # a message that repeats what a call brought in
        return self._here.get(call.action, False)

    # What is asked for

    def _judge(self, entry: Entry, seen: SessionView) -> RuleFinding | None:
        call = seen.call
        if call is None or call.effect not in EFFECTS or call.is_repeat:
            return None
        source, known, is_sure = self._exposure(entry, seen)
        if source is not None and source.trust == "untrusted":
            flag = f"{self.name}:{call.tool}:{source.source or 'unnamed'}"
            name = source.source or "untrusted content"
            message = f"{call.tool} ({call.effect}) was asked for with {name} (e{source.seq}) in the window: {known}"
            grave: Severity = "alarm" if call.effect == "external" else "error"
            return self._tell(flag, message, grave if is_sure else "warning", entry, source.seq, pause=self.pause)
        if call.effect != "external" or only_looks(call.tool):
            return None
        return self._unverified(entry, call, seen)

    def _unverified(self, entry: Entry, call: SeenCall, seen: SessionView) -> RuleFinding | None:
        ranges = self._window(entry, seen)
        elsewhere = {seq: source for source, seqs in self._elsewhere.items() for seq in seqs if _holds(ranges, seq)}
        # What the tool itself answered before is no news to it.
        own = f"tool:{call.tool}"
        elsewhere = {seq: s for seq, s in elsewhere.items() if s != own and not seen.is_endorsed(seq)}
        for address, seq in self._addresses.carried(seen.read(entry, "input")):
            if seen.is_endorsed(seq) or (works_here(call.tool) and seq not in elsewhere):
                continue
            origin = seen.least([(seq, seq)])
            source = origin.source if origin is not None else ""
            message = f"{call.tool} (external) carries {address}, which only e{seq} ({source or 'unverified'}) named"
            return self._tell(
                f"unverified-effect:{source or 'unnamed'}", message, "alarm", entry, seq, pause=self.pause
            )
        if not elsewhere:
            return None
        newest = max(elsewhere, key=lambda seq: (f"unverified-effect:{elsewhere[seq]}" in self._counts, seq))
        flag, what = f"unverified-effect:{elsewhere[newest]}", f"{elsewhere[newest]} (e{newest}, unverified)"
        message = f"{call.tool} (external) was asked for with {what} in the window"
        return None if flag in self._alarmed else self._tell(flag, message, "warning", entry, newest)

    def _tell(
        self, flag: str, message: str, severity: Severity, entry: Entry, seq: Seq, *, pause: bool = False
    ) -> RuleFinding | None:
        self._counts[flag] = count = self._counts.get(flag, 0) + 1
        self._flagged.setdefault(flag, set()).add(seq)
        if severity == "alarm":
            self._alarmed.add(flag)
        if (flag, severity) in self._told and not pause:
            return None
        self._told.add((flag, severity))
        return RuleFinding(flag, message, severity, (entry.seq, seq), pause, count)

    def _exposure(self, entry: Entry, seen: SessionView) -> tuple[DistrustedEvent | None, str, bool]:
        """The least trusted of what the model saw, how that is known, and whether it is recorded."""
        header = entry.header
        model: SeenCall | None = seen.context_of(entry)
        if model is not None and model.context:
            found = seen.least(model.context)
            if found is not None and found.trust == "untrusted":
                return found, f"recorded as the context of the model call e{model.request}", True
        if header.trust != "trusted":
            # The request is an event of that trust itself; what it came from says more.
            origin = seen.least([(1, entry.seq - 1)])
            where = origin.seq if origin is not None and origin.source == header.source else entry.seq
            return DistrustedEvent(where, header.trust, header.source), "recorded as the trust of the request", True
        if model is not None and model.context:
            return None, "", True
        return seen.least(seen.view()), "assumed, since it is in view and no context is recorded", False

    def _window(self, entry: Entry, seen: SessionView) -> list[tuple[Seq, Seq]]:
        model = seen.context_of(entry)
        return list(model.context) if model is not None and model.context else seen.view()

    def _endorsed(self, entry: Entry) -> list[RuleFinding]:
        targets = set(entry.body.get("targets", ()))
        for seqs in self._flagged.values():
            seqs -= targets
        gone = [flag for flag, seqs in self._flagged.items() if not seqs]
        for flag in gone:
            del self._flagged[flag]
            self._counts.pop(flag, None)
            self._alarmed.discard(flag)
        return [over(flag, "what it depends on was endorsed") for flag in gone]


def _is_by_model(entry: Entry, call: SeenCall | None) -> bool:
    if call is not None:
        return call.is_model
    return entry.kind == "message.added" and entry.body.get("role") in ("assistant", "model", "ai")


def _holds(ranges: list[tuple[Seq, Seq]], seq: Seq) -> bool:
    return any(first <= seq <= last for first, last in ranges)


class SecretSeen:
    """A secret was taken out of something before it was stored: somewhere the agent can see it."""

    name = "secret-seen"

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, entry: Entry, seen: SessionView) -> Found:
        if entry.kind == "flag.cleared":
            self._told.discard(str(entry.body.get("flag")))  # somebody dealt with it; the next one is news
        if entry.kind != "payload.redacted":
            return None
        target: Seq = entry.body.get("target", 0)
        found = []
        for marker in entry.body.get("markers", ()):
            flag = f"{self.name}:{marker}"
            if flag not in self._told:
                self._told.add(flag)
                found.append(RuleFinding(flag, f"a {marker} was in e{target}, and was masked", targets=(target,)))
        return found
