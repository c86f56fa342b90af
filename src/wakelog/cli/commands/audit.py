"""`wakelog audit`: a report with evidence about a session or a case, for people who were not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.commands.verify import kept_notes
from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.options import force_option
from wakelog.cli.output import STDOUT, writing_to
from wakelog.cli.render.results import plain
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import inert_json
from wakelog.evidence.key_source import read_public_key
from wakelog.exporters.audit_page import audit_html, audit_markdown
from wakelog.maintenance.audit_report import AuditCase, AuditReport, audit_report, read_case, write_bundles
from wakelog.model.short_text import pluralize


@click.command("audit")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=complete_session)
@click.option("--case", type=click.Path(path_type=Path), help="Audit the sessions that this TOML file names.")
@click.option(
    "--report", "form", type=click.Choice(["html", "md", "json"]), default="md", help="Write this format (default: md)."
)
@click.option("-o", "--out", default="", metavar="FILE", help="Write the report to this file.")
@force_option
@click.option(
    "--bundle", type=click.Path(path_type=Path), help="Write the sessions, and the report, to this new folder."
)
@click.option("--against", default="", metavar="LOG", help="Check the sessions against this log of anchors.")
@click.option("--signer", "signers", multiple=True, metavar="KEY", help="Accept this signer: key or file (repeat).")
@click.option("--kept", multiple=True, metavar="FILE", help="Use this kept receipt: file or git:FOLDER (repeat).")
@common
def audit_command(
    ctx: CommandContext,
    sessions: tuple[str, ...],
    case: Path | None,
    form: str,
    out: str,
    force: bool,
    bundle: Path | None,
    against: str,
    signers: tuple[str, ...],
    kept: tuple[str, ...],
) -> int:
    """Write a report about a session, or about the sessions of a case: what happened, who approved it, which effects
    depend on untrusted input, what was removed by whom and why, whether the record is intact, and what it does not
    prove.

    The exit code is 4 when a check fails. --bundle also writes each session as a file that can be verified without
    wakelog. A case is a TOML file with sessions = [...], and title, question and by.

    Examples:
      wakelog audit fix-bug --report html -o evidence.html
      wakelog audit --case incident-42.toml --bundle evidence
    """
    if (case is not None) == bool(sessions):
        raise click.UsageError("name sessions, or a --case file")
    if bool(against) != bool(signers) or (kept and not against):
        raise click.UsageError("--against LOG, --signer KEY and --kept FILE go together")
    ctx.even_damaged = True
    if case is None:
        asked = AuditCase(tuple(ctx.session(name).id for name in sessions), title=f"Audit of {', '.join(sessions)}")
    else:
        asked = read_case(case)
    notes = [note for source in kept for note in kept_notes(ctx, source)]
    log = ctx.store.anchors.log(against, [read_public_key(signer) for signer in signers]) if against else None
    report = audit_report(ctx.store, asked, log=log, kept=notes)
    if bundle is not None:
        report = write_bundles(ctx.store, report, bundle)
        _write(report, form, str(bundle / f"report.{form}"), force=False)
    if out or (bundle is None and ctx.is_for_people):
        _write(report, form, out or STDOUT, force=force)
    wrote = [f"Wrote {out or bundle}: {_verdict(report)}"] if out or bundle is not None else []
    ctx.answer("audit", _data(report), wrote)
    return 0 if report.ok else INTEGRITY


def _verdict(report: AuditReport) -> str:
    about = pluralize(len(report.sessions), "session")
    return f"{about}, every check that could be made holds" if report.ok else f"{about}, a check failed"


def _data(report: AuditReport) -> Any:
    return {**plain(report), "ok": report.ok}


def _write(report: AuditReport, form: str, target: str, *, force: bool) -> None:
    with writing_to(target, force=force) as file:
        if form == "json":
            text = msgspec.json.format(msgspec.json.encode(_data(report)), indent=2).decode()
            file.write(inert_json(text).encode() + b"\n")
        else:
            for piece in audit_html(report) if form == "html" else audit_markdown(report):
                file.write(piece.encode())
