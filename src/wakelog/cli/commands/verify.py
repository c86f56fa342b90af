"""`wakelog verify`: checks whether a session was altered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.options import all_sessions_option, session_argument
from wakelog.cli.output import is_url
from wakelog.cli.text import clock, inert_line, name_some
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.evidence.head_notes import PROOF, SignedHead
from wakelog.evidence.key_source import read_public_key
from wakelog.evidence.signed_note import PublicKey
from wakelog.log.verify import VerifyReport
from wakelog.model.records import Anchor
from wakelog.model.short_text import pluralize
from wakelog.store.anchors import AnchoredSession, AnchorReport, DatedAnchor

STORE = "the store itself"
GIT = "git:"
MAX_NAMED = 20


@click.command("verify")
@session_argument
@all_sessions_option
@click.option("--against", default="", metavar="ANCHOR", help="Compare with an anchor, or a log of anchors.")
@click.option("--signer", "signers", multiple=True, metavar="KEY", help="Accept this signer: key or file (repeat).")
@click.option("--kept", multiple=True, metavar="FILE", help="Use this kept receipt: file or git:FOLDER (repeat).")
@common
def verify_command(
    ctx: CommandContext, session: str, everything: bool, against: str, signers: tuple[str, ...], kept: tuple[str, ...]
) -> int:
    """Check whether a session was altered: every byte against its hash, the chain, and what is derived from it.

    The exit code is 4 when a check fails. Without an anchor, a cut at the newest events cannot be detected. A log of
    anchors tells which anchors hold, since when, and whether an end was cut off, a history was replaced, or the whole
    store was rolled back.

    Examples:
      wakelog verify fix-auth
      wakelog verify --all
      wakelog verify --all --against anchors --signer ci.pub --kept newest.receipt
    """
    keys = [read_public_key(signer) for signer in signers]
    ctx.even_damaged = True
    if against and (is_url(against) or Path(against).is_dir()):
        return _verify_against_log(ctx, session, everything, against, keys, kept)
    if against and not Path(against).exists():
        raise NotFoundError(f"there is no anchor at {against}", kind="file-not-found")
    if kept:
        raise click.UsageError("--kept goes with a log of anchors: --against FOLDER")
    signed = _read_anchor(ctx, Path(against), keys) if against else None
    anchor = signed.anchor if signed else None
    if everything and anchor is not None:
        raise click.UsageError("an anchor belongs to one session: leave out --all")
    session = session or (anchor.session if anchor else "")
    reports = list(ctx.store.verify()) if everything else [ctx.session(session).verify(anchor)]
    data = [{**msgspec.to_builtins(r), "ok": r.ok, "name": _name(ctx, r)} for r in reports]
    if signed and signed.signer:
        data[0] |= {"signer": signed.signer, "signed_at": signed.at}
    ctx.answer("verify", data, lambda: _show_all(ctx, reports, signed, data if everything else []))
    return 0 if all(r.ok for r in reports) else INTEGRITY


def _show_all(
    ctx: CommandContext, reports: list[VerifyReport], signed: SignedHead | None, summed: list[dict[str, Any]]
) -> None:
    for report in reports:
        _show(ctx, report)
        if report.head_hash:
            _show_anchor(ctx, report, signed)
    if summed:
        _show_sum(ctx, summed)


def _verify_against_log(
    ctx: CommandContext, session: str, everything: bool, against: str, keys: list[PublicKey], kept: tuple[str, ...]
) -> int:
    """Verifies sessions, and compares them with a log of anchors."""
    if not keys:
        raise InvalidInputError(
            "a log of anchors is signed: say whose signatures count",
            kind="no-signer",
            hint="--signer NAME+ID+KEY, which the signer told you",
        )
    notes = [note for place in kept for note in kept_notes(ctx, place)]
    log = ctx.store.anchors.log(against, keys)
    chosen = None if everything else ctx.session(session)
    found = ctx.store.anchors.verify(log, [chosen.id] if chosen else (), kept=notes)
    anchored = {each.session: each for each in found.sessions}
    reports = list(ctx.store.verify()) if chosen is None else [chosen.verify()]
    here = {report.session for report in reports}
    is_ok = found.ok and all(r.ok for r in reports)
    data: list[Any] = [
        {**msgspec.to_builtins(r), "ok": r.ok, "name": _name(ctx, r), "anchors": anchored.get(r.session)}
        for r in reports
    ]
    data += [
        {"session": missing.session, "name": missing.name, "ok": missing.ok, "anchors": missing}
        for missing in anchored.values()
        if missing.session not in here
    ]

    def human() -> None:
        for report in reports:
            anchors = anchored.get(report.session)
            _show(ctx, report, failed=anchors is not None and not anchors.ok)
            if report.session:
                show_anchored(ctx, anchors)
        for missing in anchored.values():
            if missing.session not in here:
                mark = ctx.mark(missing.ok)
                ctx.say(f"{mark} {inert_line(missing.name or missing.session)}")
                show_anchored(ctx, missing)
        if everything:
            _show_sum(ctx, [{**each, "ok": each["ok"] and getattr(each["anchors"], "ok", True)} for each in data])
        show_log(ctx, found)

    ctx.answer("verify-anchored", {"sessions": data, "log": _log_data(found)}, human, records=data)
    return 0 if is_ok else INTEGRITY


def _log_data(report: AnchorReport) -> dict[str, Any]:
    return {
        "place": report.place,
        "rounds": report.rounds,
        "newest_at": report.newest_at,
        "rolled_back": msgspec.to_builtins(report.rolled_back),
        "fault": report.log_fault,
        "kept": [{"size": receipt.size, "at": receipt.at, "signer": receipt.signer} for receipt in report.kept],
        "kept_faults": list(report.kept_faults),
        "ok": report.ok,
    }


def kept_notes(ctx: CommandContext, place: str) -> list[str]:
    """The receipts in a file, or in the git notes of a repository."""
    if place.startswith(GIT):
        notes = ctx.store.anchors.kept_in_git(place.removeprefix(GIT) or ".")
        if not notes:
            raise NotFoundError(
                f"there are no receipts in the git notes of {place.removeprefix(GIT) or '.'}",
                kind="anchor-not-found",
                hint="git fetch origin refs/notes/wakelog-anchors:refs/notes/wakelog-anchors",
            )
        return notes
    return [_read(Path(place))]


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInputError(f"{path} is not an anchor: it is not text", kind="bad-anchor") from exc


def _name(ctx: CommandContext, report: VerifyReport) -> str:
    return ctx.name_of(report.session) if report.session else STORE


def _show(ctx: CommandContext, report: VerifyReport, *, failed: bool = False) -> None:
    name = inert_line(_name(ctx, report))
    mark = ctx.mark(report.ok and not failed)
    if not report.head_hash:  # the store itself, or a session that cannot be read
        ctx.say(f"{mark} {name}" + ("  cannot be read: nothing of it was checked" if report.session else ""))
        for fault in report.integrity:
            title = f"{'integrity':<13}" if report.session else ""
            ctx.say(f"    {title}{ctx.style(inert_line(fault.what), fg='red')}")
        return
    ctx.say(f"{mark} {name}  {pluralize(report.events, 'event')}, head {report.head_hash[:12]}")
    for word, faults in (("integrity", report.integrity), ("completeness", report.completeness)):
        told = [f"e{fault.seq}: {inert_line(fault.what)}" for fault in faults[:10]]
        ctx.say(f"    {word:<13}{ctx.style(f'first fault at {told[0]}', fg='red') if told else 'holds'}")
        for line in told[1:]:
            ctx.say(f"    {'':<13}{line}")
        if len(faults) > len(told):
            ctx.say(f"    {'':<13}and {len(faults) - len(told)} more")
    gone = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in report.scope.items() if count)
    ctx.say(f"    {'scope':<13}{'everything is there' if not gone else f'not checkable: {gone}'}")
    if report.scope.get("encrypted"):
        text = "the key is not available: headers, chain and order were checked, the content was not"
        ctx.say(f"    {'encrypted':<13}{text}")
    if report.scope.get("key_deleted"):
        ctx.say(f"    {'erased':<13}its key was deleted: headers, chain and order were checked, the content is gone")
    if report.uncovered:
        text = "removed by an ancestor after the fork: its anchor covers that, not one of this session"
        ctx.say(f"    {'removals':<13}{report.uncovered} {text}")


def _show_sum(ctx: CommandContext, sessions: list[dict[str, Any]]) -> None:
    """Prints how many of many sessions hold, and names the others: their reports are easily overlooked."""
    failed = [each["name"] or each["session"] for each in sessions if not each["ok"]]
    if failed:
        named = inert_line(name_some(failed, MAX_NAMED))
        ctx.say(f"{ctx.mark(False)} {len(failed)} of {len(sessions)} failed: {named}")
    elif len(sessions) > 1:
        ctx.say(f"{ctx.mark(True)} {pluralize(len(sessions), 'session')}: every check holds")


def _show_anchor(ctx: CommandContext, report: VerifyReport, signed: SignedHead | None) -> None:
    if signed is None:
        ctx.say(f"    {'anchor':<13}none given: a cut-off end would not be seen (wakelog anchor, kept elsewhere)")
    elif report.ok:
        later = report.events - signed.anchor.seq
        since = f", {pluralize(later, 'event')} came after it" if later else ", which is the head"
        ctx.say(f"    {'anchor':<13}holds: e{signed.anchor.seq} is the one it names{since}")
    if signed and signed.signer:
        ctx.say(f"    {'signed':<13}by {inert_line(signed.signer)} at {clock(signed.at, utc=ctx.utc, long=True)}")


def _read_anchor(ctx: CommandContext, path: Path, keys: list[PublicKey]) -> SignedHead:
    """Reads an anchor as `wakelog anchor` prints or writes it, with or without --json, signed or not."""
    text = _read(path)
    if text.startswith(PROOF):
        return ctx.store.anchors.open(text, keys)
    if keys:
        raise InvalidInputError(
            f"{path} is not a signed anchor", kind="bad-anchor", hint="leave out --signer, or give a signed one"
        )
    try:
        document = msgspec.json.decode(text)
        inner = document.get("data", document) if isinstance(document, dict) else document
        if isinstance(inner, dict) and "signed" in inner:
            return ctx.store.anchors.open(inner["signed"], keys)
        return SignedHead(msgspec.convert(inner, Anchor), "", 0)
    except msgspec.DecodeError as exc:
        is_note = "\n\n— " in text
        raise InvalidInputError(
            f"{path} is a receipt, not an anchor" if is_note else f"{path} is not an anchor: {exc}",
            kind="bad-anchor",
            hint="pass it with --kept, and the log with --against" if is_note else "make one with wakelog anchor",
        ) from exc


def show_anchored(ctx: CommandContext, result: AnchoredSession | None) -> None:
    """Prints which anchors of a session hold, since when, and which do not."""
    if result is None:
        ctx.say(f"    {'anchors':<13}none: it was not anchored yet")
        return
    if result.held is not None and result.since is not None:
        first = f" since {_when(ctx, result.since)} (e{result.since.seq})" if result.since != result.held else ""
        which = "the only anchor" if result.anchors == 1 else f"{result.anchors} anchors"
        holds = f"e{result.held.seq} holds, anchored {_when(ctx, result.held)}; {which}{first}"
        ctx.say(f"    {'anchors':<13}{holds}")
    if result.verdict == "holds":
        ctx.say(f"    {'':<13}{result.told}")
        return
    style = {} if result.ok else {"fg": "red"}
    ctx.say(f"    {result.verdict:<13}{ctx.style(inert_line(result.told), **style)}")
    if result.failed is not None:
        ctx.say(f"    {'':<13}e{result.failed.seq} was anchored {_when(ctx, result.failed)}, and that no longer holds")


def show_log(ctx: CommandContext, report: AnchorReport) -> None:
    """Prints the state of the log of anchors, and whether the store was rolled back."""
    mark = ctx.mark(report.ok)
    rounds = pluralize(report.rounds, "round")
    newest = f", the newest {clock(report.newest_at, utc=ctx.utc, long=True)}" if report.rounds else ""
    ctx.say(f"{mark} anchors in {inert_line(report.place)}: {rounds}{newest}")
    for fault in filter(None, (report.log_fault, *report.kept_faults)):
        ctx.say(f"    {ctx.style(inert_line(fault), fg='red')}")
    for receipt in report.kept:
        ctx.say(f"    {'kept':<13}agrees with the receipt of {clock(receipt.at, utc=ctx.utc, long=True)}")
    if not report.rounds and not report.log_fault:
        ctx.say("    it is empty, so it proves nothing")
    elif not report.kept and not report.kept_faults:
        ctx.say(f"    {'kept':<13}no receipt given: a log of anchors that was cut off would not be seen (--kept)")
    if (back := report.rolled_back) is not None:
        after, before = (clock(at, utc=ctx.utc, long=True) for at in (back.after, back.before))
        went_on = ", and went on from there" if back.went_on else ""
        lost = f"{pluralize(back.sessions, 'session')} lost events"
        text = f"the store is as it was between {after} and {before}{went_on}: {lost}"
        ctx.say(f"    {'rolled back':<13}{ctx.style(text, fg='red')}")


def _when(ctx: CommandContext, anchor: DatedAnchor) -> str:
    return clock(anchor.at, utc=ctx.utc, long=True)
