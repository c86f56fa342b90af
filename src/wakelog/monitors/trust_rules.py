"""Rules about content that is not trusted: web content that reaches a call with effects, a secret that was masked."""

from __future__ import annotations

from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.events import Severity
from wakelog.model.ids import Seq
from wakelog.monitors.carried_addresses import Addresses, is_lookup, is_project_tool, reads_project
from wakelog.monitors.rules import Found, RuleFinding, over
from wakelog.monitors.session_view import EFFECTS, DistrustedEvent, SeenCall, SessionView

_READABLE = {
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
"""The field of each kind that a model may have read."""


class UntrustedEffect:
    """A call with effects was requested while the model had untrusted content in its window.

    The *exposure* of a call is the lowest trust in the context of the model call that requested it, if that is
    recorded; else the trust of the request. If neither is recorded, the model is assumed to have seen everything in
    view. Most agents read unverified content all day. So with unverified content only external calls are judged, by
    what they carry: an address that nothing trusted ever mentioned is an alarm; other content from outside the project
    in the window is a warning. Reading the project and looking things up is ordinary work.

    With `pause`, every untrusted effect and every alarm is reported; without, each flag once per turn, with a count.
    """

    name = "untrusted-effect"

    def __init__(self, *, pause: bool = False) -> None:
        self.pause = pause
        self._flagged: dict[str, set[Seq]] = {}
        """Flag → the untrusted events it depends on."""
        self._reported: set[tuple[str, Severity]] = set()
        self._counts: dict[str, int] = {}
        self._alarmed: set[str] = set()
        self._addresses = Addresses()
        self._reads_project: dict[str, bool] = {}
        """Open calls → whether they read the current project."""
        self._outside: dict[str, list[Seq]] = {}
        """Source → the newest events with unverified content from there, if it is not the project."""

    def look(self, entry: Entry, view: SessionView) -> Found:
        if entry.kind in ("turn.started", "session.resumed"):
            self._reported.clear()
        elif entry.kind == "trust.endorsed":
            return self._clear_endorsed(entry)
        finding = self._judge(entry, view) if entry.kind in BEGIN_KINDS else None
        self._remember(entry, view)
        return finding

    def _remember(self, entry: Entry, view: SessionView) -> None:
        """Remembers what was read: addresses, and content from outside the project."""
        call, header = view.call, entry.header
        if entry.kind in BEGIN_KINDS and call is not None and not call.is_model:
            self._reads_project[call.action] = reads_project(call.tool, view.read(entry, "input"))
        if entry.kind not in _READABLE or _is_by_model(entry, call):
            return  # an address is not trusted because a model repeats it
        self._addresses.take(view.read(entry, _READABLE[entry.kind]), entry.seq, is_trusted=header.trust == "trusted")
        if header.trust == "unverified" and not self._is_from_project(entry, call):
            known = self._outside.setdefault(header.source or "unnamed", [])
            known[:] = [*known[-63:], entry.seq]
        if call is not None and call.ended == entry.seq:
            self._reads_project.pop(call.action, None)

    def _is_from_project(self, entry: Entry, call: SeenCall | None) -> bool:
        source = entry.header.source
        if source and not source.startswith(("tool:", "file:")):
            return False  # the recorded source is something else
        if call is None:
            return bool(source) and source not in self._outside  # a message that repeats the result of a call
        return self._reads_project.get(call.action, False)

    def _judge(self, entry: Entry, view: SessionView) -> RuleFinding | None:
        call = view.call
        if call is None or call.effect not in EFFECTS or call.is_repeat:
            return None
        source, known, is_sure = self._exposure(entry, view)
        if source is not None and source.trust == "untrusted":
            flag = f"{self.name}:{call.tool}:{source.source or 'unnamed'}"
            name = source.source or "untrusted content"
            message = f"{call.tool} ({call.effect}) was asked for with {name} (e{source.seq}) in the window: {known}"
            grave: Severity = "alarm" if call.effect == "external" else "error"
            return self._report(flag, message, grave if is_sure else "warning", entry, source.seq, pause=self.pause)
        if call.effect != "external" or is_lookup(call.tool):
            return None
        return self._judge_unverified(entry, call, view)

    def _judge_unverified(self, entry: Entry, call: SeenCall, view: SessionView) -> RuleFinding | None:
        model = view.context_of(entry)
        window = model.context if model is not None and model.context else view.view()
        # Earlier answers of the same tool do not count.
        outside = {
            seq: source
            for source, seqs in self._outside.items()
            for seq in seqs
            if source != f"tool:{call.tool}"
            and not view.is_endorsed(seq)
            and any(first <= seq <= last for first, last in window)
        }
        for address, seq in self._addresses.carried(view.read(entry, "input")):
            if view.is_endorsed(seq) or (is_project_tool(call.tool) and seq not in outside):
                continue
            origin = view.least([(seq, seq)])
            source = origin.source if origin is not None else ""
            message = f"{call.tool} (external) carries {address}, which only e{seq} ({source or 'unverified'}) named"
            flag = f"unverified-effect:{source or 'unnamed'}"
            return self._report(flag, message, "alarm", entry, seq, pause=self.pause)
        if not outside:
            return None
        newest = max(outside, key=lambda seq: (f"unverified-effect:{outside[seq]}" in self._counts, seq))
        flag, what = f"unverified-effect:{outside[newest]}", f"{outside[newest]} (e{newest}, unverified)"
        message = f"{call.tool} (external) was asked for with {what} in the window"
        return None if flag in self._alarmed else self._report(flag, message, "warning", entry, newest)

    def _report(
        self, flag: str, message: str, severity: Severity, entry: Entry, seq: Seq, *, pause: bool = False
    ) -> RuleFinding | None:
        self._counts[flag] = count = self._counts.get(flag, 0) + 1
        self._flagged.setdefault(flag, set()).add(seq)
        if severity == "alarm":
            self._alarmed.add(flag)
        if (flag, severity) in self._reported and not pause:
            return None
        self._reported.add((flag, severity))
        return RuleFinding(flag, message, severity, (entry.seq, seq), pause, count)

    def _exposure(self, entry: Entry, view: SessionView) -> tuple[DistrustedEvent | None, str, bool]:
        """The least trusted event that the model saw, how that is known, and whether it is recorded."""
        header = entry.header
        model: SeenCall | None = view.context_of(entry)
        if model is not None and model.context:
            event = view.least(model.context)
            if event is not None and event.trust == "untrusted":
                return event, f"recorded as the context of the model call e{model.request}", True
        if header.trust != "trusted":
            # The request itself has that trust. Name the event it came from, if there is one.
            origin = view.least([(1, entry.seq - 1)])
            where = origin.seq if origin is not None and origin.source == header.source else entry.seq
            return DistrustedEvent(where, header.trust, header.source), "recorded as the trust of the request", True
        if model is not None and model.context:
            return None, "", True
        return view.least(view.view()), "assumed, since it is in view and no context is recorded", False

    def _clear_endorsed(self, entry: Entry) -> list[RuleFinding]:
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


class SecretSeen:
    """A secret was masked before an event was stored, so the agent can see that secret somewhere."""

    name = "secret-seen"

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def look(self, entry: Entry, view: SessionView) -> Found:
        if entry.kind == "flag.cleared":
            self._reported.discard(str(entry.body.get("flag")))  # somebody dealt with it; report the next one
        if entry.kind != "payload.redacted":
            return None
        target: Seq = entry.body.get("target", 0)
        results = []
        for marker in entry.body.get("markers", ()):
            flag = f"{self.name}:{marker}"
            if flag not in self._reported:
                self._reported.add(flag)
                results.append(RuleFinding(flag, f"a {marker} was in e{target}, and was masked", targets=(target,)))
        return results
