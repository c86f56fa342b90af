"""`session.trust`: what rests on a source, and what somebody says can be trusted or was wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.runtime.ambient import TrustMark
from wakelog.session.base import Base, What, Where

# What walks the graph is imported when it is called for: most programs that hold a session never do.
if TYPE_CHECKING:
    from wakelog.provenance.blast_radius import Blast, Endorsed
    from wakelog.provenance.taint import Part, Taint


class SessionTrust:
    """How far what the session holds can be trusted."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def taint(
        self,
        source: What,
        *,
        at: Where = None,
        parts: Iterable[Part] | None = None,
        items: int = 100,
        wide: bool = False,
    ) -> Taint:
        """What rests on a source ("web:*"), or on anything `Session.why` can be asked about: decisions, facts, data,
        files, and calls with effects, each with the way to it. `items` limits what is listed (0: all)."""
        from wakelog.provenance.taint import taint

        return taint(self._session.log, source, at=self._session._upto(at), parts=parts, items=items, wide=wide)

    def resting_on(
        self,
        trust: Trust = "unverified",
        *,
        at: Where = None,
        parts: Iterable[Part] | None = None,
        items: int = 100,
        wide: bool = False,
    ) -> Taint:
        """What rests on input that is no more than `trust`; `.decisions`, `.facts` and `.effects` are parts of it.
        What was endorsed, and what rests on nothing else, is not among it."""
        from wakelog.provenance.taint import resting_on

        return resting_on(
            self._session.log, TrustMark(trust).trust, at=self._session._upto(at), parts=parts, items=items, wide=wide
        )

    def endorse(
        self, targets: What | Iterable[What], *, by: str = "", why: str = "", dry_run: bool = False
    ) -> Endorsed:
        """Says that events can be trusted: from now on they are, and so is what rests on nothing else."""
        from wakelog.provenance.blast_radius import Endorsed, raised_by, targets_of

        seqs = targets_of(self._session.log, targets)
        raised = raised_by(self._session.log, seqs)
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
        """Says that events were wrong, and tells what rests on them and what of the present state does not. Nothing is
        taken back: rewind, retract or fork where that is wanted."""
        from wakelog.provenance.blast_radius import blast, targets_of

        seqs = targets_of(self._session.log, targets)
        seq = 0 if dry_run else self._session._record(ev.StepInvalidated(targets=seqs, by=by, why=why), actor="user")
        return blast(self._session.log, seqs, seq=seq, items=items)
