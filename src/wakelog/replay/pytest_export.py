"""Exports a recording as a test: a small file for pytest, and beside it the bundle that it replays.

The bundle has the session up to the end of the recording, as it is in the log: redacted values stay redacted. The test
needs wakelog and the agent, but no store and no network."""

from __future__ import annotations

import re

from wakelog.log import Log
from wakelog.log.reader import read_commits
from wakelog.model.events import REMOVAL_KINDS
from wakelog.replay.recording import RecordedTurn, Recording
from wakelog.replay.scratch import scratch_log

PLACEHOLDER = "module:function"
_SHOWN = 40


def cut_log(recording: Recording) -> Log:
    """The session up to the end of a recording. If something was erased or pruned later, the whole session: only later
    events say so."""
    log = recording.log
    later = read_commits(log.engine, log.segments, after=recording.last)
    if any(not REMOVAL_KINDS.isdisjoint(commit.kinds) for commit, _ in later):
        return log
    holder = log.holder_of(recording.last)
    if holder != log.id:
        # All of it was inherited, so it is a recording of the ancestor.
        log = Log(log.engine, holder, clock=log.clock, redact=log.redact, even_deleted=True)
    return scratch_log(log, recording.last)


def fixture_source(recording: Recording, *, agent: str = "", written_by: str) -> str:
    """The source of the test."""
    name = str(recording.log)
    function = re.sub(r"\W+", "_", name).strip("_").lower() or "recording"
    module, _, path = (agent or PLACEHOLDER).partition(":")
    if agent:
        imported, called = f"\nfrom {module} import {path.partition('.')[0]}\n", path
        constant = ""
    else:
        imported, called = "", "AGENT"
        constant = f'AGENT = "{PLACEHOLDER}"  # fill in your agent\n'
    turns = "".join(f"#   {_describe(recording, place, turn)}\n" for place, turn in enumerate(recording.turns, 1))
    return f'''"""Replays {_quoted(recording.name)}: every call is answered from the recording beside this file.

Nothing runs, and no network is needed. After a change that is wanted, record it again:
    {_quoted(written_by)}
"""

from pathlib import Path

import wakelog
{imported}
RECORDING = Path(__file__).with_suffix(".wakelog")
{constant}
# {len(recording.steps)} recorded calls:
{turns}

def test_{function}_does_what_it_did() -> None:
    with wakelog.recorded(RECORDING).replay("{recording.selector}") as replay:
        replay.run({called})  # called with (session, input) for each turn, or once with (session)
    assert replay.report.state == ()  # and it ends in the same state
'''


def _describe(recording: Recording, place: int, turn: RecordedTurn) -> str:
    tools = [step.tool for step in recording.steps if step.place == place and not step.inside]
    text = turn.input if isinstance(turn.input, str) else repr(turn.input)
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    shown = ", ".join(tools[:8]) + (f", … ({len(tools)})" if len(tools) > 8 else "")
    return f"@{turn.turn} {text!r}: {_printable(shown) or 'no calls'}"


def _printable(text: str) -> str:
    """Recorded text for a comment: on one line, without invisible characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _quoted(text: str) -> str:
    """Text that is safe inside a docstring."""
    return _printable(text).replace("\\", "/").replace('"""', "'''")
