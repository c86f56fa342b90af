"""Says what a call did and to what: a label, a target, and the files and URLs it named.

The label is a tool's name, or the program and subcommand that a shell ran (`git commit`, `pytest`). Prefixes (`cd …
&&`, variables, `uv run`) are ignored. If a line has several commands, the most significant one gives the label. The
target is the file or URL that the call is about; it may be empty.

Paths are relative to the top of the project, so that a file has the same name in all worktrees.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from wakelog.model.call_acts import PATHS, SHELL_TOOLS, Act, act_of_call, act_of_command, act_of_line
from wakelog.model.command_lines import ShellCommand, command_line, patched_files, shell_commands, written_files
from wakelog.model.json_fields import as_text
from wakelog.model.values import Value

LABEL_MAX: Final = 80
TARGET_MAX: Final = 400
FILES_MAX: Final = 50
"""How many files of one call are listed."""

_URLS: Final = ("url", "uri", "href", "link")
_ADDRESS: Final = re.compile(r"\bhttps?://[^\s'\"<>|;)\]}]+")
_RANK: Final[dict[Act, int]] = {"check": 3, "run": 2, "record": 2, "write": 1}
_PYTHON: Final = re.compile(r"python[\d.]*|pypy3?|py")
_TRIVIAL: Final = frozenset(["cd", "export", "set", "source", ".", "echo", "pushd", "popd", "true", "sleep", "mkdir"])
_WITH_VERB: Final = frozenset(
    re.split(
        " ",
        "git npm pnpm yarn bun cargo go docker podman pip pip3 uv poetry pdm kubectl helm make gmake just gh brew apt "
        "apt-get apk dnf yum conda mamba mix dotnet swift rake rails bundle composer gradle gradlew mvn terraform aws "
        "gcloud az ruff deno flutter dart systemctl launchctl wakelog",
    )
)
_READERS: Final = frozenset(
    ["cat", "head", "tail", "less", "more", "nl", "bat", "sed", "wc", "open", "grep", "rg", "awk", "jq", "diff", "cmp"]
)
_FILE_LIKE: Final = re.compile(r"[\w.@+~()\[\]/-]*(?:/|\.[A-Za-z]\w{0,7}$)[\w.@+~()\[\]/-]*")


_OWN: Final = re.compile(r"(?:^|__|[./:-])wakelog(?:__|[./:-]|$)")


@functools.lru_cache(maxsize=1024)
def is_own_tool(tool: str) -> bool:
    """Whether it is a tool of wakelog itself. What it returns must not be learned from again."""
    return _OWN.search(tool) is not None


class CallSubject(msgspec.Struct, frozen=True, gc=False):
    """What one call did, and to what."""

    label: str
    target: str = ""
    act: Act = "run"
    read: tuple[str, ...] = ()
    """Files it read."""
    written: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


def subject_of(tool: str, effect: str, arguments: Value, labels: Mapping[str, Any] | None = None) -> CallSubject:
    """Returns what a call is about, from its arguments. The session's labels give the project that paths are relative
    to."""
    place, repo = (as_text(labels.get("project")), as_text(labels.get("repo"))) if labels else ("", "")
    if _is_shell(tool) and (line := command_line(arguments)):
        return _shell_subject(tool, line, place, repo)
    act = act_of_call(tool, effect, arguments)
    if type(arguments) is not dict:
        return CallSubject(tool[:LABEL_MAX], act=act, urls=_addresses(arguments) if type(arguments) is str else ())
    named = ""
    for name in PATHS:
        if name in arguments and (named := as_text(arguments[name])):
            break
    urls: tuple[str, ...] = ()
    if not arguments.keys().isdisjoint(_URLS):
        urls = tuple(url for name in _URLS for url in _addresses(as_text(arguments.get(name))))
    return _file_subject(tool, act, (named,) if named else _patched(arguments), urls, place, repo)


@functools.lru_cache(maxsize=4096)
def _file_subject(
    tool: str, act: Act, named: tuple[str, ...], urls: tuple[str, ...], place: str, repo: str
) -> CallSubject:
    paths = tuple(_from_top(path, place, repo, "") for path in named)
    target = (*paths, *urls, "")[0][:TARGET_MAX]
    is_written = act == "write"
    return CallSubject(tool[:LABEL_MAX], target, act, () if is_written else paths, paths if is_written else (), urls)


@functools.lru_cache(maxsize=1024)
def _is_shell(tool: str) -> bool:
    return SHELL_TOOLS.search(tool) is not None


def _patched(arguments: dict[str, Value]) -> tuple[str, ...]:
    texts = (value for value in arguments.values() if type(value) is str)
    return tuple(dict.fromkeys(path for text in texts for path in patched_files(text)))[:FILES_MAX]


@functools.lru_cache(maxsize=2048)
def _shell_subject(tool: str, line: str, place: str, repo: str) -> CallSubject:
    every = shell_commands(line)
    done = [act_of_command(command) for command in every]
    files = written_files(line)
    act = act_of_line(done, writes=bool(files))
    if not every:
        return CallSubject(tool[:LABEL_MAX], act=act)
    pairs = [(c, did) for c, did in zip(every, done, strict=True) if c.program not in _TRIVIAL]
    commands, acts = zip(*(pairs or zip(every, done, strict=True)), strict=True)
    best = max(_RANK.get(did, 0) for did in acts)
    # Of the most significant commands take the last: `git add` prepares `git commit`. If all only look, take the
    # first: the others filter its output.
    chosen = [c for c, did in zip(commands, acts, strict=True) if _RANK.get(did, 0) == best]
    main = chosen[-1] if best else chosen[0]
    label, rest = _label(main)
    urls = _addresses(line)
    written = tuple(path for path in files if "(" not in path)[:FILES_MAX]
    read = tuple(
        dict.fromkeys(
            word
            for command in commands
            if command.program in _READERS
            for word in command.words[1:]
            if _is_file(word) and word not in written
        )
    )[:FILES_MAX]
    target = next((word for word in rest if _is_file(word)), "") or (*urls, "")[0]
    if target in read or target in written:
        target = _from_top(target, place, repo, "")
    read, written = (tuple(_from_top(path, place, repo, "") for path in paths) for paths in (read, written))
    return CallSubject(label[:LABEL_MAX] or tool, target[:TARGET_MAX], act, read, written, urls)


def _is_file(word: str) -> bool:
    return bool(_FILE_LIKE.fullmatch(word)) and not word.startswith(("-", "s/")) and "://" not in word


def _label(command: ShellCommand) -> tuple[str, list[str]]:
    """Returns the program with its subcommand, and the remaining words."""
    program, words = command.program, list(command.words[1:])
    if _PYTHON.fullmatch(program):
        if "-m" in words[:-1]:
            at = words.index("-m")
            return words[at + 1], words[at + 2 :]
        return "python", words
    if program in _WITH_VERB:
        for at, word in enumerate(words):
            if word == "run" and program in ("npm", "pnpm", "yarn", "bun") and words[at + 1 :]:
                return f"{program} run {words[at + 1]}", words[at + 2 :]
            if re.fullmatch(r"[a-z][\w:-]*", word):
                return f"{program} {word}", words[at + 1 :]
    return program, words


def _addresses(text: str) -> tuple[str, ...]:
    found = (address.rstrip(".,") for address in _ADDRESS.findall(text[:20_000]))
    return tuple(dict.fromkeys(address[:TARGET_MAX] for address in found))[:FILES_MAX]


# Projects


def project_of(labels: Mapping[str, Any]) -> str:
    """Returns the project of a session: the main work tree of its repository, else its folder; empty if neither is
    known. All worktrees of a repository are one project."""
    for name in ("repo", "project"):
        value = labels.get(name)
        if isinstance(value, str) and value:
            return value.rstrip("/") or "/"
    return ""


def project_path(path: str, labels: Mapping[str, Any], folder: str = "") -> str:
    """Returns a path relative to the top of the worktree. A path outside of it stays absolute."""
    return _from_top(path, as_text(labels.get("project")), as_text(labels.get("repo")), folder)


@functools.lru_cache(maxsize=4096)
def _from_top(path: str, place: str, repo: str, folder: str) -> str:
    place, repo, path = place.rstrip("/"), repo.rstrip("/"), path.replace("\\", "/")
    if not path.startswith("/"):
        start = folder or place
        if not start:
            return posixpath.normpath(path) if path else ""
        path = posixpath.join(start, path)
    path = posixpath.normpath(path)
    root = repo if repo and f"{place}/".startswith(f"{repo}/") else place or repo
    for top in (root, repo):
        if top and path.startswith(f"{top}/"):
            return path[len(top) + 1 :]
    return path
