"""The git repository around a folder, and what it ignores. Nothing here writes to it.

Most answers are read from its files. Two need the git command: where the user's own ignore file is, and which tracked
files match an ignore rule. If git is not installed, these are the default path and an empty set.

Ignore rules come from `.gitignore` files, `.git/info/exclude` and the user's own file. Like git, the scanner walks a
tree from the top and does not enter ignored folders, so a rule is only applied to an entry whose folders are not
ignored. Of the rules that match, the last one in the nearest file decides.
"""

from __future__ import annotations

import os
import subprocess
import time

import msgspec

from wakelog.files.file_stamps import Stamp, is_settled, stamp_of
from wakelog.files.git_head import git_folders, top_of
from wakelog.files.wildmatch import IgnoreRule, parse

GIT_TIMEOUT_S = 20.0
ALWAYS = frozenset({".git", ".wakelog"})
"""Never captured, at any depth: git's data, and ours."""
_UNSETTLED: Stamp = (-1, 0, 0, 0, 0)


class Rules(msgspec.Struct, frozen=True):
    """One ignore file: its rules, in order. They apply below `base`, which ends with a slash."""

    base: str
    rules: tuple[IgnoreRule, ...]

    def judge(self, path: str, is_folder: bool) -> bool | None:
        """Whether an entry is ignored; None if no rule matches it."""
        below = os.fsencode(path[len(self.base) :]).decode("latin-1")
        name = below.rpartition("/")[2]
        for rule in reversed(self.rules):
            if rule.matches(below, name, is_folder):
                return rule.ignores
        return None


Chain = tuple[Rules, ...]
"""The ignore files that apply to a folder, the weakest first."""


def is_ignored(chain: Chain, path: str, is_folder: bool) -> bool:
    """Whether git ignores an entry, given that it does not ignore its folders."""
    for rules in reversed(chain):
        verdict = rules.judge(path, is_folder)
        if verdict is not None:
            return verdict
    return False


class Reader:
    """Reads ignore files, and caches each as long as it does not change."""

    def __init__(self) -> None:
        self.generation = 0
        """Increased whenever a rule changes."""
        self._known: dict[tuple[str, str], tuple[Stamp, Rules | None]] = {}
        self._joined: dict[tuple[int, int], tuple[Chain, Rules, Chain]] = {}
        self._excludes: dict[str, str] = {}

    def start(self, root: str) -> Chain:
        """The rules that apply at a root: the repository's, the user's, and `.gitignore` files in the folders above."""
        repository = repository_of(root)
        if repository is None:
            return ()
        chain, folder = self._top(repository.top), repository.top
        below = os.path.relpath(root, folder)
        for name in below.split(os.sep) if below != os.curdir else ():
            # The root's own `.gitignore` is read when it is walked.
            chain = self.enter(chain, folder)
            folder = os.path.join(folder, name)
        return chain

    def enter(self, chain: Chain, folder: str, *, has_git: bool = False) -> Chain:
        """The rules that apply inside a folder. A nested repository does not inherit rules."""
        if has_git and repository_at(folder) is not None:
            chain = self._top(folder)
        return self._join(chain, os.path.join(folder, ".gitignore"), folder)

    def _top(self, top: str) -> Chain:
        repository = repository_at(top)
        assert repository is not None
        if top not in self._excludes:
            self._excludes[top] = excludes_file(top)
        return self._join(self._join((), self._excludes[top], top), repository.exclude, top)

    def _join(self, chain: Chain, path: str, base: str) -> Chain:
        rules = self._rules(path, base)
        if rules is None:
            return chain
        # Equal chains are the same object, so that the scanner can cache results by chain. Both parts are kept alive
        # here, so their ids are not reused.
        key = (id(chain), id(rules))
        if key not in self._joined:
            self._joined[key] = (chain, rules, (*chain, rules))
        return self._joined[key][2]

    def _rules(self, path: str, base: str) -> Rules | None:
        began = time.time_ns()
        try:
            stamp = stamp_of(os.lstat(path))
        except OSError:
            self.generation += self._known.pop((path, base), None) is not None
            return None
        known = self._known.get((path, base))
        if known is not None and known[0] == stamp:
            return known[1]
        rules = _read_rules(path, base)
        if known is not None and known[1] == rules:
            rules = known[1]
        else:
            self.generation += 1
        self._known[path, base] = (stamp if is_settled(stamp, began) else _UNSETTLED, rules)
        return rules


def _read_rules(path: str, base: str) -> Rules | None:
    # Git does not follow a `.gitignore` that is a symbolic link.
    follow = 0 if not path.endswith("/.gitignore") else os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | follow), "rb") as file:
            content = file.read()
    except OSError:
        return None
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rules = [rule for line in lines if (rule := parse(line.removesuffix(b"\r").decode("latin-1"))) is not None]
    return Rules(base.rstrip("/") + "/", tuple(rules)) if rules else None


# The repository


class Repository(msgspec.Struct, frozen=True):
    """Where a repository is. A worktree has its own `git_dir` beside the `common_dir` it shares with the others."""

    top: str
    git_dir: str
    common_dir: str

    @property
    def exclude(self) -> str:
        return os.path.join(self.common_dir, "info", "exclude")

    @property
    def index(self) -> str:
        return os.path.join(self.git_dir, "index")


def repository_of(folder: str) -> Repository | None:
    """The repository that contains a folder, or None."""
    top = top_of(folder)
    return repository_at(top) if top else None


def repository_at(top: str) -> Repository | None:
    """The repository whose top folder this is."""
    found = git_folders(top)
    return Repository(top, *found) if found is not None else None


def excludes_file(folder: str) -> str:
    """The user's own ignore file: `core.excludesFile`, or git's default."""
    output = _git(folder, "config", "--type=path", "-z", "--get", "core.excludesFile")
    if output:
        return os.path.join(folder, os.fsdecode(output.split(b"\0")[0]))
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "git", "ignore")


def tracked_though_ignored(repository: Repository) -> frozenset[str]:
    """Files that git tracks although a rule matches them, as paths below the top. Git does not ignore these."""
    output = _git(repository.top, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    return frozenset(os.fsdecode(name) for name in output.split(b"\0") if name)


def _git(folder: str, *args: str) -> bytes:
    # Takes no lock, and starts no program that the repository's settings name.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *args]
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=GIT_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return b""
    return process.stdout if process.returncode == 0 else b""
