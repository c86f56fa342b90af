"""`session.trust`: what a source influenced, and which events are marked as trusted or wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.trust import distrust
from wakelog.runtime.ambient import TrustMark
from wakelog.session.base import Base, What, Where

# The provenance room is imported when a verb needs it, because most programs never do.
if TYPE_CHECKING:
    from wakelog.provenance.across_sessions import TaintAcross, WhyAcross
    from wakelog.provenance.blast_radius import Blast, Endorsed
    from wakelog.provenance.picture import InfluenceGraph
    from wakelog.provenance.taint import Part, Taint


class SessionTrust:
    """Traces influence, and marks events as trusted or wrong."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def taint(
        self,
        source: What | None = None,
        *,
        trust: Trust = "unverified",
        at: Where = None,
        parts: Iterable[Part] | None = None,
        items: int = 100,
        wide: bool = False,
    ) -> Taint:
        """Shows everything influenced by a source ("web:*"), or by anything that `Session.why` accepts: decisions,
        facts, data, files and calls with effects, each with its path. Without a source, it starts from input that is
        trusted no more than `trust`; endorsed events, and what depends only on them, are left out. `items` limits the
        list (0: all)."""
        from wakelog.provenance.taint import taint, taint_by_trust

        log, upto = self._session.log, self._session._upto(at)
        if source is None:
            return taint_by_trust(log, TrustMark(trust).trust, at=upto, parts=parts, items=items, wide=wide)
        return taint(log, source, at=upto, parts=parts, items=items, wide=wide)

    def taint_across(
        self,
        source: What | None = None,
        *,
        trust: Trust = "unverified",
        parts: Iterable[Part] | None = None,
        wide: bool = False,
    ) -> TaintAcross:
        """Shows the same across sessions: in forks that share the source, in sessions that adopted them, in sub-agents
        whose task depends on it, and where their results went."""
        from wakelog.provenance.across_sessions import taint_across

        rank = distrust(TrustMark(trust).trust)
        return taint_across(self._session.log, source, rank, parts=parts, wide=wide)

    def why_across(self, what: What, *, wide: bool = False) -> WhyAcross:
        """Shows where something came from, like `Session.why`, and continues into other sessions: the spawner of a
        sub-agent, a sub-agent whose result was used, a fork that was adopted."""
        from wakelog.provenance.across_sessions import why_across

        return why_across(self._session.log, what, wide=wide)

    def picture(
        self,
        what: What,
        *,
        effects: bool = False,
        at: Where = None,
        hops: int = 3,
        boxes: int = 60,
        wide: bool = False,
    ) -> InfluenceGraph:
        """Draws what led to something, or with `effects` what it influenced: events with one line of text each, and the
        edges between them, each with how it is known. What does not fit is folded and counted."""
        from wakelog.provenance.picture import picture

        upto = self._session._upto(at)
        return picture(self._session.log, what, effects=effects, at=upto, hops=hops, boxes=boxes, wide=wide)

    def endorse(
        self, targets: What | Iterable[What], *, by: str = "", why: str = "", dry_run: bool = False
    ) -> Endorsed:
        """Marks events as trusted from now on, and everything that depends only on them."""
        from wakelog.provenance.blast_radius import Endorsed, newly_trusted, targets_of

        seqs = targets_of(self._session.log, targets)
        raised = newly_trusted(self._session.log, seqs)
        seq = 0 if dry_run else self._session._record(ev.TrustEndorsed(targets=seqs, by=by, why=why), actor="user")
        return Endorsed(self._session.id, seq, seqs, raised)

    def invalidate(
        self,
        targets: What | Iterable[What],
        *,
        by: str = "",
        why: str = "",
        dry_run: bool = False,
        items: int = 100,
    ) -> Blast:
        """Marks events as wrong, and lists what depends on them and which parts of the state do not. It changes nothing
        else: use rewind, retract or fork for that."""
        from wakelog.provenance.blast_radius import blast, targets_of

        seqs = targets_of(self._session.log, targets)
        seq = 0 if dry_run else self._session._record(ev.StepInvalidated(targets=seqs, by=by, why=why), actor="user")
        return blast(self._session.log, seqs, seq=seq, items=items)
