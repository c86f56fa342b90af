"""An audit report as a page: HTML that loads nothing, or Markdown. Both are written from the same sections.

A section is a title and blocks: a paragraph, a list, or a table. Recorded text is hostile in both: HTML is escaped,
Markdown's marks are too, and control and direction characters are shown instead of obeyed.
"""

from __future__ import annotations

import datetime
import html
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.exporters.page_style import STYLE
from wakelog.maintenance.audit import AuditEntry
from wakelog.maintenance.audit_report import AuditReport, SessionAudit
from wakelog.timeline.call_table import CallRow

_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_MARKS = re.compile(r"([\\`*_{}\[\]<>|#~])")
_TABLE = (
    "table{border-collapse:collapse;width:100%;font-size:.85rem}"
    "td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line)}"
    # Long words may break, short ones stay whole: a place, a time, the title of a column.
    "td{overflow-wrap:anywhere;min-width:7em}th,td:first-child,td:nth-child(2){white-space:nowrap;min-width:0}"
    "@media(max-width:50em){main{overflow-x:auto}}"
)
TEXT_MAX = 300
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
    """The report as one page for a browser, in pieces."""
    title = _safe(report.case.title or "Audit")
    yield f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<style>{STYLE}{_TABLE}</style>\n</head>\n<body>\n<main>\n"
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
    """The report as Markdown, in pieces."""
    for section in _sections(report):
        yield f"{'#' * section.level} {_marked(section.title)}\n\n"
        for block in section.blocks:
            if isinstance(block, str):
                yield f"{_marked(block)}\n\n"
            elif isinstance(block, list):
                yield "".join(f"- {_marked(item)}\n" for item in block) + "\n"
            else:
                yield _piped(block.titles) + _piped("---" for _ in block.titles)
                yield "".join(_piped(map(_marked, row)) for row in block.rows) + "\n"


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
    for each in report.sessions:
        yield from _session(each)
    yield _anchor_log(report)
    yield _Section("What this does not prove", 2, (list(report.unproven),))
    yield _Section("How to check it yourself", 2, tuple(_how(report)))


def _summary(report: AuditReport) -> Iterator[str | list[str] | _Table]:
    """What somebody reads who reads nothing else: one line a session."""
    rows = []
    for each in report.sessions:
        denied = sum(row.outcome == "denied" for row in each.effects)
        approved = sum(bool(row.approved_by) and row.outcome != "denied" for row in each.effects)
        removed = sum(entry.concern in ("removal", "masking") for entry in each.record)
        rows.append(
            (
                each.name or each.session,
                _some(len(each.turns), "turn"),
                f"{_some(len(each.effects), 'effect')}: {approved} approved, {denied} denied, "
                f"{len(each.effects) - approved - denied} without an approval",
                _some(len({influence.effect for influence in each.influences}), "effect"),
                _some(removed, "removal"),
                _some(len(each.gaps), "gap"),
                "holds" if each.integrity.ok and (each.anchored is None or each.anchored.ok) else "FAILS",
            )
        )
    titles = ("session", "turns", "effects", "rest on untrusted input", "removed or masked", "known gaps", "integrity")
    yield _Table(titles, tuple(rows))
    if any(each.anchored is None for each in report.sessions):
        yield "Not every session was held against an anchor: a history that was rewritten or cut off before this report could not be told from a true one."  # noqa: E501
    yield "An event is named by its number: wakelog show SESSION@e14 shows event 14."


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}" if count else "none"


def _session(each: SessionAudit) -> Iterator[_Section]:
    name = each.name or each.session
    about = [f"Session {each.session}, {each.status}, {each.anchor.seq:,} events from {_when(each.first_at)} to {_when(each.last_at)}."]  # fmt: skip  # noqa: E501
    if each.agent:
        about.append(f"Agent: {each.agent}.")
    if each.goal or each.about:
        about.append(f"About: {each.goal or each.about}")
    if each.hold is not None:
        about.append(f"It is under a hold since {_when(each.hold.since)}: {each.hold.reason}")
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
        for t in each.turns
    )
    yield _Section("What happened", 3, _or_none(("turn", "time", "asked", "outcome", "calls", "trust"), turns))
    effects = tuple(map(_effect, each.effects))
    yield _Section(
        "Effects, and who approved them",
        3,
        _or_none(("event", "time", "tool", "about", "outcome", "decided by", "state changed"), effects),
    )
    yield _influences(each)
    for title, concerns in (
        ("Removed, masked and held", ("removal", "masking", "hold")),
        ("Approvals, denials, and what was said about trust", ("approval", "trust")),
        ("Changes of view, and the session's life", ("history", "life")),
    ):
        rows = tuple(_entry(entry) for entry in each.record if entry.concern in concerns)
        yield _Section(title, 3, _or_none(("event", "time", "what", "by", "why"), rows))
    yield _Section("Integrity", 3, tuple(_integrity(each)))
    yield _Section("Gaps in capture", 3, (list(each.gaps) or "None is known.",))
    if each.unproven:
        yield _Section("Not proven about this session", 3, (list(each.unproven),))


def _effect(row: CallRow) -> tuple[str, ...]:
    changed = ", ".join(each.path for each in row.delta[:3]) + (" …" if len(row.delta) > 3 else "")
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


def _influences(each: SessionAudit) -> _Section:
    rows = tuple(
        (
            f"e{i.effect} {i.tool}",
            i.outcome,
            f"e{i.source} {i.source_name}",
            i.trust,
            i.known + (", may have had influence" if i.may else ""),
            " → ".join(f"e{seq}" for seq in i.path),
        )
        for i in each.influences
    )
    blocks = _or_none(("effect", "outcome", "rests on", "trust", "how that is known", "path"), rows)
    if rows:
        blocks = (*blocks, _KNOWN)
    limits = list(each.influence_limits)
    return _Section("Effects that rest on untrusted or unverified input", 3, (*blocks, limits) if limits else blocks)


def _entry(entry: AuditEntry) -> tuple[str, ...]:
    return f"e{entry.seq}", _when(entry.at), f"{entry.kind}: {entry.what}", entry.by or entry.actor, entry.why


def _integrity(each: SessionAudit) -> Iterator[str | list[str]]:
    report = each.integrity
    yield f"Head e{each.anchor.seq}, hash {each.anchor.hash}."
    yield "Integrity holds." if not report.integrity else "INTEGRITY FAILS:"
    if report.integrity:
        yield [f"e{fault.seq}: {fault.what}" for fault in report.integrity]
    yield "Completeness holds, as far as it can be seen." if not report.completeness else "COMPLETENESS FAILS:"
    if report.completeness:
        yield [f"e{fault.seq}: {fault.what}" for fault in report.completeness]
    if each.anchored is None:
        yield "It was held against no anchor."
        return
    told = each.anchored
    if told.held is not None and told.since is not None:
        yield f"Anchors hold up to e{told.held.seq}, anchored {_when(told.held.at)}; the first is of {_when(told.since.at)} (e{told.since.seq})."  # noqa: E501
    if not told.ok and told.failed is not None:
        yield f"ANCHOR FAILS ({told.verdict}): {told.told}. e{told.failed.seq} was anchored {_when(told.failed.at)}."


def _anchor_log(report: AuditReport) -> _Section:
    found = report.anchors
    if found is None:
        return _Section("Anchors", 2, ("No log of anchors was given.",))
    blocks: list[str | list[str] | _Table] = [
        f"{found.place}: {found.rounds} rounds, the newest {_when(found.newest_at)}."
    ]
    blocks += [f"THE LOG ITSELF FAILS: {fault}" for fault in filter(None, (found.log_fault, *found.kept_faults))]
    blocks += [f"It agrees with the receipt of {_when(each.at)}, signed by {each.signer}." for each in found.kept]
    if (back := found.rolled_back) is not None:
        blocks.append(
            f"THE STORE WAS ROLLED BACK to between {_when(back.after)} and {_when(back.before)}: "
            f"{back.sessions} sessions lost events."
        )
    return _Section("Anchors", 2, tuple(blocks))


def _how(report: AuditReport) -> Iterator[str | _Table]:
    files = [each for each in report.sessions if each.bundle is not None]
    if not files:
        yield "No bundles were written with this report (wakelog audit --bundle FOLDER)."
        return
    yield (
        "Each session is in a bundle beside this report. A reader of its own that needs only Python's standard library "
        "is in tests/readers/reader.py of wakelog's sources: python reader.py FILE --anchor JSON, with the anchor from "
        "anchors.json or, better, from one that you kept. docs/reference/format.md describes the format."
    )
    rows = tuple((e.bundle.name, str(e.bundle.size), e.bundle.sha256) for e in files if e.bundle is not None)
    yield _Table(("file", "bytes", "SHA-256"), rows)


def _or_none(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> tuple[str | list[str] | _Table, ...]:
    return (_Table(titles, tuple(rows)),) if rows else ("None.",)


def _when(at_us: int) -> str:
    return datetime.datetime.fromtimestamp(at_us / 1e6, tz=datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _row(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{_safe(cell)}</{tag}>" for cell in cells) + "</tr>"


def _piped(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _inert(text: str) -> str:
    cut = text if len(text) <= TEXT_MAX * 4 else text[: TEXT_MAX * 4 - 1] + "…"
    return _HOSTILE.sub(lambda m: " " if m[0] in "\n\t" else f"⟦U+{ord(m[0]):04X}⟧", cut)


def _safe(text: str) -> str:
    return html.escape(_inert(text))


def _marked(text: str) -> str:
    return _MARKS.sub(r"\\\1", _inert(text))
