"""`wakelog doctor`: checks this installation and store. Each line is ok, warn or fail, with what to do."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click
import msgspec

import wakelog
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.errors import NO
from wakelog.cli.text import age, inert_line, name_some, size
from wakelog.config import settings as config
from wakelog.errors import NotFoundError, WakelogError
from wakelog.hooks.agents import AGENTS, project_root
from wakelog.hooks.health import CaptureHealth, capture_health, other_transcripts
from wakelog.hooks.spool import gaps_file
from wakelog.hooks.spool_files import read_gaps, waiting_bytes
from wakelog.maintenance.byte_sizes import INDEX_FILE, file_bytes, index_fault
from wakelog.maintenance.check import StoreCheck, encryption_check, version_check
from wakelog.model.records import Head
from wakelog.model.short_text import pluralize
from wakelog.native import IN_USE
from wakelog.store import Store
from wakelog.store.url import chosen_url, user_store

_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}
LOW_DISK, NO_DISK = 1_000_000_000, 100_000_000
BIG_WAL = 128_000_000
BIG_SPOOL = 64 << 20
CLOCK_TOLERANCE_US = 60_000_000
VERIFIED_EVENTS = 5_000
"""How many of the newest events are checked against their hashes: enough to notice a bad disk, and fast."""


def say_checks(ctx: CommandContext, checks: Sequence[StoreCheck]) -> None:
    for check in checks:
        level = ctx.style(f"{check.level:<5}", fg=_COLORS[check.level], bold=check.level == "fail")
        ctx.say(f"{level} {check.what:<13}{inert_line(check.found)}")
        if check.fix:
            title = "next:" if check.level == "ok" else "fix:"  # what is in order needs no fix
            ctx.say(f"      {'':<13}{ctx.style(title, dim=True)} {inert_line(check.fix)}")


def installation() -> Iterator[StoreCheck]:
    """Checks versions and settings."""
    yield StoreCheck("wakelog", "ok", wakelog.__version__)
    yield StoreCheck("python", "ok", ".".join(map(str, sys.version_info[:3])))
    import apsw

    yield StoreCheck("core", "ok", IN_USE)
    yield StoreCheck("sqlite", "ok", f"{apsw.sqlite_lib_version()} through apsw {apsw.apsw_version()}")
    try:
        results = config.load()
        files = sorted({f.where for f in results.values() if f.origin in ("project", "user")})
        yield StoreCheck("settings", "ok", ", ".join(files) or "defaults only")
    except WakelogError as exc:
        yield StoreCheck("settings", "fail", exc.message, exc.hint)


def store_checks(ctx: CommandContext) -> Iterator[StoreCheck]:
    """Checks the store from the outside in, as far as it can be opened."""
    try:
        store = ctx.store
    except NotFoundError as exc:
        if ctx.given_url or chosen_url():
            yield StoreCheck("store", "warn", exc.message, "recording a session there makes it")
            yield from _check_folder(Path(ctx.url))
        else:
            found = f"none yet; hooks and imports write to your own, {user_store()}"
            yield StoreCheck("store", "warn", found, "wakelog import makes it; wakelog demo makes one to look at")
            yield from _check_folder(Path(user_store()))
        return
    except WakelogError as exc:
        yield StoreCheck("store", "fail", exc.message, exc.hint)
        return
    yield StoreCheck("store", "ok", f"{hide_password(ctx.url)}, {store.engine.durability}")
    yield from version_check(store)
    yield from encryption_check(store)
    file = store.engine.abilities.path
    if file is not None:
        yield from _check_folder(file)
        yield from _check_files(file, store.encryption.state is not None)
    yield from _check_sessions(store)


def _check_folder(path: Path) -> Iterator[StoreCheck]:
    """Checks the folder that a store is in, or would be created in."""
    folder = path if os.path.isdir(path) else path.parent
    while not os.path.exists(folder):
        folder = folder.parent
    if os.access(folder, os.W_OK) and (not os.path.isfile(path) or os.access(path, os.W_OK)):
        yield StoreCheck("writable", "ok", str(folder))
    else:
        yield StoreCheck("writable", "fail", f"{path} cannot be written by you", f"chown or chmod {folder}")
    from wakelog.engines.sqlite.inspection import file_system

    kind, is_network = file_system(folder)
    if is_network:
        yield StoreCheck(
            "file system", "fail", f"{kind}, over the network: its locks cannot be trusted", "use a local disk"
        )
    else:
        yield StoreCheck("file system", "ok", kind or "unknown to this system")
    free = shutil.disk_usage(folder).free
    level: Literal["ok", "warn", "fail"] = "fail" if free < NO_DISK else "warn" if free < LOW_DISK else "ok"
    yield StoreCheck("disk", level, f"{size(free)} free", "free some space" if level != "ok" else "")


def _check_files(file: Path, is_encrypted: bool) -> Iterator[StoreCheck]:
    open_to = [p for p in (file.parent, file) if os.name == "posix" and stat.S_IMODE(p.stat().st_mode) & 0o077]
    mode = stat.S_IMODE(file.parent.stat().st_mode)
    if not open_to:
        yield StoreCheck("permissions", "ok", "only you can read it")
    elif mode & 0o077 == 0:
        yield StoreCheck("permissions", "ok", "only you can enter its folder")
    else:
        yield StoreCheck(
            "permissions", "warn", f"others can enter {file.parent} ({mode:o})", f"chmod 700 {file.parent}"
        )
    sizes = file_bytes(file)
    if sizes["wal"] > BIG_WAL:
        found = f"the write-ahead log has {size(sizes['wal'])}: a reader may be holding it open"
        yield StoreCheck("log", "warn", found, "end long-running readers; then it shrinks")
    else:
        yield StoreCheck("log", "ok", f"{size(sizes['log'])}, write-ahead log {size(sizes['wal'])}")
    if not is_encrypted:
        yield _check_index(file.with_name(INDEX_FILE))


def _check_index(path: Path) -> StoreCheck:
    if not path.exists():
        return StoreCheck("index", "ok", "none yet; the first search makes it")
    fault = index_fault(path)
    if not fault:
        return StoreCheck("index", "ok", size(path.stat().st_size))
    return StoreCheck("index", "warn", f"damaged: {fault}", f"rm {path}; it is a cache and is rebuilt")


def _check_sessions(store: Store) -> Iterator[StoreCheck]:
    now = time.time_ns() // 1000
    heads: list[Head] = []
    stale: list[str] = []
    for session, problem in store.session_ids():
        if problem is not None:
            yield StoreCheck("session", "fail", f"{session}: {problem.message}", f"wakelog verify {session}")
            continue
        head = store.engine.head(session)
        heads.append(head)
        if not head.epoch:
            continue
        try:
            log = store.resume(head.session).log
            holder = log.state()["lease"]["holder"]
            if holder and not log.lease_holder():
                stale.append(f"{head} ({holder}, {age(head.at, now)})")
        except WakelogError as exc:
            yield StoreCheck("session", "fail", exc.message, f"wakelog verify {head}")
    if stale:
        found = f"{len(stale)} held by writers that stopped answering: {name_some(stale, 3)}"
        yield StoreCheck(
            "leases", "warn", found, "wakelog resume NAME shows what is pending; the next writer takes over"
        )
    else:
        yield StoreCheck("leases", "ok", "none is stale")
    ahead = [h for h in heads if h.at > now + CLOCK_TOLERANCE_US]
    if ahead:
        names = ", ".join(str(h) for h in ahead[:3])
        yield StoreCheck(
            "clock", "warn", f"{len(ahead)} sessions end in the future: {names}", "check this machine's clock"
        )
    else:
        yield StoreCheck("clock", "ok", "no session ends in the future")
    yield from _check_integrity(store, heads)


def _check_integrity(store: Store, heads: list[Head]) -> Iterator[StoreCheck]:
    """Verifies the newest sessions, up to VERIFIED_EVENTS; at least one, of any length."""
    sessions = events = 0
    is_sound = True
    for head in sorted(heads, key=lambda head: head.at, reverse=True):
        if sessions and events + head.seq > VERIFIED_EVENTS:
            break
        try:
            report = store.resume(head.session).verify()
            fault = next(iter((*report.integrity, *report.completeness)), None)
            problem = f"{head}: first fault at e{fault.seq}: {fault.what}" if fault else ""
        except WakelogError as exc:
            problem = f"{head}: {exc.message}"
        if problem:
            is_sound = False
            yield StoreCheck("integrity", "fail", problem, f"wakelog verify {head.session}")
        sessions, events = sessions + 1, events + head.seq
    if is_sound:
        rest = "" if sessions == len(heads) else f", the newest of {len(heads):,}"
        fix = "" if sessions == len(heads) else "wakelog verify --all checks the others"
        found = f"{pluralize(events, 'event')} of {pluralize(sessions, 'session')}{rest}"
        yield StoreCheck("integrity", "ok", found, fix)


@click.command("doctor")
@common
def doctor_command(ctx: CommandContext) -> int:
    """Check this installation and store: versions, settings, file, folder, disk, leases and the index; and whether the
    coding agents on this machine are recorded. Nothing is changed. The exit code is 1 when a check fails.

    Example:
      wakelog doctor
    """
    checks = [*installation(), *store_checks(ctx), *capture_checks()]
    ctx.answer("doctor", msgspec.to_builtins(checks), lambda: _show(ctx, checks))
    return NO if any(check.level == "fail" for check in checks) else 0


def _show(ctx: CommandContext, checks: list[StoreCheck]) -> None:
    say_checks(ctx, checks)
    failures = sum(c.level == "fail" for c in checks)
    warnings = sum(c.level == "warn" for c in checks)
    if failures or warnings:
        ctx.say(f"{pluralize(failures, 'problem')}, {pluralize(warnings, 'warning')}")
    else:
        ctx.say("Everything is in order.")


def capture_checks() -> Iterator[StoreCheck]:
    """Checks each agent that is enabled or was used here, and what hooks recorded that is not in a store."""
    try:
        checks = list(capture_health(project_root()))
    except WakelogError as exc:
        yield StoreCheck("hooks", "fail", exc.message, exc.hint)
        return
    now = time.time_ns() // 1000
    for agent in checks:
        yield _check_agent(agent, now)
    if others := other_transcripts():
        words = " · ".join(f"{title} {count:,}" for title, count in others)
        yield StoreCheck("transcripts", "ok", f"of other programs on this machine: {words}", "wakelog import")
    waiting = waiting_bytes()
    if waiting > BIG_SPOOL:
        yield StoreCheck("spool", "warn", f"{size(waiting)} wait to be imported", "wakelog hook --drain says why")
    elif waiting or any(agent.is_enabled for agent in checks):
        yield StoreCheck("spool", "ok", f"{size(waiting)} wait to be imported" if waiting else "empty")
    gaps = read_gaps()
    if gaps.count:
        last = f", the last {age(gaps.newest[0][0], now)}: {gaps.newest[0][2]}" if gaps.newest else ""
        lost = f"{pluralize(gaps.count, 'record')} of hooks {'was' if gaps.count == 1 else 'were'} lost{last}"
        yield StoreCheck("gaps", "warn", lost, f"when you have seen to it: rm {gaps_file()}")


def _check_agent(health: CaptureHealth, now: int) -> StoreCheck:
    agent = AGENTS[health.agent]
    files = f"{pluralize(health.transcripts, 'transcript')} on this machine"
    if health.trouble:
        return StoreCheck(health.agent, "warn", health.trouble, "correct the file")
    if not health.is_enabled:
        return StoreCheck(health.agent, "ok", f"not recorded by hooks; {files}", f"wakelog enable {health.agent}")
    where = f"hooks in {', '.join(health.files)}"
    if health.switched_off:
        problem = f"{where}, but {health.switched_off} switches all hooks off"
        return StoreCheck(health.agent, "warn", problem, "switch them on there")
    if health.bad_command:
        problem = f"{where}, but {health.bad_command} is not there"
        return StoreCheck(health.agent, "fail", problem, f"wakelog enable {health.agent}")
    if health.missing:
        problem = f"{where}, without {', '.join(health.missing)}"
        return StoreCheck(health.agent, "warn", problem, f"wakelog enable {health.agent}")
    if not health.last_heard_us:
        fix = agent.after or f"start a session; if this stays, see whether hooks are switched off in {agent.title}"
        return StoreCheck(health.agent, "warn", f"{where}, never heard from; {files}", fix)
    return StoreCheck(health.agent, "ok", f"{where}, last heard {age(health.last_heard_us, now)}; {files}")
