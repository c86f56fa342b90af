"""Writes an audit report as HTML or Markdown. Both are made from the same sections.

A section is a title and blocks: a paragraph, a list, or a table. Recorded text may be hostile: HTML and Markdown in it
is escaped, and control and direction characters are made visible.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.exporters.page_frame import page_head, safe
from wakelog.maintenance.audit import AuditEntry
from wakelog.maintenance.audit_report import AuditReport, SessionAudit
from wakelog.model.hidden_characters import show_hidden
from wakelog.model.short_text import cut
from wakelog.timeline.call_table import CallRow

_MARKS = re.compile(r"([\\`*_{}\[\]<>|#~])")
_TABLE = (
    "table{border-collapse:collapse;width:100%;font-size:.85rem}"
    "td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line)}"
    # Long words may break; short cells such as positions, times and titles may not.
    "td{overflow-wrap:anywhere;min-width:7em}th,td:first-child,td:nth-child(2){white-space:nowrap;min-width:0}"
    "@media(max-width:50em){main{overflow-x:auto}}"
)
TEXT_MAX = 1200
_KNOWN = (
    "The path leads from the input to the effect, event by event. Recorded: the program said so when it happened. "
    "Derived: it follows from what was recorded. Matched: the same text was found in both. Unknown: it was there."
)


class _Table(msgspec.Struct, frozen=True):
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class _Section(msgspec.Struct, frozen=True):
    title: str
    level: int
    blocks: tuple[str | list[str] | _Table, ...]


def audit_html(report: AuditReport) -> Iterator[str]:
    """The report as one HTML page, in parts."""
    yield from page_head(_one_line(report.case.title or "Audit"), _TABLE)
    for section in _sections(report):
        tag = f"h{section.level}"
        yield f"<{tag}>{_safe(section.title)}</{tag}>\n"
        for block in section.blocks:
            if isinstance(block, str):
                yield f"<p>{_safe(block)}</p>\n"
            elif isinstance(block, list):
                yield "<ul>" + "".join(f"<li>{_safe(item)}</li>" for item in block) + "</ul>\n"
            else:
                yield f"<table><thead>{_row(block.titles, 'th')}</thead><tbody>"
                yield "".join(_row(row, "td") for row in block.rows) + "</tbody></table>\n"
    yield "</main>\n</body>\n</html>\n"


def audit_markdown(report: AuditReport) -> Iterator[str]:
    """The report as Markdown, in parts."""
    for section in _sections(report):
        yield f"{'#' * section.level} {_markdown(section.title)}\n\n"
        for block in section.blocks:
            if isinstance(block, str):
                yield f"{_markdown(block)}\n\n"
            elif isinstance(block, list):
                yield "".join(f"- {_markdown(item)}\n" for item in block) + "\n"
            else:
                yield _piped(block.titles) + _piped("---" for _ in block.titles)
                yield "".join(_piped(map(_markdown, row)) for row in block.rows) + "\n"


def _sections(report: AuditReport) -> Iterator[_Section]:
    case = report.case
    facts = [f"Made {_when(report.made_at)} with {report.made_with}."]
    if case.by:
        facts.append(f"Asked by {case.by}.")
    if case.question:
        facts.append(f"Question: {case.question}")
    verdict = "Every check that could be made holds." if report.ok else "A CHECK FAILED. See Integrity."
    yield _Section(case.title or f"Audit of {', '.join(case.sessions)}", 1, (*facts, verdict))
    yield _Section("In short", 2, tuple(_summary(report)))
    for audit in report.sessions:
        yield from _session(audit)
    yield _anchor_log(report)
    yield _Section("What this does not prove", 2, (list(report.unproven),))
    yield _Section("How to check it yourself", 2, tuple(_how(report)))


def _summary(report: AuditReport) -> Iterator[str | list[str] | _Table]:
    """The summary for readers who read nothing else: one row for each session."""
    rows = []
    for audit in report.sessions:
        denied = sum(row.outcome == "denied" for row in audit.effects)
        approved = sum(bool(row.approved_by) and row.outcome != "denied" for row in audit.effects)
        removed = sum(entry.concern in ("removal", "masking") for entry in audit.record)
        rows.append(
            (
                audit.name or audit.session,
                _count(len(audit.turns), "turn", audit),
                f"{_count(len(audit.effects), 'effect', audit)}: {approved} approved, {denied} denied, "
                f"{len(audit.effects) - approved - denied} without an approval",
                _count(len({influence.effect for influence in audit.influences}), "effect", audit),
                _count(removed, "removal", audit),
                _count(len(audit.gaps), "gap", audit),
                "holds" if audit.integrity.ok and (audit.anchored is None or audit.anchored.ok) else "FAILS",
            )
        )
    titles = ("session", "turns", "effects", "on untrusted input", "removed or masked", "known gaps", "integrity")
    yield _Table(titles, tuple(rows))
    if any(audit.anchored is None for audit in report.sessions):
        yield "Not every session was checked against an anchor: without one, a history that was rewritten or cut off before this report looks like a true one."  # noqa: E501
    yield "An event is named by its number: wakelog show SESSION@e14 shows event 14."


def _count(count: int, what: str, audit: SessionAudit) -> str:
    """A number of things; only the least there are, if a part of the session cannot be read."""
    if audit.unread:
        return f"{count:,} {what}{'s' * (count != 1)} or more"
    return f"{count:,} {what}{'s' * (count != 1)}" if count else "none"


def _session(audit: SessionAudit) -> Iterator[_Section]:
    name = audit.name or audit.session
    about = [f"Session {audit.session}, {audit.status}, {audit.anchor.seq:,} events from {_when(audit.first_at)} to {_when(audit.last_at)}."]  # fmt: skip  # noqa: E501
    if audit.agent:
        about.append(f"Agent: {audit.agent}.")
    if audit.goal or audit.about:
        about.append(f"About: {audit.goal or audit.about}")
    if audit.hold is not None:
        about.append(f"It is under a hold since {_when(audit.hold.since)}: {audit.hold.reason}")
    if audit.unread:
        about.append(
            f"IT IS DAMAGED: {', '.join(audit.unread)} cannot be read. Turns and influence are listed up to there; "
            "effects, approvals and changes are those that can be read, and others may be missing."
        )
    yield _Section(name, 2, tuple(about))
    turns = tuple(
        (
            f"@{t.turn}" + (f".{t.attempt}" if t.attempt > 1 else ""),
            _when(t.started_at),
            t.input,
            t.outcome + ("" if t.in_view else ", rewound"),
            str(t.tool_calls),
            t.trust,
        )
        for t in audit.turns
    )
    yield _Section("What happened", 3, _or_none(audit, ("turn", "time", "asked", "outcome", "calls", "trust"), turns))
    effects = tuple(map(_effect, audit.effects))
    yield _Section(
        "Effects, and who approved them",
        3,
        _or_none(audit, ("event", "time", "tool", "about", "outcome", "decided by", "state changed"), effects),
    )
    yield _influences(audit)
    for title, concerns in (
        ("Removed, masked and held", ("removal", "masking", "hold")),
        ("Approvals, denials, and what was said about trust", ("approval", "trust")),
        ("Changes of view, and the session's life", ("history", "life")),
    ):
        rows = tuple(_entry(entry) for entry in audit.record if entry.concern in concerns)
        yield _Section(title, 3, _or_none(audit, ("event", "time", "what", "by", "why"), rows))
    yield _Section("Integrity", 3, tuple(_integrity(audit)))
    yield _Section("Gaps in capture", 3, (list(audit.gaps) or "None is known.",))
    if audit.unproven:
        yield _Section("Not proven about this session", 3, (list(audit.unproven),))


def _effect(row: CallRow) -> tuple[str, ...]:
    changed = ", ".join(op.path for op in row.delta[:3]) + (" …" if len(row.delta) > 3 else "")
    about = f"({row.gone})" if row.gone else row.about
    decided = f"{'denied' if row.outcome == 'denied' else 'approved'} by {row.approved_by}" if row.approved_by else ""
    return (
        f"e{row.seq}",
        _when(row.at),
        row.tool,
        about,
        row.outcome,
        decided or "no approval recorded",
        changed,
    )


def _influences(audit: SessionAudit) -> _Section:
    rows = tuple(
        (
            f"e{i.effect} {i.tool}",
            i.outcome,
            f"e{i.source} {i.source_name}",
            i.trust,
            i.known + (", may have had influence" if i.may else ""),
            " → ".join(f"e{seq}" for seq in i.path),
        )
        for i in audit.influences
    )
    blocks = _or_none(audit, ("effect", "outcome", "depends on", "trust", "how that is known", "path"), rows)
    if rows:
        blocks = (*blocks, _KNOWN)
    limits = list(audit.influence_limits)
    return _Section("Effects that depend on untrusted or unverified input", 3, (*blocks, limits) if limits else blocks)


def _entry(entry: AuditEntry) -> tuple[str, ...]:
    return f"e{entry.seq}", _when(entry.at), f"{entry.kind}: {entry.what}", entry.by or entry.actor, entry.why


def _integrity(audit: SessionAudit) -> Iterator[str | list[str]]:
    report = audit.integrity
    yield f"Head e{audit.anchor.seq}, hash {audit.anchor.hash}."
    yield "Integrity holds." if not report.integrity else "INTEGRITY FAILS:"
    if report.integrity:
        yield [f"e{fault.seq}: {fault.what}" for fault in report.integrity]
    yield "Completeness holds, as far as it can be seen." if not report.completeness else "COMPLETENESS FAILS:"
    if report.completeness:
        yield [f"e{fault.seq}: {fault.what}" for fault in report.completeness]
    if audit.anchored is None:
        yield "It was not checked against an anchor."
        return
    check = audit.anchored
    if check.held is not None and check.since is not None:
        yield f"Anchors hold up to e{check.held.seq}, anchored {_when(check.held.at)}; the first is of {_when(check.since.at)} (e{check.since.seq})."  # noqa: E501
    if not check.ok and check.failed is not None:
        failed = check.failed
        yield f"ANCHOR FAILS ({check.verdict}): {check.told}. e{failed.seq} was anchored {_when(failed.at)}."


def _anchor_log(report: AuditReport) -> _Section:
    anchors = report.anchors
    if anchors is None:
        return _Section("Anchors", 2, ("No log of anchors was given.",))
    blocks: list[str | list[str] | _Table] = [
        f"{anchors.place}: {anchors.rounds} rounds, the newest {_when(anchors.newest_at)}."
    ]
    blocks += [f"THE LOG ITSELF FAILS: {fault}" for fault in filter(None, (anchors.log_fault, *anchors.kept_faults))]
    blocks += [
        f"It agrees with the receipt of {_when(receipt.at)}, signed by {receipt.signer}." for receipt in anchors.kept
    ]
    if (back := anchors.rolled_back) is not None:
        blocks.append(
            f"THE STORE WAS ROLLED BACK to between {_when(back.after)} and {_when(back.before)}: "
            f"{back.sessions} sessions lost events."
        )
    return _Section("Anchors", 2, tuple(blocks))


def _how(report: AuditReport) -> Iterator[str | _Table]:
    bundled = [audit for audit in report.sessions if audit.bundle is not None]
    if not bundled:
        yield "No bundles were written with this report (wakelog audit --bundle FOLDER)."
        return
    yield (
        "Each session is in a bundle next to this report. An independent reader, which needs only Python's standard "
        "library, is in tests/readers/reader.py of wakelog's sources: python reader.py FILE --anchor JSON, with the "
        "anchor from anchors.json or, better, one that you kept. docs/reference/format.md describes the format."
    )
    rows = tuple((e.bundle.name, str(e.bundle.size), e.bundle.sha256) for e in bundled if e.bundle is not None)
    yield _Table(("file", "bytes", "SHA-256"), rows)


def _or_none(
    audit: SessionAudit, titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> tuple[str | list[str] | _Table, ...]:
    if rows:
        return (_Table(titles, tuple(rows)),)
    return ("None in what can be read." if audit.unread else "None.",)


def _when(at_us: int) -> str:
    return datetime.datetime.fromtimestamp(at_us / 1e6, tz=datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{_safe(cell)}</{tag}>" for cell in cells) + "</tr>"


def _piped(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _one_line(text: str) -> str:
    return cut(text, TEXT_MAX).replace("\n", " ").replace("\t", " ")


def _safe(text: str) -> str:
    return safe(_one_line(text))


def _markdown(text: str) -> str:
    return _MARKS.sub(r"\\\1", show_hidden(_one_line(text)))
