"""What a call is about, in a few words: the file that is edited, the command that is run, the words searched for.

Tools of different makers name their arguments much alike. The one that says most is chosen by its name; a call with
none of these names is told by its first short argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PATH_MAX: Final = 40
PLACE_MAX: Final = 20
GIST_MAX: Final = 160
_COMMANDS: Final = ("command", "cmd", "script", "code")
_PATHS: Final = ("file_path", "filePath", "path", "notebook_path", "filename", "file", "absolute_path", "dir_path")
_SEARCHES: Final = ("pattern", "query", "regex", "q", "search_term", "glob", "url", "skill")
_TASKS: Final = ("description", "question", "title", "name", "prompt", "task", "message", "id")


def call_gist(given: Any) -> str:
    """`src/app.py`, `pytest -q`, `"login" in src`; empty where the arguments say nothing short."""
    if isinstance(given, str):
        return _line(given)
    if not isinstance(given, Mapping):
        return ""
    if command := _first(given, _COMMANDS):
        return _line(command)
    path = _first(given, _PATHS)
    if sought := _first(given, _SEARCHES):
        return f'"{_line(sought)}"' + (f" in {_short_path(path, PLACE_MAX)}" if path else "")
    if path:
        return _short_path(path)
    if patch := _first(given, ("patch", "input", "diff")):
        return _line(_patched(patch))
    for name in ("todos", "plan", "items", "questions"):
        if isinstance(given.get(name), list) and given[name]:
            return _listed(given[name], name)
    if task := _first(given, _TASKS):
        return _line(task)
    return next((_line(v) for v in given.values() if isinstance(v, str) and v.strip() and len(v) <= GIST_MAX), "")


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = given.get(name)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # A shell's words; what stands behind `bash -lc` is the command.
            value = value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _line(text: str) -> str:
    line = " ".join(text[: GIST_MAX * 4].split())
    return line if len(line) <= GIST_MAX else line[: GIST_MAX - 1] + "…"


def _short_path(path: str, most: int = PATH_MAX) -> str:
    """The end of a long path: its last folders tell more than its first."""
    if len(path) <= most:
        return path
    at = path.find("/", len(path) - most)
    return "…" + (path[at:] if at >= 0 else path[-most:])


def _patched(patch: str) -> str:
    """The file that a patch is for, else its first line."""
    for line in patch.splitlines():
        for mark in ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"):
            if line.startswith(mark):
                return _short_path(line.removeprefix(mark).strip())
    return patch


def _listed(items: list[Any], name: str) -> str:
    """A list of tasks by the one that is at work, a list of questions by the first."""
    rows = [item for item in items if isinstance(item, Mapping)]
    at_work = [r for r in rows if r.get("status") in ("in_progress", "active")] or rows[:1]
    words = next((_first(r, ("content", "step", "activeForm", "question", "text", "title")) for r in at_work), "")
    count = f"{len(items)} {name if name != 'plan' else 'steps'}"
    return f"{count}: {_line(words)}" if words else count
