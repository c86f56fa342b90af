"""What people and programs see, word for word. `WAKELOG_GOLDEN=write` writes the files anew: read the difference."""

import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

WRITE = os.environ.get("WAKELOG_GOLDEN") == "write"
GOLDEN = Path(__file__).parents[1] / "golden" / "move"

# Each list is one story in a fresh copy of the demo store: later commands see what earlier ones did.
STORIES: dict[str, list[tuple[str, ...]]] = {
    "rewind": [
        ("rewind", "fix-bug@4", "--dry-run"),
        ("rewind", "fix-bug@4"),
        ("rewind", "fix-bug@4", "--yes", "-m", "wrong approach"),
        ("undo", "fix-bug"),
        ("undo", "fix-bug"),
        ("undo", "injection"),
        ("rewind", "fix-bug@0", "--dry-run"),
        ("rewind", "tampered@1"),
        ("rewind", "fix-bug@99"),
        ("rewind", "fix-bug"),
        ("rewind", "fix-bug@1..@2"),
    ],
    "rewind.json": [("rewind", "fix-bug@9", "--dry-run", "--json"), ("rewind", "crash@1", "--yes", "--ndjson")],
    "fork": [
        ("fork", "fix-bug@4"),
        ("fork", "-s", "fix-bug", "cp:before-fix", "-n", "again", "-m", "once more"),
        ("fork", "fix-bug@4", "-n", "again"),
        ("fork", "fix-bug@0"),
        ("fork", "fix-bug@4", "-n", "no@name"),
    ],
    "attempts": [
        ("attempts", "fix-bug"),
        ("attempts", "fix-bug@5"),
        ("attempts", "diff", "fix-bug@6"),
        ("attempts", "fix-bug@3"),
        ("attempts", "diff", "fix-bug@3"),
        ("attempts", "injection"),
        ("attempts", "fix-bug@99"),
        ("attempts", "pick", "fix-bug@6.1", "--yes"),
        ("attempts", "fix-bug@6"),
        ("undo", "fix-bug"),
        ("attempts", "pick", "fix-bug@6"),
        ("attempts", "pick", "fix-bug@6.3", "--yes"),
        ("attempts", "diff", "fix-bug@5", "fix-bug@6"),
    ],
    "compare": [
        ("compare", "fix-bug@6.1", "@6.2"),
        ("compare", "try-refresh"),
        ("compare", "fix-bug@5", "try-refresh@5", "--all", "--exit-code"),
        ("compare", "fix-bug@6"),
        ("compare", "fix-bug@6.2", "@7", "@8"),
        ("compare", "fix-bug@6.2", "@6.2", "--exit-code"),
        ("compare", "fix-bug", "injection"),
        ("compare", "fix-bug", "tampered"),
        ("compare", "fix-bug@6", "@99"),
        ("compare", "fix-bug"),
        ("compare", "fix-bug@5", "--other", "nowhere"),
        ("compare", "fix-bug@5", "--other", "demo"),
    ],
    "compare.json": [("compare", "fix-bug@6.1", "@6.2", "--json"), ("attempts", "fix-bug@6", "--ndjson")],
    "adopt": [
        ("adopt", "try-refresh", "--dry-run"),
        ("adopt", "try-refresh", "--force", "--dry-run"),
        ("adopt", "try-refresh", "--force"),
        ("adopt", "try-refresh", "--force", "--yes", "-m", "it needs no migration"),
        ("log", "fix-bug", "--events", "-n", "7"),
        ("verify", "fix-bug"),
        ("undo", "fix-bug"),
        ("adopt", "fix-bug"),
        ("adopt", "try-refresh@2", "--force"),
        ("adopt", "try-refresh@5..@6"),
        ("adopt", "try-refresh", "--force", "--yes", "--json"),
    ],
    "resume": [
        ("resume", "fix-bug"),
        ("resume", "crash"),
        ("resume", "nightly-07"),
        ("resume", "tampered"),
        ("resume", "nightly-19", "--json"),
    ],
    "compact": [
        ("compact", "fix-bug"),
        ("compact", "injection"),
        ("expand", "fix-bug@e113", "--dry-run"),
        ("expand", "fix-bug@e113", "-m", "look again"),
        ("expand", "fix-bug@e113"),
        ("compact", "fix-bug@1..@2", "-m", "A token lives 300 seconds."),
        ("compact", "fix-bug@2..@3", "-m", "half of it"),
        ("compact", "injection@1", "-m", "A page asked for the customer list."),
        ("compact", "injection"),
        ("compact", "crash@3", "-m", "a mail"),
        ("compact", "fix-bug@1"),
        ("compact", "fix-bug", "-m", "all of it"),
        ("context", "fix-bug@4"),
        ("compact", "fix-bug@5..@6", "-m", "fixed", "--json"),
    ],
    "checkpoint": [
        ("checkpoint", "ls", "-s", "fix-bug"),
        ("checkpoint", "shipped", "fix-bug@11"),
        ("checkpoint", "shipped", "fix-bug@12"),
        ("checkpoint", "-s", "fix-bug"),
        ("checkpoint", "-d", "shipped", "-s", "fix-bug"),
        ("checkpoint", "-d", "shipped", "-s", "fix-bug"),
        ("checkpoint", "ls", "-s", "crash"),
        ("note", "fix-bug@11", "-m", "reviewed by Ada"),
        ("note", "fix-bug", "-m", "belongs to incident 42"),
        ("note", "fix-bug", "-m", " "),
    ],
    "life": [
        ("pause", "fix-bug", "-m", "lunch"),
        ("pause", "fix-bug"),
        ("resume", "fix-bug", "--json"),
        ("close", "nightly-13"),
        ("archive", "nightly-13"),
        ("reopen", "nightly-13"),
        ("archive", "fix-bug"),
        ("delete",),
        ("delete", "fix-bug", "--dry-run"),
        ("delete", "fix-bug"),
        ("delete", "fix-bug", "--yes"),
        ("delete", "fix-bug", "--yes"),
    ],
    "erase": [
        ("erase", "injection@1", "--why", "ticket 42", "--dry-run"),
        ("erase", "-s", "injection", "e10", "--why", "ticket 42", "--cascade", "--dry-run"),
        ("erase", "-s", "injection", "e10", "--why", "ticket 42", "--cascade", "--yes"),
        ("erase", "-s", "injection", "e10", "e11", "--why", "ticket 42", "--yes"),
        ("erase", "fix-bug@4", "crash@1", "--why", "both"),
        ("redact", "fix-bug", "--dry-run"),
    ],
    "provenance": [
        ("why", "injection@e14"),
        ("taint", "web:*", "--sinks", "-s", "injection"),
        ("taint", "-s", "injection"),
        ("taint", "--decisions", "--trust", "untrusted", "-s", "injection"),
        ("taint", "-s", "injection", "/facts/spf"),
        ("taint", "mail:*", "-s", "injection"),
        ("taint", "-s", "fix-bug", "--wide"),
        ("why", "-s", "fix-bug", "src/auth/session.py:4"),
        ("why", "-s", "fix-bug", "db/0042_sessions.sql:3"),
        ("why", "-s", "fix-bug", "src/auth/session.py:99"),
        ("why", "-s", "fix-bug", "/data/plan/1/status"),
        ("why", "fix-bug@5", "--depth", "2"),
        ("why", "-s", "fix-bug", "auth/sesion.py"),
        ("why", "-s", "fix-bug", "/facts/nothing"),
        ("why", "fix-bug"),
        ("why", "injection@e1"),
        ("why", "injection@e28"),
        ("why", "injection@e13", "--at", "@1"),
        ("why", "injection@e13", "--at", "fix-bug@1"),
        ("invalidate", "injection@e9", "--dry-run"),
        ("endorse", "injection@e9", "--by", "ada", "-m", "read it: harmless"),
        ("taint", "-s", "injection"),
        ("invalidate", "-s", "injection", "e9", "e10", "--by", "ada", "-m", "it was not"),
        ("taint", "-s", "injection", "--sinks"),
        ("why", "injection@e12"),
        ("endorse", "injection@e99"),
    ],
    "provenance.json": [
        ("why", "injection@e12", "--json"),
        ("why", "injection@e12", "--ndjson"),
        ("taint", "injection@e9", "--sinks", "--json"),
        ("taint", "web:*", "-s", "injection", "--ndjson"),
        ("invalidate", "injection@e9", "--json"),
        ("endorse", "injection@e9", "--json"),
    ],
    "hold": [
        ("hold", "ls"),
        ("hold", "add", "fix-bug", "-m", "case 2026-17"),
        ("hold", "ls", "--ndjson"),
        ("delete", "fix-bug", "--yes"),
        ("hold", "rm", "fix-bug", "-m", "case closed"),
        ("hold", "rm", "fix-bug"),
    ],
    "export": [
        ("export", "injection@1", "--format", "md"),
        ("export", "injection", "-o", "injection.wakelog"),
        ("export", "injection", "-o", "injection.wakelog"),
        ("export", "injection@1", "-o", "x"),
        ("export", "injection", "-o", "nowhere/x"),
    ],
    "gc": [
        ("gc",),
        ("gc", "--older-than", "1h", "--keep-last", "30"),
        ("gc", "--older-than", "1h", "--keep-last", "36", "--yes"),
        ("gc", "--max-size", "322KB", "--action", "delete", "--json"),
        ("gc", "--max-size", "1KB", "--action", "archive"),
        ("gc", "--older-than", "soon"),
    ],
    "store": [
        ("store", "path"),
        ("store", "info"),
        ("store", "check"),
        ("store", "scrub"),
        ("store", "migrate", "--dry-run"),
        ("store", "check"),
    ],
    "config": [
        ("config",),
        ("config", "list", "--show-origin"),
        ("config", "set", "retention.kep", "90d"),
        ("config", "set", "retention.keep", "90x"),
        ("config", "get", "retention.keep"),
        ("config", "get", "retention.kep"),
    ],
    "demo": [("demo", "--list"), ("demo", "--into", "play"), ("demo", "--into", "play"), ("demo", "fix-bag")],
}


def _masked(text: str) -> str:
    """Without hashes and random ids, and without sizes on disk, which belong to the engine."""
    text = re.sub(r"(?<=[0-9A-Z]{26})\.[0-9A-Z]{8}\b", ".########", text)
    # A hash has a letter, which tells it from a number; the few that have none are found by the word before them.
    text = re.sub(r"(?<=\bhead )\d{12}\b|\b(?=\w*[a-f])[0-9a-f]{12,64}\b", lambda m: "f" * len(m[0]), text)
    text = re.sub(r'("bytes": ?)\d+', r"\1#", text)
    return re.sub(r" *\b\d+(\.\d)? [KM]?B\b", " #B", text)


@pytest.mark.parametrize("name", STORIES)
def test_people_and_programs_see_what_they_saw_before(move: Cli, name: str) -> None:
    parts = []
    for args in STORIES[name]:
        result = move(*args)
        parts.append(f"$ wakelog {' '.join(args)}\n{result.out}{result.err}[{result.code}]\n")
    text = _masked("\n".join(parts))
    path = GOLDEN / f"{name}.txt"
    if WRITE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
