"""Runs git to read commits, their contents and blame, and to add notes on request.

Only `add_note` and `keep_anchor_note` write, and only to `refs/notes/wakelog` and `refs/notes/wakelog-anchors`: no
branch, no index, no HEAD, no message. Programs that the repository's settings name are not started.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from wakelog.errors import NotFoundError, UnavailableError, UnsupportedError

TIMEOUT_S = 60.0
NOTES = "refs/notes/wakelog"
ANCHORS = "refs/notes/wakelog-anchors"
_SIGNED = re.compile(r"(?:^[^\n—][^\n]*\n)+\n(?:^— [^\n]+\n)+", re.MULTILINE)
_SAFE_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "diff.external=")
_AUTHOR = {
    **{f"GIT_{who}_NAME": "wakelog" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "wakelog@localhost" for who in ("AUTHOR", "COMMITTER")},
}


class GitCommit(msgspec.Struct, frozen=True):
    """A commit: its time in seconds, and the files it changed, as paths from the top."""

    hash: str
    at_s: int
    subject: str
    paths: tuple[str, ...] = ()


class BlamedLine(msgspec.Struct, frozen=True):
    """The commit that added a line, and where the line was in it."""

    commit: str
    path: str
    line: int
    subject: str


def commits_between(folder: str, since_s: int, until_s: int) -> list[GitCommit]:
    """The commits of all branches and tags from one time to another, oldest first."""
    output = run_git(
        folder,
        *("log", "--branches", "--tags", "--remotes", "--no-renames", "--no-ext-diff", "--name-only", "-z"),
        *(f"--since={since_s}", f"--until={until_s}", "--format=%x01%H%x02%ct%x02%s%x02"),
    )
    return sorted(_parse_commits(output), key=lambda commit: commit.at_s)


def _parse_commits(output: bytes) -> Iterator[GitCommit]:
    for part in output.split(b"\x01")[1:]:
        hash, at, subject, files = part.split(b"\x02", 3)
        paths = [os.fsdecode(name.lstrip(b"\n")) for name in files.split(b"\0") if name.strip(b"\n")]
        yield GitCommit(hash.decode(), int(at), subject.decode(errors="replace"), tuple(paths))


def contents_in(folder: str, wanted: Sequence[tuple[str, str]]) -> Iterator[bytes | None]:
    """The contents of files in commits, given as (commit, path); None if there is no such file."""
    # The batch format has no way to name a path with a line break.
    names = [b"" if "\n" in path else f"{commit}:".encode() + os.fsencode(path) for commit, path in wanted]
    output = run_git(folder, "cat-file", "--batch", stdin=b"".join(name + b"\n" for name in names)) if names else b""
    place = 0
    for _ in names:
        end = output.index(b"\n", place)
        words = output[place:end].split(b" ")
        place = end + 1
        if words[-1] in (b"missing", b"ambiguous") or len(words) < 3 or not words[-1].isdigit():
            yield None
            continue
        size = int(words[-1])
        yield output[place : place + size] if words[-2] == b"blob" else None
        place += size + 1


def find_commit(folder: str, revision: str) -> GitCommit:
    """The commit that a revision names, or NotFoundError."""
    if revision.startswith("-"):
        raise NotFoundError(f"{revision!r} is not a revision", kind="git-commit-not-found")
    found = run_git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False).strip().decode()
    if not found:
        if not run_git(folder, "rev-parse", "--git-dir", check=False):
            raise NotFoundError(
                f"there is no git repository at {os.path.abspath(folder)}",
                kind="no-repository",
                hint="run it inside a repository, or name one with --repo",
            )
        raise NotFoundError(
            f"there is no commit {revision!r} in the repository at {os.path.abspath(folder)}",
            kind="git-commit-not-found",
            hint="git log --oneline",
        )
    return next(_parse_commits(run_git(folder, "log", "-1", "--format=%x01%H%x02%ct%x02%s%x02", found)))


def blame_line(path: str, line: int) -> BlamedLine | None:
    """The commit behind a line of a file in a work tree; None if it is not committed or git fails."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        output = run_git(folder, "blame", "--porcelain", f"-L{line},{line}", "--", name, check=False)
    except (UnsupportedError, UnavailableError):
        return None
    lines = output.decode(errors="replace").splitlines()
    if not lines or set(commit := lines[0].split(" ")[0]) == {"0"}:
        return None
    fields = dict(text.split(" ", 1) for text in lines[1:] if " " in text and not text.startswith("\t"))
    return BlamedLine(commit, fields.get("filename", ""), int(lines[0].split(" ")[1]), fields.get("summary", ""))


# Notes


def notes_of(folder: str, commit: str) -> list[str]:
    """The lines of our note on a commit, each `session@turn`."""
    output = run_git(folder, "notes", f"--ref={NOTES}", "show", commit, check=False)
    return [line for line in output.decode(errors="replace").splitlines() if line]


def add_note(folder: str, commit: str, lines: Iterable[str]) -> bool:
    """Adds lines to our note on a commit, each once. Returns whether any were new."""
    known = notes_of(folder, commit)
    new = [line for line in dict.fromkeys(lines) if line not in known]
    if new:
        text = "\n".join([*known, *new]) + "\n"
        run_git(folder, "notes", f"--ref={NOTES}", "add", "-f", "-F", "-", commit, stdin=text.encode(), env=_AUTHOR)
    return bool(new)


def keep_anchor_note(folder: str, note: str) -> str:
    """Adds a signed note to those on HEAD. Returns the commit."""
    commit = find_commit(folder, "HEAD").hash
    run_git(folder, "notes", f"--ref={ANCHORS}", "append", "-F", "-", commit, stdin=note.encode(), env=_AUTHOR)
    return commit


def anchor_notes(folder: str) -> list[str]:
    """The signed notes on all commits of a repository."""
    listed = run_git(folder, "notes", f"--ref={ANCHORS}", "list", check=False).decode().splitlines()
    results = [run_git(folder, "cat-file", "blob", line.split(" ")[0]).decode(errors="replace") for line in listed]
    return [match[0] for text in results for match in _SIGNED.finditer(text if text.endswith("\n") else text + "\n")]


def run_git(
    folder: str, *args: str, stdin: bytes = b"", check: bool = True, env: dict[str, str] | None = None
) -> bytes:
    """The output of a git command. Without `check`, empty if it fails."""
    settings = [word for setting in _SAFE_SETTINGS for word in ("-c", setting)]
    command = ["git", "--no-optional-locks", *settings, *args]
    try:
        process = subprocess.run(
            command, cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT_S, env={**os.environ, **(env or {})}
        )
    except FileNotFoundError as exc:
        if not os.path.isdir(folder):
            raise UnavailableError(f"there is no folder {folder}", kind="git-failed") from exc
        raise UnsupportedError("git is not installed, or not on the PATH", kind="no-git") from exc
    except (OSError, subprocess.SubprocessError) as exc:
        raise UnavailableError(f"git could not be run in {folder}: {exc}", kind="git-failed") from exc
    if process.returncode and check:
        errors = process.stderr.decode(errors="replace").strip().splitlines()
        raise UnavailableError(
            f"git {args[0]} failed in {folder}: {errors[-1] if errors else f'exit code {process.returncode}'}",
            kind="git-failed",
            hint="run it there in a terminal to see why",
        )
    return process.stdout if not process.returncode else b""
