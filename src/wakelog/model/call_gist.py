"""Says what a call is about, in a few words: the file that is edited, the command that is run, the search words.

Different tools use similar names for their arguments. The most informative argument is chosen by its name; if none of
the names is known, the first short argument is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wakelog.model.short_text import one_line

PATH_MAX: Final = 40
PLACE_MAX: Final = 20
GIST_MAX: Final = 160
_COMMANDS: Final = ("command", "cmd", "script", "code", "CommandLine")
_EDITS: Final = frozenset({"view", "create", "str_replace", "insert", "undo_edit", "delete"})
"""Commands of an editor, which mean little without the file."""
_PATHS: Final = (
    *("file_path", "filePath", "path", "notebook_path", "filename", "file", "absolute_path", "dir_path"),
    *("target_file", "TargetFile", "AbsolutePath", "DirectoryPath"),
)
_SEARCHES: Final = ("pattern", "query", "regex", "q", "search_term", "glob", "url", "skill")
_TASKS: Final = ("description", "question", "title", "name", "prompt", "task", "message", "id")


def call_gist(arguments: Any) -> str:
    """Returns for example `src/app.py`, `pytest -q` or `"login" in src`; empty if no argument is short enough."""
    if isinstance(arguments, str):
        return one_line(arguments, GIST_MAX)
    if not isinstance(arguments, Mapping):
        return ""
    command, path = _first(arguments, _COMMANDS), _first(arguments, _PATHS)
    if command:
        return f"{command} {_short_path(path)}" if path and command in _EDITS else one_line(command, GIST_MAX)
    if sought := _first(arguments, _SEARCHES):
        return f'"{one_line(sought, GIST_MAX)}"' + (f" in {_short_path(path, PLACE_MAX)}" if path else "")
    if path:
        return _short_path(path)
    if patch := _first(arguments, ("patch", "input", "diff")):
        return one_line(_patched(patch), GIST_MAX)
    for name in ("todos", "plan", "items", "questions"):
        if isinstance(arguments.get(name), list) and arguments[name]:
            return _listed(arguments[name], name)
    if task := _first(arguments, _TASKS):
        return one_line(task, GIST_MAX)
    return next(
        (one_line(v, GIST_MAX) for v in arguments.values() if isinstance(v, str) and v.strip() and len(v) <= GIST_MAX),
        "",
    )


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            # The words of a shell command. After `bash -lc` comes the real command.
            value = value[-1] if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _short_path(path: str, most: int = PATH_MAX) -> str:
    """Shortens a long path to its end, which says more than its beginning."""
    if len(path) <= most:
        return path
    at = path.find("/", len(path) - most)
    return "…" + (path[at:] if at >= 0 else path[-most:])


def _patched(patch: str) -> str:
    """Returns the file that a patch changes, or else the patch itself."""
    for line in patch.splitlines():
        for mark in ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"):
            if line.startswith(mark):
                return _short_path(line.removeprefix(mark).strip())
    return patch


def _listed(items: list[Any], name: str) -> str:
    """Describes a list of tasks by the active one, and a list of questions by the first."""
    rows = [item for item in items if isinstance(item, Mapping)]
    at_work = [r for r in rows if r.get("status") in ("in_progress", "active")] or rows[:1]
    words = next((_first(r, ("content", "step", "activeForm", "question", "text", "title")) for r in at_work), "")
    count = f"{len(items)} {name if name != 'plan' else 'steps'}"
    return f"{count}: {one_line(words, GIST_MAX)}" if words else count
