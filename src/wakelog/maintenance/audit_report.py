"""The audit report: evidence about one session, or about the sessions of a case, for somebody who was not there.

It tells what happened, who approved it, which effects rest on input that nobody vouched for, what was removed by whom
and why, whether the record is sound and which anchors hold, where capture has gaps, and what none of this proves. It
only reads. Every statement names the event it comes from, and says how it is known.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import wakelog
from wakelog.atomic_file import atomic_file
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.index.results import TurnInfo
from wakelog.log.verify import VerifyReport
from wakelog.maintenance.audit import PAGE, AuditEntry, whole_audit
from wakelog.maintenance.holds import Hold
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Anchor
from wakelog.provenance.taint import Touched
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store.anchors import AnchoredSession, AnchorReport
from wakelog.timeline.call_table import CallRow

if TYPE_CHECKING:
    from wakelog.evidence.anchor_log import AnchorLog

_ENDED = ("uncertain", "running", "requested", "waiting")


class AuditCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be audited: the sessions of one incident, and what the reader should know about it."""

    sessions: tuple[str, ...]
    title: str = ""
    question: str = ""
    by: str = ""
    """Who asks."""


class Influence(msgspec.Struct, frozen=True):
    """An effect that rests on input which nobody vouched for."""

    effect: Seq
    tool: str
    outcome: str
    trust: str
    """Of what it rests on."""
    known: str
    """How that is known: recorded, derived, matched or unknown."""
    may: bool
    """Only that the input was in the model's window is known: it may have had influence."""
    source: Seq
    source_name: str
    path: tuple[Seq, ...]


class EvidenceFile(msgspec.Struct, frozen=True):
    """A file that goes with the report."""

    name: str
    sha256: str
    size: int


class SessionAudit(msgspec.Struct, frozen=True):
    """The evidence about one session."""

    session: SessionId
    name: str
    agent: str
    status: str
    goal: str
    about: str
    labels: dict[str, str]
    first_at: int
    last_at: int
    anchor: Anchor
    """Where the session stood when the report was made."""
    turns: tuple[TurnInfo, ...]
    calls: int
    effects: tuple[CallRow, ...]
    """Calls with effects outside the session, oldest first."""
    influences: tuple[Influence, ...]
    influence_limits: tuple[str, ...]
    """What the search for influence did not cover."""
    record: tuple[AuditEntry, ...]
    """What was done to the record itself."""
    hold: Hold | None
    integrity: VerifyReport
    anchored: AnchoredSession | None
    """What a log of anchors says; None when none was given, or the session is not in it."""
    gaps: tuple[str, ...]
    unproven: tuple[str, ...]
    """What this does not prove, about this session in particular."""
    bundle: EvidenceFile | None = None

    @property
    def ok(self) -> bool:
        return self.integrity.ok and (self.anchored is None or self.anchored.ok)


class AuditReport(msgspec.Struct, frozen=True):
    """The evidence of a case."""

    case: AuditCase
    made_at: int
    made_with: str
    sessions: tuple[SessionAudit, ...]
    anchors: AnchorReport | None
    unproven: tuple[str, ...]
    """What such a report never proves."""

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.sessions) and (self.anchors is None or self.anchors.ok)


NEVER_PROVEN = (
    "That what was recorded is true. The log keeps what its writer sends; names of actors, tools and approvers are "
    "what the writer says.",
    "That everything was recorded. A gap that nobody noticed leaves no trace.",
    "When things happened. Times are those of the machine that recorded; only the order within a session is fixed.",
    "That one thing caused another. Influence is recorded data flow, or matching text; a model may have used something "
    "without a trace, and may have ignored what was in its window.",
)


def read_case(path: Path) -> AuditCase:
    """A case from a TOML file with `sessions`, and `title`, `question` and `by` if you like."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), described(AuditCase))
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as exc:
        raise InvalidInputError(
            f"{path} is not a case: {exc}", kind="bad-case", hint='it needs: sessions = ["name", …]'
        ) from exc


def audit_report(
    store: Store, case: AuditCase, *, log: AnchorLog | None = None, kept: Sequence[str] = ()
) -> AuditReport:
    """Gathers the evidence. `log` is a log of anchors to hold against the store, and `kept` receipts to hold against
    the log."""
    if not case.sessions:
        raise InvalidInputError("a case needs a session", kind="bad-case", hint='sessions = ["name", …]')
    found = [store.resume(name, even_damaged=True) for name in dict.fromkeys(case.sessions)]
    anchors = store.anchors.verify(log, [each.id for each in found], kept=kept) if log is not None else None
    told = {each.session: each for each in anchors.sessions} if anchors is not None else {}
    return AuditReport(
        case=case,
        made_at=store.clock(),
        made_with=f"wakelog {wakelog.__version__}",
        sessions=tuple(_session(store, each, told.get(each.id), log is not None) for each in found),
        anchors=anchors,
        unproven=NEVER_PROVEN,
    )


def _session(store: Store, session: Session[Any], anchored: AnchoredSession | None, has_log: bool) -> SessionAudit:
    audit = whole_audit(store, session)
    record = audit.entries
    info = next(each for each in store.index.sessions(prefix=session.id) if each.id == session.id)
    report = session.verify()
    calls = _or(session.calls.table, [])
    influences, limits = _influences(session)
    gaps = [e.what or "something was not recorded" for e in record if e.concern == "gap"]
    gaps += [f"e{c.seq} {c.tool}: its outcome is not known ({c.outcome})" for c in calls if c.outcome in _ENDED]
    if audit.damaged:
        gaps.append(f"a part cannot be read: {audit.damaged}")
    return SessionAudit(
        session=session.id,
        name=session.name,
        agent=info.agent,
        status=info.status,
        goal=info.goal or "",
        about=info.about,
        labels=info.labels,
        first_at=info.first_at,
        last_at=info.last_at,
        anchor=session.anchor(),
        turns=tuple(_turns(store, session)),
        calls=len(calls),
        effects=tuple(c for c in calls if c.effect in ("write", "external")),
        influences=influences,
        influence_limits=limits,
        record=record,
        hold=audit.hold,
        integrity=report,
        anchored=anchored,
        gaps=tuple(gaps),
        unproven=tuple(_unproven(report, record, anchored, has_log)),
    )


def _influences(session: Session[Any]) -> tuple[tuple[Influence, ...], tuple[str, ...]]:
    """Effects that rest on untrusted or unverified input; none of a session that cannot be walked."""
    try:
        found = session.trust.taint(trust="unverified", parts=["effect"], items=0)
    except CorruptLogError as exc:
        return (), (f"influence could not be traced: {exc.message}",)
    return tuple(_influence(session, each) for each in found.effects), found.limits


def _influence(session: Session[Any], each: Touched) -> Influence:
    source = each.path[0].seq if each.path else each.seq
    header = session.log.entry(source).header
    return Influence(
        effect=each.seq,
        tool=each.name,
        outcome=each.outcome,
        trust=header.trust,
        known=each.known,
        may=each.may,
        source=source,
        source_name=header.source or header.actor,
        path=tuple(hop.seq for hop in each.path),
    )


def _unproven(
    report: VerifyReport, record: Sequence[AuditEntry], anchored: AnchoredSession | None, has_log: bool
) -> list[str]:
    told = []
    if anchored is None:
        why = "it is not in the log of anchors" if has_log else "no anchors were given"
        told.append(f"That its history was not rewritten or cut off before this report: {why}.")
    elif anchored.held is not None and anchored.head > anchored.held.seq:
        told.append(f"That events after e{anchored.held.seq} are the first ones: they came after the newest anchor.")
    for what, number in report.scope.items():
        if number:
            told.append(f"What {number} {what.replace('_', ' ')} once said: only that they existed, and where.")
    if report.uncovered:
        told.append(f"What {report.uncovered} events said that an ancestor removed after the fork.")
    if any(each.kind == "records.imported" for each in record):
        told.append("That the transcript it was imported from is whole: wakelog read it afterwards.")
    return told


def _turns(store: Store, session: Session[Any]) -> Iterator[TurnInfo]:
    after: str | None = ""
    while after is not None:
        page = store.index.turns(session.id, rewound=True, newest_first=False, after=after, limit=PAGE)
        yield from page
        after = page.next or None


def _or(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What can be said of a damaged session, or nothing."""
    try:
        return ask()
    except CorruptLogError:
        return otherwise


def write_bundles(store: Store, report: AuditReport, folder: Path) -> AuditReport:
    """Writes each session beside the report as a bundle that can be verified without wakelog, and `anchors.json` to
    hold against them. The report with the files' hashes. A folder that holds something is refused; a damaged session
    has no bundle."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise NotAllowedError(f"{folder} is not empty", kind="file-exists", hint="name a new folder")
        sessions = tuple(_with_bundle(store, each, folder) for each in report.sessions)
        with atomic_file(folder / "anchors.json", mode=0o644) as out:
            out.write(msgspec.json.format(msgspec.json.encode([each.anchor for each in sessions])) + b"\n")
    except OSError as exc:
        raise NotAllowedError(f"{folder} cannot be written: {exc.strerror or exc}", kind="not-writable") from exc
    return msgspec.structs.replace(report, sessions=sessions)


def _with_bundle(store: Store, each: SessionAudit, folder: Path) -> SessionAudit:
    path = folder / f"{each.session}.wakelog"
    try:
        with atomic_file(path, mode=0o644) as out:
            # What an ancestor removed after the fork is explained by its later events.
            store.resume(each.session, even_damaged=True).export_bundle(out, beyond=True)
    except CorruptLogError as exc:
        gap = f"it has no bundle, because a damaged session cannot be exported whole: {exc.message}"
        return msgspec.structs.replace(each, gaps=(*each.gaps, gap))
    content = path.read_bytes()
    file = EvidenceFile(path.name, hashlib.sha256(content).hexdigest(), len(content))
    return msgspec.structs.replace(each, bundle=file)
