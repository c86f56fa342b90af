"""Fast shell completion for the simple cases: names of commands and of sessions.

Loading click, the commands and a store takes many times as long as the answer itself. Everything else (options, quoted
words, places in a session, stores that are not a local folder) is left to shell_completion.py. Where both can answer,
they give the same answer.
"""

from __future__ import annotations

import os
import time

from wakelog.cli.command_table import ALIASES, TAKES_PLACE, TAKES_SESSION, matching_commands

TYPE_CHECKING = False  # importing typing would take longer than everything else here
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_ITEMS = 50
MARKS = ("first-error", "last-error", "last-user", "last-tool")
"""Names of places that every session has."""
CHECKPOINT = "cp:"
_SPECIAL = frozenset("'\"\\$`")


def quick_answer(environ: Mapping[str, str]) -> str | None:
    """The text for the shell; None if the case is not simple."""
    shell, _, instruction = environ.get("_WAKELOG_COMPLETE", "").partition("_")
    words = _words(shell, environ) if instruction == "complete" else None
    if words is None:
        return None
    *before, prefix = words
    if prefix and not prefix[0].isalnum():
        return None
    if not before:
        return _format(shell, matching_commands(prefix))
    command, *more = ALIASES.get(before[0], before[0]), *before[1:]
    if command not in TAKES_PLACE | TAKES_SESSION or (more and more not in (["-s"], ["--session"])):
        return None
    is_session = bool(more) or command in TAKES_SESSION
    if not is_session and ("@" in prefix or CHECKPOINT.startswith(prefix[:3])):
        return None
    sessions = _sessions(shell, environ, prefix)
    if sessions is None:
        return None
    marks = [] if is_session else [(mark, "") for mark in MARKS if mark.startswith(prefix)]
    if marks and not sessions:
        return None  # marks need a session, and it is not known whether the store has one
    return _format(shell, [*sessions, *marks][:MAX_ITEMS])


def describe_session(status: str, turns: int, at_us: int) -> str:
    """The help text beside a session name."""
    from wakelog.cli.text import age
    from wakelog.model.short_text import pluralize

    return f"{status}, {pluralize(turns, 'turn')}, {age(at_us, time.time_ns() // 1000)}"


def _words(shell: str, environ: Mapping[str, str]) -> list[str] | None:
    """The words after the command's name, the last one unfinished."""
    line, position = environ.get("COMP_WORDS", ""), environ.get("COMP_CWORD", "")
    if _SPECIAL.intersection(line):
        return None
    words = line.split()[1:]
    if shell == "fish":
        return [*words[:-1], position] if words and words[-1] == position else [*words, position]
    if shell not in ("bash", "zsh") or not position.isdecimal() or int(position) < 1:
        return None
    number = int(position)
    return [*words[: number - 1], "".join(words[number - 1 : number])]


def _format(shell: str, items: Iterable[tuple[str, str]]) -> str:
    """The items in the form that the scripts of `wakelog completion` read."""
    if shell == "zsh":
        colon = "\\:"  # a plain colon would end the value
        return "\n".join(
            f"plain\n{value.replace(':', colon)}\n{text}" if text else f"plain\n{value}\n_" for value, text in items
        )
    if shell == "fish":
        return "\n".join(f"plain,{value}\t{text}" if text else f"plain,{value}" for value, text in items)
    return "\n".join(f"plain,{value}" for value, _ in items)


def _sessions(shell: str, environ: Mapping[str, str], prefix: str) -> list[tuple[str, str]] | None:
    path = _store_file(environ)
    if path is None or not os.access(path, os.W_OK):
        return None
    from wakelog.engines.sqlite.session_names import newest_names

    results = newest_names(path, prefix, MAX_ITEMS)
    if results is None:
        return None
    # bash shows no help texts
    return [(name, "" if shell == "bash" else describe_session(status, turn, at)) for name, status, turn, at in results]


def _store_file(environ: Mapping[str, str]) -> str | None:
    """The file of the store that a command here would use; None if settings could choose another store."""
    if url := environ.get("WAKELOG_STORE", ""):
        return None if ":" in url or not os.path.isdir(url) else os.path.join(url, "log.db")
    from wakelog.config.folders import data_folder, user_folder

    folders = [os.getcwd()]
    while (above := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(above)
    if "WAKELOG_CONFIG" in environ or os.path.exists(os.path.join(user_folder("config"), "config.toml")):
        return None
    if any(_has_settings(folder) for folder in folders):
        return None
    stores = [*(os.path.join(folder, ".wakelog") for folder in folders), os.path.join(data_folder(), "store")]
    return next((os.path.join(store, "log.db") for store in stores if os.path.isdir(store)), None)


def _has_settings(folder: str) -> bool:
    """True if the folder has a file that can hold settings of wakelog."""
    if os.path.exists(os.path.join(folder, "wakelog.toml")):
        return True
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            return b"tool.wakelog" in file.read()
    except OSError:
        return False
