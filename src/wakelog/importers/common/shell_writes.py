"""Files that a shell command writes, as far as its words tell.

Agents that have only a shell write files with here-documents and edit them with `sed -i`. The first say what the file
holds afterwards; the second only that it changed. A command whose words do not tell is left alone.
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
_GONE = re.compile(r"(?:^|[;&|\n(])\s*rm[ \t]+(?:-f[ \t]+)?(?P<paths>[\w./+~][\w./+~ \t-]*?)[ \t]*(?=$|[;&|\n)])")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*\"""")
_FOLDER = re.compile(r"\s*cd\s+(?P<path>[\w./+~-]+)\s*(?:&&|;|\n)")


def shell_writes(command: str, known: dict[str, str], folder: str = "") -> Iterator[FileChanged]:
    """The changes that a command which succeeded made. `known` is what is known of files so far, and is kept up."""
    if (moved := _FOLDER.match(command)) is not None:
        folder = _joined(folder, moved["path"])
    bodies, rest = _here_documents(command)
    rest = _QUOTED.sub("''", rest)
    for path, text, is_more in bodies:
        place = _joined(folder, path)
        before = known.get(place)
        after = text if not is_more else before + text if before is not None else None
        known.pop(place, None)
        if after is not None:
            known[place] = after
        # A file that was not seen before may have been there all the same: nothing says that it is new.
        added = text.count("\n")
        yield file_change(place, folder=folder, before=before, after=after, lines=None if before else (added, 0))
    for found in _SED.finditer(rest):
        place = _joined(folder, found["path"])
        known.pop(place, None)
        yield file_change(place, folder=folder)
    for found in _GONE.finditer(rest):
        paths = found["paths"].split()
        for path in paths if not any(path.startswith("-") for path in paths) else ():
            place = _joined(folder, path)
            yield file_change(place, folder=folder, before=known.pop(place, None), change="deleted")


def _here_documents(command: str) -> tuple[list[tuple[str, str, bool]], str]:
    """Path, text and whether it is added to the file, for each; and the command without them."""
    found = []
    rest = ""
    while (start := _HERE.search(command)) is not None:
        tag = start["tag1"] or start["tag2"]
        end = re.compile(rf"^\t*{tag}[ \t]*$", re.MULTILINE).search(command, start.end())
        if end is None:
            break
        path = (start["path1"] or start["path2"]).strip("'\"")
        mode = (start["op1"] or start["op2"] or ">").strip()
        if not path.startswith(("/dev/", "-")):
            found.append((path, command[start.end() : end.start()], mode in (">>", "-a")))
        rest += command[: start.start()] + "\n"
        command = command[end.end() :]
    return found, rest + command


def _joined(folder: str, path: str) -> str:
    path = path.removeprefix("./")
    return path if path.startswith(("/", "~")) or not folder else f"{folder.rstrip('/')}/{path}"
