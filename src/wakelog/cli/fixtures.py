"""`wakelog export --format pytest`: a test that replays, and the recording beside it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from wakelog.cli.context import Context
from wakelog.cli.output import STDOUT, refuse_existing, writing
from wakelog.cli.text import inert, size
from wakelog.log.bundle import export_bundle
from wakelog.replay.pytest_export import cut_log, fixture_source, selector_of
from wakelog.replay.recording import read_recording
from wakelog.session import Session
from wakelog.timeline.selectors import Selector


def export_test(
    ctx: Context, session: Session[Any], place: Selector, target: str, *, agent: str, zipped: bool, force: bool
) -> None:
    """Writes both files, the recording first: a test without it would be broken."""
    test = Path(target)
    if target == STDOUT or test.suffix != ".py":
        raise click.UsageError("a test is two files: name the Python one with -o, such as tests/test_fix_auth.py")
    if agent and (not all(part.isidentifier() for part in agent.replace(":", ".").split(".")) or agent.count(":") != 1):
        raise click.UsageError(f"--agent {agent!r} is not written as module:function")
    bundle = test.with_suffix(".wakelog")
    for path in (test, bundle):
        refuse_existing(path, force=force)
    recording = read_recording(session.log, place.first + (f"..{place.last}" if place.last else ""))
    name = session.name or session.id
    asked = f"{name}{selector_of(recording)}" if recording.turns else name
    words = ["wakelog", "export", asked, "--format", "pytest", *(["--agent", agent] if agent else []), "-o", target]
    source = fixture_source(recording, agent=agent, written_by=f"{shlex.join(words)} --force")
    with writing(bundle, force=force, zipped=zipped) as out:
        export_bundle(cut_log(recording), out)
    with writing(test, force=force) as out:
        out.write(source.encode())
    _answer(
        ctx, session, recording.name, test, bundle, len(recording.steps), sum(bool(s.gone) for s in recording.steps)
    )
    if not agent:
        ctx.suggest(f"fill in AGENT in {target}", f"pytest {target}")
    else:
        ctx.suggest(f"pytest {target}")


def _answer(
    ctx: Context, session: Session[Any], replayed: str, test: Path, bundle: Path, steps: int, gone: int
) -> None:
    if gone:
        ctx.warn(f"the content of {gone} of its steps is gone: a strict replay will stop there")
    data = {
        "session": session.id,
        "name": session.name,
        "format": "pytest",
        "file": str(test),
        "bytes": test.stat().st_size,
        "head": session.head.seq,
        "content_gone": gone,
        "bundle": str(bundle),
        "steps": steps,
    }

    def human() -> None:
        ctx.say(f"Wrote a test of {inert(replayed, lines=False)} to {test}  ({steps} steps)")
        ctx.say(f"  its recording is {bundle}  ({size(bundle.stat().st_size)})")

    ctx.answer("export", data, human)
