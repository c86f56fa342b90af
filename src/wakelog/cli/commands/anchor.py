"""`wakelog anchor` and `anchor-key`: export heads for later tamper checks.

Without a key, an anchor is the head of one session; with a key it is signed. With `--to`, the heads of all sessions are
added to a log of anchors, and one receipt covers them all.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import force_option, session_argument
from wakelog.cli.output import writing
from wakelog.cli.text import inert_line
from wakelog.config.amounts import parse_interval
from wakelog.errors import WakelogError
from wakelog.evidence.anchor_log import AnchorLog, AnchorRound
from wakelog.evidence.key_source import read_key, write_key
from wakelog.evidence.signed_note import PrivateKey
from wakelog.model.short_text import pluralize


@click.command("anchor")
@session_argument
@click.option("--key", default="", metavar="SOURCE", help="Sign with this key: a file, env:NAME or command:CMD.")
@click.option("--to", "place", default="", metavar="PLACE", help="Add all heads to this log: a folder, or s3://…")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Write the anchor, or with --to the receipt, to this file."
)
@click.option("--git", default="", metavar="FOLDER", help="With --to: keep the receipt as a git note here.")
@click.option("--every", default="", metavar="TIME", help="With --to: keep running, and anchor every 30s, 5m, 1h …")
@force_option
@common
def anchor_command(
    ctx: CommandContext, session: str, key: str, place: str, out: Path | None, git: str, every: str, force: bool
) -> None:
    """Export the head hash of a session for later tamper checks. Keep it where people who can write to the store cannot
    change it. `wakelog verify --against FILE` then proves that nothing was rewritten or cut off.

    With --key the anchor is signed. With --to as well, the new heads of all sessions, or of the one that is named, are
    added to a log of anchors, and one small signed receipt covers everything in it.

    Examples:
      wakelog anchor fix-bug --out anchor.json
      wakelog anchor fix-bug --key anchor.key --out fix-bug.anchor
      wakelog anchor --key anchor.key --to s3://audit/anchors --every 10m
    """
    for name, value in (("--to", place), ("--git", git), ("--every", every)):
        if value and not key:
            raise click.UsageError(f"{name} needs a key that signs: --key (wakelog anchor-key makes one)")
        if value and not place:
            raise click.UsageError(f"{name} needs a log of anchors: --to PLACE")
    every_s = parse_interval(every) if every else 0.0
    if place:
        _anchor_to_log(ctx, read_key(key), place, session, out, git, every_s, force)
    else:
        _anchor_session(ctx, session, read_key(key) if key else None, out, force)


def _anchor_session(ctx: CommandContext, session: str, key: PrivateKey | None, out: Path | None, force: bool) -> None:
    found = ctx.session(session)
    anchor = found.anchor()
    text = ctx.store.anchors.sign(found, key) if key else msgspec.json.encode(anchor).decode() + "\n"
    if out is not None:
        with writing(out, force=force) as file:
            file.write(text.encode())
    data = {**msgspec.to_builtins(anchor), "name": found.name, "file": str(out) if out else None}
    if key:
        data |= {"signer": str(key.public), "signed": text}
    line = f"Anchored e{anchor.seq} of {found.name or found.id} in {out}" if out else text.removesuffix("\n")
    ctx.answer("anchor", data, line)
    if out is not None:
        signer = f" --signer {key.public}" if key else ""
        ctx.suggest(f"keep {out} elsewhere", f"wakelog verify --against {out}{signer}")


def _anchor_to_log(
    ctx: CommandContext,
    key: PrivateKey,
    place: str,
    session: str,
    out: Path | None,
    git: str,
    every_s: float,
    force: bool,
) -> None:
    log = ctx.store.anchors.log(place, [key.public], create=True)
    session_ids = [ctx.session(session).id] if session or ctx.names_session else []
    if not every_s:
        done = ctx.store.anchors.add(log, key, session_ids)
        _keep_receipt(ctx, log, out, git, force=force)
        ctx.answer("anchored", _data(log, done, key), _summary(log, done))
        ctx.suggest("keep a receipt elsewhere with --out or --git", f"wakelog verify --all --against {place}")
        return
    if session_ids:
        raise click.UsageError("--every anchors all sessions: leave the name out")
    with contextlib.suppress(KeyboardInterrupt):
        for result in ctx.store.anchors.follow(log, key, every_s, threading.Event().wait):
            if isinstance(result, WakelogError):
                ctx.warn(inert_line(result.message))
                continue
            _keep_receipt(ctx, log, out, git, force=True)
            ctx.answer("anchored", _data(log, result, key), _summary(log, result))
            ctx.flush()


def _keep_receipt(ctx: CommandContext, log: AnchorLog, out: Path | None, git: str, *, force: bool) -> None:
    if not log.rounds:
        return
    note = log.rounds[-1].note
    if out is not None:
        with writing(out, force=force) as file:
            file.write(note.encode())
    if git:
        ctx.store.anchors.keep_in_git(note, git)


def _data(log: AnchorLog, done: AnchorRound | None, key: PrivateKey) -> dict[str, object]:
    newest = log.rounds[-1] if log.rounds else None
    return {
        "place": log.place,
        "round": newest.number if newest else 0,
        "size": newest.size if newest else 0,
        "heads": msgspec.to_builtins(done.heads) if done else [],
        "receipt": newest.note if newest else "",
        "signer": str(key.public),
    }


def _summary(log: AnchorLog, done: AnchorRound | None) -> str:
    if done is None:
        return f"Nothing new: {log.place} has every head" if log.rounds else "There is nothing to anchor yet"
    return f"Anchored {pluralize(len(done.heads), 'head')} in round {done.number} of {log.place} ({done.size} in all)"


@click.command("anchor-key")
@click.argument("name", required=False, default="")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write the private key to this file.")
@click.option("--of", "source", default="", metavar="SOURCE", help="Print the public half of this key instead.")
@common
def anchor_key_command(ctx: CommandContext, name: str, out: Path | None, source: str) -> None:
    """Make a key that signs anchors, and print its public half. Give that to those who will verify. Keep the private
    half away from the store: anybody who has both can fake a history and sign it.

    The name says who signs: a host, a team, a service. Use one key for one log of anchors.

    Examples:
      wakelog anchor-key ci.example --out anchor.key
      wakelog anchor-key --of env:ANCHOR_KEY
    """
    if bool(name) == bool(source):
        raise click.UsageError("give a NAME and --out to make a key, or --of to look at one")
    if source:
        public = read_key(source).public
    elif out is None:
        raise click.UsageError("say where to keep the private key: --out FILE")
    else:
        key = PrivateKey.new(name)
        write_key(key, out)
        public = key.public
    data = {"name": public.name, "public": str(public), "file": str(out) if out else None}
    ctx.answer("anchor-key", data, str(public))
    if out is not None:
        ctx.suggest(f"wakelog anchor --key {out} --to FOLDER", "give the line above to those who verify")
