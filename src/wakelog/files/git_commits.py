"""Commits of a repository, asked of git: what there is, what is in it, which line is whose. And notes, on request.

Only `add_note` and `keep_anchor_note` write, and only to `refs/notes/wakelog` and `refs/notes/wakelog-anchors`: no
branch, no index, no HEAD, no message. Programs that the repository's own settings name are not started.
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
_CALM = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "diff.external=")
_NOTER = {
    **{f"GIT_{who}_NAME": "wakelog" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "wakelog@localhost" for who in ("AUTHOR", "COMMITTER")},
}


class GitCommit(msgspec.Struct, frozen=True):
    """A commit: its time in seconds, and the files that it changed, as paths from the top."""

    hash: str
    at_s: int
    subject: str
    paths: tuple[str, ...] = ()


class BlamedLine(msgspec.Struct, frozen=True):
    """The commit that brought a line, and where the line was in it."""

    commit: str
    path: str
    line: int
    subject: str


def commits_between(folder: str, since_s: int, until_s: int) -> list[GitCommit]:
    """The commits of all branches and tags from one time to another, oldest first."""
    told = run_git(
        folder,
        *("log", "--branches", "--tags", "--remotes", "--no-renames", "--no-ext-diff", "--name-only", "-z"),
        *(f"--since={since_s}", f"--until={until_s}", "--format=%x01%H%x02%ct%x02%s%x02"),
    )
    return sorted(_commits(told), key=lambda each: each.at_s)


def _commits(told: bytes) -> Iterator[GitCommit]:
    for part in told.split(b"\x01")[1:]:
        hash, at, subject, files = part.split(b"\x02", 3)
        paths = [os.fsdecode(name.lstrip(b"\n")) for name in files.split(b"\0") if name.strip(b"\n")]
        yield GitCommit(hash.decode(), int(at), subject.decode(errors="replace"), tuple(paths))


def contents_in(folder: str, wanted: Sequence[tuple[str, str]]) -> Iterator[bytes | None]:
    """What files hold in commits, given as (commit, path); None where there is none."""
    # A path with a line break cannot be asked for this way.
    asked = [b"" if "\n" in path else f"{commit}:".encode() + os.fsencode(path) for commit, path in wanted]
    told = run_git(folder, "cat-file", "--batch", stdin=b"".join(each + b"\n" for each in asked)) if asked else b""
    place = 0
    for _ in asked:
        end = told.index(b"\n", place)
        words = told[place:end].split(b" ")
        place = end + 1
        if words[-1] in (b"missing", b"ambiguous") or len(words) < 3 or not words[-1].isdigit():
            yield None
            continue
        size = int(words[-1])
        yield told[place : place + size] if words[-2] == b"blob" else None
        place += size + 1


def find_commit(folder: str, revision: str) -> GitCommit:
    """The commit that a revision names. NotFoundError when there is none."""
    if revision.startswith("-"):
        raise NotFoundError(f"{revision!r} is not a revision", kind="git-commit-not-found")
    found = run_git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False).strip().decode()
    if not found:
        raise NotFoundError(
            f"there is no commit {revision!r} in the repository at {folder}",
            kind="git-commit-not-found",
            hint="git log --oneline",
        )
    told = run_git(folder, "log", "-1", "--format=%x01%H%x02%ct%x02%s%x02", found)
    return next(_commits(told))


def blame_line(path: str, line: int) -> BlamedLine | None:
    """The commit behind a line of a file in a work tree; None where it is not committed, or there is no telling."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        told = run_git(folder, "blame", "--porcelain", f"-L{line},{line}", "--", name, check=False)
    except (UnsupportedError, UnavailableError):
        return None
    lines = told.decode(errors="replace").splitlines()
    if not lines or set(commit := lines[0].split(" ")[0]) == {"0"}:
        return None
    said = dict(each.split(" ", 1) for each in lines[1:] if " " in each and not each.startswith("\t"))
    return BlamedLine(commit, said.get("filename", ""), int(lines[0].split(" ")[1]), said.get("summary", ""))


# Notes


def notes_of(folder: str, commit: str) -> list[str]:
    """The lines that we noted on a commit: `session@turn` each."""
    told = run_git(folder, "notes", f"--ref={NOTES}", "show", commit, check=False)
    return [line for line in told.decode(errors="replace").splitlines() if line]


def add_note(folder: str, commit: str, lines: Iterable[str]) -> bool:
    """Adds lines to our note on a commit, each once. Whether there was one to add."""
    known = notes_of(folder, commit)
    new = [line for line in dict.fromkeys(lines) if line not in known]
    if new:
        text = "\n".join([*known, *new]) + "\n"
        run_git(folder, "notes", f"--ref={NOTES}", "add", "-f", "-F", "-", commit, stdin=text.encode(), env=_NOTER)
    return bool(new)


def keep_anchor_note(folder: str, note: str) -> str:
    """Adds a signed note to those on HEAD; the commit."""
    commit = find_commit(folder, "HEAD").hash
    run_git(folder, "notes", f"--ref={ANCHORS}", "append", "-F", "-", commit, stdin=note.encode(), env=_NOTER)
    return commit


def anchor_notes(folder: str) -> list[str]:
    """The signed notes on all commits of a repository."""
    listed = run_git(folder, "notes", f"--ref={ANCHORS}", "list", check=False).decode().splitlines()
    found = [run_git(folder, "cat-file", "blob", line.split(" ")[0]).decode(errors="replace") for line in listed]
    return [match[0] for text in found for match in _SIGNED.finditer(text if text.endswith("\n") else text + "\n")]


def run_git(
    folder: str, *args: str, stdin: bytes = b"", check: bool = True, env: dict[str, str] | None = None
) -> bytes:
    """What a git command says. Without `check`, nothing where it fails."""
    settings = [word for setting in _CALM for word in ("-c", setting)]
    command = ["git", "--no-optional-locks", *settings, *args]
    try:
        done = subprocess.run(
            command, cwd=folder, input=stdin, capture_output=True, timeout=TIMEOUT_S, env={**os.environ, **(env or {})}
        )
    except FileNotFoundError as exc:
        raise UnsupportedError("git is not installed, or not on the PATH", kind="no-git") from exc
    except (OSError, subprocess.SubprocessError) as exc:
        raise UnavailableError(f"git could not be run in {folder}: {exc}", kind="git-failed") from exc
    if done.returncode and check:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UnavailableError(
            f"git {args[0]} failed in {folder}: {said[-1] if said else f'exit code {done.returncode}'}",
            kind="git-failed",
            hint="run it there by hand",
        )
    return done.stdout if not done.returncode else b""
