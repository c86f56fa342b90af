"""What a shell is told after Tab where that is simple: names of commands and of sessions.

Loading click, the commands and a store takes many times as long as such an answer. Whatever is not simple (options, a
quoted word, places in a session, a store that is not a folder here) is left to shell_completion.py. Where both can
answer, they say the same.
"""

from __future__ import annotations

import os
import time

from wakelog.cli.command_table import ALIASES, NAMES, PLACES, offered

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all else here
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MANY = 50
MARKS = ("first-error", "last-error", "last-user", "last-tool")
"""Places that every session has by name."""
CHECKPOINT = "cp:"
_SPECIAL = frozenset("'\"\\$`")


def quick_answer(environ: Mapping[str, str]) -> str | None:
    """What is printed to the shell; None where this is not simple."""
    shell, _, instruction = environ.get("_WAKELOG_COMPLETE", "").partition("_")
    words = _words(shell, environ) if instruction == "complete" else None
    if words is None:
        return None
    *before, begin = words
    if begin and not begin[0].isalnum():
        return None
    if not before:
        return _told(shell, offered(begin))
    command, *more = ALIASES.get(before[0], before[0]), *before[1:]
    if command not in PLACES | NAMES or (more and more not in (["-s"], ["--session"])):
        return None
    is_session = bool(more) or command in NAMES
    if not is_session and ("@" in begin or CHECKPOINT.startswith(begin[:3])):
        return None
    sessions = _sessions(environ, begin)
    if sessions is None:
        return None
    marks = [] if is_session else [(mark, "") for mark in MARKS if mark.startswith(begin)]
    if marks and not sessions:
        return None  # whether there is any session is not known
    return _told(shell, [*sessions, *marks][:MANY])


def about(status: str, turns: int, at_us: int) -> str:
    """What is shown beside a session."""
    from wakelog.cli.text import age, counted

    return f"{status}, {counted(turns, 'turn')}, {age(at_us, time.time_ns() // 1000)}"


def _words(shell: str, environ: Mapping[str, str]) -> list[str] | None:
    """The words after the command's name, the last one unfinished."""
    line, place = environ.get("COMP_WORDS", ""), environ.get("COMP_CWORD", "")
    if _SPECIAL.intersection(line):
        return None
    words = line.split()[1:]
    if shell == "fish":
        return [*words[:-1], place] if words and words[-1] == place else [*words, place]
    if shell not in ("bash", "zsh") or not place.isdecimal() or int(place) < 1:
        return None
    before = words[: int(place) - 1]
    return [*before, "".join(words[int(place) - 1 : int(place)])]


def _told(shell: str, items: Iterable[tuple[str, str]]) -> str:
    """As the scripts of `wakelog completion` read it."""
    if shell == "zsh":
        colon = "\\:"  # which zsh takes for part of the value
        return "\n".join(
            f"plain\n{value.replace(':', colon)}\n{text}" if text else f"plain\n{value}\n_" for value, text in items
        )
    if shell == "fish":
        return "\n".join(f"plain,{value}\t{text}" if text else f"plain,{value}" for value, text in items)
    return "\n".join(f"plain,{value}" for value, _ in items)


def _sessions(environ: Mapping[str, str], begin: str) -> list[tuple[str, str]] | None:
    path = _store_file(environ)
    if path is None or not os.access(path, os.W_OK):
        return None
    from wakelog.engines.sqlite.session_names import newest_names

    found = newest_names(path, begin, MANY)
    is_told = not environ["_WAKELOG_COMPLETE"].startswith("bash")
    return (
        None
        if found is None
        else [(name, about(status, turn, at) if is_told else "") for name, status, turn, at in found]
    )


def _store_file(environ: Mapping[str, str]) -> str | None:
    """The file of the store that a command here would use; None where settings have a say in it."""
    if url := environ.get("WAKELOG_STORE", ""):
        return None if ":" in url or not os.path.isdir(url) else os.path.join(url, "log.db")
    from wakelog.config.folders import data_folder, user_folder

    here = os.getcwd()
    folders = [here]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    if "WAKELOG_CONFIG" in environ or os.path.exists(os.path.join(user_folder("config"), "config.toml")):
        return None
    if any(_may_set(folder) for folder in folders):
        return None
    stores = [*(os.path.join(folder, ".wakelog") for folder in folders), os.path.join(data_folder(), "store")]
    return next((os.path.join(store, "log.db") for store in stores if os.path.isdir(store)), None)


def _may_set(folder: str) -> bool:
    """Whether a folder has a file with settings of ours."""
    if os.path.exists(os.path.join(folder, "wakelog.toml")):
        return True
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            return b"tool.wakelog" in file.read()
    except OSError:
        return False
