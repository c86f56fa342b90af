"""Verbs that ask where something came from and where it went, and that say what to make of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.ids import Seq
from wakelog.runtime.ambient import Mark
from wakelog.session.base import Base, S, Where

# What walks the graph is imported when it is called for: most programs that hold a session never do.
if TYPE_CHECKING:
    from wakelog.provenance.blast_radius import Blast, Endorsed
    from wakelog.provenance.taint import Part, Taint
    from wakelog.provenance.why import Why

What = Seq | str
"""An event's seq, a selector ("e12", "@3"), a key of the state ("/facts/x"), a file or a line of it ("src/a.py:12")."""


class Provenance(Base[S]):
    """Why, taint, endorse, invalidate."""

    def why(self, what: What, *, at: Where = None, depth: int = 12, steps: int = 60, wide: bool = False) -> Why:
        """Where something came from. Every edge says how it is known; the origins are at the end.

        `depth` and `steps` limit what is laid out (0: no limit), never what is walked. With `wide`, a model call whose
        window is not recorded is taken to have seen the earlier turns too.
        """
        from wakelog.provenance.why import why

        return why(self.log, what, at=self._upto(at), depth=depth, steps=steps, wide=wide)

    def taint(
        self,
        source: What,
        *,
        at: Where = None,
        parts: Iterable[Part] | None = None,
        items: int = 100,
        wide: bool = False,
    ) -> Taint:
        """What rests on a source ("web:*"), or on anything `why` can be asked about: decisions, facts, data, files, and
        calls with effects, each with the way to it. `items` limits what is listed (0: all)."""
        from wakelog.provenance.taint import taint

        return taint(self.log, source, at=self._upto(at), parts=parts, items=items, wide=wide)

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

        return resting_on(self.log, Mark(trust).trust, at=self._upto(at), parts=parts, items=items, wide=wide)

    def endorse(
        self, targets: What | Iterable[What], *, by: str = "", why: str = "", dry_run: bool = False
    ) -> Endorsed:
        """Says that events can be trusted: from now on they are, and so is what rests on nothing else."""
        from wakelog.provenance.blast_radius import Endorsed, raised_by, targets_of

        seqs = targets_of(self.log, targets)
        raised = raised_by(self.log, seqs)
        seq = 0 if dry_run else self._record(ev.TrustEndorsed(targets=seqs, by=by, why=why), actor="user")
        return Endorsed(self.id, seq, seqs, raised)

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

        seqs = targets_of(self.log, targets)
        seq = 0 if dry_run else self._record(ev.StepInvalidated(targets=seqs, by=by, why=why), actor="user")
        return blast(self.log, seqs, seq=seq, items=items)

    def _upto(self, at: Where) -> Seq | None:
        return None if at is None else self.seq(at)
