"""`wakelog store`: what is in this store, where it is, and whether it is sound."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.progress import Progress
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.text import clock, inert, iso, size
from wakelog.errors import WakelogError
from wakelog.log.verify import VerifyReport
from wakelog.store import Store, config
from wakelog.store import open as open_store
from wakelog.store.info import StoreInfo, info
from wakelog.store.measures import file_of

INTEGRITY, PARTIAL = 4, 7
KINDS_SHOWN = 8
_DURABILITY = {
    "synced": "synced: an answered append survives a power cut",
    "written": "written: an answered append survives kill -9, not a power cut",
    "memory": "memory: gone with the process",
}


@click.group("store")
def store_command() -> None:
    """The store as a whole.

    \b
    Examples:
      wakelog store info
      wakelog store check
      wakelog store backup /mnt/backup/wakelog.db
      du -sh "$(wakelog store path)"
    """


@store_command.command("path")
@common
def path(ctx: Context) -> None:
    """Prints where the store is, whether or not there is one yet.

    \b
    Example:
      wakelog store path
    """
    ctx.answer("store-path", {"path": ctx.url}, lambda: ctx.say(ctx.url))


@store_command.command("info")
@click.option("--full", is_flag=True, help="Count bytes by kind over every event, also in a big store.")
@common
def store_info(ctx: Context, full: bool) -> None:
    """Sessions, events, bytes on disk and by kind of event, durability, and what will be kept.

    \b
    Example:
      wakelog store info --json
    """
    policy = config.policy(config.load())
    with Progress(ctx, "counted events") as progress:
        found = info(ctx.store, policy, full=full, progress=progress)
    data = msgspec.to_builtins(found)
    for name in ("oldest", "newest"):
        data[name] = iso(data[name]) if data[name] is not None else None
    ctx.answer("store-info", data, lambda: _show(ctx, found))


@store_command.command("check")
@common
def check(ctx: Context) -> int:
    """Verifies every session, and on SQLite the file itself. Exit code 4 when something does not hold.

    \b
    Example:
      wakelog store check
    """
    heads = list(ctx.store.sessions())
    faults: list[dict[str, Any]] = []
    file = file_of(ctx.store.engine)
    file_faults = _file_faults(ctx)
    with Progress(ctx, "verified events", sum(h.seq for h in heads)) as progress:
        for head in heads:
            faults += _session_faults(ctx, head.session)
            progress(head.seq)
    data = {
        "path": str(file) if file else None,
        "sessions": len(heads),
        "events": sum(h.seq - (h.fork.at if h.fork else 0) for h in heads),
        "file": file_faults,
        "faults": faults,
        "ok": not faults and not file_faults,
    }
    ctx.answer("store-check", data, lambda: _show_check(ctx, data))
    return 0 if data["ok"] else INTEGRITY


@store_command.command("copy")
@click.argument("target", metavar="STORE")
@click.option("-s", "--only", "only", multiple=True, metavar="SESSION", help="Only this session, with its ancestors.")
@click.option("--no-verify", is_flag=True, help="Do not verify what was copied.")
@common
def copy(ctx: Context, target: str, only: tuple[str, ...], no_verify: bool) -> int:
    """Copies all sessions to another store, of any engine, and verifies them there. Every hash is kept.

    It can be repeated: what is there is brought up to date. A session that has gone its own way there is left
    alone and told (exit code 7).

    \b
    Examples:
      wakelog store copy postgresql://wakelog@db.example/wakelog
      wakelog --store postgresql://wakelog@db.example/wakelog store copy ~/laptop
    """
    here = ctx.store  # first: if there is nothing to copy, nothing is made
    with open_store(target) as there:
        return _copy(ctx, here, there, target, only, not no_verify)


@store_command.command("backup")
@click.argument("file", metavar="FILE.db", type=click.Path(dir_okay=False))
@common
def backup(ctx: Context, file: str) -> int:
    """Copies this store, while it is in use, into a file that is a store itself. Repeated, it adds what is new.

    \b
    Examples:
      wakelog store backup /mnt/backup/wakelog.db
      wakelog --store /mnt/backup/wakelog.db ls
    """
    here = ctx.store
    with open_store(file) as there:
        return _copy(ctx, here, there, file, (), True)


@store_command.command("restore")
@click.argument("file", metavar="FILE.db", type=click.Path(exists=True))
@common
def restore(ctx: Context, file: str) -> int:
    """Brings back from a backup what this store lacks. What is here and newer stays as it is.

    \b
    Example:
      wakelog store restore /mnt/backup/wakelog.db
    """
    with open_store(file, create=False) as there:
        return _copy(ctx, there, ctx.new_store(), ctx.url, (), True)


def _copy(ctx: Context, source: Store, target: Store, where: str, only: tuple[str, ...], verify: bool) -> int:
    from wakelog.store.copying import copy_sessions

    chosen = [source.find(name) for name in only] or None
    with Progress(ctx, "copied events") as progress:
        done = copy_sessions(source.engine, target.engine, chosen, progress=progress)
    bad = []
    heads = list(target.sessions()) if verify else []
    with Progress(ctx, "verified events", sum(h.seq for h in heads)) as progress:
        for head in heads:
            bad += [] if target.resume(head.session).verify().ok else [head.session]
            progress(head.seq)
    data = {**msgspec.to_builtins(done), "target": where, "verified": verify, "damaged": bad}

    def human() -> None:
        there = f"{done.unchanged} were there already" if done.unchanged else "nothing was there before"
        ctx.say(f"{done.sessions} sessions, {done.events:,} events → {inert(where, lines=False)}  ({there})")
        for session in done.diverged:
            name = inert(source.engine.head(session).name or session, lines=False)
            ctx.say(f"{ctx.style('✗', fg='yellow')} {name} has gone its own way there, and was left alone")
        for session in bad:
            ctx.say(f"{ctx.style('✗', fg='red', bold=True)} {session} does not verify there")
        if verify and not bad:
            ctx.say(f"{ctx.style('✔', fg='green')} {len(heads)} sessions verify there")

    ctx.answer("store-copy", data, human)
    return INTEGRITY if bad else PARTIAL if done.diverged else 0


def _file_faults(ctx: Context) -> list[str]:
    file = file_of(ctx.store.engine)
    if file is None:
        return []
    from wakelog.engines.sqlite.measuring import integrity_faults

    try:
        return integrity_faults(file)
    except WakelogError as exc:
        return [exc.message]


def _session_faults(ctx: Context, session: Any) -> list[dict[str, Any]]:
    try:
        report: VerifyReport = ctx.store.resume(session).verify()
    except WakelogError as exc:
        return [{"session": session, "name": ctx.name_of(session), "seq": 0, "what": exc.message}]
    name = ctx.name_of(session)
    found = (*report.integrity, *report.completeness)
    return [{"session": session, "name": name, "seq": f.seq, "what": f.what} for f in found]


def _show_check(ctx: Context, data: dict[str, Any]) -> None:
    good, bad = ctx.style("✔", fg="green"), ctx.style("✗", fg="red", bold=True)
    if data["path"]:
        word = (
            "the file is sound" if not data["file"] else f"the file is damaged: {inert(data['file'][0], lines=False)}"
        )
        ctx.say(f"{bad if data['file'] else good} {word}  {data['path']}")
    broken = len({f["session"] for f in data["faults"]})
    ctx.say(f"{good} {data['sessions'] - broken} sessions verify, {data['events']:,} events in all")
    for fault in data["faults"]:
        name, what = inert(fault["name"], lines=False), inert(fault["what"], lines=False)
        ctx.say(f"{bad} {name}  e{fault['seq']}: {what}")
    if data["ok"]:
        ctx.say("  without anchors kept elsewhere, a cut-off end would not be seen (wakelog anchor)")


def _show(ctx: Context, found: StoreInfo) -> None:
    def row(title: str, text: str) -> None:
        ctx.say(f"{ctx.style(f'{title:<12}', dim=True)}{text}")

    row("store", found.path or "in memory")
    row("engine", f"{found.engine}, {_DURABILITY.get(found.durability, found.durability)}")
    statuses = ", ".join(f"{count} {status}" for status, count in found.by_status.items())
    forks = f"; {found.forks} {'fork' if found.forks == 1 else 'forks'} among them" if found.forks else ""
    row("sessions", f"{found.sessions}  ({statuses}{forks})" if found.sessions else "none yet")
    row("events", f"{found.events:,}")
    if found.files:
        names = {"log": "log", "wal": "write-ahead log", "index": "index", "index_wal": "index's write-ahead log"}
        parts = [f"{names[name]} {size(count)}" for name, count in found.files.items() if count]
        row("on disk", f"{size(sum(found.files.values()))}  ({', '.join(parts)})")
    if found.oldest is not None and found.newest is not None:
        row("from", clock(found.oldest, utc=ctx.utc, long=True))
        row("to", clock(found.newest, utc=ctx.utc, long=True))
    row("retention", found.retention)
    row(
        "secrets",
        "are taken out before storing"
        if found.redacts
        else ctx.style("are stored (redact.enabled is false)", fg="yellow"),
    )
    if found.held:
        row("held", f"{found.held} {'session' if found.held == 1 else 'sessions'} (wakelog hold ls)")
    if found.unreadable:
        row("damaged", ctx.style(f"{found.unreadable} (wakelog store check)", fg="red"))
    if found.by_kind:
        ctx.say("")
        estimate = ", estimated (--full counts)" if found.is_sampled else ""
        ctx.say(ctx.style(f"bytes by kind, before compression{estimate}", dim=True))
        rows = [(k.kind, f"{k.events:,}", size(k.bytes)) for k in found.by_kind[:KINDS_SHOWN]]
        rest = found.by_kind[KINDS_SHOWN:]
        if rest:
            others = f"{len(rest)} other kinds"
            rows.append((others, f"{sum(k.events for k in rest):,}", size(sum(k.bytes for k in rest))))
        columns = [Column("kind", 12), Column("events", right=True), Column("bytes", right=True)]
        say_table(ctx, columns, rows, titles=False)
