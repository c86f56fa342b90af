"""A git hook that adds the turns behind a commit to its message, as trailers: `Wakelog-Turn: fix-bug@3`.

It is installed and removed on request only. An existing hook is kept: our lines are added at its end between two
markers, and only they are removed. The hook never stops a commit.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from wakelog.atomic_file import atomic_file
from wakelog.errors import NotAllowedError, NotFoundError
from wakelog.files.git_commits import run_git
from wakelog.files.git_head import git_folders, top_of

HOOK: Final = "prepare-commit-msg"
TRAILER: Final = "Wakelog-Turn"
_BEGIN, _END = "# >>> wakelog >>>", "# <<< wakelog <<<"
_SHELLS = ("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env sh", "#!/usr/bin/env bash", "#!/usr/bin/bash", "#!/usr/bin/sh")


def install_hook(folder: str, command: str = "wakelog") -> tuple[Path, bool]:
    """Installs the hook in the repository around a folder. Returns its file, and whether that changed."""
    path = hook_file(folder)
    lines = f'{_BEGIN}\n{shlex.quote(command)} git trailer "$1" "$2" >/dev/null 2>&1 || :\n{_END}\n'
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if before and not before.startswith(_SHELLS):
        raise NotAllowedError(
            f"{path} is not a shell script, so nothing can be added to it",
            kind="foreign-git-hook",
            hint='let it run: wakelog git trailer "$1" "$2"',
        )
    after = (_remove_our_lines(before) or "#!/bin/sh").rstrip("\n") + f"\n{lines}"
    if after == before:
        return path, False
    _write(path, after)
    return path, True


def remove_hook(folder: str) -> tuple[Path, bool]:
    """Removes the hook. Returns its file, and whether it was installed."""
    path = hook_file(folder)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    if _BEGIN not in before:
        return path, False
    after = _remove_our_lines(before)
    if after.strip() in ("", "#!/bin/sh"):
        path.unlink()
    else:
        _write(path, after)
    return path, True


def hook_file(folder: str) -> Path:
    """Where git looks for the hook of a folder's repository."""
    top = top_of(os.path.abspath(folder))
    found = git_folders(top) if top else None
    if found is None:
        raise NotFoundError(
            f"there is no git repository at {folder}",
            kind="no-repository",
            hint="run it inside a repository, or name one with --repo",
        )
    # Read each settings file separately: a hooks folder shared by all repositories is not ours to change.
    own = run_git(top, "config", "--file", os.path.join(found[1], "config"), "--get", "core.hooksPath", check=False)
    if own.strip():
        return Path(top, os.fsdecode(own.strip())).expanduser() / HOOK
    if run_git(top, "config", "--global", "--get", "core.hooksPath", check=False).strip():
        raise NotAllowedError(
            "your git looks for the hooks of all repositories in one folder (core.hooksPath)",
            kind="shared-git-hooks",
            hint=f'let {HOOK} there run: wakelog git trailer "$1" "$2"',
        )
    return Path(found[1]) / "hooks" / HOOK


def add_trailers(message: Path, turns: list[str]) -> None:
    """Adds a trailer for each turn to a commit's message, unless it is there already."""
    trailers = [word for turn in turns for word in ("--trailer", f"{TRAILER}: {turn}")]
    if trailers:
        options = ("--in-place", "--if-exists", "addIfDifferent")
        run_git(os.curdir, "interpret-trailers", *options, *trailers, str(message.resolve()))


def trailers_of(folder: str, commit: str) -> list[str]:
    """The turns that a commit's message names."""
    output = run_git(folder, "log", "-1", f"--format=%(trailers:key={TRAILER},valueonly)", commit, check=False)
    return [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]


def staged_files(folder: str) -> set[str]:
    """Absolute paths of the staged files."""
    top = top_of(os.path.abspath(folder))
    output = run_git(top, "diff", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z", check=False)
    return {os.path.realpath(os.path.join(top, os.fsdecode(name))) for name in output.split(b"\0") if name}


def committed_until(file: str) -> int:
    """The time in microseconds up to which changes of a file are committed; 0 if no commit has the file. Changes in the
    same second as the last commit count as committed."""
    folder, name = os.path.split(file)
    if not os.path.isdir(folder):
        return 0
    seconds = run_git(folder, "log", "-1", "--format=%ct", "--", name, check=False).strip()
    return (int(seconds) + 1) * 1_000_000 if seconds.isdigit() else 0


def _remove_our_lines(text: str) -> str:
    begin, found, rest = text.partition(_BEGIN)
    if not found:
        return text
    return begin + rest.partition(_END)[2].removeprefix("\n")


def _write(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.is_file() else 0o755
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path, mode=mode | 0o100) as out:
        out.write(text.encode())
