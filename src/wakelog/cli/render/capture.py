"""How `doctor` tells whether coding agents are recorded: one check an agent, one for the spool, one for gaps."""

from __future__ import annotations

import time
from collections.abc import Iterator

from wakelog.cli.text import age, count, size
from wakelog.errors import WakelogError
from wakelog.hooks.agents import AGENTS, project_root
from wakelog.hooks.health import CaptureHealth, capture_health
from wakelog.hooks.spool import gaps_file
from wakelog.hooks.spool_files import read_gaps, waiting_bytes
from wakelog.maintenance.check import StoreCheck

BIG_SPOOL = 64 << 20


def capture_checks() -> Iterator[StoreCheck]:
    """Each agent that is enabled or was used here, and what hooks wrote that is not in a store."""
    try:
        found = list(capture_health(project_root()))
    except WakelogError as exc:
        yield StoreCheck("hooks", "fail", exc.message, exc.hint)
        return
    now = time.time_ns() // 1000
    for each in found:
        yield _agent(each, now)
    waiting = waiting_bytes()
    if waiting > BIG_SPOOL:
        yield StoreCheck("spool", "warn", f"{size(waiting)} wait to be imported", "wakelog hook --drain says why")
    elif waiting or any(each.is_enabled for each in found):
        yield StoreCheck("spool", "ok", f"{size(waiting)} wait to be imported" if waiting else "empty")
    gaps = read_gaps()
    if gaps.count:
        last = f", the last {age(gaps.newest[0][0], now)}: {gaps.newest[0][2]}" if gaps.newest else ""
        said = f"{gaps.count} records of hooks were lost{last}"
        yield StoreCheck("gaps", "warn", said, f"when you have seen to it: rm {gaps_file()}")


def _agent(found: CaptureHealth, now: int) -> StoreCheck:
    agent = AGENTS[found.agent]
    files = f"{count(found.transcripts)} transcripts on this machine"
    if found.trouble:
        return StoreCheck(found.agent, "warn", found.trouble, "correct the file")
    if not found.is_enabled:
        return StoreCheck(found.agent, "ok", f"not recorded by hooks; {files}", f"wakelog enable {found.agent}")
    where = f"hooks in {', '.join(found.files)}"
    if found.switched_off:
        said = f"{where}, but {found.switched_off} switches all hooks off"
        return StoreCheck(found.agent, "warn", said, "switch them on there")
    if found.bad_command:
        said = f"{where}, but {found.bad_command} is not there"
        return StoreCheck(found.agent, "fail", said, f"wakelog enable {found.agent}")
    if found.missing:
        said = f"{where}, without {', '.join(found.missing)}"
        return StoreCheck(found.agent, "warn", said, f"wakelog enable {found.agent}")
    if not found.last_heard_us:
        fix = agent.after or f"start a session; if this stays, see whether hooks are switched off in {agent.title}"
        return StoreCheck(found.agent, "warn", f"{where}, never heard from; {files}", fix)
    return StoreCheck(found.agent, "ok", f"{where}, last heard {age(found.last_heard_us, now)}; {files}")
