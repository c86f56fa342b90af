"""Rules about content that is not to be trusted: an untrusted page that reaches a call with effects, a secret that was
almost stored."""

from __future__ import annotations

from wakelog.log.reading import Entry
from wakelog.model.ids import Seq
from wakelog.monitors.rules import Finding, Found, Severity, over
from wakelog.monitors.seen import EFFECTS, Call, Distrusted, Seen

_REQUESTS = ("action.requested", "action.recorded")


class UntrustedEffect:
    """A call that writes or reaches outside was asked for while the model had untrusted content in its window.

    That is its *exposure*: the least trust in the context of the model call that asked for it, where that is recorded.
    Else it is what the request itself is marked with. Where neither says anything it is assumed that the model saw all
    that is in view. With `pause` every such call is found; without, one of each tool and source in a turn.
    """

    name = "untrusted-effect"

    def __init__(self, *, pause: bool = False) -> None:
        self.pause = pause
        self._flagged: dict[str, set[Seq]] = {}
        """Flag → the untrusted events it rests on."""
        self._told: set[str] = set()

    def look(self, entry: Entry, seen: Seen) -> Found:
        if entry.kind in ("turn.started", "session.resumed"):
            self._told.clear()
        elif entry.kind == "trust.endorsed":
            return self._endorsed(entry)
        call = seen.call
        if entry.kind not in _REQUESTS or call is None or call.effect not in EFFECTS or call.is_repeat:
            return None
        source, known, severity = self._exposure(entry, seen)
        if source is None or source.trust != "untrusted":
            return None
        flag = f"{self.name}:{call.tool}:{source.source or 'unnamed'}"
        if flag in self._told and not self.pause:
            return None
        self._told.add(flag)
        self._flagged.setdefault(flag, set()).add(source.seq)
        name = source.source or "untrusted content"
        message = f"{call.tool} ({call.effect}) was asked for with {name} (e{source.seq}) in the window: {known}"
        return Finding(flag, message, severity, (entry.seq, source.seq), self.pause)

    def _exposure(self, entry: Entry, seen: Seen) -> tuple[Distrusted | None, str, Severity]:
        """The least trusted of what the model saw, how that is known, and how sure it is."""
        header = entry.header
        model: Call | None = seen.context_of(entry)
        if model is not None and model.context:
            found = seen.least(model.context)
            if found is not None and found.trust == "untrusted":
                return found, f"recorded as the context of the model call e{model.seq}", "error"
        if header.trust != "trusted":
            # The request is an event of that trust itself; what it came from says more.
            origin = seen.least([(1, entry.seq - 1)])
            where = origin.seq if origin is not None and origin.source == header.source else entry.seq
            return Distrusted(where, header.trust, header.source), "recorded as the trust of the request", "error"
        if model is not None and model.context:
            return None, "", "info"
        return seen.least(seen.view()), "assumed, since it is in view and no context is recorded", "warning"

    def _endorsed(self, entry: Entry) -> list[Finding]:
        targets = set(entry.body.get("targets", ()))
        for seqs in self._flagged.values():
            seqs -= targets
        gone = [flag for flag, seqs in self._flagged.items() if not seqs]
        for flag in gone:
            del self._flagged[flag]
        return [over(flag, "what it rests on was endorsed") for flag in gone]


class SecretSeen:
    """A secret was taken out of something before it was stored: somewhere the agent can see it."""

    name = "secret-seen"

    def __init__(self) -> None:
        self._told: set[str] = set()

    def look(self, entry: Entry, seen: Seen) -> Found:
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
                found.append(Finding(flag, f"a {marker} was in e{target}, and was masked", targets=(target,)))
        return found
