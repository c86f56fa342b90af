"""`transcript`: an imported session of Claude Code, in which no decision, fact or file was declared.

The lines of `transcript.jsonl` look like a real transcript: answers split over several lines, calls with structured
results, a refused edit, a person who corrects the agent. Only their times are set here.
"""

from __future__ import annotations

import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from wakelog.cli.demo.scene import LABEL, Scene
from wakelog.importers.coding_agents.claude_code import transcript as claude_code
from wakelog.importers.writer.session_writer import SessionWriter

SESSION = "5a1e7c02-6a0d-4f7b-9c55-0d6c1c7b8e21"
NAME = "claude-5a1e7c02"


def lines(at_us: int) -> list[dict[str, Any]]:
    """The records of the session, each half a minute after the one before."""
    records = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) | {"timestamp": _time(at_us + 30_000_000 * n)} for n, line in enumerate(records, 1)]


def _time(at_us: int) -> str:
    at = datetime.datetime.fromtimestamp(at_us / 1e6, datetime.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def build_transcript(scene: Scene) -> None:
    """Imports the session from a file, as `wakelog import` does."""
    scene.store.engine.claim(NAME, scene.id_of(NAME))
    with tempfile.TemporaryDirectory(prefix="wakelog-demo-") as folder:
        path = Path(folder) / f"{SESSION}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines(scene.start)), encoding="utf-8")
        for transcript in claude_code.transcripts(path):
            head = msgspec.structs.replace(transcript.head, labels={**transcript.head.labels, LABEL: scene.name})
            writer = SessionWriter(
                scene.store, head, format=claude_code.NAME, source=f"~/.claude/projects/shop/{path.name}", stat=(0, 0)
            )
            for record, weight in transcript.read():
                writer.take(record, weight)
            writer.close(is_quiet=True)
