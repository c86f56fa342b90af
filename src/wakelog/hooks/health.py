"""Whether recording works: what `doctor` reports about each agent.

An agent may ignore hooks in its settings. So what counts is when a hook last ran.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from wakelog.hooks import hook_entries
from wakelog.hooks.agents import AGENTS, HookedAgent, is_ours
from wakelog.hooks.installation import receipts
from wakelog.hooks.json_text import BadJsonError, parse
from wakelog.hooks.spool_files import last_seen_us
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import get_format
from wakelog.importers.source.files import own_home


class CaptureHealth(msgspec.Struct, frozen=True):
    """The state of recording for one agent."""

    agent: str
    files: tuple[str, ...] = ()
    """The settings files that have our hooks."""
    missing: tuple[str, ...] = ()
    """Events that this version records, but the installed hooks do not."""
    last_heard_us: int = 0
    transcripts: int = 0
    bad_command: str = ""
    """A program that the hooks name, but that does not exist."""
    switched_off: str = ""
    """A file that disables all hooks."""
    trouble: str = ""

    @property
    def is_enabled(self) -> bool:
        return bool(self.files)


def capture_health(project: Path) -> Iterator[CaptureHealth]:
    """Each agent that is enabled or was used on this machine."""
    for agent in AGENTS.values():
        found = _health(agent, project)
        if found.is_enabled or found.transcripts or found.last_heard_us or found.trouble:
            yield found


def other_transcripts() -> list[tuple[str, int]]:
    """Programs that have no hooks of ours, and how many transcripts each has on this machine, the most first."""
    hooked = {agent.format for agent in AGENTS.values()}
    return Counter(get_format(f.format).TITLE for f in find_transcripts() if f.format not in hooked).most_common()


def _health(agent: HookedAgent, project: Path) -> CaptureHealth:
    places = [agent.settings(scope, project) for scope in agent.scopes]
    places += [Path(each.file) for each in receipts() if each.agent == agent.name and "hooks" in each.what]
    files: list[str] = []
    events: set[str] = set()
    bad = off = trouble = ""
    for file in dict.fromkeys(places):
        try:
            text = file.read_bytes().decode()
            events_here = hook_entries.registered_events(text, agent)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError, BadJsonError) as exc:
            trouble = f"{file} cannot be read: {exc}"
            continue
        settings = parse(text, comments=agent.has_comments).value if text.strip() else {}
        if isinstance(settings, dict) and agent.is_off(settings):
            off = str(file)
        if events_here:
            files.append(str(file))
            events |= {*events_here}
            bad = bad or _missing_program(text, agent)
    return CaptureHealth(
        agent.name,
        tuple(files),
        tuple(event for event in agent.events if event not in events) if files else (),
        last_seen_us(agent.name),
        sum(1 for _ in get_format(agent.format).find_in_home(own_home())),
        bad,
        off,
        trouble,
    )


def _missing_program(text: str, agent: HookedAgent) -> str:
    """The program of one of our commands that cannot be found. Empty if all can."""
    for command in hook_entries.commands(text, agent):
        try:
            program = shlex.split(command)[0]
        except (ValueError, IndexError):
            program = command
        if is_ours(command) and shutil.which(os.path.expanduser(program)) is None:
            return program
    return ""
