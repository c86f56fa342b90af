"""Finds the files that a shell command writes, as far as its text shows.

Agents that only have a shell write files with here-documents and edit them with `sed -i`. A here-document shows the new
content; `sed -i` only shows that the file changed. Any other command is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wakelog.importers.common.file_changes import file_change
from wakelog.model.events import FileChanged

_HERE = re.compile(
    r"""(?:^|[;&|\n(])\s*(?:cat|tee)\s+
    (?:(?P<op1>>>?|-a\s)?\s*(?P<path1>[^\s<>|;&'"]+|'[^'\n]+'|"[^"$`\n]+")\s*<<-?\s*(?P<q1>['"]?)(?P<tag1>\w+)(?P=q1)
    |<<-?\s*(?P<q2>['"]?)(?P<tag2>\w+)(?P=q2)\s*(?P<op2>>>?)\s*(?P<path2>[^\s<>|;&'"]+|'[^'\n]+'|"[^"$`\n]+"))
    [^\n]*\n""",
    re.VERBOSE,
)
_SED = re.compile(
    r"(?:^|[;&|\n(])\s*sed\s+(?:-[a-zA-Z]+\s+)*-[a-zA-Z]*i\b[^\n]*?\s(?P<path>[\w./+~-]+)\s*(?=$|[;&|\n)])"
)
_RM = re.compile(r"(?:^|[;&|\n(])\s*rm[ \t]+(?:-f[ \t]+)?(?P<paths>[\w./+~][\w./+~ \t-]*?)[ \t]*(?=$|[;&|\n)])")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_FOLDER = re.compile(r"\s*cd\s+(?P<path>[\w./+~-]+)\s*(?:&&|;|\n)")


def shell_writes(command: str, known: dict[str, str], folder: str = "") -> Iterator[FileChanged]:
    """The file changes of a successful command. `known` holds the known contents of files and is updated."""
    if (moved := _FOLDER.match(command)) is not None:
        folder = _join(folder, moved["path"])
    bodies, rest = _split_here_documents(command)
    rest = _QUOTED.sub("''", rest)
    for path, text, is_appended in bodies:
        place = _join(folder, path)
        before = known.get(place)
        after = text if not is_appended else before + text if before is not None else None
        known.pop(place, None)
        if after is not None:
            known[place] = after
        # A file that was not seen before may still have existed: nothing says that it is new.
        added = text.count("\n")
        yield file_change(place, folder=folder, before=before, after=after, lines=None if before else (added, 0))
    for match in _SED.finditer(rest):
        place = _join(folder, match["path"])
        known.pop(place, None)
        yield file_change(place, folder=folder)
    for match in _RM.finditer(rest):
        paths = match["paths"].split()
        for path in paths if not any(path.startswith("-") for path in paths) else ():
            place = _join(folder, path)
            yield file_change(place, folder=folder, before=known.pop(place, None), change="deleted")


def _split_here_documents(command: str) -> tuple[list[tuple[str, str, bool]], str]:
    """Path, text and whether it is appended, for each here-document; and the command without them."""
    results = []
    rest = ""
    while (start := _HERE.search(command)) is not None:
        tag = start["tag1"] or start["tag2"]
        end = re.compile(rf"^\t*{tag}[ \t]*$", re.MULTILINE).search(command, start.end())
        if end is None:
            break
        path = (start["path1"] or start["path2"]).strip("'\"")
        mode = (start["op1"] or start["op2"] or ">").strip()
        if not path.startswith(("/dev/", "-")):
            results.append((path, command[start.end() : end.start()], mode in (">>", "-a")))
        rest += command[: start.start()] + "\n"
        command = command[end.end() :]
    return results, rest + command


def _join(folder: str, path: str) -> str:
    path = path.removeprefix("./")
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"
